package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/hal/pca953x"
	"ringlight/hal/pca9548"
	"ringlight/mzi"
	"ringlight/ocs/diode"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// The cells as the search knows them are the cells of the board.
var (
	_ [hal.CellsPerMod - mzi.Cells]struct{}
	_ [mzi.Cells - hal.CellsPerMod]struct{}
	_ [hal.CellMatrix - mzi.CellMatrix]struct{}
	_ [mzi.CellMatrix - hal.CellMatrix]struct{}
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
func (t *chipDrive) calibrate(now time.Duration) error {
	s, err := t.newSearches(now)
	if err != nil {
		return err
	}
	c := &calibrating{searches: s, probes: make([]probe, len(s.list))}
	for i := range c.probes {
		c.probes[i] = probe{search: s.list[i], hw: &t.bundle.Modules[i]}
	}
	t.cal = c
	t.calibrations = (t.calibrations + 1) % (1 << (moduleShift - calShift))
	t.become(Calibrating)
	for i := range c.probes {
		c.probes[i].begin(t)
	}
	return nil
}

// due lets everything that waited for a time go on.
func (c *calibrating) due(t *chipDrive, now time.Duration) {
	c.now = now
	switch c.step {
	case calPrepare, calSearch:
		for i := range c.probes {
			c.probes[i].due(t, now)
		}
	case calTiming:
		c.timing.due(t, c, now)
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
func (c *calibrating) token(t *chipDrive, module, n int) uint64 {
	return t.token(taskCalibrate, module, int(t.calibrations)<<calShift|n)
}

// completed takes the end of one piece of a calibration's bus work.
func (c *calibrating) completed(t *chipDrive, now time.Duration, done *hal.Completion, n int) {
	switch {
	case c.step == calDark && n != calLatchOp:
		return // of before the end
	case n >= calReadOp:
		c.timing.read(t, c, now, done)
		return
	case n < calLatchOp:
		p := &c.probes[n]
		if p.failed {
			return
		}
		if err := p.completed(t, now, done); err != nil {
			c.blame(n, err)
			p.leave(t)
		}
	case done.Err != nil:
		module := None
		if n >= calStageOp {
			module = n - calStageOp
		}
		if c.latch.tries++; c.latch.tries < work.MaxTries {
			t.put(done.Bus, done.Op)
			return
		}
		c.fail(t, now, module, done.Err)
		return
	case n >= calStageOp:
		c.latch.out--
	default:
		c.latch.out = 0
		c.latch.start, c.latch.end = done.Start, done.End
	}
	c.advance(t, now)
}

// advance goes to the next step when the present one is over.
func (c *calibrating) advance(t *chipDrive, now time.Duration) {
	switch c.step {
	case calPrepare:
		if c.sound() == 0 {
			c.darken(t, now)
		} else if c.all(probeReady) {
			c.step = calLight
			c.latch.write(t, now, 0)
		}
	case calLight:
		c.step = calSearch
		for i := range c.probes {
			if !c.probes[i].failed {
				c.probes[i].ask(t, now)
			}
		}
	case calSearch:
		if c.all(probeDone) && c.failure != nil {
			c.darken(t, now)
		} else if c.all(probeDone) {
			c.step = calSquelch
			c.latch.write(t, now, dark)
		}
	case calSquelch:
		c.step = calStage
		c.compose(now)
		c.stage(t, now)
	case calStage:
		if c.latch.out == 0 {
			c.step = calTiming
			c.timing.begin(t, c, now)
		}
	case calTiming:
		c.timing.written(t, c, now)
	case calDark:
		if c.failure != nil {
			c.end(t, now)
			return
		}
		c.step = calWrite
		t.writePassports(c.result)
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
func (c *calibrating) stage(t *chipDrive, now time.Duration) {
	c.latch.out = 0
	for i := range t.bundle.Modules {
		m := c.result.Modules[i]
		codes, cuts := t.allow(i, m, &m.Codes)
		if cuts > 0 {
			t.limitErrors += cuts
			c.fail(t, now, i, hal.ErrOutOfRange)
			return
		}
		for _, op := range stageOps(&t.bundle.Modules[i], t.dacs(i).Stage(codes)) {
			c.latch.out++
			op.Op.Token = t.cal.token(t, i, calStageOp+i)
			t.put(op.Bus, op.Op)
		}
	}
}

// fail ends the calibration of all.
func (c *calibrating) fail(t *chipDrive, now time.Duration, module int, err error) {
	if c.step == calDark {
		t.cal = nil
		t.fault(now, module, err) // not even that works
		return
	}
	c.blame(module, err)
	c.darken(t, now)
}

// darken ends it with every heater cold and no light.
func (c *calibrating) darken(t *chipDrive, now time.Duration) {
	c.step = calDark
	c.result = nil
	for i := range t.bundle.Modules {
		hw := &t.bundle.Modules[i]
		t.put(hw.SPI, &hal.Op{Token: t.cal.token(t, i, i), Class: hal.ClassHousekeeping, Msgs: t.dacs(i).Cold()})
	}
	c.latch.tries = 0
	c.latch.write(t, now, dark)
}

// end leaves the calibration, by way of Staging where there are codes.
func (c *calibrating) end(t *chipDrive, now time.Duration) {
	t.cal = nil
	if c.failure != nil {
		t.calibrationFailed(now, c.failure, c.of)
	} else {
		t.cfg.Calibration = c.result
		t.lock.forget()
		t.forgetMisrouted()
		t.calibrated, t.foundIt = now, false
		t.emit(Event{Kind: Calibrated, At: now, Path: t.path, Module: None, Cell: None, Lane: None, Text: c.result.Doubt()})
		for _, e := range c.unwritten {
			t.emit(Event{Kind: Degraded, At: now, Path: t.path, Module: uint8(e.Module), Cell: None, Lane: None, Err: e,
				Measured: proto.NoPower, Expected: proto.NoPower, Text: "calibration not written to the module's EEPROM: " + e.Error()})
		}
	}
	if t.cfg.Calibration == nil {
		t.become(Idle)
		return
	}
	t.startScan(now, true)
}

// progress of a calibration.
func (t *chipDrive) progress() (p Progress, running bool) {
	c := t.cal
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

func (l *latchAct) write(t *chipDrive, now time.Duration, bits uint16) {
	l.out, l.put = 1, now
	t.writeLatch(bits, t.cal.token(t, 0, calLatchOp), hal.ClassSwitch)
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
