package hbd

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// proposal is a placement that differs from the committed one.
type proposal struct {
	pl    *placement
	rings []*ringView    // touched, with their new members; id 0 never
	gone  []proto.RingID // without a member left
	idle  []proto.NodeID // to be told that they are in no ring
	stage []proto.RingID // of rings, those that are only told again
	next  proto.RingID   // ring numbers given out so far

	owner  string // the job that it is for, "" for none
	stock  []proto.RingID
	spares []proto.NodeID
	own    []journal.Record // what the job has the store know
}

func (q *proposal) empty() bool { return len(q.rings) == 0 && len(q.gone) == 0 && len(q.idle) == 0 }

// desired writes what each touched node is to do, in order of nodes.
func (q *proposal) desired(term proto.Term, gen proto.Generation, broken func(a, b proto.NodeID) bool) []proto.Desired {
	p := q.pl
	var out []proto.Desired
	policy := policyOf(p.fab)
	for _, r := range q.rings {
		env := p.envelope(r.nodes)
		r.told = slowest(env)
		for at, id := range r.nodes {
			line, place := r.line(at)
			out = append(out, proto.Desired{
				Version: proto.Version, Node: id, Term: term, Generation: gen, Decisions: []proto.RingID{r.id},
				BypassSeq: p.nodes[id].bypass(),
				Rings: []proto.RingAssignment{{
					Ring: r.id, Generation: gen, Position: uint16(place), Size: uint16(len(line)), Policy: policy, Envelope: env,
					HoldOffMicros: uint32(p.fab.HoldOffUS), WaitToRestoreMillis: uint32(p.fab.WaitToRestoreMS),
					Left: p.candidates(line, place, -1, broken), Right: p.candidates(line, place, +1, broken),
				}},
			})
		}
	}
	for _, id := range q.idle {
		out = append(out, proto.Desired{
			Version: proto.Version, Node: id, Term: term, Generation: gen, Decisions: []proto.RingID{0},
			BypassSeq: p.nodes[id].bypass(),
		})
	}
	slices.SortFunc(out, func(a, b proto.Desired) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

func policyOf(f *fabric.Fabric) proto.Policy {
	if f.Policy == fabric.Hold {
		return proto.PolicyHold
	}
	return proto.PolicyBypass
}

// candidates is one side's protection list: the ring's members within K hops
// on that side, nearest first.
func (p *placement) candidates(nodes []proto.NodeID, at, step int, broken func(a, b proto.NodeID) bool) []proto.Candidate {
	var out []proto.Candidate
	p.within(nodes, at, step, func(peer int) {
		link, ok := p.fab.Link(nodes[at], nodes[peer])
		if !ok {
			panic(fmt.Sprintf("planner: nodes %d and %d are within K hops and have no fibre", nodes[at], nodes[peer]))
		}
		if broken(nodes[at], nodes[peer]) {
			return
		}
		others := 0
		p.within(nodes, peer, -step, func(back int) {
			if back != at {
				others++
			}
		})
		out = append(out, proto.Candidate{Bundle: link.Local.Bundle, Path: link.Local.Path, Peer: nodes[peer], Others: others > 0, Crossed: link.Crossed})
	})
	return out
}

// defaultEnvelope stands in for a node that has not measured its own.
// docs/board.md's default board: D 150, d 40, S 250, s 75, W 500 us.
var defaultEnvelope = proto.Envelope{DetectMaxMicros: 150, DetectMinMicros: 40, SwitchMaxMicros: 250, SwitchMinMicros: 75, SkewMicros: 500}

// envelope is the envelope over a ring's members: the differences D-d and S-s
// lie between the two ends of a link.
func (p *placement) envelope(nodes []proto.NodeID) proto.Envelope {
	var env proto.Envelope
	for i, id := range nodes {
		own := p.nodes[id].envelope()
		if i == 0 {
			env = own
			continue
		}
		env.DetectMaxMicros = max(env.DetectMaxMicros, own.DetectMaxMicros)
		env.DetectMinMicros = min(env.DetectMinMicros, own.DetectMinMicros)
		env.SwitchMaxMicros = max(env.SwitchMaxMicros, own.SwitchMaxMicros)
		env.SwitchMinMicros = min(env.SwitchMinMicros, own.SwitchMinMicros)
		env.SkewMicros = max(env.SkewMicros, own.SkewMicros)
	}
	return env
}

// maxNamed is how many new rings are named one by one. chosen: a line that
// one can read.
const maxNamed = 4

// explain says in one line what a proposal changes.
func (q *proposal) explain() string {
	p := q.pl
	text, formed, of := "", 0, map[int]int{}
	for _, r := range q.rings {
		if p.ring(r.id) == nil {
			formed++
			of[r.size]++
		}
	}
	for _, size := range p.sizes {
		if formed > maxNamed && of[size] > 0 {
			text += fmt.Sprintf("%d rings formed of %d nodes each; ", of[size], size)
		}
	}
	for _, r := range q.rings {
		old := p.ring(r.id)
		if old == nil {
			if formed > maxNamed {
				continue
			}
			text += fmt.Sprintf("ring %d formed of %d nodes; ", r.id, len(r.nodes))
			continue
		}
		leave, join := Without(old.nodes, r.nodes), Without(r.nodes, old.nodes)
		if len(leave) > 0 {
			text += fmt.Sprintf("%s ring %d; ", proto.Nodes(leave, "leaves", "leave"), r.id)
		}
		if len(join) > 0 {
			text += fmt.Sprintf("%s ring %d; ", proto.Nodes(join, "joins", "join"), r.id)
		}
		switch {
		case r.step != old.step:
			text += fmt.Sprintf("ring %d goes to %s; ", r.id, steps[r.step])
		case len(leave)+len(join) == 0:
			text += fmt.Sprintf("plan sent again to ring %d; ", r.id)
		}
	}
	for _, id := range q.gone {
		text += fmt.Sprintf("ring %d has no node left; ", id)
	}
	if len(q.idle) > 0 {
		text += proto.Count(len(q.idle), "node") + " spare; "
	}
	return proto.Clip(text[:max(0, len(text)-2)])
}

// records is the decision on a proposal as the store keeps it.
func (q *proposal) records(t *member.Txn) []journal.Record {
	p := q.pl
	out := append([]journal.Record{journal.Encode(keyHead, head{t.Gen, q.next})}, q.own...)
	for _, id := range q.stock {
		r := *p.ring(id)
		r.owner = q.owner
		out = append(out, journal.Encode(ringKey(id), r.record(r.Decided)))
	}
	left := map[proto.NodeID]bool{} // members of committed rings that nobody tells
	leavers := func(r *ringView) {
		if r != nil {
			mark(left, r.nodes)
		}
	}
	for _, id := range q.gone {
		out = append(out, journal.Record{Key: ringKey(id)})
		leavers(p.ring(id))
	}
	ringOf := map[proto.NodeID]proto.RingID{}
	for _, r := range q.rings {
		out = append(out, journal.Encode(ringKey(r.id), r.record(t.Decided)))
		leavers(p.ring(r.id))
		for _, n := range r.nodes {
			ringOf[n] = r.id
		}
	}
	for i := range t.Parts {
		id := t.Parts[i].Device.ID
		delete(left, id)
		out = append(out, member.Record(id, ringOf[id], member.Target{Decided: &t.Decided, Payload: string(t.Parts[i].Payload)}, false))
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		out = append(out, member.Record(id, 0, member.Target{Decided: p.nodes[id].Device.Want.Decided}, true))
	}
	return out
}
