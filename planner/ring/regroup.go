package ring

import (
	"slices"

	"ringlight/proto"
)

// maxWindow bounds how many neighbouring groups are laid anew together to make
// one whole. chosen: beyond that, more jobs are disturbed than one is worth.
const maxWindow = 8

// regroup finds another place for groups that stay short: among the free
// nodes, or where some whole groups together move aside for it, so that a free
// node further off is passed on along them. [IHBD] places from nothing at every
// fault; here as few whole groups as possible are touched, and their nodes stay
// in their group where they can.
func (m Mend) regroup(r *Result, taken []bool) {
	for whole := range m.window() + 1 {
		for i := range r.Groups {
			if g := &r.Groups[i]; !g.Frozen && len(g.Nodes) > 0 && len(g.Nodes) < g.Size {
				m.move(r, i, whole, taken)
			}
		}
	}
}

// move finds another place for one short group.
func (m Mend) move(r *Result, i, whole int, taken []bool) {
	home := r.Groups[i]
	own := home.Nodes
	for _, n := range own {
		taken[n] = false
	}
	r.Groups[i].Nodes = nil
	if nodes := m.extend(r, home, whole, taken); nodes != nil {
		own = nodes
	}
	for _, n := range own {
		taken[n] = true
	}
	r.Groups[i].Nodes = own
}

// extend finds the place of one more group and makes room for it in a window
// with so many whole groups; with none, at first among free nodes alone. Its
// nodes are where it would like to be. Nil: there is no place.
func (m Mend) extend(r *Result, home Group, whole int, taken []bool) []proto.NodeID {
	order := inOrder(r)
	free := make([]int, m.Nodes+1) // free nodes before each
	for n := range m.Nodes {
		free[n+1] = free[n]
		if !taken[n] && m.Free(proto.NodeID(n)) {
			free[n+1]++
		}
	}
	near := 0
	if len(home.Nodes) > 0 {
		near, _ = slices.BinarySearchFunc(order, home.Nodes[0], func(i int, n proto.NodeID) int { return int(r.Groups[i].Nodes[0]) - int(n) })
	}
	for width := whole; width <= min(maxWindow, len(order)); width++ {
		places := len(order) - width + 1
		if width == 0 {
			places = 1 // all free nodes at once
		}
		for k := range places {
			lo := nearest(k, near-width/2, places)
			w := layout{Mend: m, r: r, ids: order[lo : lo+width], home: home}
			if nodes := w.lay(order, lo, whole, free, taken); nodes != nil {
				return nodes
			}
		}
	}
	return nil
}

// nearest is the k-th place of n in the order of their distance from one.
func nearest(k, from, n int) int {
	from = min(max(from, 0), n-1)
	left, right := from, n-1-from // places on either side
	side := min(left, right)
	switch {
	case k <= 2*side:
		if k%2 == 1 {
			return from + (k+1)/2
		}
		return from - k/2
	case left < right:
		return k
	}
	return n - 1 - k
}

// inOrder lists the groups that have nodes, in HBD order.
func inOrder(r *Result) []int {
	var order []int
	for i := range r.Groups {
		if len(r.Groups[i].Nodes) > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return int(r.Groups[a].Nodes[0]) - int(r.Groups[b].Nodes[0]) })
	return order
}

// spot is a node that a window may use, with the group in it that has it now.
type spot struct {
	node  proto.NodeID
	group int // index into the window; one more: home; -1: free
}

// layout is one window: neighbouring groups and the free nodes among them.
type layout struct {
	Mend
	r     *Result
	ids   []int // indices into r.Groups, in HBD order
	home  Group // the one more
	spots []spot
	whole worth // groups that are whole now
	best  []step
}

// group is one of the window by its place in it; the last is the one more.
func (w *layout) group(at int) Group {
	if at == len(w.ids) {
		return w.home
	}
	return w.r.Groups[w.ids[at]]
}

// worth orders ways to lay a window: whole groups, nodes in them, groups left
// exactly as they are, nodes that stay in their group.
type worth struct{ groups, nodes, kept, stay int }

