package hbd

import (
	"cmp"
	"fmt"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// evidence is what the planner concludes, and from what. A node that says
// itself that it is out is believed. An agent that is offline proves nothing
// about its light: only when both neighbours have lost it is the node held to
// be dead, or when one has and its agent stays away.
type evidence struct {
	pl       *placement
	agenda   *agenda
	j        *journal.Journal
	root     Root
	died     func(n *node, why string) // tells who may wait for a node that is dead
	doubt    func(d *member.Device)    // has one asked until it answers
	cuts     cuts
	probes   probes
	patience ring.Patience
}

// Conclude draws what silence proves.
func (e *evidence) Conclude() {
	for _, n := range e.probes.due() {
		e.doubt(n.Device) // the question or its answer may be lost
		if r := e.pl.ring(n.Device.Group); r != nil {
			e.watch(r)
			e.agenda.replan(0) // silence is the last that was waited for, unless others of the ring are asked
		}
	}
	e.checkCuts()
}

// askOther asks a well member of a node's ring whether it is there.
func (e *evidence) askOther(n *node) {
	r := e.pl.ring(n.Device.Group)
	if r == nil {
		return
	}
	for _, id := range r.nodes {
		if m := &e.pl.nodes[id]; m != n && m.usable() && m.Device.Ready() && !m.probe.open && m.Device.Session != 0 {
			e.j.Command(id, m.Device.Session, proto.Command{Verb: proto.VerbReannounce})
			return
		}
	}
}

// watch asks and concludes who of a ring is dead.
func (e *evidence) watch(r *ringView) {
	if e.root.Busy() == "" {
		asked := len(e.probes.open)
		e.probes.doubt(r)
		for _, n := range e.probes.open[asked:] {
			e.doubtIdle(n)
		}
	}
	e.concludeDead(r)
}

// doubtIdle asks the idle nodes within reach of a member that is asked, too:
// one of them would take its place, and may have gone with it unmissed.
func (e *evidence) doubtIdle(member *node) {
	for hop := -e.pl.order.K; hop <= e.pl.order.K; hop++ {
		at := int(member.Device.ID) + hop
		if e.pl.order.Wrap {
			at = (at + e.pl.order.Nodes) % e.pl.order.Nodes
		}
		if at >= 0 && at < e.pl.order.Nodes && e.pl.nodes[at].Device.Group == 0 && e.pl.free(proto.NodeID(at)) {
			e.probes.ask(&e.pl.nodes[at], member.probe.at, probeWait)
			e.pl.reads(proto.NodeID(at))
		}
	}
}

// concludeDead looks for runs of offline members between members that have
// lost them.
func (e *evidence) concludeDead(r *ringView) {
	for i := 0; i < len(r.nodes); {
		if !r.doubted(i) {
			i++
			continue
		}
		first := i
		for i++; r.step == 0 && i < len(r.nodes) && r.doubted(i); i++ {
		}
		left := r.peer(first, proto.Left) < 0 || r.missing(first, proto.Left)
		right := r.peer(i-1, proto.Right) < 0 || r.missing(i-1, proto.Right)
		if first == 0 && i == len(r.nodes) || (!left || !right) && !e.abandoned(r, first, i) {
			continue
		}
		for at := first; at < i; at++ {
			if n := r.at(at); !n.dead && n.usable() {
				e.die(r, at, first, i)
			}
		}
	}
}

// abandoned: nobody has spoken for a run of members for a while, and one
// neighbour has lost its light. Their lasers may shine on, but nobody moves
// them: a piece stays open until the other neighbour passes them by too.
func (e *evidence) abandoned(r *ringView, first, end int) bool {
	if !r.missing(first, proto.Left) && !r.missing(end-1, proto.Right) {
		return false
	}
	for _, id := range r.nodes[first:end] {
		n := &e.pl.nodes[id]
		if !n.usable() {
			continue
		}
		gone := n.Device.GoneAt
		if n.Device.Online() {
			gone = n.probe.at
		}
		if wait := gone + agentPatience - e.j.Now; wait > 0 {
			e.agenda.mark(r)
			e.agenda.replan(wait)
			return false
		}
	}
	return true
}

func (e *evidence) die(r *ringView, at, first, end int) {
	n, left := r.at(at), r.missing(first, proto.Left)
	n.dead = true
	var by string
	switch {
	case !left:
		by = fmt.Sprintf("node %d has lost its light", r.nodes[r.peer(end-1, proto.Right)])
		if at == end-1 {
			n.own().parted = parting{n.Device.Session, r.nodes[r.peer(at, proto.Right)]}
		}
	case !r.missing(end-1, proto.Right):
		by = fmt.Sprintf("node %d has lost its light", r.nodes[r.peer(first, proto.Left)])
		if at == first {
			n.own().parted = parting{n.Device.Session, r.nodes[r.peer(at, proto.Left)]}
		}
	default:
		by = fmt.Sprintf("nodes %d and %d have lost its light", r.nodes[r.peer(first, proto.Left)], r.nodes[r.peer(end-1, proto.Right)])
	}
	what, word := "is offline", "dead"
	if n.Device.Online() {
		what = "does not answer"
	}
	if !r.missed(at, first, end) {
		word = "unreachable"
	}
	shown := "its agent " + what + " and " + by
	n.because(word + ": " + shown)
	e.j.Note(journal.Warn, "node is "+word, journal.Note{Rule: word, Node: int64(n.Device.ID), Ring: r.id, Gen: r.Gen, Cause: proto.CauseLightLost, Text: shown})
	e.agenda.markNode(n)
	e.agenda.replan(debounce)
	e.died(n, n.reason)
	if n.Device.Online() {
		e.doubt(n.Device) // it may only not have heard the question, or we not its answer
	}
}

// missed: light shows that a member of a run is dead: both members beside the run have
// lost it, or one beside this member has, and none has its light.
func (r *ringView) missed(at, first, end int) bool {
	left, right := r.missing(first, proto.Left), r.missing(end-1, proto.Right)
	before, after := r.peer(first, proto.Left), r.peer(end-1, proto.Right)
	if (left || before < 0) && (right || after < 0) {
		return true
	}
	sees := func(by int, s proto.Side) bool { return r.at(by).Device.Ready() && r.side(by, s) }
	lit := at == first && before >= 0 && sees(before, proto.Right) || at == end-1 && after >= 0 && sees(after, proto.Left)
	return !lit && (left && at == first || right && at == end-1)
}

// watchRing follows a ring's state, and finds one that is split though every
// member is well and has been told: it is formed anew, less and less often.
func (e *evidence) watchRing(r *ringView) {
	was := r.state
	r.state = r.stateNow()
	e.pl.tell(r)
	e.pl.unsettle(r)
	if r.state != was {
		r.since = e.j.Wall
		e.pl.touchRing(r.id)
		level := journal.Info
		if r.state == proto.RingDown || r.state == proto.RingDegraded {
			level = journal.Warn
		}
		e.j.Line(journal.Line{Level: level, Message: "ring " + r.state.String(), Node: -1, Ring: r.id, Generation: r.Gen})
	}
	all := r.seeLight() == r.linkCount()
	if e.cuts.prove(r); all {
		r.splitAt, r.renewed, r.renewAt = 0, 0, 0
		return
	}
	if e.root.Listening() {
		return
	}
	apart := e.concludeParted(r)
	if !r.allWell() || r.renew {
		r.splitAt = 0
		return
	}
	r.splitAt = cmp.Or(r.splitAt, max(1, e.j.Now))
	if r.slow > 0 {
		r.splitAt = max(r.splitAt, r.toldAt+r.slow-splitWait)
	} else if apart {
		r.splitAt = max(1, min(r.splitAt, e.j.Now-splitWait)) // both ends say so: nothing to wait for
	}
	e.agenda.mark(r)
	e.agenda.replan(max(r.splitAt+splitWait, r.renewAt) - e.j.Now)
}

// dueSplit marks a split ring for a new attempt. After some attempts the
// fibres that stayed dark are held to be cut, and the placement avoids them.
func (e *evidence) dueSplit(r *ringView) {
	if r.splitAt == 0 || e.j.Now < r.splitAt+splitWait || e.j.Now < r.renewAt {
		return
	}
	r.splitAt = 0
	if blamed := e.cuts.onProbation(r, e.j.Now); len(blamed) > 0 {
		for _, at := range blamed {
			e.hold(r, at, "no steady light")
		}
		e.agenda.mark(r)
		e.agenda.replan(debounce)
		return
	}
	if r.renewed >= renewsToCut || r.slow == 0 && e.cuts.doubtful(r) {
		e.concludeCut(r)
	}
	r.renewAt = e.j.Now + min(renewFirst<<min(r.renewed, 10), renewLast)
	r.renewed++
	r.renew = true
	e.j.Note(journal.Warn, "ring is split though its members are well", journal.Note{Rule: "rejoin", Node: -1, Ring: r.id, Gen: r.Gen,
		Text: "formed anew; nodes that returned are let in again"})
}
