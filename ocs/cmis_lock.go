package ocs

import (
	"strconv"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/mzi"
	"ringlight/ocs/diode"
	"ringlight/proto"
)

// Modules with a controller are held by it: to go to and fro from here would take
// twenty writes a look, after each of which the module may be away for up to 10 ms when a
// trigger comes, and staged codes forbid the trigger altogether. So the host says whether
// to hold, which is one write, reads with each health round what came of it, says it
// again to a module that has forgotten, and judges by the taps as it does with chips.

// mciLock is what the host knows of one module's lock.
type mciLock struct {
	hold  Hold
	known bool  // a reading has been taken by this life
	looks uint8 // as the module counts
	phase cmis.LockPhase
	rests int // quiet readings in a row
}

// mciLockQuiet is what a look finds at most of a module that is quiet, radian. chosen:
// it costs a quarter of a dB, and controllers may see less sharply than the taps' ADC does.
const mciLockQuiet = 0.03

func (d *mciDrive) lockless() string {
	if _, _, differ := d.set.Found(); differ {
		return "codes were found that are none of ours"
	}
	for i := range d.set.Modules {
		if !d.set.Modules[i].Control.Lock {
			return "the controller of module " + strconv.Itoa(i) + " has no lock"
		}
	}
	return ""
}

func (d *mciDrive) hold(module int) (h Hold, why string) {
	if module >= len(d.locks) {
		return h, ""
	}
	l := &d.locks[module]
	switch {
	case l.phase == cmis.LockLost:
		why = "does not hold cell " + strconv.Itoa(int(l.hold.LastCell))
	case l.phase != cmis.LockHolding:
		why = "is " + l.phase.String()
	}
	return l.hold, why
}

// misrouted samples the acceptance of a module in service. Light on the wrong side is read
// once more before it counts; then over follows.
func (d *mciDrive) misrouted(i int, path proto.Path, block []byte, over func()) (again bool) {
	m, a := &d.set.Modules[i], &d.health.last[i].misrouted
	o, cal := d.bundle.Modules[i].Optics(), d.cfg.Calibration.Modules[i]
	taps := block[2*hal.GuardTap1 : diode.BlockBytes]
	sample := func(below int32) {
		if a.sample(path, below); a.rounds > 0 && d.cfg.Lock.Mode == LockOnDrift {
			d.lockOf(i).engage()
		}
	}
	first := cal.below(o, path, taps)
	if first >= mzi.LeastExtinction {
		sample(first)
		return false
	}
	m.Again(func(now time.Duration, err error) {
		if err != nil {
			d.busErrors++
		} else if path == d.path && !d.sw.busy() {
			sample(max(first, cal.below(o, path, m.Block()[2*hal.GuardTap1:])))
		}
		d.supervise(i, over)
	})
	return true
}

func (d *mciDrive) lockOf(module int) *mciLock {
	if d.locks == nil {
		d.locks = make([]mciLock, len(d.set.Modules))
	}
	return &d.locks[module]
}

// minds says whether a module's lock is to be read: not where none is wanted and none is
// on.
func (d *mciDrive) minds(module int) bool {
	return d.cfg.Lock.Mode != LockOff || !d.lockOf(module).known || d.set.Modules[module].Lock.On
}

// engage begins to hold a module that drifts.
func (l *mciLock) engage() {
	if !l.hold.Engaged {
		l.hold.Engaged, l.rests = true, 0
	}
}

// supervise takes what a module says of its lock, and tells it what to do where it
// does something else; then over follows.
func (d *mciDrive) supervise(i int, over func()) {
	m := &d.set.Modules[i]
	if !m.Control.Lock || !d.minds(i) || d.state != Idle || d.sw.busy() {
		over()
		return
	}
	l := d.lockOf(i)
	if !l.known {
		l.looks = m.Lock.Looks
	}
	switch d.cfg.Lock.Mode {
	case LockAlways:
		l.engage()
	case LockOnDrift:
		if !l.known && m.Lock.On { // an earlier life has begun it
			l.engage()
		}
	default:
		l.hold.Engaged = false
	}
	l.known = true
	if l.took(&m.Lock); l.rests >= lockDone && d.cfg.Lock.Mode == LockOnDrift {
		l.hold.Engaged = false
	}
	if want := l.hold.Engaged && d.cfg.Calibration != nil && d.lockless() == ""; want != m.Lock.On {
		m.Hold(want, over)
		return
	}
	over()
}

// took takes what the last look found.
func (l *mciLock) took(lock *cmis.Lock) {
	h := &l.hold
	n := lock.Looks - l.looks
	l.looks, l.phase = lock.Looks, lock.Phase
	if n == 0 {
		return
	}
	if h.Looks > 0 {
		h.LargestMicrorad = max(h.LargestMicrorad, lock.Microrad)
	}
	h.Looks += uint32(n)
	h.LastMicrorad, h.LastCell = lock.Microrad, lock.Cell
	if lock.Phase == cmis.LockLost {
		h.Lost++
	}
	if l.rests++; lock.Phase != cmis.LockHolding || float64(lock.Microrad) > mciLockQuiet*1e6 {
		l.rests = 0
	}
}
