package planner

import (
	"fmt"
	"time"

	"ringlight/proto"
)

// nodeView is all that the planner knows of one node.
type nodeView struct {
	id       proto.NodeID
	heard    bool // anything at all, since this planner started
	online   bool
	missed   bool // online before the broker was lost, not heard since
	session  proto.Session
	born     proto.Presence  // the last birth
	report   *proto.Reported // the last one, of the last session that sent any
	reportAt time.Duration   // when it came
	early    *proto.Reported // of a session whose birth has not come yet

	ring proto.RingID // committed, 0 = none
	want target       // what was committed for it
	// unassigned: it lost its place while it could not be told, or was never
	// given any. It is told when it is well.
	unassigned bool
	leaving    bool // is being drained
	stray      bool // is on the list of those to be told

	bypass  uint64      // the highest bypass count that it told of
	loss    [2]lossView // by side
	said    saidFault
	hail    hail
	dead    bool          // concluded from its neighbours
	goneAt  time.Duration // when its agent went offline
	reason  string        // why it is dead or out of service, for people
	refusal refusal
	// refusals in a row; each is waited out longer than the one before.
	refusals int
	silent   bool // did not answer a prepare; until its next sign of life

	events   eventCursor
	resendAt time.Duration
	backoff  time.Duration
}

// target is what a generation wants of one node: the very bytes that it
// prepared, since it compares their digest.
type target struct {
	decided
	payload []byte
}

// lossView is whether a side is off its planned candidate and still looking
// for another, whose light it has, the number of the event that said so, 0 for
// a report, and when it came.
type lossView struct {
	lost   bool
	moving bool
	lit    bool // by peer's light
	peer   proto.NodeID
	seq    uint64
	at     time.Duration
}

// saidFault is what a node says of itself.
type saidFault struct {
	out  bool // it is out of service
	seq  uint64
	mode proto.Mode
}

// refusal is a node's no to a plan. It holds until what it was about changes.
type refusal struct {
	code      proto.Code // OK: none
	gen       proto.Generation
	reason    string
	bypassSeq uint64        // of the refused plan
	calibs    proto.Digest  // of the report when it refused
	lastEvent uint64        // of the report when it refused
	until     time.Duration // asked again then at the latest
}

// pending reports whether the node is not yet where a generation wants it.
func (n *nodeView) pending() bool {
	return n.want.gen > 0 && !n.unassigned && !n.at(n.want.decided)
}

func (n *nodeView) at(d decided) bool {
	return n.report != nil && n.report.Generation == d.gen && n.report.Term == d.term && n.report.Plan == d.plan
}

// usable: it may stay in its ring.
func (n *nodeView) usable() bool { return !n.dead && !n.said.out }

// ready: it can take part in a generation.
func (n *nodeView) ready() bool {
	return n.online && n.report != nil && n.report.Session == n.session && !n.silent && n.refusal.code == proto.OK
}

// whyNot says why a node cannot carry a ring, "" when it can.
func (n *nodeView) whyNot() string {
	switch {
	case n.dead || n.said.out:
		return n.reason
	case !n.heard:
		return "never heard since the planner started"
	case !n.online:
		return "agent offline"
	case n.report == nil || n.report.Session != n.session:
		return "no report since its birth"
	case n.refusal.code != proto.OK:
		return fmt.Sprintf("refused a plan: %s %s", n.refusal.code, n.refusal.reason)
	case n.silent:
		return "did not answer a prepare"
	}
	return ""
}

// fresh reports whether the node's bypass count is known as of the last event
// that moves a side, so that a plan can quote it.
func (n *nodeView) fresh() bool {
	return n.report != nil && (n.events.counted || n.report.LastEvent >= n.events.moved)
}

// flags are what a placement depends on; a change asks for a new look.
type flags struct{ usable, ready, unassigned bool }

func (n *nodeView) flags() flags { return flags{n.usable(), n.ready(), n.unassigned} }

// node finds a view; a packet's topic may name a node that does not exist.
func (p *Planner) node(id proto.NodeID) *nodeView {
	if int(id) >= len(p.nodes) {
		return nil
	}
	return &p.nodes[id]
}

