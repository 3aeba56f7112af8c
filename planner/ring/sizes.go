package ring

import (
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Demand is a number of groups of one size.
type Demand struct {
	Size int // nodes in a group
	Want int // groups at most; negative: as many as there can be
}

// DemandsOf reads which groups a fabric is to carry.
func DemandsOf(f *fabric.Fabric) []Demand {
	var out []Demand
	for _, t := range f.Targets() {
		out = append(out, Demand{t.TP / f.GPUsPerNode, t.Rings})
	}
	return out
}

// PlaceSizes places groups of several sizes, by demand; Size and Want of the
// problem are not looked at. One size is placed by Place. Demands come first
// come first served: each gets as many as fit beside those before it. Sizes
// must divide one another (TP sizes do; fabric checks it); then that is the most there can be:
//
// so many groups fit exactly when for each size s the groups of s and more
// nodes, counted in pieces of s, are at most sum floor(component / s). Cutting
// the largest first attains it, for what it leaves of a component still
// divides by every smaller size.
//
// With the bundle constraint a component counts as what its nodes that must
// end a group leave of it, such a node belonging to its left: that is sound,
// and at most one group for each of them short.
func PlaceSizes(p Problem, demands []Demand) [][][]proto.NodeID {
	order := make([]int, len(demands)) // largest first
	for i, d := range demands {
		if order[i] = i; d.Size < 1 {
			panic(fmt.Sprintf("ring: groups of %d nodes: want at least 1", d.Size))
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return demands[b].Size - demands[a].Size })
	for i := 1; i < len(order); i++ {
		if large, small := demands[order[i-1]].Size, demands[order[i]].Size; large%small != 0 {
			panic(fmt.Sprintf("ring: groups of %d and %d nodes: want sizes that divide one another", large, small))
		}
	}
	if len(demands) == 1 {
		p.Size, p.Want = demands[0].Size, demands[0].Want
		return [][][]proto.NodeID{Place(p)}
	}
	pieces := p.pieces()
	left := counts(demands, pieces)
	laid := make([][]int, len(pieces)) // demands of a piece's groups, left to right
	room := make([]int, len(pieces))
	for i := range pieces {
		room[i] = len(pieces[i])
	}
	for _, d := range order {
		for i := range pieces {
			for left[d] > 0 && room[i] >= demands[d].Size {
				laid[i] = append(laid[i], d)
				room[i] -= demands[d].Size
				left[d]--
			}
		}
		if left[d] > 0 {
			panic("ring: groups that were counted do not fit")
		}
	}
	out := make([][][]proto.NodeID, len(demands))
	for i, piece := range pieces {
		at := 0
		for j, d := range laid[i] {
			from := at
			if p.Spread {
				from += j * room[i] / len(laid[i])
			}
			out[d] = append(out[d], slices.Clone(piece[from:from+demands[d].Size]))
			at += demands[d].Size
		}
	}
	return out
}

// pieces are the components, cut behind nodes that must end a group.
func (p Problem) pieces() [][]proto.NodeID {
	var out [][]proto.NodeID
	for _, c := range p.mind(components(p.Order, p.Usable)) {
		nodes, n := c.nodes, len(c.nodes)
		pinned := func(i int) bool {
			return (c.closed || i > 0 && i < n-1) && p.pinned(nodes[(i+n-1)%n], nodes[i], nodes[(i+1)%n])
		}
		start := 0
		if c.closed {
			for i := range nodes {
				if pinned(i) { // turn the circle so that it is cut behind this one
					nodes = append(slices.Clone(nodes[i+1:]), nodes[:i+1]...)
					break
				}
			}
		}
		for i := range nodes {
			if n > 1 && pinned(i) || i == n-1 {
				out = append(out, nodes[start:i+1])
				start = i + 1
			}
		}
	}
	return out
}

// counts finds how many groups each demand gets.
func counts(demands []Demand, pieces [][]proto.NodeID) []int {
	room := make([]int, len(demands)) // by demand: nodes in pieces of its size that are not given away
	for i, d := range demands {
		for _, piece := range pieces {
			room[i] += len(piece) / d.Size * d.Size
		}
	}
	out := make([]int, len(demands))
	for i, d := range demands {
		n := room[i] / d.Size
		for k := range demands {
			if demands[k].Size <= d.Size {
				n = min(n, room[k]/d.Size)
			}
		}
		if n = max(0, n); d.Want >= 0 {
			n = min(n, d.Want)
		}
		out[i] = n
		for k := range demands {
			if demands[k].Size <= d.Size {
				room[k] -= n * d.Size
			}
		}
	}
	return out
}
