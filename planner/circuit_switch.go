package planner

import (
	"fmt"
	"time"

	"ringlight/proto"
)

// switchView is all that the planner knows of one switch. What an agent is to
// the planner of rings it is here too: sessions, reports, targets, refusals
// and events; rings, sides and losses mean nothing.
type switchView struct {
	nodeView
	shownAt time.Duration // when it first reported its target
	byHand  uint64        // changes at the board that it told of in a refusal
	tells   int           // times in a row that it was told again as its report differed
	tellAt  time.Duration // not again before
}

// quoted is how many changes at the board a plan knows of.
func (v *switchView) quoted() uint64 {
	if v.report == nil {
		return v.byHand
	}
	return max(v.byHand, v.report.BypassSeq)
}

// able: it can take part in a stage, and holds what it should.
func (v *switchView) able() bool { return v.ready() && !v.pending() && !v.unassigned }

func (v *switchView) whyUnable() string {
	switch {
	case v.whyNot() != "":
		return v.whyNot()
	case v.pending() || v.unassigned:
		return "has not taken its last generation"
	}
	return ""
}

// switchAt finds the view of a switch; a topic may name one that does not
// exist.
func (p *Planner) switchAt(id proto.NodeID) *switchView {
	if p.core == nil || !id.IsSwitch() || int(id-proto.FirstSwitch) >= len(p.core.switches) {
		return nil
	}
	return &p.core.switches[id-proto.FirstSwitch]
}

// view finds a node or a switch.
func (p *Planner) view(id proto.NodeID) *nodeView {
	if v := p.switchAt(id); v != nil {
		return &v.nodeView
	}
	return p.node(id)
}

// eachView calls f for every node and switch.
func (p *Planner) eachView(f func(*nodeView)) {
	for i := range p.nodes {
		f(&p.nodes[i])
	}
	if p.core != nil {
		for s := range p.core.switches {
			f(&p.core.switches[s].nodeView)
		}
	}
}

// agents is how many there are of both.
func (p *Planner) agents() int {
	n := len(p.nodes)
	if p.core != nil {
		n += len(p.core.switches)
	}
	return n
}

func (c *circuits) index(v *switchView) int { return int(v.id - proto.FirstSwitch) }

func (p *Planner) receiveSwitch(topic proto.Topic, payload []byte) {
	v := p.switchAt(topic.Node)
	if v == nil {
		p.refuse(-1, errNoNode)
		return
	}
	id := int64(v.id)
	switch topic.Kind {
	case proto.TopicPresence:
		m := new(proto.Presence)
		if p.decode(id, payload, m) && p.same(&v.nodeView, m.Node) {
			v.missed = false
			p.onSwitchPresence(v, m)
		}
	case proto.TopicReported:
		m := new(proto.Reported)
		if p.decode(id, payload, m) && p.same(&v.nodeView, m.Node) {
			p.onSwitchReported(v, m)
		}
	case proto.TopicEvent:
		m := new(proto.Event)
		if p.decode(id, payload, m) && p.same(&v.nodeView, m.Node) {
			p.onEvent(&v.nodeView, m)
		}
	case proto.TopicAck:
		m := new(proto.Ack)
		if p.decode(id, payload, m) && p.same(&v.nodeView, m.Node) {
			p.onSwitchAck(v, m)
		}
	}
}

// onSwitchPresence takes a birth or a death note; see onPresence.
func (p *Planner) onSwitchPresence(v *switchView, m *proto.Presence) {
	was := v.able()
	if !m.Online {
		if v.online && m.Session != v.session {
			return
		}
		p.hear(&v.nodeView)
		v.session = m.Session
		if v.online {
			p.switchOffline(v, "its death note came")
		}
		p.takeEarlySwitch(v)
		return
	}
	again := v.online && m.Session == v.session
	v.online, v.session, v.born = true, m.Session, *m
	if !again {
		v.refusal, v.refusals = refusal{}, 0
		p.forgive(v)
		v.resendAt, v.backoff = p.now, resendFirst
		p.core.sweepAt = p.now
		if int(m.Ports) < p.core.core.Pods {
			v.refusal = refusal{code: proto.Invalid, until: Never,
				reason: fmt.Sprintf("%d ports for %d pods", m.Ports, p.core.core.Pods)}
			p.note(Error, "switch is too small", note{Rule: "ports", Node: int64(v.id), Text: v.refusal.reason})
		}
	}
	p.sawTerm(m.SeenTerm)
	if v.report != nil && v.report.Session == v.session {
		p.hear(&v.nodeView)
	}
	p.changedCircuits(v, was)
	p.takeEarlySwitch(v)
}