// roll calls the nodes after the broker was away: death notes of that time
// are lost with it, and who does not come back is gone.
func (p *Planner) roll() {
	p.rollAt = Never
	for i := range p.nodes {
		if n := &p.nodes[i]; n.online {
			n.missed, p.rollAt = true, p.now+rollPatience
		}
	}
}

// callRoll takes those for offline that have not been heard of.
func (p *Planner) callRoll() {
	if !p.linkUp || p.now < p.rollAt {
		return
	}
	p.rollAt = Never
	for i := range p.nodes {
		if n := &p.nodes[i]; n.online && n.missed {
			p.offline(n, "it did not come back with the broker")
		}
	}
	p.callSwitches()
}

// hear notes the first word of a node since the start.
func (p *Planner) hear(n *nodeView) {
	if !n.heard {
		n.heard = true
		p.heard++
		p.heardAt = p.now
	}
}

// onPresence takes a birth or a death note. A death note of another session
// is of a former life.
func (p *Planner) onPresence(n *nodeView, m *proto.Presence) {
	if !m.Online {
		if n.online && m.Session != n.session {
			return
		}
		p.hear(n)
		before := n.flags()
		n.session = m.Session
		if n.online {
			p.offline(n, "its death note came")
		}
		if !p.takeEarly(n) {
			p.changed(n, before)
		}
		return
	}
	before := n.flags()
	again := n.online && m.Session == n.session
	n.online, n.session, n.born = true, m.Session, *m
	if !again {
		// A new life: what the old one refused or failed to answer is over,
		// and who speaks is not dead.
		n.silent, n.refusal = false, refusal{}
		if n.dead {
			n.dead, n.reason = false, ""
			p.note(Info, "node is back", note{Rule: "presence", Node: int64(n.id), Ring: n.ring, Text: "a new birth"})
		}
		n.hail.open = false
		p.forgetCuts(n)
		n.resendAt, n.backoff = p.now, resendFirst
		p.sweepAt = p.now
	}
	if n.hail.open {
		p.answered(n)
	}
	p.sawTerm(m.SeenTerm)
	if n.report != nil && n.report.Session == n.session {
		p.hear(n)
	}
	p.changed(n, before)
	p.takeEarly(n)
}

// offline notes that nobody speaks for a node any more; its light is another
// matter.
func (p *Planner) offline(n *nodeView, why string) {
	before := n.flags()
	n.online, n.missed, n.goneAt = false, false, p.now
	p.note(Info, "agent offline", note{Rule: "presence", Node: int64(n.id), Ring: n.ring, Text: why + "; light is judged by its neighbours"})
	p.participantLost(n, "went offline")
	p.changed(n, before)
}

// takeEarly takes a report that came before its birth.
func (p *Planner) takeEarly(n *nodeView) bool {
	early := n.early
	if early == nil || early.Session != n.session {
		return false
	}
	n.early = nil
	p.onReported(n, early)
	return true
}

// onReported takes a report. One of a former life is dropped, one that is
// ahead of its birth is kept for it.
func (p *Planner) onReported(n *nodeView, m *proto.Reported) {
	p.sawTerm(m.SeenTerm)
	if m.Session != n.session {
		n.early = m
		return
	}
	if n.report != nil && n.report.Session == m.Session && m.Seq < n.report.Seq {
		return
	}
	p.hear(n)
	before := n.flags()
	wasPending := n.pending()
	n.events.restarted(m)
	if n.report == nil || n.report.Session != m.Session {
		n.bypass = 0 // its journal may be lost
	}
	n.bypass = max(n.bypass, m.BypassSeq)
	n.report, n.reportAt = m, p.now
	n.silent = false
	p.gen = max(p.gen, m.Generation, m.StagedGeneration)
	if n.refusal.code != proto.OK && n.refusal.over(m) {
		n.refusal = refusal{}
	}
	n.readSides(m, p.now)
	p.readMode(n, m)
	if wasPending && !n.pending() {
		n.resendAt = Never
	}
	if n.want.gen == 0 && !p.fresh {
		p.unassign(n)
	}
	p.changed(n, before)
}

