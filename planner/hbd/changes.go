package hbd

import (
	"slices"

	"ringlight/proto"
)

// Who watches the rings sees cells and strips: a node and a ring as they are
// drawn. Planning only notes which have changed (touch); what they have become
// is looked up when somebody takes the changes, so that a thousand changes of a
// node cost one cell.

// Standing of a node, as it is drawn.
type Standing uint8

const (
	Unheard  Standing = iota // nobody has spoken for it yet
	Well                     //
	Offline                  // its agent is silent; light is judged by its neighbours
	Dead                     // concluded from its neighbours' light
	Isolated                 // its own optics failed
	HostDown                 // its GPUs are gone
	Drained                  // an operator took it out
	LeftOut                  // well, but nothing can be planned with it as it is
)

// Light of one side of a node, as the planner knows it.
type Light uint8

const (
	NoSide   Light = iota // in no ring, or the ring ends here
	Lit                   // on its planned fibre, tuned by its own photodiodes
	Bypassed              // on another fibre than planned, with light
	Moving                // a path is being switched
	Closed                // in loopback: nobody within reach
	Waiting               // told and not yet there, or not yet told
)

// Cell is one node as it is drawn.
type Cell struct {
	Node     proto.NodeID
	Ring     proto.RingID // 0: none
	Standing Standing
	Leaving  bool            // is being drained
	Side     [2]Light        // by proto.Side
	Peer     [2]proto.NodeID // of a side that is lit or bypassed
	Deficit  int32           // milli-dB by which its weakest selected light is below what is expected, 0: none
}

// Strip is one ring as it is drawn.
type Strip struct {
	Ring  proto.RingID
	State proto.RingState
	Gen   proto.Generation
	Size  int            // nodes that it is to have
	Nodes []proto.NodeID // left to right; none: it is gone
	Step  uint8          // of an exchange, from 1: pairs; 0: a ring
}

// changes are the nodes and rings that have changed since they were taken.
type changes struct {
	nodes []proto.NodeID
	rings []proto.RingID
	heard []proto.NodeID // since the jobs looked

	Stamps stamps
}

// stamps number changes, for any who look when they like: also those that no cell shows.
type stamps struct {
	last  uint64
	nodes []uint64
	rings map[proto.RingID]uint64 // those that are gone, too
}

func (s *stamps) node(id proto.NodeID) {
	s.last++
	s.nodes[id] = s.last
}

// Since are the nodes and rings that changed after a number, and which one it is now.
func (s *stamps) Since(after uint64) (nodes []proto.NodeID, rings []proto.RingID, now uint64) {
	if after == s.last {
		return nil, nil, after
	}
	for id, at := range s.nodes {
		if at > after {
			nodes = append(nodes, proto.NodeID(id))
		}
	}
	for id, at := range s.rings { // any order: sorted
		if at > after {
			rings = append(rings, id)
		}
	}
	slices.Sort(rings)
	return nodes, rings, s.last
}

// touch notes that a node has changed.
func (p *placement) touch(id proto.NodeID) {
	n, c := &p.nodes[id], &p.changes
	if r := p.ring(n.Device.Group); r != nil {
		r.counted = false
	}
	c.Stamps.node(id)
	for i, list := range [2]*[]proto.NodeID{&c.nodes, &c.heard} {
		if !n.touched[i] {
			n.touched[i], *list = true, append(*list, id)
		}
	}
}

// touchRing notes that a ring has changed.
func (c *changes) touchRing(id proto.RingID) {
	c.Stamps.last++
	c.Stamps.rings[id] = c.Stamps.last
	if n := len(c.rings); n == 0 || c.rings[n-1] != id { // told twice is no harm, and is rare
		c.rings = append(c.rings, id)
	}
	if len(c.rings) > 2*len(c.Stamps.nodes) { // nobody takes them: every ring is told once
		slices.Sort(c.rings)
		c.rings = slices.Compact(c.rings)
	}
}

// TakeChanges gives what has changed since they were taken last, all of it
// there is when all; nodes by number, rings by id.
func (p *placement) TakeChanges(all bool) (cells []Cell, strips []Strip) {
	c := &p.changes
	nodes, rings := c.nodes, c.rings
	for _, id := range nodes {
		p.nodes[id].touched[0] = false
	}
	c.nodes, c.rings = nil, nil
	if all {
		for i := range p.nodes {
			cells = append(cells, p.cell(proto.NodeID(i)))
		}
		for _, r := range p.rings {
			strips = append(strips, r.strip())
		}
		return cells, strips
	}
	slices.Sort(nodes)
	slices.Sort(rings)
	for _, id := range nodes {
		cells = append(cells, p.cell(id))
	}
	for _, id := range slices.Compact(rings) {
		if r := p.ring(id); r != nil {
			strips = append(strips, r.strip())
		} else {
			strips = append(strips, Strip{Ring: id})
		}
	}
	return cells, strips
}

func (r *ringView) strip() Strip {
	return Strip{r.id, r.state, r.Gen, r.size, slices.Clone(r.nodes), uint8(r.step)}
}

func (p *placement) cell(id proto.NodeID) Cell {
	n := &p.nodes[id]
	c := Cell{Node: id, Ring: n.Device.Group, Leaving: n.leaving, Standing: n.drawn()}
	r := p.ring(n.Device.Group)
	if r == nil || !n.Device.Known {
		return c
	}
	at := slices.Index(r.nodes, id)
	for s := proto.Left; s <= proto.Right; s++ {
		if at < 0 || r.peer(at, s) < 0 {
			continue
		}
		c.Side[s], c.Peer[s] = r.light(at, s)
	}
	said := n.Device.Whole()
	for i := range said.Sides {
		if b := sideBundle(said, &said.Sides[i]); b >= 0 {
			c.Deficit = max(c.Deficit, n.deficit(proto.BundleID(b)))
		}
	}
	return c
}

// light of a side, whichever told of it last, an event or a report.
func (r *ringView) light(at int, s proto.Side) (Light, proto.NodeID) {
	n, l := r.at(at), &r.at(at).loss[s]
	switch {
	case !n.Device.At(r.Decided):
		return Waiting, 0
	case l.lost && l.moving:
		return Moving, 0
	case l.lost && l.lit:
		return Bypassed, l.peer
	case l.lost:
		return Closed, 0
	case !r.side(at, s):
		return Waiting, 0
	}
	return Lit, r.nodes[r.peer(at, s)]
}

// drawn is how a node stands.
func (n *node) drawn() Standing {
	switch {
	case n.dead:
		return Dead
	case n.said.out && n.said.mode == proto.ModeHostDown:
		return HostDown
	case n.drained():
		return Drained
	case n.said.out:
		return Isolated
	case !n.Device.Heard():
		return Unheard
	case !n.Device.Online():
		return Offline
	case !n.usable() || !n.Device.Ready():
		return LeftOut
	}
	return Well
}

// deficit is by how much a bundle's light is below what is expected of it.
func (n *node) deficit(b proto.BundleID) int32 {
	if x, ok := n.Device.Report.Bundle(b); ok && x.Measured != proto.NoPower && x.Expected != proto.NoPower {
		return max(0, int32(x.Expected-x.Measured))
	}
	return 0
}
