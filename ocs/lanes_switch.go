package ocs

import (
	"errors"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/ocs/heater"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// laneStep is where a change of the lanes stands.
//
//	laneIdle -> laneStage -> laneBreak -> laneFire -> laneSettle -> laneIdle
//	                `-> laneUndo -> laneIdle
type laneStep uint8

const (
	laneIdle   laneStep = iota
	laneStage           // the new codes go to the input registers, which move nothing, and are read back
	laneBreak           // the loopback goes dark, if it is lit
	laneFire            // every DAC takes its input registers over
	laneSettle          // the heaters get there
	laneUndo            // staging failed: the input registers get the old codes back
)

// laneSwitch changes the permutation that the loopback makes.
type laneSwitch struct {
	step  laneStep
	asked time.Duration
	perm  mzi.Permutation
	codes []*heater.Codes // to come
	out   int             // bus work of the step
	tries int
	at    time.Duration // end of laneSettle
	err   error         // why it is undone
}

// laneSettling is how long heaters take that go anywhere: the same as in a
// search, so that nothing is left to move when the light comes back.
const laneSettling = 210 * time.Microsecond

// setLanes begins a change of the lanes: codes go to the DACs beside those in force.
func (t *chipDrive) setLanes(now time.Duration, p mzi.Permutation) error {
	if t.lanes.step != laneIdle {
		return ErrNotReady
	}
	codes, err := t.compose(p)
	if err != nil {
		return err
	}
	t.lock.freeze(t)
	t.lanes = laneSwitch{asked: now, perm: p, codes: codes}
	t.lanes.stage(t, laneStage, codes)
	return nil
}

// compose makes every module's codes for a permutation, as the lock has their
// calibrations by now.
func (t *chipDrive) compose(p mzi.Permutation) ([]*heater.Codes, error) {
	modules := t.cfg.Calibration.Modules
	if t.lock.modules != nil {
		modules = make([]*ModuleCalibration, len(modules))
		for i := range modules {
			modules[i] = t.lock.calibrated(t, i)
		}
	}
	return composeCodes(t.bundle.Modules, modules, p, !t.lock.trimmed())
}

// stage writes codes to the input registers of all modules and reads them back.
func (l *laneSwitch) stage(t *chipDrive, step laneStep, codes []*heater.Codes) {
	l.step, l.out, l.tries = step, 0, 0
	t.arm.due = true
	for i := range t.bundle.Modules {
		m, c := &t.bundle.Modules[i], &t.cfg.Calibration.Modules[i].Codes
		if codes[i] != nil {
			c = codes[i]
		}
		dacs := t.dacs(i)
		msgs := dacs.Load(t.allowed(i, c))
		if t.arm.both { // else what is loaded cannot be read
			msgs = dacs.ReadBack(msgs)
		}
		for d, msg := range msgs {
			l.out++
			t.put(m.SPI, &hal.Op{Token: t.token(taskLanes, i, d), Class: hal.ClassHousekeeping, Msgs: []hal.Msg{msg}})
		}
	}
}

// completed takes the end of a piece of bus work of the step.
func (l *laneSwitch) completed(t *chipDrive, now time.Duration, c *hal.Completion, module, n int) {
	err := c.Err
	if err == nil && l.step != laneBreak {
		codes := &t.cfg.Calibration.Modules[module].Codes
		if l.step == laneUndo {
			codes = t.codes(module)
		} else if l.codes[module] != nil {
			codes = l.codes[module]
		}
		for k, m := range c.Op.Msgs {
			if m.R != nil && !t.dacs(module).Holds(n+k, m.R, codes) {
				err = heater.ErrReadBack
			}
		}
	}
	if err != nil {
		if l.tries++; l.tries < work.MaxTries {
			t.put(c.Bus, c.Op)
			return
		}
		if l.err == nil {
			l.err = &ModuleError{Module: module, Err: err}
		}
	}
	if l.out--; l.out > 0 {
		return
	}
	l.advance(t, now, c)
}

func (l *laneSwitch) advance(t *chipDrive, now time.Duration, c *hal.Completion) {
	switch {
	case l.step == laneStage && l.err != nil:
		l.stage(t, laneUndo, t.forcedOrOwn())
	case l.step == laneStage && t.path == proto.Loopback && t.target == proto.Loopback:
		l.dark(t)
	case l.step == laneStage, l.step == laneBreak && l.err == nil:
		l.fire(t)
	case l.step == laneFire && l.err == nil:
		l.step, l.at = laneSettle, c.End+max(laneSettling, t.cfg.Calibration.standTime())
	case l.step == laneUndo && l.tries < work.MaxTries:
		err := l.err
		l.finish()
		t.lanesSet(now, 0, err)
	default:
		// Nobody knows any more what the DACs would do next.
		err := l.err
		l.finish()
		var named *ModuleError
		module := -1
		if errors.As(err, &named) {
			module = named.Module
		}
		t.fault(now, module, err)
	}
}

// forcedOrOwn are the codes in force, module by module: forced ones, else its own.
func (t *chipDrive) forcedOrOwn() []*heater.Codes {
	if t.force == nil {
		return make([]*heater.Codes, len(t.bundle.Modules))
	}
	return t.force
}

func (l *laneSwitch) finish() { *l = laneSwitch{} }

// dark takes the light off the loopback. Until the lanes are set, no write of a
// Select goes out.
func (l *laneSwitch) dark(t *chipDrive) {
	l.step, l.out, l.tries = laneBreak, 1, 0
	t.sw.held = true
	t.writeLatch(t.cfg.Latch.bits(t.bundle)|dark, t.token(taskLanes, 0, 0), hal.ClassSwitch)
}

// fire lets every DAC take its codes over.
func (l *laneSwitch) fire(t *chipDrive) {
	l.step, l.out, l.tries = laneFire, 0, 0
	for i := range t.bundle.Modules {
		m := &t.bundle.Modules[i]
		msgs := t.dacs(i).Take()
		if !t.arm.both {
			msgs = t.dacs(i).ReadBack(msgs)
		}
		l.out++
		t.put(m.SPI, &hal.Op{Token: t.token(taskLanes, i, 0), Class: hal.ClassSwitch, Msgs: msgs})
	}
}

func (l *laneSwitch) next() time.Duration {
	if l.step == laneSettle {
		return l.at
	}
	return hal.Never
}

// due ends the change: the light comes back, on the path that is wanted by now.
func (l *laneSwitch) due(t *chipDrive, now time.Duration) {
	if l.step != laneSettle || now < l.at {
		return
	}
	t.force, t.cfg.Lanes = l.codes, l.perm
	for i := range t.lock.modules {
		t.lock.modules[i].favours = proto.Dark // these codes favour none
	}
	asked := l.asked
	l.finish()
	if t.sw.held {
		t.turn.release(t, asked)
	}
	t.lanesSet(now, asked, nil)
}
