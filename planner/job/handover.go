package job

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// HandOver is what a trainer needs to go on in another order: who is which rank now,
// and where the ranks of before are.
type HandOver struct {
	Members []GPU  `json:"members"` // by rank, as light walks them, or will where it does not yet
	Before  uint64 `json:"before"`  // the event whose ranks lost and map are of, 0: there is none
	Lost    []int  `json:"lost"`    // ranks of before that have no place any more
	Map     []int  `json:"map"`     // by rank of before: its rank now, -1 for one that is lost
	// Expect is the event that is to come, and By until when, in milliseconds of the
	// planner's wall clock; null: nobody knows.
	Expect string  `json:"expect"`
	By     *uint64 `json:"by"`
}

// maxHandOvers are kept for those who watch; they are as long as the job is large.
// chosen: a trainer that is behind by so many begins from the job itself.
const maxHandOvers = 16

// handOver adds to an event who is which rank after it, where it is one that changes that.
func (t *Table) handOver(x *job, e *Event) {
	first := e.Event == string(Ready) && !x.Once
	switch {
	case x.wish == nil, !first && e.Event != string(Degraded) && e.Event != Replaced && e.Event != Left && e.Event != Restored:
		return
	}
	h := &HandOver{Members: t.of(x.wish).members(x), Lost: []int{}, Map: []int{}}
	if before := x.handed(); before != nil {
		now := make(map[GPU]int, len(h.Members))
		for i, g := range h.Members {
			now[g] = i
		}
		h.Before = before.Generation
		for was, g := range before.Members {
			to, ok := now[g]
			if !ok {
				to = -1
				h.Lost = append(h.Lost, was)
			}
			h.Map = append(h.Map, to)
		}
	}
	wait := time.Duration(0)
	h.Expect, wait = t.expected(x, e)
	x.due = 0
	if wait > 0 {
		h.By, x.due = new(t.j.Wall+uint64(wait.Milliseconds())), t.j.Now+wait
		t.tryAt = min(t.tryAt, x.due)
	}
	e.HandOver = h
}

// handed is the last event that said who is which rank.
func (x *job) handed() *Event {
	for i := len(x.events) - 1; i >= 0; i-- {
		if x.events[i].HandOver != nil {
			return &x.events[i]
		}
	}
	return nil
}

// handedOver is how many of its events say so.
func (x *job) handedOver() (n int) {
	for i := range x.events {
		if x.events[i].HandOver != nil {
			n++
		}
	}
	return n
}

// Asked does what is asked of a job that has a name.
func (t *Table) Asked(q *proto.OpRequest) error {
	if err := t.At(q.Name, q.Revision); err != nil {
		return err
	}
	switch q.Noun {
	case proto.NounSubmit:
		return t.Put(q.Name, string(q.Text))
	case proto.NounRelease:
		return t.Drop(q.Name, string(q.Text))
	case proto.NounResumed:
		return t.resumed(q.Name, string(q.Text), q.Page)
	}
	return t.Routed(q.Name, string(q.Text))
}

// resumed takes a job's word that it computes again after an event, restored: how long that
// took is what it costs when a ring moves.
func (t *Table) resumed(id, owner string, event uint64) error {
	x := t.jobs[id]
	if x == nil {
		return noJob(id)
	}
	if err := x.wish.OwnedBy(owner, id); err != nil {
		return err
	}
	e := x.handed()
	if e == nil || e.Event != Restored || e.Generation != event || x.State != Ready {
		return &proto.Error{Code: proto.Conflict, Field: "generation", Limit: "that of the last event restored, of a job that is ready", Reason: fmt.Sprintf("job %s is %s", id, x.State)}
	}
	if x.resumed < event && x.wish.Circuits == nil {
		x.resumed = event
		t.rings.Resumed(time.Duration(t.j.Wall-min(t.j.Wall, e.AtMS)) * time.Millisecond)
	}
	return nil
}

