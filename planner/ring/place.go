package ring

import "ringlight/proto"

// Problem is one placement from nothing.
type Problem struct {
	Order
	Size   int                     // nodes in a group
	Usable func(proto.NodeID) bool // nodes that may carry a group
	Want   int                     // groups at most; negative: as many as there can be
	Spread bool                    // idle nodes go beside the groups, else behind them

	// Broken links hold no group together; nil: there are none. A component
	// is cut there, so with broken links the number of groups is a lower bound.
	Broken func(a, b proto.NodeID) bool

	// Shares says, where Order.Shared holds, which nodes have -K and +K on one
	// bundle; nil: all.
	Shares func(proto.NodeID) bool
}

// pinned reports whether a node with these neighbours would need one bundle
// twice.
func (p Problem) pinned(left, node, right proto.NodeID) bool {
	return p.pinched(p.Ahead(left, node), p.Ahead(node, right)) && (p.Shares == nil || p.Shares(node))
}

// run is a group as a span of a component: nodes[start : start+Size].
type run struct{ start int }

// Place finds groups, in HBD order of their first nodes within each
// component. With Want negative their number is the largest possible.
//
// Without the bundle constraint that is the sum of floor(component/Size), cut
// greedily. With it, a usable node whose neighbours are both exactly K away
// can only be the end of a group, and nothing can step over it; groups are
// then spans with no such node inside, and taking the one that ends first is
// the optimum of interval scheduling.
func Place(p Problem) [][]proto.NodeID {
	if p.Size < 1 || p.Want == 0 {
		return nil
	}
	comps := p.mind(components(p.Order, p.Usable))
	runs := make([][]run, len(comps))
	total := 0
	for i := range comps {
		comps[i], runs[i] = p.cut(comps[i])
		total += len(runs[i])
	}
	if p.Want >= 0 {
		p.reduce(comps, runs, total-p.Want)
	}
	var out [][]proto.NodeID
	for i, c := range comps {
		if p.Spread && !p.hasPinch(c) {
			runs[i] = spread(len(c.nodes), p.Size, len(runs[i]))
		}
		for _, r := range runs[i] {
			group := make([]proto.NodeID, p.Size)
			copy(group, c.nodes[r.start:r.start+p.Size])
			out = append(out, group)
		}
	}
	if p.Lacks != 0 && (p.Want < 0 || len(out) < p.Want) {
		if more := p.skipping(); len(more) > len(out) {
			out = more
			if p.Want >= 0 {
				out = out[:min(p.Want, len(out))]
			}
		}
	}
	return out
}

// mind cuts components at broken links.
func (p Problem) mind(comps []component) []component {
	if p.Broken == nil {
		return comps
	}
	var out []component
	for _, c := range comps {
		start, cuts := 0, 0
		n := len(c.nodes)
		if c.closed && p.Broken(c.nodes[n-1], c.nodes[0]) {
			c.closed = false
		}
		for i := 1; i < n; i++ {
			if p.Broken(c.nodes[i-1], c.nodes[i]) {
				out = append(out, component{nodes: c.nodes[start:i:i]})
				start = i
				cuts++
			}
		}
		out = append(out, component{nodes: c.nodes[start:], closed: c.closed && cuts == 0})
	}
	return out
}

// reduce drops groups, one at a time where a group has the fewest idle nodes
// beside it, so that what is kept free lies where it is short.
func (p Problem) reduce(comps []component, runs [][]run, drop int) {
	for ; drop > 0; drop-- {
		worst, worstIdle, worstRuns := -1, 0, 1
		for i := range comps {
			if len(runs[i]) == 0 {
				continue
			}
			idle := len(comps[i].nodes) - p.Size*len(runs[i])
			if worst < 0 || idle*worstRuns <= worstIdle*len(runs[i]) {
				worst, worstIdle, worstRuns = i, idle, len(runs[i])
			}
		}
		runs[worst] = runs[worst][:len(runs[worst])-1]
	}
}

// spread lays groups of one size over a component so that the idle nodes
// stand between them, as evenly as integers allow.
func spread(nodes, size, groups int) []run {
	idle := nodes - size*groups
	out := make([]run, groups)
	for j := range out {
		out[j].start = j*size + j*idle/max(1, groups)
	}
	return out
}

// cut finds the most groups of a component. A closed component is also
// turned, so that the groups lie in one piece of the returned order.
func (p Problem) cut(c component) (component, []run) {
	if !c.closed || !p.hasPinch(c) {
		return c, p.greedy(c.nodes)
	}
	// Some group starts at one of Size consecutive places, or none passes the
	// place behind them: so Size+1 cuts of the circle see an optimum.
	best, bestRuns := c, []run(nil)
	for s := 0; s <= p.Size && s < len(c.nodes); s++ {
		turned := append(append(make([]proto.NodeID, 0, len(c.nodes)), c.nodes[s:]...), c.nodes[:s]...)
		if runs := p.greedy(turned); len(runs) > len(bestRuns) || bestRuns == nil {
			best, bestRuns = component{nodes: turned, closed: true}, runs
		}
	}
	return best, bestRuns
}

// greedy takes the span that ends first, again and again.
func (p Problem) greedy(nodes []proto.NodeID) []run {
	var out []run
	start, next := 0, 1 // next: first place not yet known to be free of a pinch
	for start+p.Size <= len(nodes) {
		moved := false
		for i := max(next, start+1); i < start+p.Size-1; i++ {
			if p.pinned(nodes[i-1], nodes[i], nodes[i+1]) {
				start, next, moved = i, i+1, true
				break
			}
		}
		if moved {
			continue
		}
		out = append(out, run{start})
		start += p.Size
		next = start + 1
	}
	return out
}

// hasPinch reports whether some node of the component may only be an end.
func (p Problem) hasPinch(c component) bool {
	if !p.Shared {
		return false
	}
	n := len(c.nodes)
	for i, node := range c.nodes {
		if !c.closed && (i == 0 || i == n-1) {
			continue
		}
		if p.pinned(c.nodes[(i+n-1)%n], node, c.nodes[(i+1)%n]) {
			return true
		}
	}
	return false
}

// LostToWiring is how many groups fewer fit because two fibres of a node share
// a bundle. What fits in their place is not counted. Without demands it counts
// groups of the problem's size.
func LostToWiring(p Problem, demands ...Demand) int {
	if len(demands) == 0 {
		demands = []Demand{{p.Size, -1}}
	}
	with, lost := PlaceSizes(p, demands), 0
	p.Shared = false
	for i, groups := range PlaceSizes(p, demands) {
		lost += max(0, len(groups)-len(with[i]))
	}
	return lost
}
