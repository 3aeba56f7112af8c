package ring

import "slices"

// Runs: the usable nodes between two gaps are one run; with the bundle
// constraint a run also ends at a node that may only be an end of a group, on
// one side of it or the other. A run of c nodes holds floor(c/size) groups.

// rebound redraws the runs round a node that came or went, and fills them.
func (t *Tracker) rebound(x int) {
	here := t.well.has(x)
	if !here {
		t.gap.remove(x)
		t.pinch.remove(x)
		t.start.remove(x)
	}
	l, r := t.well.before(x), t.well.after(x)
	if r < 0 {
		t.seam = -1
		return
	}
	wasGap := t.gap.has(r)
	if here {
		t.markGap(x, l)
		t.markGap(r, x)
		t.markPinch(x)
	} else {
		t.markGap(r, l)
	}
	if r != x {
		t.markPinch(l)
		t.markPinch(r)
	}
	t.moveSeam(r, wasGap)
	t.settleSeam()
	near := []int{l, r}
	if here {
		near = append(near, x)
	}
	for i, y := range near {
		c := t.openAt(&t.gap, y)
		if !slices.ContainsFunc(near[:i], func(z int) bool { return t.openAt(&t.gap, z) == c }) {
			t.recut(c)
		}
	}
	for _, s := range t.dirty {
		t.unstraddle(s)
	}
	for _, s := range t.dirty {
		if t.well.has(s) {
			near = append(near, s, t.well.before(s))
		}
	}
	for _, y := range near {
		t.fill(y)
	}
}

// openAt is the member of a set of first nodes that opens what y lies in.
func (t *Tracker) openAt(s *nodeSet, y int) int {
	if s.has(y) {
		return y
	}
	return s.before(y)
}

// moveSeam keeps a circle without a gap cut at one place: where it was, or,
// when it has just closed, where the gap was.
func (t *Tracker) moveSeam(r int, wasGap bool) {
	if t.seam >= 0 {
		at := t.seam
		if !t.well.has(at) {
			t.gap.remove(at)
			at = t.well.after(at)
		}
		t.seam = -1
		t.markGap(at, t.well.before(at))
		if t.gap.next(0) >= 0 {
			return
		}
		t.seam = at
		t.gap.add(at)
		return
	}
	if t.gap.next(0) < 0 {
		t.seam = r
		t.gap.add(r)
	}
}

// settleSeam cuts a closed circle that holds nodes which must end groups at
// one of them, on the side where more groups remain: nothing passes there.
func (t *Tracker) settleSeam() {
	if t.seam < 0 || !t.Shared {
		return
	}
	y := t.pinch.next(0)
	if y < 0 {
		return
	}
	right, left := y, t.well.after(y)
	best := right
	if r, l := t.runGroups(right), t.runGroups(left); l > r || l == r && t.start.has(left) && !t.start.has(right) {
		best = left
	}
	t.dirty = append(t.dirty, t.seam, best) // groups may lie across either
	if best != t.seam {
		t.gap.remove(t.seam)
		t.seam = best
		t.gap.add(best)
	}
}

// runGroups is the number of groups of a closed circle that is cut before a
// node.
func (t *Tracker) runGroups(cut int) int {
	groups, open := 0, cut
	for _, s := range append(t.cuts(cut, cut, nil), cut) {
		groups += t.well.within(open, s, t.Nodes) / t.size
		open = s
	}
	return groups
}

// cuts appends the first nodes of the runs of a component behind its first:
// each node that must end a group goes to the left when that completes one
// there, else to the right. A completed group is one for certain, and costs
// the right at most one.
func (t *Tracker) cuts(first, next int, out []int) []int {
	if !t.Shared {
		return out
	}
	open, last := first, t.well.before(next)
	t.eachIn(&t.pinch, first, next, func(y int) {
		if y == first || y == last {
			return
		}
		n := 0
		if y != open {
			n = t.well.within(open, y, t.Nodes)
		}
		switch at := t.well.after(y); {
		case (n+1)%t.size == 0:
			open = at
		case y == open:
			return
		default:
			open = y
		}
		out = append(out, open)
	})
	return out
}

// eachIn calls f for the members of a set from first up to next, which is the
// whole circle when they are the same.
func (t *Tracker) eachIn(s *nodeSet, first, next int, f func(i int)) {
	from := func(i int) int { return (i - first + t.Nodes) % t.Nodes }
	end := from(next)
	if end == 0 {
		end = t.Nodes
	}
	i := first
	if !s.has(i) {
		i = s.after(i)
	}
	for last := -1; i >= 0 && from(i) > last && from(i) < end; i = s.after(i) {
		last = from(i)
		f(i)
	}
}

// recut redraws the runs of the component that opens at first.
func (t *Tracker) recut(first int) {
	next := t.gap.after(first)
	t.want = t.cuts(first, next, append(t.want[:0], first))
	t.list = t.list[:0]
	t.eachIn(&t.start, first, next, func(s int) {
		if !slices.Contains(t.want, s) {
			t.list = append(t.list, s)
		}
	})
	for _, s := range t.list {
		t.start.remove(s)
		t.dirty = append(t.dirty, s)
	}
	for _, s := range t.want {
		if !t.start.has(s) {
			t.start.add(s)
			t.dirty = append(t.dirty, s)
		}
	}
}

// unstraddle dissolves a group that holds nodes on both sides of a new start.
func (t *Tracker) unstraddle(s int) {
	if !t.start.has(s) {
		return
	}
	at := s
	if !t.held.has(at) {
		at = t.held.after(at)
	}
	// A group that lies behind the start opens behind it.
	if at >= 0 && !t.head.has(at) {
		t.dissolve(t.group[at])
	}
}
