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

func (d *chipDrive) newPassports(why passportWhy, modules ...int) *passports {
	p := &passports{why: why, ios: make([]passportIO, len(modules))}
	for i, m := range modules {
		p.ios[i] = passportIO{hw: &d.trx.bundle.Modules[m], token: d.trx.token(taskPassport, m, i)}
	}
	return p
}

func (p *passports) begin(d *chipDrive) {
	for i := range p.ios {
		p.ios[i].begin(&d.trx.work)
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

func (p *passports) due(d *chipDrive, now time.Duration) {
	for i := range p.ios {
		p.ios[i].due(&d.trx.work, now)
	}
}

// passportDone takes the end of a piece of bus work of one module's passport.
func (d *chipDrive) passportDone(now time.Duration, c *hal.Completion, n int) {
	p := d.pass
	if p == nil || n >= len(p.ios) {
		return
	}
	p.ios[n].completed(&d.trx.work, now, c)
	for i := range p.ios {
		if p.ios[i].step != ioDone {
			return
		}
	}
	d.pass = nil
	switch p.why {
	case passAdopt:
		d.adopt(now, p)
	case passSwapped:
		d.exchange(now, p)
	case passWrite:
		d.written(now, p)
	}
}

// lookForPassports reads what the modules themselves know, for a bundle of
// which no calibration was kept.
func (d *chipDrive) lookForPassports() {
	modules := make([]int, len(d.trx.bundle.Modules))
	for i := range modules {
		modules[i] = i
	}
	d.pass = d.newPassports(passAdopt, modules...)
	d.pass.begin(d)
}

// adopt takes the modules' passports as the bundle's calibration, if all have
// one.
func (d *chipDrive) adopt(now time.Duration, p *passports) {
	c := new(Calibration)
	for i := range p.ios {
		io := &p.ios[i]
		if io.found == nil {
			d.trx.become(Idle)
			d.trx.emit(Event{Kind: Ready, At: now, Path: d.trx.path, Module: uint8(i), Cell: None, Lane: None, Err: ErrNotCalibrated})
			return
		}
		c.Modules = append(c.Modules, io.found.module)
		c.Timing = c.Timing.Join(io.found.timing)
	}
	d.trx.cfg.Calibration = c
	d.trx.emit(Event{Kind: Adopted, At: now, Path: d.trx.path, Module: None, Cell: None, Lane: None,
		Text: "calibration taken from the modules' EEPROMs"})
	d.startScan(now, false)
}

// swapped asks a module that is not the calibrated one for its own calibration.
func (d *chipDrive) swapped(module int) {
	d.pass = d.newPassports(passSwapped, module)
	d.pass.module = module
	d.pass.begin(d)
}

// exchange puts the passport of an exchanged module in the place of its
// predecessor's calibration. Without one the bundle is out of service, for the
// reason that it was to be before.
func (d *chipDrive) exchange(now time.Duration, p *passports) {
	io := &p.ios[0]
	if io.found == nil || io.serial == "" {
		d.fault(now, p.module, d.scan.refused)
		return
	}
	c := &Calibration{Modules: append([]*ModuleCalibration(nil), d.trx.cfg.Calibration.Modules...), Timing: d.trx.cfg.Calibration.Timing}
	c.Modules[p.module] = io.found.module
	c.Timing = c.Timing.Join(io.found.timing)
	d.trx.cfg.Calibration = c
	d.lock.forget()
	d.trx.forgetMisrouted()
	d.trx.emit(Event{Kind: Adopted, At: now, Path: d.trx.path, Module: uint8(p.module), Cell: None, Lane: None,
		Text: "module was exchanged; calibration taken from its EEPROM"})
	var err error
	if d.trx.force, err = d.compose(); err != nil {
		d.fault(now, p.module, err)
		return
	}
	d.readModule()
}

// writePassports writes a bundle's new calibration into its modules.
func (d *chipDrive) writePassports(c *Calibration) {
	modules := make([]int, len(c.Modules))
	for i := range modules {
		modules[i] = i
	}
	d.pass = d.newPassports(passWrite, modules...)
	for i, m := range c.Modules {
		d.pass.ios[i].write = &passport{number: 1, module: m, timing: c.Timing}
	}
	d.pass.begin(d)
}

// written ends the calibration that the passports are of. An EEPROM that does
// not take its own costs no calibration, but somebody should look.
func (d *chipDrive) written(now time.Duration, p *passports) {
	if d.cal == nil {
		return
	}
	for i := range p.ios {
		if err := p.ios[i].err; err != nil {
			d.cal.unwritten = append(d.cal.unwritten, &ModuleError{Module: i, Err: err})
		}
	}
	d.cal.end(d, now)
}
