package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/hal/pca953x"
	"ringlight/hal/pca9548"
	"ringlight/mzi"
	"ringlight/ocs/diode"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// The cells as the search knows them, and those of a CMIS module, are the cells of the board.
var (
	_ = [1]struct{}{}[hal.CellsPerMod-mzi.Cells]
	_ = [1]struct{}{}[hal.CellMatrix-mzi.CellMatrix]
	_ = [1]struct{}{}[cmis.Cells-hal.BenesCells]
)

// calStep is where a calibration stands.
type calStep uint8

const (
	calPrepare calStep = iota // every module dark and cold, its ADCs scanning
	calLight                  // the bundle's lasers get their supply; each module's lane enables hold them
	calSearch                 // every module is searched, all at the same time
	calSquelch                // the supply goes again
	calStage                  // the codes found go to the DACs, the lasers may shine
	calTiming                 // detect and switch times, on the bundle's own loopback
	calDark                   // the end: squelched
	calWrite                  // and the modules' passports are written
)

var calNames = [...]string{"prepare", "light", "search", "squelch", "stage", "timing", "dark", "passports"}

// calibrating finds every cell of every module of a bundle that is dark. The
// modules are searched at the same time: most of a measurement is waiting, and
// the buses have room for the rest.
type calibrating struct {
	searches
	step   calStep
	probes []probe
	timing timing
	latch  latchAct
	result *Calibration

	unwritten []*ModuleError // whose passport could not be written
}

// calibrate begins the search of every module.
func (d *chipDrive) calibrate(now time.Duration) error {
	s, err := d.trx.newSearches(now)
	if err != nil {
		return err
	}
	c := &calibrating{searches: s, probes: make([]probe, len(s.list))}
	for i := range c.probes {
		c.probes[i] = probe{search: s.list[i], hw: &d.trx.bundle.Modules[i]}
	}
	d.cal = c
	d.calibrations = (d.calibrations + 1) % (1 << (moduleShift - calShift))
	d.trx.become(Calibrating)
	for i := range c.probes {
		c.probes[i].begin(d)
	}
	return nil
}

// due lets everything that waited for a time go on.
func (c *calibrating) due(d *chipDrive, now time.Duration) {
	c.now = now
	switch c.step {
	case calPrepare, calSearch:
		for i := range c.probes {
			c.probes[i].due(d, now)
		}
	case calTiming:
		c.timing.due(d, c, now)
	}
}

func (c *calibrating) next() time.Duration {
	at := hal.Never
	switch c.step {
	case calPrepare, calSearch:
		for i := range c.probes {
			at = min(at, c.probes[i].wake())
		}
	case calTiming:
		at = c.timing.wake()
	}
	return at
}

// Numbers of a calibration's bus work besides the modules'.
const (
	calLatchOp = 0x100 // the latch
	calStageOp = 0x200 // + module: codes, scans and lane enables
	calReadOp  = 0x300 // the timing's look at a diode
	calShift   = 10    // above it, which calibration of a life it is of
)

// token is that of a piece of bus work of this calibration: what an earlier one asked for
// may still be on the buses.
func (c *calibrating) token(d *chipDrive, module, n int) uint64 {
	return d.trx.token(taskCalibrate, module, int(d.calibrations)<<calShift|n)
}

// completed takes the end of one piece of a calibration's bus work.
func (c *calibrating) completed(d *chipDrive, now time.Duration, done *hal.Completion, n int) {
	switch {
	case c.step == calDark && n != calLatchOp:
		return // of before the end
	case n >= calReadOp:
		c.timing.read(d, c, now, done)
		return
	case n < calLatchOp:
		p := &c.probes[n]
		if p.failed {
			return
		}
		if err := p.completed(d, now, done); err != nil {
			c.blame(n, err)
			p.leave(d)
		}
	case done.Err != nil:
		module := None
		if n >= calStageOp {
			module = n - calStageOp
		}
		if c.latch.tries++; c.latch.tries < work.MaxTries {
			d.put(done.Bus, done.Op)
			return
		}
		c.fail(d, now, module, done.Err)
		return
	case n >= calStageOp:
		c.latch.out--
	default:
		c.latch.out = 0
		c.latch.start, c.latch.end = done.Start, done.End
	}
	c.advance(d, now)
}

// advance goes to the next step when the present one is over.
func (c *calibrating) advance(d *chipDrive, now time.Duration) {
	switch c.step {
	case calPrepare:
		if c.sound() == 0 {
			c.darken(d, now)
		} else if c.all(probeReady) {
			c.step = calLight
			c.latch.write(d, now, 0)
		}
	case calLight:
		c.step = calSearch
		for i := range c.probes {
			if !c.probes[i].failed {
				c.probes[i].ask(d, now)
			}
		}
	case calSearch:
		if c.all(probeDone) && c.failure != nil {
			c.darken(d, now)
		} else if c.all(probeDone) {
			c.step = calSquelch
			c.latch.write(d, now, dark)
		}
	case calSquelch:
		c.step = calStage
		c.compose(now)
		c.stage(d, now)
	case calStage:
		if c.latch.out == 0 {
			c.step = calTiming
			c.timing.begin(d, c, now)
		}
	case calTiming:
		c.timing.written(d, c, now)
	case calDark:
		if c.failure != nil {
			c.end(d, now)
			return
		}
		c.step = calWrite
		d.pass.begin(d, passWrite, 0, len(c.probes), c.result)
	}
}

