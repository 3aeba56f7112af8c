package ring

import (
	"slices"

	"ringlight/proto"
)

// shift is one use of a row: the groups between its nodes move along, and one
// more is among them.
type shift struct {
	demand int
	moved  []int32        // groups between, in HBD order
	nodes  []proto.NodeID // theirs and the row's, in HBD order
	home   int32          // the short group that becomes whole, 0: a new one
	before int            // how many of moved lie before it
}

// use makes one more group whole on a row. It reports whether that could be
// done; else the index has learnt what it did not know of.
func (t *Tracker) use(demand, first int, near int32) bool {
	w := shift{demand: demand}
	if !w.survey(t, first) {
		return false
	}
	w.pickHome(t, near)
	if !w.insert(t) {
		t.rows.reject(demand, first)
		return false
	}
	w.carryOut(t)
	return true
}

// survey lists the groups and nodes of a row, and reports whether the index has
// them as they are.
func (w *shift) survey(t *Tracker, first int) bool {
	last := t.rows.last(w.demand, first)
	back, row := 0, 0 // hops before the row and of it
	if last != first {
		row = t.hops(first, last)
	}
	ahead := row
	add := func(at int32) {
		nodes := t.slots[at].Nodes
		w.moved = append(w.moved, at)
		to := t.hops(first, int(nodes[len(nodes)-1]))
		ahead = max(ahead, to)
	}
	var seen []int32
	for by := 1; by < min(t.K, t.Nodes); by++ { // groups that the first node lies between the members of
		pos := t.at(first - by)
		if pos < 0 {
			break
		}
		at := t.owner[pos]
		if at == 0 || t.slots[at].standing != stands || slices.Contains(seen, at) {
			continue
		}
		seen = append(seen, at)
		if nodes := t.slots[at].Nodes; int(nodes[len(nodes)-1]) != pos {
			back = max(back, t.hops(int(nodes[0]), first))
			add(at)
		}
	}
	slices.SortFunc(w.moved, func(a, b int32) int {
		return t.hops(int(t.slots[b].Nodes[0]), first) - t.hops(int(t.slots[a].Nodes[0]), first)
	})
	for h, past := t.head.after(first), 0; h >= 0 && t.hops(first, h) < row && t.hops(first, h) > past; h = t.head.after(h) {
		past = t.hops(first, h)
		add(t.owner[h])
	}
	if back+ahead >= t.Nodes {
		t.rows.reject(w.demand, first) // once round and more
		return false
	}
	for _, at := range w.moved {
		if !t.trust(at) {
			return false
		}
	}
	for at, seen := t.at(first-back), 0; ; {
		own := t.owner[at]
		if seen >= back && seen <= back+row && t.idle.has(at) || own != 0 && t.slots[own].standing == stands && slices.Contains(w.moved, own) {
			w.nodes = append(w.nodes, proto.NodeID(at))
			if t.idle.has(at) && !(own == 0 && t.Free(proto.NodeID(at)) || own != 0 && t.trust(own) && t.Usable(proto.NodeID(at))) {
				t.Refresh(proto.NodeID(at))
				return false
			}
		}
		if seen == back+ahead {
			return true
		}
		next := t.well.after(at)
		seen += t.hops(at, next)
		at = next
	}
}

// at is a place of the order, round the seam where there is one, -1: beyond
// the end of a line.
func (t *Tracker) at(i int) int {
	if t.Wrap {
		return (i%t.Nodes + t.Nodes) % t.Nodes
	}
	if i < 0 || i >= t.Nodes {
		return -1
	}
	return i
}

// trust reads a group again and reports whether it is what the index takes it
// for.
func (t *Tracker) trust(at int32) bool {
	s := &t.slots[at]
	if t.Frozen != nil && s.ID != 0 && t.Frozen(s.ID) != s.Frozen {
		s.Frozen = !s.Frozen
		t.settle(at)
		return false
	}
	was := s.standing
	if whole := t.sound(s); whole != (was == stands || was == kept) {
		t.settle(at)
		return false
	}
	return true
}

