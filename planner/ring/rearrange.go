package ring

import (
	"slices"

	"ringlight/proto"
)

// Rearrange places as many groups as Place does and, among placements whose
// groups lie one behind the other, leaves the most running groups exactly as
// they are, then the most nodes in a group with others of theirs. Running
// groups may have lost nodes, be of any size, or be no lines at all; those
// are placed anew. Want and Spread are not looked at.
func Rearrange(p Problem, running [][]proto.NodeID) [][]proto.NodeID {
	if p.Size < 1 {
		return nil
	}
	owner := make([]int32, p.Nodes) // running group by node, from 1
	for i, g := range running {
		for _, n := range g {
			owner[n] = int32(i + 1)
		}
	}
	var out [][]proto.NodeID
	for _, c := range components(p.Order, p.Usable) {
		out = append(out, p.rearrange(c, owner, running)...)
	}
	slices.SortFunc(out, func(a, b []proto.NodeID) int { return int(a[0]) - int(b[0]) })
	return out
}

// rearrange lays one component. A closed one is cut at every place that the
// longest group could lie over: some cut splits no group of an optimum.
func (p Problem) rearrange(c component, owner []int32, running [][]proto.NodeID) [][]proto.NodeID {
	var best [][]proto.NodeID
	var bestWorth laid
	turns := 1
	if c.closed {
		turns = p.Size
		for _, g := range running {
			if len(g) == p.Size && p.Check(g) == nil {
				turns = max(turns, p.Ahead(g[0], g[len(g)-1])+1)
			}
		}
		turns = min(turns+1, len(c.nodes))
	}
	for s := range turns {
		nodes := append(append(make([]proto.NodeID, 0, len(c.nodes)), c.nodes[s:]...), c.nodes[:s]...)
		if groups, w := p.lay(nodes, owner, running); best == nil || bestWorth.less(w) {
			best, bestWorth = groups, w
		}
	}
	return best
}

// laid orders ways to lay groups: their number, those left exactly as they
// were, nodes beside others of their group.
type laid struct{ groups, kept, stay int }

func (w laid) less(v laid) bool {
	if w.groups != v.groups {
		return w.groups < v.groups
	}
	if w.kept != v.kept {
		return w.kept < v.kept
	}
	return w.stay < v.stay
}

// lay is the dynamic program over a row of usable nodes, from its right end:
// skip a node, form a group of the next ones, or keep the running group that
// opens here. No group hangs on a broken link.
func (p Problem) lay(nodes []proto.NodeID, owner []int32, running [][]proto.NodeID) ([][]proto.NodeID, laid) {
	best := make([]laid, len(nodes)+1)
	step := make([]int32, len(nodes)) // nodes that the group here spans; negative: kept; 0: skipped
	kept := p.keepable(nodes, owner, running)
	pinched := len(nodes) // first place behind here that may only be an end
	torn := len(nodes)    // first place behind here that no group reaches from here
	for i := len(nodes) - 1; i >= 0; i-- {
		if i+2 < len(nodes) && p.pinned(nodes[i], nodes[i+1], nodes[i+2]) {
			pinched = i + 1
		}
		if p.Broken != nil && i+1 < len(nodes) && p.Broken(nodes[i], nodes[i+1]) {
			torn = i + 1
		}
		best[i] = best[i+1]
		if i+p.Size <= torn && i+p.Size-1 <= pinched {
			w := best[i+p.Size]
			w.groups++
			w.stay += most(nodes[i:i+p.Size], owner)
			if best[i].less(w) {
				best[i], step[i] = w, int32(p.Size)
			}
		}
		if span := int(kept[i]); span > 0 {
			w := best[i+span]
			w.groups, w.kept, w.stay = w.groups+1, w.kept+1, w.stay+p.Size
			if best[i].less(w) {
				best[i], step[i] = w, -kept[i]
			}
		}
	}
	var out [][]proto.NodeID
	for i := 0; i < len(nodes); {
		switch s := int(step[i]); {
		case s > 0:
			out = append(out, slices.Clone(nodes[i:i+s]))
			i += s
		case s < 0:
			out = append(out, slices.Clone(running[owner[nodes[i]]-1]))
			i -= s
		default:
			i++
		}
	}
	return out, best[0]
}

// keepable finds, by the place of its first node, how many places a running
// group spans that can stay as it is; 0: none opens there.
func (p Problem) keepable(nodes []proto.NodeID, owner []int32, running [][]proto.NodeID) []int32 {
	out := make([]int32, len(nodes))
	place := make(map[proto.NodeID]int, len(nodes))
	for i, n := range nodes {
		if owner[n] != 0 {
			place[n] = i
		}
	}
	for _, g := range running {
		if len(g) != p.Size || p.Check(g) != nil {
			continue
		}
		first, in := place[g[0]]
		last, at := first, -1
		for _, n := range g {
			i, ok := place[n]
			in = in && ok && i > at
			last, at = i, i
		}
		for k := 1; k < len(g) && p.Broken != nil; k++ {
			in = in && !p.Broken(g[k-1], g[k])
		}
		if in {
			out[first] = int32(last - first + 1)
		}
	}
	return out
}

// most is the largest number of nodes that come from one running group.
func most(nodes []proto.NodeID, owner []int32) int {
	best, n := 0, 0
	for i, node := range nodes {
		if owner[node] == 0 {
			n = 0
			continue
		}
		if i == 0 || owner[nodes[i-1]] != owner[node] {
			n = 0
		}
		n++
		best = max(best, n)
	}
	return best
}

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
	out, taken := make([]int, len(before)), make([]bool, len(after))
	for i := range out {
		out[i] = -1
	}
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
