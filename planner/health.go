package planner

import (
	"fmt"
	"strings"
	"time"

	"ringlight/planner/health"
	"ringlight/planner/job"
	"ringlight/planner/member"
	"ringlight/proto"
)

// facts are what the checks of package health look at, as they are now.
func (b *alarmBook) facts() health.Facts {
	p := b.root.p
	x := health.Facts{Given: b.given()}
	if !p.j.LinkUp {
		x.Broker = "it was lost; agents protect their light, and nothing is planned or told"
	}
	p.Rings.Evidence.FactsOf(&x)
	x.Judged = p.state == serving || p.state == gathering && p.j.LinkUp && p.j.Now >= p.pulse.linkSince+gatherQuiet
	if heard, _ := p.heard(); p.state != serving && !(p.state == gathering && heard == 0 && x.Judged) {
		x.Idle = p.idle()
		if p.state == gathering && p.j.LinkUp {
			x.Idle = gathers(heard)
		}
		if p.state == following || p.state == standby {
			x.Remedy = "that is right for a second copy; ocsctl status has the one in service"
		}
	}
	if p.state != serving && x.Idle == "" {
		return x // nobody is there of whom more could be said
	} else if p.state != serving {
		return health.Facts{Idle: x.Idle, Remedy: x.Remedy, Broker: x.Broker, Given: x.Given, Nodes: x.Nodes, Heard: x.Heard, Judged: x.Judged && x.Heard == 0}
	}
	if p.pulse.lates >= beatsAlive {
		x.Late, x.LateSince = max(p.pulse.late, p.pulse.lateWas), b.ago(time.Duration(p.pulse.lates)*BeatPeriod)
	}
	if by, ago := p.stood.lately(); by != 0 {
		x.Stood, x.StoodUntil = by, b.ago(ago)
	}
	if why, age := b.loses(); why != "" && p.pulse.lates == 0 && p.pulse.late < slowEcho { // else it is not the broker who is late
		x.Loses, x.Lost = why, b.ago(age)
	}
	b.raised = map[string]by{}
	for _, t := range p.tables() {
		for i := range t.Devices {
			if d, tell := b.device(t, &t.Devices[i]); tell {
				x.Devices = append(x.Devices, d)
			}
		}
	}
	if p.Core != nil {
		c := p.Core.Status()
		x.Circuits, x.CircuitsTuned, x.CircuitsUnproven = int(c.Circuits), int(c.Tuned), int(c.Unproven)
		if n := c.Jobs - c.Placed; n > 0 {
			x.Jobs = append(x.Jobs, health.Job{Name: "list", Cause: fmt.Sprintf("%d of %s have no servers: ocsctl circuit jobs", n, proto.Count(int(c.Jobs), "job"))})
		}
	}
	p.Jobs.Unrouted(func(router string, r job.RouterJob) {
		x.Routes = append(x.Routes, health.Route{Router: router, Job: r.Job, Over: r.Want == "", Says: r.Says, Since: r.Since})
	}, func(router string, p job.PortDrain) {
		x.Routes = append(x.Routes, health.Route{Router: router, Port: p.Port, Over: !p.Drained, Says: p.Says, Since: p.Since})
	})
	p.Jobs.Waits(func(name, cause string, since uint64) {
		x.Jobs = append(x.Jobs, health.Job{Name: name, Cause: cause, Since: since})
	})
	return x
}

// lossy is how many devices make a loss the broker's. chosen: one or two may have a bad
// network of their own.
const lossy = 3

// loses says what shows that messages are lost or late, and for how long; "": nothing does.
func (b *alarmBook) loses() (why string, age time.Duration) {
	p := b.root.p
	if p.pulse.lags >= beatsAlive {
		return fmt.Sprintf("the planner's own last %d messages took long to come back from the broker, the last of them %v", p.pulse.lags, p.pulse.lag.Round(100*time.Millisecond)), time.Duration(p.pulse.lags) * BeatPeriod
	}
	if n := p.pulse.beat - p.pulse.echo; p.pulse.echo != 0 && n >= beatsAlive {
		return fmt.Sprintf("none of the planner's own last %d messages, one every %v, has come back from the broker", n, BeatPeriod), time.Duration(n) * BeatPeriod
	}
	var ids []proto.NodeID
	for _, t := range p.tables() {
		some, first := member.Lossy(t)
		ids, age = append(ids, some...), max(age, p.j.Now-first)
	}
	if len(ids) < lossy || p.pulse.uncached {
		return "", 0
	}
	return fmt.Sprintf("messages of %s were lost or late within a minute, as their later ones show: %s", proto.Count(len(ids), "agent"), health.Spans(ids, 4)), age
}

