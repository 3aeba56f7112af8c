package box_test

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/hal/scpi"
	"ringlight/hal/sonic"
	"ringlight/hal/tl1"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// fakeBox is a commercial switch at the far end of a network, with the manners of one:
// what it tells is one thing, what its crossbar does another.
type fakeBox struct {
	protocol string
	sonic    *sonicEnd  // one of the three
	scpi     *scpiEnd   //
	tl1      *scriptEnd // with its crossbar
	far      farEnd
	end      byte

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
	f := &fakeBox{protocol: protocol, end: ';'}
	switch protocol {
	case "scpi":
		f.scpi, f.end = newSCPIEnd(fakePorts), '\n'
		f.far = f.scpi
		return f
	case "sonic-ocs":
		f.sonic, f.end = newSonicEnd(fakePorts, sonic.Tables), 0
		f.far = f.sonic
		return f
	case "tl1":
		f.tl1 = &scriptEnd{s: &tl1Server{Name: "box", User: "u", Password: "pw", Names: tl1.DefaultNames(fakePorts)}}
	default:
		f.tl1 = &scriptEnd{s: &tl1Server{Name: "box", User: "u", Password: "pw", Names: tl1.PatchNames(fakePorts, fakePorts)}}
	}
	f.far = f.tl1
	return f
}

func (f *fakeBox) client() *hal.BoxClient {
	if f.sonic != nil {
		return f.sonic.client()
	}
	if f.scpi != nil {
		return scpi.NewClient()
	}
	return tl1.NewClient(tl1.Config{Names: f.tl1.s.Names, User: "u", Password: "pw", Group: "G", Patch: f.protocol == "tl1-patch"})
}

// hangUp is the end of a connection: what was not read is lost, nobody is logged in.
func (f *fakeBox) hangUp() {
	if f.sonic != nil {
		f.sonic.out = nil
		return
	}
	if f.scpi != nil {
		f.scpi.server, f.scpi.out = scpi.NewServer(f.scpi), nil
		return
	}
	f.tl1.out, f.tl1.s.buf, f.tl1.s.in = nil, nil, false
}

// noMeters: the box was ordered without.
func (f *fakeBox) noMeters() {
	if f.scpi != nil {
		f.scpi.state.HasMeters, f.scpi.state.Identity = false, "Polatis,I-OST-8x8-LA1,1,6.5"
	} else {
		f.tl1.s.NoMeters = true
	}
}

// report is what the box says unasked, before its next answer.
func (f *fakeBox) report(about, line string) {
	f.tl1.out = fmt.Appendf(f.tl1.out, "\r\n\n   box 26-01-01 00:00:00\r\n** 77 REPT %s\r\n   \"%s\"\r\n;", about, line)
}

// open is a shutter that somebody opens at the box.
func (f *fakeBox) open(port string) {
	if f.sonic != nil {
		delete(f.sonic.override, port+"A")
	} else if f.scpi != nil {
		f.scpi.closed[port] = false
	} else {
		f.tl1.s.Closed[port] = false
	}
}

// lit are the connections that the crossbar makes and no shutter closes, whoever asked
// for them.
func (f *fakeBox) lit() (out []circuit.Pair) {
	if f.sonic != nil {
		return f.sonic.lit()
	}
	if f.scpi != nil {
		for _, p := range f.scpi.state.Map {
			out = append(out, circuit.Pair{A: p.In, B: p.Out})
		}
	} else {
		for _, c := range f.tl1.s.made {
			if c.Active {
				out = append(out, circuit.Pair{A: uint16(slices.Index(f.tl1.s.Names.In, c.Source)), B: uint16(slices.Index(f.tl1.s.Names.Out, c.Destination))})
			}
		}
	}
	closed := f.closed()
	out = slices.DeleteFunc(out, func(p circuit.Pair) bool {
		return closed[strconv.Itoa(int(p.A)+1)] || closed[strconv.Itoa(int(p.B)+1+fakePorts)]
	})
	slices.SortFunc(out, func(p, q circuit.Pair) int { return int(p.A) - int(q.A) })
	return out
}

func (f *fakeBox) closed() map[string]bool {
	if f.scpi != nil {
		return f.scpi.closed
	}
	return f.tl1.s.Closed
}