// forgive forgets what did not come up on a switch that starts anew.
func (p *Planner) forgive(v *switchView) {
	c := p.core
	for s := range c.bad { // any order: each is judged by itself
		if s.sw == c.index(v) {
			delete(c.bad, s)
			p.replanCircuits(debounce)
		}
	}
	for s := range c.tried { // any order: each is judged by itself
		if s.sw == c.index(v) {
			delete(c.tried, s)
		}
	}
}

func (p *Planner) takeEarlySwitch(v *switchView) {
	if early := v.early; early != nil && early.Session == v.session {
		v.early = nil
		p.onSwitchReported(v, early)
	}
}

// switchOffline notes that nobody speaks for a switch any more. Its light
// stays: mirrors hold.
func (p *Planner) switchOffline(v *switchView, why string) {
	was := v.able()
	v.online, v.missed, v.goneAt = false, false, p.now
	p.note(Info, "switch offline", note{Rule: "presence", Node: int64(v.id), Text: why + "; its circuits stay as they are"})
	p.circuitPartLost(v, "went offline")
	p.changedCircuits(v, was)
}

// onSwitchReported takes a report; see onReported.
func (p *Planner) onSwitchReported(v *switchView, m *proto.Reported) {
	c := p.core
	p.sawTerm(m.SeenTerm)
	if m.Session != v.session {
		v.early = m
		return
	}
	if v.report != nil && v.report.Session == m.Session && m.Seq < v.report.Seq {
		return
	}
	p.hear(&v.nodeView)
	was, wasPending := v.able(), v.pending()
	v.events.restarted(m)
	v.report, v.reportAt = m, p.now
	v.speaks()
	c.gen = max(c.gen, m.Generation, m.StagedGeneration)
	c.dark = max(c.dark, m.DarkMicros)
	if wasPending && !v.pending() {
		v.resendAt, v.shownAt = Never, p.now
	}
	if v.shownAt == 0 {
		v.shownAt = p.now // a former planner's switch may still be at it
	}
	if !wasPending && v.pending() && v.want.gen != 0 {
		// It lost what it had, to a loss of power of its board: tell it again.
		v.resendAt, v.backoff = p.now, resendFirst
		c.sweepAt = p.now
	}
	if c.heard && v.want.gen == 0 && !v.unassigned {
		p.adoptSwitch(v)
	}
	p.readCircuits(v)
	p.changedCircuits(v, was)
}

// readCircuits looks at the circuits of a switch that holds its target. One
// that has failed, or is not what is wanted - after a loss of power, or by
// somebody at the board - is told again once; if that does not help, its link
// goes elsewhere if it can.
func (p *Planner) readCircuits(v *switchView) {
	c := p.core
	if !c.heard || v.want.gen == 0 || v.pending() || v.unassigned || c.state != circuitsResting || c.open.active() {
		return
	}
	s := c.index(v)
	at, _ := c.deckOf(s)
	want := c.circuitsOf(s, c.decks[at])
	again := len(want) != len(v.report.Circuits)
	var failed []slot // and not told again so far
	for _, x := range want {
		k := slot{s, x.A, x.B}
		switch r := c.reportOf(s, x.A, x.B); {
		case r == nil || r.Job != x.Job:
			again = true
		case r.State == proto.Tuned:
			delete(c.bad, k)
			delete(c.tried, k)
		case r.State == proto.Failed && !c.bad[k] && (c.tried[k] == 0 || c.tried[k] == v.want.gen):
			failed, again = append(failed, k), true
		case r.State == proto.Failed && !c.bad[k]:
			c.bad[k] = true
			p.note(Warn, "circuit has failed", note{Rule: "circuit_failed", Node: int64(v.id),
				Text: fmt.Sprintf("port %d to %d, job %d", x.A, x.B, x.Job)})
			p.replanCircuits(debounce)
		}
	}
	switch {
	case !again:
		v.tells = 0
	case p.now < v.tellAt:
		p.replanCircuits(v.tellAt - p.now)
	default:
		v.tellAt = p.now + min(renewFirst<<min(v.tells, 10), renewLast)
		v.tells++
		v.unassigned = true
		for _, k := range failed {
			c.tried[k] = v.want.gen
		}
		p.note(Info, "switch is to be told again", note{Rule: "renew", Node: int64(v.id), Gen: v.want.gen, Text: "it reports other circuits than it was told, or failed ones"})
	}
}

