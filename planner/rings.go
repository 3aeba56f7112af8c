package planner

import (
	"slices"
	"time"

	"ringlight/proto"
)

// ringView is one committed ring.
type ringView struct {
	id    proto.RingID
	nodes []proto.NodeID // left to right
	decided

	state   proto.RingState
	stirred bool // it is on the list of those to be looked at
	// forsakenAt is when a run of it is passed by that nobody speaks for, 0: none.
	forsakenAt time.Duration
	moved      bool          // it was in service when it got other members
	lit        []bool        // by link: had light since the ring was formed and both its nodes were there
	renew      bool          // to be touched with the same members
	hurtAt     time.Duration // since when it waits to settle after a fault, 0: it does not
	splitAt    time.Duration // since when it is split though all are well, 0: it is not
	renewAt    time.Duration // not to be formed anew before
	renewed    int           // attempts
}

// ring finds a ring by id, nil when there is none.
func (p *Planner) ring(id proto.RingID) *ringView {
	i, ok := slices.BinarySearchFunc(p.rings, id, func(r *ringView, id proto.RingID) int { return int(int64(r.id) - int64(id)) })
	if !ok {
		return nil
	}
	return p.rings[i]
}

// side tells whether a member has light on its planned candidate of a side:
// it must have applied the ring's generation, and its bundle must be tuned.
func (p *Planner) side(r *ringView, at int, s proto.Side) bool {
	n, peer := &p.nodes[r.nodes[at]], at-1
	if s == proto.Right {
		peer = at + 1
	}
	link, ok := p.fab.Link(n.id, r.nodes[peer])
	if !ok || !n.at(r.decided) {
		return false
	}
	for i := range n.report.Bundles {
		if b := &n.report.Bundles[i]; b.Bundle == link.Local.Bundle {
			return b.Path == link.Local.Path && b.State == proto.Tuned && n.loss[s].seq <= n.report.LastEvent
		}
	}
	return false
}

// confirmed reports whether both ends of the link behind member at are tuned.
func (p *Planner) confirmed(r *ringView, at int) bool {
	return p.side(r, at, proto.Right) && p.side(r, at+1, proto.Left)
}

func (p *Planner) linksConfirmed(r *ringView) int {
	count := 0
	for at := 0; at+1 < len(r.nodes); at++ {
		if p.confirmed(r, at) {
			count++
		}
	}
	return count
}

// stateOf is the planner's word on a ring: in service when all members report
// the generation that last touched it with light confirmed; degraded when it
// is closed with fewer GPUs; down when no two members hang together.
func (p *Planner) stateOf(r *ringView) proto.RingState {
	usable, told, settled := 0, true, true
	for _, id := range r.nodes {
		n := &p.nodes[id]
		if !n.usable() {
			continue
		}
		usable++
		told = told && n.at(r.decided)
		settled = settled && n.settled()
	}
	links := p.linksConfirmed(r)
	switch {
	case usable == 0:
		return proto.RingDown
	case usable < len(r.nodes):
		if links == 0 && usable > 1 && told && !p.bypassed(r) {
			return proto.RingDown
		}
		return proto.RingDegraded
	case !told:
		return proto.RingForming
	case links == len(r.nodes)-1:
		if len(r.nodes) < p.fab.GroupNodes() {
			return proto.RingDegraded
		}
		return proto.RingInService
	case !settled:
		return proto.RingForming
	case links == 0 && !p.bypassed(r):
		return proto.RingDown
	}
	return proto.RingDegraded
}

// settled reports whether no side is on the move, as far as events and reports
// tell, whichever is newer.
func (n *nodeView) settled() bool {
	if n.report == nil {
		return false
	}
	if n.events.moved > n.report.LastEvent {
		return !n.loss[proto.Left].moving && !n.loss[proto.Right].moving
	}
	for i := range n.report.Sides {
		switch n.report.Sides[i].State {
		case proto.SideSwitch, proto.SideListen, proto.SideClosing:
			return false
		}
	}
	return true
}

