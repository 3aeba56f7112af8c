package planner

import (
	"fmt"
	"time"

	"ringlight/proto"
)

// A link that had light and lost it at both ends, while both nodes are well
// and have not been away, is held to be cut: the placement goes round it at
// once. It gets another chance later and later, and at once when one of its
// nodes starts anew. Only a ring that lacks a node takes the chance.

const (
	cutFirst = 2 * time.Second // chosen: longer than a plug takes to stop rattling
	cutLast  = 24 * time.Hour
	cutsMore = 2 // each time as a power of two: the wait is four times the one before
)

// cut is what is known of a fibre that was held to be cut.
type cut struct {
	count int
	until time.Duration // until then it carries no ring
}

func pair(a, b proto.NodeID) [2]proto.NodeID { return [2]proto.NodeID{min(a, b), max(a, b)} }

// broken reports whether a ring must not use the fibre between two nodes.
func (p *Planner) broken(a, b proto.NodeID) bool {
	c := p.cuts[pair(a, b)]
	return c != nil && p.now < c.until
}

// hold keeps rings off a fibre for a while.
func (p *Planner) hold(r *ringView, at int, why string) {
	a, b := r.nodes[at], r.nodes[at+1]
	c := p.cuts[pair(a, b)]
	if c == nil {
		c = &cut{}
		p.cuts[pair(a, b)] = c
	}
	wait := min(cutFirst<<min(cutsMore*c.count, 20), cutLast)
	c.count++
	c.until = p.now + wait
	p.cutAt = min(p.cutAt, c.until)
	p.note(Error, "fibre is held to be cut", note{Rule: "cut", Node: int64(a), Ring: r.id, Gen: r.gen, Cause: proto.CauseLightLost,
		Text: fmt.Sprintf("%s between nodes %d and %d, both well; no ring uses it for %v", why, a, b, wait)})
}

// checkCuts gives fibres another chance that have waited.
func (p *Planner) checkCuts() {
	if p.now < p.cutAt {
		return
	}
	p.cutAt = Never
	for at, c := range p.cuts { // any order: the earliest is wanted, and what is stirred is sorted
		if c.until > p.now {
			p.cutAt = min(p.cutAt, c.until)
			continue
		}
		p.stirNear(at[0])
	}
	p.wantBetter = true
	p.replan(debounce)
}

// forgetCuts gives the fibres of a node that starts anew another chance, and
// forgets what was seen on them.
func (p *Planner) forgetCuts(n *nodeView) {
	for hop := -p.fab.K; hop <= p.fab.K; hop++ {
		other := int(n.id) + hop
		if p.order.Wrap {
			other = (other + p.order.Nodes) % p.order.Nodes
		}
		if other >= 0 && other != int(n.id) {
			delete(p.cuts, pair(n.id, proto.NodeID(other)))
		}
	}
	p.unseen(n)
}

// unseen forgets that a node's links had light: the node was away, and that
// is reason enough for them to be dark.
func (p *Planner) unseen(n *nodeView) {
	r := p.ring(n.ring)
	if r == nil {
		return
	}
	for at, id := range r.nodes {
		if id != n.id {
			continue
		}
		if at > 0 {
			r.lit[at-1] = false
		}
		if at < len(r.lit) {
			r.lit[at] = false
		}
	}
}

// off: a member that is well has left the planned link on one side and has
// settled elsewhere, in loopback or with another peer.
func (p *Planner) off(r *ringView, at int, s proto.Side) bool {
	n := &p.nodes[r.nodes[at]]
	return p.lost(r, at, s) && !n.loss[s].moving && n.usable() && n.ready() && n.at(r.decided) && !n.held()
}

// concludeParted goes through the links that both of their ends have left:
// one that has had light is held to be cut. It reports whether some other is
// only parted: both wait in loopback, and a plan brings them together.
func (p *Planner) concludeParted(r *ringView) (apart bool) {
	for at := 0; at+1 < len(r.nodes); at++ {
		if !p.off(r, at, proto.Right) || !p.off(r, at+1, proto.Left) || p.broken(r.nodes[at], r.nodes[at+1]) {
			continue
		}
		if !r.lit[at] {
			apart = true
			continue
		}
		r.lit[at] = false
		p.hold(r, at, "light lost at both ends")
		p.stir(r)
		p.replan(debounce)
	}
	return apart
}

// concludeCut holds the dark links of a ring whose members are all well to be
// cut: attempts to join them have failed.
func (p *Planner) concludeCut(r *ringView) {
	for at := 0; at+1 < len(r.nodes); at++ {
		if a, b := r.nodes[at], r.nodes[at+1]; !p.confirmed(r, at) && !p.broken(a, b) {
			p.hold(r, at, fmt.Sprintf("no light in %d attempts", max(1, r.renewed)))
		}
	}
}

// doubtful: some dark link of the ring was held to be cut before, so one
// attempt is enough.
func (p *Planner) doubtful(r *ringView) bool {
	for at := 0; at+1 < len(r.nodes); at++ {
		if p.cuts[pair(r.nodes[at], r.nodes[at+1])] != nil && !p.confirmed(r, at) {
			return true
		}
	}
	return false
}
