package ocs

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/mzi"
	"ringlight/ocs/heater"
	"ringlight/proto"
)

// mciLanes changes the permutation that the loopback of CMIS modules makes, by
// page 1Dh: the codes for it are staged, and the commit brings both about.
//
//	laneIdle -> laneStage -> laneBreak -> laneFire -> laneIdle
//	                                         `-> laneUndo -> laneIdle
//
// Here laneStage waits until nobody reads the modules, laneBreak until the
// loopback is dark, if it was lit, and laneFire and laneUndo until every module
// has committed. Unlike with chips the codes cannot be staged beside those in
// force while light is on the way: what is staged and not applied, no trigger
// lights.
type mciLanes struct {
	step  laneStep
	asked time.Duration
	perm  mzi.Permutation
	codes []*heater.Codes
	want  bool // the light is to be set again at the end
	left  int
	err   error
	lost  bool // some module did not commit
}

// setLanes begins a redirection.
func (d *mciDrive) setLanes(now time.Duration, p mzi.Permutation) error {
	if d.lanes.step != laneIdle || d.set.Dumping() {
		return ErrNotReady
	}
	for i := range d.set.Modules {
		if m := &d.set.Modules[i]; !m.Advert.LaneSwitch || !m.Control.Staging {
			return &ModuleError{Module: i, Err: fmt.Errorf("it does not redirect lanes: %w", hal.ErrUnsupported)}
		}
	}
	codes, err := composeCodes(d.bundle.Modules, d.cfg.Calibration.Modules, p, true)
	if err != nil {
		return err
	}
	d.lanes = mciLanes{step: laneStage, asked: now, perm: p, codes: codes}
	return nil
}

// due goes on as soon as it may.
func (l *mciLanes) due(d *mciDrive, now time.Duration) {
	switch {
	case l.step == laneStage && d.verify.out == 0 && !d.sw.busy():
		d.sw.held = true // nobody reads, verifies or asks for rounds until the end
		l.step = laneBreak
		if d.path == proto.Loopback {
			l.want = true
			d.send(now, proto.Dark)
			return
		}
		l.redirect(d, laneFire)
	case l.step == laneBreak && !d.sw.settling && !d.sw.want && d.sw.out == 0:
		l.redirect(d, laneFire)
	}
}

// redirect commits the new codes and permutation in every module, or, to undo,
// those in force.
func (l *mciLanes) redirect(d *mciDrive, step laneStep) {
	l.step, l.left, l.lost = step, len(d.set.Modules), false
	perm := l.perm
	if step == laneUndo {
		perm = d.Lanes()
	}
	var to [cmis.Lanes]uint8
	for lane, at := range perm {
		to[lane] = uint8(at)
	}
	for i := range d.set.Modules {
		c := &d.cfg.Calibration.Modules[i].Codes
		switch {
		case step == laneUndo:
			c = d.codes(i)
		case l.codes[i] != nil:
			c = l.codes[i]
		}
		d.set.Modules[i].Redirect(d.allowed(i, c), to, func(now time.Duration, err error) {
			if err != nil {
				l.lost = true
				if l.err == nil || l.step == laneUndo {
					l.err = &ModuleError{Module: i, Err: err}
				}
			}
			l.done(d, now)
		})
	}
}

// done ends the change when every module is through.
func (l *mciLanes) done(d *mciDrive, now time.Duration) {
	if l.left--; l.left > 0 {
		return
	}
	undone, err, want, asked := l.step == laneUndo, l.err, l.want, l.asked
	switch {
	case l.lost && undone:
		d.lanes = mciLanes{}
		d.fault(now, err.(*ModuleError).Module, err) // nobody knows what that module would do next
		return
	case l.lost:
		l.redirect(d, laneUndo)
		return
	case !undone:
		d.force, d.cfg.Lanes = l.codes, l.perm
	}
	d.lanes = mciLanes{}
	d.sw.held = false
	if want {
		d.send(now, d.target)
		d.sw.asked = asked
	}
	if !undone {
		err = nil
	}
	d.lanesSet(now, asked, err)
}
