package hbd

import "ringlight/proto"

// Trouble is a short word for what keeps a node out of plans though nobody took
// it out, "" when nothing does, and the reason.
func (p *placement) Trouble(id proto.NodeID) (what, why string) {
	n := &p.nodes[id]
	what, why = n.Trouble()
	switch {
	case n.hold != nil && n.hold.Quarantine:
		return "quarantined", n.over
	case n.dead:
		return "dead", n.reason
	case n.over != "":
		return "stepped over", n.over
	case n.said.out && n.said.mode != proto.ModeDrained:
		return n.said.mode.Words(), n.reason
	case what != "" || n.unmeasured == "":
		return what, why
	}
	return "no ring possible", n.unmeasured
}

// RingTroubles tells every ring that is not in service, and since when, by the
// wall clock.
func (p *placement) RingTroubles(tell func(id proto.RingID, s proto.RingState, since uint64)) {
	for _, r := range p.rings {
		if r.state == proto.RingDegraded || r.state == proto.RingDown {
			tell(r.id, r.state, r.since)
		}
	}
}

// Counts are nodes and rings by state.
func (p *placement) Counts() (nodes proto.NodeCounts, rings proto.RingCounts) {
	nodes.Total, rings.Total = uint32(len(p.nodes)), uint32(len(p.rings))
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.Answers() {
			nodes.Online++
		} else {
			nodes.Silent++
		}
		if !n.said.out {
			continue
		}
		switch n.said.mode {
		case proto.ModeIsolated:
			nodes.Isolated++
		case proto.ModeHostDown:
			nodes.HostDown++
		}
		if n.drained() {
			nodes.Drained++
		}
	}
	for _, r := range p.rings {
		switch r.stateNow() {
		case proto.RingInService:
			rings.InService++
		case proto.RingDegraded:
			rings.Degraded++
		case proto.RingForming:
			rings.Forming++
		case proto.RingDown:
			rings.Down++
		}
	}
	return nodes, rings
}