func (w worth) less(v worth) bool {
	if w.groups != v.groups {
		return w.groups < v.groups
	}
	if w.nodes != v.nodes {
		return w.nodes < v.nodes
	}
	if w.kept != v.kept {
		return w.kept < v.kept
	}
	return w.stay < v.stay
}

// What is done at a spot.
const (
	skip   = iota // it stays free
	drop          // the next group gets no whole place
	fresh         // the next group starts here, all its spots in a row
	keep          // the next group starts here and is left as it is
	insert        // the one more group starts here
)

// step is the best that can be done from a spot on.
type step struct {
	worth
	do   uint8
	next int // spot
}

// lay finds the place for one more group and carries it out.
func (w *layout) lay(order []int, lo, whole int, free []int, taken []bool) []proto.NodeID {
	for _, id := range w.ids {
		g := w.r.Groups[id]
		if g.Frozen {
			return nil
		}
		if g.whole() {
			w.whole.groups++
			w.whole.nodes += g.Size
		}
	}
	if w.whole.groups != whole {
		return nil
	}
	first, last := 0, w.Nodes-1 // a window never wraps: it would hold nearly everything
	if hi := lo + len(w.ids); len(w.ids) > 0 {
		if lo > 0 {
			first = int(slices.Max(w.r.Groups[order[lo-1]].Nodes)) + 1
		}
		if hi < len(order) {
			last = int(w.r.Groups[order[hi]].Nodes[0]) - 1
		}
	}
	if first > last || !w.survey(first, last, free[last+1]-free[first], taken) || !w.solve() {
		return nil
	}
	return w.carryOut(taken)
}

// survey lists, in HBD order, what the window's groups and the free nodes
// between their neighbours give. False when that is too little to gain
// anything.
func (w *layout) survey(first, last, free int, taken []bool) bool {
	members := 0
	for _, id := range w.ids {
		members += len(w.r.Groups[id].Nodes)
	}
	if members+free < w.whole.nodes+w.home.Size {
		return false
	}
	owner := map[proto.NodeID]int{}
	for i, id := range w.ids {
		for _, n := range w.r.Groups[id].Nodes {
			owner[n] = i
		}
	}
	for pos := first; pos <= last; pos++ {
		n := proto.NodeID(pos)
		if g, own := owner[n]; own {
			w.spots = append(w.spots, spot{n, g})
		} else if !taken[pos] && w.Free(n) {
			g := -1
			if slices.Contains(w.home.Nodes, n) {
				g = len(w.ids)
			}
			w.spots = append(w.spots, spot{n, g})
		}
	}
	return true
}

// at is the cell for a spot, groups of the window still to come, and whether
// the one more group is.
func (w *layout) at(spot, left, extra int) *step {
	return &w.best[(spot*(len(w.ids)+1)+left)*2+extra]
}

// solve fills the table from the last spot back and says whether more groups
// can be whole than are, and not for less.
func (w *layout) solve() bool {
	n := len(w.ids)
	w.best = make([]step, (len(w.spots)+1)*(n+1)*2)
	for left := range n + 1 {
		w.at(len(w.spots), left, 1).groups = -len(w.spots) // it must find a place
	}
	for i := len(w.spots) - 1; i >= 0; i-- {
		reach := w.reach(i)
		stands := w.stands(i)
		for left := 0; left <= n; left++ {
			for extra := 0; extra <= 1; extra++ {
				s := step{worth: w.at(i+1, left, extra).worth, do: skip, next: i + 1}
				better := func(do uint8, next, left, extra int, more worth) {
					v := w.at(next, left, extra).worth
					v.groups, v.nodes, v.kept, v.stay = v.groups+more.groups, v.nodes+more.nodes, v.kept+more.kept, v.stay+more.stay
					if s.worth.less(v) {
						s = step{v, do, next}
					}
				}
				if left > 0 {
					size := w.group(n - left).Size
					better(drop, i, left-1, extra, worth{})
					if reach >= size {
						better(fresh, i+size, left-1, extra, worth{groups: 1, nodes: size, stay: w.staying(i, n-left)})
					}
					if stands > 0 && w.spots[i].group == n-left {
						better(keep, i+stands, left-1, extra, worth{1, size, 1, size})
					}
				}
				if extra > 0 && reach >= w.home.Size {
					better(insert, i+w.home.Size, left, 0, worth{groups: 1, nodes: w.home.Size, stay: w.staying(i, n)})
				}
				*w.at(i, left, extra) = s
			}
		}
	}
	best := w.at(0, n, 1).worth
	return best.groups > w.whole.groups && best.nodes > w.whole.nodes
}

