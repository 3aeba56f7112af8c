package hbd

import (
	"slices"

	"ringlight/planner/journal"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// first places the rings of a fabric that carries none. Where the description
// says which nodes share a ToR switch, ranks that talk over the data centre
// network come to stand under the same one ([IHBD] sec 4.3, by the exact
// program of ring.Orchestrate), the largest rings first; else, or where fewer
// rings would fit so, Mend decides.
func (e *evidence) first(m ring.Mend) (ring.Result, bool) {
	if len(e.pl.rings) > 0 || m.Racks == nil || e.cuts.at != journal.Never {
		return ring.Result{}, false
	}
	blind := ring.PlaceSizes(ring.Problem{Order: m.Order, Usable: m.Free}, m.Sizes)
	taken := map[proto.NodeID]bool{}
	free := func(n proto.NodeID) bool { return !taken[n] && m.Free(n) }
	var res ring.Result
	largest := indices(m.Sizes)
	slices.SortStableFunc(largest, func(a, b int) int { return m.Sizes[b].Size - m.Sizes[a].Size })
	for _, d := range largest {
		groups, most := e.pl.underToRs(m.Sizes[d].Size, m.Sizes[d].Want, free)
		if groups == nil && most >= len(blind[d]) {
			groups, _ = e.pl.underToRs(m.Sizes[d].Size, len(blind[d]), free)
		}
		if len(groups) < len(blind[d]) {
			return ring.Result{}, false
		}
		mark(taken, groups...)
		for _, nodes := range groups {
			res.Groups = append(res.Groups, ring.Group{Nodes: nodes, Size: m.Sizes[d].Size})
		}
	}
	slices.SortFunc(res.Groups, func(a, b ring.Group) int { return int(a.Nodes[0]) - int(b.Nodes[0]) })
	res.Touched = indices(res.Groups)
	return res, len(res.Groups) > 0
}

func indices[E any](list []E) []int {
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	return out
}

// underToRs places exactly so many groups on free nodes, those one after the
// other that talk to one another; nil: they do not fit, but most may.
func (p *placement) underToRs(size, want int, free func(proto.NodeID) bool) (groups [][]proto.NodeID, most int) {
	o := ring.Orchestrate(ring.Job{
		Deployment: ring.Deployment{Nodes: p.fab.Nodes}, Racks: p.racks, K: p.order.K, Wrap: p.order.Wrap, Shared: p.order.Shared,
		Size: size, Want: want, Faulty: func(n proto.NodeID) bool { return !free(n) },
	})
	return o.Groups, o.Most
}
