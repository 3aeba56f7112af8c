package mci

import (
	"errors"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/ocs/heater"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// Owner says what the modules of a Set are to hold.
type Owner interface {
	// Known refuses a module whose codes belong to another.
	Known(module int, serial string) error
	// Codes of a module, nil where none are known; whole: none was cut down.
	Codes(module int) (codes *heater.Allowed, whole bool)
	// Stage is told before a module's codes are written, and may refuse it.
	Stage(module int) error
}

// Set is the controllers of a bundle's modules.
type Set struct {
	Modules  []Module
	Longest  time.Duration // of all bus work since the modules were armed
	segments []*segment
	owner    Owner
	queue    *work.Queue
	task     uint8
	least    time.Duration // that heaters take to settle
	latency  time.Duration // longest from byte to drive, of all modules
	settle   time.Duration // and longest from there until the light has settled

	up     func(now time.Duration)
	down   func(now time.Duration, module int, err error)
	left   int  // modules that are being brought up
	differ bool // some carry light with other codes than they should
	halted bool

	fired     byte // the newest trigger
	out       int  // segments that it is under way on
	fireAgain time.Duration
	fireLimit time.Duration
	fireStart time.Duration
	fireEnd   time.Duration

	dump *dump // under way
	last dump
}

// segment is one I2C segment, with the trigger made ready.
type segment struct {
	bus   hal.BusID
	op    hal.Op
	msgs  [2]hal.Msg
	sel   [1]byte
	buf   [2]byte
	want  bool // to be put out
	held  bool // nobody on it answered
	out   bool
	try   int
	pause time.Duration // until it is asked again
	end   time.Duration // of the newest trigger on it
}

// A segment on which nobody answered is asked again after retryFirst, then after
// twice that, at last every retryMost. chosen: a question is 80 us with its
// call, and a quick controller is back within 200 us.
const (
	retryFirst = 50 * time.Microsecond
	retryMost  = 400 * time.Microsecond
)

// A token's number is the module, and 0; of a trigger its segment.
const (
	moduleShift  = 16
	segmentToken = 0x100
)

// New makes a Set of modules on some of buses that puts its work into q, as one
// task; settle is what heaters take at least.
func New(buses []hal.Bus, hw []hal.Module, owner Owner, q *work.Queue, task uint8, settle time.Duration) *Set {
	s := &Set{owner: owner, queue: q, task: task, least: settle, fireAgain: hal.Never, Modules: make([]Module, len(hw))}
	for i := range s.Modules {
		m := &s.Modules[i]
		m.set, m.index, m.hw, m.wait = s, i, &hw[i], hal.Never
		m.port = cmis.NewPort(m.hw.Mux, m.hw.MuxChannel)
		m.Flags = cmis.NewFlags(m.port)
		m.segment, m.clock = s.segmentOf(m.hw), buses[m.hw.MCI].Speed
	}
	for _, g := range s.segments {
		g.op = hal.Op{Class: hal.ClassSwitch}
		g.buf[0] = cmis.Trigger
		if g.sel[0] == 0 {
			g.op.Msgs = g.msgs[1:]
		} else {
			g.op.Msgs = g.msgs[:]
		}
	}
	return s
}

// segmentOf is the segment of a module: those behind one mux share it.
func (s *Set) segmentOf(hw *hal.Module) *segment {
	for _, g := range s.segments {
		if g.bus == hw.MCI && hw.Mux != 0 && g.msgs[0].Addr == hw.Mux {
			g.sel[0] |= 1 << hw.MuxChannel
			return g
		}
	}
	g := &segment{bus: hw.MCI}
	g.msgs[1].Addr = hal.MCIAddr
	if hw.Mux != 0 {
		g.sel[0] = 1 << hw.MuxChannel
		g.msgs[0].Addr = hw.Mux
	}
	s.segments = append(s.segments, g)
	return g
}

// Halt ends all that modules are asked, but for triggers.
func (s *Set) Halt() { s.halted = true }

// Step lets what the modules are asked go on, and puts out their bus work.
func (s *Set) Step(now time.Duration) {
	for i := range s.Modules {
		if s.halted {
			return // whatever they were being asked is of no use any more
		}
		m := &s.Modules[i]
		m.advance(now)
		for s.dump != nil && s.dump.module == m && m.Idle() {
			s.dumps()
			m.advance(now)
		}
		if msgs := m.port.Poll(now); msgs != nil {
			m.op = hal.Op{Token: s.queue.Token(s.task, i<<moduleShift), Class: m.class, Msgs: msgs}
			s.queue.Put(m.hw.MCI, &m.op)
		}
	}
}

// Next is when the Set wants its next turn.
func (s *Set) Next() time.Duration {
	next := s.fireAgain
	for i := range s.Modules {
		if !s.halted {
			next = min(next, s.Modules[i].next())
		}
	}
	return next
}

// Outcome is what the end of a piece of bus work means.
type Outcome struct {
	BusError bool  // one that is none of a controller's habits
	Failed   error // why a segment never took the trigger
	Over     bool  // no segment has the trigger before it any more
}

// Completed takes the end of a piece of bus work.
func (s *Set) Completed(now time.Duration, c *hal.Completion, module, n int) Outcome {
	if n >= segmentToken {
		return s.fireDone(now, c, s.segments[n-segmentToken])
	}
	s.Longest = max(s.Longest, c.End-c.Start)
	m := &s.Modules[module]
	m.port.Completed(now, c.Msg, c.Err)
	m.advance(now)
	return Outcome{BusError: c.Err != nil && !errors.Is(c.Err, hal.ErrAddressNACK)}
}

// Fire asks for one trigger byte to all modules.
func (s *Set) Fire(now time.Duration, trigger byte) {
	s.fireStart, s.fireEnd = 0, 0
	s.fired, s.fireAgain = trigger, hal.Never
	for _, g := range s.segments {
		g.want, g.held, g.try, g.pause = true, false, 0, retryFirst
	}
	for i := range s.Modules {
		s.Modules[i].tries, s.Modules[i].trigger[0] = 0, trigger
	}
	s.fireLimit = now + 2*cmis.DefaultLimits().Volatile
}

// Fired is the newest trigger, and from when to when it was on the buses.
func (s *Set) Fired() (trigger byte, start, end time.Duration) {
	return s.fired, s.fireStart, s.fireEnd
}

// Latency is how long the slowest module takes from a trigger's end to its drive.
func (s *Set) Latency() time.Duration { return s.latency }

// Settle is how long it takes until its light has settled.
func (s *Set) Settle() time.Duration { return s.latency + s.settle }

// Again lets segments on which nobody answered be asked again, when it is time.
func (s *Set) Again(now time.Duration) {
	if now < s.fireAgain {
		return
	}
	s.fireAgain = hal.Never
	for _, g := range s.segments {
		if g.held {
			g.held, g.want = false, true
		}
	}
}

// PutFire puts out the triggers that are due, and reports on how many segments
// one is under way, and whether one still has to be.
func (s *Set) PutFire() (out int, want bool) {
	for i, g := range s.segments {
		if g.want && !g.out {
			g.want, g.out = false, true
			g.buf[1] = s.fired
			g.op.Token = s.queue.Token(s.task, segmentToken+i)
			g.msgs[0].W, g.msgs[1].W = g.sel[:], g.buf[:]
			s.out++
			s.queue.Put(g.bus, &g.op)
		}
		want = want || g.want || g.held
	}
	return s.out, want
}

// Out is on how many segments a trigger is under way.
func (s *Set) Out() int { return s.out }

func (s *Set) fireDone(now time.Duration, c *hal.Completion, g *segment) (o Outcome) {
	g.out = false
	s.out--
	if g.want {
		return o // a newer trigger is waiting for this segment
	}
	switch {
	case c.Err == nil:
		if s.fireStart == 0 || c.Start < s.fireStart {
			s.fireStart = c.Start
		}
		g.end = c.End
		s.fireEnd = max(s.fireEnd, c.End)
	case errors.Is(c.Err, hal.ErrAddressNACK) && c.Msg == len(g.op.Msgs)-1 && now < s.fireLimit:
		g.held = true
		s.fireAgain = min(s.fireAgain, now+g.pause)
		g.pause = min(2*g.pause, retryMost)
	default:
		o.BusError = true
		if g.try++; g.try < work.MaxTries && !errors.Is(c.Err, hal.ErrAddressNACK) {
			g.want = true
			return o
		}
		o.Failed = c.Err
	}
	for _, g := range s.segments {
		if g.want || g.held || g.out {
			return o
		}
	}
	o.Over = true
	return o
}

// Trigger for a path; a dark bundle keeps the way set that it has, for the next
// light to find.
func (s *Set) Trigger(p proto.Path) byte {
	const lasers = cmis.TriggerUpper | cmis.TriggerLower
	if p == proto.Dark {
		return cmis.TriggerValid | s.fired&cmis.TriggerPath
	}
	return cmis.TriggerValid | lasers | byte(p-proto.Loopback)
}

// pathOf is the inverse.
func pathOf(trigger byte) proto.Path {
	const lasers = cmis.TriggerUpper | cmis.TriggerLower
	if !cmis.ValidTrigger(trigger) || trigger&lasers != lasers {
		return proto.Dark // one half alone is of no use either
	}
	return proto.Loopback + proto.Path(trigger&cmis.TriggerPath)
}
