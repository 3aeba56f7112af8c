package agent

import (
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
)

// What an agent says of itself: to the planner, and to people on this host.

// presence is the agent's birth note.
func (a *Agent) presence() *proto.Presence {
	p := &proto.Presence{Version: proto.Version, Node: a.cfg.Node, Session: a.cfg.Session, Online: true,
		Boot: a.cfg.Boot, Software: a.cfg.Software, Host: proto.Clip(a.cfg.Host), UnsentEvents: uint32(len(a.outbox.queue))}
	a.optics.addPresence(p)
	var r proto.Reported
	a.machine.Report(&r)
	p.Features = a.cfg.Features
	if a.cfg.Restarts {
		p.Features |= proto.FeatureRestart
	}
	p.Mode, p.SeenTerm, p.Term, p.Generation, p.Plan = r.Mode, r.SeenTerm, r.Term, r.Generation, r.Plan
	return p
}

// reported is the node or switch as it is now.
func (a *Agent) reported(now time.Duration) *proto.Reported {
	a.wire.seq++
	r := &proto.Reported{Version: proto.Version, Node: a.cfg.Node, Session: a.cfg.Session, Seq: a.wire.seq,
		UptimeMicros: uint64(now.Microseconds()), LastEvent: a.outbox.last,
		Dropped: a.wire.dropped, RefusedMessages: a.wire.refused, UnknownKeys: a.wire.unknown}
	r.AsksRestart, r.Answers = a.restart.wants(), a.wire.asked
	a.machine.Report(r)
	a.optics.addReport(now, r)
	if a.started && !a.adopted {
		r.Alarms = append(r.Alarms, proto.Alarm{Kind: proto.EvAlarm, Severity: proto.SeverityWarning, Text: proto.Clip(a.waits())})
	}
	if p := &a.persist; p.fails != "" {
		r.Alarms = append(r.Alarms, proto.Alarm{Kind: proto.EvJournal, Severity: proto.SeverityCritical, SinceMicros: uint64(p.since.Microseconds()), Text: proto.Clip(p.fails)})
	}
	if d := a.wire.doubt; d.text != "" {
		r.Alarms = append(r.Alarms, proto.Alarm{Kind: proto.EvAlarm, Severity: proto.SeverityWarning, SinceMicros: uint64(d.since.Microseconds()), Text: d.text})
	}
	return r
}

// status is how the agent stands, for people.
func (a *Agent) status(now time.Duration) *Status {
	s := &Status{Fabric: a.cfg.Fabric, Reported: *a.reported(now), Bundles: []BundleStatus{}, LinkUp: a.wire.up, Unacked: len(a.outbox.queue), UptimeUS: now.Microseconds(), LateUS: max(a.behind[0], a.lag).Microseconds()}
	a.optics.addStatus(s)
	return s
}

// describeBundle adds to a bundle's report what the optics know.
func (o *nodeOptics) describeBundle(r *proto.BundleReport) {
	if int(r.Bundle) >= len(o.bundles) {
		return
	}
	b := &o.bundles[r.Bundle]
	s := b.optics.Status()
	if !b.read {
		return // the machine knows where it was
	}
	r.Path, r.State, r.Expected, r.Measured = s.Path, s.State, s.Expected, s.Measured
	r.State = r.State.ToldAs(o.agent.wire.beat.features)
	r.Held, _ = b.optics.Held()
	if b.calibration != s.Calibration {
		b.calibration, b.digest = s.Calibration, proto.Digest{}
		if s.Calibration != nil {
			b.digest = s.Calibration.Digest()
		}
	}
	r.Calibration = b.digest
}

func (o *nodeOptics) addReport(_ time.Duration, r *proto.Reported) {
	r.Measured = o.measured()
	for i := range r.Bundles {
		o.describeBundle(&r.Bundles[i])
	}
}

func (o *nodeOptics) addPresence(p *proto.Presence) {
	p.GPUs, p.Bundles, p.Measured, p.TelemetryMask = uint8(o.agent.cfg.Board.GPUs), uint8(len(o.bundles)), o.measured(), o.health.mask
	if len(o.bundles) > 0 {
		p.Modules = uint8(len(o.agent.cfg.Board.Bundles[0].Modules))
	}
}

// measured is the envelope of the node's own bundles.
func (o *nodeOptics) measured() proto.Envelope {
	var t ocs.Timing
	for i := range o.bundles {
		t = t.Join(o.bundles[i].optics.Status().Timing)
	}
	if t == (ocs.Timing{}) {
		return proto.Envelope{}
	}
	if p := o.agent.cfg.Prompt; p != nil {
		t.DetectMax += wakeBound(p.WakeP99)
	}
	return t.Envelope(laserSkew)
}

// wakeStep is the least wake-up that an envelope allows for. chosen: what a
// thread takes on a machine that is idle.
const wakeStep = 50 * time.Microsecond

// wakeBound is the late wake-up that an envelope allows for: calibration may
// have met none. It doubles from wakeStep on, so that a machine has the same
// envelope after every start.
func wakeBound(p99 time.Duration) time.Duration {
	bound := wakeStep
	for bound < p99 {
		bound *= 2
	}
	return bound
}

// promptOf is how soon our thread runs, as it is told.
func promptOf(p *hal.Prompt) proto.Prompt {
	return proto.Prompt{Priority: uint8(p.Priority), Locked: p.Locked, WakeP50Micros: uint32(micros(p.WakeP50)),
		WakeP99Micros: uint32(micros(p.WakeP99)), WakeMaxMicros: uint32(micros(p.WakeMax))}
}

func (o *nodeOptics) addStatus(s *Status) {
	s.bypasses = o.bypasses.clone()
	for i := range o.bundles {
		b := &o.bundles[i]
		st := b.optics.Status()
		bs := BundleStatus{Bundle: proto.BundleID(i), Machine: st.Machine.String(), Ready: st.Ready, Calibrated: st.Calibrated,
			Path: st.Path.String(), Target: st.Target.String(), State: st.State.String(), Lit: []string{},
			Expected: st.Expected.Known(), Measured: st.Measured.Known(), LimitErrors: st.LimitErrors, BusErrors: st.BusErrors,
			Step: st.Progress.Step, Modules: st.Progress.Done, Measurements: st.Progress.Measurements,
			ElapsedUS: st.Progress.Elapsed.Microseconds(), HeldByHand: o.manual.ops[i] != nil && o.manual.ops[i].held,
			Hold: b.optics.Holds(), Flags: b.optics.Flags()}
		held, why := b.optics.Held()
		bs.Held, bs.NotHeld, bs.Unproven = held.Of(st.Path), why, b.optics.Unproven()
		if st.Err != nil {
			bs.Reason = st.Err.Error()
		}
		for p := proto.Loopback; int(p) < proto.NumPaths; p++ {
			if b.lit&(1<<p) != 0 {
				bs.Lit = append(bs.Lit, p.String())
			}
		}
		told := len(s.Samples)
		s.Samples = b.optics.Health.Samples(time.Duration(s.UptimeUS)*time.Microsecond, 0, s.Samples)
		for at, x := range s.Samples[told:] {
			if age := int64(x.AgeMillis) * 1000; at == 0 || age < bs.ReadUS {
				bs.ReadUS = age
			}
		}
		s.Bundles = append(s.Bundles, bs)
	}
}
