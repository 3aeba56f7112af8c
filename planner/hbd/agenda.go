package hbd

import (
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// One fault of a fabric with a quarter of a million nodes must not cost a look
// at all of them. So whatever happens marks the rings that it may concern, and
// the next look is at those alone: rings that lost something, and rings that
// lack a node and have one within reach. What could be placed better anywhere
// the index knows (ring.Tracker), a while later.
type agenda struct {
	pl *placement
	j  *journal.Journal

	marked     []proto.RingID // to be looked at
	strays     []proto.NodeID // perhaps to be told where they stand
	wantBetter bool           // something has changed since everything was looked at
	planAt     time.Duration  // when the placement may have to change
	since      time.Duration  // that it may
	betterAt   time.Duration  // when rings may be placed better that are not hurt
	lookAt     time.Duration  // when that is looked into
}

// mark makes the next look be at a ring, too.
func (a *agenda) mark(r *ringView) {
	a.pl.unsettle(r)
	if r != nil && !r.marked {
		r.marked = true
		a.marked = append(a.marked, r.id)
	}
}

// markNear marks the rings that lack a node and may reach this one.
func (a *agenda) markNear(id proto.NodeID) {
	if a.pl.index != nil { // else everything is marked when all have been heard
		a.pl.index.Short(id, func(r proto.RingID) { a.mark(a.pl.ring(r)) })
	}
}

// markNode marks what a change of a node may concern: its ring, or those that
// could have it. Sooner or later everything is looked at for it.
func (a *agenda) markNode(n *node) {
	a.wantBetter = true
	a.pl.touch(n.Device.ID)
	a.pl.reads(n.Device.ID)
	if r := a.pl.ring(n.Device.Group); r != nil {
		a.pl.tell(r)
		a.mark(r)
		return
	}
	a.markNear(n.Device.ID)
}

// markAll makes the next look be at everything.
func (a *agenda) markAll() {
	a.wantBetter = true
	for _, r := range a.pl.rings {
		a.mark(r)
	}
}

// concerned takes the rings that were marked, by id. Those that wait for
// something stay marked.
func (a *agenda) concerned() []*ringView {
	var out []*ringView
	for _, id := range a.marked {
		if r := a.pl.ring(id); r != nil && r.marked {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *ringView) int { return int(int64(a.id) - int64(b.id)) })
	a.marked = a.marked[:0]
	for _, r := range out {
		r.marked = false
	}
	return out
}

// unassign notes that a node is to be told where it stands.
func (a *agenda) unassign(n *node) {
	n.Device.Unassigned = true
	if !n.stray {
		n.stray = true
		a.strays = append(a.strays, n.Device.ID)
	}
}

// untold lists, in any order, the nodes that are to be told where they stand.
func (a *agenda) untold() []proto.NodeID {
	a.strays = slices.DeleteFunc(a.strays, func(id proto.NodeID) bool {
		n := &a.pl.nodes[id]
		n.stray = n.Device.Unassigned
		return !n.stray
	})
	if len(a.strays) < cap(a.strays)/4 {
		a.strays = slices.Clone(a.strays) // it was long once
	}
	return a.strays
}

// replan asks for a look at the placement after a delay at most.
func (a *agenda) replan(after time.Duration) {
	if a.planAt == journal.Never {
		a.since = a.j.Now
	}
	a.planAt = min(a.planAt, a.j.Now+after)
}

// rests: nothing is to be looked at.
func (a *agenda) rests() bool { return min(a.lookAt, a.planAt) == journal.Never && !a.wantBetter }