func (c *calibrating) all(s probeStep) bool {
	for i := range c.probes {
		if p := &c.probes[i]; p.step != s && !p.failed {
			return false
		}
	}
	return true
}

// compose makes the calibration out of what the searches found.
func (c *calibrating) compose(now time.Duration) {
	c.result = new(Calibration)
	for i := range c.probes {
		m := c.probes[i].result
		m.BoardMillis = uint32((now - c.started) / time.Millisecond)
		c.result.Modules = append(c.result.Modules, m)
	}
}

// stage brings the codes to the DACs and lets the lasers shine, behind their
// supply.
func (c *calibrating) stage(d *chipDrive, now time.Duration) {
	c.latch.out = 0
	for i := range d.trx.bundle.Modules {
		m := c.result.Modules[i]
		codes, cuts := d.trx.heat.allow(i, m, m.codes())
		if cuts > 0 {
			d.trx.heat.limitErrors += cuts
			c.fail(d, now, i, hal.ErrOutOfRange)
			return
		}
		for _, op := range stageOps(&d.trx.bundle.Modules[i], d.dacs(i).Stage(codes)) {
			c.latch.out++
			op.Op.Token = d.cal.token(d, i, calStageOp+i)
			d.put(op.Bus, op.Op)
		}
	}
}

// fail ends the calibration of all.
func (c *calibrating) fail(d *chipDrive, now time.Duration, module int, err error) {
	if c.step == calDark {
		d.cal = nil
		d.fault(now, module, err) // not even that works
		return
	}
	c.blame(module, err)
	c.darken(d, now)
}

// darken ends it with every heater cold and no light.
func (c *calibrating) darken(d *chipDrive, now time.Duration) {
	c.step = calDark
	c.result = nil
	for i := range d.trx.bundle.Modules {
		hw := &d.trx.bundle.Modules[i]
		d.put(hw.SPI, &hal.Op{Token: d.cal.token(d, i, i), Class: hal.ClassHousekeeping, Msgs: d.dacs(i).Cold()})
	}
	c.latch.tries = 0
	c.latch.write(d, now, dark)
}

// end leaves the calibration, by way of Staging where there are codes.
func (c *calibrating) end(d *chipDrive, now time.Duration) {
	d.cal = nil
	if c.failure != nil {
		d.trx.calibrationFailed(now, c.failure, c.of)
	} else {
		d.trx.cfg.Calibration = c.result
		d.lock.forget()
		d.trx.Health.forgetMisrouted()
		d.trx.calibrated, d.trx.foundIt = now, false
		d.trx.emit(Event{Kind: Calibrated, At: now, Path: d.trx.path, Module: None, Cell: None, Lane: None, Text: c.result.Doubt()})
		for _, e := range c.unwritten {
			d.trx.emit(Event{Kind: Degraded, At: now, Path: d.trx.path, Module: uint8(e.Module), Cell: None, Lane: None, Err: e,
				Measured: proto.NoPower, Expected: proto.NoPower, Text: "calibration not written to the module's EEPROM: " + e.Error()})
		}
	}
	if d.trx.cfg.Calibration == nil {
		d.trx.become(Idle)
		return
	}
	d.scan.begin(d, now, true)
}

// progress of a calibration.
func (d *chipDrive) progress() (p Progress, running bool) {
	c := d.cal
	if c == nil {
		return p, false
	}
	return c.searches.progress(calNames[c.step], c.step == calSearch, func(i int) bool { return c.probes[i].step == probeDone }), true
}

// latchAct is a calibration's write to the latch, and how many pieces of work
// of a step are still out.
type latchAct struct {
	out        int
	tries      int
	put        time.Duration
	start, end time.Duration
}

func (l *latchAct) write(d *chipDrive, now time.Duration, bits uint16) {
	l.out, l.put = 1, now
	d.writeLatch(bits, d.cal.token(d, 0, calLatchOp), hal.ClassSwitch)
}

// stageOps bring a module to its codes, let its ADCs scan and its lasers shine.
func stageOps(m *hal.Module, dacs []hal.Msg) []hal.BusOp {
	var ops []hal.BusOp
	add := func(bus hal.BusID, msgs ...hal.Msg) {
		ops = append(ops, hal.BusOp{Bus: bus, Op: &hal.Op{Class: hal.ClassSafety, Msgs: msgs}})
	}
	for _, msg := range dacs {
		add(m.SPI, msg)
	}
	for adc := range diode.Both {
		add(m.ADC, diode.Of(m).Scan(adc, 0)...)
	}
	// Its pins float, and the board pulls them up.
	add(m.Slow, pca9548.Behind(m.Mux, m.MuxChannel, hal.Msg{Addr: m.LaneEnable, W: pca953x.TCA9534.AppendWrite(nil, pca953x.Config, 0, pca953x.ResetConfig)})...)
	return ops
}
