package ocs

import (
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
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

	seen, noted time.Duration // from the byte's end to the LOS line: acted on, and noted by the host
	wrote       time.Duration // the byte
	left        int           // modules still asked
	slow, fast  time.Duration // last and first drive, from the byte's end
	bus         trials        // from asking to the byte's end
	detect      detection
	took        []time.Duration // a controller's own word
	err         error
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
		return hal.Never
	}
	return r.at
}

// calibrate searches by the controllers. Where a controller lets
// nobody search its module, the codes stay those of a calibration made
// elsewhere, and what is found out is the timing.
func (d *mciDrive) calibrate(now time.Duration) error {
	// A look at the darkness may be under way, in whose place the search asks.
	d.set.Drop()
	d.trx.verify.forget()
	closed := None
	for i := range d.set.Modules {
		if c := &d.set.Modules[i].Control; c.Staging && !c.Calibration {
			closed = i
		}
	}
	switch {
	case closed == None:
		return d.begin(now)
	case d.trx.cfg.Calibration == nil:
		return &ModuleError{Module: closed, Err: fmt.Errorf("%w, and its controller does not take a calibration: %w", ErrNotCalibrated, hal.ErrUnsupported)}
	}
	d.trx.become(Calibrating)
	d.trials = mciTrials{step: mciTrialRest, at: now}
	return nil
}

// sent notes that the byte is out.
func (r *mciTrials) sent(now time.Duration) {
	if r.step == mciTrialLight {
		r.at = now + timingPatience
	}
}

func (r *mciTrials) due(d *mciDrive, now time.Duration) {
	switch {
	case r.step == mciTrialNone:
	case r.step == mciTrialLight && !d.trx.sw.want && d.trx.sw.out == 0:
		r.light(d, now)
	case now < r.at:
	case r.step == mciTrialRest:
		r.begin(d, now)
	case r.step == mciTrialFinish && !d.trx.sw.busy():
		r.finish(d, now)
	}
}

func (r *mciTrials) begin(d *mciDrive, now time.Duration) {
	if r.n >= 2*mciDetectTrials && r.bus.enough(2*mciDetectTrials) && r.detect.seen.enough(2*mciDetectTrials) {
		r.step, r.at = mciTrialFinish, now
		return
	}
	r.on = r.n%2 == 0
	r.step, r.at = mciTrialLight, now+timingPatience+d.set.Latency()
	p := proto.Dark
	if r.on {
		p = proto.Loopback
	}
	d.send(now, p)
}

// light waits for the LOS line to follow the lasers.
func (r *mciTrials) light(d *mciDrive, now time.Duration) {
	switch {
	case d.trx.lit[proto.Loopback] == r.on:
		r.seen, r.noted, r.wrote = now-d.trx.sw.busEnd, d.trx.noted[proto.Loopback]-d.trx.sw.busEnd, d.trx.sw.busEnd-d.trx.sw.busStart
		r.step, r.at, r.left, r.slow, r.fast = mciTrialAsk, hal.Never, len(d.set.Modules), -hal.Never, hal.Never
		r.bus.add(d.trx.sw.busEnd - d.trx.sw.asked)
		for i := range d.set.Modules {
			r.ask(d, i)
		}
	case now >= r.at:
		r.err = fmt.Errorf("%w: LOS line is %v with lasers %v after %v", errNoOwnLight, d.trx.lit[proto.Loopback], r.on, timingPatience)
		r.step, r.at = mciTrialFinish, now
		d.send(now, proto.Dark)
	}
}

// ask reads a module's own account.
func (r *mciTrials) ask(d *mciDrive, i int) {
	m := &d.set.Modules[i]
	m.Read(func(now time.Duration, err error) {
		if err != nil && r.err == nil {
			r.err = &ModuleError{Module: i, Err: err}
		}
		took := m.Status.Took
		r.took = append(r.took, took)
		own := took + m.Fired() - d.trx.sw.busEnd
		r.slow, r.fast = max(r.slow, own), min(r.fast, own)
		if r.left--; r.left == 0 {
			r.told(now)
		}
	})
}

// told ends a trial: light comes with the slowest module and goes with the
// fastest.
func (r *mciTrials) told(now time.Duration) {
	own := r.slow
	if !r.on {
		own = r.fast
	}
	r.detect.add(r.noted-own, r.seen-own, r.wrote)
	r.n++
	r.step, r.at = mciTrialRest, now
	if !r.on {
		r.at = now + timingRestTime
	}
	if r.err != nil {
		r.step = mciTrialFinish
	}
}

// finish computes the bundle's timing from the trials.
func (r *mciTrials) finish(d *mciDrive, now time.Duration) {
	r.step = mciTrialNone
	found := d.search
	d.search = nil
	d.trx.become(Idle)
	if r.err != nil {
		d.trx.calibrationFailed(now, r.err, nil)
		if found != nil { // codes that do not make light
			d.trx.cfg.Calibration = found.before
			d.trx.Start(now)
		}
		return
	}
	c := &Calibration{Modules: d.trx.cfg.Calibration.Modules}
	c.Timing.DetectMin, c.Timing.DetectMax = r.detect.bounds()
	// Few dozen interrupts do not meet the latest one. chosen: half the spread.
	least, most, _ := r.detect.seen.believed()
	c.Timing.DetectMax += (most - least) / 2
	busLeast, busMost := r.bus.beyond()
	quickest, slowest := slices.Min(r.took), slices.Max(r.took)
	tookLeast := max(quickest-(slowest-quickest)/4, 0)
	// A read of another module of the segment may be ahead of the trigger, once;
	// what the controllers promise bounds what was not met.
	c.Timing.SwitchMin = busLeast + tookLeast
	c.Timing.SwitchMax = busMost + d.set.Longest + d.set.Settle()
	c.count(&r.bus, &r.detect.seen)
	d.trx.cfg.Calibration = c
	d.trx.emit(Event{Kind: Calibrated, At: now, Path: d.trx.path, Module: None, Cell: None, Lane: None, Text: c.Doubt()})
}
