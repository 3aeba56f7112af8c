package ocs

import (
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/ocs/heater"
	"ringlight/ocs/mci"
	"ringlight/ocs/stored"
	"ringlight/proto"
)

// ErrTriggerMissed is a module that never carried a trigger out.
var ErrTriggerMissed = errors.New("module does not carry the trigger out")

// mciDrive is the controllers of CMIS modules: a path is one trigger byte to all of
// them, and the codes of all paths lie with each. A module that missed the byte,
// because it held off just then, is given it alone.
type mciDrive struct {
	trx    *Transceiver // whose light they move
	set    *mci.Set
	trials mciTrials
	search *mciSearch // under way
	locks  []mciLock
}

func (d *mciDrive) controllers() *mci.Set { return d.set }

// renew begins another life of the controllers' ports.
func (d *mciDrive) renew() {
	d.set = mci.New(d.trx.cfg.Board.Buses, d.trx.bundle.Modules, d, &d.trx.work, uint8(taskMCI), d.trx.settleTime(d.trx.cfg.Calibration))
	d.trials, d.search, d.locks = mciTrials{}, nil, nil
}

// start brings every module up, side by side, and adopts what is right.
func (d *mciDrive) start(now time.Duration) {
	d.renew()
	if c := d.trx.cfg.Calibration; c != nil && len(c.Modules) != len(d.set.Modules) {
		d.fault(now, -1, stored.ErrMismatch)
		return
	}
	if d.trx.cfg.Calibration == nil || d.compose(now) {
		d.set.BringUp(d.found, d.refused)
	}
}

// compose makes every module's codes.
func (d *mciDrive) compose(now time.Duration) (ok bool) {
	var err error
	if d.trx.heat.inForce, err = composeCodes(d.trx.bundle.Modules, d.trx.cfg.Calibration.Modules, true); err != nil {
		d.fault(now, -1, err)
	}
	return err == nil
}

func (d *mciDrive) fault(now time.Duration, module int, err error) {
	d.set.Halt()
	d.trx.fault(now, module, err)
}

func (d *mciDrive) refused(now time.Duration, module int, err error) {
	d.fault(now, module, &ModuleError{Module: module, Err: err})
}

// Known refuses a module that the calibration is not of.
func (d *mciDrive) Known(module int, serial string) error {
	if c := d.trx.cfg.Calibration; c != nil && serial != c.Modules[module].Serial {
		return fmt.Errorf("%w: it is %q, calibrated is %q", ErrCalibrationForeign, serial, c.Modules[module].Serial)
	}
	return nil
}

// Codes of a module, as the limits let them pass.
func (d *mciDrive) Codes(module int) (codes *heater.Allowed, whole bool) {
	if d.trx.cfg.Calibration == nil {
		return nil, false
	}
	codes, cuts := d.trx.heat.allow(module, d.trx.cfg.Calibration.Modules[module], d.trx.heat.codes(module))
	return codes, cuts == 0
}

// Stage lets codes go to a module that none was cut of.
func (d *mciDrive) Stage(module int) error {
	before := d.trx.heat.limitErrors
	if d.trx.heat.allowed(module); d.trx.heat.limitErrors > before {
		return hal.ErrOutOfRange
	}
	if d.trx.state == Reading {
		d.trx.become(Staging)
	}
	return nil
}

// found adopts the path that the modules are on.
func (d *mciDrive) found(now time.Duration) {
	if d.search != nil { // of what a search has found
		d.trials = mciTrials{step: mciTrialRest, at: now}
		return
	}
	path, agree, differ := d.set.Found()
	d.trx.adoptPath(now, path)
	var odd error
	if !agree {
		odd = mci.ErrState
	}
	d.trx.serve(now, differ, odd, "modules are on different paths")
}

// choose sets a path by one trigger byte; controllers see to their own order.
func (d *mciDrive) choose(now time.Duration, p proto.Path, _ switchStep) error {
	switch {
	case d.trx.state == Calibrating:
		return ErrBusy
	case d.trx.state == Faulted && p != proto.Dark: // to go dark is always granted
		return ErrOutOfService
	case d.trx.state != Idle && d.trx.state != Faulted:
		return ErrNotReady
	case p != proto.Dark && d.trx.cfg.Calibration == nil:
		return ErrNotCalibrated
	}
	d.trx.aim(p)
	d.send(now, p)
	return nil
}

// send asks for the trigger of a path to all modules.
func (d *mciDrive) send(now time.Duration, p proto.Path) {
	s := &d.trx.sw
	s.asked, s.want, s.settling = now, true, false
	s.busStart, s.busEnd = 0, 0
	d.set.Fire(now, d.set.Trigger(p))
	d.trx.verify.reset()
}

