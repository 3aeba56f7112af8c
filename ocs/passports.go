package ocs

import (
	"time"

	"ringlight/hal"
)

// passports is the access to the passports of several modules at the same time;
// their bus puts them one behind the other.
type passports struct {
	why    passportWhy
	module int // of passSwapped
	ios    []passportIO
}

// passportWhy says what for.
type passportWhy uint8

const (
	passAdopt   passportWhy = iota // a bundle without a calibration looks into its modules
	passSwapped                    // a module is another one than was calibrated
	passWrite                      // a calibration ends
)

func (t *chipDrive) newPassports(why passportWhy, modules ...int) *passports {
	p := &passports{why: why, ios: make([]passportIO, len(modules))}
	for i, m := range modules {
		p.ios[i] = passportIO{hw: &t.bundle.Modules[m], token: t.token(taskPassport, m, i)}
	}
	return p
}

func (p *passports) begin(t *chipDrive) {
	for i := range p.ios {
		p.ios[i].begin(&t.work)
	}
}

// asks reports whether a completion is the answer of a chip that programs.
func (p *passports) asks(c *hal.Completion, n int) bool {
	return p != nil && n < len(p.ios) && p.ios[n].asks(c)
}

func (p *passports) next() time.Duration {
	at := hal.Never
	for i := range p.ios {
		at = min(at, p.ios[i].wake)
	}
	return at
}

func (p *passports) due(t *chipDrive, now time.Duration) {
	for i := range p.ios {
		p.ios[i].due(&t.work, now)
	}
}

// passportDone takes the end of a piece of bus work of one module's passport.
func (t *chipDrive) passportDone(now time.Duration, c *hal.Completion, n int) {
	p := t.pass
	if p == nil || n >= len(p.ios) {
		return
	}
	p.ios[n].completed(&t.work, now, c)
	for i := range p.ios {
		if p.ios[i].step != ioDone {
			return
		}
	}
	t.pass = nil
	switch p.why {
	case passAdopt:
		t.adopt(now, p)
	case passSwapped:
		t.exchange(now, p)
	case passWrite:
		t.written(now, p)
	}
}

// lookForPassports reads what the modules themselves know, for a bundle of
// which no calibration was kept.
func (t *chipDrive) lookForPassports() {
	modules := make([]int, len(t.bundle.Modules))
	for i := range modules {
		modules[i] = i
	}
	t.pass = t.newPassports(passAdopt, modules...)
	t.pass.begin(t)
}

// adopt takes the modules' passports as the bundle's calibration, if all have
// one.
func (t *chipDrive) adopt(now time.Duration, p *passports) {
	c := new(Calibration)
	for i := range p.ios {
		io := &p.ios[i]
		if io.found == nil {
			t.become(Idle)
			t.emit(Event{Kind: Ready, At: now, Path: t.path, Module: uint8(i), Cell: None, Lane: None, Err: ErrNotCalibrated})
			return
		}
		c.Modules = append(c.Modules, io.found.module)
		c.Timing = c.Timing.Join(io.found.timing)
	}
	t.cfg.Calibration = c
	t.emit(Event{Kind: Adopted, At: now, Path: t.path, Module: None, Cell: None, Lane: None,
		Text: "calibration taken from the modules' EEPROMs"})
	t.startScan(now, false)
}

// swapped asks a module that is not the calibrated one for its own calibration.
func (t *chipDrive) swapped(module int) {
	t.pass = t.newPassports(passSwapped, module)
	t.pass.module = module
	t.pass.begin(t)
}

// exchange puts the passport of an exchanged module in the place of its
// predecessor's calibration. Without one the bundle is out of service, for the
// reason that it was to be before.
func (t *chipDrive) exchange(now time.Duration, p *passports) {
	io := &p.ios[0]
	if io.found == nil || io.serial == "" {
		t.fault(now, p.module, t.scan.refused)
		return
	}
	c := &Calibration{Modules: append([]*ModuleCalibration(nil), t.cfg.Calibration.Modules...), Timing: t.cfg.Calibration.Timing}
	c.Modules[p.module] = io.found.module
	c.Timing = c.Timing.Join(io.found.timing)
	t.cfg.Calibration = c
	t.lock.forget()
	t.forgetMisrouted()
	t.emit(Event{Kind: Adopted, At: now, Path: t.path, Module: uint8(p.module), Cell: None, Lane: None,
		Text: "module was exchanged; calibration taken from its EEPROM"})
	var err error
	if t.force, err = t.compose(); err != nil {
		t.fault(now, p.module, err)
		return
	}
	t.readModule()
}

// writePassports writes a bundle's new calibration into its modules.
func (t *chipDrive) writePassports(c *Calibration) {
	modules := make([]int, len(c.Modules))
	for i := range modules {
		modules[i] = i
	}
	t.pass = t.newPassports(passWrite, modules...)
	for i, m := range c.Modules {
		t.pass.ios[i].write = &passport{number: 1, module: m, timing: c.Timing}
	}
	t.pass.begin(t)
}

// written ends the calibration that the passports are of. An EEPROM that does
// not take its own costs no calibration, but somebody should look.
func (t *chipDrive) written(now time.Duration, p *passports) {
	if t.cal == nil {
		return
	}
	for i := range p.ios {
		if err := p.ios[i].err; err != nil {
			t.cal.unwritten = append(t.cal.unwritten, &ModuleError{Module: i, Err: err})
		}
	}
	t.cal.end(t, now)
}
