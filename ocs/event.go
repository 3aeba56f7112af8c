package ocs

import (
	"time"

	"ringlight/proto"
)

// EventKind names what a bundle's optics found.
type EventKind uint8

const (
	Ready             EventKind = iota + 1 // hardware read back and adopted; Err says what keeps it from carrying light
	Switched                               // Path is set and settled; whether light comes is for Light to say
	Verified                               // Path has its own light as expected, by tap or loopback diodes
	PathFailed                             // own optics do not do it; Err, and Module, Lane where they can be named
	Calibrated                             // Status has the new Calibration
	CalibrationFailed                      // Module and Cell name what stands in the way
	Degraded                               // works, but somebody should look: Err
	Adopted                                // Status has a Calibration out of the modules' EEPROMs; Module, where it is of one alone
	Cooled                                 // no module is too warm any more; whether there is light is to be tried
	Patterned                              // what Patterns were asked for is done; Err, and Module, where it is not
	Upgraded                               // Module runs the firmware asked for and starts with it; Err says why not
)

var eventNames = [...]string{"none", "ready", "switched", "verified", "path_failed", "calibrated", "calibration_failed", "degraded", "adopted", "cooled", "patterned", "upgraded"}

func (k EventKind) String() string { return proto.NameOf(eventNames[:], uint8(k)) }

// None is a module, cell or lane that an event cannot name.
const None = 0xFF

// Event is one finding.
type Event struct {
	Kind EventKind
	At   time.Duration
	Path proto.Path
	// Of Switched: when Select was called, the write that moved the light
	// began and ended, and the settle time after it.
	Asked, BusStart, BusEnd time.Duration
	Settle                  time.Duration
	Module, Cell, Lane      uint8
	Measured, Expected      proto.MilliDBm
	Received                proto.MilliDBm // of Verified and Degraded on an external path: what comes from the other end, a lane; NoPower: not read
	Err                     error
	Text                    string
	Failures                []Failure // of CalibrationFailed, by module; Module and Cell are the first's
}

// Failure is why a module cannot be calibrated.
type Failure struct {
	Module, Cell uint8 // Cell may be None
	Err          error
}

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
