package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

// switching is the act that moves light: one write to the latch, or two with
// the lasers off in between.
//
//	at once             toggles --> settled
//	break before make   Tx-disable and toggles --> settled --> Tx-enable
//
// At once the light of the old path fades while that of the new one comes, and
// for some fifty microseconds both fibres have some.
type switching struct {
	ops   [2]latchOp // a newer Select need not wait for the older write
	asked time.Duration
	want  bool // a write is to be put out
	out   int  // writes on the bus
	tries int
	step  switchStep
	held  bool // the bundle is dark while its lanes change: writes wait

	settling         bool
	settled          time.Duration
	busStart, busEnd time.Duration
}

// switchStep is where a switch stands.
type switchStep uint8

const (
	switchAtOnce switchStep = iota
	switchBreak             // lasers off, heaters on their way
	switchMake              // lasers on again
)

// laserTime is how long lasers are given after the write that lets them shine
// on a way that is set. chosen: a scan of eight channels and the diodes' filters.
const laserTime = 30 * time.Microsecond

// latchOp is a write made ready, so that a switch allocates nothing.
type latchOp struct {
	op   hal.Op
	msg  [1]hal.Msg
	buf  [4]byte
	busy bool
	path proto.Path
}

func (s *switching) init(t *Transceiver) {
	_, addr := t.latchBus()
	for i := range s.ops {
		o := &s.ops[i]
		o.msg[0].Addr = addr
		o.op.Class = hal.ClassSwitch
		o.op.Msgs = o.msg[:]
	}
}

func (s *switching) reset() {
	for i := range s.ops {
		if s.ops[i].busy { // the bus has it still: leave it to the bus
			s.ops[i] = latchOp{msg: s.ops[i].msg}
			s.ops[i].op = hal.Op{Class: hal.ClassSwitch, Msgs: s.ops[i].msg[:]}
		}
	}
	s.want, s.settling, s.out, s.tries, s.step, s.held = false, false, 0, 0, switchAtOnce, false
}

func (s *switching) busy() bool { return s.want || s.out > 0 || s.settling || s.held }

// release lets the light shine again, on the path that is wanted by now, that
// was held while the way was changed.
func (s *switching) release(t *Transceiver, asked time.Duration) {
	t.cfg.Latch.set(t.bundle, bitsOf(t.target, t.cfg.Latch.bits(t.bundle)))
	if !s.want {
		s.asked = asked
	}
	s.held, s.want, s.settling, s.tries, s.step = false, true, false, 0, switchAtOnce
	t.verify.reset()
}

func (s *switching) next() time.Duration {
	if s.settling {
		return s.settled
	}
	return Never
}

// Select asks for a path, break before make: no light leaves until the way is
// set. A later Select wins over one under way. Dark is always granted once the
// latch has been read. Modules of kind cmis see to their own order.
func (t *Transceiver) Select(now time.Duration, p proto.Path) error {
	return t.choose(now, p, switchBreak)
}

// SelectAtOnce is Select without the break, where the old path's light is of no
// use to anybody: it saves a write and the time that heaters take.
func (t *Transceiver) SelectAtOnce(now time.Duration, p proto.Path) error {
	return t.choose(now, p, switchAtOnce)
}

func (t *Transceiver) choose(now time.Duration, p proto.Path, how switchStep) error {
	if t.mci != nil {
		return t.mci.selects(t, now, p)
	}
	switch {
	case int(p) >= proto.NumPaths:
		return ErrNoSuchPath
	case t.state == Off || !t.cfg.Latch.chips[t.bundle.Latch].known:
		return ErrNotReady
	case t.state == Calibrating:
		return ErrBusy
	case p == proto.Dark:
	case t.state == Faulted:
		return ErrOutOfService
	case t.cfg.Calibration == nil:
		return ErrNotCalibrated
	case t.state != Idle:
		return ErrNotReady
	}
	t.lock.freeze(t)
	t.target = p
	t.port = proto.Tuning
	if p == proto.Dark {
		t.port = proto.Blocked
	}
	l := t.cfg.Latch
	before := l.bits(t.bundle)
	bits := bitsOf(p, before)
	if p == proto.Dark || (before^bits)&^dark == 0 {
		how = switchAtOnce // the way is set already
	}
	if t.sw.held {
		how = switchAtOnce // the lasers are off, and come with the toggles
		bits |= dark
	}
	if how == switchBreak {
		bits |= dark
	}
	l.set(t.bundle, bits)
	s := &t.sw
	s.asked, s.want, s.settling, s.tries, s.step = now, true, false, 0, how
	t.verify.reset()
	return nil
}

// due puts the write out and ends the settling.
func (s *switching) due(t *Transceiver, now time.Duration) {
	if s.settling && now >= s.settled && s.step == switchBreak {
		s.settling, s.want, s.step = false, true, switchMake
		t.cfg.Latch.set(t.bundle, bitsOf(t.target, 0))
	}
	if s.want && !s.held {
		for i := range s.ops {
			if o := &s.ops[i]; !o.busy {
				bus, _ := t.latchBus()
				o.busy, o.path = true, t.target
				o.op.Token = t.token(taskSwitch, 0, i)
				o.msg[0].W = t.cfg.Latch.appendWrite(o.buf[:0], t.bundle)
				s.want = false
				s.out++
				t.put(bus, &o.op)
				break
			}
		}
	}
	if s.settling && now >= s.settled {
		s.settling = false
		t.path, t.since = t.target, now
		t.settleLight()
		t.emit(Event{Kind: Switched, At: now, Path: t.path, Asked: s.asked, BusStart: s.busStart, BusEnd: s.busEnd,
			Settle: s.settled - s.busEnd, Module: None, Cell: None, Lane: None})
		if t.path != proto.Dark && t.state == Idle {
			t.startVerify(now)
		}
	}
}

func (s *switching) completed(t *Transceiver, now time.Duration, c *hal.Completion) {
	o := &s.ops[int(uint16(c.Op.Token))%len(s.ops)]
	o.busy = false
	s.out--
	if s.want || s.out > 0 {
		return // a newer one is under way, and decides
	}
	if c.Err != nil {
		if s.tries++; s.tries < maxTries {
			s.want = true
			return
		}
		t.port = proto.Failed
		t.emit(Event{Kind: PathFailed, At: now, Path: t.target, Module: None, Cell: None, Lane: None, Err: c.Err, Text: "latch write"})
		return
	}
	s.busEnd = c.End
	s.settling, s.settled = true, c.End+settleTime
	if s.step == switchMake {
		s.settled = c.End + laserTime
	} else {
		s.busStart = c.Start
	}
}
