package ring

// fillNew places groups in a run that holds none, its idle nodes spread
// between them.
func (t *Tracker) fillNew(open int) {
	next := t.start.after(open)
	nodes := t.well.within(open, next, t.Nodes)
	at, seen := open, 0
	idle := func(until int) {
		for ; seen < until; seen++ {
			t.idle.add(at)
			at = t.well.after(at)
		}
	}
	for _, r := range spread(nodes, t.size, nodes/t.size) {
		idle(r.start)
		g := t.number()
		t.headOf[g] = int32(at)
		t.head.add(at)
		for range t.size {
			t.group[at] = g
			t.held.add(at)
			at = t.well.after(at)
		}
		seen += t.size
	}
	idle(nodes)
	t.change.New = t.change.New[:0]
}

// fill forms groups in the run of a node until fewer idle nodes than one needs
// are left, or only such that would touch more groups than the limit.
//
// As many idle nodes as a group has, in a row but for groups between them,
// make room for one more when every group between them moves along; groups
// outside stay. No placement can do with fewer: between two groups that stay
// there is room for one more only if that many idle nodes lie there.
func (t *Tracker) fill(y int) {
	open := t.openAt(&t.start, y)
	next := t.start.after(open)
	for {
		n := t.idle.within(open, next, t.Nodes)
		if n < t.size {
			return
		}
		idle := t.idleIn(open, next)
		if t.Limit > 0 && n > 4*t.size {
			idle = t.idleNear(y, open, next)
		}
		first, groups := t.window(idle)
		if t.Limit > 0 && groups > t.Limit {
			return
		}
		t.form(idle[first:][:t.size])
	}
}

// idleIn lists the idle nodes of a run, those of a circle so often that every
// row of them is there.
func (t *Tracker) idleIn(open, next int) []int {
	t.list = t.list[:0]
	t.eachIn(&t.idle, open, next, func(i int) { t.list = append(t.list, i) })
	if t.round() {
		t.list = append(t.list, t.list[:t.size-1]...)
	}
	return t.list
}

// idleNear lists the idle nodes of a run round a node, as far as a change at
// the node can have made a row of them worth taking. There are more in the
// run than are listed.
func (t *Tracker) idleNear(y, open, next int) []int {
	from := func(i int) int { return (i - open + t.Nodes) % t.Nodes }
	end := from(next)
	if end == 0 {
		end = t.Nodes
	}
	first, count := y, 0
	for i := t.idle.before(y); count < 2*t.size && (t.round() || from(i) < from(first)); i = t.idle.before(i) {
		first = i
		count++
	}
	t.list = t.list[:0]
	i := first
	if !t.idle.has(i) {
		i = t.idle.after(i)
	}
	for last := -1; len(t.list) < 4*t.size && (t.round() || from(i) > last && from(i) < end); i = t.idle.after(i) {
		last = from(i)
		t.list = append(t.list, i)
	}
	return t.list
}

// round reports whether all usable nodes are one circle that groups may pass
// anywhere, so that its seam is only where counting starts.
func (t *Tracker) round() bool { return t.seam >= 0 && t.pinch.next(0) < 0 }

// window finds the idle nodes that the fewest groups lie between, then those
// for which the fewest nodes move, and says how many groups.
func (t *Tracker) window(idle []int) (best, bestGroups int) {
	between := make([]int, len(idle)) // groups that open before this one and after the last
	for i := 1; i < len(idle); i++ {
		between[i] = t.head.within(idle[i-1], idle[i], t.Nodes)
	}
	bestGroups, bestMoves := far, far
	groups := 0
	for i := 1; i < len(idle); i++ {
		groups += between[i]
		first := i - t.size + 1
		if first < 0 {
			continue
		}
		if first > 0 {
			groups -= between[first]
		}
		all := groups
		if t.inside(idle[first]) {
			all++
		}
		if all > bestGroups {
			continue
		}
		moves := 0
		for k := 1; k < t.size; k++ {
			moves += between[first+k] * min(k, t.size-k)
		}
		if all < bestGroups || moves < bestMoves {
			best, bestGroups, bestMoves = first, all, moves
		}
	}
	return best, bestGroups
}

// inside reports whether an idle node lies between the members of a group.
func (t *Tracker) inside(i int) bool {
	at := t.held.after(i)
	return at >= 0 && !t.head.has(at)
}

// form lays the groups between idle nodes anew, with one more among them.
// Groups that an end of the row lies inside of take part.
func (t *Tracker) form(idle []int) {
	first, last := idle[0], idle[len(idle)-1]
	left, right := first, last
	if t.inside(first) {
		left = t.head.before(first)
	}
	if t.inside(last) {
		right = t.held.before(t.head.after(last))
	}
	from := func(i int) int { return (i - left + t.Nodes) % t.Nodes }
	var nodes []int
	var groups []int32
	at := 0 // groups before the new one
	for i := left; ; i = t.well.after(i) {
		if t.held.has(i) || from(i) >= from(first) && from(i) <= from(last) {
			nodes = append(nodes, i)
		}
		if t.head.has(i) {
			groups = append(groups, t.group[i])
			t.head.remove(i)
			if from(i) < from(idle[len(idle)/2]) {
				at++
			}
		}
		if i == right {
			break
		}
	}
	fresh := t.number()
	groups = append(groups, 0)
	copy(groups[at+1:], groups[at:])
	groups[at] = fresh
	if len(nodes) != len(groups)*t.size {
		panic("ring: the groups of a row do not fit into it")
	}
	for k, n := range nodes {
		t.assign(n, groups[k/t.size], k%t.size == 0, fresh)
	}
}

// assign puts a node into a group.
func (t *Tracker) assign(n int, g int32, head bool, fresh int32) {
	if head {
		t.head.add(n)
		t.headOf[g] = int32(n)
	}
	old := t.group[n]
	if old == g {
		return
	}
	if g != fresh {
		t.touch(g)
	}
	if old == 0 {
		t.idle.remove(n)
		t.held.add(n)
	} else {
		t.touch(old)
		t.change.Moved++
	}
	t.group[n] = g
}