// over reports whether a new report takes away what was refused.
func (r refusal) over(m *proto.Reported) bool {
	switch r.code {
	case proto.Conflict:
		return m.BypassSeq > r.bypassSeq
	case proto.NotCalibrated:
		return calibrationsOf(m) != r.calibs
	case proto.HardwareFailed:
		return m.Mode == proto.ModeService && m.LastEvent > r.lastEvent
	}
	return false
}

// calibrationsOf names the set of calibrations in a report.
func calibrationsOf(m *proto.Reported) proto.Digest {
	if m == nil {
		return proto.Digest{}
	}
	var raw []byte
	for i := range m.Bundles {
		raw = append(raw, m.Bundles[i].Calibration[:]...)
	}
	return proto.DigestOf(raw)
}

// readSides takes the losses that a report tells. What a later event told
// stays.
func (n *nodeView) readSides(m *proto.Reported, now time.Duration) {
	if m.Generation != n.want.gen || m.Term != n.want.term {
		return
	}
	for i := range m.Sides {
		s := &m.Sides[i]
		if s.Side > proto.Right || n.loss[s.Side].seq > m.LastEvent {
			continue
		}
		lost := s.State != proto.SideEnd && (s.State != proto.SideWork || int(s.Current) != int(s.Working))
		old := &n.loss[s.Side]
		if lost != old.lost {
			old.at = now
		}
		old.lost, old.seq = lost, 0
		old.lit, old.peer = s.State == proto.SideWork && s.Current >= 0, s.Peer
		old.moving = s.State == proto.SideSwitch || s.State == proto.SideListen || s.State == proto.SideClosing
	}
}

// readMode takes what a node says of itself.
func (p *Planner) readMode(n *nodeView, m *proto.Reported) {
	if n.said.seq > m.LastEvent {
		return
	}
	out := m.Mode == proto.ModeHostDown || m.Mode == proto.ModeIsolated || m.Mode == proto.ModeDrained
	if out != n.said.out {
		p.say(n, out, m.Mode, 0)
	}
}

// say changes what a node says of itself, and writes it down.
func (p *Planner) say(n *nodeView, out bool, mode proto.Mode, seq uint64) {
	n.said = saidFault{out: out, seq: seq, mode: mode}
	if out {
		p.unseen(n)
	}
	rules := map[proto.Mode]string{proto.ModeHostDown: "host_fault", proto.ModeIsolated: "own_fault", proto.ModeDrained: "drained"}
	if !out {
		n.reason = ""
		p.note(Info, "node is well again", note{Rule: "returned", Node: int64(n.id), Ring: n.ring, Text: "it says so itself"})
		return
	}
	n.reason = "it says so itself: " + mode.String()
	p.note(Warn, "node is out of service", note{Rule: rules[mode], Node: int64(n.id), Ring: n.ring, Text: n.reason})
}

// changed follows up on anything new about a node.
func (p *Planner) changed(n *nodeView, before flags) {
	p.judge(n)
	if n.flags() != before {
		p.stirNode(n)
		p.replan(debounce)
	}
	if r := p.ring(n.ring); r != nil {
		p.doubt(r)
		p.concludeDead(r)
		p.watchRing(r)
	}
	if !n.usable() {
		p.participantLost(n, n.reason)
	}
}

// judge finds nodes that no re-sending brings to what is wanted of them: the
// term has moved on, or ring 0's topic holds a later decision.
func (p *Planner) judge(n *nodeView) {
	if p.state == gathering || n.unassigned || !n.pending() || n.report == nil {
		return
	}
	// An adopted target has no bytes to send again.
	if n.want.term != p.term || n.want.payload == nil || n.ring == 0 && n.want.decided != p.idleDecision {
		p.tellAnew(n, fmt.Sprintf("node %d is not at generation %d, which is of another term or planner", n.id, n.want.gen))
	}
}

// tellAnew asks for a generation that tells a node where it stands, its whole
// ring with it.
func (p *Planner) tellAnew(n *nodeView, why string) {
	if r := p.ring(n.ring); r == nil {
		p.unassign(n)
	} else if !r.renew {
		r.renew = true
		p.stir(r)
		p.note(Info, "ring is to be told again", note{Rule: "renew", Node: int64(n.id), Ring: r.id, Text: why})
	}
	p.replan(debounce)
}
