package server

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// fakeAgent is a scripted node on a real link. It obeys, and its light follows
// at once. It shares nothing with the real agent but the wire.
type fakeAgent struct {
	t      *testing.T
	id     proto.NodeID
	topics proto.Topics
	link   *mqtt.Link

	mu      sync.Mutex
	seen    proto.Term
	seq     uint64
	staged  *proto.Desired
	applied *proto.Desired
	applies int // times that a generation took effect
	desired int // desired states received
}

const agentSession = proto.Session(4711)

var agentEnvelope = proto.Envelope{DetectMaxMicros: 150, DetectMinMicros: 40, SwitchMaxMicros: 250, SwitchMinMicros: 75, SkewMicros: 500}

func startAgent(t *testing.T, broker string, id proto.NodeID, seen proto.Term) *fakeAgent {
	t.Helper()
	a := &fakeAgent{t: t, id: id, topics: proto.Topics{Fabric: "f1"}, seen: seen}
	will := a.packet(a.topics.Presence(id), proto.TopicPresence, &proto.Presence{Version: proto.Version, Node: id, Session: agentSession})
	link, err := mqtt.Dial(mqtt.Config{Broker: broker, ClientID: a.topics.NodeClient(id), Will: &will, Ordered: true,
		Subscriptions: []string{a.topics.Desired(id), a.topics.Command(id), a.topics.EveryDecision(), a.topics.Planner()},
		MinReconnect:  10 * time.Millisecond, MaxReconnect: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	a.link = link
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p := range link.Recv() {
			a.receive(p)
		}
	}()
	t.Cleanup(func() { link.Close(); <-done })
	return a
}

func (a *fakeAgent) packet(topic string, kind proto.TopicKind, msg any) proto.Packet {
	payload, err := proto.Encode(msg)
	if err != nil {
		panic(fmt.Sprintf("fake agent: %T: %v", msg, err))
	}
	return proto.Packet{Topic: topic, Payload: payload, QoS: kind.QoS(), Retain: kind.Retain()}
}

func (a *fakeAgent) send(topic string, kind proto.TopicKind, msg any) {
	_ = a.link.Send(a.packet(topic, kind, msg)) // lost with the link, like anything
}

func (a *fakeAgent) receive(p proto.Packet) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.Kind == proto.LinkUp {
		m := proto.Presence{Version: proto.Version, Node: a.id, Session: agentSession, Online: true, Boot: 1, GPUs: 4,
			Bundles: 2, Modules: 8, Mode: proto.ModeService, SeenTerm: a.seen, Measured: agentEnvelope}
		if a.applied != nil {
			m.Term, m.Generation, m.Plan = a.applied.Term, a.applied.Generation, a.applied.Plan
		}
		a.send(a.topics.Presence(a.id), proto.TopicPresence, &m)
		a.report()
	}
	if p.Kind != proto.Publish {
		return
	}
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil {
		a.t.Errorf("node %d: %v", a.id, err)
		return
	}
	switch topic.Kind {
	case proto.TopicDesired:
		var d proto.Desired
		if _, err := proto.Decode(p.Payload, &d); err != nil {
			a.t.Errorf("node %d: desired: %v", a.id, err)
			return
		}
		a.prepare(&d)
	case proto.TopicDecision:
		var d proto.Decision
		if _, err := proto.Decode(p.Payload, &d); err != nil {
			a.t.Errorf("node %d: decision: %v", a.id, err)
			return
		}
		a.decide(&d)
	}
}

func (a *fakeAgent) ack(phase proto.Phase, code proto.Code, t proto.Term, g proto.Generation, plan proto.Digest) {
	m := proto.Ack{Version: proto.Version, Node: a.id, Session: agentSession, Phase: phase, Code: code, Term: t, Generation: g,
		Plan: plan, CurrentTerm: a.seen}
	if a.applied != nil {
		m.CurrentGeneration = a.applied.Generation
	}
	a.send(a.topics.Ack(a.id), proto.TopicAck, &m)
}

func (a *fakeAgent) prepare(d *proto.Desired) {
	a.desired++
	code := proto.OK
	switch {
	case d.Term < a.seen || a.applied != nil && d.Generation < a.applied.Generation:
		code = proto.Stale
	case a.applied != nil && d.Generation == a.applied.Generation && d.Plan != a.applied.Plan:
		code = proto.Conflict
	case a.applied == nil || d.Generation > a.applied.Generation:
		a.seen, a.staged = d.Term, d
	}
	a.ack(proto.PhasePrepare, code, d.Term, d.Generation, d.Plan)
	a.report()
}

func (a *fakeAgent) decide(d *proto.Decision) {
	if a.staged == nil || d.Term != a.staged.Term || d.Generation != a.staged.Generation || d.Plan != a.staged.Plan {
		return // of another ring, or long done
	}
	if d.Verdict == proto.Commit {
		a.applied = a.staged
		a.applies++
	}
	a.staged = nil
	a.ack(proto.PhaseCommit, proto.OK, d.Term, d.Generation, d.Plan)
	a.report()
}

