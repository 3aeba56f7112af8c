package heater

import (
	"math/bits"

	"ringlight/hal"

	"periph.io/x/conn/v3/physic"
)

// Codes are the codes of a module's heaters: register A and B of every cell.
// Register B of the matrix is of no use and never written.
type Codes = [hal.CellsPerMod][2]uint16

// Step is the voltage between two codes.
const Step = hal.HeaterFullScaleMicrovolt * physic.MicroVolt / 65536

// Code is the code nearest to a voltage.
func Code(v physic.ElectricPotential) uint16 { return hal.HeaterCode(int64(v / physic.MicroVolt)) }

// Volts is what a code stands for.
func Volts(code uint16) physic.ElectricPotential {
	return physic.ElectricPotential(hal.HeaterMicrovolt(code)) * physic.MicroVolt
}

// Microwatt is what a code heats a resistance with; 0 for one that is not known.
func Microwatt(code uint16, milliohm uint32) int32 {
	if milliohm == 0 {
		return 0
	}
	mv := uint64(hal.HeaterMicrovolt(code) / 1000)
	return int32(mv * mv * 1000 / uint64(milliohm))
}

// limits stand between every code of one module and its frame: there is one to a
// Driver, and nobody else makes one. Whoever asks, for whatever reason, gets at most
// what voltage, current and power of the heater and the module allow. What is
// allowed counts as held from then on.
type limits struct {
	bears     *hal.HeaterLimits
	milliohm  [hal.CellsPerMod]uint32
	held      Codes
	microwatt [hal.CellsPerMod]uint32 // of held, the worse register: the nets may toggle at any time
	all       uint64                  // of these
	unknown   bool                    // what is held: each heater may be as hot as any
}

// Setting is one code that has passed the limits of a driver, for one register of a
// cell. It is for that driver alone.
type Setting struct {
	of             *Driver
	cell, register int
	code           uint16
}

// Code of a setting.
func (s Setting) Code() uint16 { return s.code }

// Allowed are the codes of a module that have passed the limits of its driver
// together. They are for that driver alone, and for as long as it knows its heaters
// as it did.
type Allowed struct {
	of       *Driver
	milliohm [hal.CellsPerMod]uint32
	codes    Codes
	spare    uint16 // test pattern of channels without a heater
}

// Codes are the codes that passed.
func (a *Allowed) Codes() Codes { return a.codes }

// Code is what a register of a cell of the module is to hold: a matrix cell has but
// one.
func (a *Allowed) Code(m *hal.Module, cell, register int) uint16 {
	if a.of.hw != m {
		panic("heater: codes allowed of another module")
	}
	return codeOf(&a.codes, cell, register)
}

// codeOf is what register A (0) or B (1) of a cell must hold; channels without a
// heater, and register B of the matrix, hold 0.
func codeOf(codes *Codes, cell, register int) uint16 {
	if cell < 0 || !heats(cell, register) {
		return 0
	}
	return codes[cell][register]
}

// Know tells a heater's resistance as it was measured, 0 that it is not known any
// more. Limits are kept as if it were one per cent less, and never over the most that
// the maker states. What is held is judged anew.
func (d *Driver) Know(cell int, milliohm uint32) {
	l := &d.limits
	milliohm = min(milliohm, uint32(l.bears.MostOhm*1000))
	if milliohm -= milliohm / 100; milliohm == l.milliohm[cell] {
		return
	}
	l.milliohm[cell] = milliohm
	for register, code := range l.held[cell] {
		if heats(cell, register) {
			l.hold(cell, register, code)
		}
	}
}

// hold takes a code for what a register holds.
func (l *limits) hold(cell, register int, code uint16) {
	l.held[cell][register] = code
	worse := code
	if heats(cell, 1-register) {
		worse = max(worse, l.held[cell][1-register])
	}
	was := l.microwatt[cell]
	l.microwatt[cell] = l.power(cell, worse)
	l.all += uint64(l.microwatt[cell]) - uint64(was)
}

// heats reports whether a register is ever in force: B of the matrix is not.
func heats(cell, register int) bool { return register == 0 || cell < hal.CellMatrix }

