package ocs

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/proto"
)

// mciTrials measures how long a bundle of CMIS modules takes to notice light
// and to switch it: its own lasers go on and off in loopback, which nobody else
// sees, and the LOS line is timed. Each module then says how long its
// controller took from the byte to the drive; what is left is detection.
//
// Lasers go on after a rest and off again at once, so that the second trigger
// meets whatever hold-off the first has caused.
type mciTrials struct {
	step mciTrialStep
	n    int
	at   time.Duration
	on   bool

	seen         time.Duration // from the byte's end to the LOS line
	left         int           // modules still asked
	slow, fast   time.Duration // last and first drive, from the byte's end
	bus          spread        // from asking to the byte's end
	took, detect spread
	err          error
}

// mciDetectTrials is three times what chips take: what is between the byte and the
// light is the controller's own word, and only the interrupt's tail is left to be
// met, whose slowest hundredth is twice its middle (board page, Costs). chosen.
const mciDetectTrials = 3 * detectTrials

type mciTrialStep uint8

const (
	mciTrialNone   mciTrialStep = iota
	mciTrialLight               // waiting for the LOS line
	mciTrialAsk                 // modules tell how long they took
	mciTrialRest                //
	mciTrialFinish              // going dark at the end
)

func (r *mciTrials) next() time.Duration {
	if r.step == mciTrialNone {
		return Never
	}
	return r.at
}

// calibrate searches by the controllers. Where a controller lets
// nobody search its module, the codes stay those of a calibration made
// elsewhere, and what is found out is the timing.
func (d *mciDrive) calibrate(now time.Duration) error {
	t := d.t
	if d.lanes.step != laneIdle {
		return ErrNotReady
	}
	closed := None
	for i := range d.mods {
		if !d.mods[i].control.Calibration {
			closed = i
		}
	}
	switch {
	case closed == None:
		return d.search(t, now)
	case t.cfg.Calibration == nil:
		return &ModuleError{Module: closed, Err: fmt.Errorf("%w, and it lets nobody do it: %w", ErrNotCalibrated, hal.ErrUnsupported)}
	}
	t.become(Calibrating)
	d.trials = mciTrials{step: mciTrialRest, at: now}
	return nil
}

// sent notes that the byte is out.
func (r *mciTrials) sent(now time.Duration) {
	if r.step == mciTrialLight {
		r.at = now + timingPatience
	}
}

func (r *mciTrials) due(t *Transceiver, now time.Duration) {
	d := t.mci()
	switch {
	case r.step == mciTrialNone:
	case r.step == mciTrialLight && !t.sw.want && t.sw.out == 0:
		r.light(t, now)
	case now < r.at:
	case r.step == mciTrialRest:
		r.begin(t, now)
	case r.step == mciTrialFinish && !t.sw.busy():
		r.finish(t, now, d)
	}
}

func (r *mciTrials) begin(t *Transceiver, now time.Duration) {
	if r.n == 2*mciDetectTrials {
		r.step, r.at = mciTrialFinish, now
		return
	}
	r.on = r.n%2 == 0
	r.step, r.at = mciTrialLight, now+timingPatience+t.mci().latency
	p := proto.Dark
	if r.on {
		p = proto.Loopback
	}
	t.mci().send(t, now, triggerOf(p, t.mci().fired))
}

// light waits for the LOS line to follow the lasers.
func (r *mciTrials) light(t *Transceiver, now time.Duration) {
	switch {
	case t.lit[proto.Loopback] == r.on:
		r.seen = now - t.sw.busEnd
		r.step, r.at, r.left, r.slow, r.fast = mciTrialAsk, Never, len(t.mci().mods), -Never, Never
		r.bus.add(t.sw.busEnd - t.sw.asked)
		for i := range t.mci().mods {
			r.ask(t, i)
		}
	case now >= r.at:
		r.err = fmt.Errorf("%w: LOS line is %v with lasers %v after %v", ErrNoOwnLight, t.lit[proto.Loopback], r.on, timingPatience)
		r.step, r.at = mciTrialFinish, now
		t.mci().send(t, now, triggerOf(proto.Dark, t.mci().fired))
	}
}

// ask reads a module's own account.
func (r *mciTrials) ask(t *Transceiver, i int) {
	m := &t.mci().mods[i]
	m.run(hal.ClassVerify, func(now time.Duration, err error) {
		if err == nil {
			m.status, err = cmis.ParseStatus(m.raw[:])
		}
		if err != nil && r.err == nil {
			r.err = &ModuleError{Module: i, Err: err}
		}
		r.took.add(m.status.Took)
		own := m.status.Took + t.mci().segs[m.segment].end - t.sw.busEnd
		r.slow, r.fast = max(r.slow, own), min(r.fast, own)
		if r.left--; r.left == 0 {
			r.told(now)
		}
	}, m.reads[:]...)
}

// told ends a trial: light comes with the slowest module and goes with the
// fastest.
func (r *mciTrials) told(now time.Duration) {
	own := r.slow
	if !r.on {
		own = r.fast
	}
	r.detect.add(max(r.seen-own, 0))
	r.n++
	r.step, r.at = mciTrialRest, now
	if !r.on {
		r.at = now + timingRestTime
	}
	if r.err != nil {
		r.step = mciTrialFinish
	}
}

// finish makes the bundle's timing of what was measured.
func (r *mciTrials) finish(t *Transceiver, now time.Duration, d *mciDrive) {
	r.step = mciTrialNone
	cal := d.cal
	d.cal = nil
	t.become(Idle)
	if r.err != nil {
		t.calibrationFailed(now, None, None, r.err)
		if cal != nil { // codes that do not make light
			t.cfg.Calibration = cal.before
			t.Start(now)
		}
		return
	}
	c := &Calibration{Modules: t.cfg.Calibration.Modules}
	c.Timing.DetectMin, c.Timing.DetectMax = r.detect.beyond()
	// Few dozen interrupts do not meet the latest one. chosen: half the spread.
	c.Timing.DetectMax += (r.detect.most - r.detect.least) / 2
	busLeast, busMost := r.bus.beyond()
	tookLeast, _ := r.took.beyond()
	// A read of another module of the segment may be ahead of the trigger, once;
	// what the controllers promise bounds what was not met.
	c.Timing.SwitchMin = busLeast + tookLeast
	c.Timing.SwitchMax = busMost + d.longest + d.latency + d.settle
	t.cfg.Calibration = c
	t.emit(Event{Kind: Calibrated, At: now, Path: t.path, Module: None, Cell: None, Lane: None})
}
