package heater

import (
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

// A heater whose resistance is not known yet is taken for the smallest that
// the process makes. chosen: the nominal 1 kOhm less 10 %, twice its spread.
const (
	leastMilliohm = hal.HeaterNominalOhm * 900
	mostMilliohm  = hal.HeaterNominalOhm * 1100
)

// Limits stand between every code of one module and its frame. Whoever asks, for
// whatever reason, gets at most what voltage, current and power of the heater and
// the module allow; what is cut down is counted. The zero value takes every
// heater for cold and of the least plausible resistance.
type Limits struct {
	milliohm  [hal.CellsPerMod]uint32
	microwatt [hal.CellsPerMod][2]uint32 // by code register, as last allowed
	cuts      uint32
}

// Setting is one code that has passed the limits, for one register of a cell.
type Setting struct {
	cell, register int
	code           uint16
}

// Code of a setting.
func (s Setting) Code() uint16 { return s.code }

// Allowed are the codes of a module that have passed the limits together.
type Allowed struct{ codes Codes }

// Codes are the codes that passed.
func (a *Allowed) Codes() Codes { return a.codes }

// Code is what a register of a cell is to hold: a matrix cell has but one.
func (a *Allowed) Code(cell, register int) uint16 { return codeOf(&a.codes, cell, register) }

// codeOf is what register A (0) or B (1) of a cell must hold; channels without a
// heater, and register B of the matrix, hold 0.
func codeOf(codes *Codes, cell, register int) uint16 {
	if cell >= hal.CellsPerMod || register == 1 && cell >= hal.CellMatrix {
		return 0
	}
	return codes[cell][register]
}

// Know tells a heater's resistance as it was measured; it may be a per cent
// less. More than the most plausible is believed as little as that.
func (l *Limits) Know(cell int, milliohm uint32) {
	milliohm = min(milliohm, mostMilliohm)
	l.milliohm[cell] = milliohm - milliohm/100
}

// Holds tells what a register holds already.
func (l *Limits) Holds(cell, register int, code uint16) {
	l.microwatt[cell][register] = l.power(cell, code)
}

// Cuts is how many codes were cut down.
func (l *Limits) Cuts() uint32 { return l.cuts }

func (l *Limits) ohms(cell int) uint64 {
	if l.milliohm[cell] == 0 {
		return leastMilliohm
	}
	return uint64(l.milliohm[cell])
}

// power is what a code heats a cell with.
func (l *Limits) power(cell int, code uint16) uint32 {
	mv := uint64(hal.HeaterMicrovolt(code)+999) / 1000
	return uint32((mv*mv*1000 + l.ohms(cell) - 1) / l.ohms(cell))
}

// Allow is what may go to a cell's register in place of code.
func (l *Limits) Allow(cell, register int, code uint16) Setting {
	mv := uint64(hal.HeaterMaxMillivolt)
	mv = min(mv, uint64(hal.HeaterMaxMicroampere)*l.ohms(cell)/1_000_000)
	budget := uint64(hal.HeaterMaxMicrowatt)
	// The module's budget counts the worse register of every other cell: the
	// nets may toggle at any time.
	others := uint64(0)
	for k := range l.microwatt {
		if k != cell {
			others += uint64(max(l.microwatt[k][0], l.microwatt[k][1]))
		}
	}
	if others >= hal.ModuleMaxMicrowatt {
		budget = 0
	}
	budget = min(budget, hal.ModuleMaxMicrowatt-min(others, hal.ModuleMaxMicrowatt))
	mv = min(mv, root(budget*l.ohms(cell)/1000))
	allowed := code
	if most := hal.HeaterCode(int64(mv) * 1000); code > most {
		allowed = most
		for allowed > 0 && hal.HeaterMicrovolt(allowed) > int64(mv)*1000 {
			allowed-- // the nearest code may lie above
		}
		l.cuts++
	}
	l.microwatt[cell][register] = l.power(cell, allowed)
	return Setting{cell, register, allowed}
}

// AllowAll is what may go to the registers of a module in place of codes.
func (l *Limits) AllowAll(codes *Codes) *Allowed {
	a := &Allowed{codes: *codes}
	for k := range a.codes {
		for register := range a.codes[k] {
			if register == 0 || k < hal.CellMatrix {
				a.codes[k][register] = l.Allow(k, register, codes[k][register]).code
			}
		}
	}
	return a
}

// root is the integer square root.
func root(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	x := uint64(1) << 32
	for {
		y := (x + n/x) / 2
		if y >= x {
			return x
		}
		x = y
	}
}
