package hbd

import (
	"maps"
	"slices"

	"ringlight/planner/ring"
	"ringlight/proto"
)

// costWithout is what it costs to take a node out, those of its ring that cannot take
// part stepped over as they will be after a while (stepover.go); costWith what it would
// change to let the node in.
func (e *evidence) costWithout(n *node) proto.Cost {
	if r := e.pl.ring(n.Device.Group); r != nil && n.blocks() {
		for _, id := range r.nodes {
			if m := &e.pl.nodes[id]; m.blocks() {
				m.stepped("asked what it costs")
				e.pl.reads(id)
				defer func() { m.stepped(""); e.pl.reads(id) }()
			}
		}
	}
	return e.cost(n, func(id proto.NodeID) bool { return e.pl.nodes[id].wanted() && id != n.Device.ID },
		func(id proto.NodeID) bool { return e.pl.free(id) && id != n.Device.ID })
}

// cost compares the rings as they are with those that plans would make of
// them: one for the rings that are concerned, then one that places better, as
// far as whole rings may move.
func (e *evidence) cost(n *node, usable, free func(proto.NodeID) bool) proto.Cost {
	c := proto.Cost{Rings: []proto.RingID{}}
	if e.pl.index == nil {
		e.reindex() // asked before all have been heard
	}
	is := e.pl.index.Mend
	e.pl.index.Usable, e.pl.index.Free, e.pl.index.Fetch = usable, free, 0
	e.pl.reads(n.Device.ID)
	after, stages, back := try(e.pl.index, n.Device.ID, func(id proto.RingID) ring.Group {
		r := e.pl.ring(id)
		return r.group()
	}, nil)
	c.Stages = stages
	e.pl.index.Mend = is
	e.pl.index.Carry(back)
	e.pl.reads(n.Device.ID)
	for _, r := range e.pl.rings {
		nodes, touched := after[r.id]
		if !touched {
			continue
		}
		c.Rings = append(c.Rings, r.id)
		if s := r.stateNow(); s == proto.RingInService || s == proto.RingDegraded {
			c.Jobs++
		}
		c.Links += uint32(differing(r.nodes, nodes) + differing(nodes, r.nodes))
		if len(nodes) < len(r.nodes) {
			c.GPUs += uint32((len(r.nodes) - len(nodes)) * e.pl.fab.GPUsPerNode)
		}
		for _, id := range nodes {
			if !slices.Contains(r.nodes, id) && len(c.Joins) < proto.MaxArray {
				c.Joins = append(c.Joins, id)
			}
		}
		if told := slices.IndexFunc(r.nodes, func(id proto.NodeID) bool { return !e.pl.nodes[id].Device.Known }); told < 0 {
			e := e.pl.envelope(r.nodes)
			c.DarkMicros = max(c.DarkMicros, uint64(e.SwitchMaxMicros)+2*uint64(e.DetectMaxMicros)+uint64(commitSpread.Microseconds()))
		}
	}
	c.Rings = c.Rings[:min(len(c.Rings), proto.MaxArray)]
	return c
}

// try looks at what a change of a node comes to, which the index has read, in two
// looks: one at the rings that are concerned, one that places better, unless enough
// says, where it is given, that the first has done. after are
// the rings that it touches; back is what makes the index as it was, when it
// has read again what is so.
func try(index *ring.Tracker, id proto.NodeID, is func(proto.RingID) ring.Group, enough func(after map[proto.RingID][]proto.NodeID) bool) (after map[proto.RingID][]proto.NodeID, stages uint32, back ring.Result) {
	after = map[proto.RingID][]proto.NodeID{}
	ids := index.Concerned(id)
	for _, near := range [2]bool{true, false} {
		if !near && enough != nil && enough(after) {
			break
		}
		res := index.Look(ids, near)
		for _, at := range res.Touched {
			if g := res.Groups[at]; g.ID != 0 {
				after[g.ID] = g.Nodes
			}
		}
		for _, id := range res.Gone {
			after[id] = nil
		}
		if len(res.Touched)+len(res.Gone) > 0 {
			stages++
		}
		index.Carry(res)
	}
	for _, id := range slices.Sorted(maps.Keys(after)) {
		back.Groups = append(back.Groups, is(id))
	}
	return after, stages, back
}

// differing counts the links of a that b has not.
func differing(a, b []proto.NodeID) (count int) {
	for i := 1; i < len(a); i++ {
		at := slices.Index(b, a[i-1])
		if at < 0 || at+1 == len(b) || b[at+1] != a[i] {
			count++
		}
	}
	return count
}
