package ocs

import (
	"math"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/mzi/detmath"
	"ringlight/ocs/diode"
	"ringlight/ocs/heater"
	"ringlight/ocs/work"
	"ringlight/proto"

	"periph.io/x/conn/v3/physic"
)

// lockStep is where a look at a module stands.
//
//	lockIdle -> lockOpen -> lockMove -> lockWait -> lockRead -> lockMove ... lockClose -> lockIdle
type lockStep uint8

const (
	lockIdle  lockStep = iota
	lockOpen           // the taps' ADC averages
	lockMove           // the codes of the next pattern
	lockWait           // heat and average settle
	lockRead           // the taps
	lockClose          // the codes that were found, and the scan as it was
)

const (
	lockSteps = 20 // patterns of a look: one more than a prime, and enough for sixteen cells
	// 128 conversions, board page: "oversampling 16-128".
	lockAverageLog2 = diode.MostAverage
	// The newest result of every channel began at most a round ago; the one
	// under way when the heat had settled does not count.
	lockAverage = 2*diode.Channels*(1<<lockAverageLog2)*diode.Conversion + 10*time.Microsecond
	lockCells   = hal.CellMatrix
)

// lockSettling is how long heaters take that go anywhere: the same as in a
// search, so that nothing is left to move when light is looked at.
const lockSettling = 210 * time.Microsecond

// lockAct is a look at one module.
type lockAct struct {
	step   lockStep
	module int
	path   proto.Path
	lit    mzi.Lit
	n      int // pattern
	at     time.Duration
	tries  int

	setting mzi.Setting
	model   *mzi.Module
	most    *[mzi.Cells]float64
	volts   [mzi.Cells][2]physic.ElectricPotential // in force
	heater  *heater.Driver
	still   *heater.Allowed              // codes in force
	up      [lockCells]float64           // phase that the step up adds
	down    [lockCells]float64           // that the step down takes
	code    [lockCells][2]heater.Setting // the step down and the step up
	seen    lockLook

	taps  diode.Reading
	loops diode.Reading // half-sums of loopback, where light goes that MZI1 misroutes
}

// residues are the squares modulo 19.
const residues = 1<<1 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<9 | 1<<11 | 1<<16 | 1<<17

// pattern is the sign of a cell's step: a row of Paley's Hadamard matrix of order
// 20. Rows are orthogonal, and to the constant one.
func pattern(cell, n int) float64 {
	row, q := cell+1, lockSteps-1
	switch {
	case n == 0:
		return -1
	case n == row || residues>>((row-n+q)%q)&1 != 0:
		return 1
	}
	return -1
}

func (l *lock) submit(d *chipDrive, bus hal.BusID, class hal.Class, msgs ...hal.Msg) {
	d.put(bus, &hal.Op{Token: d.trx.token(taskLock, l.act.module, int(l.gen)), Class: class, Msgs: msgs})
}

// open begins a look.
func (l *lock) open(d *chipDrive, now time.Duration, module int) {
	cal := l.calibrated(d, module)
	o := d.trx.bundle.Modules[module].Optics()
	setting, err := mzi.Matrix(o.Couplers).Route(mzi.Halves(o.LaneCount))
	if err != nil {
		panic("ocs: halves that no setting swaps: " + err.Error())
	}
	l.gen++
	l.act = &lockAct{step: lockOpen, module: module, path: d.trx.path, lit: litOf(d.trx.path), setting: setting}
	a := l.act
	a.model, a.most = cal.model(&o.Heater)
	codes := d.trx.heat.codes(module)
	a.volts = voltages(codes)
	a.heater = d.trx.heat.drivers[module]
	a.still, _ = d.trx.heat.allow(module, cal, codes)
	for k := range o.All {
		if k < lockCells {
			a.steps(k, codes)
		}
	}
	m := &d.trx.bundle.Modules[module]
	l.submit(d, m.ADC, hal.ClassVerify, diode.Of(m).Average(diode.Guard, lockAverageLog2))
}

// register is the DAC register, 0 or 1, that drives a cell on the lit path.
func (a *lockAct) register(k int) int {
	if k < hal.CellMZI2 && a.lit != mzi.Loop || k >= hal.CellMZI2 && a.lit == mzi.Ext2 {
		return 1
	}
	return 0
}

