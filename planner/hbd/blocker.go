package hbd

import (
	"fmt"
	"slices"

	"ringlight/planner/member"
	"ringlight/proto"
)

// Blocker says why a node must not be without its agent for a moment, "" when it may
// be: its ring has to be without a fault, and nothing be under way that needs it.
func (p *placement) Blocker(id proto.NodeID) string {
	n := &p.nodes[id]
	if n.leaving {
		return "it is being drained"
	}
	r := p.ring(n.Device.Group)
	switch {
	case n.Device.Group != 0 && r != nil:
		return r.blocker()
	case n.Device.Pending():
		return "it does not hold yet what is wanted of it"
	}
	return ""
}

// blocker says what fault a ring has, "" when it has none.
func (r *ringView) blocker() string {
	for _, id := range r.nodes {
		switch n := &r.pl.nodes[id]; {
		case !n.usable() || !n.Device.Ready():
			return fmt.Sprintf("ring %d has a fault: node %d: %s", r.id, id, n.whyNot())
		case !n.Device.At(r.Decided):
			return fmt.Sprintf("ring %d is being changed", r.id)
		}
	}
	if is, all := r.linksConfirmed(), r.linkCount(); is < all || r.renew {
		return fmt.Sprintf("ring %d has light on %d of %s", r.id, is, proto.Count(all, "link"))
	}
	return ""
}

// Changing: a generation is under way, of which it is not known yet whom it needs.
func Changing(h *Rings) bool { return h.txn.Phase() != member.Resting }

// Facing are the neighbours of a node in its ring, and the bundle of each that has light
// from it.
func (p *placement) Facing(id proto.NodeID, tell func(neighbour proto.NodeID, bundle proto.BundleID)) {
	r := p.ring(p.nodes[id].Device.Group)
	if r == nil {
		return
	}
	at := slices.Index(r.nodes, id)
	for s := proto.Left; at >= 0 && s <= proto.Right; s++ {
		if beside := r.peer(at, s); beside >= 0 {
			if link, ok := p.fab.Link(r.nodes[beside], id); ok {
				tell(r.nodes[beside], link.Local.Bundle)
			}
		}
	}
}
