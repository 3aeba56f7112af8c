package box_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/hal/scpi"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/proto"
	"ringlight/sim/boxes"
)

// fakeBox is a commercial switch at the far end of a network, with the manners of one.
type fakeBox struct {
	boxes.Box
	protocol string

	refused  bool          // nobody takes the connection
	halfOpen bool          // lines go out, and arrive nowhere
	mute     bool          // they arrive, and nothing comes back
	babble   bool          // what comes back is never the answer
	delay    time.Duration // before an answer
	oddMeter string        // what one meter says
	dark     bool          // no light comes in
}

const fakePorts = 8

func newFakeBox(protocol string) *fakeBox {
	f := &fakeBox{protocol: protocol, Box: boxes.New(protocol, fakePorts)}
	f.SetDark(func(int) bool { return f.dark })
	return f
}

func (f *fakeBox) tl1() *boxes.TL1     { x, _ := f.Box.(*boxes.TL1); return x }
func (f *fakeBox) scpi() *boxes.SCPI   { x, _ := f.Box.(*boxes.SCPI); return x }
func (f *fakeBox) sonic() *boxes.Sonic { x, _ := f.Box.(*boxes.Sonic); return x }

// noMeters: the box was ordered without.
func (f *fakeBox) noMeters() {
	if e := f.scpi(); e != nil {
		e.Box.HasMeters, e.Box.Identity = false, "Polatis,I-OST-8x8-LA1,1,6.5"
	} else {
		f.tl1().NoMeters = true
	}
}

// report is what the box says unasked, before its next answer.
func (f *fakeBox) report(about, line string) {
	f.tl1().Out = fmt.Appendf(f.tl1().Out, "\r\n\n   box 26-01-01 00:00:00\r\n** 77 REPT %s\r\n   \"%s\"\r\n;", about, line)
}

// open is a shutter that somebody opens at the box.
func (f *fakeBox) open(port string) {
	switch e := f.Box.(type) {
	case *boxes.Sonic:
		delete(e.Override, port+"A")
	case *boxes.SCPI:
		e.Closed[port] = false
	case *boxes.TL1:
		e.Closed[port] = false
	}
}

// service is a box with the agent of a switch, and a planner and a client played by the
// test, on a virtual clock.
type service struct {
	t      *testing.T
	far    *fakeBox
	host   *agent.Host
	disk   agent.Disk
	now    time.Duration
	jobs   []job
	watch  []string
	gen    proto.Generation
	acks   []proto.Ack
	events []proto.Event
	last   proto.Reported
	lines  string
	life   int
	limit  time.Duration // of an answer of the box
}

type job struct {
	at time.Duration
	c  *hal.Completion
}

const boxNode = proto.FirstSwitch + 3

var boxTopics = proto.Topics{Fabric: "f1"}

func newService(t *testing.T, protocol string, set func(*service)) *service {
	s := &service{t: t, far: newFakeBox(protocol)}
	if set != nil {
		set(s)
	}
	s.boot()
	return s
}

// boot is another life of the agent.
func (s *service) boot() {
	s.t.Helper()
	s.life++
	s.watch, s.jobs = nil, nil
	s.far.HangUp()
	board := &hal.Board{Buses: []hal.Bus{{Kind: hal.TextLine, Device: "10.0.0.9:3082"}}}
	s.host = agent.NewHost(agent.Config{Fabric: "f1", Node: boxNode, Board: board, BoxPorts: fakePorts, Session: proto.Session(s.life),
		Box: &box.Config{Client: s.far.Client(), End: s.far.End(), Ports: fakePorts, Deadline: s.limit}, HealthPeriod: 5 * time.Second,
		Lines: func(b *circuit.Served) agent.LineServer { return scpi.NewServer(b) }}, s.disk.Restore(), s, nil)
	s.host.Line = func(_ uint64, reply []byte) { s.lines += string(reply) }
	s.poll()
	s.run(100 * time.Millisecond)
	s.deliver(agent.Input{Kind: agent.InPacket, Packet: proto.Packet{Kind: proto.LinkUp}})
}

func (s *service) Submit(now time.Duration, w agent.Work) error {
	m, c, f := &w.Op.Msgs[0], &hal.Completion{Bus: w.Bus, Op: w.Op}, s.far
	at := now + time.Millisecond
	var reply []byte
	switch {
	case f.refused:
		c.Err = fmt.Errorf("dial tcp: connection refused: %w", hal.ErrNoDevice)
	case f.babble:
		if at, reply = now+300*time.Millisecond, append([]byte("odd"), f.End()); f.tl1() != nil {
			reply = []byte("\r\n\n   box 26-01-01 00:00:00\r\nA  1 REPT EVT CRS\r\n;")
		}
	case !f.halfOpen:
		f.Say(m.W)
		for tries := 0; len(reply) == 0 && tries < 10; tries++ {
			reply = f.Hear()
		}
		if power := "-1.0"; f.oddMeter != "" && (f.tl1() != nil || bytes.Contains(m.W, []byte("pmon"))) {
			reply = bytes.Replace(reply, []byte(power), []byte(f.oddMeter), 1)
		}
		if at = max(at, now+f.delay); f.mute {
			reply = nil
		}
	}
	if at > now+w.Op.Deadline {
		reply = nil
	}
	if len(reply) == 0 && c.Err == nil {
		at, c.Err = now+w.Op.Deadline, hal.ErrTimeout
	}
	if c.Err != nil {
		f.HangUp()
	}
	copy(m.R, reply)
	s.jobs = append(s.jobs, job{at, c})
	return nil
}

