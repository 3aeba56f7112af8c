package planner

import (
	"slices"
	"time"

	"ringlight/proto"
)

// A node whose power is gone tells nobody, and the broker needs a keep-alive
// and a half to notice. But whoever lives speaks when a neighbour leaves it:
// its own light is gone then too. So a member that says nothing while its
// neighbour has lost its light is hailed, and one that does not answer either
// is silent: with light lost on both sides of it, it is dead.

const (
	// hailWait is how long an answer may take. chosen: many times the way
	// there and back on a management network. An answer that comes later
	// takes the node in again, which had no light from either side anyway.
	hailWait = 20 * time.Millisecond
	// hailGrace is given once where the planner itself was late to look, since
	// the answer may lie behind what kept it: its disk, for one.
	hailGrace = 10 * time.Millisecond
)

// hail is a question to a node that is not answered yet when open.
type hail struct {
	open  bool
	grace bool
	corr  proto.Corr
	at    time.Duration
	due   time.Duration
}

// mute: it was hailed and has not answered in time.
func (n *nodeView) mute() bool { return n.hail.open && n.hail.due == Never }

// doubt hails the members of a ring that must have lost a neighbour's light
// and do not say so.
func (p *Planner) doubt(r *ringView) {
	for at := 0; at+1 < len(r.nodes); at++ {
		if !r.lit[at] {
			continue // it never had light, or one of the two was away: nobody owes a word
		}
		p.doubtEnd(r, at, at+1, proto.Left)
		p.doubtEnd(r, at+1, at, proto.Right)
		if p.lost(r, at, proto.Right) {
			p.doubtRun(r, at)
		}
	}
}

// maxRun bounds the run of members that are hailed at once. chosen: a rack's
// power supply fails nodes in threes and fours.
const maxRun = 4

// doubtRun hails all of a short run of members between two that have left it:
// those in the middle have no neighbour that could tell.
func (p *Planner) doubtRun(r *ringView, before int) {
	for end := before + 1; end <= before+maxRun+1 && end < len(r.nodes); end++ {
		if !p.lost(r, end, proto.Left) {
			continue
		}
		since := max(p.nodes[r.nodes[before]].loss[proto.Right].at, p.nodes[r.nodes[end]].loss[proto.Left].at)
		for at := before + 1; at < end; at++ {
			if !p.lost(r, at, proto.Left) && !p.lost(r, at, proto.Right) {
				p.ask(&p.nodes[r.nodes[at]], since)
			}
		}
		return
	}
}

// doubtEnd hails member "to" when member "by" has left it, and it has not
// left by, with its side s.
func (p *Planner) doubtEnd(r *ringView, by, to int, s proto.Side) {
	a, b := &p.nodes[r.nodes[by]], &p.nodes[r.nodes[to]]
	since := a.loss[1-s].at
	switch {
	case a.mute():
		since = a.hail.at
	case a.dead && a.hail.open:
		since = a.hail.at
	case !p.lost(r, by, 1-s):
		return
	}
	if !p.lost(r, to, s) {
		p.ask(b, since)
	}
}

// ask hails a node, unless it has been since the loss that speaks against it.
func (p *Planner) ask(b *nodeView, since time.Duration) {
	if !b.online || !b.usable() || b.hail.open || b.hail.at >= since || !p.linkUp || b.session == 0 {
		return
	}
	b.hail = hail{open: true, at: p.now, due: p.now + hailWait, corr: p.command(b, proto.Command{Verb: proto.VerbReannounce})}
	p.hails = append(p.hails, b.id)
	p.hailAt = min(p.hailAt, b.hail.due)
}

// checkHails looks at those that have not answered in time.
func (p *Planner) checkHails() {
	if p.now < p.hailAt || !p.linkUp {
		return
	}
	late := p.now > p.hailAt+hailGrace/2
	p.hailAt = Never
	var silent []proto.NodeID
	p.hails = slices.DeleteFunc(p.hails, func(id proto.NodeID) bool {
		h := &p.nodes[id].hail
		switch {
		case !h.open:
			return true
		case p.now >= h.due && late && !h.grace:
			h.grace, h.due = true, p.now+hailGrace
		case p.now >= h.due:
			h.due = Never
			silent = append(silent, id)
			return true
		}
		p.hailAt = min(p.hailAt, h.due)
		return false
	})
	for _, id := range silent {
		if r := p.ring(p.nodes[id].ring); r != nil {
			p.doubt(r)
			p.concludeDead(r)
		}
	}
}

// answered takes a sign that a node lives now, not one that it sent before it
// was asked.
func (p *Planner) answered(n *nodeView) {
	n.hail.open = false
	if n.dead {
		n.dead, n.reason = false, ""
		p.note(Info, "node is back", note{Rule: "presence", Node: int64(n.id), Ring: n.ring, Text: "it answers"})
	}
}

// forgetHails drops questions whose answers may be lost with a link.
func (p *Planner) forgetHails() {
	for _, id := range p.hails {
		p.nodes[id].hail.open = false
	}
	p.hails, p.hailAt = p.hails[:0], Never
}
