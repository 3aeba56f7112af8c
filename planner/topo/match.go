package topo

// pair is two servers and what joining them is worth.
type pair struct {
	a, b  int
	worth int64 // above 0, at most 2^58
}

const (
	free   = 0
	outer  = 1 // at an even distance from an unmatched server: may be matched anew
	inner  = 2 // at an odd one
	nobody = -1
)

// matcher finds a matching of greatest worth in a general graph by Edmonds'
// primal-dual method ("Maximum matching and a polyhedron with 0,1-vertices",
// 1965). Nodes are the n servers and, from n on, blossoms: odd cycles of nodes
// that are treated as one. A dual lies on each node; the slack of a pair is
// the sum of its ends' duals less twice its worth, never negative outside of
// blossoms, and only pairs without slack are used. Each stage grows
// alternating trees from all unmatched servers until a path joins two of them
// or the duals of the unmatched have come to 0, when nothing is left to gain.
type matcher struct {
	n      int
	pairs  []pair
	at     [][]int // pairs of each server
	mate   []int   // of each server
	dual   []int64 // of each node
	in     []int   // the outermost node of each server
	parent []int   // of each node: the blossom it is a child of
	base   []int   // of each node: the server by which it is matched to the outside
	kids   [][]int // of a blossom: its cycle, the one with the base first
	links  [][][2]int
	label  []int8   // of each outermost node
	from   [][2]int // of a labelled node: the pair it was reached by, outside end first
	unused []int    // names of blossoms
	queue  []int    // outer servers to look from
	marked []bool
}

// match gives the partner of each of n servers, or nobody.
func match(n int, pairs []pair) []int {
	m := &matcher{n: n, pairs: pairs, at: make([][]int, n), mate: make([]int, n), dual: make([]int64, 2*n), in: make([]int, n),
		parent: make([]int, 2*n), base: make([]int, 2*n), kids: make([][]int, 2*n), links: make([][][2]int, 2*n),
		label: make([]int8, 2*n), from: make([][2]int, 2*n), marked: make([]bool, 2*n)}
	most := int64(0)
	for k, p := range pairs {
		m.at[p.a], m.at[p.b] = append(m.at[p.a], k), append(m.at[p.b], k)
		most = max(most, p.worth)
	}
	for v := range 2 * n {
		m.parent[v], m.base[v] = nobody, nobody
		if v < n {
			m.mate[v], m.in[v], m.base[v], m.dual[v] = nobody, v, v, most
		} else {
			m.unused = append(m.unused, 3*n-1-v)
		}
	}
	for m.stage() {
	}
	return m.mate
}

func (m *matcher) slack(p pair) int64 { return m.dual[p.a] + m.dual[p.b] - 2*p.worth }

// stage grows trees until the matching grows by one pair; false: it is best.
func (m *matcher) stage() bool {
	clear(m.label)
	m.queue = m.queue[:0]
	for v := range m.n {
		if m.mate[v] == nobody && m.label[m.in[v]] == free {
			m.reach(nobody, v, outer)
		}
	}
	for !m.grow() {
		if !m.adjust() {
			return false
		}
	}
	for b := m.n; b < 2*m.n; b++ {
		if m.base[b] != nobody && m.parent[b] == nobody && m.label[b] == outer && m.dual[b] == 0 {
			m.open(b, true)
		}
	}
	return true
}

// grow looks along pairs without slack from the outer servers in the queue;
// true: two trees met and the matching has grown.
func (m *matcher) grow() bool {
	for len(m.queue) > 0 {
		v := m.queue[len(m.queue)-1]
		m.queue = m.queue[:len(m.queue)-1]
		for _, k := range m.at[v] {
			p := m.pairs[k]
			w := p.a + p.b - v
			if m.in[v] == m.in[w] || m.slack(p) != 0 {
				continue
			}
			switch m.label[m.in[w]] {
			case free:
				m.reach(v, w, inner)
			case outer:
				if base := m.meet(v, w); base != nobody {
					m.shrink(base, v, w)
				} else {
					m.augment(v, w)
					return true
				}
			}
		}
	}
	return false
}