func (a *fakeAgent) report() {
	a.seq++
	m := proto.Reported{Version: proto.Version, Node: a.id, Session: agentSession, Seq: a.seq, Mode: proto.ModeService,
		SeenTerm: a.seen, Measured: agentEnvelope}
	for b := range 2 {
		m.Bundles = append(m.Bundles, proto.BundleReport{Bundle: proto.BundleID(b), Path: proto.Loopback, State: proto.Tuned,
			Measured: -3200, Expected: -3000, Lit: 1 << proto.Loopback, Calibration: proto.Digest{1}})
	}
	side := func(s proto.Side, ring proto.RingID, list []proto.Candidate, working uint8) {
		r := proto.SideReport{Ring: ring, Side: s, State: proto.SideEnd, Current: -1, Working: working}
		if len(list) > 0 {
			c := list[working]
			r.State, r.Current, r.Peer = proto.SideWork, int8(working), c.Peer
			m.Bundles[c.Bundle].Path, m.Bundles[c.Bundle].Lit = c.Path, 1<<c.Path
		}
		m.Sides = append(m.Sides, r)
	}
	if d := a.applied; d != nil {
		m.Term, m.Generation, m.Plan, m.Rings = d.Term, d.Generation, d.Plan, d.Rings
		for _, r := range d.Rings {
			side(proto.Left, r.Ring, r.Left, r.LeftWorking)
			side(proto.Right, r.Ring, r.Right, r.RightWorking)
		}
	}
	if d := a.staged; d != nil {
		m.StagedTerm, m.StagedGeneration, m.StagedPlan = d.Term, d.Generation, d.Plan
	}
	a.send(a.topics.Reported(a.id), proto.TopicReported, &m)
}

// applications is how often generations took effect on all nodes together.
func applications(agents []*fakeAgent) (n int) {
	for _, a := range agents {
		a.mu.Lock()
		n += a.applies
		a.mu.Unlock()
	}
	return n
}

// operator asks a planner over the wire.
type operator struct {
	t    *testing.T
	link *mqtt.Link
	corr byte
}

func startOperator(t *testing.T, broker string) *operator {
	t.Helper()
	topics := proto.Topics{Fabric: "f1"}
	link, err := mqtt.Dial(mqtt.Config{Broker: broker, ClientID: "operator", Subscriptions: []string{topics.Reply("test"), topics.Planner()},
		Ordered: true, MinReconnect: 10 * time.Millisecond, MaxReconnect: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	return &operator{t: t, link: link}
}

const patience = 60 * time.Second // for a loaded machine

// rings asks until the rings are as wanted.
func (o *operator) rings(what string, want func([]proto.RingStatus) bool) []proto.RingStatus {
	o.t.Helper()
	deadline := time.After(patience)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	var last proto.OpReply
	for {
		select {
		case <-deadline:
			o.t.Fatalf("never %s; last answer %+v", what, last)
		case <-again.C:
			o.corr++
			payload, err := proto.Encode(&proto.OpRequest{Version: proto.Version, Corr: proto.Corr{o.corr}, TTLMillis: 1000, Noun: proto.NounRings, Bundle: -1})
			if err != nil {
				o.t.Fatal(err)
			}
			_ = o.link.Send(proto.Packet{Topic: proto.Topics{Fabric: "f1"}.Request("test"), Payload: payload, QoS: 1})
		case p := <-o.link.Recv():
			if p.Kind != proto.Publish || p.Topic != (proto.Topics{Fabric: "f1"}).Reply("test") {
				continue
			}
			var r proto.OpReply
			if _, err := proto.Decode(p.Payload, &r); err != nil {
				o.t.Fatal(err)
			}
			if last = r; want(r.Rings) {
				return r.Rings
			}
		}
	}
}

// state waits for a word of a planner that is as wanted.
func (o *operator) state(what string, want func(m *proto.PlannerState, retained bool) bool) proto.PlannerState {
	o.t.Helper()
	deadline := time.After(patience)
	var last proto.PlannerState
	for {
		select {
		case <-deadline:
			o.t.Fatalf("never %s; last word %+v", what, last)
		case p := <-o.link.Recv():
			if p.Kind != proto.Publish || p.Topic != (proto.Topics{Fabric: "f1"}).Planner() {
				continue
			}
			var m proto.PlannerState
			if _, err := proto.Decode(p.Payload, &m); err != nil {
				o.t.Fatal(err)
			}
			if last = m; want(&m, p.Retain) {
				return m
			}
		}
	}
}

func allInService(n int) func([]proto.RingStatus) bool {
	return func(rings []proto.RingStatus) bool {
		if len(rings) != n {
			return false
		}
		for _, r := range rings {
			if r.State != proto.RingInService || r.Links != r.LinksConfirmed {
				return false
			}
		}
		return true
	}
}