// Nothing is expected after an event.
const Nothing = "nothing"

// expected is the event that is to follow one, and how long that takes at most, 0: nobody
// knows.
func (t *Table) expected(x *job, e *Event) (string, time.Duration) {
	switch {
	case e.Event == Restored || e.Event == string(Ready):
		return Nothing, 0
	case e.Event == Replaced:
		return Restored, hurtWait // by light
	case e.Event == Left || x.wish.Circuits != nil:
		return Restored, 0
	}
	late, lost, near := x.due != 0 && t.j.Now >= x.due, false, false
	for _, id := range x.Rings {
		if l, ok := t.rings.Lent(id); ok && len(l.Lost) > 0 {
			lost, near = true, near || t.rings.Near(id)
		}
	}
	before := x.handed()
	switch {
	case near && !late:
		return Replaced, hurtWait
	case !lost && !late && before != nil && before.Event == Replaced:
		return Restored, hurtWait // by light
	case !lost && before != nil && before.Event == Left:
		return Restored, 0
	case !lost && !late:
		return string(Degraded), hurtWait // or it is known who is lost
	case lost && x.wish.Policy == Shrink && !late:
		return Left, hurtWait
	case lost && x.wish.Policy == Shrink:
		return Left, 0
	}
	return Restored, 0 // when the node, or the light, is back
}

// overdue tells again how a job stands of which something else was expected by now.
func (t *Table) overdue(x *job) {
	if x.due == 0 || t.j.Now < x.due || !t.rings.Resting() {
		return
	}
	if x.State == Degraded {
		t.told(x, Event{Event: string(Degraded), Cause: x.Cause, GPUsTotal: x.gpus})
		t.store(x, 1)
	}
	x.due = 0
}

// members of rings are the GPUs of each in the order of light.
func (t ringJobs) members(x *job) []GPU {
	out := []GPU{}
	for _, id := range x.Rings {
		l, ok := t.table.rings.Lent(id)
		if !ok || l.Owner != x.ID {
			continue
		}
		order := l.GPUOrder
		if len(order) == 0 {
			order = l.Coming()
		}
		out = append(out, t.table.named(order)...)
	}
	return out
}

// named are GPUs as people and launchers call them.
func (t *Table) named(order []proto.RingGPU) []GPU {
	out := make([]GPU, len(order))
	for i, g := range order {
		out[i] = GPU{t.name(g.Node), t.fab().GPUIndex(g.Node, int(g.GPU))}
	}
	return out
}

// members of circuits are the GPUs of their servers that are in.
func (t circuitJobs) members(x *job) []GPU {
	out := []GPU{}
	for _, p := range t.table.core.Ranks(x.Number).Places {
		if _, gone := t.table.core.Out(p.Server); !gone {
			out = append(out, GPU{t.table.fab().ServerName(p.Server), p.GPU})
		}
	}
	return out
}

// news tells which servers stand in whose place.
func (t circuitJobs) news(x *job) (changed bool) {
	var now []int
	for _, p := range t.table.core.Ranks(x.Number).Places {
		if n := len(now); n == 0 || now[n-1] != p.Server {
			now = append(now, p.Server)
		}
	}
	was := x.Servers
	if len(now) == 0 || slices.Equal(was, now) {
		return false // it waits: no server stands for another
	}
	x.Servers = now
	only := func(a, b []int) (names []string) {
		for _, s := range a {
			if name := t.table.fab().ServerName(s); !slices.Contains(b, s) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return names
	}
	if out, in := only(was, now), only(now, was); x.handed() != nil && len(out) == 1 && len(in) == 1 {
		t.table.told(x, Event{Event: Replaced, Out: out[0], In: in[0]})
	} else if x.handed() != nil {
		t.table.told(x, Event{Event: Replaced, Cause: fmt.Sprintf("%s in place of %d", proto.Count(len(in), "server"), len(out))})
	}
	return true
}
