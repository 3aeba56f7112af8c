package hbd

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// adopt takes what runs as what is wanted, when the store knows nothing: lost
// state, or a first start. Light is never disturbed by it.
func (h *Rings) adopt() {
	h.Table.Numbers.Fresh = false
	members, latest := h.Placed.running(h.Table.Numbers.Gen)
	var records []journal.Record
	for _, id := range slices.Sorted(maps.Keys(members)) {
		nodes, err := h.Placed.adoptable(id, members[id])
		if err != nil {
			h.j.Note(journal.Warn, "reported ring not adopted", journal.Note{Rule: "adopt", Node: -1, Ring: id, Text: err.Error()})
			continue
		}
		r := h.Placed.form(id, nodes, 0, latest[id])
		r.step = r.stepSaid()
		h.Placed.rings = append(h.Placed.rings, r)
		h.nextRing, h.Table.Numbers.Gen = max(h.nextRing, id+1), max(h.Table.Numbers.Gen, r.Gen)
		records = append(records, journal.Encode(ringKey(id), r.record(r.Decided)))
		decided := r.Decided
		for _, n := range nodes {
			h.Placed.place(n, id)
			h.Placed.nodes[n].Device.Want = member.Target{Decided: &decided}
		}
	}
	for i := range h.Placed.nodes {
		n := &h.Placed.nodes[i]
		switch m := &n.Device.Report; {
		case n.Device.Group != 0:
			n.readSides(h.j.Now)
		case m.Gen != 0 && len(n.Device.Whole().Rings) == 0:
			n.Device.Adopt()
		default:
			if n.Device.Known {
				h.Agenda.unassign(n)
			}
			continue
		}
		records = append(records, member.Record(n.Device.ID, n.Device.Group, n.Device.Want, false))
	}
	if len(records) == 0 {
		h.Evidence.tryFirst(func(fabric.Fibre) bool { return true })
		return // nothing runs; the first generation writes the first records
	}
	h.Table.Numbers.Decided = h.Table.Numbers.Gen
	records = append(records, journal.Encode(keyHead, head{h.Table.Numbers.Gen, h.nextRing}))
	h.j.Persist(records...)
	h.j.Note(journal.Info, "running rings adopted", journal.Note{Rule: "adopt", Node: -1, Gen: h.Table.Numbers.Gen, Text: fmt.Sprintf("%d rings as their nodes report them", len(h.Placed.rings))})
}

// claimed is what nodes say of a ring: who is in it, and who says so.
type claimed map[proto.NodeID][]proto.NodeID

// running finds who is in which ring by the latest decision, up to a generation, that
// its nodes hold. One node alone may be wrong, or lie: a decision counts that two hold,
// or most of those hold that it names and that were heard; else where half of them do
// and the others hold an older one of the same ring.
func (p *placement) running(upTo proto.Generation) (members map[proto.RingID]claimed, latest map[proto.RingID]member.Decided) {
	type plan struct {
		ring proto.RingID
		member.Decided
	}
	said, holds := map[plan]claimed{}, map[proto.RingID]map[proto.NodeID]bool{}
	for i := range p.nodes {
		m := &p.nodes[i].Device.Report
		if m.Gen == 0 || m.Gen > upTo {
			continue
		}
		id := p.nodes[i].Device.ID
		for _, a := range p.nodes[i].Device.Whole().Rings {
			at := plan{a.Ring, *m.Decided}
			if said[at] == nil {
				said[at] = claimed{}
			}
			if holds[a.Ring] == nil {
				holds[a.Ring] = map[proto.NodeID]bool{}
			}
			holds[a.Ring][id] = true
			said[at][id] = append(said[at][id], id)
			for _, c := range slices.Concat(a.Left, a.Right) { // a member that was not heard is known to its neighbours
				if int(c.Peer) < len(p.nodes) {
					said[at][c.Peer] = append(said[at][c.Peer], id)
				}
			}
		}
	}
	members, latest = map[proto.RingID]claimed{}, map[proto.RingID]member.Decided{}
	rank := map[proto.RingID][3]uint64{}
	for at, who := range said { // any order: the highest rank counts
		by, heard, ours := 0, 0, 0
		for id, voices := range who { // any order: counts
			if p.nodes[id].Device.Known {
				heard++
			}
			if slices.Contains(voices, id) {
				by++
			}
			if holds[at.ring][id] {
				who[id] = append(voices, id)
				ours++
			}
		}
		x := [3]uint64{1, uint64(at.Term), uint64(at.Gen)}
		switch {
		case by > 1 || 2*by > heard:
		case 2*by == heard && ours == heard:
			x[0] = 0
		default:
			continue
		}
		old, known := rank[at.ring]
		last := latest[at.ring].Plan
		if c := slices.Compare(x[:], old[:]); !known || c > 0 || c == 0 && slices.Compare(at.Plan[:], last[:]) > 0 {
			rank[at.ring], latest[at.ring], members[at.ring] = x, at.Decided, who
		}
	}
	return members, latest
}

