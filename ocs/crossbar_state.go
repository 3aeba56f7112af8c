package ocs

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

// CrossbarState is where the machine of a crossbar stands. Its work goes in
// rounds that all circuits share: move mirrors, let them settle, look.
//
//	     Start          monitors scan,              mirrors to move
//	Off -------> Starting -- Settling, -> Resting <------------------> Moving
//	                | ^                   ^   |                         |
//	    no monitor  | | Start             |   | someone wants to look   | written
//	    answers     v |                   |   v                         v
//	              Faulted               Looking <------------------ Settling
//
// A round ends in Resting, or goes on to Moving when Looking found something
// to move. A look at everything that nothing answers ends in Faulted too, and
// that only by Start, which every state but Off allows as well.
type CrossbarState uint8

const (
	CrossOff      CrossbarState = iota // not started
	CrossStarting                      // making the monitors scan
	CrossResting                       // nothing to do
	CrossMoving                        // writing electrodes
	CrossSettling                      // letting mirrors come to rest
	CrossLooking                       // reading monitors
	CrossFaulted                       // the board does not answer
	numCrossStates
)

var crossStateNames = [numCrossStates]string{"off", "starting", "resting", "moving", "settling", "looking", "faulted"}

func (s CrossbarState) String() string {
	if s < numCrossStates {
		return crossStateNames[s]
	}
	return "unknown(" + strconv.Itoa(int(s)) + ")"
}

var crossEdges = [numCrossStates]uint8{
	CrossOff:      1 << CrossStarting,
	CrossStarting: 1<<CrossSettling | 1<<CrossFaulted | 1<<CrossStarting,
	CrossResting:  1<<CrossMoving | 1<<CrossLooking | 1<<CrossStarting,
	CrossMoving:   1<<CrossSettling | 1<<CrossStarting,
	CrossSettling: 1<<CrossMoving | 1<<CrossLooking | 1<<CrossResting | 1<<CrossStarting,
	CrossLooking:  1<<CrossMoving | 1<<CrossResting | 1<<CrossStarting | 1<<CrossFaulted,
	CrossFaulted:  1 << CrossStarting,
}

// become is the only place that assigns the state.
func (x *Crossbar) become(s CrossbarState) {
	if crossEdges[x.state]>>s&1 == 0 {
		panic("ocs: crossbar: " + x.state.String() + " cannot become " + s.String())
	}
	x.state = s
}

// Why a change is refused, and why a circuit is not what it should be.
var (
	ErrPortInUse  = errors.New("port is in another circuit")
	ErrPortTwice  = errors.New("port named twice")
	ErrNoCircuit  = errors.New("no such circuit")
	ErrNoInput    = errors.New("no light comes in to tune by")
	ErrNotTuned   = errors.New("loss does not come down to what the factory measured")
	ErrNotAdopted = errors.New("light does not show the circuit that was saved")
)

// CircuitError names the circuit that an error is about.
type CircuitError struct {
	Pair CrossPair
	Err  error
}

func (e *CircuitError) Error() string { return fmt.Sprintf("circuit %v: %v", e.Pair, e.Err) }
func (e *CircuitError) Unwrap() error { return e.Err }

// ChangeMode says what a change does to circuits that are in its way.
type ChangeMode uint8

const (
	ChangeSafe      ChangeMode = iota // a port in use refuses the whole change
	ChangeUpdate                      // circuits in the way are removed first
	ChangeOverwrite                   // all circuits but those named are removed first
)

// Change is one act: it is refused as a whole or done as a whole. Circuits are
// removed before any is created.
type Change struct {
	Mode   ChangeMode
	Remove []CrossPair
	Create []CrossPair
	// Park sends mirrors in no circuit of which nobody knows where they stand
	// to where they point at nothing.
	Park bool
}

// Startup says what Start does with a board of which nothing can be read back
// but the light.
type Startup uint8

const (
	StartKeep    Startup = iota // drive nothing; adopt the saved circuits that light proves
	StartRestore                // drive the saved circuits, park the rest
	StartDark                   // park everything
)

// SavedCircuit is what must survive a restart of the software.
type SavedCircuit struct {
	Pair  CrossPair
	Drive [4]int16
}

// Circuit is how one stands.
type Circuit struct {
	Pair     CrossPair
	State    proto.PortState
	Loss     proto.MilliDBm // as last measured
	Factory  proto.MilliDBm // as it ought to be now
	OpenLoop proto.MilliDBm // as it was before the first hill-climb move
	Moves    int            // hill-climb moves of the last tuning
	Opened   time.Duration  // from the change to the look at the open loop
	Took     time.Duration  // from the change to Tuned or Failed
	Err      error
}

