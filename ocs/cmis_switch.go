package ocs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/cmis"
	"ringlight/proto"
)

// ErrTriggerMissed is a module that never carried a trigger out.
var ErrTriggerMissed = errors.New("module does not carry the trigger out")

// A segment on which nobody answered is asked again after mciRetry, then after
// twice that, at last every mciRetryMost. chosen: a question is 80 us with its
// call, and a quick controller is back within 200 us.
const (
	mciRetry     = 50 * time.Microsecond
	mciRetryMost = 400 * time.Microsecond
)

// selects is Select for a bundle of CMIS modules.
func (d *mciDrive) selects(t *Transceiver, now time.Duration, p proto.Path) error {
	switch {
	case int(p) >= proto.NumPaths:
		return ErrNoSuchPath
	case t.state == Calibrating:
		return ErrBusy
	case t.state == Faulted && p != proto.Dark: // to go dark is always granted
		return ErrOutOfService
	case t.state != Idle && t.state != Faulted:
		return ErrNotReady
	case p != proto.Dark && t.cfg.Calibration == nil:
		return ErrNotCalibrated
	}
	t.target, t.port = p, proto.Tuning
	if p == proto.Dark {
		t.port = proto.Blocked
	}
	if d.lanes.step > laneStage {
		d.lanes.want = true // with staged codes, no module lets light out
		if p != proto.Dark {
			return nil
		}
	}
	d.send(t, now, triggerOf(p, d.fired))
	return nil
}

// send asks for one trigger byte to all modules.
func (d *mciDrive) send(t *Transceiver, now time.Duration, trigger byte) {
	s := &t.sw
	s.asked, s.want, s.settling = now, true, false
	s.busStart, s.busEnd = 0, 0
	d.fired, d.fireAgain = trigger, Never
	for i := range d.segs {
		s := &d.segs[i]
		s.want, s.held, s.try, s.pause = true, false, 0, mciRetry
	}
	for i := range d.mods {
		d.mods[i].tries, d.mods[i].lone[0] = 0, trigger
	}
	d.fireLimit = now + 2*cmis.DefaultLimits().Volatile
	t.verify.reset()
}

// fire puts out the segments' writes that are due.
func (d *mciDrive) fire(t *Transceiver) {
	for i := range d.segs {
		s := &d.segs[i]
		if !s.want || s.out {
			continue
		}
		s.want, s.out = false, true
		s.buf[1] = d.fired
		s.op.Token = t.token(taskMCI, 0, mciSegmentToken+i)
		s.msgs[0].W, s.msgs[1].W = s.sel[:], s.buf[:]
		d.fireOut++
		t.put(s.bus, &s.op)
	}
	t.sw.want = false
	for i := range d.segs {
		t.sw.want = t.sw.want || d.segs[i].want || d.segs[i].held
	}
	t.sw.out = d.fireOut
}

func (d *mciDrive) fireDone(t *Transceiver, now time.Duration, c *hal.Completion, s *mciSegment) {
	s.out = false
	d.fireOut--
	t.sw.out = d.fireOut
	if s.want {
		return // a newer trigger is waiting for this segment
	}
	switch {
	case c.Err == nil:
		if t.sw.busStart == 0 || c.Start < t.sw.busStart {
			t.sw.busStart = c.Start
		}
		s.end = c.End
		t.sw.busEnd = max(t.sw.busEnd, c.End)
	case errors.Is(c.Err, hal.ErrAddressNACK) && c.Msg == len(s.op.Msgs)-1 && now < d.fireLimit:
		s.held = true
		d.fireAgain = min(d.fireAgain, now+s.pause)
		s.pause = min(2*s.pause, mciRetryMost)
	default:
		t.busErrors++
		if s.try++; s.try < maxTries && !errors.Is(c.Err, hal.ErrAddressNACK) {
			s.want = true
			return
		}
		t.port = proto.Failed
		t.emit(Event{Kind: PathFailed, At: now, Path: t.target, Module: None, Cell: None, Lane: None, Err: c.Err, Text: "trigger"})
	}
	for i := range d.segs {
		if d.segs[i].want || d.segs[i].held || d.segs[i].out {
			return
		}
	}
	t.sw.want = false
	if t.sw.busEnd == 0 {
		return // no segment took it
	}
	t.sw.settling, t.sw.settled = true, t.sw.busEnd+d.latency+d.settle
	d.trials.sent(now)
}

// due asks again where nobody answered, and ends the settling.
func (d *mciDrive) due(t *Transceiver, now time.Duration) {
	if now >= d.fireAgain {
		d.fireAgain = Never
		for i := range d.segs {
			if s := &d.segs[i]; s.held {
				s.held, s.want = false, true
			}
		}
	}
	s := &t.sw
	if !s.settling || now < s.settled {
		return
	}
	s.settling = false
	if t.state == Calibrating || t.sw.held && t.target != proto.Dark {
		return // dark while the lanes change; the path wanted comes after
	}
	t.path, t.since = t.target, now
	t.settleLight()
	t.emit(Event{Kind: Switched, At: now, Path: t.path, Asked: s.asked, BusStart: s.busStart, BusEnd: s.busEnd,
		Settle: s.settled - s.busEnd, Module: None, Cell: None, Lane: None})
	if t.state == Idle && !t.sw.held {
		t.startVerify(now) // of darkness too: every module must have heard
	}
}

// verifies asks every module what it did, and reads its own light.
func (d *mciDrive) verifies(t *Transceiver) {
	v := &t.verify
	if v.out > 0 {
		v.again = true
		return
	}
	v.path, v.stale, v.failed, v.readErr = t.path, false, false, nil
	v.lanes = t.Lanes()
	v.worst, v.module, v.lane = 0, None, None
	v.expected, v.measured = proto.NoPower, proto.NoPower
	for i := range d.mods {
		v.out++
		d.account(t, i)
	}
}

