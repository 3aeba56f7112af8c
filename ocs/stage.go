package ocs

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/hal/pca953x"
	"ringlight/hal/pca9548"
	"ringlight/ocs/diode"
	"ringlight/ocs/heater"
	"ringlight/ocs/stored"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// scan walks the modules one after the other, so that the start of a board
// needs little memory: each is read back, and staged where it is not right.
type scan struct {
	module   int
	waiting  int  // completions of this module still out
	wrong    bool // this module is not as it should be
	staging  bool // reading back after staging
	tries    int
	nameless error        // the first whose identity cannot be read
	refused  *ModuleError // why the calibration of an exchanged module is not its own
	read     heater.Codes // codes that this module holds
	odd      bool         // this module differs by more than codes and averaging
	differ   bool         // some module differs and must not be touched: it carries light
}

// Numbers of a module's reads.
const (
	readEnable = 0x10 // above the DACs
	readGuard  = readEnable + 1
	readLanes  = readGuard + 1
	readSerial = readLanes + 1
)

// begin reads every module back; with force it stages them all first.
func (s *scan) begin(d *chipDrive, now time.Duration, force bool) {
	*s = scan{}
	if len(d.trx.cfg.Calibration.Modules) != len(d.trx.bundle.Modules) {
		d.fault(now, -1, stored.ErrMismatch)
		return
	}
	var err error
	if d.trx.heat.inForce, err = d.compose(); err != nil {
		d.fault(now, -1, err)
		return
	}
	if force {
		d.trx.become(Staging)
		s.stageModule(d, now)
		return
	}
	s.readModule(d)
}

// readModule reads what the chips of the module hold.
func (s *scan) readModule(d *chipDrive) {
	m := &d.trx.bundle.Modules[s.module]
	op := func(bus hal.BusID, n int, msgs ...hal.Msg) {
		s.waiting++
		d.put(bus, &hal.Op{Token: d.trx.token(taskReadModule, s.module, n), Class: hal.ClassSafety, Msgs: msgs})
	}
	s.wrong, s.odd, s.refused = false, false, nil
	s.waiting = 0
	s.read = *d.trx.heat.codes(s.module) // where a DAC cannot be read
	for n, msg := range d.dacs(s.module).ReadBack(nil) {
		op(m.SPI, n, msg)
	}
	op(m.Slow, readSerial, pca9548.Behind(m.Mux, m.MuxChannel, hal.Msg{Addr: m.EEPROM, W: at24.Of(m.Memory).AppendRead(nil, 0), R: make([]byte, hal.IdentityBytes)})...)
	op(m.Slow, readEnable, pca9548.Behind(m.Mux, m.MuxChannel, hal.Msg{Addr: m.LaneEnable, W: pca953x.TCA9534.AppendRead(nil, pca953x.Config), R: make([]byte, 1)})...)
	for adc := range diode.Both {
		op(m.ADC, readGuard+int(adc), diode.Of(m).State(adc)...)
	}
}

// moduleRead judges one of readModule's replies.
func (s *scan) moduleRead(d *chipDrive, now time.Duration, module, n int, op *hal.Op) {
	switch {
	case n < readEnable:
		dacs := d.dacs(module)
		s.wrong = !dacs.Holds(n, op.Msgs[0].R, d.trx.heat.codes(module)) || s.wrong
		s.odd = !dacs.Codes(n, op.Msgs[0].R, &s.read) || s.odd
	case n == readEnable:
		s.odd = pca9548.Inner(d.trx.bundle.Modules[module].Mux, op.Msgs)[0].R[0] != pca953x.ResetConfig || s.odd
		s.wrong = s.odd || s.wrong
	case n == readSerial:
		// Codes of another module would drive this one anywhere. One that
		// cannot say who it is is taken for the one that was calibrated: an
		// EEPROM must not cost a path.
		serial, err := hal.ParseIdentity(pca9548.Inner(d.trx.bundle.Modules[module].Mux, op.Msgs)[0].R)
		if want := d.trx.cfg.Calibration.Modules[module].Serial; err == nil && serial != want {
			s.refused = &ModuleError{Module: module, Err: fmt.Errorf("%w: it is %q, calibrated is %q", ErrCalibrationForeign, serial, want)}
		}
		if err != nil && s.nameless == nil {
			s.nameless = &ModuleError{Module: module, Err: err}
		}
	default:
		s.wrong = !diode.Of(&d.trx.bundle.Modules[module]).Scanning(op.Msgs) || s.wrong
	}
	if s.waiting--; s.waiting > 0 {
		return
	}
	switch {
	case s.refused != nil:
		d.pass.begin(d, passSwapped, module, 1, nil) // it may bring its own
	case !s.wrong:
		s.nextModule(d, now)
	case s.staging:
		d.fault(now, module, &ModuleError{Module: module, Err: heater.ErrReadBack})
	case d.trx.path != proto.Dark && !s.odd && d.lock.trimmedBefore(d, module):
		s.nextModule(d, now)
	case d.trx.path != proto.Dark && d.trx.renewing:
		d.writeLatch(bitsOf(proto.Dark, d.pins.bits()), d.trx.token(taskLatchClaim, 0, 0), hal.ClassSafety) // and dark is adopted
	case d.trx.path != proto.Dark:
		// It carries light with other codes than ours. Fail static: the light
		// is right until it proves otherwise.
		s.differ = true
		s.nextModule(d, now)
	default:
		if d.trx.state != Staging {
			d.trx.become(Staging)
		}
		s.stageModule(d, now)
	}
}

func (s *scan) nextModule(d *chipDrive, now time.Duration) {
	s.staging = false
	if s.module++; s.module < len(d.trx.bundle.Modules) {
		s.readModule(d)
		return
	}
	d.arm.due = true
	d.trx.serve(now, s.differ, s.nameless, "module does not say who it is; taken for the one that was calibrated")
}

// stageModule writes the codes of all paths, lets the ADCs scan and the lasers
// shine. The bundle is dark: nothing of it is seen outside.
func (s *scan) stageModule(d *chipDrive, now time.Duration) {
	module := s.module
	m := &d.trx.bundle.Modules[module]
	codes, cuts := d.trx.heat.allow(module, d.trx.cfg.Calibration.Modules[module], d.trx.heat.codes(module))
	if cuts > 0 { // a calibration of ours never asks for more
		d.trx.heat.limitErrors += cuts
		d.fault(now, module, &ModuleError{Module: module, Err: hal.ErrOutOfRange})
		return
	}
	s.waiting = 0
	for _, op := range stageOps(m, d.dacs(module).Stage(codes)) {
		s.waiting++
		op.Op.Token = d.trx.token(taskStageModule, module, 0)
		d.put(op.Bus, op.Op)
	}
}

// orRetry goes on after work that must succeed, or tries it again.
func (s *scan) orRetry(d *chipDrive, now time.Duration, c *hal.Completion, module int, then func()) {
	if c.Err == nil {
		s.tries = 0
		then()
		return
	}
	if s.tries++; s.tries < work.MaxTries {
		d.put(c.Bus, c.Op)
		return
	}
	err := c.Err
	if module >= 0 {
		err = &ModuleError{Module: module, Err: err}
	}
	d.fault(now, module, err)
}