// adjust moves the duals as far as no slack becomes negative, which gives new
// pairs without slack or opens an inner blossom; false: the duals of the
// unmatched have come to 0.
func (m *matcher) adjust() bool {
	least, look, opened := m.dual[0], nobody, nobody
	for v := range m.n {
		least = min(least, m.dual[v])
	}
	for _, p := range m.pairs {
		a, b := m.in[p.a], m.in[p.b]
		if a == b {
			continue
		}
		if m.label[a] != outer {
			p.a, p.b, a, b = p.b, p.a, b, a
		}
		if m.label[a] != outer || m.label[b] == inner {
			continue
		}
		slack := m.slack(p)
		if m.label[b] == outer {
			slack /= 2 // both ends move; it is even, as all outer duals began alike
		}
		if slack < least {
			least, look = slack, p.a
		}
	}
	for b := m.n; b < 2*m.n; b++ {
		if m.base[b] != nobody && m.parent[b] == nobody && m.label[b] == inner && m.dual[b] < least {
			least, look, opened = m.dual[b], nobody, b
		}
	}
	for v := range m.n {
		switch m.label[m.in[v]] {
		case outer:
			m.dual[v] -= least
		case inner:
			m.dual[v] += least
		}
	}
	for b := m.n; b < 2*m.n; b++ {
		if m.base[b] != nobody && m.parent[b] == nobody {
			switch m.label[b] {
			case outer:
				m.dual[b] += least
			case inner:
				m.dual[b] -= least
			}
		}
	}
	switch {
	case opened != nobody:
		m.open(opened, false)
	case look != nobody:
		m.queue = append(m.queue, look)
	default:
		return false
	}
	return true
}

// reach labels the node of w, come to from v; behind an inner node its mate is
// outer.
func (m *matcher) reach(v, w int, label int8) {
	b := m.in[w]
	m.label[b], m.from[b] = label, [2]int{v, w}
	if label == outer {
		m.leaves(b, func(s int) { m.queue = append(m.queue, s) })
		return
	}
	base := m.base[b]
	m.reach(base, m.mate[base], outer)
}

func (m *matcher) leaves(b int, f func(int)) {
	if b < m.n {
		f(b)
		return
	}
	for _, k := range m.kids[b] {
		m.leaves(k, f)
	}
}

// meet follows both trees to their roots in turn and gives the base of the
// node where they meet, or nobody if they are two trees.
func (m *matcher) meet(v, w int) int {
	base := nobody
	var path []int
	for v != nobody {
		b := m.in[v]
		if m.marked[b] {
			base = m.base[b]
			break
		}
		path = append(path, b)
		m.marked[b] = true
		if v = m.from[b][0]; v != nobody {
			v = m.from[m.in[v]][0] // over the inner node
		}
		if w != nobody {
			v, w = w, v
		}
	}
	for _, b := range path {
		m.marked[b] = false
	}
	return base
}

// shrink makes a blossom of the cycle that v and w close over the base.
func (m *matcher) shrink(base, v, w int) {
	b := m.unused[len(m.unused)-1]
	m.unused = m.unused[:len(m.unused)-1]
	root := m.in[base]
	var kids []int
	var links [][2]int
	for k := m.in[v]; k != root; k = m.in[m.from[k][0]] {
		kids, links = append(kids, k), append(links, m.from[k])
	}
	kids = append(kids, root)
	for i, j := 0, len(kids)-1; i < j; i, j = i+1, j-1 {
		kids[i], kids[j] = kids[j], kids[i]
	}
	for i, j := 0, len(links)-1; i < j; i, j = i+1, j-1 {
		links[i], links[j] = links[j], links[i]
	}
	links = append(links, [2]int{v, w})
	for k := m.in[w]; k != root; k = m.in[m.from[k][0]] {
		kids, links = append(kids, k), append(links, [2]int{m.from[k][1], m.from[k][0]})
	}
	for _, k := range kids {
		m.parent[k] = b
		if m.label[k] == inner {
			m.leaves(k, func(s int) { m.queue = append(m.queue, s) })
		}
	}
	m.kids[b], m.links[b], m.base[b], m.dual[b], m.parent[b] = kids, links, base, 0, nobody
	m.label[b], m.from[b] = outer, m.from[root]
	m.leaves(b, func(s int) { m.in[s] = b })
}

