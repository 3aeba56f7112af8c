package planner

import (
	"fmt"

	"ringlight/proto"
)

// What the planner concludes, and from what. A node that says itself that it
// is out is believed. An agent that is offline proves nothing about its
// light: only when both neighbours have lost it is the node held to be dead,
// or when one has and its agent stays away.

// concludeDead looks for runs of offline members between members that have
// lost them.
func (p *Planner) concludeDead(r *ringView) {
	for i := 0; i < len(r.nodes); {
		if !p.doubted(r, i) {
			i++
			continue
		}
		first := i
		for i < len(r.nodes) && p.doubted(r, i) {
			i++
		}
		left := first == 0 || p.lost(r, first-1, proto.Right)
		right := i == len(r.nodes) || p.lost(r, i, proto.Left)
		if first == 0 && i == len(r.nodes) || (!left || !right) && !p.forsaken(r, first, i) {
			continue
		}
		for _, id := range r.nodes[first:i] {
			if n := &p.nodes[id]; !n.dead && n.usable() {
				p.die(r, n, first, i)
			}
		}
	}
}

// forsaken: nobody has spoken for a run of members for a while, and one
// neighbour has lost its light. Their lasers may shine on, but nobody moves
// them: a piece stays open until the other neighbour passes them by too.
func (p *Planner) forsaken(r *ringView, first, end int) bool {
	if (first == 0 || !p.lost(r, first-1, proto.Right)) && (end == len(r.nodes) || !p.lost(r, end, proto.Left)) {
		return false
	}
	for _, id := range r.nodes[first:end] {
		n := &p.nodes[id]
		if !n.usable() {
			continue
		}
		gone := n.goneAt
		if n.online {
			gone = n.hail.at
		}
		if wait := gone + agentPatience - p.now; wait > 0 {
			r.forsakenAt = p.now + wait
			p.stir(r)
			p.replan(wait)
			return false
		}
	}
	return true
}

// doubted: suspect, and no other member stands on its light. A silent agent
// whose light a neighbour has turned to has turned to that neighbour itself.
func (p *Planner) doubted(r *ringView, at int) bool {
	id := r.nodes[at]
	if !p.suspect(id) {
		return false
	}
	if n := &p.nodes[id]; !n.usable() {
		return true
	}
	for other := max(0, at-p.fab.K); other <= min(len(r.nodes)-1, at+p.fab.K); other++ {
		n := &p.nodes[r.nodes[other]]
		if other == at || n.want.decided != r.decided || p.suspect(n.id) {
			continue
		}
		for _, l := range n.loss {
			if l.lost && l.lit && l.peer == id {
				return false
			}
		}
	}
	return true
}

// suspect: offline, deaf to a hail, or already known to be out, so that its
// own silence about its neighbours says nothing.
func (p *Planner) suspect(id proto.NodeID) bool {
	n := &p.nodes[id]
	return n.heard && (!n.online || n.mute()) || !n.usable()
}

// lost: the member has applied the ring's generation and one of its sides is
// off its planned candidate.
func (p *Planner) lost(r *ringView, at int, s proto.Side) bool {
	n := &p.nodes[r.nodes[at]]
	return n.want.decided == r.decided && n.loss[s].lost
}

func (p *Planner) die(r *ringView, n *nodeView, first, end int) {
	n.dead = true
	var by string
	switch {
	case first == 0 || !p.lost(r, first-1, proto.Right):
		by = fmt.Sprintf("node %d has lost its light", r.nodes[end])
	case end == len(r.nodes) || !p.lost(r, end, proto.Left):
		by = fmt.Sprintf("node %d has lost its light", r.nodes[first-1])
	default:
		by = fmt.Sprintf("nodes %d and %d have lost its light", r.nodes[first-1], r.nodes[end])
	}
	what := "is offline"
	if n.online {
		what = "does not answer"
	}
	n.reason = "dead: its agent " + what + " and " + by
	p.note(Warn, "node is dead", note{Rule: "dead", Node: int64(n.id), Ring: r.id, Gen: r.gen, Cause: proto.CauseLightLost, Text: n.reason})
	p.stirNode(n)
	p.replan(debounce)
	p.participantLost(n, n.reason)
}

// settling reports whether a ring with a fault still waits for the reports of
// its bypass: a plan that quotes an old bypass count would be refused.
func (p *Planner) settling(r *ringView) bool {
	hurt, waits := false, false
	for at, id := range r.nodes {
		n := &p.nodes[id]
		if !n.usable() {
			hurt = true
			continue
		}
		waits = waits || n.online && !n.fresh() || n.loss[proto.Left].moving || n.loss[proto.Right].moving ||
			at > 0 && !p.nodes[r.nodes[at-1]].usable() && !p.lost(r, at, proto.Left) ||
			at+1 < len(r.nodes) && !p.nodes[r.nodes[at+1]].usable() && !p.lost(r, at, proto.Right)
	}
	if !hurt || !waits {
		r.hurtAt = 0
		return false
	}
	if r.hurtAt == 0 {
		r.hurtAt = max(1, p.now)
	}
	return p.now < r.hurtAt+settleWait
}
