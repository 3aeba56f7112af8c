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
// program of ring.Orchestrate); else, and as soon as rings run, moving few of
// them counts for more, and Mend decides.
func (h *Rings) first(m ring.Mend) (ring.Result, bool) {
	if len(h.rings) > 0 || h.fab.NodesPerToR == 0 || h.cuts.at != journal.Never {
		return ring.Result{}, false
	}
	groups, most := underToRs(h, m.Sizes[0].Size, m.Sizes[0].Want, m.Free)
	if groups == nil && most > 0 && most < m.Sizes[0].Want {
		groups, _ = underToRs(h, m.Sizes[0].Size, most, m.Free)
	}
	if groups == nil {
		return ring.Result{}, false
	}
	var res ring.Result
	for _, nodes := range groups {
		res.Groups = append(res.Groups, ring.Group{Nodes: nodes})
	}
	slices.SortFunc(res.Groups, func(a, b ring.Group) int { return int(a.Nodes[0]) - int(b.Nodes[0]) })
	for i := range res.Groups {
		res.Touched = append(res.Touched, i)
	}
	return res, true
}

// underToRs places exactly so many groups on free nodes, those one after the
// other that talk to one another; nil: they do not fit, but most may.
func underToRs(h *Rings, size, want int, free func(proto.NodeID) bool) (groups [][]proto.NodeID, most int) {
	job := ring.Job{
		Deployment: ring.Deployment{Nodes: h.fab.Nodes, PerToR: h.fab.NodesPerToR}, PerDomain: h.fab.NodesPerDomain,
		K: h.order.K, Wrap: h.order.Wrap, Shared: h.order.Shared, Size: size, Want: want,
	}
	// The job numbers nodes as the data centre network does, the fabric in
	// HBD order.
	job.Faulty = func(n proto.NodeID) bool { return !free(proto.NodeID(job.Position(n))) }
	o := ring.Orchestrate(job)
	if !o.OK() {
		return nil, o.Most
	}
	add := func(g []proto.NodeID) {
		nodes := make([]proto.NodeID, len(g))
		for i, n := range g {
			nodes[i] = proto.NodeID(job.Position(n))
		}
		groups = append(groups, nodes)
	}
	placed := make([]bool, len(o.Groups))
	for _, set := range o.Sets {
		for _, i := range set {
			add(o.Groups[i])
			placed[i] = true
		}
	}
	for i, g := range o.Groups {
		if !placed[i] {
			add(g)
		}
	}
	return groups, want
}