// account is one module's part of a verification. It goes in after whatever the
// module is being asked.
func (d *mciDrive) account(t *Transceiver, i int) {
	m := &d.mods[i]
	fired := d.fired
	m.reads[1] = m.levels(t.verify.path)
	m.run(hal.ClassVerify, func(now time.Duration, err error) {
		if err == nil {
			m.status, err = cmis.ParseStatus(m.raw[:])
		}
		missed := err == nil && m.status.InForce != fired
		if missed && m.doubts < maxTries && (m.doubts == 0 || m.doubted != m.status.InForce) {
			// Nothing guards these bytes: believed is what two looks agree about.
			m.doubts, m.doubted = m.doubts+1, m.status.InForce
			d.account(t, i)
			return
		}
		m.doubts = 0
		if missed && fired == d.fired && !t.sw.busy() && t.state == Idle {
			if m.tries++; m.tries < maxTries {
				d.alone(t, i)
				return
			}
			err = fmt.Errorf("%w: %02xh, answers %v", ErrTriggerMissed, fired, m.status.Answer)
			t.port = proto.Failed
			t.emit(Event{Kind: PathFailed, At: now, Path: t.target, Module: uint8(i), Cell: None, Lane: None, Err: &ModuleError{Module: i, Err: err}})
		}
		t.accounted(now, i, m.block(), err)
	}, m.reads[:]...)
}

// alone gives the trigger to a module that missed it, and asks again when it
// has had the time to carry it out.
func (d *mciDrive) alone(t *Transceiver, i int) {
	m := &d.mods[i]
	m.port.Forget() // who made it be away may have changed its page
	m.run(hal.ClassSwitch, func(now time.Duration, err error) {
		m.pause(now+d.latency+d.settle, func(time.Duration, error) { d.account(t, i) })
	}, cmis.Request{Write: true, Offset: cmis.Trigger, Data: m.lone[:]})
}

// levels is the request for the channels that tell of a path's own light: the
// lanes' in loopback, else the guard's.
func (m *mciModule) levels(p proto.Path) cmis.Request {
	q := cmis.Request{Page: cmis.PageService, Offset: cmis.Levels, Data: m.service[:]}
	if p == proto.Loopback {
		q.Offset = cmis.LaneLevels
	}
	return q
}

// block is their readings in the form of the ADCs' reply.
func (m *mciModule) block() []byte {
	from := m.service[:]
	for i := 0; i < len(from); i += 2 {
		binary.LittleEndian.PutUint16(from[i:], binary.BigEndian.Uint16(from[i:]))
	}
	return from
}

// accounted takes one module's reading; in the dark there is nothing to judge.
func (t *Transceiver) accounted(now time.Duration, module int, block []byte, err error) {
	v := &t.verify
	v.out--
	if err != nil && v.readErr == nil {
		v.readErr = &ModuleError{Module: module, Err: err}
	}
	if err == nil && !v.stale && v.path != proto.Dark && t.cfg.Calibration != nil {
		v.judge(t.cfg.Calibration.Modules[module], uint8(module), block)
	}
	if v.out > 0 {
		return
	}
	switch {
	case t.state != Idle || t.sw.busy():
	case v.stale || v.again:
		v.again = false
		t.startVerify(now)
	case v.path == proto.Dark || t.cfg.Calibration == nil || errors.Is(v.readErr, ErrTriggerMissed):
	default:
		t.concluded(now)
	}
}

// Flags is a new listener to a module's latched flags, which health rounds read;
// nil for modules of kind chips.
func (t *Transceiver) Flags(module int) *cmis.Subscription {
	if t.mci == nil || module < 0 || module >= len(t.mci.mods) {
		return nil
	}
	return t.mci.mods[module].flags.Subscribe()
}

// healthRound reads one module: temperature, flags, and the light of the path in use. It
// writes nothing and changes no page, so that no module is away when a trigger
// comes.
func (d *mciDrive) healthRound(t *Transceiver) {
	h := &t.health
	if t.state != Idle || t.sw.busy() || t.verify.out > 0 {
		return
	}
	if h.last == nil {
		h.last = make([]moduleHealth, len(d.mods))
	}
	i := h.module
	m := &d.mods[i]
	if !m.idle() {
		return
	}
	h.module = (i + 1) % len(d.mods)
	path, counters := t.path, m.control.Counters
	queue := []cmis.Request{{Offset: cmis.Temperature, Data: m.warm[:]}, m.levels(proto.External1)}
	if counters {
		queue = append(queue, m.flags.InService()...)
	}
	m.run(hal.ClassHousekeeping, func(now time.Duration, err error) {
		if h.module == 0 {
			t.routineVerify()
		}
		if err != nil {
			t.busErrors++
			return
		}
		if counters {
			m.flags.Taken(now)
		}
		s := &h.last[i]
		s.slowAt, s.millikelvin = now, cmis.MilliCelsius(m.warm[:])+zeroCelsiusMillikelvin
		t.warm(now, i, s.millikelvin-zeroCelsiusMillikelvin)
		if path != t.path || t.sw.busy() || path == proto.Dark {
			return
		}
		block := m.block()
		at := func(channel int) proto.MilliDBm {
			return level(ads7138.Code16(block, channel), guardFullScale(channel))
		}
		upper := hal.GuardLoopUpper + 2*int(path-proto.Loopback)
		s.lightAt, s.path = now, path
		s.upper, s.lower, s.tap = at(upper), at(upper+1), proto.NoPower
		if path.External() {
			s.tap = at(hal.GuardTap1 + int(path-proto.External1))
		}
	}, queue...)
}