func (s *service) Persist(now time.Duration, id uint64, record *agent.Record) error {
	s.disk.Begin(id, record)
	if _, err := s.disk.Commit(); err != nil {
		return err
	}
	s.host.Deliver(now, agent.Input{Kind: agent.InPersisted, ID: id})
	return nil
}

func (s *service) Send(_ time.Duration, p proto.Packet) error {
	if p.Kind == proto.Subscribe {
		s.watch = append(s.watch, p.Topic)
	}
	if p.Kind != proto.Publish {
		return nil
	}
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil {
		s.t.Fatal(err)
	}
	switch topic.Kind {
	case proto.TopicAck:
		s.acks = append(s.acks, decoded[proto.Ack](s.t, p.Payload))
	case proto.TopicEvent:
		s.events = append(s.events, decoded[proto.Event](s.t, p.Payload))
	case proto.TopicReported:
		s.last = decoded[proto.Reported](s.t, p.Payload)
	}
	return nil
}

func decoded[T any](t *testing.T, raw []byte) (msg T) {
	if _, err := proto.Decode(raw, &msg); err != nil {
		t.Fatal(err)
	}
	return msg
}

func (s *service) deliver(in agent.Input) {
	s.t.Helper()
	in.At = s.now
	s.host.Deliver(s.now, in)
	s.poll()
}

func (s *service) poll() {
	s.t.Helper()
	if err := s.host.Settle(s.now); err != nil {
		s.t.Fatal(err)
	}
}

// run lets time pass.
func (s *service) run(d time.Duration) {
	s.t.Helper()
	limit := s.now + d
	for {
		at, first := min(limit, s.host.Next()), -1
		for i := range s.jobs {
			if s.jobs[i].at <= at {
				at, first = s.jobs[i].at, i
			}
		}
		s.now = max(s.now, at)
		if first >= 0 {
			c := s.jobs[first].c
			s.jobs = slices.Delete(s.jobs, first, first+1)
			s.deliver(agent.Input{Kind: agent.InHardware, Hardware: hal.Event{Completion: c}})
			continue
		}
		if at >= limit {
			return
		}
		s.poll()
	}
}

func (s *service) publish(topic string, msg any) {
	s.t.Helper()
	raw, err := proto.Encode(msg)
	if err != nil {
		s.t.Fatal(err)
	}
	if slices.Contains(s.watch, topic) {
		s.deliver(agent.Input{Kind: agent.InPacket, Packet: proto.Packet{Topic: topic, Payload: raw}})
	}
}

// plan is the planner's next generation: circuits by their ports, "1-5 2-6". It is the
// answer to its commit.
func (s *service) plan(circuits string) proto.Code {
	s.t.Helper()
	code, _ := s.planned(circuits)
	return code
}

// planned is plan, with whether it was staged, and so is in force.
func (s *service) planned(circuits string) (code proto.Code, staged bool) {
	s.t.Helper()
	s.gen++
	d := &proto.Desired{Version: proto.Version, Node: boxNode, Term: 1, Generation: s.gen, Plan: proto.Digest{byte(s.gen), byte(s.gen >> 8)},
		Decisions: []proto.RingID{proto.FirstGroup}, BypassSeq: s.host.View().State().BypassSeq}
	for w := range strings.FieldsSeq(circuits) {
		var a, b uint16
		if _, err := fmt.Sscanf(w, "%d-%d", &a, &b); err != nil {
			s.t.Fatal(err)
		}
		d.Circuits = append(d.Circuits, proto.Circuit{A: a - 1, B: b - 1, Job: 1})
	}
	answer := func() proto.Code {
		if len(s.acks) == 0 {
			return proto.Expired
		}
		return s.acks[0].Code
	}
	s.acks = nil
	s.publish(boxTopics.Desired(boxNode), d)
	if code = answer(); code != proto.OK {
		return code, false
	}
	s.acks = nil
	s.publish(boxTopics.Decision(proto.FirstGroup), &proto.Decision{Version: proto.Version, Ring: proto.FirstGroup, Term: 1, Generation: s.gen, Plan: d.Plan, Verdict: proto.Commit})
	s.run(10 * time.Millisecond)
	return answer(), true
}

// hold is an operator's word for a port.
func (s *service) hold(q agent.Ask) (err *proto.Error) {
	s.host.Ask(s.now, q, func(a *agent.Answer) { err = a.Err })
	s.poll()
	return err
}

// told is what the agent says: its circuits with why they are so, and its alarms.
func (s *service) told() string {
	var r proto.Reported
	s.host.View().Report(&r)
	st := s.host.Status(s.now).Switch
	var out []string
	if st.Reason != "" {
		out = append(out, "out of service: "+st.Reason)
	}
	for _, c := range r.Circuits {
		pair := circuit.Pair{A: c.A, B: c.B}.String()
		line := pair + " " + c.State.String()
		for _, has := range st.Circuits {
			if has.Circuit == pair && has.Reason != "" {
				line += ": " + has.Reason
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// lit is what the box's crossbar does.
func (s *service) lit() string {
	var out []string
	for _, p := range s.far.Lit() {
		out = append(out, p.String())
	}
	return strings.Join(out, " ")
}