// device is a device of which something is to be said.
func (b *alarmBook) device(t *member.Table, d *member.Device) (x health.Device, tell bool) {
	p := b.root.p
	x.ID = d.ID
	if d.ID.IsSwitch() {
		x.What, x.Why = d.Trouble()
	} else if p.Rings.Evidence.FactsOfNode(&x) {
		return x, false
	}
	x.Ring, x.Quiet, x.Claims = d.Group, !d.Answers(), t.Numbers.Claims(d)
	if what, why := d.Lately(p.j.Now); x.What == "" && what == "not believed" {
		x.What, x.Why = what, why
	} else {
		x.Lately = why
	}
	x.Late = d.Late()
	if !d.Online() && d.GoneAt > 0 && d.Session != 0 { // else nobody knows since when
		x.Since = b.ago(p.j.Now - d.GoneAt)
	}
	if d.Report.Alarms() > 0 {
		said, own := d.Whole(), strings.TrimSuffix(x.Why, ": "+x.What)
		for i := range said.Alarms {
			a := &said.Alarms[i]
			s := health.Said{Kind: a.Kind, Severity: a.Severity, At: fmt.Sprint(a.Bundle), Text: a.Text}
			if d.ID.IsSwitch() {
				s.At = fmt.Sprint(a.PortA)
			}
			if a.SinceMicros != 0 {
				s.Since = b.ago(p.j.Now - d.ReportAt + max(0, d.Report.Uptime()-time.Duration(a.SinceMicros)*time.Microsecond))
			}
			x.Said = append(x.Said, s)
			if a.Kind == proto.EvBoundNotMet && !d.ID.IsSwitch() {
				if x.Slow = p.Rings.Placed.SlowOf(d.ID); x.Slow != nil && x.Slow.All {
					x.Slow.Text = a.Text + ": " + x.Slow.Text
				}
			}
			b.raised[x.IDOf(&s)] = by{d.ReportOf(), a.SinceMicros}
			if a.Kind == proto.EvPathFailed && x.What == "isolated" && s.Since != 0 && (x.Since == 0 || s.Since < x.Since) ||
				a.Kind == proto.EvIsolated && x.What == "host down" {
				x.Since, x.Why = s.Since, own+": "+strings.TrimPrefix(a.Text, proto.ModeHostDown.String()+": ")
			}
		}
	}
	return x, x.What != "" || x.Held != "" || x.Claims != "" || x.Lately != "" || x.Board != 0 || x.Late != 0 || len(x.Low) > 0 || len(x.Said) > 0
}

// ago is the wall clock's time so long ago.
func (b *alarmBook) ago(d time.Duration) uint64 {
	return b.j.Wall - min(b.j.Wall, uint64(max(0, d).Milliseconds()))
}

// given are the alarms that no check raised.
func (b *alarmBook) given() []proto.AlarmStatus {
	out := b.outside[:len(b.outside):len(b.outside)]
	if why := b.j.Chain.Damage(); why != "" {
		out = append(out, proto.AlarmStatus{ID: "audit/damaged", Check: "audit", Subject: "audit chain", What: "the audit chain is not as it was written", Why: proto.Clip(why)})
	}
	r := b.root.p.Rollout
	if why, node, since := r.Halted(); why != "" {
		out = append(out, proto.AlarmStatus{ID: "rollout/stopped", Check: "rollout", Subject: "roll-out", SinceMillis: since, Node: node, What: "the roll-out has stopped", Why: why})
	}
	if since, why := r.Stuck(); since >= rolloutStuck {
		out = append(out, proto.AlarmStatus{ID: "rollout/waits", Check: "rollout", Subject: "roll-out", SinceMillis: b.ago(since), Severity: proto.SeverityWarning, What: "the roll-out does not go on", Why: "it waits: " + why})
	}
	return out
}

// Health is how the fabric is, and what the checks find.
func (b *alarmBook) Health() (proto.HealthState, []proto.AlarmStatus) {
	all := b.List()
	return health.Worst(all), all
}

// maxAbout bounds what is said of one device. chosen: more than one reads.
const maxAbout = 16

// about is what the checks found of a device, its ring and its fibres, as why has it.
func (b *alarmBook) about(id proto.NodeID) (out []proto.WhyLine) {
	_, d := b.root.p.find(id)
	for _, a := range b.List() {
		own := a.Node != nil && *a.Node == id || a.Peer != nil && *a.Peer == id
		ofRing := a.Ring != 0 && a.Ring == d.Group && !id.IsSwitch() && (a.Peer != nil || a.Node == nil)
		if !own && !ofRing || len(out) == maxAbout {
			continue
		}
		text := a.What
		if a.Why != "" {
			text += ": " + a.Why
		}
		if a.Under != "" {
			text += "; it follows from " + a.Under
		} else if a.Remedy != "" {
			text += "; to do: " + strings.Replace(a.Remedy, "ocsctl why ", "ocsctl why -all ", 1)
		}
		out = append(out, proto.WhyLine{AtMillis: b.j.Wall, Node: id, Bundle: -1, Rule: "check", Text: proto.Clip(text), Measured: proto.NoPower, Expected: proto.NoPower})
	}
	return out
}

// NotReady says why this planner does not do its part, "" when it does: what the checks
// find of itself, but for one that follows that it does. is is how the fabric is.
func (b *alarmBook) NotReady(leads bool) (is proto.HealthState, why string) {
	is, found := b.Health()
	for _, a := range found {
		if a.Check == "store" || a.Check == "broker" || a.Check == "nodes" && a.State == proto.HealthFailed || a.Check == "planner" && leads {
			return is, a.What + ": " + a.Why
		}
	}
	return is, ""
}
