package ocs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
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

// choose sets a path by one trigger byte; controllers see to their own order.
func (d *mciDrive) choose(now time.Duration, p proto.Path, _ switchStep) error {
	t := d.t
	switch {
	case t.state == Calibrating:
		return ErrBusy
	case t.state == Faulted && p != proto.Dark: // to go dark is always granted
		return ErrOutOfService
	case t.state != Idle && t.state != Faulted:
		return ErrNotReady
	case p != proto.Dark && t.cfg.Calibration == nil:
		return ErrNotCalibrated
	}
	t.aim(p)
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

// settled asks again where nobody answered, and ends the settling.
func (d *mciDrive) settled(t *Transceiver, now time.Duration) {
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
	t.arrived(now)
	if t.state == Idle && !t.sw.held {
		t.startVerify(now) // of darkness too: every module must have heard
	}
}

// look asks every module what it did, and reads its own light.
func (d *mciDrive) look() int {
	for i := range d.mods {
		d.account(d.t, i)
	}
	return len(d.mods)
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

// readHealth reads one module: temperature, flags, and the light of the path in use. It
// writes nothing and changes no page, so that no module is away when a trigger
// comes.
func (d *mciDrive) readHealth(i int) bool {
	t := d.t
	m := &d.mods[i]
	if t.sw.busy() || t.verify.out > 0 || !m.idle() {
		return false
	}
	h := &t.health
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
		t.warm(now, now, i, cmis.MilliCelsius(m.warm[:]))
		if path == t.path && !t.sw.busy() && path != proto.Dark {
			h.last[i].light(now, path, m.block())
		}
	}, queue...)
	return true
}
