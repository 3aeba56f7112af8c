package ocs

import (
	"errors"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/ocs/heater"
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

	latch latchOp
}

// laneSettling is how long heaters take that go anywhere: the same as in a
// search, so that nothing is left to move when the light comes back.
const laneSettling = 210 * time.Microsecond

// SetLanes takes lane n of the loopback to lane p[n], in every module of the
// bundle. The codes are staged and read back while the light stays as it is;
// then the loopback goes dark, if it is lit, all codes change at once, and it is
// lit again: some 0.3 ms without light, of which its peers are to be told
// beforehand. External paths keep theirs. LanesSet tells the end, Degraded that
// the codes did not get there and the lanes are what they were. CMIS modules
// redirect their lanes by page 1Dh, where they advertise it.
func (t *Transceiver) SetLanes(now time.Duration, p mzi.Permutation) error {
	if t.mci != nil {
		return t.mci.setLanes(t, now, p)
	}
	switch {
	case t.state == Calibrating:
		return ErrBusy
	case t.state == Faulted:
		return ErrOutOfService
	case t.cfg.Calibration == nil:
		return ErrNotCalibrated
	case t.state != Idle || t.sw.busy() || t.lanes.step != laneIdle:
		return ErrNotReady
	}
	codes, err := t.compose(p)
	if err != nil {
		return err
	}
	t.lock.freeze(t)
	t.lanes = laneSwitch{asked: now, perm: p, codes: codes, latch: t.lanes.latch}
	t.lanes.stage(t, laneStage, codes)
	return nil
}

// Lanes is the permutation that the loopback makes.
func (t *Transceiver) Lanes() mzi.Permutation {
	if t.cfg.Lanes == (mzi.Permutation{}) {
		return mzi.Halves
	}
	return t.cfg.Lanes
}

// compose makes every module's codes for a permutation; nil entries are the
// calibration's own.
func (t *Transceiver) compose(p mzi.Permutation) ([]*heater.Codes, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	codes := make([]*heater.Codes, len(t.bundle.Modules))
	if p == mzi.Halves && !t.lock.trimmed() {
		return codes, nil
	}
	for i := range codes {
		c, err := t.lock.calibrated(t, i).LaneCodes(p)
		if err != nil {
			return nil, &ModuleError{Module: i, Err: err}
		}
		codes[i] = &c
	}
	return codes, nil
}

// codes of a module that are in force, or to be.
func (t *Transceiver) codes(module int) *heater.Codes {
	if module < len(t.force) && t.force[module] != nil {
		return t.force[module]
	}
	return &t.cfg.Calibration.Modules[module].Codes
}

// allowed is what of a module's codes the limits let pass.
func (t *Transceiver) allowed(module int, codes *heater.Codes) *heater.Allowed {
	passed, cuts := t.cfg.Calibration.Modules[module].allowed(codes)
	t.limitErrors += cuts
	return passed
}

// stage writes codes to the input registers of all modules and reads them back.
func (l *laneSwitch) stage(t *Transceiver, step laneStep, codes []*heater.Codes) {
	l.step, l.out, l.tries = step, 0, 0
	for i := range t.bundle.Modules {
		m, c := &t.bundle.Modules[i], &t.cfg.Calibration.Modules[i].Codes
		if codes[i] != nil {
			c = codes[i]
		}
		dacs := heater.For(m)
		for d, msg := range dacs.ReadBack(dacs.Load(t.allowed(i, c))) {
			l.out++
			t.put(m.SPI, &hal.Op{Token: t.token(taskLanes, i, d), Class: hal.ClassHousekeeping, Msgs: []hal.Msg{msg}})
		}
	}
}

// completed takes the end of a piece of bus work of the step.
func (l *laneSwitch) completed(t *Transceiver, now time.Duration, c *hal.Completion, module, n int) {
	err := c.Err
	if err == nil && (l.step == laneStage || l.step == laneUndo) {
		codes := &t.cfg.Calibration.Modules[module].Codes
		if l.step == laneStage && l.codes[module] != nil {
			codes = l.codes[module]
		} else if l.step == laneUndo {
			codes = t.codes(module)
		}
		if !heater.For(&t.bundle.Modules[module]).Holds(n, c.Op.Msgs[0].R, codes) {
			err = ErrCodeReadBack
		}
	}
	if err != nil {
		if l.tries++; l.tries < maxTries {
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

func (l *laneSwitch) advance(t *Transceiver, now time.Duration, c *hal.Completion) {
	switch {
	case l.step == laneStage && l.err != nil:
		l.stage(t, laneUndo, t.forcedOrOwn())
	case l.step == laneStage && t.path == proto.Loopback && t.target == proto.Loopback:
		l.dark(t)
	case l.step == laneStage, l.step == laneBreak && l.err == nil:
		l.fire(t)
	case l.step == laneFire && l.err == nil:
		l.step, l.at = laneSettle, c.End+laneSettling
	case l.step == laneUndo && l.tries < maxTries:
		err := l.err
		l.finish()
		t.emit(Event{Kind: Degraded, At: now, Path: t.path, Module: None, Cell: None, Lane: None, Err: err,
			Measured: proto.NoPower, Expected: proto.NoPower, Text: "lanes are what they were: " + err.Error()})
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

// forcedOrOwn is what is in force, module by module.
func (t *Transceiver) forcedOrOwn() []*heater.Codes {
	if t.force == nil {
		return make([]*heater.Codes, len(t.bundle.Modules))
	}
	return t.force
}

func (l *laneSwitch) finish() { *l = laneSwitch{latch: l.latch} }

// dark takes the light off the loopback. Until the lanes are set, no write of a
// Select goes out.
func (l *laneSwitch) dark(t *Transceiver) {
	l.step, l.out, l.tries = laneBreak, 1, 0
	t.sw.held = true
	bits := t.cfg.Latch.bits(t.bundle)
	t.cfg.Latch.set(t.bundle, bits|dark)
	bus, addr := t.latchBus()
	o := &l.latch
	o.msg[0] = hal.Msg{Addr: addr, W: t.cfg.Latch.appendWrite(o.buf[:0], t.bundle)}
	o.op = hal.Op{Token: t.token(taskLanes, 0, 0), Class: hal.ClassSwitch, Msgs: o.msg[:]}
	t.put(bus, &o.op)
}

// fire lets every DAC take its codes over.
func (l *laneSwitch) fire(t *Transceiver) {
	l.step, l.out, l.tries = laneFire, 0, 0
	for i := range t.bundle.Modules {
		m := &t.bundle.Modules[i]
		l.out++
		t.put(m.SPI, &hal.Op{Token: t.token(taskLanes, i, 0), Class: hal.ClassSwitch, Msgs: heater.For(m).Take()})
	}
}

func (l *laneSwitch) next() time.Duration {
	if l.step == laneSettle {
		return l.at
	}
	return Never
}

// due ends the change: the light comes back, on the path that is wanted by now.
func (l *laneSwitch) due(t *Transceiver, now time.Duration) {
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
		t.sw.release(t, asked)
	}
	t.emit(Event{Kind: LanesSet, At: now, Path: t.path, Asked: asked, Module: None, Cell: None, Lane: None})
}
