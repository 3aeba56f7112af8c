package ring

// A row is as many idle nodes as a group has, one after the other but for the
// whole groups between them. Where those move along, it makes room for one
// more. The index knows for every idle node how many groups move when the row
// that starts there is used, by blocks of 64 nodes, and the least of all.
type rows struct {
	t        *Tracker
	sizes    []int // of groups, as in the demands
	longest  int   // of sizes
	shortest int
	least    [][]int32      // by size: a tree of the least over blocks; leaves are the second half
	bad      []map[int]bool // by size: rows that cannot be used as they are, by first node
	dirty    []int32
	isDirty  []bool
	leaves   int
}

func (r *rows) init(t *Tracker) {
	r.t = t
	blocks := (t.Nodes + 63) / 64
	r.leaves = 1
	for r.leaves < blocks {
		r.leaves *= 2
	}
	r.isDirty = make([]bool, blocks)
	for _, d := range t.Sizes {
		r.sizes = append(r.sizes, d.Size)
		r.longest = max(r.longest, d.Size)
		if r.shortest == 0 || d.Size < r.shortest {
			r.shortest = d.Size
		}
		tree := make([]int32, 2*r.leaves)
		for i := range tree {
			tree[i] = far
		}
		r.least = append(r.least, tree)
		r.bad = append(r.bad, map[int]bool{})
	}
}

// mark notes that something changed from one node to another: the rows that
// reach it start there, where no node may be idle any more, or at one of the
// idle nodes before.
func (r *rows) mark(first, last int) {
	if r.t.filling || r.t.gap.raw {
		return // all are counted in the end
	}
	span := r.t.hops(first, last)
	if first == last {
		span = 0
	}
	before := r.longest
	for at := first; ; at = min(at|63, r.t.Nodes-1) + 1 { // the end of a block, on to the next
		if at == r.t.Nodes {
			at = 0
		}
		r.stain(at)
		if at>>6 == last>>6 && at <= last {
			break
		}
	}
	at := last
	for walked := 0; before > 0; {
		prev := r.t.idle.before(at)
		if prev < 0 {
			return
		}
		step := r.t.hops(prev, at)
		if step == far || walked+step >= r.t.Nodes {
			return
		}
		walked += step
		at = prev
		r.stain(at)
		if walked > span {
			before--
		}
	}
}

// all marks every row.
func (r *rows) all() {
	for b := range r.isDirty {
		r.stain(b << 6)
	}
}

func (r *rows) stain(i int) {
	if b := i >> 6; !r.isDirty[b] {
		r.isDirty[b] = true
		r.dirty = append(r.dirty, int32(b))
	}
}

// update counts again what was marked.
func (r *rows) update() {
	for _, b := range r.dirty {
		r.isDirty[b] = false
		for s := range r.sizes {
			least := int32(far)
			for i := r.t.idle.next(int(b) << 6); i >= 0 && i>>6 == int(b); i = r.t.idle.next(i + 1) {
				delete(r.bad[s], i)
				least = min(least, int32(r.cost(s, i)))
			}
			r.enter(s, int(b), least)
		}
	}
	r.dirty = r.dirty[:0]
}

func (r *rows) enter(s, block int, least int32) {
	tree := r.least[s]
	at := r.leaves + block
	tree[at] = least
	for at /= 2; at > 0; at /= 2 {
		tree[at] = min(tree[2*at], tree[2*at+1])
	}
}

// reject takes out a row that cannot be used, until something near it changes.
func (r *rows) reject(s, first int) {
	r.bad[s][first] = true
	least := int32(far)
	for i := r.t.idle.next(first &^ 63); i >= 0 && i>>6 == first>>6; i = r.t.idle.next(i + 1) {
		least = min(least, int32(r.cost(s, i)))
	}
	r.enter(s, first>>6, least)
}

// last is the last node of the row that starts at an idle node, -1 when there
// is no such row.
func (r *rows) last(s, first int) int {
	t := r.t
	all, rank := t.idle.all(), t.idle.below(first)+r.sizes[s]-1
	if r.sizes[s] > all || rank >= all && !t.Wrap {
		return -1
	}
	last := t.idle.at(rank % all)
	if gap := t.gap.after(first); gap >= 0 && last != first && t.hops(first, gap) <= t.hops(first, last) {
		return -1
	}
	return last
}

// cost is how many whole groups move when a row is used.
func (r *rows) cost(s, first int) int {
	if r.bad[s][first] {
		return far
	}
	last := r.last(s, first)
	if last < 0 {
		return far
	}
	t := r.t
	groups := t.over + t.head.below(first) - t.tail.below(first) // that first lies between the members of
	if last != first {
		groups += t.head.within(first, last, t.Nodes)
	}
	return groups
}

// best finds a row with the fewest groups, near a node where there are
// several: the ones on either side of it.
func (r *rows) best(s, near int) (left, right, groups int) {
	r.update()
	least := r.least[s][1]
	if least >= far {
		return -1, -1, far
	}
	return r.find(s, near, -1, least), r.find(s, near, 1, least), int(least)
}

// find walks from a node to the next row of a cost, round the end too.
func (r *rows) find(s, near, step int, cost int32) int {
	if at := r.inBlock(s, near>>6, near, step, cost); at >= 0 {
		return at
	}
	if b := r.block(s, near>>6, step, cost); b >= 0 {
		return r.inBlock(s, b, -1, step, cost)
	}
	edge := -1
	if step < 0 {
		edge = r.leaves
	}
	return r.inBlock(s, r.block(s, edge, step, cost), -1, step, cost)
}

// inBlock is the first row of a cost in a block, beginning at a node of it.
func (r *rows) inBlock(s, block, from, step int, cost int32) int {
	if r.least[s][r.leaves+block] != cost {
		return -1
	}
	best := -1
	for i := r.t.idle.next(block << 6); i >= 0 && i>>6 == block; i = r.t.idle.next(i + 1) {
		if from >= 0 && (i-from)*step < 0 || int32(r.cost(s, i)) != cost {
			continue
		}
		if best = i; step > 0 {
			break
		}
	}
	return best
}

// block is the next block on one side of another with a row of a cost, -1:
// there is none.
func (r *rows) block(s, from, step int, cost int32) int {
	tree := r.least[s]
	at := r.leaves + from
	if from < 0 || from >= r.leaves { // from beyond an edge: the outermost
		if at = 1; tree[1] != cost {
			return -1
		}
	} else {
		for at > 1 && !(at&1 == (1-step)/2 && tree[at^1] == cost) {
			at /= 2
		}
		if at <= 1 {
			return -1
		}
		at ^= 1
	}
	for at < r.leaves {
		at *= 2
		if step > 0 && tree[at] != cost || step < 0 && tree[at+1] == cost {
			at++
		}
	}
	return at - r.leaves
}
