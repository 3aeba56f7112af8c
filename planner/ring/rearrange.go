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
	a := arrangement{Problem: p, running: running, owner: make([]int32, p.Nodes), place: make([]int32, p.Nodes), sound: make([]bool, len(running))}
	for i, g := range running {
		for _, n := range g {
			a.owner[n] = int32(i + 1)
		}
		a.sound[i] = len(g) == p.Size && p.Check(g) == nil
		for k := 1; k < len(g) && p.Broken != nil; k++ {
			a.sound[i] = a.sound[i] && !p.Broken(g[k-1], g[k])
		}
	}
	var out [][]proto.NodeID
	for _, c := range components(p.Order, p.Usable) {
		out = append(out, a.component(c)...)
	}
	slices.SortFunc(out, func(a, b []proto.NodeID) int { return int(a[0]) - int(b[0]) })
	return out
}

// arrangement is a problem with what runs.
type arrangement struct {
	Problem
	running [][]proto.NodeID
	sound   []bool  // by running group: it is whole and a line
	owner   []int32 // running group by node, from 1; 0: none
	place   []int32 // scratch of keepable, all 0
}

// component lays one component. A closed one is cut at every place that the
// longest group could lie over: some cut splits no group of an optimum.
func (a *arrangement) component(c component) [][]proto.NodeID {
	turns := 1
	if c.closed {
		turns = a.Size
		for i, g := range a.running {
			if a.sound[i] {
				turns = max(turns, a.Ahead(g[0], g[len(g)-1])+1)
			}
		}
		turns = min(turns+1, len(c.nodes))
	}
	twice := append(slices.Clone(c.nodes), c.nodes...)
	var best []proto.NodeID
	var bestSteps []int32
	var bestWorth laid
	for s := range turns {
		nodes := twice[s:][:len(c.nodes)]
		if steps, w := a.lay(nodes); best == nil || bestWorth.less(w) {
			best, bestSteps, bestWorth = nodes, steps, w
		}
	}
	return a.follow(best, bestSteps)
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
// opens here. No group hangs on a broken link. It returns by node how many the
// group there spans: negative: it is kept; 0: the node is skipped.
func (a *arrangement) lay(nodes []proto.NodeID) ([]int32, laid) {
	best := make([]laid, len(nodes)+1)
	step := make([]int32, len(nodes))
	kept := a.keepable(nodes)
	pinched := len(nodes) // first place behind here that may only be an end
	torn := len(nodes)    // first place behind here that no group reaches from here
	for i := len(nodes) - 1; i >= 0; i-- {
		if i+2 < len(nodes) && a.pinned(nodes[i], nodes[i+1], nodes[i+2]) {
			pinched = i + 1
		}
		if a.Broken != nil && i+1 < len(nodes) && a.Broken(nodes[i], nodes[i+1]) {
			torn = i + 1
		}
		best[i] = best[i+1]
		if i+a.Size <= torn && i+a.Size-1 <= pinched {
			w := best[i+a.Size]
			w.groups++
			w.stay += most(nodes[i:i+a.Size], a.owner)
			if best[i].less(w) {
				best[i], step[i] = w, int32(a.Size)
			}
		}
		if span := int(kept[i]); span > 0 {
			w := best[i+span]
			w.groups, w.kept, w.stay = w.groups+1, w.kept+1, w.stay+a.Size
			if best[i].less(w) {
				best[i], step[i] = w, -kept[i]
			}
		}
	}
	return step, best[0]
}

// follow lists the groups that lay chose.
func (a *arrangement) follow(nodes []proto.NodeID, step []int32) [][]proto.NodeID {
	var out [][]proto.NodeID
	for i := 0; i < len(nodes); {
		switch s := int(step[i]); {
		case s > 0:
			out = append(out, slices.Clone(nodes[i:i+s]))
			i += s
		case s < 0:
			out = append(out, slices.Clone(a.running[a.owner[nodes[i]]-1]))
			i -= s
		default:
			i++
		}
	}
	return out
}

// keepable finds, by the place of its first node, how many places a running
// group spans that can stay as it is; 0: none opens there.
func (a *arrangement) keepable(nodes []proto.NodeID) []int32 {
	out := make([]int32, len(nodes))
	for i, n := range nodes {
		a.place[n] = int32(i + 1)
	}
	for i, n := range nodes {
		g := a.owner[n] - 1
		if g < 0 || !a.sound[g] || a.running[g][0] != n {
			continue
		}
		at := int32(0)
		for _, x := range a.running[g] {
			if a.place[x] <= at {
				at = 0 // it is not here, or the row is cut within the group
				break
			}
			at = a.place[x]
		}
		if at > 0 {
			out[i] = at - int32(i)
		}
	}
	for _, n := range nodes {
		a.place[n] = 0
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
