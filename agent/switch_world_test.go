package agent

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/proto"
	"ringlight/sim"
)

// switchRig is one MEMS switch on a virtual clock, with its agent, its disk
// and a planner played by the test.
type switchRig struct {
	t       testing.TB
	world   *sim.World
	id      sim.BoardID
	board   *hal.Board
	factory *mems.Factory
	ports   int

	written    func(record []byte)
	host       *Host  // nil: the process is dead
	agent      *Agent // inside it
	life       int
	quarantine *hal.Quarantine
	disk       Disk
	synced     time.Duration // when the record under way is on disk
	linked     bool
	watch      []string
	acks       []proto.Ack
	events     []proto.Event
	last       proto.Reported
	health     proto.Health
	birth      proto.Presence
	told       int           // reports
	spi        int           // operations that moved mirrors
	slow       time.Duration // before any operation begins
	late       []lateWork
	term       proto.Term
	gen        proto.Generation
	answer     *Answer
	thresholds [hal.NumSides]circuit.Thresholds
	lines      func(id uint64, reply []byte) // to visitors
	// Pairs of ports whose light must not go: look is called at every step.
	watched []circuit.Pair
	drops   []string
}

// lateWork begins later than it was asked for.
type lateWork struct {
	at   time.Duration
	work Work
}

const switchNode = proto.FirstSwitch + 3

func newSwitchRig(t testing.TB, ports int, faults ...sim.Fault) *switchRig {
	t.Helper()
	hw, err := hal.DefaultMEMS(ports)
	if err != nil {
		t.Fatal(err)
	}
	r := &switchRig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: 7}), board: &hw, ports: ports, term: 1}
	if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Seed: 7, Powered: true, Faults: faults}); err != nil {
		t.Fatal(err)
	}
	r.factory = mems.Measure(r.world.Maker(r.id), ports)
	r.boot()
	return r
}

// boot starts a new life of the agent from what is on its disk.
func (r *switchRig) boot() {
	r.t.Helper()
	r.life++
	r.watch, r.linked, r.quarantine = nil, false, hal.NewQuarantine(r.board)
	r.host = NewHost(Config{Fabric: "f1", Node: switchNode, Board: r.board, Factory: r.factory, Session: proto.Session(100 + r.life),
		HealthPeriod: time.Second, Thresholds: r.thresholds}, r.disk.Restore(), r, nil)
	r.host.Line = func(id uint64, reply []byte) { r.lines(id, reply) }
	r.agent = r.host.agent
	r.poll()
}

// kill ends the agent; what was not on disk is lost.
func (r *switchRig) kill() {
	r.host, r.agent = nil, nil
	r.disk.Lose()
}