// steps makes a cell's two codes, and what they do to its phase: less than
// lockDither where the heat ends.
func (a *lockAct) steps(k int, codes *heater.Codes) {
	reg := a.register(k)
	u := mzi.Square(a.volts[k][reg])
	slope := a.model.Cells[k].Slope
	still := a.heater.Allow(k, reg, codes[k][reg])
	a.code[k] = [2]heater.Setting{still, still}
	if k >= hal.CellMZI2 && a.lit == mzi.Loop {
		return // no light to see it by
	}
	for side, sign := range [2]float64{-1, 1} {
		x := min(max(u+float64(sign*lockDither/slope), 0), a.most[k])
		code := a.heater.Allow(k, reg, heater.Code(mzi.Volts(x, heater.Step)))
		a.code[k][side] = code
		phase := float64(slope * (mzi.Square(heater.Volts(code.Code())) - u))
		if side == 0 {
			a.down[k] = -phase
		} else {
			a.up[k] = phase
		}
	}
}

// move writes the codes of a pattern: all input registers, then all outputs.
func (l *lock) move(d *chipDrive) {
	a := l.act
	a.step = lockMove
	m := &d.trx.bundle.Modules[a.module]
	settings := make([]heater.Setting, 0, lockCells)
	for k := range lockCells {
		if !m.Optics().Has(k) {
			continue
		}
		side := 0
		if pattern(k, a.n) > 0 {
			side = 1
		}
		settings = append(settings, a.code[k][side])
	}
	l.submit(d, m.SPI, hal.ClassHousekeeping, d.dacs(a.module).Move(settings, a.still)...)
}

// read asks for both taps, and for what comes to loopback where none should.
func (l *lock) read(d *chipDrive) {
	a := l.act
	a.step = lockRead
	m := &d.trx.bundle.Modules[a.module]
	msgs := []hal.Msg{a.taps.Ask(diode.Of(m), diode.Guard, hal.GuardTap1, 2, lockAverageLog2)}
	l.submit(d, m.ADC, hal.ClassHousekeeping, append(msgs, a.loops.Ask(diode.Of(m), diode.Guard, hal.GuardLoopUpper, 2, lockAverageLog2))...)
}

// completed takes the end of one piece of bus work of a look.
func (l *lock) completed(d *chipDrive, now time.Duration, c *hal.Completion, gen int) {
	if gen == feelNumber {
		l.felt(d, now, c)
		return
	}
	a := l.act
	if gen != int(l.gen) || l.step() == lockIdle {
		return // of a look that was frozen
	}
	if c.Err != nil {
		if a.tries++; a.tries < work.MaxTries {
			d.put(c.Bus, c.Op)
			return
		}
		l.modules[a.module].blind = true
		if a.step != lockClose { // what that could not write the next look does
			l.freeze(d)
			return
		}
	}
	a.tries = 0
	switch a.step {
	case lockOpen:
		l.move(d)
	case lockMove:
		a.step, a.at = lockWait, c.End+max(lockSettling, d.trx.cfg.Calibration.standTime())+lockAverage
	case lockRead:
		a.seen.take(a, d.trx.bundle.Modules[a.module].Optics())
		if a.n++; a.n < lockSteps {
			l.move(d)
			return
		}
		l.close(d, now)
	case lockClose:
		if a.n--; a.n == 0 {
			l.act = nil
		}
	}
}

// close trims the module: codes of all paths are composed anew.
func (l *lock) close(d *chipDrive, now time.Duration) {
	a := l.act
	found, why := a.findings(d, d.trx.cfg.Calibration.Modules[a.module])
	m := &l.modules[a.module]
	if m.refused = why; why == "" {
		kelvin := d.trx.Health.temperature(a.module)
		m.dim = a.dim(d.trx.cfg.Calibration.Modules[a.module], d.trx.bundle.Modules[a.module].Optics().LaneCount)
		m.learn(&d.trx.cfg.Lock, now, found)
		m.bring(found, kelvin)
	} else {
		m.hold.Refused++
		m.next = now + d.trx.cfg.Lock.period()
	}
	l.compose(d)
	if why == "" {
		r := &d.trx.rooms[a.module]
		r.make(d.trx, a.module, l.calibrated(d, a.module))
		m.within(now, r, d.trx.cfg.Lock.period())
	}
	if a.module < len(d.trx.Health.last) {
		d.trx.prove(now, a.module)
	}
}

// compose brings a module to the codes that what is known asks for.
func (l *lock) compose(d *chipDrive) {
	a := l.act
	m := &l.modules[a.module]
	m.favours, m.carry.fed = d.trx.path, false
	if codes, err := l.calibrated(d, a.module).trimmedCodes(d.trx.bundle.Modules[a.module].Optics(), a.lit, d.trx.heat.codes(a.module)); err == nil {
		if d.trx.heat.inForce == nil {
			d.trx.heat.inForce = make([]*heater.Codes, len(d.trx.bundle.Modules))
		}
		d.trx.heat.inForce[a.module] = &codes
	}
	a.step, a.n = lockClose, 2
	l.restore(d, a.module, int(l.gen))
}

