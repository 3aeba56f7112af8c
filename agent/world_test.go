package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/node"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// fleet is a line of nodes with two bundles each, wired for two hops, on one
// virtual clock, with a planner played by the test.
type fleet struct {
	t     *testing.T
	world *sim.World
	nodes []*fleetNode
	cals  []*ocs.Calibration // by bundle, the same for every node
	term  proto.Term
	gen   proto.Generation
	acks  map[proto.NodeID]proto.Ack
	trace []string

	health time.Duration // period of health rounds; 0: none
	lock   ocs.LockConfig
	make   func(modules int) (hal.Board, error) // nil: the default board
	decide time.Duration                        // modelled; 0: as on a real clock
	edge   func(*hal.Edge)                      // what the board makes of an edge; nil: as it is
	// before is called when something is about to be told to a node, and when
	// its time has come (a zero event); asked when it submits, and may keep the
	// work for later; nil: nobody is.
	before func(x *fleetNode, ev hal.Event)
	asked  func(x *fleetNode, w Work) (kept bool)
	sample func(x *fleetNode, h *proto.Health) // telemetry; nil: nobody reads it
}

type fleetNode struct {
	f          *fleet
	id         proto.NodeID
	board      *hal.Board
	host       *Host // nil: the process is dead
	agent      *Agent
	life       int
	quarantine *hal.Quarantine
	disk       Disk
	synced     time.Duration // when the record under way is on disk
	thinking   Thinking
	watch      []string
	linked     bool
	events     []proto.Event
	last       proto.Reported
	submit     int // ops of the switch class
	written    func(record []byte)
}

const (
	fleetDisk   = time.Millisecond
	fleetDecide = 8 * time.Microsecond
)

// newFleet makes n nodes with power and a running agent. modules per bundle.
func newFleet(t *testing.T, n, modules int) *fleet {
	return startFleet(&fleet{t: t, decide: fleetDecide}, n, modules)
}

