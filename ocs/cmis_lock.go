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
	proof proof
}

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
	m, a := &d.set.Modules[i], &d.trx.Health.last[i].misrouted
	o, cal := d.trx.bundle.Modules[i].Optics(), d.trx.cfg.Calibration.Modules[i]
	taps := block[2*hal.GuardTap1 : diode.BlockBytes]
	first := cal.below(o, path, taps)
	if first >= mzi.LeastExtinction {
		a.sample(path, first)
		return false
	}
	m.Again(func(now time.Duration, err error) {
		if err != nil {
			d.trx.busErrors++
		} else if path == d.trx.path && !d.trx.sw.busy() {
			a.sample(path, max(first, cal.below(o, path, m.Block()[2*hal.GuardTap1:])))
		}
		d.supervise(now, i, over)
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
	return d.trx.cfg.Lock.Mode != LockOff || !d.lockOf(module).known || d.set.Modules[module].Lock.On
}

// supervise takes what a module says of its lock, and tells it what to do where it
// does something else; then over follows.
func (d *mciDrive) supervise(now time.Duration, i int, over func()) {
	m := &d.set.Modules[i]
	if !m.Control.Lock || !d.minds(i) || d.trx.state != Idle || d.trx.sw.busy() {
		d.trx.prove(now, i)
		over()
		return
	}
	l := d.lockOf(i)
	if !l.known {
		l.looks = m.Lock.Looks
	}
	defer d.trx.prove(now, i)
	l.known = true
	l.hold.Engaged = d.trx.cfg.Lock.Mode != LockOff
	if !m.Lock.On && l.hold.Engaged { // not told yet, or it has begun anew
		l.proof = proof{}
	}
	if l.took(&m.Lock) && l.phase == cmis.LockHolding {
		l.proof = proof{since: now, kelvin: d.trx.Health.temperature(i), slope: claimKelvin, dim: l.dim(d, i),
			found: claimTrimmed * float64(m.Lock.Microrad) / 1e6, carried: m.Control.Carry, spread: float64(m.Lock.Spread) / 1e6}
	}
	if want := l.hold.Engaged && d.trx.cfg.Calibration != nil && d.lockless() == ""; want != m.Lock.On {
		m.Hold(want, over)
		return
	}
	over()
}

// dim says whether a lane of a module may be dark: of its cells a look says nothing.
func (l *mciLock) dim(d *mciDrive, module int) bool {
	s, cal := &d.trx.Health.last[module], d.trx.cfg.Calibration.Modules[module]
	levels, got := cal.LaneLoop[:], sumLevel([]proto.MilliDBm{s.upper, s.lower})
	if d.trx.path.External() {
		levels, got = cal.LaneTap[d.trx.path-proto.External1][:], s.tap
	}
	_, some := missing(levels, sumLevel(levels), got)
	return some || s.lightAt == 0 || s.path != d.trx.path
}

// took takes what the last look found, and says whether there was one.
func (l *mciLock) took(lock *cmis.Lock) bool {
	h := &l.hold
	n := lock.Looks - l.looks
	if n > 128 { // it counts anew
		n = lock.Looks
	}
	l.looks, l.phase = lock.Looks, lock.Phase
	if n == 0 {
		return false
	}
	if h.Looks > 0 {
		h.LargestMicrorad = max(h.LargestMicrorad, lock.Microrad)
	}
	h.Looks += uint32(n)
	h.LastMicrorad, h.LastCell = lock.Microrad, lock.Cell
	if lock.Phase == cmis.LockLost {
		h.Lost++
	}
	return true
}

// proof: the controller looks at MZI1 and MZI2, and carries its matrix where it says so.
func (d *mciDrive) proof(module int) (p proof) {
	if module < len(d.locks) {
		p = d.locks[module].proof
	}
	return p
}