// CrossbarStatus is how the board stands.
type CrossbarStatus struct {
	State            CrossbarState
	Ports            int
	Busy             bool // circuits are being made
	MilliCelsius     int32
	BusErrors        uint32
	LimitErrors      uint32 // drives that the guard cut down
	Circuits, Failed int
	Err              error
}

// CrossEventKind names what happened.
type CrossEventKind uint8

const (
	CrossReady CrossEventKind = iota
	CircuitTuned
	CircuitFailed
	CircuitDrifted // in service: it is tuned again, with its light on
	CircuitRemoved
	AlarmRaised
	AlarmCleared
	CircuitUnlit // no light comes in any more, or none came
)

var crossEventNames = [...]string{"ready", "tuned", "failed", "drifted", "removed", "alarm_raised", "alarm_cleared", "unlit"}

func (k CrossEventKind) String() string {
	if int(k) < len(crossEventNames) {
		return crossEventNames[k]
	}
	return "unknown(" + strconv.Itoa(int(k)) + ")"
}

// CrossEvent is something that its owner wants to know.
type CrossEvent struct {
	Kind    CrossEventKind
	At      time.Duration
	Pair    CrossPair // of a circuit
	Side    uint8     // of an alarm
	Port    uint16
	Alarm   Alarm
	Loss    proto.MilliDBm // of an alarm: the power
	Factory proto.MilliDBm // of an alarm: the threshold
	Err     error
}

// Alarm is what a port's power says.
type Alarm uint8

const (
	AlarmNone    Alarm = iota
	AlarmDegrade       // under the degrade threshold
	AlarmLow           // under the low threshold
	AlarmHigh          // over the high threshold
)

func (a Alarm) String() string {
	return [...]string{"within its thresholds", "under the degrade threshold", "under the low threshold", "over the high threshold"}[a]
}

// Thresholds of a port's power. An alarm is raised by the first look that finds
// it and cleared when looks have found none of it for ClearHoldOff.
type Thresholds struct {
	On                 bool
	Low, Degrade, High proto.MilliDBm
	ClearHoldOff       time.Duration
}

// alarm is what a power calls for.
func (t *Thresholds) alarm(power proto.MilliDBm) (Alarm, proto.MilliDBm) {
	switch {
	case !t.On:
		return AlarmNone, 0
	case power < t.Low:
		return AlarmLow, t.Low
	case power < t.Degrade:
		return AlarmDegrade, t.Degrade
	case power > t.High:
		return AlarmHigh, t.High
	}
	return AlarmNone, 0
}

// watch is a port under thresholds.
type watch struct {
	set     Thresholds
	now     Alarm
	calm    time.Duration // since when looks found less
	calming bool
}

func (x *Crossbar) watchPort(now time.Duration, side, port int, power proto.MilliDBm) {
	w := &x.watches[side][port]
	found, threshold := w.set.alarm(power)
	event := CrossEvent{Kind: AlarmRaised, At: now, Side: uint8(side), Port: uint16(port), Alarm: found, Loss: power, Factory: threshold}
	// Low is worse than degrade; between low and high nothing is held off.
	lesser := found == AlarmNone || found == AlarmDegrade && w.now == AlarmLow
	switch {
	case found == w.now:
		w.calming = false
	case w.now == AlarmNone || !lesser:
		w.now, w.calming = found, false
		x.events = append(x.events, event)
	case !w.calming:
		w.calming, w.calm = true, now
		fallthrough
	default:
		if now-w.calm < w.set.ClearHoldOff {
			return
		}
		if w.calming, w.now = false, found; found == AlarmNone {
			event.Kind = AlarmCleared
		}
		x.events = append(x.events, event)
	}
}

// SetThresholds puts a port under thresholds.
func (x *Crossbar) SetThresholds(side, port int, t Thresholds) error {
	if side < 0 || side >= hal.NumSides || port < 0 || port >= x.ports {
		return fmt.Errorf("ocs: port %d of side %d: %w", port, side, hal.ErrOutOfRange)
	}
	if t.On && (t.Low > t.Degrade || t.Degrade > t.High || t.ClearHoldOff < 0) {
		return fmt.Errorf("ocs: thresholds %d, %d, %d out of order: %w", t.Low, t.Degrade, t.High, hal.ErrOutOfRange)
	}
	x.watches[side][port] = watch{set: t}
	return nil
}
