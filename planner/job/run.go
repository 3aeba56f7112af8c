package job

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/hbd"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// Run moves jobs on. It is called at the end of a step, and costs nothing where
// no job's ring has changed.
func (t *Table) Run() {
	if len(t.jobs) == 0 || t.busy() != "" {
		t.began = t.began && t.busy() == ""
		return
	}
	if !t.began {
		t.begin()
	}
	t.settle()
	for _, id := range t.rings.Moved() {
		if x := t.jobs[id]; x != nil && (t.claim == nil || t.claim.id != id) { // else it is looked at when that is over
			t.look(x)
		}
	}
	if t.j.Now >= t.tryAt {
		t.try()
	}
}

// begin takes up what a former planner left.
func (t *Table) begin() {
	t.began = true
	for _, x := range t.order() {
		x.at = t.j.Now
		var records []journal.Record
		for _, id := range x.Rings {
			records = append(records, t.rings.Own(x.ID, id, x.Size)...) // light that was adopted
		}
		if x.State == Reserved {
			t.enter(x, Waiting, "the planner began anew")
			t.store(x, 1, records...)
			continue
		}
		if len(records) > 0 {
			t.j.Persist(records...)
		}
		t.look(x)
	}
	t.tryAt = t.j.Now
}

// Next is when it wants a tick.
func (t *Table) Next() time.Duration {
	if t.busy() != "" {
		return journal.Never
	}
	return t.tryAt
}

// settle takes the outcome of the claim that was under way.
func (t *Table) settle() {
	c := t.claim
	if c == nil || t.rings.Claiming(c.id) {
		return
	}
	t.claim = nil
	x := t.jobs[c.id]
	if l, ok := t.rings.Lent(c.ring); !ok || l.Owner != c.id {
		t.tryAt = t.j.Now + tryEvery/10
		if x.State != Reserved {
			t.look(x) // the rings that it has
			return
		}
		t.enter(x, Waiting, "a node that was asked could not: the next ones are asked")
		t.store(x, 1)
		return
	}
	t.stored++
	*x = c.then // as the store has it since the generation was decided
	t.look(x)
}

// try looks for room for those that wait, and for rings that are gone.
func (t *Table) try() {
	t.tryAt = journal.Never
	for _, x := range t.order() {
		if x.State.ended() {
			continue
		}
		t.lapse(x)
		if len(x.missing()) == 0 {
			continue
		}
		if t.claim != nil || !t.rings.Resting() {
			t.tryAt = t.j.Now + tryAgain
			break // a generation is under way, and soon over
		}
		t.tryAt = t.j.Now + tryEvery
		t.place(x)
	}
	for _, x := range t.jobs { // any order: whether there is one
		if x.lapses() {
			t.tryAt = min(t.tryAt, t.j.Now+tryEvery)
		}
	}
}

// place finds rings for a job that lacks some.
func (t *Table) place(x *job) {
	missing, spares := x.missing(), max(0, x.wish.Spares-len(x.Spares))
	fresh := len(missing) == len(x.Rings)
	if !fresh {
		spares = 0 // what is left of them is there
	}
	want := x.wish.want(t.fab(), x.ID, len(missing), spares)
	want.Size = x.Size
	s := t.rings.Share(want)
	if s.Why != "" && fresh && x.wish.Policy == Shrink && s.Most > 0 {
		want.Rings, want.Spares = min(s.Most, want.Rings), 0
		if s = t.rings.Share(want); s.Why == "" {
			x.Rings = x.Rings[:want.Rings]
			missing = missing[:want.Rings]
		}
	}
	if s.Why != "" {
		x.Cause = s.Why // people read it; it is no event
		return
	}
	then := *x
	then.Rings, then.Spares = slices.Clone(x.Rings), append(slices.Clone(x.Spares), s.Spares...)
	then.Members, then.Lost = nil, nil
	then.at, then.events = t.j.Now, slices.Clone(x.events)
	brings := proto.RingID(0)
	own := func(ids []proto.RingID) []journal.Record {
		brings = ids[0]
		for i, at := range missing {
			then.Rings[at] = ids[i]
		}
		t.enter(&then, Forming, "")
		return then.records(1)
	}
	if fresh {
		t.enter(x, Reserved, "")
		t.store(x, 1)
		then.Gen, then.events = x.Gen, slices.Clone(x.events)
	}
	if records := t.rings.Claim(x.ID, x.Size, s, own); records != nil {
		*x = then
		t.stored++
		t.j.Persist(records...)
		t.look(x)
		return
	}
	t.claim = &claim{x.ID, then, brings}
}

// lapse takes the place of a job back that has not become ready in time, and
// shrinks a ring that no node makes whole.
func (t *Table) lapse(x *job) {
	hold := time.Duration(x.wish.HoldMS) * time.Millisecond
	switch {
	case x.State == Forming && !x.Once && t.j.Now >= x.at+hold && t.claim == nil:
		records := t.rings.Release(x.ID)
		x.Rings, x.Spares, x.Members, x.Lost = make([]proto.RingID, x.wish.Rings), nil, nil, nil
		x.at = t.j.Now
		t.enter(x, Waiting, fmt.Sprintf("not ready within %v: its nodes were given back", hold))
		t.store(x, 1, records...)
	case x.wish.Policy == Shrink && x.hurt != 0 && t.j.Now >= x.hurt+hurtWait && t.rings.Resting():
		t.shrink(x)
	}
}