// open takes a blossom apart: at the end of a stage with all in it that has no
// dual, in mid-stage when its dual has come to 0 while it was inner. Then those
// of its nodes between where it was reached and its base stay in the tree.
func (m *matcher) open(b int, end bool) {
	kids, links := m.kids[b], m.links[b]
	for _, k := range kids {
		m.parent[k] = nobody
		m.label[k] = free
		if end && k >= m.n && m.dual[k] == 0 {
			m.open(k, true)
		} else {
			m.leaves(k, func(s int) { m.in[s] = k })
		}
	}
	if !end {
		entry := m.from[b]
		j := position(kids, m.in[entry[1]])
		for ; j != 0 && j != len(kids); j = j + 2*towards(j) {
			m.reach(entry[0], entry[1], inner)
			entry = link(kids, links, j+towards(j), towards(j))
		}
		m.label[kids[0]], m.from[kids[0]] = inner, entry // its mate is outer already
	}
	m.kids[b], m.links[b], m.base[b] = nil, nil, nobody
	m.label[b] = free
	m.unused = append(m.unused, b)
}

func position(list []int, what int) int {
	for i, v := range list {
		if v == what {
			return i
		}
	}
	panic("topo: a child is not in its blossom")
}

// towards is the way round to child 0 that has an even number of links.
func towards(j int) int {
	if j%2 == 0 {
		return -1
	}
	return 1
}

// link is the pair that joins child j of a cycle with the next in a direction,
// the end at j first.
func link(kids []int, links [][2]int, j, step int) [2]int {
	n := len(kids)
	if step > 0 {
		return links[(j+n)%n]
	}
	l := links[(j-1+n)%n]
	return [2]int{l[1], l[0]}
}

// augment matches v with w and turns both ways to the roots round.
func (m *matcher) augment(v, w int) {
	for _, end := range [][2]int{{v, w}, {w, v}} {
		s, other := end[0], end[1]
		for {
			b := m.in[s]
			m.rebase(b, s)
			m.mate[s] = other
			up := m.from[b][0]
			if up == nobody {
				break
			}
			t := m.in[up]
			from, to := m.from[t][0], m.from[t][1]
			m.rebase(t, to)
			m.mate[to] = from
			s, other = from, to
		}
	}
}

// rebase makes v the server by which its blossom is matched to the outside and
// turns the cycle from there to the old base round.
func (m *matcher) rebase(b, v int) {
	if b < m.n {
		return
	}
	k := v
	for m.parent[k] != b {
		k = m.parent[k]
	}
	m.rebase(k, v)
	kids, links := m.kids[b], m.links[b]
	first := position(kids, k)
	step := towards(first)
	for j := first; j != 0 && j != len(kids); j += 2 * step {
		l := link(kids, links, j+step, step)
		m.rebase(kids[(j+step)%len(kids)], l[0])
		m.rebase(kids[(j+2*step)%len(kids)], l[1])
		m.mate[l[0]], m.mate[l[1]] = l[1], l[0]
	}
	m.kids[b] = append(append([]int{}, kids[first:]...), kids[:first]...)
	m.links[b] = append(append([][2]int{}, links[first:]...), links[:first]...)
	m.base[b] = v
}
