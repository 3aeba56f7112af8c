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

// startScan reads every module back; with force it stages them all first.
func (t *chipDrive) startScan(now time.Duration, force bool) {
	t.scan = scan{}
	if len(t.cfg.Calibration.Modules) != len(t.bundle.Modules) {
		t.fault(now, -1, stored.ErrMismatch)
		return
	}
	var err error
	if t.force, err = t.compose(); err != nil {
		t.fault(now, -1, err)
		return
	}
	if force {
		t.become(Staging)
		t.stageModule(now)
		return
	}
	t.readModule()
}

// readModule reads what the chips of the module hold.
func (t *chipDrive) readModule() {
	m := &t.bundle.Modules[t.scan.module]
	op := func(bus hal.BusID, n int, msgs ...hal.Msg) {
		t.scan.waiting++
		t.put(bus, &hal.Op{Token: t.token(taskReadModule, t.scan.module, n), Class: hal.ClassSafety, Msgs: msgs})
	}
	t.scan.wrong, t.scan.odd, t.scan.refused = false, false, nil
	t.scan.waiting = 0
	t.scan.read = *t.codes(t.scan.module) // where a DAC cannot be read
	for d, msg := range t.dacs(t.scan.module).ReadBack(nil) {
		op(m.SPI, d, msg)
	}
	op(m.Slow, readSerial, pca9548.Behind(m.Mux, m.MuxChannel, hal.Msg{Addr: m.EEPROM, W: at24.Of(m.Memory).AppendRead(nil, 0), R: make([]byte, hal.IdentityBytes)})...)
	op(m.Slow, readEnable, pca9548.Behind(m.Mux, m.MuxChannel, hal.Msg{Addr: m.LaneEnable, W: pca953x.TCA9534.AppendRead(nil, pca953x.Config), R: make([]byte, 1)})...)
	for adc := range diode.Both {
		op(m.ADC, readGuard+int(adc), diode.Of(m).State(adc)...)
	}
}

// moduleRead judges one of readModule's replies.
func (t *chipDrive) moduleRead(now time.Duration, module, n int, op *hal.Op) {
	switch {
	case n < readEnable:
		dacs := t.dacs(module)
		t.scan.wrong = !dacs.Holds(n, op.Msgs[0].R, t.codes(module)) || t.scan.wrong
		t.scan.odd = !dacs.Codes(n, op.Msgs[0].R, &t.scan.read) || t.scan.odd
	case n == readEnable:
		t.scan.odd = pca9548.Inner(t.bundle.Modules[module].Mux, op.Msgs)[0].R[0] != pca953x.ResetConfig || t.scan.odd
		t.scan.wrong = t.scan.odd || t.scan.wrong
	case n == readSerial:
		// Codes of another module would drive this one anywhere. One that
		// cannot say who it is is taken for the one that was calibrated: an
		// EEPROM must not cost a path.
		serial, err := hal.ParseIdentity(pca9548.Inner(t.bundle.Modules[module].Mux, op.Msgs)[0].R)
		if want := t.cfg.Calibration.Modules[module].Serial; err == nil && serial != want {
			t.scan.refused = &ModuleError{Module: module, Err: fmt.Errorf("%w: it is %q, calibrated is %q", ErrCalibrationForeign, serial, want)}
		}
		if err != nil && t.scan.nameless == nil {
			t.scan.nameless = &ModuleError{Module: module, Err: err}
		}
	default:
		t.scan.wrong = !diode.Of(&t.bundle.Modules[module]).Scanning(op.Msgs) || t.scan.wrong
	}
	if t.scan.waiting--; t.scan.waiting > 0 {
		return
	}
	switch {
	case t.scan.refused != nil:
		t.swapped(module)
	case !t.scan.wrong:
		t.nextModule(now)
	case t.scan.staging:
		t.fault(now, module, &ModuleError{Module: module, Err: heater.ErrReadBack})
	case t.path != proto.Dark && !t.scan.odd && t.trimmedBefore(module):
		t.nextModule(now)
	case t.path != proto.Dark && t.renewing:
		t.writeLatch(bitsOf(proto.Dark, t.cfg.Latch.bits(t.bundle)), t.token(taskLatchClaim, 0, 0), hal.ClassSafety) // and dark is adopted
	case t.path != proto.Dark:
		// It carries light with other codes than ours. Fail static: the light
		// is right until it proves otherwise.
		t.scan.differ = true
		t.nextModule(now)
	default:
		if t.state != Staging {
			t.become(Staging)
		}
		t.stageModule(now)
	}
}

func (t *chipDrive) nextModule(now time.Duration) {
	t.scan.staging = false
	if t.scan.module++; t.scan.module < len(t.bundle.Modules) {
		t.readModule()
		return
	}
	t.arm.due = true
	t.serve(now, t.scan.differ, t.scan.nameless, "module does not say who it is; taken for the one that was calibrated")
}

// stageModule writes the codes of all paths, lets the ADCs scan and the lasers
// shine. The bundle is dark: nothing of it is seen outside.
func (t *chipDrive) stageModule(now time.Duration) {
	module := t.scan.module
	m := &t.bundle.Modules[module]
	codes, cuts := t.allow(module, t.cfg.Calibration.Modules[module], t.codes(module))
	if cuts > 0 { // a calibration of ours never asks for more
		t.limitErrors += cuts
		t.fault(now, module, &ModuleError{Module: module, Err: hal.ErrOutOfRange})
		return
	}
	t.scan.waiting = 0
	for _, op := range stageOps(m, t.dacs(module).Stage(codes)) {
		t.scan.waiting++
		op.Op.Token = t.token(taskStageModule, module, 0)
		t.put(op.Bus, op.Op)
	}
}
