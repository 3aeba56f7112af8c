package planner

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// fleet is a tiny world around a planner: agents that speak the protocol and
// whose light follows from what they applied and who is alive, a store, and a
// network that can lose, repeat and shuffle. It shares no code with the
// planner but the wire.
type fleet struct {
	world
	nodes  []fakeNode
	linkUp bool
	cuts   map[[2]proto.NodeID]bool
	chaos  float64 // chance that a packet is lost, repeated or held back
	exit   string
	drop   proto.TopicKind // the network loses these
	sent   map[string]int  // messages of the planner by kind

	toSwitches []proto.Packet // what the planner said to switches
}

// measured is what every agent measures of its own switching, microseconds.
var measured = proto.Envelope{DetectMaxMicros: 150, DetectMinMicros: 40, SwitchMaxMicros: 250, SwitchMinMicros: 75, SkewMicros: 500}

func pair(a, b proto.NodeID) [2]proto.NodeID { return [2]proto.NodeID{min(a, b), max(a, b)} }

// fakeNode is an agent and its optics.
type fakeNode struct {
	id       proto.NodeID
	alive    bool   // lasers on, agent running
	offline  bool   // agent cut off, lasers on
	why      string // its last word
	mode     proto.Mode
	drained  bool // besides
	session  proto.Session
	repSeq   uint64
	lastSent *proto.Reported
	applied  *proto.Desired
	staged   *proto.Desired
	seen     proto.Term
	life     uint64 // that it is of
	call     [2]uint64
	bypass   uint64
	current  [2]int // candidate in use by side, -1 closed, -2 end
	darkened uint64 // times that a confirmed side lost its planned peer
	events   []proto.Event
	acked    uint64
	refuse   proto.Code
	mute     bool // answers nothing
	lags     bool // prepares and does not follow
	misnames bool // names another generation than it was asked about
	quiet    bool // says nothing twice that it is not asked for
	slow     bool // acts, and what it says and hears is held up
	hung     bool // its light is as it was, whatever comes
	held     []proto.Packet
	noEvents bool
	loseAcks int
	asked    proto.Command   // last VerbRequest
	tried    int             // times that a path was lit for a trial, or ended
	counts   bool            // bit errors of a fibre that is tried
	busy     int             // times that it does not, first
	times    *proto.Envelope // that it measured; nil: as all
	alarms   []proto.Alarm
	weak     proto.MilliDBm // how much less light its bundle 0 has
}

func newFleet(t testing.TB, f *fabric.Fabric) *fleet {
	w := &fleet{world: newWorld(t, f), cuts: map[[2]proto.NodeID]bool{}, sent: map[string]int{}}
	for i := range f.Nodes {
		w.nodes = append(w.nodes, fakeNode{id: proto.NodeID(i), current: [2]int{-2, -2}})
	}
	return w
}

// start makes a planner from the store and connects it.
func (w *fleet) start() {
	w.boot()
	w.exit = ""
	w.connect()
}

func (w *fleet) connect() {
	w.linkUp = true
	w.step(Event{Kind: LinkUp})
	w.replay()
}

func (w *fleet) step(ev Event) {
	w.hand(ev)
	w.carry()
}

// carry does what the planner asked for.
func (w *fleet) carry() {
	for len(w.down) > 0 {
		switch a := w.pop(); a.Kind {
		case Send:
			w.describe(a.Packet)
			if !w.linkUp {
				break
			}
			if a.Packet.Retain {
				w.retain(a.Packet)
			}
			for range w.copies() {
				w.toAgents(a.Packet)
			}
		case Persist:
			if w.holdDisk {
				w.trace(fmt.Sprintf("held: persist %s", keys(a.Records)))
				break
			}
			if what := keys(a.Records); what != "" {
				w.trace("persist " + what)
			}
			w.write(a.Records)
			w.step(Event{Kind: Persisted, Persist: a.Persist})
		case Log:
			l := a.Line
			text := "log " + l.Message
			if l.Ring != 0 {
				text += fmt.Sprintf(", ring %d", l.Ring)
			}
			if l.Text != "" {
				text += ": " + l.Text
			}
			w.trace(text)
		case Exit:
			w.exit = a.Reason
			w.trace("exit: " + a.Reason)
		}
	}
}

