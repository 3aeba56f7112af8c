package flow

import (
	"fmt"
	"slices"
)

// Rings is a network of rings of nodes: a link each way between neighbours.
// It is what tensor-parallel traffic has for itself, beside another network,
// and numbers its links from first on.
//
// While a ring goes around a node that was lost its links are dark (their
// capacity is 0); then the fibre around carries as much as the two that it
// replaces, so the path of a transfer across the node stays as it is.
type Rings struct {
	rings   [][]int
	place   map[int][2]int // of a node: ring, position
	first   []Link         // per ring
	links   int
	bitPerS int64
}

// NewRings takes the nodes of each ring in their order; a node is in one ring.
func NewRings(rings [][]int, bitPerS int64, first Link) (*Rings, error) {
	r := &Rings{rings: rings, place: map[int][2]int{}, bitPerS: bitPerS}
	for i, nodes := range rings {
		if len(nodes) < 2 {
			return nil, fmt.Errorf("flow: ring %d has %d nodes, at least 2", i, len(nodes))
		}
		for k, n := range nodes {
			if at, twice := r.place[n]; twice {
				return nil, fmt.Errorf("flow: node %d is in ring %d and in ring %d, one ring a node", n, at[0], i)
			}
			r.place[n] = [2]int{i, k}
		}
		r.first = append(r.first, first+Link(r.links))
		r.links += 2 * len(nodes)
	}
	return r, nil
}

// Capacities of the rings' links.
func (r *Rings) Capacities() []int64 {
	return slices.Repeat([]int64{r.bitPerS}, r.links)
}

// Links of a ring: from each node to the next, then from each to the one
// before.
func (r *Rings) Links(ring int) []Link {
	out := make([]Link, 2*len(r.rings[ring]))
	for i := range out {
		out[i] = r.first[ring] + Link(i)
	}
	return out
}

// Route is the shorter way around, forwards when both are as long.
func (r *Rings) Route(from, to int) ([]Link, error) {
	a, known := r.place[from]
	b, both := r.place[to]
	if !known || !both || a[0] != b[0] {
		return nil, fmt.Errorf("flow: nodes %d and %d are in no common ring", from, to)
	}
	n := len(r.rings[a[0]])
	ahead := (b[1] - a[1] + n) % n
	var path []Link
	if ahead <= n-ahead {
		for k := range ahead {
			path = append(path, r.first[a[0]]+Link((a[1]+k)%n))
		}
		return path, nil
	}
	for k := range n - ahead {
		path = append(path, r.first[a[0]]+Link(n+(a[1]-k+n)%n))
	}
	return path, nil
}
