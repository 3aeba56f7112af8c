package topo

import "ringlight/mzi/detmath"

const (
	draws = 30 // unions of random rings of which the best is taken; chosen: more gain nothing that swaps do not
	// patience is how many swaps in a row may gain nothing; chosen: at n = 128
	// the last hop in a hundred comes before.
	patience = 1500
	// swapWork bounds the words that swaps touch, whatever n is; chosen: a
	// quarter of a second, all of it at n = 2,000.
	swapWork = 1 << 29
)

// circles is rings over the same n, to be improved together.
type circles struct {
	n             int
	bidirectional bool
	order         [][]int
	arcs          []int32 // a row for each of n
	degree        int
	reach         *reach
	work          int
}

func newCircles(n, rings int, bidirectional bool) *circles {
	c := &circles{n: n, bidirectional: bidirectional, degree: rings, reach: newReach(n)}
	if bidirectional {
		c.degree = 2 * rings
	}
	c.order = make([][]int, rings)
	for r := range c.order {
		c.order[r] = make([]int, n)
		for i := range n {
			c.order[r][i] = i
		}
	}
	c.arcs = make([]int32, n*c.degree)
	return c
}

// lay writes the arcs of ring r for the positions from i to j, both in 0..n-1.
func (c *circles) lay(r, i, j int) {
	order := c.order[r]
	for k := i; k <= j; k++ {
		s := order[k]
		next := int32(order[(k+1)%c.n])
		if !c.bidirectional {
			c.arcs[s*c.degree+r] = next
			continue
		}
		c.arcs[s*c.degree+2*r] = next
		c.arcs[s*c.degree+2*r+1] = int32(order[(k+c.n-1)%c.n])
	}
}

func (c *circles) hops() int64 {
	h, work := c.reach.hops(c.arcs, c.degree)
	c.work += work
	return h.Sum
}

// randomRings draws rings over n members and improves them: the best of some
// draws, then swaps while they gain or cost nothing.
func randomRings(n, rings int, bidirectional bool, seed uint64) [][]int {
	c := newCircles(n, rings, bidirectional)
	if n < 4 || rings < 2 {
		return c.order // all rings have the same hops
	}
	rnd := detmath.Stream(seed, uint64(n)<<16|uint64(rings)<<1)
	var best [][]int
	least := int64(-1)
	for range draws {
		for r := range c.order {
			order := c.order[r]
			rnd.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
			c.lay(r, 0, n-1)
		}
		if h := c.hops(); least < 0 || h < least {
			least, best = h, clone(c.order)
		}
	}
	c.order = best
	for r := range c.order {
		c.lay(r, 0, n-1)
	}
	for idle := 0; idle < patience && c.work < swapWork; idle++ {
		r := rnd.Below(rings)
		i, j := rnd.Below(n), rnd.Below(n)
		if i > j {
			i, j = j, i
		}
		if i == j || i == 0 && j == n-1 {
			continue
		}
		c.swap(r, i, j)
		if h := c.hops(); h > least {
			c.swap(r, i, j)
		} else {
			if h < least {
				idle = 0
			}
			least = h
		}
	}
	return c.order
}

// swap is its own inverse: a bidirectional ring has two links crossed, which
// turns what lies between them round; in a directed one two members trade
// places, as turning would turn the direction of all links between.
func (c *circles) swap(r, i, j int) {
	order := c.order[r]
	if !c.bidirectional {
		order[i], order[j] = order[j], order[i]
		for _, k := range []int{i, j} {
			c.lay(r, k, k)
			c.lay(r, (k+c.n-1)%c.n, (k+c.n-1)%c.n)
		}
		return
	}
	for a, b := i, j; a < b; a, b = a+1, b-1 {
		order[a], order[b] = order[b], order[a]
	}
	c.lay(r, i, j)
	for _, k := range []int{(i + c.n - 1) % c.n, (j + 1) % c.n} {
		c.lay(r, k, k)
	}
}

func clone(lists [][]int) [][]int {
	out := make([][]int, len(lists))
	for i, l := range lists {
		out[i] = append([]int{}, l...)
	}
	return out
}