func keys(records []Record) string {
	kinds := []string{}
	for _, r := range records {
		kind, _, _ := strings.Cut(r.Key, "/")
		if r.Value == nil {
			kind = "-" + kind
		}
		if kind != journal.KeyAudit && !slices.Contains(kinds, kind) { // the chain goes along, and has tests of its own
			kinds = append(kinds, kind)
		}
	}
	return strings.Join(kinds, " ")
}

// copies is how often the network delivers a packet.
func (w *fleet) copies() int {
	if w.chaos == 0 || w.rng.Float64() > w.chaos {
		return 1
	}
	return w.rng.IntN(3)
}

// run lets time pass until d is over.
func (w *fleet) run(d time.Duration) {
	end := w.now + d
	for steps, at := 0, w.now; ; steps++ {
		if w.now != at {
			steps, at = 0, w.now
		}
		if steps > 1000 {
			w.t.Fatalf("the planner wants ticks without end at %v: %s", w.now, w.show())
		}
		for len(w.up) > 0 {
			at := 0
			if w.chaos > 0 && w.rng.Float64() < w.chaos {
				at = w.rng.IntN(len(w.up))
			}
			pk := w.up[at]
			w.up = slices.Delete(w.up, at, at+1)
			w.step(Event{Kind: Packet, Packet: pk})
		}
		next := min(w.p.Next(), w.nextAgent())
		if next > end {
			break
		}
		w.now = max(w.now, next)
		w.resendEvents()
		w.step(Event{Kind: Tick})
		if w.exit != "" {
			return
		}
	}
	w.now = end
}

const agentPeriod = 2 * time.Second

func (w *fleet) nextAgent() time.Duration { return (w.now/agentPeriod + 1) * agentPeriod }

// resendEvents is the agents' go-back-N.
func (w *fleet) resendEvents() {
	if w.now%agentPeriod != 0 {
		return
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		for j := range n.events {
			if n.events[j].Seq > n.acked {
				w.publish(n, w.topics.Event(n.id), proto.TopicEvent, &n.events[j])
			}
		}
		if n.lastSent != nil && !n.quiet {
			w.publish(n, w.topics.Reported(n.id), proto.TopicReported, n.lastSent)
		}
	}
}

// publish sends from an agent.
func (w *fleet) publish(n *fakeNode, topic string, kind proto.TopicKind, msg any) {
	if !n.alive || n.offline || !w.linkUp {
		return
	}
	payload, err := proto.Encode(msg)
	if err != nil {
		w.t.Fatalf("agent %d: %v", n.id, err)
	}
	pk := proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload, QoS: kind.QoS()}
	if kind.Retain() {
		w.retain(pk)
	}
	if n.slow {
		n.held = append(n.held, pk)
		return
	}
	for range w.copies() {
		w.up = append(w.up, pk)
	}
}

// birth starts an agent; cold: its optics were dark and its journal is empty.
func (w *fleet) birth(id proto.NodeID, cold bool) {
	n := &w.nodes[id]
	n.alive, n.offline = true, false
	n.session += 1000 + proto.Session(id)
	n.repSeq = 0
	if cold {
		n.applied, n.staged, n.mode, n.current = nil, nil, proto.ModeUnplanned, [2]int{-2, -2}
	}
	w.birthNote(n)
	n.lastSent = nil
	w.light()
}

func (w *fleet) birthNote(n *fakeNode) {
	b := &proto.Presence{Version: proto.Version, Node: n.id, Session: n.session, Online: true, GPUs: uint8(w.fab.GPUsPerNode),
		Bundles: uint8(w.fab.Bundles), Modules: 8, Mode: n.mode, SeenTerm: n.seen, Measured: n.envelope()}
	if n.applied != nil {
		b.Term, b.Generation, b.Plan = n.applied.Term, n.applied.Generation, n.applied.Plan
	}
	w.publish(n, w.topics.Presence(n.id), proto.TopicPresence, b)
}

func (n *fakeNode) envelope() proto.Envelope {
	if n.times != nil {
		return *n.times
	}
	return measured
}

