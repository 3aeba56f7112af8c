package hbd

import (
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// A node whose power is gone tells nobody, and the broker needs a keep-alive
// and a half to notice. But whoever lives speaks when a neighbour leaves it:
// its own light is gone then too. So a member that says nothing while its
// neighbour has lost its light is probed, and one that does not answer either
// is silent: with light lost on both sides of it, it is dead.

const (
	// probeWait is how long an answer may take at least, since every split ring waits
	// for it. chosen: ten times the way there and back on a management network. Where
	// answers took longer they may (patience). One that comes after takes the node in
	// again, which had no light from either side anyway.
	probeWait = 10 * time.Millisecond
	// probeMost is how long it may take at most, answers slow or none at all. chosen:
	// a ring waits no longer for what other nodes say.
	probeMost = time.Second
	// probeFar is how long it may take at least where nobody has lost the node's light and
	// only its neighbour is silent: one that is slow to answer may not leave its ring for
	// that. chosen: ten times the above; two nodes at a ring's end that die at once.
	probeFar = 100 * time.Millisecond
	// probeGrace is given once where the planner itself was late to look, since
	// the answer may lie behind what kept it: its disk, for one.
	probeGrace = 10 * time.Millisecond
)

// probe is a question to a node that is not answered yet when open.
type probe struct {
	open  bool
	grace bool
	alone bool // nobody had said anything since it was asked, when its answer was due
	corr  proto.Corr
	at    time.Duration
	due   time.Duration
}

// unanswered: it was probed and has not answered in time.
func (n *node) unanswered() bool { return n.probe.open && n.probe.due == journal.Never }

// asked: it was probed and may still answer.
func (n *node) asked() bool { return n.probe.open && n.probe.due != journal.Never }

// heard: no answer of it is waited for any more.
func (n *node) heard() {
	if n.probe.open {
		n.own().probe.open = false
	}
}

// probes are the questions under way.
type probes struct {
	j     *journal.Journal
	open  []*node
	at    time.Duration // when the next of them is due
	heard time.Duration // when anybody said anything, the last time
	alone bool          // one is waited for of whom nobody has said anything
	other func(n *node) // asks another one than a node that does not answer
	// How long answers took: smoothed, and by how much they differ, as TCP has it
	// (RFC 6298).
	took, spread time.Duration
}

// answered takes how long an answer took.
func (p *probes) answered(n *node) {
	x := p.j.Now - n.probe.at
	if p.took == 0 {
		p.took, p.spread = x, x/2
		return
	}
	p.spread += ((p.took - x).Abs() - p.spread) / 4
	p.took += (x - p.took) / 8
}

// patience is how long an answer may take.
func (p *probes) patience() time.Duration {
	return min(max(probeWait, p.took+4*p.spread), probeMost)
}

// joins is how long a repair waits for a node from outside: as many times longer than
// for a probe as it takes to write a plan down.
func (p *probes) joins() time.Duration {
	return min(joinWait/probeWait*p.patience(), probeMost)
}

// ask probes a node, unless it has been since the loss that speaks against it.
func (p *probes) ask(n *node, since, wait time.Duration) {
	if !n.Device.Online() || !n.usable() || n.probe.open || n.probe.at >= since || !p.j.LinkUp || n.Device.Session == 0 {
		return
	}
	n.own().probe = probe{open: true, at: p.j.Now, due: p.j.Now + max(wait, p.patience()), corr: p.j.Command(n.Device.ID, n.Device.Session, proto.Command{Verb: proto.VerbReannounce})}
	p.open = append(p.open, n)
	p.at = min(p.at, n.probe.due)
}

// due lists those that have not answered in time.
func (p *probes) due() (unanswered []*node) {
	if p.j.Now < p.at || !p.j.LinkUp {
		return nil
	}
	late := p.j.Now > p.at+probeGrace/2
	p.at, p.alone = journal.Never, false
	p.open = slices.DeleteFunc(p.open, func(n *node) bool {
		if !n.probe.open {
			return true
		}
		switch x := &n.own().probe; {
		case p.j.Now >= x.due && late && !x.grace:
			x.grace, x.due = true, p.j.Now+probeGrace
		case p.j.Now >= x.due && p.heard <= x.at && p.j.Now < x.at+probeMost:
			// No node has spoken since: the planner's own link may be down. Another node that
			// reported the loss is asked; if it answers, the fault is with this node.
			x.due, x.alone, p.alone = min(x.at+probeMost, p.j.Now+(p.j.Now-x.at)), true, true
			p.other(n)
		case p.j.Now >= x.due, x.alone && p.heard > x.at:
			x.due = journal.Never
			unanswered = append(unanswered, n)
			return true
		}
		p.at = min(p.at, n.probe.due)
		return false
	})
	return unanswered
}

// forget drops questions whose answers may be lost with a link, and tells whose.
func (p *probes) forget(of func(proto.NodeID)) {
	for _, n := range p.open {
		n.heard()
		of(n.Device.ID)
	}
	p.open, p.at = p.open[:0], journal.Never
}

// doubt probes the members of a ring that must have lost a neighbour's light
// and do not say so.
func (p *probes) doubt(r *ringView) {
	for at, to := range r.links {
		if !r.lit[at] {
			continue // it never had light, or one of the two was away: no report is due
		}
		p.doubtEnd(r, at, to, proto.Left)
		p.doubtEnd(r, to, at, proto.Right)
		if r.step == 0 && r.lost(at, proto.Right) {
			p.doubtRun(r, at)
		}
	}
}

// maxRun bounds the run of members that are probed at once. chosen: a rack's
// power supply fails nodes in threes and fours.
const maxRun = 4

// doubtRun probes all of a short run of members between two that have left it:
// those in the middle have no neighbour that could tell, and one may have told
// of its neighbour and gone itself.
func (p *probes) doubtRun(r *ringView, before int) {
	for end := min(before+maxRun+1, len(r.nodes)-1); end > before; end-- {
		if !r.lost(end, proto.Left) {
			continue
		}
		since := max(r.at(before).loss[proto.Right].at, r.at(end).loss[proto.Left].at)
		for at := before + 1; at < end; at++ {
			if !r.lost(at, proto.Left) || !r.lost(at, proto.Right) {
				p.ask(r.at(at), since, probeWait)
			}
		}
		return
	}
}

// doubtEnd probes member "to" when member "by" has left it, and it has not
// left by, with its side s. One that is offline tells nothing: whoever is beyond
// it speaks in its place.
func (p *probes) doubtEnd(r *ringView, by, to int, s proto.Side) {
	a, b := r.at(by), r.at(to)
	since, wait, beyond := a.loss[1-s].at, probeFar, r.peer(by, s)
	if r.lost(by, 1-s) {
		wait = probeWait
	}
	switch {
	case a.unanswered() || a.dead && a.probe.open:
		since = a.probe.at
	case wait == probeWait:
	case !a.Device.Online() && beyond >= 0 && r.lost(beyond, 1-s):
		since = r.at(beyond).loss[1-s].at
	default:
		return
	}
	if !r.lost(to, s) {
		p.ask(b, since, wait)
	}
}
