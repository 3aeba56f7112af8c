package ring

import (
	"slices"

	"ringlight/proto"
)

// Moved counts the nodes of groups that are not in the same group any more:
// of two plans the groups with the most nodes in common are the same one.
func Moved(before, after [][]proto.NodeID) int {
	n := 0
	for i, j := range Same(before, after) {
		n += len(before[i])
		if j >= 0 {
			n -= common(before[i], after[j])
		}
	}
	return n
}

// Same finds which group of after each group of before has become, -1: none.
// Pairs with the most nodes in common come first, then those first in before.
func Same(before, after [][]proto.NodeID) []int {
	owner := map[proto.NodeID]int{}
	for j, g := range after {
		for _, n := range g {
			owner[n] = j
		}
	}
	type pair struct{ from, to, nodes int }
	var pairs []pair
	for i, g := range before {
		first := len(pairs)
		for _, n := range g {
			j, ok := owner[n]
			if !ok {
				continue
			}
			at := slices.IndexFunc(pairs[first:], func(p pair) bool { return p.to == j })
			if at < 0 {
				pairs = append(pairs, pair{i, j, 1})
			} else {
				pairs[first+at].nodes++
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return b.nodes - a.nodes })
	out, taken := slices.Repeat([]int{-1}, len(before)), make([]bool, len(after))
	for _, p := range pairs {
		if out[p.from] < 0 && !taken[p.to] {
			out[p.from], taken[p.to] = p.to, true
		}
	}
	return out
}

func common(a, b []proto.NodeID) int {
	n := 0
	for _, x := range a {
		if slices.Contains(b, x) {
			n++
		}
	}
	return n
}