// will publishes an agent's death note through the broker.
func (w *fleet) will(id proto.NodeID) {
	n := &w.nodes[id]
	payload, err := proto.Encode(&proto.Presence{Version: proto.Version, Node: id, Session: n.session, Why: n.why})
	if err != nil {
		w.t.Fatal(err)
	}
	pk := proto.Packet{Kind: proto.Publish, Topic: w.topics.Presence(id), Payload: payload, QoS: 1}
	w.retain(pk)
	if w.linkUp {
		w.up = append(w.up, pk)
	}
}

// die takes a node's power.
func (w *fleet) die(id proto.NodeID) {
	w.nodes[id].alive = false
	w.nodes[id].current = [2]int{-2, -2}
	w.light()
	w.will(id)
}

func (w *fleet) offline(id proto.NodeID) {
	w.will(id)
	w.nodes[id].offline = true
}

// online is the same life connecting again.
func (w *fleet) online(id proto.NodeID) {
	n := &w.nodes[id]
	n.offline = false
	w.birthNote(n)
	n.lastSent = nil
	w.light()
}

func (w *fleet) setMode(id proto.NodeID, m proto.Mode) {
	n := &w.nodes[id]
	was := n.mode
	n.mode, n.drained = m, n.drained && m == proto.ModeHostDown
	switch {
	case m == proto.ModeHostDown, m == proto.ModeDrained:
		n.bypass++
		cause := proto.CauseHostFault
		if m == proto.ModeDrained {
			cause = proto.CauseOperator
		}
		w.event(n, proto.Event{Kind: proto.EvIsolated, Severity: proto.SeverityCritical, Cause: cause})
		n.current = [2]int{-1, -1}
	case was != proto.ModeService && m == proto.ModeService:
		w.event(n, proto.Event{Kind: proto.EvReturned, Cause: proto.CauseHostReturned})
	}
	w.light()
}

func (w *fleet) event(n *fakeNode, e proto.Event) {
	e.Version, e.Node, e.Session, e.Seq, e.Count = proto.Version, n.id, n.session, uint64(len(n.events))+1, 1
	e.AtMicros = uint64(w.now.Microseconds())
	n.events = append(n.events, e)
	if !n.noEvents {
		w.publish(n, w.topics.Event(n.id), proto.TopicEvent, &n.events[len(n.events)-1])
	}
}

// side is one side of a node as applied.
func (n *fakeNode) side(s proto.Side) (list []proto.Candidate, working int, ring proto.RingID) {
	if n.applied == nil || len(n.applied.Rings) == 0 {
		return nil, 0, 0
	}
	a := &n.applied.Rings[0]
	if s == proto.Left {
		return a.Left, int(a.LeftWorking), a.Ring
	}
	return a.Right, int(a.RightWorking), a.Ring
}

// reaches: the peer is lit, serves the same ring, and lists this node.
func (w *fleet) reaches(n *fakeNode, s proto.Side, c proto.Candidate) bool {
	m := &w.nodes[c.Peer]
	if !m.alive || m.mode != proto.ModeService || n.mode != proto.ModeService || w.cuts[pair(n.id, m.id)] {
		return false
	}
	_, _, ring := n.side(s)
	back, _, other := m.side(1 - s)
	if k := m.current[1-s]; m.hung && (k < 0 || back[k].Peer != n.id) {
		return false
	}
	return ring == other && slices.ContainsFunc(back, func(x proto.Candidate) bool { return x.Peer == n.id })
}

// light lets every side find its nearest peer, and reports what changed.
func (w *fleet) light() {
	for i := range w.nodes {
		n := &w.nodes[i]
		if !n.alive || n.hung {
			continue
		}
		for s := proto.Left; s <= proto.Right; s++ {
			list, working, ring := n.side(s)
			now := -2
			for k, c := range list {
				now = -1
				if w.reaches(n, s, c) {
					now = k
					break
				}
			}
			if was := n.current[s]; now != was {
				n.current[s] = now
				if was >= 0 && n.applied != nil && now != working && now != -2 {
					n.darkened++
					n.bypass++
					e := proto.Event{Kind: proto.EvSwitched, Side: s, Ring: ring, Cause: proto.CauseLightLost, SideBypassed: true, Generation: n.applied.Generation}
					if now == -1 {
						e.Kind, e.Path, e.Cause = proto.EvClosed, proto.Loopback, proto.CauseNoCandidate
					} else {
						e.Peer, e.Bundle, e.Path = list[now].Peer, list[now].Bundle, list[now].Path
						e.Ledger = &proto.Ledger{DetectMicros: 96, DecideMicros: 8, BusMicros: 61, SettleMicros: 48, ConfirmMicros: 194}
					}
					w.event(n, e)
				}
			}
		}
	}
	for i := range w.nodes {
		w.report(&w.nodes[i])
	}
}