// adoptable are the members of a ring in order, when it may run so: all that are named,
// or those that two name, or that say so themselves.
func (p *placement) adoptable(id proto.RingID, who claimed) (nodes []proto.NodeID, err error) {
	for _, least := range [2]int{1, 2} {
		nodes = nodes[:0]
		for n, voices := range who { // any order: sorted
			if len(voices) >= least || slices.Contains(voices, n) {
				nodes = append(nodes, n)
			}
		}
		nodes = p.inOrder(nodes)
		if err = p.mayAdopt(nodes); err == nil {
			err = p.mayClose(id, nodes)
		}
		if err == nil {
			return nodes, nil
		}
	}
	return nil, err
}

// stepSaid is the step of an exchange that the plans of all members show that were heard and
// are not at its ends, which have one side in a ring, too. 0: they are of a ring.
func (r *ringView) stepSaid() paired {
	apart := 0
	for at := 1; at < len(r.nodes)-1; at++ {
		for _, a := range r.pl.nodes[r.nodes[at]].Device.Whole().Rings {
			peers := slices.Concat(a.Left, a.Right)
			if len(peers) != 1 {
				return 0
			}
			x := at ^ slices.Index(r.nodes, peers[0].Peer)
			if x&(x-1) != 0 || apart != 0 && x != apart {
				return 0
			}
			apart = x
		}
	}
	if step := bits.Len(uint(apart)); step < len(steps) && len(r.nodes)%(1<<step) == 0 {
		return paired(step)
	}
	return 0
}

// inOrder sorts members from the left end to the right; on a ring the left
// end is behind the widest gap.
func (p *placement) inOrder(nodes []proto.NodeID) []proto.NodeID {
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
func (p *placement) mayClose(id proto.RingID, nodes []proto.NodeID) error {
	open := func(n proto.NodeID, s proto.Side) bool {
		for _, a := range p.nodes[n].Device.Whole().Rings {
			if a.Ring == id {
				return len([2][]proto.Candidate{a.Left, a.Right}[s]) == 0
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

func (p *placement) mayAdopt(nodes []proto.NodeID) error {
	for _, n := range nodes {
		if p.nodes[n].Device.Group != 0 {
			return fmt.Errorf("node %d is in ring %d too", n, p.nodes[n].Device.Group)
		}
	}
	if len(nodes) > p.largest() {
		return fmt.Errorf("%d nodes, want at most %d", len(nodes), p.largest())
	}
	return p.order.Check(nodes)
}

// forget drops all that the store said of rings and drains.
func forget(h *Rings) {
	h.Drop()
	records := []journal.Record{{Key: keyHead}}
	for _, r := range h.Placed.rings {
		records = append(records, journal.Record{Key: ringKey(r.id)})
		h.nextRing = max(h.nextRing, r.id+1)
	}
	for i := range h.drains.list {
		d := &h.drains.list[i]
		h.Placed.nodes[d.node].leaving = false
		records = append(records, journal.Record{Key: drainKey(d.node)})
	}
	for _, id := range h.drains.holds.list {
		h.Placed.nodes[id].own().hold = nil
		records = append(records, journal.Record{Key: holdKey(id)})
	}
	for i := range h.Placed.nodes {
		n := &h.Placed.nodes[i]
		records = append(records, n.Device.Forget())
		h.Placed.place(n.Device.ID, 0)
		n.unlost()
		n.stray = false
	}
	h.Placed.rings, h.drains.list, h.drains.holds.list, h.Agenda.marked, h.Agenda.strays, h.stage = nil, nil, nil, nil, nil, nil
	h.Table.Numbers.Fresh = true
	h.j.Persist(records...)
}