// bypassed reports whether some member works on another candidate than
// planned.
func (p *Planner) bypassed(r *ringView) bool {
	for _, id := range r.nodes {
		n := &p.nodes[id]
		if !n.at(r.decided) {
			continue
		}
		for i := range n.report.Sides {
			if s := &n.report.Sides[i]; s.State == proto.SideWork && int(s.Current) != int(s.Working) {
				return true
			}
		}
	}
	return false
}

// watchRing follows a ring's state, and finds one that is split though every
// member is well and has been told: it is formed anew, less and less often.
func (p *Planner) watchRing(r *ringView) {
	was := r.state
	r.state = p.stateOf(r)
	if r.state != was {
		level := Info
		if r.state == proto.RingDown || r.state == proto.RingDegraded {
			level = Warn
		}
		p.line(level, "ring "+r.state.String(), "", -1, r.id, r.gen, "")
	}
	if p.seeLight(r) == len(r.nodes)-1 {
		r.splitAt, r.renewed, r.renewAt = 0, 0, 0
		return
	}
	if p.state == gathering {
		return
	}
	apart := p.concludeParted(r)
	if !p.allWell(r) || r.renew {
		r.splitAt = 0
		return
	}
	if r.splitAt == 0 {
		r.splitAt = max(1, p.now)
	}
	if apart {
		r.splitAt = max(1, min(r.splitAt, p.now-splitWait)) // both ends say so: nothing to wait for
	}
	p.stir(r)
	p.replan(max(r.splitAt+splitWait, r.renewAt) - p.now)
}

// seeLight counts the links that have light, and remembers which.
func (p *Planner) seeLight(r *ringView) (count int) {
	for at := range r.lit {
		if p.confirmed(r, at) {
			r.lit[at] = true
			count++
		}
	}
	return count
}

// allWell: every member is usable, here, told and at rest.
func (p *Planner) allWell(r *ringView) bool {
	for _, id := range r.nodes {
		if n := &p.nodes[id]; !n.usable() || !n.ready() || !n.at(r.decided) || !n.settled() || n.held() {
			return false
		}
	}
	return true
}

// dueSplit marks a split ring for a new attempt. After some attempts the
// fibres that stayed dark are held to be cut, and the placement avoids them.
func (p *Planner) dueSplit(r *ringView) {
	if r.splitAt == 0 || p.now < r.splitAt+splitWait || p.now < r.renewAt {
		return
	}
	r.splitAt = 0
	if r.renewed >= renewsToCut || p.doubtful(r) {
		p.concludeCut(r)
	}
	r.renewAt = p.now + min(renewFirst<<min(r.renewed, 10), renewLast)
	r.renewed++
	r.renew = true
	p.note(Warn, "ring is split though its members are well", note{Rule: "rejoin", Node: -1, Ring: r.id, Gen: r.gen,
		Text: "formed anew; nodes that returned are let in again"})
}

// status is the ring as operators see it.
func (p *Planner) status(r *ringView) proto.RingStatus {
	s := proto.RingStatus{Ring: r.id, Nodes: slices.Clone(r.nodes), State: p.stateOf(r), Generation: r.gen,
		Links: uint16(len(r.nodes) - 1), LinksConfirmed: uint16(p.linksConfirmed(r))}
	for _, id := range r.nodes {
		if p.nodes[id].usable() {
			s.GPUs += uint32(p.fab.GPUsPerNode)
		}
	}
	return s
}

// Touched gives the members of a ring, and whether it was in service until the
// last generation gave it others.
func (p *Planner) Touched(id proto.RingID) (nodes []proto.NodeID, moved bool) {
	r := p.ring(id)
	if r == nil {
		return nil, false
	}
	return r.nodes, r.moved
}

// Rings are the planner's rings, by id.
func (p *Planner) Rings() []proto.RingStatus {
	out := make([]proto.RingStatus, 0, len(p.rings))
	for _, r := range p.rings {
		out = append(out, p.status(r))
	}
	return out
}
