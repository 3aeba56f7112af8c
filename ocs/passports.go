package ocs

import (
	"time"

	"ringlight/hal"
)

// passports is the access to the passports of several modules at the same time;
// their bus puts them one behind the other.
type passports struct {
	why  passportWhy
	from int          // the first module
	ios  []passportIO // nil: nobody is at the EEPROMs
}

// passportWhy says what for.
type passportWhy uint8

const (
	passAdopt   passportWhy = iota // a bundle without a calibration looks into its modules
	passSwapped                    // a module is another one than was calibrated
	passWrite                      // a calibration ends
)

// begin reads the passports of n modules from one on, and writes those of a calibration
// behind them; nil: it only reads.
func (p *passports) begin(d *chipDrive, why passportWhy, from, n int, c *Calibration) {
	*p = passports{why: why, from: from, ios: make([]passportIO, n)}
	for i := range p.ios {
		p.ios[i] = passportIO{hw: &d.trx.bundle.Modules[from+i], token: d.trx.token(taskPassport, from+i, i)}
		if c != nil {
			p.ios[i].write = &passport{number: 1, module: c.Modules[i], timing: c.Timing}
		}
		p.ios[i].begin(&d.trx.work)
	}
}

// asks reports whether a completion is the answer of a chip that programs.
func (p *passports) asks(c *hal.Completion, n int) bool {
	return n < len(p.ios) && p.ios[n].asks(c)
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

// completed takes the end of a piece of bus work of one module's passport.
func (p *passports) completed(d *chipDrive, now time.Duration, c *hal.Completion, n int) {
	if n >= len(p.ios) {
		return
	}
	p.ios[n].completed(&d.trx.work, now, c)
	for i := range p.ios {
		if p.ios[i].step != ioDone {
			return
		}
	}
	over := *p
	p.ios = nil
	switch over.why {
	case passAdopt:
		over.adopt(d, now)
	case passSwapped:
		over.exchange(d, now)
	case passWrite:
		over.written(d, now)
	}
}

// adopt takes the modules' passports as the bundle's calibration, if all have
// one.
func (p *passports) adopt(d *chipDrive, now time.Duration) {
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
	d.scan.begin(d, now, false)
}

// exchange puts the passport of an exchanged module in the place of its
// predecessor's calibration. Without one the bundle is out of service, for the
// reason that it was to be before.
func (p *passports) exchange(d *chipDrive, now time.Duration) {
	io := &p.ios[0]
	if io.found == nil || io.serial == "" {
		d.fault(now, p.from, d.scan.refused)
		return
	}
	c := &Calibration{Modules: append([]*ModuleCalibration(nil), d.trx.cfg.Calibration.Modules...), Timing: d.trx.cfg.Calibration.Timing}
	c.Modules[p.from] = io.found.module
	c.Timing = c.Timing.Join(io.found.timing)
	d.trx.cfg.Calibration = c
	d.lock.forget()
	d.trx.Health.forgetMisrouted()
	d.trx.emit(Event{Kind: Adopted, At: now, Path: d.trx.path, Module: uint8(p.from), Cell: None, Lane: None,
		Text: "module was exchanged; calibration taken from its EEPROM"})
	var err error
	if d.trx.heat.inForce, err = d.compose(); err != nil {
		d.fault(now, p.from, err)
		return
	}
	d.scan.readModule(d)
}

// written ends the calibration that the passports are of. An EEPROM that does
// not take its own costs no calibration, but somebody should look.
func (p *passports) written(d *chipDrive, now time.Duration) {
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
