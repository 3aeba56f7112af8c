package hbd

import (
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/member"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// placement is what is committed: which nodes form which rings.
type placement struct {
	fab   *fabric.Fabric
	order ring.Order
	racks *ring.Racks // nil: where nodes stand is not known
	nodes []node
	rings []*ringView                              // by id
	sizes []int                                    // of rings, in nodes, ascending; those of jobs too
	kept  map[proto.NodeID]string                  // nodes that a job holds beside its rings
	bar   func(owner string, id proto.NodeID) bool // a job must not have a node; nil: any may
	along func(owner string) bool                  // whole rings of a job move to stay under the ToRs of its others; nil: none
	moved map[string]bool                          // jobs whose rings have changed since they were taken
	index *ring.Tracker                            // of the same, nil until all have been heard
	grown int                                      // nodes from here on came with an edit

	unsettled []proto.RingID // all rings that wait for something, and some that do not
	changes
}

func newPlacement(fab *fabric.Fabric) *placement {
	p := &placement{fab: fab, order: ring.OrderOf(fab), racks: ring.RacksOf(fab), nodes: make([]node, fab.Nodes), kept: map[proto.NodeID]string{}, moved: map[string]bool{}, grown: fab.Nodes, changes: changes{Stamps: stamps{last: 1, nodes: make([]uint64, fab.Nodes), rings: map[proto.RingID]uint64{}}}}
	for i := range p.nodes {
		p.nodes[i].plight, p.nodes[i].health = noPlight, noTelemetry
	}
	p.resize()
	return p
}

// view is a ring with other members; whose it is stays.
func (p *placement) view(id proto.RingID, nodes []proto.NodeID, size int) *ringView {
	r := &ringView{pl: p, id: id, nodes: nodes, size: size}
	if old := p.ring(id); old != nil {
		r.owner = old.owner
	}
	return r
}

// ring finds a ring by id, nil when there is none.
func (p *placement) ring(id proto.RingID) *ringView {
	i, ok := p.find(id)
	if !ok {
		return nil
	}
	return p.rings[i]
}

func (p *placement) find(id proto.RingID) (at int, ok bool) {
	return slices.BinarySearchFunc(p.rings, id, func(r *ringView, id proto.RingID) int { return int(int64(r.id) - int64(id)) })
}

// form makes a view of a ring that is committed. A ring of which nobody knows
// the size has the smallest that its members fit.
func (p *placement) form(id proto.RingID, nodes []proto.NodeID, size int, d member.Decided) *ringView {
	if at, _ := slices.BinarySearch(p.sizes, len(nodes)); size == 0 && at < len(p.sizes) {
		size = p.sizes[at]
	}
	p.unsettled = append(p.unsettled, id)
	return &ringView{unsettled: true, pl: p, id: id, nodes: nodes, size: size, lit: make([]bool, max(0, len(nodes)-1)), Decided: d}
}

// unsettle notes that a ring may wait for something.
func (p *placement) unsettle(r *ringView) {
	if r != nil && !r.unsettled {
		r.unsettled = true
		p.unsettled = append(p.unsettled, r.id)
	}
}

// free: a node may join a ring, whosever.
func (p *placement) free(id proto.NodeID) bool { return p.kept[id] == "" && p.nodes[id].free() }

// own: the node is kept for the ring's job, so it may join that ring.
func (p *placement) own(id proto.NodeID, r *ringView) bool {
	return r != nil && r.owner != "" && p.kept[id] == r.owner && p.nodes[id].free()
}

// barred: the ring's job must not have the node.
func (p *placement) barred(id proto.NodeID, r *ringView) bool {
	return r != nil && r.owner != "" && p.bar != nil && p.bar(r.owner, id)
}

// tell notes that a ring of a job has changed.
func (p *placement) tell(r *ringView) {
	if r != nil && r.owner != "" {
		p.moved[r.owner] = true
	}
}

// largest is the size of the largest rings.
func (p *placement) largest() int { return p.sizes[len(p.sizes)-1] }

// place notes which ring a node is in.
func (p *placement) place(id proto.NodeID, r proto.RingID) {
	p.nodes[id].Device.Group = r
	p.touch(id)
}

// reads makes the index read again what may be done with a node.
func (p *placement) reads(id proto.NodeID) {
	if p.index != nil {
		p.index.Refresh(id)
	}
}

// enter puts a ring's new members in place of the old, who have left.
func (p *placement) enter(r *ringView, d member.Decided) {
	p.touchRing(r.id)
	r.Decided, r.lit = d, make([]bool, len(r.nodes)-1)
	old := p.ring(r.id)
	if old != nil {
		r.marked, r.unsettled, r.retold = old.marked, old.unsettled, old.retold
		if slices.Equal(old.nodes, r.nodes) {
			r.renewed, r.renewAt = old.renewed, old.renewAt // of these fibres
		} else {
			r.moved = old.state == proto.RingInService
		}
	}
	for _, n := range r.nodes {
		p.place(n, r.id)
	}
	p.tell(r)
	if p.index != nil {
		p.index.Put(r.group())
	}
	if old != nil {
		*old = *r
		return
	}
	at, _ := p.find(r.id) // the last, unless a job's ring is formed again
	p.rings = slices.Insert(p.rings, at, r)
}

func (p *placement) dropRing(id proto.RingID) {
	p.touchRing(id)
	at, ok := p.find(id)
	if !ok {
		return
	}
	p.tell(p.rings[at])
	p.rings = slices.Delete(p.rings, at, at+1)
	if p.index != nil {
		p.index.Drop(id)
	}
}

// within calls f for the members up to K hops on one side of a member, as fibres
// span, nearest first.
func (p *placement) within(nodes []proto.NodeID, at, step int, f func(peer int)) {
	hops := 0
	for peer := at + step; peer >= 0 && peer < len(nodes); peer += step {
		if step > 0 {
			hops += p.order.Ahead(nodes[peer-1], nodes[peer])
		} else {
			hops += p.order.Ahead(nodes[peer], nodes[peer+1])
		}
		if hops > p.fab.K {
			return
		}
		if p.order.Spans(hops) {
			f(peer)
		}
	}
}