func (p *Planner) onSwitchAck(v *switchView, m *proto.Ack) {
	if v.online && m.Session != v.session {
		return // of a former life
	}
	p.sawTerm(m.CurrentTerm)
	was := v.able()
	v.speaks()
	switch m.Phase {
	case proto.PhasePrepare:
		p.onSwitchPrepared(v, m)
	case proto.PhaseCommit:
		if m.Code == proto.NotStaged && v.pending() {
			v.resendAt, v.backoff = p.now, resendFirst
			p.core.sweepAt = p.now
		}
	case proto.PhaseCommand:
		p.onAnswer(&v.nodeView, m)
	case proto.PhaseProtocol:
		p.line(Warn, "switch refused a message", "protocol", int64(v.id), 0, m.Generation,
			proto.Clip(fmt.Sprintf("%s %s (limit %s): %s", m.Code, m.Field, m.Limit, m.Reason)))
	}
	if v.able() != was {
		p.changedCircuits(v, was)
	}
}

// actSwitch draws from a switch's event what cannot wait for its report.
func (p *Planner) actSwitch(v *nodeView, m *proto.Event) {
	if m.Kind == proto.EvSplitBrain {
		p.note(Error, "another plan with the same number", note{Rule: "split_brain", Node: int64(v.id), Gen: m.Generation, Text: m.Text})
	}
}

// judgeSwitch finds switches that no re-sending brings to what is wanted.
func (p *Planner) judgeSwitch(v *switchView) {
	if !p.core.heard || v.unassigned || !v.pending() || v.report == nil {
		return
	}
	if v.want.term != p.term || v.want.payload == nil {
		v.unassigned = true
	}
}

// retrySwitches asks switches again that refused some time ago.
func (p *Planner) retrySwitches() {
	for s := range p.core.switches {
		if v := &p.core.switches[s]; v.refusal.code != proto.OK && p.now >= v.refusal.until {
			v.refusal = refusal{}
			p.replanCircuits(0)
		}
	}
}

// sweepSwitches sends again what switches have not reported: the desired state,
// and the decision behind it.
func (p *Planner) sweepSwitches() {
	c := p.core
	c.sweepAt = Never
	for s := range c.switches {
		v := &c.switches[s]
		if !v.online || !v.pending() {
			continue
		}
		p.judgeSwitch(v)
		if v.unassigned {
			p.replanCircuits(0)
			continue
		}
		if v.resendAt <= p.now {
			p.sendRaw(p.topics.Desired(v.id), proto.TopicDesired, v.want.payload)
			p.sendDecision(c.core.GroupID(s/c.core.SpinePorts), v.want.decided)
			v.resendAt = p.now + v.backoff
			v.backoff = min(2*v.backoff, resendLast)
		}
		c.sweepAt = p.now + sweepPeriod
	}
}

// circuitsLinkUp: nothing sent without a broker arrived.
func (p *Planner) circuitsLinkUp() {
	c := p.core
	if c == nil {
		return
	}
	for s := range c.switches {
		v := &c.switches[s]
		if v.online {
			v.missed, p.rollAt = true, p.now+rollPatience
		}
		if v.pending() {
			v.resendAt, v.backoff = p.now, resendFirst
			c.sweepAt = p.now
		}
	}
	if c.state == circuitsPreparing {
		c.txn.deadline = p.now + prepareTimeout
		p.resendCircuits(true)
	}
	if c.open.active() {
		c.open.since = p.now
	}
	p.replanCircuits(0)
}

// callSwitches takes those for offline that did not come back with the broker.
func (p *Planner) callSwitches() {
	if p.core == nil {
		return
	}
	for s := range p.core.switches {
		if v := &p.core.switches[s]; v.online && v.missed {
			p.switchOffline(v, "it did not come back with the broker")
		}
	}
}
