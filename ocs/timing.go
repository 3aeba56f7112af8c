package ocs

import (
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/ocs/diode"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// errNoOwnLight ends a calibration whose result does not light the bundle's own
// loopback.
var errNoOwnLight = errors.New("own loopback does not follow its lasers")

// timing measures how long the bundle takes to notice light and to switch it.
//
// Detection: the bundle's own lasers go on and off in loopback, and the LOS
// line is timed. Switching: from external 1 to loopback with the lasers of the
// upper half alone, so that no peer's LOS line, which wants both halves, takes
// it for light; one diode is read at a known time after the write, each trial a
// little later than the one before, until the light is there.
type timing struct {
	step  timingStep
	trial int
	at    time.Duration // of what is waited for

	seeing diode.Reading

	detect          detection
	bus, wire, rise trials
	looks           []sighting
	early           int // diode's code at the early look
	earlyAt         time.Duration
}

type timingStep uint8

const (
	timingOn    timingStep = iota // lasers go on, waiting for the LOS line
	timingOff                     // lasers go off
	timingRest                    // between two trials
	timingAside                   // upper half alone, on external 1
	timingBack                    // it goes back to loopback
	timingEarly                   // and is looked at early
	timingFull                    // and when settled
)

const (
	detectTrials = 16
	switchTrials = 24
	// chosen: ten times what the slowest step of a switch takes.
	timingRestTime = 2 * time.Millisecond
	// chosen: no board that meets any bound needs as long to see its own light.
	timingPatience = 20 * time.Millisecond
	// Each trial looks a little later: 0 to 55 us after the call's own time.
	lookStep  = 5 * time.Microsecond
	lookSteps = 12
	// Light is there from 1 dB below its final power on (board page, Optics).
	oneDBNumerator, oneDBDenominator = 794, 1000
	upperAlone                       = hal.LatchTxOffLow
)

func (m *timing) begin(d *chipDrive, c *calibrating, now time.Duration) {
	*m = timing{at: hal.Never}
	m.step = timingOn
	c.latch.write(d, now, bitsOf(proto.Loopback, 0))
}

func (m *timing) wake() time.Duration { return m.at }

// written goes on when a write to the latch has been made.
func (m *timing) written(d *chipDrive, c *calibrating, now time.Duration) {
	switch m.step {
	case timingOn, timingOff:
		m.at = now + timingPatience
		m.seen(d, c, now)
	case timingAside:
		m.at = now + timingRestTime
	case timingBack:
		m.bus.add(c.latch.end - c.latch.put)
		m.wire.add(c.latch.end - c.latch.start)
		m.step = timingEarly
		m.at = now + time.Duration(m.trial%lookSteps)*lookStep
		m.due(d, c, now)
	}
}

// due goes on when a time is over, or when the LOS line has moved.
func (m *timing) due(d *chipDrive, c *calibrating, now time.Duration) {
	switch m.step {
	case timingOn, timingOff:
		if c.latch.out == 0 {
			m.seen(d, c, now)
		}
	case timingRest:
		if now >= m.at {
			m.at = hal.Never
			m.next(d, c, now)
		}
	case timingAside:
		if now >= m.at {
			m.at = hal.Never
			m.step = timingBack
			c.latch.write(d, now, upperAlone|bitsOf(proto.Loopback, 0))
		}
	case timingEarly, timingFull:
		if now >= m.at {
			m.at = hal.Never
			m.look(d)
		}
	}
}

// seen takes the LOS line of the loopback when it follows the lasers.
func (m *timing) seen(d *chipDrive, c *calibrating, now time.Duration) {
	on := m.step == timingOn
	switch {
	case d.trx.lit[proto.Loopback] == on:
		m.detect.add(d.trx.noted[proto.Loopback]-c.latch.end, now-c.latch.end, c.latch.end-c.latch.start)
		m.step = timingRest
		m.at = now + timingRestTime
	case now >= m.at:
		m.at = hal.Never
		c.fail(d, now, None, fmt.Errorf("%w: LOS line is %v with lasers %v after %v", errNoOwnLight, d.trx.lit[proto.Loopback], on, timingPatience))
	}
}

// next begins the next trial.
func (m *timing) next(d *chipDrive, c *calibrating, now time.Duration) {
	switch {
	case !m.detect.seen.enough(2 * detectTrials):
		bits := uint16(dark)
		m.step = timingOff
		if len(m.detect.seen.took)%2 == 0 {
			m.step, bits = timingOn, bitsOf(proto.Loopback, 0)
		}
		c.latch.write(d, now, bits)
	case m.trial < switchTrials || !m.bus.enough(switchTrials) || !m.rise.enough(switchTrials):
		m.step = timingAside
		c.latch.write(d, now, upperAlone|bitsOf(proto.External1, 0))
	default:
		m.finish(d, c, now)
	}
}

// look reads the diode that sees the upper half's lasers: in loopback they end
// on the lower half.
func (m *timing) look(d *chipDrive) {
	hw := &d.trx.bundle.Modules[m.trial%len(d.trx.bundle.Modules)]
	d.put(hw.ADC, &hal.Op{Token: d.cal.token(d, 0, calReadOp), Class: hal.ClassSwitch, Msgs: []hal.Msg{m.seeing.Ask(diode.Of(hw), diode.Guard, hal.GuardLoopLower, 1, 0)}})
}

// read takes a look's result.
func (m *timing) read(d *chipDrive, c *calibrating, now time.Duration, done *hal.Completion) {
	if done.Err != nil {
		if c.latch.tries++; c.latch.tries < work.MaxTries {
			m.look(d)
			return
		}
		c.fail(d, now, m.trial%len(d.trx.bundle.Modules), done.Err)
		return
	}
	c.latch.tries = 0
	code := int(diode.Code(m.seeing.Block(), 0))
	if m.step == timingEarly {
		m.early, m.earlyAt = code, done.Start-c.latch.end
		m.step = timingFull
		m.at = now + timingRestTime
		return
	}
	lit := m.early*oneDBDenominator >= code*oneDBNumerator
	m.looks = append(m.looks, sighting{m.trial % len(d.trx.bundle.Modules), m.earlyAt, lit})
	if lit {
		m.rise.add(m.earlyAt) // there already
	} else {
		// Not yet: it comes after the look, within the time that heaters take.
		m.rise.add(max(d.trx.settleTime(c.result), m.earlyAt))
	}
	m.trial++
	m.step = timingRest
	m.at = now + timingRestTime
}

// finish computes the bundle's timing from the trials.
func (m *timing) finish(d *chipDrive, c *calibrating, now time.Duration) {
	r := &c.result.Timing
	r.DetectMin, r.DetectMax = m.detect.bounds()
	least, most := m.bus.beyond()
	r.SwitchMin = least + soonest(m.looks, d.trx.settleTime(c.result))
	// A bundle of the same latch may be ahead of us on the bus, once.
	wire, _, _ := m.wire.believed()
	_, rise, _ := m.rise.believed()
	r.SwitchMax = most + wire + max(rise, d.trx.settleTime(c.result))
	if !d.arm.both { // the switch before may have been a moment ago, and its write is ahead
		r.SwitchMax += most + d.arm.took
	}
	c.result.count(&m.detect.seen, &m.bus, &m.rise)
	c.step = calDark
	c.latch.write(d, now, dark)
}