// restore puts out the work that leaves a module with the codes in force and its
// scan as it was.
func (l *lock) restore(d *chipDrive, module, gen int) {
	m := &d.trx.bundle.Modules[module]
	msgs := d.dacs(module).Change(d.trx.heat.allowed(module))
	d.put(m.SPI, &hal.Op{Token: d.trx.token(taskLock, module, gen), Class: hal.ClassHousekeeping, Msgs: msgs}) // behind the steps
	l.rescan(d, module, gen)
}

// rescan leaves a module's scan as it was.
func (l *lock) rescan(d *chipDrive, module, gen int) {
	m := &d.trx.bundle.Modules[module]
	d.put(m.ADC, &hal.Op{Token: d.trx.token(taskLock, module, gen), Class: hal.ClassVerify, Msgs: []hal.Msg{diode.Of(m).Average(diode.Guard, 0)}})
}

// freeze ends a look at once, without a finding.
func (l *lock) freeze(d *chipDrive) {
	a := l.act
	if a == nil || a.step == lockClose {
		return // its last writes are on their way
	}
	module := a.module
	l.gen++
	l.act = nil // the bus may have its buffers still
	l.modules[module].next += l.modules[module].period
	l.restore(d, module, int(l.gen-1))
}

// lockAdopts is how far, in radian, codes in a DAC may be from those of the
// calibration to be taken for a lock's. chosen: three deviations of a day's
// drift and a step, far from what another permutation needs.
const lockAdopts = 0.5

// trimmedBefore adopts the codes of a module that carries light with them, where
// a lock of an earlier life may have left them: near the calibration's.
func (l *lock) trimmedBefore(d *chipDrive, module int) bool {
	model, most := d.trx.cfg.Calibration.Modules[module].model(&d.trx.bundle.Modules[module].Optics().Heater)
	codes := d.scan.read
	want := d.trx.heat.codes(module)
	for k := range codes {
		for register := range codes[k] {
			if k >= hal.CellMatrix && register == 1 {
				codes[k][1] = codes[k][0]
				continue
			}
			u := mzi.Square(heater.Volts(codes[k][register]))
			off := mzi.Wrap(float64(model.Cells[k].Slope * (u - mzi.Square(heater.Volts(want[k][register])))))
			if off > lockAdopts || off < -lockAdopts || u > most[k] {
				return false
			}
		}
	}
	d.trx.heat.inForce[module] = &codes
	at := lockAct{lit: litOf(d.trx.path)}
	if d.arm.both && at.recentre(&codes, want, model, most) {
		l.restore(d, module, int(l.gen))
		return true
	}
	l.rescan(d, module, int(l.gen))
	return true
}

// recentre takes the steps of a pattern out of codes that were found: an earlier life
// ended in the middle of a look. A look steps the codes in force of all the cells that it
// sees; those of the other path show where each cell had been trimmed to.
func (a *lockAct) recentre(codes, want *heater.Codes, model *mzi.Module, most *[mzi.Cells]float64) bool {
	var step [lockCells]float64
	sum, n := 0.0, 0.0
	for k := range step {
		if k >= hal.CellMZI2 && a.lit == mzi.Loop {
			break
		}
		reg, slope := a.register(k), model.Cells[k].Slope
		if slope == 0 {
			continue
		}
		square := func(c *heater.Codes, r int) float64 { return mzi.Square(heater.Volts(c[k][r])) }
		step[k] = mzi.Wrap(float64(slope*(square(codes, reg)-square(want, reg))) - float64(slope*(square(codes, 1-reg)-square(want, 1-reg))))
		sum += float64(step[k] * step[k])
		n++
	}
	if rms := math.Sqrt(sum / n); rms < lockDither/2 || rms > 2*lockDither {
		return false
	}
	for k, off := range step {
		if off == 0 {
			continue
		}
		reg := a.register(k)
		u := mzi.Square(heater.Volts(codes[k][reg])) - off/model.Cells[k].Slope
		codes[k][reg] = heater.Code(mzi.Volts(min(max(u, 0), most[k]), heater.Step))
	}
	return true
}

// guardMilliwatt is the n-th light in a read of the guard ADC from the first on.
func guardMilliwatt(o *hal.Optics, block []byte, first, n int) float64 {
	return float64(milliwattOf(o.Guard[first+n].FullScaleMilliDBm)*float64(diode.Code(block, n))) / diode.FullCode
}

// milliwattOf is the power of a level, thousandths of a dBm.
func milliwattOf[T ~int32](l T) float64 { return detmath.FromDB(float64(l) / 1000) }
