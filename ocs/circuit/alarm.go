package circuit

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/proto"
)

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

// Check refuses thresholds that are out of order.
func (t Thresholds) Check() error {
	if t.On && (t.Low > t.Degrade || t.Degrade > t.High || t.ClearHoldOff < 0) {
		return fmt.Errorf("ocs: thresholds %d, %d, %d out of order: %w", t.Low, t.Degrade, t.High, hal.ErrOutOfRange)
	}
	return nil
}

// Watch is a port under thresholds.
type Watch struct {
	Thresholds
	now     Alarm
	calm    time.Duration // since when looks found less
	calming bool
}

// Look takes a port's power, and gives the event that it calls for, if any.
func (w *Watch) Look(now time.Duration, power proto.MilliDBm) (ev Event, any bool) {
	found, threshold := w.alarm(power)
	// Low is worse than degrade; between low and high nothing is held off.
	lesser := found == AlarmNone || found == AlarmDegrade && w.now == AlarmLow
	switch {
	case found == w.now:
		w.calming = false
		return Event{}, false
	case w.now == AlarmNone || !lesser:
	case !w.calming:
		w.calming, w.calm = true, now
		fallthrough
	default:
		if now-w.calm < w.ClearHoldOff {
			return Event{}, false
		}
	}
	w.now, w.calming = found, false
	ev = Event{Kind: AlarmRaised, At: now, Alarm: found, Loss: power, Factory: threshold}
	// What is less than before is cleared only when nothing is left.
	if found == AlarmNone {
		ev.Kind = AlarmCleared
	}
	return ev, true
}