func (r *switchRig) poll() {
	r.t.Helper()
	if err := r.host.Settle(r.world.Now()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *switchRig) Submit(now time.Duration, w Work) error {
	if r.board.Buses[w.Bus].Kind == hal.SPI {
		r.spi++
	}
	if err := r.quarantine.Refuse(now, w.Bus, w.Op); err != nil {
		return err
	}
	if r.slow > 0 {
		r.late = append(r.late, lateWork{now + r.slow, w})
		return nil
	}
	return r.world.Submit(now, r.id, w.Bus, w.Op)
}

func (r *switchRig) Send(_ time.Duration, p proto.Packet) error {
	r.packet(p)
	return nil
}

func (r *switchRig) Persist(now time.Duration, id uint64, record *Record) error {
	r.synced = now + fleetDisk
	if r.written != nil {
		r.written(record.Encode())
	}
	r.disk.Begin(id, record)
	return nil
}

func (r *switchRig) packet(p proto.Packet) {
	r.t.Helper()
	switch p.Kind {
	case proto.Subscribe:
		r.watch = append(r.watch, p.Topic)
		return
	case proto.Unsubscribe:
		r.watch = slices.DeleteFunc(r.watch, func(s string) bool { return s == p.Topic })
		return
	}
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil {
		r.t.Fatal(err)
	}
	decode := func(msg any) {
		if _, err := proto.Decode(p.Payload, msg); err != nil {
			r.t.Fatalf("%s: %v", p.Topic, err)
		}
	}
	switch topic.Kind {
	case proto.TopicAck:
		var a proto.Ack
		decode(&a)
		r.acks = append(r.acks, a)
	case proto.TopicReported:
		r.last = proto.Reported{}
		decode(&r.last)
		r.told++
	case proto.TopicHealth:
		r.health = proto.Health{}
		decode(&r.health)
	case proto.TopicPresence:
		r.birth = proto.Presence{}
		decode(&r.birth)
	case proto.TopicEvent:
		var e proto.Event
		decode(&e)
		if n := len(r.events); n == 0 || e.Seq > r.events[n-1].Seq {
			r.events = append(r.events, e)
		}
	}
}

func (r *switchRig) in(p proto.Packet) {
	r.t.Helper()
	r.host.Deliver(r.world.Now(), Input{Kind: InPacket, Packet: p, At: r.world.Now()})
	r.poll()
}

func (r *switchRig) link(up bool) {
	r.linked = up
	r.in(proto.Packet{Kind: map[bool]proto.PacketKind{true: proto.LinkUp, false: proto.LinkDown}[up]})
}

func (r *switchRig) publish(topic string, msg any) {
	r.t.Helper()
	payload, raw := msg.([]byte)
	if !raw {
		var err error
		if payload, err = proto.Encode(msg); err != nil {
			r.t.Fatal(err)
		}
	}
	if r.agent != nil && r.linked && slices.Contains(r.watch, topic) {
		r.in(proto.Packet{Topic: topic, Payload: payload})
	}
}

func (r *switchRig) ask(q Ask) *Answer {
	r.t.Helper()
	r.answer = nil
	r.host.Ask(r.world.Now(), q, func(a *Answer) { r.answer = a })
	r.poll()
	if r.answer == nil {
		r.t.Fatal("no answer")
	}
	return r.answer
}

// step lets one thing happen, not after limit; false: nothing did.
func (r *switchRig) step(limit time.Duration) bool {
	r.t.Helper()
	at, own := limit, false
	if r.host != nil && r.host.Next() < at {
		at, own = r.host.Next(), true
	}
	if r.disk.Busy() && r.synced <= at {
		at, own = r.synced, true
	}
	defer r.look()
	if next, any := r.world.Next(); len(r.late) > 0 && r.late[0].at <= at && (!any || r.late[0].at <= next) {
		w := r.late[0]
		r.late = r.late[1:]
		r.world.AdvanceTo(w.at)
		if err := r.world.Submit(w.at, r.id, w.work.Bus, w.work.Op); err != nil {
			r.t.Fatal(err)
		}
		return true
	}
	if next, any := r.world.Next(); any && next <= at {
		_, ev, ok := r.world.Step()
		if ok && r.host != nil {
			if ev.Completion != nil {
				r.quarantine.Done(r.world.Now(), ev.Completion)
			}
			r.host.Deliver(r.world.Now(), Input{Kind: InHardware, Hardware: ev})
			r.poll()
		}
		return true
	}
	r.world.AdvanceTo(max(at, r.world.Now()))
	switch {
	case !own:
		return false
	case r.disk.Busy() && r.synced <= at:
		id, err := r.disk.Commit()
		if err != nil {
			r.t.Fatal(err)
		}
		r.host.Deliver(r.world.Now(), Input{Kind: InPersisted, ID: id})
		r.poll()
	default:
		r.poll()
	}
	return true
}

// look notes which of the watched circuits has less light than it should.
func (r *switchRig) look() {
	for _, p := range r.watched {
		loss := r.world.MirrorLoss(r.id, int(p.A), int(p.B))
		if good := r.world.Maker(r.id).Loss(int(p.A), int(p.B), sim.DefaultMilliTHz, 30_000); loss > good+1000 {
			r.drops = append(r.drops, fmt.Sprintf("%v: %v loses %d, factory %d", r.world.Now(), p, loss, good))
		}
	}
}

// run lets time pass, or until done.
func (r *switchRig) run(d time.Duration, done func() bool) bool {
	r.t.Helper()
	limit := r.world.Now() + d
	for done == nil || !done() {
		if !r.step(limit) {
			return done == nil || done()
		}
	}
	return true
}

func (r *switchRig) must(what string, d time.Duration, done func() bool) {
	r.t.Helper()
	if !r.run(d, done) {
		if r.agent != nil {
			r.t.Logf("%+v", r.ask(Ask{Verb: AskStatus}).Status.Switch)
		}
		r.t.Logf("report %+v", r.last)
		for _, e := range r.events {
			r.t.Logf("event %+v", e)
		}
		r.t.Fatalf("not within %v: %s", d, what)
	}
}

// start brings a rig into touch with its planner.
func (r *switchRig) start() {
	r.t.Helper()
	r.must("adopted", 5*time.Second, func() bool { return r.agent.adopted })
	r.link(true)
	r.run(time.Second, nil)
}

// desired is a plan of the next generation.
func (r *switchRig) desired(circuits ...proto.Circuit) *proto.Desired {
	r.gen++
	return &proto.Desired{Version: proto.Version, Node: switchNode, Term: r.term, Generation: r.gen, Plan: proto.Digest{byte(r.gen)},
		Decisions: []proto.RingID{proto.FirstGroup}, Circuits: circuits, BypassSeq: r.host.View().State().BypassSeq}
}

var switchTopics = proto.Topics{Fabric: "f1"}

// prepare sends a plan and gives the answer.
func (r *switchRig) prepare(d *proto.Desired) proto.Ack {
	r.t.Helper()
	r.acks = nil
	r.publish(switchTopics.Desired(switchNode), d)
	r.must("an answer", time.Second, func() bool { return len(r.acks) > 0 })
	return r.acks[0]
}

func (r *switchRig) decide(d *proto.Desired, v proto.Verdict) {
	r.t.Helper()
	r.publish(switchTopics.Decision(proto.FirstGroup), &proto.Decision{Version: proto.Version, Ring: proto.FirstGroup, Term: d.Term,
		Generation: d.Generation, Plan: d.Plan, Verdict: v})
}

// roll brings a plan about.
func (r *switchRig) roll(circuits ...proto.Circuit) *proto.Desired {
	r.t.Helper()
	d := r.desired(circuits...)
	if a := r.prepare(d); a.Code != proto.OK {
		r.t.Fatalf("prepare: %+v", a)
	}
	r.decide(d, proto.Commit)
	r.must("done", 3*time.Second, func() bool { return r.done(d) })
	return d
}

// done is what a planner calls done.
func (r *switchRig) done(d *proto.Desired) bool {
	if r.last.Generation != d.Generation || r.last.Plan != d.Plan || len(r.last.Circuits) != len(d.Circuits) {
		return false
	}
	for _, c := range r.last.Circuits {
		if c.State != proto.Tuned || !slices.ContainsFunc(d.Circuits, func(w proto.Circuit) bool { return w.A == c.A && w.B == c.B && w.Job == c.Job }) {
			return false
		}
	}
	return true
}

// lit tells whether the light of a circuit really passes.
func (r *switchRig) lit(c proto.Circuit) bool {
	return r.world.MirrorLoss(r.id, int(c.A), int(c.B)) < 4000
}

// light are all pairs of ports between which light passes.
func (r *switchRig) light() (out []circuit.Pair) {
	for a := range uint16(r.ports) {
		for b := range uint16(r.ports) {
			if r.lit(proto.Circuit{A: a, B: b}) {
				out = append(out, circuit.Pair{A: a, B: b})
			}
		}
	}
	return out
}

// checkLight wants exactly these circuits, by light.
func (r *switchRig) checkLight(want ...proto.Circuit) {
	r.t.Helper()
	for a := range uint16(r.ports) {
		for b := range uint16(r.ports) {
			is := slices.ContainsFunc(want, func(c proto.Circuit) bool { return c.A == a && c.B == b })
			if lit := r.lit(proto.Circuit{A: a, B: b}); lit != is {
				r.t.Errorf("circuit %d to %d: light %v, want %v", a, b, lit, is)
			}
		}
	}
}

// shift is n circuits from a to a+by, of a job each.
func shift(n, ports, by int) []proto.Circuit {
	var out []proto.Circuit
	for a := range n {
		out = append(out, proto.Circuit{A: uint16(a), B: uint16((a + by) % ports), Job: proto.JobID(10 + a)})
	}
	return out
}

func (r *switchRig) eventsOf(kind proto.EventKind) []proto.Event {
	return slices.DeleteFunc(slices.Clone(r.events), func(e proto.Event) bool { return e.Kind != kind })
}
