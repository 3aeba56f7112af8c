package planner

import (
	"slices"

	"ringlight/proto"
)

// One fault of a fabric with a quarter of a million nodes must not cost a look
// at all of them. So whatever happens stirs the rings that it may concern, and
// the next look is at those alone: rings that lost something, and rings that
// lack a node and have one within reach. What is left out so, if anything, the
// look at everything finds that follows a while later.

// stir makes the next look be at a ring, too.
func (p *Planner) stir(r *ringView) {
	if r != nil && !r.stirred {
		r.stirred = true
		p.stirred = append(p.stirred, r.id)
	}
}

// stirNear stirs the rings that lack a node and may reach this one.
func (p *Planner) stirNear(id proto.NodeID) {
	reach, last := p.order.K*p.fab.GroupNodes(), proto.RingID(0)
	for by := -reach; by <= reach; by++ {
		x := int(id) + by
		if p.order.Wrap {
			x = ((x % len(p.nodes)) + len(p.nodes)) % len(p.nodes)
		}
		if x < 0 || x >= len(p.nodes) || p.nodes[x].ring == last {
			continue
		}
		last = p.nodes[x].ring
		if r := p.ring(last); r != nil && len(r.nodes) < p.fab.GroupNodes() {
			p.stir(r)
		}
	}
}

// stirNode stirs what a change of a node may concern: its ring, or those that
// could have it. Sooner or later everything is looked at for it.
func (p *Planner) stirNode(n *nodeView) {
	p.wantBetter = true
	if r := p.ring(n.ring); r != nil {
		p.stir(r)
		return
	}
	p.stirNear(n.id)
}

// stirAll makes the next look be at everything.
func (p *Planner) stirAll() {
	p.wantBetter = true
	for _, r := range p.rings {
		p.stir(r)
	}
}

// waits: a ring that must be looked at again though nothing else happens to it.
func (r *ringView) waits() bool {
	return r.hurtAt != 0 || r.splitAt != 0 || r.renew || r.forsakenAt != 0
}

// concerned takes the rings that were stirred, by id. Those that wait for
// something stay stirred.
func (p *Planner) concerned() []*ringView {
	var out []*ringView
	for _, id := range p.stirred {
		if r := p.ring(id); r != nil && r.stirred {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b *ringView) int { return int(int64(a.id) - int64(b.id)) })
	p.stirred = p.stirred[:0]
	for _, r := range out {
		r.stirred = false
		r.forsakenAt = 0
	}
	return out
}

// place notes which ring a node is in.
func (p *Planner) place(id proto.NodeID, r proto.RingID) {
	p.nodes[id].ring, p.taken[id] = r, r != 0
}

// unassign notes that a node is to be told where it stands.
func (p *Planner) unassign(n *nodeView) {
	n.unassigned = true
	if !n.stray {
		n.stray = true
		p.strays = append(p.strays, n.id)
	}
}

// untold lists, in any order, the nodes that are to be told where they stand.
func (p *Planner) untold() []proto.NodeID {
	p.strays = slices.DeleteFunc(p.strays, func(id proto.NodeID) bool {
		n := &p.nodes[id]
		n.stray = n.unassigned
		return !n.stray
	})
	return p.strays
}
