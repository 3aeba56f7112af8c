package ocs

import (
	"ringlight/hal"
	"ringlight/hal/ltc2688"
)

// A heater whose resistance is not known yet is taken for the smallest that
// the process makes. chosen: the nominal 1 kOhm less 10 %, twice its spread.
const (
	leastMilliohm = hal.HeaterNominalOhm * 900
	mostMilliohm  = hal.HeaterNominalOhm * 1100
)

// span is the DAC range of every heater: 0 to 10 V.
const span = ltc2688.Span10V

// guard stands between every heater code and its frame. Whoever asks, for
// whatever reason, gets at most what the limits allow; what it cut is counted.
type guard struct {
	milliohm  [hal.CellsPerMod]uint32
	microwatt [hal.CellsPerMod][2]uint32 // by code register, as last allowed
	cuts      uint32
}

// know tells the guard a heater's resistance as it was measured; it may be a per
// cent less. More than the most plausible is believed as little as that.
func (g *guard) know(cell int, milliohm uint32) {
	milliohm = min(milliohm, mostMilliohm)
	g.milliohm[cell] = milliohm - milliohm/100
}

func (g *guard) ohms(cell int) uint64 {
	if g.milliohm[cell] == 0 {
		return leastMilliohm
	}
	return uint64(g.milliohm[cell])
}

// power is what a code heats a cell with.
func (g *guard) power(cell int, code uint16) uint32 {
	mv := uint64(ltc2688.Microvolt(span, code)+999) / 1000
	return uint32((mv*mv*1000 + g.ohms(cell) - 1) / g.ohms(cell))
}

// allow is the code that may go to a cell's register in place of code.
func (g *guard) allow(cell, register int, code uint16) uint16 {
	mv := uint64(hal.HeaterMaxMillivolt)
	mv = min(mv, uint64(hal.HeaterMaxMicroampere)*g.ohms(cell)/1_000_000)
	budget := uint64(hal.HeaterMaxMicrowatt)
	// The module's budget counts the worse register of every other cell: the
	// nets may toggle at any time.
	others := uint64(0)
	for k := range g.microwatt {
		if k != cell {
			others += uint64(max(g.microwatt[k][0], g.microwatt[k][1]))
		}
	}
	if others >= hal.ModuleMaxMicrowatt {
		budget = 0
	}
	budget = min(budget, hal.ModuleMaxMicrowatt-min(others, hal.ModuleMaxMicrowatt))
	mv = min(mv, root(budget*g.ohms(cell)/1000))
	allowed := code
	if most := ltc2688.Code(span, int64(mv)*1000); code > most {
		allowed = most
		for allowed > 0 && (ltc2688.Microvolt(span, allowed) > int64(mv)*1000) {
			allowed-- // the nearest code may lie above
		}
		g.cuts++
	}
	g.microwatt[cell][register] = g.power(cell, allowed)
	return allowed
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
