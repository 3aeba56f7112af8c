package ring

import (
	"slices"

	"ringlight/proto"
)

// fetch brings the idle nodes of a row nearer to one another where too many
// whole groups lie between them to move at once: those next to its outer idle
// nodes move outward, so that the idle nodes come to lie on their inner side. No
// group has a node more or less for it, and in all no more groups move than if
// they did at once; each look has a bound, and what is hurt meanwhile comes
// first. It reports whether the row could not be used and another may be.
func (t *Tracker) fetch(demand, first int, near int32, groups int) (again bool) {
	if t.Moves <= 0 {
		return false
	}
	if t.Fetch <= t.fetched {
		t.needs(demand, groups)
		return false
	}
	if groups <= t.Fetch-t.fetched { // all at once
		if t.use(demand, first, near) {
			t.fetched += groups
		}
		return true
	}
	w := shift{demand: demand}
	if !w.survey(t, first) {
		return true // the index has learnt something
	}
	w.pickHome(t, near)
	count := min(t.Fetch-t.fetched, len(w.moved))
	moved, nodes := w.moved[len(w.moved)-count:], w.nodes
	right := w.home == 0 || t.owner[w.nodes[len(w.nodes)-1]] != w.home // the outer idle nodes are on the right
	var size int
	if !right {
		moved = w.moved[:count]
	}
	for _, at := range moved {
		size += t.slots[at].Size
	}
	if right {
		nodes = nodes[slices.Index(nodes, t.slots[moved[0]].Nodes[0]):]
	} else {
		last := t.slots[moved[count-1]].Nodes
		nodes = nodes[:slices.Index(nodes, last[len(last)-1])+1]
	}
	stray := func(n proto.NodeID) bool { return !t.idle.has(int(n)) && !slices.Contains(moved, t.owner[n]) }
	if len(nodes) <= size || slices.ContainsFunc(nodes, stray) {
		t.rows.reject(demand, first)
		return true
	}
	if right {
		nodes = nodes[len(nodes)-size:]
	}
	laid := make([][]proto.NodeID, count)
	for i, at := range moved {
		laid[i], nodes = slices.Clone(nodes[:t.slots[at].Size]), nodes[t.slots[at].Size:]
		if !t.lines(laid[i]) {
			t.rows.reject(demand, first)
			return true
		}
	}
	t.relay(moved, laid)
	t.fetched += count
	t.needs(demand, groups-count)
	return false
}

// needs notes how many whole groups must move for one more, the fewest where
// there are several sizes, and how many the idle nodes could be.
func (t *Tracker) needs(demand, groups int) {
	if t.dearer == 0 || groups < t.dearer {
		t.dearer, t.lost = groups, min(t.shortage(demand), t.idle.all()/t.Sizes[demand].Size)
	}
}
