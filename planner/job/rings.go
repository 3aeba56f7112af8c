package job

import (
	"fmt"
	"slices"

	"ringlight/planner/hbd"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// ringJobs are jobs that ask for rings: hbd chooses them.
type ringJobs struct{ table *Table }

func (t ringJobs) trial(id string, w *Wish) Trial {
	s := t.table.rings.Share(w.want(t.table.fab(), w.Rings, w.Spares))
	if s.Why == "" {
		return Trial{Feasible: true, Most: w.Rings, Ends: s.Ends}
	}
	return Trial{Most: s.Most, Why: s.Why}
}

func (t ringJobs) resume(x *job) {
	var records []journal.Record
	for _, id := range x.Rings {
		records = append(records, t.table.rings.Own(x.ID, id, x.Size)...) // light that was adopted
	}
	if x.State == Reserved {
		t.table.enter(x, Waiting, "the planner began anew")
		t.table.store(x, 1, records...)
		return
	}
	if len(records) > 0 {
		t.table.j.Persist(records...)
	}
	t.table.look(x)
}

// returnStrays gives rings back whose jobs do not know them: a planner may have died between
// a job's release and the end of a generation that still had the ring for it.
func (t ringJobs) returnStrays() {
	for _, id := range t.table.rings.All() {
		l, _ := t.table.rings.Lent(id)
		if x := t.table.jobs[l.Owner]; l.Owner != "" && (x == nil || !slices.Contains(x.Rings, id)) {
			t.table.j.Persist(t.table.rings.Return(id))
		}
	}
}

func (t ringJobs) lacks(x *job) bool { return len(x.missing()) > 0 }

func (t ringJobs) free(x *job) []journal.Record {
	if t.table.claim != nil && t.table.claim.id == x.ID {
		t.table.rings.Unclaim(x.ID)
		t.table.claim = nil
	}
	x.Rings, x.Spares, x.Members, x.Lost = make([]proto.RingID, x.wish.Rings), nil, nil, nil
	return t.table.rings.Release(x.ID)
}

// settle takes the outcome of the claim that was under way.
func (t ringJobs) settle() {
	c := t.table.claim
	if c == nil || t.table.rings.Claiming(c.id) {
		return
	}
	t.table.claim = nil
	x := t.table.jobs[c.id]
	if l, ok := t.table.rings.Lent(c.ring); !ok || l.Owner != c.id {
		t.table.tryAt = t.table.j.Now + tryEvery/10
		if x.State != Reserved {
			t.table.look(x) // the rings that it has
			return
		}
		t.table.enter(x, Waiting, "a node that was asked could not: the next ones are asked")
		t.table.store(x, 1)
		return
	}
	*x = c.then // as the store has it since the generation was decided, but for its event's number
	t.table.store(x, 1)
	t.table.look(x)
}

// place finds rings for a job that lacks some.
func (t ringJobs) place(x *job) {
	if t.table.claim != nil || !t.table.rings.Resting() {
		t.table.tryAt = min(t.table.tryAt, t.table.j.Now+tryAgain) // a generation is under way, and soon over
		return
	}
	t.table.tryAt = min(t.table.tryAt, t.table.j.Now+tryEvery)
	missing, spares := x.missing(), max(0, x.wish.Spares-len(x.Spares))
	again := x.wish.Ring != 0 && x.State != Waiting // it had the ring that it names
	fresh := len(missing) == len(x.Rings) && !again
	if !fresh {
		spares = 0 // what is left of them is there
	}
	want := x.wish.want(t.table.fab(), len(missing), spares)
	want.Size, want.Again = x.Size, again
	s := t.table.rings.Share(want)
	if s.Why != "" && fresh && x.wish.Policy == Shrink && s.Most > 0 {
		want.Rings, want.Spares = min(s.Most, want.Rings), 0
		if s = t.table.rings.Share(want); s.Why == "" {
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
	then.at, then.events = t.table.j.Now, slices.Clone(x.events)
	brings := proto.RingID(0)
	own := func(ids []proto.RingID) []journal.Record {
		brings = ids[0]
		for i, at := range missing {
			then.Rings[at] = ids[i]
		}
		t.table.enter(&then, Forming, "")
		return then.records(1)
	}
	if fresh {
		t.table.enter(x, Reserved, "")
		t.table.store(x, 1)
		then.Gen, then.events = x.Gen, slices.Clone(x.events)
	}
	if records := t.table.rings.Claim(x.ID, x.Size, s, own); records != nil {
		*x = then
		t.table.store(x, 1, records...)
		t.table.look(x)
		return
	}
	t.table.claim = &claim{x.ID, then, brings}
}

// shrink makes the rings of a job smaller that lack a node.
func (t ringJobs) shrink(x *job) {
	for _, id := range x.Rings {
		l, ok := t.table.rings.Lent(id)
		if !ok || len(l.Lost) == 0 && len(l.Nodes) == l.Size {
			continue
		}
		for size := l.Size - 1; size > 0; size-- {
			if l.Size%size == 0 && t.table.rings.Shrink(id, size) {
				x.hurt = 0
				return // one generation at a time
			}
		}
	}
}

// stand compares a job's rings with what was told of them.
func (t ringJobs) stand(x *job) (s State, cause string, changed bool) {
	if x.State == Waiting || x.State == Reserved {
		return x.State, x.Cause, false
	}
	lents := make([]hbd.Lend, len(x.Rings))
	members := make([][]proto.NodeID, len(x.Rings))
	var lost []proto.NodeID
	for i, id := range x.Rings {
		l, ok := t.table.rings.Lent(id)
		if !ok || l.Owner != x.ID {
			if id != 0 {
				x.Rings[i] = 0
				t.table.tryAt = t.table.j.Now
				cause = fmt.Sprintf("ring %d has no node left", id)
				for _, n := range x.members(i) {
					if !slices.Contains(x.Lost, n) {
						t.table.told(x, Event{Event: NodeLost, Ring: id, Node: t.table.name(n), Cause: cause})
					}
				}
			}
			continue
		}
		lents[i], members[i] = l, l.Nodes
		t.news(x, i, &l)
		for _, n := range l.Lost {
			lost = append(lost, n.Node)
			cause = fmt.Sprintf("node %s: %s", t.table.name(n.Node), n.Why)
			if !slices.Contains(x.Lost, n.Node) {
				t.table.told(x, Event{Event: NodeLost, Ring: id, Node: t.table.name(n.Node), Cause: n.Why, BypassUS: l.Bypass})
			}
		}
	}
	slices.Sort(lost)
	changed = !slices.Equal(lost, x.Lost)
	for i := range members {
		changed = changed || !slices.Equal(members[i], x.members(i))
	}
	x.Members, x.Lost = members, lost
	x.gpus = 0
	for i := range lents {
		if lents[i].State != proto.RingDown {
			x.gpus += int(lents[i].GPUs)
		}
	}
	return t.state(x, lents), cause, changed
}

// members are those of a ring that were told last.
func (x *job) members(at int) []proto.NodeID {
	if at < len(x.Members) {
		return x.Members[at]
	}
	return nil
}

// news tells which nodes stand in whose place.
func (t ringJobs) news(x *job, at int, l *hbd.Lend) {
	was := x.members(at)
	if was == nil || slices.Equal(was, l.Nodes) {
		return
	}
	out, in := hbd.Without(was, l.Nodes), hbd.Without(l.Nodes, was)
	for i := range max(len(out), len(in)) {
		e := Event{Event: Replaced, Ring: l.Ring}
		if i < len(out) {
			e.Out = t.table.name(out[i])
			if !slices.Contains(x.Lost, out[i]) {
				e.Cause = "moved"
			}
		}
		if i >= len(in) {
			e.Event, e.Node, e.Out = Left, e.Out, ""
		} else {
			e.In = t.table.name(in[i])
			e.Position = new(slices.Index(l.Nodes, in[i]))
			x.Spares = slices.DeleteFunc(slices.Clone(x.Spares), func(n proto.NodeID) bool { return n == in[i] })
		}
		t.table.told(x, e)
	}
}

// state is where a job stands by its rings.
func (t ringJobs) state(x *job, lents []hbd.Lend) State {
	whole, mend, down := true, false, false
	for i := range lents {
		l := &lents[i]
		if x.Rings[i] == 0 {
			whole, down = false, true
			continue
		}
		whole = whole && l.State == proto.RingInService && len(l.GPUOrder) == l.Size*t.table.fab().GPUsPerNode
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
