package hbd

import (
	"maps"
	"slices"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// Lend is how a ring of a job stands.
type Lend struct {
	proto.RingStatus
	Owner  string
	Size   int  // nodes that it is to have
	Mend   bool // a generation that changes it is under way
	Lost   []Lost
	Bypass uint32 // microseconds that its last one took, 0: none yet
	// Coming is the order of its GPUs once its usable members do what they are told.
	Coming func() []proto.RingGPU
}

// Lost is a member that does not carry its ring, and why.
type Lost struct {
	Node proto.NodeID
	Why  string
}

// Moved are the jobs whose rings have changed since this was asked, sorted.
func (c Claims) Moved() []string {
	h := c.h
	if len(h.Placed.moved) == 0 {
		return nil
	}
	out := slices.Sorted(maps.Keys(h.Placed.moved))
	clear(h.Placed.moved)
	return out
}

// Touched are the nodes that may stand otherwise since this was asked, sorted.
func (c Claims) Touched() []proto.NodeID {
	out := c.h.Placed.heard
	for _, id := range out {
		c.h.Placed.nodes[id].touched[1] = false
	}
	c.h.Placed.heard = nil
	return slices.Sorted(slices.Values(out))
}

// Own gives a job an unassigned ring that is lit: its light was adopted, and
// the job's record says whose it is.
func (c Claims) Own(owner string, id proto.RingID, size int) (records []journal.Record) {
	h := c.h
	if r := h.Placed.ring(id); r != nil && r.owner == "" && r.size == size {
		records = append(records, c.lendTo(id, owner))
		c.claimed()
	}
	return records
}

// Lent is how a ring stands, and whether there is one.
func (c Claims) Lent(id proto.RingID) (l Lend, ok bool) {
	h := c.h
	r := h.Placed.ring(id)
	if r == nil {
		return l, false
	}
	l = Lend{RingStatus: r.status(), Owner: r.owner, Size: r.size, Bypass: r.bypass}
	l.GPUOrder = r.gpuOrder()
	l.Coming = func() []proto.RingGPU { return r.coming(h.Evidence.broken) }
	for _, n := range r.nodes {
		if why := h.Placed.nodes[n].whyNot(); !h.Placed.nodes[n].usable() {
			l.Lost = append(l.Lost, Lost{n, why})
		}
	}
	l.Mend = h.txn.Phase() != member.Resting && h.proposal != nil && slices.ContainsFunc(h.proposal.rings, func(x *ringView) bool { return x.id == id })
	return l, true
}

// Near reports whether a free node stands where it reaches a member of a ring, so that
// it may take a place.
func (c Claims) Near(id proto.RingID) bool {
	h := c.h
	r := h.Placed.ring(id)
	if r == nil {
		return false
	}
	for n := range h.Placed.nodes {
		n := proto.NodeID(n)
		reach := func(o proto.NodeID) bool {
			_, ok := h.Placed.fab.Link(n, o)
			return ok && !h.Evidence.broken(n, o)
		}
		if h.Placed.nodes[n].Device.Group == 0 && (h.Placed.free(n) && !h.Placed.barred(n, r) || h.Placed.own(n, r)) && slices.ContainsFunc(r.nodes, reach) {
			return true
		}
	}
	return false
}

// All are the rings that there are, by number.
func (c Claims) All() (out []proto.RingID) {
	for _, r := range c.h.Placed.rings {
		out = append(out, r.id)
	}
	return out
}

// Release gives rings and spares back, and says what the store is to know. A ring that is
// being formed anew would be the job's again with the generation: what is not decided loses
// its owner too, and what is on its way to the store is given back behind it.
func (c Claims) Release(owner string) (records []journal.Record) {
	h := c.h
	var forming []*ringView
	if h.proposal != nil {
		forming = h.proposal.rings
	}
	for _, r := range h.Placed.rings {
		if r.owner == owner && !(h.Deciding() && slices.ContainsFunc(forming, func(x *ringView) bool { return x.id == r.id })) {
			records = append(records, c.lendTo(r.id, ""))
		}
	}
	if h.Deciding() {
		h.released = append(h.released, owner)
	} else {
		for _, r := range forming {
			if r.owner == owner {
				r.owner = ""
			}
		}
	}
	for n, o := range h.Placed.kept { // any order: a set
		if o == owner {
			delete(h.Placed.kept, n)
		}
	}
	c.claimed()
	return records
}

// Return gives a ring back that no job knows.
func (c Claims) Return(id proto.RingID) journal.Record {
	record := c.lendTo(id, "")
	c.claimed()
	return record
}

// Node is how a node stands, and whether its light or its host is out.
func (c Claims) Node(id proto.NodeID) (s proto.NodeStatus, lost bool) {
	return c.h.Placed.status(id), !c.h.Placed.nodes[id].able()
}

// Unclaim gives up a claim that is under way.
func (c Claims) Unclaim(owner string) {
	if c.Claiming(owner) {
		c.h.abort("the job was released")
	}
}

// Shrink gives a ring of a job a smaller size, on members of its own, and
// reports whether it can. It is called at rest.
func (c Claims) Shrink(id proto.RingID, size int) bool {
	h := c.h
	r := h.Placed.ring(id)
	p := ring.Problem{Order: h.Placed.order, Size: size, Want: 1, Usable: func(n proto.NodeID) bool {
		return slices.Contains(r.nodes, n) && h.Placed.nodes[n].wanted() && h.Placed.nodes[n].Device.Ready()
	}}
	if len(h.Evidence.cuts.known) > 0 {
		p.Broken = h.Evidence.broken
	}
	groups := ring.Place(p)
	if len(groups) == 0 {
		return false
	}
	q := &proposal{pl: h.Placed, next: h.nextRing, owner: r.owner, rings: []*ringView{{pl: h.Placed, id: id, nodes: groups[0], size: size, owner: r.owner}}}
	q.idle = h.Agenda.toTell(q)
	h.prepare(q)
	return true
}