// reach is how many spots from i on could make one group, up to the largest
// that there is.
func (w *layout) reach(i int) int {
	most := w.home.Size
	for _, id := range w.ids {
		most = max(most, w.r.Groups[id].Size)
	}
	most = min(most, len(w.spots)-i)
	before := 0
	for k := 1; k < most; k++ {
		a, b := w.spots[i+k-1].node, w.spots[i+k].node
		gap := w.Ahead(a, b)
		if gap > w.K || w.pinched(before, gap) || w.Broken != nil && w.Broken(a, b) {
			return k
		}
		before = gap
	}
	return most
}

// stands is how many spots the group that starts at i spans as it is, 0 when
// none starts there that is whole and steps over nobody.
func (w *layout) stands(i int) int {
	group := w.spots[i].group
	if group < 0 || group == len(w.ids) {
		return 0
	}
	g := w.group(group)
	nodes := g.Nodes
	if len(nodes) < g.Size || nodes[0] != w.spots[i].node || w.torn(nodes) {
		return 0
	}
	for k := i; k < len(w.spots); k++ {
		if g := w.spots[k].group; g >= 0 && g < len(w.ids) && g != group {
			return 0
		}
		if w.spots[k].node == nodes[len(nodes)-1] {
			return k + 1 - i
		}
	}
	return 0
}

// staying counts the spots of a group laid from i on that are its already.
func (w *layout) staying(i, group int) int {
	count := 0
	for _, s := range w.spots[i : i+w.group(group).Size] {
		if s.group == group {
			count++
		}
	}
	return count
}

// carryOut gives the groups their new nodes and returns those of the one more.
// A group without a whole place keeps those of its own that nobody took.
func (w *layout) carryOut(taken []bool) []proto.NodeID {
	n := len(w.ids)
	laid := make([][]proto.NodeID, n)
	var added []proto.NodeID
	for i, left := 0, n; i < len(w.spots); {
		extra := 0
		if added == nil {
			extra = 1
		}
		s := w.at(i, left, extra)
		switch s.do {
		case fresh:
			laid[n-left] = w.span(i, n-left)
		case keep:
			laid[n-left] = w.r.Groups[w.ids[n-left]].Nodes
		case insert:
			added = w.span(i, n)
		}
		if s.do == drop || s.do == fresh || s.do == keep {
			left--
		}
		i = s.next
	}
	used := map[proto.NodeID]bool{}
	for _, nodes := range append(laid, added) {
		for _, x := range nodes {
			used[x] = true
		}
	}
	for i, id := range w.ids {
		g := &w.r.Groups[id]
		if laid[i] == nil {
			for _, x := range g.Nodes {
				if !used[x] {
					laid[i] = append(laid[i], x)
				}
			}
		} else {
			for _, x := range g.Nodes {
				taken[x] = false
			}
		}
	}
	for i, id := range w.ids {
		w.r.Groups[id].Nodes = laid[i]
		for _, x := range laid[i] {
			taken[x] = true
		}
	}
	for _, x := range added {
		taken[x] = true
	}
	return added
}

func (w *layout) span(i, group int) []proto.NodeID {
	nodes := make([]proto.NodeID, w.group(group).Size)
	for k := range nodes {
		nodes[k] = w.spots[i+k].node
	}
	return nodes
}