// reportOf is the node as it is now, without a number.
func (w *fleet) reportOf(n *fakeNode) *proto.Reported {
	r := &proto.Reported{Version: proto.Version, Node: n.id, Session: n.session, Mode: n.mode, Drained: n.drained, SeenTerm: n.seen, SeenLife: n.life, BypassSeq: n.bypass,
		Measured: n.envelope(), LastEvent: uint64(len(n.events)), Alarms: n.alarms}
	if n.applied != nil {
		r.Term, r.Generation, r.Plan, r.Rings = n.applied.Term, n.applied.Generation, n.applied.Plan, n.applied.Rings
		r.Layout = n.applied.Layout
	}
	if n.staged != nil {
		r.StagedTerm, r.StagedGeneration, r.StagedPlan = n.staged.Term, n.staged.Generation, n.staged.Plan
	}
	for b := range w.fab.Bundles {
		r.Bundles = append(r.Bundles, proto.BundleReport{Bundle: proto.BundleID(b), Path: proto.Loopback, State: proto.Tuned,
			Measured: -3200, Expected: -3000, Calibration: proto.Digest{1}})
	}
	r.Bundles[0].Measured -= n.weak
	for s := proto.Left; s <= proto.Right; s++ {
		list, working, ring := n.side(s)
		rep := proto.SideReport{Ring: ring, Side: s, Working: uint8(working), Current: -1}
		switch k := n.current[s]; {
		case len(list) == 0:
			rep.State = proto.SideEnd
		case k < 0:
			rep.State = proto.SideClosed
		default:
			rep.State, rep.Current, rep.Peer = proto.SideWork, int8(k), list[k].Peer
			r.Bundles[list[k].Bundle].Path = list[k].Path
		}
		if n.asked.Request != proto.NoRequest && n.asked.Side == s {
			rep.Request = n.asked.Request
		}
		r.Sides = append(r.Sides, rep)
	}
	return r
}

// report sends what is new.
func (w *fleet) report(n *fakeNode) {
	r := w.reportOf(n)
	if n.lastSent != nil {
		r.Seq = n.lastSent.Seq
		if reflect.DeepEqual(r, n.lastSent) {
			return
		}
	}
	n.repSeq++
	r.Seq = n.repSeq
	if n.alive && !n.offline && w.linkUp {
		n.lastSent = r
		w.publish(n, w.topics.Reported(n.id), proto.TopicReported, r)
	}
}

// toAgents delivers a packet of the planner.
func (w *fleet) toAgents(pk proto.Packet) {
	topic, err := proto.ParseTopic(pk.Topic)
	if err != nil {
		w.t.Fatal(err)
	}
	must := func(msg any) { w.decode(pk, msg) }
	here := func(n *fakeNode) bool { return n.alive && !n.offline && !n.mute && !n.slow }
	if topic.Kind == w.drop {
		return
	}
	if topic.Node.IsSwitch() {
		w.toSwitches = append(w.toSwitches, pk)
		return
	}
	switch topic.Kind {
	case proto.TopicPlanner:
		var m proto.PlannerState
		must(&m)
		news := false
		for i := range w.nodes {
			if n := &w.nodes[i]; here(n) {
				if call := [2]uint64{m.Life, m.Call}; m.Call != 0 && n.call != call {
					n.call = call
					w.birthNote(n)
					n.lastSent = nil
				}
				news = news || n.seen < m.Term || n.mode == proto.ModeUnplanned
				n.see(m.Term, m.Life)
				if n.mode == proto.ModeUnplanned {
					n.mode = proto.ModeService
				}
			}
		}
		if news {
			w.light()
		}
	case proto.TopicDesired:
		m := new(proto.Desired)
		must(m)
		if n := &w.nodes[topic.Node]; here(n) {
			w.stage(n, m)
		}
	case proto.TopicDecision:
		m := new(proto.Decision)
		must(m)
		for i := range w.nodes {
			if n := &w.nodes[i]; here(n) {
				w.decideNode(n, m)
			}
		}
		w.light()
	case proto.TopicCommand:
		m := new(proto.Command)
		must(m)
		if n := &w.nodes[topic.Node]; here(n) && m.Session == n.session {
			w.obey(n, m)
		}
	case proto.TopicReply:
		var m proto.OpReply
		must(&m)
		w.replies = append(w.replies, m)
	}
}

