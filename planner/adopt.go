package planner

import (
	"fmt"
	"slices"

	"ringlight/proto"
)

// adopt takes what runs as what is wanted, when the store knows nothing: lost
// state, or a first start. Light is never disturbed by it.
func (p *Planner) adopt() {
	p.fresh = false
	members := map[proto.RingID][]proto.NodeID{}
	latest := map[proto.RingID]decided{}
	for i := range p.nodes {
		m := p.nodes[i].report
		if m == nil || m.Generation == 0 {
			continue
		}
		for _, a := range m.Rings {
			add := func(id proto.NodeID) {
				if int(id) < len(p.nodes) && !slices.Contains(members[a.Ring], id) {
					members[a.Ring] = append(members[a.Ring], id)
				}
			}
			add(p.nodes[i].id)
			// A member that was not heard is known to its neighbours.
			for _, c := range slices.Concat(a.Left, a.Right) {
				add(c.Peer)
			}
			d := decided{m.Term, m.Generation, m.Plan}
			if old := latest[a.Ring]; d.term > old.term || d.term == old.term && d.gen > old.gen {
				latest[a.Ring] = d
			}
		}
	}
	ids := make([]proto.RingID, 0, len(members))
	for id := range members { // any order: sorted below
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var records []Record
	for _, id := range ids {
		nodes := p.inOrder(members[id])
		err := p.mayAdopt(nodes)
		if err == nil {
			err = p.mayClose(id, nodes)
		}
		if err != nil {
			p.note(Warn, "reported ring not adopted", note{Rule: "adopt", Node: -1, Ring: id, Text: err.Error()})
			continue
		}
		r := &ringView{id: id, nodes: nodes, lit: make([]bool, len(nodes)-1), decided: latest[id]}
		p.rings = append(p.rings, r)
		p.nextRing, p.gen = max(p.nextRing, id+1), max(p.gen, r.gen)
		records = append(records, encodeRecord(ringKey(id), ringRecord{nodes, r.term, r.gen, r.plan}))
		for _, n := range nodes {
			p.place(n, id)
			p.nodes[n].want = target{decided: r.decided}
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		switch m := n.report; {
		case n.ring != 0:
			if m != nil {
				n.readSides(m, p.now)
			}
		case m != nil && m.Generation != 0 && len(m.Rings) == 0:
			n.want = target{decided: decided{m.Term, m.Generation, m.Plan}}
		default:
			if m != nil {
				p.unassign(n)
			}
			continue
		}
		records = append(records, encodeRecord(nodeKey(n.id), nodeRecord{Ring: n.ring, Term: n.want.term, Generation: n.want.gen, Plan: n.want.plan}))
	}
	if len(records) == 0 {
		return // nothing runs; the first generation writes the first records
	}
	records = append(records, encodeRecord(keyHead, head{p.gen, p.nextRing}))
	p.persist(records)
	p.note(Info, "running rings adopted", note{Rule: "adopt", Node: -1, Gen: p.gen, Text: fmt.Sprintf("%d rings as their nodes report them", len(p.rings))})
}

// inOrder sorts members from the left end to the right; on a ring the left
// end is behind the widest gap.
func (p *Planner) inOrder(nodes []proto.NodeID) []proto.NodeID {
	slices.Sort(nodes)
	if !p.order.Wrap {
		return nodes
	}
	start, widest := 0, 0
	for i := range nodes {
		before := nodes[(i+len(nodes)-1)%len(nodes)]
		if gap := p.order.Ahead(before, nodes[i]); gap > widest {
			start, widest = i, gap
		}
	}
	return append(slices.Clone(nodes[start:]), nodes[:start]...)
}

// mayClose refuses a ring that another planner has closed by light round the
// whole fabric over straight fibres: it is two cycles of GPUs, however whole it
// looks. Ours are lines, with loopback at both ends, and never are.
func (p *Planner) mayClose(id proto.RingID, nodes []proto.NodeID) error {
	open := func(n proto.NodeID, s proto.Side) bool {
		if m := p.nodes[n].report; m != nil {
			for i := range m.Rings {
				if a := &m.Rings[i]; a.Ring == id {
					return len([2][]proto.Candidate{a.Left, a.Right}[s]) == 0
				}
			}
		}
		return true
	}
	if open(nodes[0], proto.Left) && open(nodes[len(nodes)-1], proto.Right) || p.fab.SeamCrossed() {
		return nil
	}
	return fmt.Errorf("it is closed from node %d to node %d over straight fibres, which makes it two rings; want an odd number of crossed links round it, or a line",
		nodes[len(nodes)-1], nodes[0])
}

func (p *Planner) mayAdopt(nodes []proto.NodeID) error {
	for _, n := range nodes {
		if p.nodes[n].ring != 0 {
			return fmt.Errorf("node %d is in ring %d too", n, p.nodes[n].ring)
		}
	}
	if len(nodes) > p.fab.GroupNodes() {
		return fmt.Errorf("%d nodes, want at most %d", len(nodes), p.fab.GroupNodes())
	}
	return p.order.Check(nodes)
}
