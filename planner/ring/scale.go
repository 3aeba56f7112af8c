package ring

import (
	"fmt"
	"slices"

	"ringlight/proto"
)

// Tracker keeps a maximal placement through faults and repairs. After each it
// holds as many groups as Place would find from nothing, and of the running
// groups it changes the fewest that any placement in HBD order could; what it
// costs depends on the groups that it changes and hardly on the fabric: about
// six bytes a node are kept, in bit sets that are searched 64 nodes at a time.
//
// Groups have numbers from 1 that they keep while they run.
//
// In a long line with few idle nodes one group more can mean that thousands
// move along. Limit is how many running groups may be touched for one; 0: any
// number. Then up to one node in Limit stays idle, and the cost of an event
// does not depend on the size of the fabric at all.
//
// With the bundle constraint the number of groups is still the largest, but a
// node that must end a group may change sides where leaving it would do.
type Tracker struct {
	Order
	Limit  int
	size   int
	well   nodeSet // nodes that are usable
	idle   nodeSet // usable nodes in no group
	held   nodeSet // nodes in a group
	head   nodeSet // first nodes of groups
	gap    nodeSet // usable nodes that no fibre joins to a usable one before, or the seam
	pinch  nodeSet // nodes that may only be an end of a group
	start  nodeSet // first nodes of runs: no group holds nodes of two runs
	seam   int     // where a closed circle is cut, -1: it is not closed
	group  []int32 // by node; 0: none
	headOf []int32 // by group; -1: no such group
	unused []int32 // numbers of groups that are gone

	change Change
	marked []bool  // by group: it is in change.Touched
	broken []int32 // groups of this change that may come back
	dirty  []int   // nodes whose run changed
	list   []int   // scratch
	want   []int   // scratch
}

// Change is what one fault or repair did. It is overwritten by the next.
type Change struct {
	Touched []int32 // running groups whose members changed, gone ones included
	Gone    []int32
	New     []int32
	Moved   int // nodes that went from one running group to another
}

// NewTracker places from nothing, idle nodes spread between the groups.
func NewTracker(o Order, size int, usable func(proto.NodeID) bool) *Tracker {
	if o.Nodes < 1 || o.K < 1 || size < 1 || o.Wrap && o.Nodes < 2*o.K+1 {
		panic(fmt.Sprintf("ring: no order of %d nodes, K %d, groups of %d", o.Nodes, o.K, size))
	}
	n := o.Nodes
	t := &Tracker{Order: o, size: size, seam: -1, group: make([]int32, n), headOf: []int32{-1}, marked: []bool{false}}
	for _, s := range []*nodeSet{&t.well, &t.idle, &t.held, &t.head, &t.gap, &t.pinch, &t.start} {
		*s = newNodeSet(n)
	}
	for i := range n {
		if usable(proto.NodeID(i)) {
			t.well.add(i)
		}
	}
	last := t.well.prev(n - 1)
	for i := t.well.next(0); i >= 0; i = t.well.next(i + 1) {
		t.markGap(i, last)
		last = i
	}
	if first := t.well.next(0); first >= 0 && t.gap.next(0) < 0 {
		t.seam = first
		t.gap.add(first)
	}
	if t.Shared {
		for i := t.well.next(0); i >= 0; i = t.well.next(i + 1) {
			t.markPinch(i)
		}
		t.settleSeam()
	}
	for i := t.gap.next(0); i >= 0; i = t.gap.next(i + 1) {
		t.recut(i)
	}
	for i := t.start.next(0); i >= 0; i = t.start.next(i + 1) {
		t.fillNew(i)
	}
	t.dirty = t.dirty[:0]
	return t
}

// Fail takes a node out. A node that is out already changes nothing.
func (t *Tracker) Fail(node proto.NodeID) *Change {
	x := int(node)
	t.begin()
	if !t.well.has(x) {
		return &t.change
	}
	if g := t.group[x]; g != 0 {
		t.dissolve(g)
	}
	t.idle.remove(x)
	t.well.remove(x)
	t.rebound(x)
	return t.end()
}