// cold takes every heater for cold.
func (l *limits) cold() { *l = limits{bears: l.bears, milliohm: l.milliohm} }

func (l *limits) ohms(cell int) uint64 {
	if l.milliohm[cell] == 0 {
		return uint64(l.bears.LeastOhm) * 1000
	}
	return uint64(l.milliohm[cell])
}

// power is what a code heats a cell with.
func (l *limits) power(cell int, code uint16) uint32 {
	mv := uint64(hal.HeaterMicrovolt(code)+999) / 1000
	return uint32((mv*mv*1000 + l.ohms(cell) - 1) / l.ohms(cell))
}

// fit is the most of a code that a cell's register may have, all else as held.
func (l *limits) fit(cell int, code uint16) uint16 {
	mv := uint64(l.bears.MaxMillivolt)
	mv = min(mv, uint64(l.bears.MaxMicroampere)*l.ohms(cell)/1_000_000)
	budget := uint64(l.bears.MaxMicrowatt)
	others := l.all - uint64(l.microwatt[cell]) // which the module's budget counts
	most := uint64(l.bears.ModuleMicrowatt)
	if l.unknown || others >= most {
		budget = 0
	}
	budget = min(budget, most-min(others, most))
	mv = min(mv, root(budget*l.ohms(cell)/1000))
	top := hal.HeaterCode(int64(mv) * 1000)
	if code <= top {
		return code
	}
	for top > 0 && hal.HeaterMicrovolt(top) > int64(mv)*1000 {
		top-- // the nearest code may lie above
	}
	return top
}

// fitAll takes codes for all that is held, as far as they may be, and counts those
// that were cut down.
func (l *limits) fitAll(codes *Codes) (cuts uint32) {
	l.cold()
	for k := range codes {
		for register, code := range codes[k] {
			if !heats(k, register) {
				l.held[k][register] = code
				continue
			}
			l.hold(k, register, l.fit(k, code))
			if l.held[k][register] < code {
				cuts++
			}
		}
	}
	return cuts
}

// Fit cuts codes down to what a module's heaters bear, by their measured resistance, and says how many
// it cut. It allows nothing.
func Fit(bears *hal.HeaterLimits, milliohm *[hal.CellsPerMod]uint32, codes *Codes) (fitting Codes, cuts uint32) {
	d := Driver{limits: limits{bears: bears}}
	for k, r := range milliohm {
		d.Know(k, r)
	}
	cuts = d.limits.fitAll(codes)
	return d.limits.held, cuts
}

// Allow is what may go to a cell's register in place of code. Before the driver has
// made the module cold, or allowed codes for all of it, that is 0.
func (d *Driver) Allow(cell, register int, code uint16) Setting {
	d.limits.hold(cell, register, d.limits.fit(cell, code))
	return Setting{d, cell, register, d.limits.held[cell][register]}
}

// AllowAll is what may go to the registers of a module in place of codes, of which
// cuts were cut down. It takes the place of whatever was allowed before.
func (d *Driver) AllowAll(codes *Codes) (allowed *Allowed, cuts uint32) {
	cuts = d.limits.fitAll(codes)
	return d.allowed(0), cuts
}

// allowed are the limits of all channels.
func (d *Driver) allowed(spare uint16) *Allowed {
	return &Allowed{of: d, milliohm: d.limits.milliohm, codes: d.limits.held, spare: spare}
}

// check refuses what did not pass the limits of this driver, or would not by now:
// no caller has any business with it.
func (d *Driver) check(codes *Allowed, settings []Setting) {
	if codes != nil {
		if codes.of != d || codes.milliohm != d.limits.milliohm {
			panic("heater: codes that these limits have not allowed")
		}
		d.limits.fitAll(&codes.codes) // they are held again, whatever has been allowed since
	}
	for _, s := range settings {
		if s.of != d || s.code > d.limits.fit(s.cell, s.code) {
			panic("heater: a setting that these limits have not allowed")
		}
		d.limits.hold(s.cell, s.register, s.code)
	}
}

// root is the integer square root.
func root(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	x := uint64(1) << (bits.Len64(n)/2 + 1) // more than the root
	for y := (x + n/x) / 2; y < x; y = (x + n/x) / 2 {
		x = y
	}
	return x
}
