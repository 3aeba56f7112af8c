package ocs

import (
	"ringlight/hal"
	"ringlight/hal/ltc2688"
	"ringlight/proto"
)

// What an engineer's bench needs of a module of kind chips. It never goes
// past the guard.

// Guard limits the heater codes of one module that somebody writes by hand, as
// a Transceiver's own guard does. Its zero value takes every heater for cold
// and of the least plausible resistance.
type Guard struct{ g guard }

// Allow is the code that may be written to a cell's register A (0) or B (1) in
// place of code: the same, or the most that voltage, current and power of the
// heater and the module allow.
func (g *Guard) Allow(cell, register int, code uint16) uint16 { return g.g.allow(cell, register, code) }

// Holds tells the guard what a register holds already.
func (g *Guard) Holds(cell, register int, code uint16) {
	g.g.microwatt[cell][register] = g.g.power(cell, code)
}

// ColdOp takes every heater of a module to 0 V, whatever held it, and leaves
// its DACs ready for plain writes to register A within the span of the heaters.
func ColdOp(m *hal.Module) *hal.Op { return coldOp(m) }

// HeaterSpan is the span of every heater's channel.
const HeaterSpan = span

// DACState is what the DACs of a module hold.
type DACState struct {
	Codes    [hal.DACsPerMod * ltc2688.Channels][2]uint16 // register A, B
	Settings [hal.DACsPerMod * ltc2688.Channels]uint16
	Toggles  [hal.DACsPerMod]uint16
}

// ReadDACsOp reads back what the DACs of a module hold; it changes their A/B
// selection and nothing that is seen outside.
func ReadDACsOp(m *hal.Module) *hal.Op {
	op := &hal.Op{Class: hal.ClassHousekeeping}
	for _, cs := range m.ChipSelects {
		w := appendReadBack(nil)
		op.Msgs = append(op.Msgs, hal.Msg{Addr: cs, Frame: ltc2688.FrameBytes, W: w, R: make([]byte, len(w))})
	}
	return op
}

// DACs is what ReadDACsOp has read.
func DACs(op *hal.Op) *DACState {
	s := &DACState{}
	for d := range op.Msgs {
		at := 0
		next := func() uint16 { // each value comes with the second of its two frames
			at += 2 * ltc2688.FrameBytes
			return ltc2688.Value(op.Msgs[d].R[at-ltc2688.FrameBytes:])
		}
		s.Toggles[d] = next()
		for ch := range ltc2688.Channels {
			s.Settings[d*ltc2688.Channels+ch] = next()
		}
		for bank := range 2 {
			at += ltc2688.FrameBytes
			for ch := range ltc2688.Channels {
				s.Codes[d*ltc2688.Channels+ch][bank] = next()
			}
		}
	}
	return s
}

// LaneLevel, SumLevel and TapLevel are the optical power that an ADC's 16-bit
// code means on a lane diode, a half-sum and a Tx tap.
func LaneLevel(code uint16) proto.MilliDBm { return level(code, hal.LaneFullScaleMilliDBm) }

// SumLevel is of a half-sum.
func SumLevel(code uint16) proto.MilliDBm { return level(code, hal.SumFullScaleMilliDBm) }

// TapLevel is of a Tx tap.
func TapLevel(code uint16) proto.MilliDBm { return level(code, hal.TapFullScaleMilliDBm) }

// Named is the module and the cell that an event is about, -1 where it cannot
// name one.
func (e *Event) Named() (module, cell int) {
	module, cell = -1, -1
	if e.Module != None {
		module = int(e.Module)
	}
	if e.Cell != None {
		cell = int(e.Cell)
	}
	return module, cell
}