// Repair brings a node back. A node that is in already changes nothing.
func (t *Tracker) Repair(node proto.NodeID) *Change {
	x := int(node)
	t.begin()
	if t.well.has(x) {
		return &t.change
	}
	t.well.add(x)
	t.idle.add(x)
	t.rebound(x)
	return t.end()
}

func (t *Tracker) begin() {
	for _, g := range t.change.Touched {
		t.marked[g] = false
	}
	t.change = Change{Touched: t.change.Touched[:0], Gone: t.change.Gone[:0], New: t.change.New[:0]}
	t.broken, t.dirty = t.broken[:0], t.dirty[:0]
}

func (t *Tracker) end() *Change {
	for _, g := range t.broken {
		t.headOf[g] = -1
		t.unused = append(t.unused, g)
		t.change.Gone = append(t.change.Gone, g)
	}
	slices.Sort(t.change.Touched)
	return &t.change
}

// Usable reports whether a node is in.
func (t *Tracker) Usable(n proto.NodeID) bool { return t.well.has(int(n)) }

// Group is the number of a node's group, 0 when it is in none.
func (t *Tracker) Group(n proto.NodeID) int32 { return t.group[n] }

// Groups is how many there are.
func (t *Tracker) Groups() int { return t.head.below(t.Nodes) }

// Idle is the number of usable nodes in no group.
func (t *Tracker) Idle() int { return t.idle.below(t.Nodes) }

// Members appends a group's nodes, left to right.
func (t *Tracker) Members(g int32, out []proto.NodeID) []proto.NodeID {
	if g < 1 || int(g) >= len(t.headOf) || t.headOf[g] < 0 {
		return out
	}
	at := int(t.headOf[g])
	for range t.size {
		out = append(out, proto.NodeID(at))
		at = t.held.after(at)
	}
	return out
}

// Each calls f for every group in order of first nodes.
func (t *Tracker) Each(f func(g int32, first proto.NodeID)) {
	for i := t.head.next(0); i >= 0; i = t.head.next(i + 1) {
		f(t.group[i], proto.NodeID(i))
	}
}

// far is more hops than any fibre spans.
const far = int(^uint(0) >> 1)

// hops is the way forward from a to b, the whole circle to itself.
func (t *Tracker) hops(a, b int) int {
	switch {
	case b > a:
		return b - a
	case t.Wrap:
		return b - a + t.Nodes
	}
	return far
}

func (t *Tracker) markGap(i, before int) {
	if t.hops(before, i) > t.K || before == i {
		t.gap.add(i)
	} else {
		t.gap.remove(i)
	}
}

func (t *Tracker) markPinch(i int) {
	if t.Shared && t.hops(t.well.before(i), i) == t.K && t.hops(i, t.well.after(i)) == t.K {
		t.pinch.add(i)
	} else {
		t.pinch.remove(i)
	}
}

// touch notes that a running group changes.
func (t *Tracker) touch(g int32) {
	if !t.marked[g] {
		t.marked[g] = true
		t.change.Touched = append(t.change.Touched, g)
	}
}

// dissolve sets a group's members free. Its number comes back for a group
// that is formed by the same change.
func (t *Tracker) dissolve(g int32) {
	t.touch(g)
	t.broken = append(t.broken, g)
	at := int(t.headOf[g])
	t.head.remove(at)
	for range t.size {
		next := t.held.after(at)
		t.group[at] = 0
		t.held.remove(at)
		t.idle.add(at)
		at = next
	}
}

// number gives a group that is being formed its number, and whether it ran
// before this change.
func (t *Tracker) number() int32 {
	if n := len(t.broken); n > 0 {
		g := t.broken[n-1]
		t.broken = t.broken[:n-1]
		return g
	}
	g := int32(len(t.headOf))
	if n := len(t.unused); n > 0 {
		g = t.unused[n-1]
		t.unused = t.unused[:n-1]
	} else {
		t.headOf, t.marked = append(t.headOf, -1), append(t.marked, false)
	}
	t.change.New = append(t.change.New, g)
	return g
}