// pickHome chooses the short group that becomes whole: the one with the most
// nodes in the row, else a new one where one is wanted, else the nearest.
func (w *shift) pickHome(t *Tracker, near int32) {
	size, best := t.Sizes[w.demand].Size, 0
	for _, n := range w.nodes {
		at := t.owner[n]
		if at == 0 || t.slots[at].standing != lacks || t.slots[at].Size != size {
			continue
		}
		if count := t.staying(w.nodes, at); count > best || count == best && at == near {
			best, w.home = count, at
		}
	}
	if w.home == 0 && t.absent(w.demand) == 0 {
		w.home = near
	}
}

// staying counts the nodes that are a group's already.
func (t *Tracker) staying(nodes []proto.NodeID, at int32) int {
	count := 0
	for _, n := range nodes {
		if at != 0 && t.owner[n] == at {
			count++
		}
	}
	return count
}

// insert finds the place among the groups where one more costs the fewest
// nodes their group, and reports whether there is one.
func (w *shift) insert(t *Tracker) bool {
	size := t.Sizes[w.demand].Size
	// What each group is worth before and behind the new one, -1: no line.
	worth := func(from, size int, at int32) int {
		span := w.nodes[from:][:size]
		if !t.lines(span) {
			return -1
		}
		return t.staying(span, at)
	}
	n := len(w.moved)
	behind := make([]int, n+1) // worth of the groups from here on, behind the new one
	start := len(w.nodes)
	for i := n - 1; i >= 0; i-- {
		s := t.slots[w.moved[i]].Size
		start -= s
		behind[i] = -1
		if v := worth(start, s, w.moved[i]); v >= 0 && behind[i+1] >= 0 {
			behind[i] = v + behind[i+1]
		}
	}
	best, before, from := -1, 0, 0
	for i := 0; ; i++ {
		if v := worth(from, size, w.home); v >= 0 && behind[i] >= 0 && before+v+behind[i] > best {
			best, w.before = before+v+behind[i], i
		}
		if i == n {
			return best >= 0
		}
		s := t.slots[w.moved[i]].Size
		v := worth(from, s, w.moved[i])
		if v < 0 {
			return best >= 0
		}
		before, from = before+v, from+s
	}
}

// lines reports whether fibres join nodes to a group.
func (t *Tracker) lines(nodes []proto.NodeID) bool {
	return t.Check(nodes) == nil && !t.torn(nodes)
}

// carryOut gives the groups of a row their new nodes. Short groups that lost
// nodes by it keep what still hangs together.
func (w *shift) carryOut(t *Tracker) {
	if w.home == 0 {
		w.home = t.open(Group{Size: t.Sizes[w.demand].Size})
	}
	groups := slices.Insert(slices.Clone(w.moved), w.before, w.home)
	laid, at := make([][]proto.NodeID, len(groups)), 0
	for i, g := range groups {
		laid[i] = slices.Clone(w.nodes[at:][:t.slots[g].Size])
		at += len(laid[i])
	}
	t.relay(groups, laid)
}

// relay gives groups other nodes, and short groups that lose some by it keep
// what still hangs together.
func (t *Tracker) relay(groups []int32, laid [][]proto.NodeID) {
	var robbed []int32
	laidOn, known := map[proto.NodeID]bool{}, setOf(groups)
	for _, nodes := range laid {
		for _, n := range nodes {
			laidOn[n] = true
			if own := t.owner[n]; own != 0 && !known[own] {
				robbed, known[own] = append(robbed, own), true
			}
		}
	}
	for _, g := range robbed {
		left := slices.DeleteFunc(slices.Clone(t.slots[g].Nodes), func(n proto.NodeID) bool { return laidOn[n] })
		groups, laid = append(groups, g), append(laid, left)
	}
	t.layAll(groups, laid)
	t.mendAll(robbed)
}
