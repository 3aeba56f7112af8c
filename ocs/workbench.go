package ocs

import (
	"ringlight/hal"
	"ringlight/proto"
)

// What an engineer's bench needs of a module of kind chips.

// LaneLevel and TapLevel are the optical power that an ADC's 16-bit code means
// on a lane diode and a Tx tap.
func LaneLevel(code uint16) proto.MilliDBm { return level(code, hal.LaneFullScaleMilliDBm) }

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
