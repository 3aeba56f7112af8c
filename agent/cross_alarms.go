package agent

import (
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// portAlarm tells of a port whose power is out of its thresholds, or what the switch says
// of itself, which is kept until it says that it is over.
func (o *crossOptics) portAlarm(now time.Duration, ev *circuit.Event) {
	e := proto.Event{Kind: proto.EvAlarm, AtMicros: micros(now), Severity: proto.SeverityWarning, Cause: proto.CauseDegraded,
		Measured: ev.Loss, Expected: ev.Factory, Text: "power of port " + itoa(int(ev.Port)+1) + "AB"[ev.Side:ev.Side+1] + ": " + ev.Alarm.String()}
	switch {
	case ev.Err != nil:
		e.Cause, e.Text = proto.CauseOwnFault, proto.Clip(ev.Err.Error())
		if ev.Grave {
			e.Severity = proto.SeverityCritical
		}
		o.own = slices.DeleteFunc(o.own, func(x proto.Alarm) bool { return x.Text == e.Text })
		if ev.Kind == circuit.AlarmRaised {
			o.own = append(o.own, proto.Alarm{Kind: e.Kind, Severity: e.Severity, SinceMicros: e.AtMicros, Text: e.Text})
		}
	case ev.Side == hal.SideA:
		e.PortA = ev.Port
	default:
		e.PortB = ev.Port
	}
	if ev.Kind == circuit.AlarmCleared {
		e.Severity, e.Resolved = proto.SeverityOK, true
	}
	o.agent.note(now, e)
}