// shrink makes the rings of a job smaller that lack a node.
func (t *Table) shrink(x *job) {
	for _, id := range x.Rings {
		l, ok := t.rings.Lent(id)
		if !ok || len(l.Lost) == 0 && len(l.Nodes) == l.Size {
			continue
		}
		for size := l.Size - 1; size > 0; size-- {
			if l.Size%size == 0 && t.rings.Shrink(id, size) {
				x.hurt = 0
				return // one generation at a time
			}
		}
	}
}

// lapses: time alone may change what the job has.
func (x *job) lapses() bool {
	return x.State == Forming && !x.Once || x.hurt != 0 && x.wish.Policy == Shrink
}

// look compares what a job's rings are with what was told of them, and tells
// what is new.
func (t *Table) look(x *job) {
	if x.State.ended() || x.State == Waiting || x.State == Reserved {
		return
	}
	before := len(x.events)
	lents := make([]hbd.Lend, len(x.Rings))
	members := make([][]proto.NodeID, len(x.Rings))
	var lost []proto.NodeID
	cause := ""
	for i, id := range x.Rings {
		l, ok := t.rings.Lent(id)
		if !ok || l.Owner != x.ID {
			if id != 0 {
				x.Rings[i] = 0
				t.tryAt = t.j.Now
				cause = fmt.Sprintf("ring %d has no node left", id)
				for _, n := range t.told(x, i) {
					if !slices.Contains(x.Lost, n) {
						x.told(t.j.Wall, Event{Event: NodeLost, Ring: id, Node: t.name(n), Cause: cause})
					}
				}
			}
			continue
		}
		lents[i], members[i] = l, l.Nodes
		t.news(x, i, &l)
		for _, n := range l.Lost {
			lost = append(lost, n.Node)
			cause = fmt.Sprintf("node %s: %s", t.name(n.Node), n.Why)
			if !slices.Contains(x.Lost, n.Node) {
				x.told(t.j.Wall, Event{Event: NodeLost, Ring: id, Node: t.name(n.Node), Cause: n.Why, BypassUS: l.Bypass})
			}
		}
	}
	slices.Sort(lost)
	changed := !slices.Equal(lost, x.Lost)
	for i := range members {
		changed = changed || !slices.Equal(members[i], t.told(x, i))
	}
	x.Members, x.Lost = members, lost
	s := t.state(x, lents)
	if s == Ready {
		cause = ""
	}
	if s != Degraded && s != Down {
		x.hurt = 0
	} else if x.hurt == 0 {
		x.hurt = max(1, t.j.Now)
	}
	if x.hurt != 0 && x.wish.Policy == Shrink {
		t.tryAt = min(t.tryAt, x.hurt+hurtWait)
	}
	if s == Forming {
		t.tryAt = min(t.tryAt, t.j.Now+tryEvery)
	}
	if s != x.State {
		x.Once = x.Once || s == Ready
		t.enter(x, s, cause)
	}
	if n := len(x.events) - before; n > 0 || changed {
		t.store(x, n)
	}
}

// told are the members of a ring that were told last.
func (t *Table) told(x *job, at int) []proto.NodeID {
	if at < len(x.Members) {
		return x.Members[at]
	}
	return nil
}

// news tells which nodes stand in whose place.
func (t *Table) news(x *job, at int, l *hbd.Lend) {
	was := t.told(x, at)
	if was == nil || slices.Equal(was, l.Nodes) {
		return
	}
	var out, in []proto.NodeID
	for _, n := range was {
		if !slices.Contains(l.Nodes, n) {
			out = append(out, n)
		}
	}
	for _, n := range l.Nodes {
		if !slices.Contains(was, n) {
			in = append(in, n)
		}
	}
	for i := range max(len(out), len(in)) {
		e := Event{Event: Replaced, Ring: l.Ring}
		if i < len(out) {
			e.Out = t.name(out[i])
			if !slices.Contains(x.Lost, out[i]) {
				e.Cause = "moved"
			}
		}
		if i < len(in) {
			e.In = t.name(in[i])
			place := slices.Index(l.Nodes, in[i])
			e.Position = &place
			x.Spares = slices.DeleteFunc(slices.Clone(x.Spares), func(n proto.NodeID) bool { return n == in[i] })
		}
		x.told(t.j.Wall, e)
	}
}

// state is where a job stands by its rings.
func (t *Table) state(x *job, lents []hbd.Lend) State {
	whole, mend, down := true, false, false
	for i := range lents {
		l := &lents[i]
		if x.Rings[i] == 0 {
			whole, down = false, true
			continue
		}
		whole = whole && l.State == proto.RingInService && len(l.GPUOrder) == l.Size*t.fab().GPUsPerNode
		mend = mend || l.Mend
		down = down || l.State == proto.RingDown
	}
	switch {
	case whole && !mend:
		return Ready
	case !x.Once:
		return Forming
	case mend:
		return Repairing
	case down:
		return Down
	}
	return Degraded
}
