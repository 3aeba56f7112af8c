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
	job := ring.Job{
		Deployment: ring.Deployment{Nodes: h.fab.Nodes, PerToR: h.fab.NodesPerToR}, PerDomain: h.fab.NodesPerDomain,
		K: h.order.K, Wrap: h.order.Wrap, Shared: h.order.Shared, Size: m.Sizes[0].Size, Want: m.Sizes[0].Want,
	}
	// The job numbers nodes as the data centre network does, the fabric in
	// HBD order.
	job.Faulty = func(n proto.NodeID) bool { return !m.Free(proto.NodeID(job.Position(n))) }
	o := ring.Orchestrate(job)
	if !o.OK() && o.Most > 0 && o.Most < job.Want {
		job.Want = o.Most
		o = ring.Orchestrate(job)
	}
	if !o.OK() {
		return ring.Result{}, false
	}
	var res ring.Result
	for _, g := range o.Groups {
		nodes := make([]proto.NodeID, len(g))
		for i, n := range g {
			nodes[i] = proto.NodeID(job.Position(n))
		}
		res.Groups = append(res.Groups, ring.Group{Nodes: nodes})
	}
	slices.SortFunc(res.Groups, func(a, b ring.Group) int { return int(a.Nodes[0]) - int(b.Nodes[0]) })
	for i := range res.Groups {
		res.Touched = append(res.Touched, i)
	}
	return res, true
}
