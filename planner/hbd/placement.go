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
	nodes []node
	rings []*ringView   // by id
	sizes []int         // of rings, in nodes, ascending
	index *ring.Tracker // of the same, nil until all have been heard
	grown int           // nodes from here on came with an edit

	unsettled []proto.RingID // all rings that wait for something, and some that do not
	changes
}

func newPlacement(fab *fabric.Fabric) *placement {
	p := &placement{fab: fab, order: ring.OrderOf(fab), nodes: make([]node, fab.Nodes), grown: fab.Nodes, changes: changes{touched: make([]bool, fab.Nodes)}}
	for _, d := range ring.DemandsOf(fab) {
		p.sizes = append(p.sizes, d.Size)
	}
	slices.Sort(p.sizes)
	return p
}

// ring finds a ring by id, nil when there is none.
func (p *placement) ring(id proto.RingID) *ringView {
	i, ok := slices.BinarySearchFunc(p.rings, id, func(r *ringView, id proto.RingID) int { return int(int64(r.id) - int64(id)) })
	if !ok {
		return nil
	}
	return p.rings[i]
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

// largest is the size of the largest rings.
func (p *placement) largest() int { return p.sizes[len(p.sizes)-1] }

// place notes which ring a node is in.
func (p *placement) place(id proto.NodeID, r proto.RingID) {
	p.nodes[id].Group = r
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
		r.renewed, r.renewAt, r.marked, r.unsettled = old.renewed, old.renewAt, old.marked, old.unsettled
		r.moved = old.state == proto.RingInService && !slices.Equal(old.nodes, r.nodes)
	}
	for _, n := range r.nodes {
		p.place(n, r.id)
	}
	if p.index != nil {
		p.index.Put(ring.Group{ID: r.id, Nodes: r.nodes, Size: r.size})
	}
	if old != nil {
		*old = *r
		return
	}
	p.rings = append(p.rings, r) // ring numbers only grow
}

func (p *placement) dropRing(id proto.RingID) {
	p.touchRing(id)
	for i, r := range p.rings {
		if r.id == id {
			p.rings = append(p.rings[:i], p.rings[i+1:]...)
			if p.index != nil {
				p.index.Drop(id)
			}
			return
		}
	}
}

// within calls f for the members up to K hops on one side of a member,
// nearest first.
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
		f(peer)
	}
}
