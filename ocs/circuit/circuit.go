package circuit

import (
	"fmt"
	"strconv"
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

// Pair is a circuit's path, from a port of side A to one of side B, both
// counted from 0.
type Pair struct{ A, B uint16 }

// String counts from 1, as the field does: "1A-17B".
func (p Pair) String() string {
	return strconv.Itoa(int(p.A)+1) + "A-" + strconv.Itoa(int(p.B)+1) + "B"
}

// LeastInput is the power under which noise decides what a path loses.
// chosen: six codes of a monitor.
const LeastInput proto.MilliDBm = -22_000

// Saved is what must survive a restart of the software.
type Saved struct {
	Pair  Pair
	Drive [4]int16
}

// Circuit is how one stands.
type Circuit struct {
	Pair     Pair
	State    proto.PortState
	Loss     proto.MilliDBm // as last measured
	Factory  proto.MilliDBm // as it ought to be now
	OpenLoop proto.MilliDBm // as it was before the first hill-climb move
	Moves    int            // hill-climb moves of the last tuning
	Opened   time.Duration  // from the change to the look at the open loop
	Took     time.Duration  // from the change to Tuned or Failed
	Err      error
}

// EventKind names what happened.
type EventKind uint8

const (
	Ready EventKind = iota
	Tuned
	Failed
	Drifted // in service: it is tuned again, with its light on
	Removed
	AlarmRaised
	AlarmCleared
	Unlit    // no light comes in any more, or none came
	Unproven // made as it was asked for, and no meter says whether it has light
	Changed  // circuits came or went at the switch that nobody here asked for
)

var eventNames = [...]string{"ready", "tuned", "failed", "drifted", "removed", "alarm_raised", "alarm_cleared", "unlit", "unproven", "changed"}

func (k EventKind) String() string { return proto.NameOf(eventNames[:], uint8(k)) }

// Event is something that its owner wants to know.
type Event struct {
	Kind    EventKind
	At      time.Duration
	Pair    Pair  // of a circuit
	Side    uint8 // of an alarm
	Port    uint16
	Alarm   Alarm
	Loss    proto.MilliDBm // of an alarm: the power
	Factory proto.MilliDBm // of an alarm: the threshold
	Err     error          // of an alarm: what the switch itself says
	Grave   bool           // and not of the minor ones
	Moves   Moves          // of Tuned, where a transceiver was switched
}

// Moves are the moments of a transceiver's switch; the event's own is when
// light was there. All zero where mirrors moved, or nothing did.
type Moves struct {
	Asked, BusStart, BusEnd, Settled time.Duration
}

// CheckPort refuses a port that a switch of so many on either side has not.
func CheckPort(side, port, portsA, portsB int) error {
	if side < 0 || side >= hal.NumSides || port < 0 || port >= [hal.NumSides]int{portsA, portsB}[side] {
		return fmt.Errorf("ocs: port %d of side %d: %w", port, side, hal.ErrOutOfRange)
	}
	return nil
}