// cut is a connection taken away at the box itself, and join one made there.
func (f *fakeBox) cut(a, b uint16) {
	if f.sonic != nil {
		locked := f.sonic.locked
		f.sonic.locked = ""
		for _, c := range slices.Clone(f.sonic.wanted) {
			if x, y := pairOf(c); x == int(a) || y == int(b) {
				_, _ = f.sonic.Update([]string{c.ID}, nil)
			}
		}
		f.sonic.locked = locked
		return
	}
	if f.scpi != nil {
		f.scpi.state.Map = slices.DeleteFunc(f.scpi.state.Map, func(p hal.PortPair) bool { return p.In == a || p.Out == b })
		return
	}
	n := f.tl1.s.Names
	f.tl1.s.made = slices.DeleteFunc(f.tl1.s.made, func(c crossConnection) bool { return c.Source == n.In[a] || c.Destination == n.Out[b] })
}

func (f *fakeBox) join(a, b uint16, group string) {
	if f.sonic != nil { // what is in its way stays in the list, and is invalid
		for _, m := range f.sonic.made { // any order: all are treated alike
			m.invalid = m.invalid || m.a == int(a) || m.b == int(b)
		}
		c := sonic.Connection{ID: fmt.Sprint(group, a, b), A: name(0, int(a)), B: name(1, int(b))}
		f.sonic.wanted = append(slices.DeleteFunc(f.sonic.wanted, func(o sonic.Connection) bool { return o.ID == c.ID }), c)
		delete(f.sonic.made, c.ID)
		f.sonic.make([]sonic.Connection{c})
		return
	}
	f.cut(a, b)
	if f.scpi != nil {
		f.scpi.state.Map = append(f.scpi.state.Map, hal.PortPair{In: a, Out: b})
		return
	}
	n := f.tl1.s.Names
	f.tl1.s.made = append(f.tl1.s.made, crossConnection{Source: n.In[a], Destination: n.Out[b], Group: group, Name: n.In[a] + ">" + n.Out[b], Active: true})
}

// lock is another user's, "" nobody's.
func (f *fakeBox) lock(owner string) {
	if f.sonic != nil {
		f.sonic.locked = owner
	} else if f.scpi != nil {
		f.scpi.locked = owner
	} else {
		f.tl1.s.Locked = owner
	}
}

// restart takes all connections with it.
func (f *fakeBox) restart() {
	f.hangUp()
	if f.sonic != nil {
		f.sonic.reboot(false)
	} else if f.scpi != nil {
		f.scpi.state.Map = nil
	} else {
		f.tl1.s.made = nil
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
	s.far.hangUp()
	board := &hal.Board{Buses: []hal.Bus{{Kind: hal.TextLine, Device: "10.0.0.9:3082"}}}
	s.host = agent.NewHost(agent.Config{Fabric: "f1", Node: boxNode, Board: board, BoxPorts: fakePorts, Session: proto.Session(s.life),
		Box: &box.Config{Client: s.far.client(), End: s.far.end, Ports: fakePorts, Deadline: s.limit}, HealthPeriod: 5 * time.Second,
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
		if at, reply = now+300*time.Millisecond, append([]byte("odd"), f.end); f.tl1 != nil {
			reply = []byte("\r\n\n   box 26-01-01 00:00:00\r\nA  1 REPT EVT CRS\r\n;")
		}
	case !f.halfOpen:
		if f.scpi != nil {
			f.scpi.dark = f.dark
		} else if f.tl1 != nil {
			f.tl1.dark = f.dark
		}
		f.far.say(m.W)
		for tries := 0; len(reply) == 0 && tries < 10; tries++ {
			reply = f.far.hear()
		}
		if power := "-1.0"; f.oddMeter != "" && (f.tl1 != nil || bytes.Contains(m.W, []byte("pmon"))) {
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
		f.hangUp()
	}
	copy(m.R, reply)
	s.jobs = append(s.jobs, job{at, c})
	return nil
}

func (s *service) Persist(now time.Duration, id uint64, record []byte) error {
	if _, err := s.disk.Begin(id, record); err != nil {
		return err
	}
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
	for _, p := range s.far.lit() {
		out = append(out, p.String())
	}
	return strings.Join(out, " ")
}