func (w *fleet) answer(n *fakeNode, a proto.Ack) {
	a.Version, a.Node, a.Session = proto.Version, n.id, n.session
	a.CurrentTerm = n.seen
	if n.applied != nil {
		a.CurrentGeneration = n.applied.Generation
	}
	if n.misnames {
		a.Generation += 7
	}
	if n.loseAcks > 0 {
		n.loseAcks--
		return
	}
	w.publish(n, w.topics.Ack(n.id), proto.TopicAck, &a)
}

// see takes a term, and the life of the planner that it is heard from first.
func (n *fakeNode) see(t proto.Term, life uint64) {
	if t > n.seen {
		n.seen, n.life = t, life
	}
}

func (w *fleet) stage(n *fakeNode, m *proto.Desired) {
	a := proto.Ack{Phase: proto.PhasePrepare, Term: m.Term, Generation: m.Generation, Plan: m.Plan}
	old := n.applied
	switch {
	case n.refuse != proto.OK:
		a.Code, a.Reason = n.refuse, "told to"
	case slices.ContainsFunc(m.Rings, func(r proto.RingAssignment) bool { return r.Envelope.DetectMinMicros == 0 }):
		a.Code, a.Field, a.Limit = proto.Invalid, "rings[0].envelope.detect_min_micros", "over 0"
	case m.Term < n.seen, m.Term == n.seen && m.Life != n.life && n.life != 0, old != nil && (m.Term < old.Term || m.Term == old.Term && m.Generation < old.Generation):
		a.Code = proto.Stale
	case old != nil && m.Term == old.Term && m.Generation == old.Generation:
		if m.Plan != old.Plan {
			a.Code = proto.Conflict
		}
	case m.BypassSeq > n.bypass:
		a.Code, a.Field, a.Limit = proto.Invalid, "bypass_seq", fmt.Sprint("at most ", n.bypass)
	case m.BypassSeq < n.bypass:
		a.Code = proto.Conflict
		defer w.report(n)
	default:
		n.staged = m
	}
	n.see(m.Term, m.Life)
	if n.mode == proto.ModeUnplanned {
		n.mode = proto.ModeService
	}
	w.answer(n, a)
}

func (w *fleet) decideNode(n *fakeNode, m *proto.Decision) {
	s := n.staged
	if n.lags || s == nil || s.Term != m.Term || s.Generation != m.Generation || s.Plan != m.Plan || !slices.Contains(s.Decisions, m.Ring) || m.Verdict != proto.Commit {
		return
	}
	if n.applied != nil && (s.Term < n.applied.Term || s.Term == n.applied.Term && s.Generation <= n.applied.Generation) {
		w.t.Fatalf("node %d would go back from generation %d to %d", n.id, n.applied.Generation, s.Generation)
	}
	n.applied, n.staged = s, nil
	n.current = [2]int{-2, -2}
	w.answer(n, proto.Ack{Phase: proto.PhaseCommit, Term: m.Term, Generation: m.Generation, Plan: m.Plan})
}

