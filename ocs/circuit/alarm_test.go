package circuit

import (
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: an alarm is raised by the first look and by any that is worse; what is
// less waits for the hold-off, and what comes back meanwhile begins it anew.
// Method: a look a second, each with what it must tell.
func TestAlarmsHoldOffWhenTheyClear(t *testing.T) {
	w := Watch{Thresholds: Thresholds{On: true, Low: -10_000, Degrade: -5_000, High: 3_000, ClearHoldOff: 2 * time.Second}}
	for s, look := range []struct {
		power proto.MilliDBm
		tells bool
		kind  EventKind
		alarm Alarm
	}{
		{power: 0},
		{-6_000, true, AlarmRaised, AlarmDegrade},
		{power: -6_000},
		{-11_000, true, AlarmRaised, AlarmLow},
		{power: -6_000}, // less: held off
		{power: -11_000},
		{power: -6_000},
		{power: -6_000},
		{-6_000, true, AlarmRaised, AlarmDegrade},
		{power: 0},
		{power: 0},
		{0, true, AlarmCleared, AlarmNone},
		{4_000, true, AlarmRaised, AlarmHigh},
		{-11_000, true, AlarmRaised, AlarmLow}, // from high to low nothing is held off
	} {
		ev, any := w.Look(time.Duration(s)*time.Second, look.power)
		if any != look.tells || any && (ev.Kind != look.kind || ev.Alarm != look.alarm || ev.Loss != look.power) {
			t.Errorf("second %d: %v %+v", s, any, ev)
		}
	}
}
