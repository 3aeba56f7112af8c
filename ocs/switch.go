package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// switching is a change of path as every drive has it: asked for, on the bus,
// settling.
type switching struct {
	asked time.Duration
	want  bool // a write is to be put out
	out   int  // writes on the bus
	// The bundle is dark until its DACs are ready for the nets to toggle.
	loading bool

	settling         bool
	settled          time.Duration
	busStart, busEnd time.Duration
}

func (s *switching) busy() bool { return s.want || s.out > 0 || s.settling || s.loading }

func (s *switching) next() time.Duration {
	if s.settling {
		return s.settled
	}
	return hal.Never
}

// arrived ends a switch: the way is set.
func (t *Transceiver) arrived(now time.Duration) {
	s := &t.sw
	t.path = t.target
	t.settleLight()
	for i := range t.Health.last {
		t.prove(now, i)
	}
	t.emit(Event{Kind: Switched, At: now, Path: t.path, Asked: s.asked, BusStart: s.busStart, BusEnd: s.busEnd,
		Settle: s.settled - s.busEnd, Module: None, Cell: None, Lane: None})
}

// aim notes the path asked for.
func (t *Transceiver) aim(p proto.Path) {
	t.target, t.port = p, proto.Tuning
	if p == proto.Dark {
		t.port = proto.Blocked
	}
}

// latchTurn is the act that moves light: one write to the latch, or two with
// the lasers off in between.
//
//	at once             toggles --> settled
//	break before make   Tx-disable and toggles --> settled --> Tx-enable
//
// At once the light of the old path fades while that of the new one comes, and
// for some fifty microseconds both fibres have some.
type latchTurn struct {
	ops   [2]*latchOp // a newer Select need not wait for the older write
	tries int
	step  switchStep
	edge  bool // a net is to toggle and has not yet
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
	edge bool
}

func newLatchOp() *latchOp {
	o := new(latchOp)
	o.op.Class = hal.ClassSwitch
	o.op.Msgs = o.msg[:]
	return o
}

func (s *latchTurn) reset() {
	for i, o := range s.ops {
		if o == nil || o.busy { // the bus has it still, its bytes and its token: leave it to the bus
			s.ops[i] = newLatchOp()
		}
	}
	s.tries, s.step, s.edge = 0, switchAtOnce, false
}

// begin asks for the write.
func (s *latchTurn) begin(d *chipDrive, asked time.Duration, how switchStep) {
	d.trx.sw.asked, d.trx.sw.want, d.trx.sw.settling = asked, true, false
	s.tries, s.step = 0, how
	d.trx.verify.reset()
}

// choose sets a path by the latch. Dark is always granted once it has been read.
func (d *chipDrive) choose(now time.Duration, p proto.Path, how switchStep) error {
	switch {
	case d.trx.state == Off || !d.pins.chip.known:
		return ErrNotReady
	case d.trx.state == Calibrating:
		return ErrBusy
	case p == proto.Dark:
	case d.trx.state == Faulted:
		return ErrOutOfService
	case d.trx.cfg.Calibration == nil:
		return ErrNotCalibrated
	case d.trx.state != Idle:
		return ErrNotReady
	}
	d.lock.freeze(d)
	d.trx.aim(p)
	d.turn.point(d, now, how)
	return nil
}

// point sets the latch to the path that is wanted.
func (s *latchTurn) point(d *chipDrive, asked time.Duration, how switchStep) {
	before := d.pins.bits()
	bits := bitsOf(d.trx.target, before)
	toggles := (before^bits)&^dark != 0
	if d.trx.target == proto.Dark || !toggles {
		how = switchAtOnce // the way is set already
	}
	if how == switchBreak {
		bits |= dark
	}
	if d.trx.sw.loading = toggles && !d.armed(); d.trx.sw.loading {
		bits, how = before|dark, switchAtOnce
	} else if toggles {
		s.edge = true
	}
	d.pins.set(bits)
	s.begin(d, asked, how)
}

// due puts the write out and ends the settling.
func (s *latchTurn) due(d *chipDrive, now time.Duration) {
	w := &d.trx.sw
	if w.loading && !w.want && w.out == 0 && d.armed() {
		s.point(d, w.asked, switchBreak)
	}
	if w.settling && now >= w.settled && s.step == switchBreak {
		w.settling, w.want, s.step = false, true, switchMake
		d.pins.set(bitsOf(d.trx.target, 0))
	}
	if w.want {
		for i := range s.ops {
			if o := s.ops[i]; !o.busy {
				o.busy, o.edge = true, s.edge
				o.op.Token = d.trx.token(taskSwitch, 0, i)
				o.msg[0] = d.pins.write(o.buf[:0])
				w.want = false
				w.out++
				d.put(d.pins.chip.bus, &o.op)
				break
			}
		}
	}
	if w.settling && now >= w.settled {
		w.settling = false
		d.trx.arrived(now)
		if d.trx.path != proto.Dark && d.trx.state == Idle {
			d.trx.verify.start()
		}
	}
}

func (s *latchTurn) completed(d *chipDrive, now time.Duration, c *hal.Completion) {
	o := s.ops[int(uint16(c.Op.Token))%len(s.ops)]
	o.busy = false
	s.edge = s.edge && !(o.edge && c.Err == nil)
	w := &d.trx.sw
	w.out--
	if w.want || w.out > 0 {
		return // a newer one is under way, and decides
	}
	if c.Err != nil {
		if s.tries++; s.tries < work.MaxTries {
			w.want = true
			return
		}
		s.edge = false
		d.trx.port = proto.Failed
		d.trx.emit(Event{Kind: PathFailed, At: now, Path: d.trx.target, Module: None, Cell: None, Lane: None, Err: c.Err, Text: "latch write"})
		return
	}
	if w.loading {
		return // dark; the toggles follow as soon as they may
	}
	w.busEnd = c.End
	w.settling, w.settled = true, c.End+d.trx.settleTime(d.trx.cfg.Calibration)
	if s.step == switchMake {
		w.settled = c.End + laserTime
	} else {
		w.busStart = c.Start
	}
}