// due lets the requests of every module go on.
func (d *mciDrive) due(now time.Duration) (next time.Duration) {
	d.set.Again(now)
	d.settled(now)
	d.trials.due(d, now)
	d.trx.Patterns.askControllers()
	d.set.Step(now)
	d.trx.sw.out, d.trx.sw.want = d.set.PutFire()
	return min(d.trx.sw.next(), d.trials.next(), d.set.Next())
}

func (d *mciDrive) completed(now time.Duration, c *hal.Completion, _ task, module, n int) {
	o := d.set.Completed(now, c, module, n)
	if o.BusError {
		d.trx.busErrors++
	}
	s := &d.trx.sw
	s.out = d.set.Out()
	_, s.busStart, s.busEnd = d.set.Fired()
	if o.Failed != nil {
		d.trx.port = proto.Failed
		d.trx.emit(Event{Kind: PathFailed, At: now, Path: d.trx.target, Module: None, Cell: None, Lane: None, Err: o.Failed, Text: "trigger"})
	}
	if !o.Over {
		return
	}
	s.want = false
	if s.busEnd == 0 {
		return // no segment took it
	}
	s.settling, s.settled = true, s.busEnd+d.set.Settle()
	d.trials.sent(now)
}

// settled ends the settling.
func (d *mciDrive) settled(now time.Duration) {
	s := &d.trx.sw
	if !s.settling || now < s.settled {
		return
	}
	s.settling = false
	if d.trx.state == Calibrating {
		return
	}
	d.trx.arrived(now)
	if d.trx.state == Idle {
		d.trx.verify.start() // of darkness too: every module must have heard
	}
}

// look asks every module what it did, and reads its own light.
func (d *mciDrive) look() int {
	for i := range d.set.Modules {
		d.account(i)
	}
	return len(d.set.Modules)
}

// account is one module's part of a verification.
func (d *mciDrive) account(i int) {
	m := &d.set.Modules[i]
	m.Account(d.trx.verify.path, func(now time.Duration, missed bool, err error) {
		if missed && !d.trx.sw.busy() && d.trx.state == Idle {
			if m.Alone(func() { d.account(i) }) {
				return
			}
			fired, _, _ := d.set.Fired()
			err = fmt.Errorf("%w: %02xh, answers %v", ErrTriggerMissed, fired, m.Status.Answer)
			d.trx.port = proto.Failed
			d.trx.emit(Event{Kind: PathFailed, At: now, Path: d.trx.target, Module: uint8(i), Cell: None, Lane: None, Err: &ModuleError{Module: i, Err: err}})
		}
		d.trx.verify.accounted(now, i, m.Block(), err)
	})
}

// readHealth reads one module: temperature, flags, lock, and the light of the path in use.
func (d *mciDrive) readHealth(i int) bool {
	m := &d.set.Modules[i]
	if d.trx.sw.busy() || d.trx.verify.out > 0 || !m.Idle() {
		return false
	}
	path := d.trx.path
	m.Health(d.minds(i), func(now time.Duration, millicelsius int32, err error) {
		over := func() {
			if d.trx.Health.module == 0 {
				d.trx.verify.round()
			}
		}
		if err != nil {
			d.trx.busErrors++
			over()
			return
		}
		d.trx.Health.warm(now, now, i, millicelsius)
		if upper, lower, ok := mci.BiasOf(m); ok {
			s := &d.trx.Health.last[i]
			s.bias, s.biasAt = [2]int32{upper, lower}, now
		}
		if path == d.trx.path && !d.trx.sw.busy() && path != proto.Dark {
			block := m.Block()
			d.trx.Health.last[i].light(now, path, d.trx.bundle.Modules[i].Optics(), block)
			if d.trx.cfg.Calibration != nil && d.misrouted(i, path, block, over) {
				return
			}
		}
		d.supervise(now, i, over)
	})
	return true
}

// Dump begins to read the memory of a CMIS module; DumpImage has it when it is
// over. Modules of kind chips have no such memory: hal.ErrUnsupported.
func (t *Transceiver) Dump(module int) error {
	set := t.drive.controllers()
	switch {
	case set == nil:
		return fmt.Errorf("ocs: bundle %d: dump: %w", t.cfg.Bundle, hal.ErrUnsupported)
	case module < 0 || module >= len(set.Modules):
		return fmt.Errorf("ocs: bundle %d: module %d: %w", t.cfg.Bundle, module, hal.ErrOutOfRange)
	case t.state != Idle || !set.Dump(module):
		return ErrNotReady
	}
	return nil
}

// DumpImage is the linear image of the last Dump; done is false while it runs.
// err is why it failed.
func (t *Transceiver) DumpImage() (image []byte, done bool, err error) {
	set := t.drive.controllers()
	switch {
	case set == nil:
		return nil, true, hal.ErrUnsupported
	case set.Dumping():
		return nil, false, nil
	}
	image, err = set.Image()
	return image, true, err
}