func (w *fleet) obey(n *fakeNode, m *proto.Command) {
	a := proto.Ack{Phase: proto.PhaseCommand, Corr: m.Corr, Term: m.Term}
	switch m.Verb {
	case proto.VerbAckEvents:
		n.acked = max(n.acked, m.Seq)
		return
	case proto.VerbEvents:
		const page = 3
		end := min(int(m.Next)+page, len(n.events))
		a.Events = n.events[m.Next:end]
		if end < len(n.events) {
			a.Next = uint32(end)
		}
	case proto.VerbReannounce:
		w.birthNote(n)
		n.lastSent = nil
		w.report(n)
	case proto.VerbHostFault:
		n.drained = n.mode == proto.ModeDrained
		w.setMode(n.id, proto.ModeHostDown)
	case proto.VerbDrain:
		if n.drained = n.mode == proto.ModeHostDown; !n.drained {
			w.setMode(n.id, proto.ModeDrained)
		}
		w.report(n)
	case proto.VerbTry:
		to, _, _ := w.fab.At(fabric.Port{Node: n.id, Bundle: m.Bundle, Path: m.Path})
		if n.tried++; m.Path.External() && w.cuts[pair(n.id, to.Node)] {
			a.Refuse(&proto.Error{Code: proto.HardwareFailed, Field: "bundle", Reason: "no light"})
		}
		switch {
		case m.Pattern <= proto.PatternAhead:
		case !n.counts:
			a.Refuse(&proto.Error{Code: proto.Unsupported, Field: "pattern", Reason: "it has none"})
		case n.busy > 0:
			n.busy--
			a.Refuse(&proto.Error{Code: proto.Busy, Field: "bundle", Reason: "not yet"})
		case m.Pattern == proto.PatternCount:
			a.Bits = []proto.ModuleBits{{Bits: []uint64{1 << 50}, Errors: []uint64{0}}}
		}
	case proto.VerbRequest:
		n.asked = *m
		w.report(n)
	case proto.VerbUndrain, proto.VerbHostOK:
		mode := proto.ModeService
		switch {
		case m.Verb == proto.VerbHostOK && n.drained:
			mode = proto.ModeDrained
		case m.Verb == proto.VerbUndrain && n.mode == proto.ModeHostDown:
			mode = n.mode
		}
		if n.drained = false; mode != n.mode {
			w.setMode(n.id, mode)
		}
		w.report(n)
	}
	w.answer(n, a)
}

// describe writes what the planner sends into the trace.
func (w *fleet) describe(pk proto.Packet) {
	topic, _ := proto.ParseTopic(pk.Topic)
	w.sent[topic.Kind.String()]++
	switch topic.Kind {
	case proto.TopicPlanner:
		var m proto.PlannerState
		if _, err := proto.Decode(pk.Payload, &m); err == nil {
			w.sent[map[bool]string{true: "beat", false: "standby"}[m.Online]]++
			if m.Takeover {
				w.sent["takeover"]++
			}
		}
	case proto.TopicDesired:
		var m proto.Desired
		if _, err := proto.Decode(pk.Payload, &m); err == nil {
			w.trace("desired " + describeDesired(&m))
		}
	case proto.TopicDecision:
		var m proto.Decision
		if _, err := proto.Decode(pk.Payload, &m); err == nil {
			w.trace(fmt.Sprintf("decision ring %d: term %d gen %d %s", m.Ring, m.Term, m.Generation, m.Verdict))
		}
	case proto.TopicCommand:
		var m proto.Command
		if _, err := proto.Decode(pk.Payload, &m); err == nil {
			w.trace(fmt.Sprintf("cmd node %d: %s %s", m.Node, m.Verb, strconv.FormatUint(m.Seq, 10)))
		}
	}
}

func describeDesired(m *proto.Desired) string {
	s := fmt.Sprintf("node %d: term %d gen %d bypass %d", m.Node, m.Term, m.Generation, m.BypassSeq)
	for _, r := range m.Rings {
		s += fmt.Sprintf(" ring %d %d/%d left%s right%s", r.Ring, r.Position+1, r.Size, describeSide(r.Left), describeSide(r.Right))
	}
	return s
}

func describeSide(list []proto.Candidate) string {
	s := ""
	for _, c := range list {
		s += fmt.Sprintf(" %d(%d/%d", c.Peer, c.Bundle, c.Path-proto.Loopback)
		if c.Others {
			s += "+"
		}
		s += ")"
	}
	return "[" + strings.TrimSpace(s) + "]"
}

// show lists the planner's rings, one a line.
func (w *fleet) show() string {
	var b strings.Builder
	for _, r := range w.p.Rings.Placed.Statuses() {
		fmt.Fprintf(&b, "ring %d %v %s gen %d links %d/%d\n", r.Ring, r.Nodes, r.State, r.Generation, r.LinksConfirmed, r.Links)
	}
	o := w.p.Overview()
	fmt.Fprintf(&b, "term %d gen %d spares %d online %d pending %d quiet %v\n", o.Term, o.Generation, o.Spares, o.Online, o.Pending, o.Quiet)
	return b.String()
}
