package planner

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// A generation: every touched node prepares, the decision goes to the store,
// then it is published. Until it is in the store it is presumed aborted, and
// nothing anywhere depends on it.

// txn is the generation under way.
type txn struct {
	decided
	proposal *proposal
	parts    []part // by node
	waiting  int    // parts that have not prepared
	deadline time.Duration
	resendAt time.Duration
	backoff  time.Duration
	persist  uint64
	joinAt   time.Duration // when those who would join and do not answer are left out
	text     string
}

// part is one node's share.
type part struct {
	node     proto.NodeID
	payload  []byte
	bypass   uint64
	prepared bool
	joins    bool // a running ring, from none
}

func (t *txn) part(id proto.NodeID) *part {
	lo, hi := 0, len(t.parts)
	for lo < hi {
		if mid := (lo + hi) / 2; t.parts[mid].node < id {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(t.parts) && t.parts[lo].node == id {
		return &t.parts[lo]
	}
	return nil
}

// bypass is the bypass count that a node's share quotes.
func (t *txn) bypass(id proto.NodeID) uint64 {
	if part := t.part(id); part != nil {
		return part.bypass
	}
	return 0
}

// prepare sends the desired states of a new generation.
func (p *Planner) prepare(q *proposal) {
	gen := p.gen + 1
	desired := p.desired(q, gen)
	plan, err := proto.PlanDigest(desired)
	if err != nil {
		panic("planner: own plan is refused: " + err.Error())
	}
	t := txn{decided: decided{p.term, gen, plan}, proposal: q, waiting: len(desired),
		deadline: p.now + prepareTimeout, resendAt: p.now + resendFirst, backoff: resendFirst, text: p.explain(q)}
	for i := range desired {
		desired[i].Plan = plan
		payload, err := proto.Encode(&desired[i])
		if err != nil {
			panic("planner: own desired state is refused: " + err.Error())
		}
		t.parts = append(t.parts, part{node: desired[i].Node, payload: payload, bypass: desired[i].BypassSeq})
	}
	p.gen = gen
	p.markJoins(&t)
	p.txn = t
	p.become(preparing)
	p.line(Info, "generation prepares", "prepare", -1, 0, gen, t.text)
	p.resendPrepares(true)
	if t.waiting == 0 {
		p.decide() // only rings without a node left: nobody to ask
	}
}

// markJoins finds the nodes that would join a running ring. They may be left
// out where someone else is asked too.
func (p *Planner) markJoins(t *txn) {
	t.joinAt = Never
	joins := 0
	for _, r := range t.proposal.rings {
		if p.ring(r.id) == nil {
			continue
		}
		for _, id := range r.nodes {
			if p.nodes[id].ring == 0 {
				t.part(id).joins = true
				joins++
			}
		}
	}
	if joins > 0 && joins < len(t.parts) {
		t.joinAt = p.now + joinWait
	}
}

// leaveOut gives up on joining nodes that keep all others waiting. It reports
// whether the generation is over.
func (p *Planner) leaveOut() bool {
	if p.now < p.txn.joinAt {
		return false
	}
	for i := range p.txn.parts {
		if t := &p.txn.parts[i]; !t.prepared && !t.joins {
			p.txn.joinAt = p.now + joinWait // it is not the joining ones who keep the others waiting
			return false
		}
	}
	for i := range p.txn.parts {
		if t := &p.txn.parts[i]; !t.prepared {
			p.nodes[t.node].silent = true
			p.note(Warn, "node did not answer a prepare", note{Rule: "left_out", Node: int64(t.node), Gen: p.txn.gen,
				Text: fmt.Sprintf("generation %d goes on without it after %v", p.txn.gen, joinWait)})
		}
	}
	p.betterAt = max(p.betterAt, p.now+slowWait)
	p.abort("a node that would join did not answer")
	return true
}

// resendPrepares sends what was not answered, and with all set to everyone
// who has not.
func (p *Planner) resendPrepares(all bool) {
	if all || p.now >= p.txn.resendAt {
		for i := range p.txn.parts {
			if t := &p.txn.parts[i]; !t.prepared {
				p.sendRaw(p.topics.Desired(t.node), proto.TopicDesired, t.payload)
			}
		}
		p.txn.resendAt = p.now + p.txn.backoff
		p.txn.backoff = min(2*p.txn.backoff, resendLast)
	}
}

func (p *Planner) checkPrepare() {
	if !p.linkUp || p.leaveOut() {
		return
	}
	if p.now >= p.txn.deadline {
		for i := range p.txn.parts {
			if t := &p.txn.parts[i]; !t.prepared {
				p.nodes[t.node].silent = true
				p.note(Warn, "node did not answer a prepare", note{Rule: "presumed_abort", Node: int64(t.node), Gen: p.txn.gen,
					Text: fmt.Sprintf("generation %d, %d s", p.txn.gen, int(prepareTimeout.Seconds()))})
			}
		}
		p.abort("not every node answered in time")
		return
	}
	p.resendPrepares(false)
}

// participantLost ends a generation that waits for a node which is gone.
func (p *Planner) participantLost(n *nodeView, why string) {
	if p.state != preparing {
		return
	}
	if t := p.txn.part(n.id); t != nil {
		p.abort(fmt.Sprintf("node %d: %s", n.id, why))
	}
}

// abort forgets the generation; what the nodes hold staged has no effect, and
// the word that frees it need not arrive.
func (p *Planner) abort(why string) {
	gen, rings, gone := p.txn.gen, p.txn.proposal.rings, p.txn.proposal.gone
	p.wantBetter = true
	p.txn = txn{}
	p.become(idle)
	for _, r := range rings {
		p.stir(p.ring(r.id))
	}
	for _, id := range gone {
		p.stir(p.ring(id))
	}
	p.note(Warn, "generation aborted", note{Rule: "presumed_abort", Node: -1, Gen: gen, Text: why})
	p.replan(0)
}

// onAck takes an agent's answer.
func (p *Planner) onAck(n *nodeView, m *proto.Ack) {
	if n.online && m.Session != n.session {
		return // of a former life
	}
	p.sawTerm(m.CurrentTerm)
	if n.hail.open && m.Corr == n.hail.corr {
		before := n.flags()
		p.answered(n)
		p.changed(n, before)
	}
	if n.silent {
		before := n.flags()
		n.silent = false
		p.changed(n, before)
	}
	switch m.Phase {
	case proto.PhasePrepare:
		p.onPrepared(n, m)
	case proto.PhaseCommit:
		if m.Code == proto.NotStaged && n.pending() {
			n.resendAt, n.backoff = p.now, resendFirst
			p.sweepAt = p.now
		}
	case proto.PhaseCommand:
		p.onAnswer(n, m)
	case proto.PhaseProtocol:
		// Logged, not kept: a flood of them must not push the events out.
		p.line(Warn, "agent refused a message", "protocol", int64(n.id), n.ring, m.Generation,
			proto.Clip(fmt.Sprintf("%s %s (limit %s): %s", m.Code, m.Field, m.Limit, m.Reason)))
	}
}

func (p *Planner) onPrepared(n *nodeView, m *proto.Ack) {
	if (decided{m.Term, m.Generation, m.Plan}) == n.want.decided && n.pending() && m.Code != proto.OK && m.Code != proto.Duplicate {
		// It lost what it had staged, and moved: the committed share will not
		// do any more, however often it is sent.
		p.tellAnew(n, fmt.Sprintf("node %d refuses generation %d sent again: %s %s", n.id, n.want.gen, m.Code, m.Reason))
		return
	}
	if p.state != preparing || m.Term != p.txn.term || m.Generation != p.txn.gen || m.Plan != p.txn.plan {
		return
	}
	t := p.txn.part(n.id)
	if t == nil || t.prepared {
		return
	}
	if m.Code == proto.OK || m.Code == proto.Duplicate {
		t.prepared = true
		n.refusals = 0
		if p.txn.waiting--; p.txn.waiting == 0 {
			p.decide()
		}
		return
	}
	p.refused(n, m)
}

// refused takes a node's no: the generation is given up, and the next goes
// without the node until what it was about has changed, or some time is over.
func (p *Planner) refused(n *nodeView, m *proto.Ack) {
	n.refusals++
	wait := min(resendFirst<<min(n.refusals-1, 10), renewLast)
	p.refusing = append(p.refusing, n.id)
	n.refusal = refusal{code: m.Code, gen: m.Generation, bypassSeq: p.txn.bypass(n.id), reason: proto.Clip(m.Field + " " + m.Limit + " " + m.Reason), until: p.now + wait}
	if n.report != nil {
		n.refusal.lastEvent = n.report.LastEvent
	}
	switch m.Code {
	case proto.Stale:
		// It holds a higher generation of our own term than we knew of.
		n.refusal = refusal{}
		p.gen = max(p.gen, m.CurrentGeneration)
	case proto.Conflict:
		n.refusal.until = p.now + settleWait
		if m.BypassSeq > p.txn.bypass(n.id) && m.BypassSeq >= n.bypass && n.refusals <= maxRecounts {
			n.bypass, n.refusal = m.BypassSeq, refusal{} // it says itself what to quote
		}
	case proto.NotCalibrated:
		n.refusal.calibs = calibrationsOf(n.report)
	}
	p.note(Warn, "node refused a plan", note{Rule: "refused", Node: int64(n.id), Gen: p.txn.gen,
		Text: proto.Clip(fmt.Sprintf("%s %s (limit %s): %s", m.Code, m.Field, m.Limit, m.Reason))})
	p.abort(fmt.Sprintf("node %d refused: %s", n.id, m.Code))
}

// decide puts the decision into the store; only then it is one.
func (p *Planner) decide() {
	p.become(deciding)
	p.txn.persist = p.persist(p.commitRecords())
}

// commit publishes a decision that is on disk.
func (p *Planner) commit() {
	t := p.txn
	p.txn = txn{}
	p.nextRing = t.proposal.next
	for _, id := range t.proposal.gone {
		for _, n := range p.ring(id).nodes {
			p.leave(n)
		}
		p.dropRing(id)
	}
	// All leave before any enters: a node may go from one ring to another.
	for _, r := range t.proposal.rings {
		if old := p.ring(r.id); old != nil {
			for _, n := range old.nodes {
				p.leave(n)
			}
		}
	}
	for _, r := range t.proposal.rings {
		p.enter(r, t.decided)
		p.stir(p.ring(r.id))
	}
	for i := range t.parts {
		n := &p.nodes[t.parts[i].node]
		n.want = target{t.decided, t.parts[i].payload}
		n.unassigned = false
		n.loss = [2]lossView{}
		n.resendAt, n.backoff = p.now+resendFirst, resendFirst
	}
	for _, id := range t.proposal.idle {
		p.place(id, 0)
		p.stirNear(id)
	}
	p.sweepAt = p.now + sweepPeriod
	p.become(idle)
	p.note(Info, "generation committed", note{Rule: "commit", Node: -1, Gen: t.gen, Cause: proto.CausePlan, Text: t.text})
	for _, r := range t.proposal.rings {
		p.sendDecision(r.id, t.decided)
	}
	if len(t.proposal.idle) > 0 {
		p.idleDecision = t.decided
		p.sendDecision(0, t.decided)
	}
	if len(t.proposal.stage) > 0 {
		p.stage, p.stageAt = t.proposal.stage, p.now
	}
	p.replan(debounce)
	p.sawTerm(p.seenTerm)
}

// enter puts a ring's new members in place of the old, who have left.
func (p *Planner) enter(r *ringView, d decided) {
	r.decided, r.lit = d, make([]bool, len(r.nodes)-1)
	old := p.ring(r.id)
	if old != nil {
		r.renewed, r.renewAt, r.stirred = old.renewed, old.renewAt, old.stirred
		r.moved = old.state == proto.RingInService && !slices.Equal(old.nodes, r.nodes)
	}
	for _, n := range r.nodes {
		p.place(n, r.id)
	}
	if old != nil {
		*old = *r
		return
	}
	p.rings = append(p.rings, r) // ring numbers only grow
}

// leave takes a node out of its ring; whoever can be told is a participant
// and gets its new place after this.
func (p *Planner) leave(id proto.NodeID) {
	p.place(id, 0)
	p.unassign(&p.nodes[id])
}

func (p *Planner) dropRing(id proto.RingID) {
	for i, r := range p.rings {
		if r.id == id {
			p.rings = append(p.rings[:i], p.rings[i+1:]...)
			return
		}
	}
}

func (p *Planner) sendDecision(r proto.RingID, d decided) {
	if !p.linkUp {
		return // the sweep after the next LinkUp sends it
	}
	p.send(p.topics.Decision(r), proto.TopicDecision, &proto.Decision{
		Version: proto.Version, Ring: r, Term: d.term, Generation: d.gen, Plan: d.plan, Verdict: proto.Commit,
	})
}

// sweep sends again what nodes have not reported: their desired state, then
// the decision, once for each ring.
func (p *Planner) sweep() {
	p.sweepAt = Never
	if p.state == gathering || p.state == fenced || p.state == raising {
		p.sweepAt = p.now + sweepPeriod
		return
	}
	var decisions []*nodeView // one of each ring
	for i := range p.nodes {
		n := &p.nodes[i]
		if !n.pending() || !n.online {
			continue
		}
		p.judge(n)
		if n.unassigned || n.want.term != p.term || n.want.payload == nil {
			continue // a new generation tells it
		}
		if n.resendAt <= p.now {
			p.sendRaw(p.topics.Desired(n.id), proto.TopicDesired, n.want.payload)
			n.resendAt = p.now + n.backoff
			n.backoff = min(2*n.backoff, resendLast)
			if !slices.ContainsFunc(decisions, func(x *nodeView) bool { return x.ring == n.ring }) {
				decisions = append(decisions, n)
			}
		}
		p.sweepAt = p.now + sweepPeriod
	}
	for _, n := range decisions {
		p.sendDecision(n.ring, n.want.decided)
	}
}
