package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

// switching is the act that moves light: one write to the latch.
type switching struct {
	ops   [2]latchOp // a newer Select need not wait for the older write
	asked time.Duration
	want  bool // a write is to be put out
	out   int  // writes on the bus
	tries int

	settling         bool
	settled          time.Duration
	busStart, busEnd time.Duration
}

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
	s.want, s.settling, s.out, s.tries = false, false, 0, 0
}

func (s *switching) busy() bool { return s.want || s.out > 0 || s.settling }

func (s *switching) next() time.Duration {
	if s.settling {
		return s.settled
	}
	return Never
}

// Select asks for a path. A later Select wins over one under way. Dark is
// always granted once the latch has been read.
func (t *Transceiver) Select(now time.Duration, p proto.Path) error {
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
	t.target = p
	t.port = proto.Tuning
	if p == proto.Dark {
		t.port = proto.Blocked
	}
	l := t.cfg.Latch
	l.set(t.bundle, bitsOf(p, l.bits(t.bundle)))
	s := &t.sw
	s.asked, s.want, s.settling, s.tries = now, true, false, 0
	t.verify.reset()
	return nil
}

// due puts the write out and ends the settling.
func (s *switching) due(t *Transceiver, now time.Duration) {
	if s.want {
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
	s.busStart, s.busEnd = c.Start, c.End
	s.settling, s.settled = true, c.End+settleTime
}
