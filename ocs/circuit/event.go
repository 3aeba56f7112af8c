package circuit

import (
	"strconv"
	"time"

	"ringlight/proto"
)

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
	Unlit // no light comes in any more, or none came
)

var eventNames = [...]string{"ready", "tuned", "failed", "drifted", "removed", "alarm_raised", "alarm_cleared", "unlit"}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown(" + strconv.Itoa(int(k)) + ")"
}

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
	Err     error
}