func startFleet(f *fleet, n, modules int) *fleet {
	t := f.t
	t.Helper()
	f.world, f.term, f.acks = sim.NewWorld(sim.WorldConfig{Seed: 5}), 1, map[proto.NodeID]proto.Ack{}
	per := sim.Catalogue(nil, 11, 2*modules)
	both := [][]*sim.Personality{per[:modules], per[modules:]}
	f.cals = []*ocs.Calibration{known(both[0]), known(both[1])}
	for i := range n {
		kind := f.make
		if kind == nil {
			kind = func(modules int) (hal.Board, error) { return boardfile.Default(4, 2, modules) }
		}
		board, err := kind(modules)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.world.AddBoard(sim.BoardConfig{Board: board, Personalities: both, Seed: uint64(i), Powered: true}); err != nil {
			t.Fatal(err)
		}
		f.nodes = append(f.nodes, &fleetNode{f: f, id: proto.NodeID(i), board: &board, thinking: Thinking{Takes: f.decide}})
	}
	for i := range n {
		for hop := 1; hop <= 2 && i+hop < n; hop++ {
			path := hal.LOSExternal1 + hop - 1
			if err := f.world.Connect(sim.Port{Board: sim.BoardID(i), Bundle: 1, Path: path},
				sim.Port{Board: sim.BoardID(i + hop), Bundle: 0, Path: path}, sim.Fibre{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, x := range f.nodes {
		f.boot(x)
	}
	return f
}

// known is a calibration made of what the simulator knows; these tests are
// not of the search.
func known(per []*sim.Personality) *ocs.Calibration {
	c := &ocs.Calibration{Timing: ocs.Timing{DetectMax: 150 * time.Microsecond, DetectMin: 40 * time.Microsecond,
		SwitchMax: 250 * time.Microsecond, SwitchMin: 75 * time.Microsecond}}
	const pi = 3.14159265358979
	for _, p := range per {
		m := &ocs.ModuleCalibration{Serial: p.Serial()}
		for k := range m.Cells[:hal.BenesCells] {
			truth := p.Cell(k)
			m.Cells[k] = ocs.CellCalibration{OffsetMicrorad: int32(truth.OffsetRadian * 1e6),
				PiMicrowatt: uint32(truth.PiMilliwatt * 1000), MilliOhm: uint32(truth.Ohm * 1000)}
			for register, phase := range []float64{0, pi} {
				// The matrix swaps the halves with its middle column crossed and
				// all other cells bar.
				if k >= hal.CellMatrix {
					phase = pi
					if (k-hal.CellMatrix)/4 == 2 {
						phase = 0
					}
				}
				turns := (phase - truth.OffsetRadian) / pi
				for turns < 0 {
					turns += 2
				}
				for turns >= 2 {
					turns -= 2
				}
				m.Codes[k][register] = hal.HeaterCode(microvolt(turns * truth.PiMilliwatt / 1000 * truth.Ohm))
			}
		}
		for lane := range hal.Lanes {
			m.LaneLoop[lane] = -4000
			m.LaneTap[0][lane], m.LaneTap[1][lane] = -1500, -1500
		}
		c.Modules = append(c.Modules, m)
	}
	return c
}

// microvolt is the root of a square of volts, by Newton.
func microvolt(square float64) int64 {
	x := square + 1
	for range 60 {
		x = (x + square/x) / 2
	}
	return int64(x * 1e6)
}

// boot starts a new life of a node's agent from what is on its disk.
func (f *fleet) boot(x *fleetNode) {
	f.t.Helper()
	health := f.health
	if health == 0 {
		health = -1
	}
	x.life++
	x.watch, x.linked, x.quarantine = nil, false, hal.NewQuarantine(x.board)
	x.host = NewHost(Config{Fabric: "f1", Node: x.id, Board: x.board, Calibrations: f.cals, Session: proto.Session(1000*(int(x.id)+1) + x.life),
		Seed: 3, HealthPeriod: health, Decide: f.decide, Lock: f.lock}, x.disk.Restore(), x, nil)
	x.host.Log = func(_ uint8, text string) {
		f.trace = append(f.trace, fmt.Sprintf("%v node %d: %s", f.world.Now(), x.id, text))
	}
	x.host.Bins = x.disk.KeepBins
	x.agent = x.host.agent
	if err := x.host.Levels(f.world.Now(), func(l hal.LineID) (bool, error) { return f.world.Level(sim.BoardID(x.id), l), nil }); err != nil {
		f.t.Fatal(err)
	}
	f.poll(x)
}

// kill ends a node's agent; what was not on disk is lost.
func (f *fleet) kill(x *fleetNode) {
	x.host, x.agent = nil, nil
	x.disk.Lose()
}

// power takes the whole node away.
func (f *fleet) power(x *fleetNode, on bool) {
	f.world.SetPower(sim.BoardID(x.id), on)
	if on {
		f.boot(x)
	} else {
		f.kill(x)
	}
}

func (f *fleet) poll(x *fleetNode) {
	f.t.Helper()
	if err := x.host.Settle(f.world.Now()); err != nil {
		f.t.Fatal(err)
	}
}

func (x *fleetNode) Submit(now time.Duration, w Work) error {
	if w.Op.Class == hal.ClassSwitch {
		x.submit++
	}
	if x.f.asked != nil && x.f.asked(x, w) {
		return nil
	}
	if err := x.quarantine.Refuse(now, w.Bus, w.Op); err != nil {
		return err
	}
	return x.f.world.Submit(x.thinking.Leaves(now, w.Decided), sim.BoardID(x.id), w.Bus, w.Op)
}

func (x *fleetNode) Send(_ time.Duration, p proto.Packet) error {
	x.f.packet(x, p)
	return nil
}

func (x *fleetNode) Persist(now time.Duration, id uint64, record *Record) error {
	x.synced = now + fleetDisk
	if x.written != nil {
		x.written(record.Encode())
	}
	x.disk.Begin(id, record)
	return nil
}

// due is when a node has something to do of its own.
func (x *fleetNode) due() time.Duration {
	switch {
	case x.host == nil:
		return Never
	case x.disk.Busy():
		return min(x.host.Next(), x.synced)
	}
	return x.host.Next()
}

// packet is the broker and the planner's ear.
func (f *fleet) packet(x *fleetNode, p proto.Packet) {
	f.t.Helper()
	switch p.Kind {
	case proto.Subscribe:
		x.watch = append(x.watch, p.Topic)
		return
	case proto.Unsubscribe:
		x.watch = slices.DeleteFunc(x.watch, func(s string) bool { return s == p.Topic })
		return
	}
	if !x.linked {
		f.t.Fatalf("node %d publishes %s without a link", x.id, p.Topic)
	}
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil {
		f.t.Fatal(err)
	}
	switch topic.Kind {
	case proto.TopicAck:
		var a proto.Ack
		f.decode(p, &a)
		f.acks[x.id] = a
	case proto.TopicReported:
		f.decode(p, &x.last)
	case proto.TopicHealth:
		if f.sample != nil {
			var h proto.Health
			f.decode(p, &h)
			f.sample(x, &h)
		}
	case proto.TopicEvent:
		var e proto.Event
		f.decode(p, &e)
		if n := len(x.events); n > 0 && e.Seq <= x.events[n-1].Seq {
			return // told again
		}
		if n := len(x.events); n > 0 && e.Seq != x.events[n-1].Seq+1 {
			f.t.Errorf("node %d: event %d after %d", x.id, e.Seq, x.events[n-1].Seq)
		}
		x.events = append(x.events, e)
		f.trace = append(f.trace, fmt.Sprintf("%v node %d: %v %v %v->%v %v %+v %s", f.world.Now(), x.id, e.Kind, e.Side, e.FromPath, e.Path, e.Cause, e.Ledger, e.Text))
	}
}

func (f *fleet) decode(p proto.Packet, msg any) {
	f.t.Helper()
	if _, err := proto.Decode(p.Payload, msg); err != nil {
		f.t.Fatalf("%s: %v", p.Topic, err)
	}
}

func (f *fleet) link(x *fleetNode, up bool) {
	x.linked = up
	kind := proto.LinkDown
	if up {
		kind = proto.LinkUp
	}
	f.deliver(x, Input{Kind: InPacket, Packet: proto.Packet{Kind: kind}})
}

func (f *fleet) deliver(x *fleetNode, in Input) {
	f.t.Helper()
	x.host.Deliver(f.world.Now(), in)
	f.poll(x)
}

// publish gives a message to every linked node that asked for its topic.
func (f *fleet) publish(topic string, msg any) {
	f.t.Helper()
	payload, err := proto.Encode(msg)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, x := range f.nodes {
		if x.agent != nil && x.linked && slices.Contains(x.watch, topic) {
			f.deliver(x, Input{Kind: InPacket, Packet: proto.Packet{Topic: topic, Payload: payload}})
		}
	}
}

// run lets time pass until limit, or until done.
func (f *fleet) run(d time.Duration, done func() bool) bool {
	f.t.Helper()
	limit := f.world.Now() + d
	for {
		if done != nil && done() {
			return true
		}
		at := limit
		var first *fleetNode
		for _, x := range f.nodes {
			if n := x.due(); n < at {
				at, first = n, x
			}
		}
		if next, any := f.world.Next(); any && next <= at {
			id, ev, ok := f.world.Step()
			if ev.Edge != nil && f.edge != nil {
				f.edge(ev.Edge)
			}
			if x := f.nodes[id]; ok && x.agent != nil {
				if ev.Completion != nil {
					x.quarantine.Done(f.world.Now(), ev.Completion)
				}
				if f.before != nil {
					f.before(x, ev)
				}
				f.deliver(x, Input{Kind: InHardware, Hardware: ev})
			}
			continue
		}
		if at > f.world.Now() {
			f.world.AdvanceTo(at)
		}
		switch {
		case first == nil:
			return done != nil && done()
		case first.disk.Busy() && first.synced <= at:
			id, err := first.disk.Commit()
			if err != nil {
				f.t.Fatal(err)
			}
			f.deliver(first, Input{Kind: InPersisted, ID: id})
		default:
			if f.before != nil {
				f.before(first, hal.Event{})
			}
			f.poll(first)
		}
	}
}

// must is run that has to end by itself.
func (f *fleet) must(what string, d time.Duration, done func() bool) {
	f.t.Helper()
	if !f.run(d, done) {
		for _, x := range f.nodes {
			if x.agent != nil {
				f.t.Logf("node %d: %v %+v", x.id, x.host.View().Mode(), x.sides())
				for i := range x.agent.optics.(*nodeOptics).bundles {
					s := x.agent.optics.(*nodeOptics).bundles[i].optics.Status()
					f.t.Logf("  bundle %d: %v %v %v lit %04b ready %v %v", i, s.Machine, s.Path, s.State, x.agent.optics.(*nodeOptics).bundles[i].lit, s.Ready, s.Err)
				}
			}
		}
		for _, line := range f.trace {
			f.t.Log(line)
		}
		f.t.Fatalf("not within %v: %s", d, what)
	}
}

func (f *fleet) live() []*fleetNode {
	var out []*fleetNode
	for _, x := range f.nodes {
		if x.agent != nil {
			out = append(out, x)
		}
	}
	return out
}

// ring is the plan of one ring over the nodes first to last.
func (f *fleet) ring(first, last int) map[proto.NodeID]*proto.Desired {
	plan := map[proto.NodeID]*proto.Desired{}
	f.gen++
	for i := first; i <= last; i++ {
		a := proto.RingAssignment{Ring: 1, Generation: f.gen, Position: uint16(i - first), Size: uint16(last - first + 1),
			Envelope: f.cals[0].Timing.Envelope(laserSkew)}
		for hop := 1; hop <= 2; hop++ {
			path := proto.External1 + proto.Path(hop-1)
			if i-hop >= first {
				a.Left = append(a.Left, proto.Candidate{Bundle: 0, Path: path, Peer: proto.NodeID(i - hop), Others: i-hop-1 >= 0 && i-hop+2 <= last})
			}
			if i+hop <= last {
				a.Right = append(a.Right, proto.Candidate{Bundle: 1, Path: path, Peer: proto.NodeID(i + hop), Others: i+hop-2 >= first})
			}
		}
		plan[proto.NodeID(i)] = &proto.Desired{Version: proto.Version, Node: proto.NodeID(i), Term: f.term, Generation: f.gen,
			Plan: proto.Digest{byte(f.gen)}, Rings: []proto.RingAssignment{a}, Decisions: []proto.RingID{1},
			BypassSeq: f.nodes[i].host.View().State().BypassSeq}
	}
	return plan
}

// commit prepares a plan on its nodes and lets it take effect.
func (f *fleet) commit(plan map[proto.NodeID]*proto.Desired) {
	f.t.Helper()
	topics := proto.Topics{Fabric: "f1"}
	clear(f.acks)
	for n := range proto.NodeID(len(f.nodes)) {
		if d := plan[n]; d != nil {
			f.publish(topics.Desired(n), d)
		}
	}
	f.must("prepared", time.Second, func() bool {
		for n := range plan { // any order: all must have answered
			if a := f.acks[n]; a.Phase != proto.PhasePrepare || a.Code != proto.OK || a.Generation != f.gen {
				return false
			}
		}
		return true
	})
	f.publish(topics.Decision(1), &proto.Decision{Version: proto.Version, Ring: 1, Term: f.term, Generation: f.gen,
		Plan: proto.Digest{byte(f.gen)}, Verdict: proto.Commit})
}

// heard is the planner's sign of life.
func (f *fleet) heard() {
	f.publish(proto.Topics{Fabric: "f1"}.Planner(), &proto.PlannerState{Version: proto.Version, Planner: 9, Online: true, Term: f.term, PeriodMillis: 1000})
}

// sides are how a node's machine reports its sides.
func (x *fleetNode) sides() []proto.SideReport {
	var r proto.Reported
	x.host.View().Report(&r)
	return r.Sides
}

// standing is the state of every side of the live nodes.
func (f *fleet) standing(x *fleetNode, side proto.Side) (s proto.SideReport) {
	for _, s := range x.sides() {
		if s.Side == side {
			return s
		}
	}
	return proto.SideReport{Current: -1}
}

// linkedTo reports whether two neighbours work on each other.
func (f *fleet) linkedTo(left, right int) bool {
	l, r := f.standing(f.nodes[left], proto.Right), f.standing(f.nodes[right], proto.Left)
	return l.State == proto.SideWork && r.State == proto.SideWork && int(l.Peer) == right && int(r.Peer) == left
}

// ringed is a fleet whose nodes are one ring.
func ringed(t *testing.T, n, modules int) *fleet {
	t.Helper()
	return newFleet(t, n, modules).join()
}

// join makes one ring of all nodes.
func (f *fleet) join() *fleet {
	f.t.Helper()
	n := len(f.nodes)
	for _, x := range f.nodes {
		f.link(x, true)
	}
	f.must("adopted and ready", 5*time.Second, func() bool {
		for _, x := range f.nodes {
			if !x.agent.adopted || !x.agent.optics.(*nodeOptics).bundles[0].ready || !x.agent.optics.(*nodeOptics).bundles[1].ready {
				return false
			}
		}
		return true
	})
	f.heard()
	f.must("loopback", time.Second, func() bool {
		for i := range f.nodes {
			for b := range 2 {
				if !f.world.Lit(sim.Port{Board: sim.BoardID(i), Bundle: b, Path: hal.LOSLoopback}) {
					return false
				}
			}
		}
		return true
	})
	f.commit(f.ring(0, n-1))
	f.must("ring", time.Second, func() bool {
		for i := 1; i < n; i++ {
			if !f.linkedTo(i-1, i) {
				return false
			}
		}
		return true
	})
	f.run(20*time.Millisecond, nil)
	return f
}

// checkCycle wants all GPUs of the boards with power in one closed cycle.
func (f *fleet) checkCycle(nodes ...int) {
	f.t.Helper()
	alive := map[sim.BoardID]bool{}
	for _, n := range nodes {
		alive[sim.BoardID(n)] = true
	}
	c := f.world.Walk(func(b sim.BoardID) bool { return alive[b] })
	if len(c.Open) != 0 || len(c.Closed) != 1 || len(c.Closed[0]) != 4*len(nodes) {
		f.t.Errorf("light: %d closed, %d open pieces: %v %v", len(c.Closed), len(c.Open), c.Closed, c.Open)
	}
}

var _ = node.Never
