package node

import (
	"strings"
	"time"

	"ringlight/proto"
)

// Ring is the ring that the node has a place in, 0: none.
func (m *Machine) Ring() proto.RingID {
	if r := m.ring(); r != nil {
		return r.Ring
	}
	return 0
}

// Carries tells whether a bundle carries traffic, or must be closed for the
// node's ring to be: then it must not be calibrated.
func (m *Machine) Carries(b proto.BundleID) bool {
	return int(b) < len(m.bundles) && (m.bundles[b].owner != nobody || m.ring() != nil && m.Mode() == proto.ModeService)
}

// Lists tells whether a path is a way of the node's ring, in use or in reserve.
func (m *Machine) Lists(b proto.BundleID, p proto.Path) bool {
	for i := range m.sides {
		for _, c := range m.sides[i].list {
			if c.Bundle == b && c.Path == p {
				return true
			}
		}
	}
	return false
}

// Report fills in what the machine knows of a node's report; powers,
// calibrations and everything about the agent itself are the agent's.
func (m *Machine) Report(r *proto.Reported) {
	m.report(r, true)
	r.Drained = m.reasons&drained != 0 && r.Mode != proto.ModeDrained
	r.Rings = r.Rings[:0]
	if m.ring() != nil {
		r.Rings = append(r.Rings, *m.ring())
	}
	r.Bundles = m.BundleReports(r.Bundles[:0])
	r.Sides = m.Sides(r.Sides[:0])
	r.Alarms = m.Alarms(r.Alarms[:0])
}

// BundleReports appends a report for each bundle.
func (m *Machine) BundleReports(buf []proto.BundleReport) []proto.BundleReport {
	for b := range m.bundles {
		x := &m.bundles[b]
		r := proto.BundleReport{Bundle: proto.BundleID(b), Path: x.path, SinceMicros: uint64(x.since.Microseconds()), Cause: x.cause,
			Expected: proto.NoPower, Measured: proto.NoPower, Lit: x.lit, Flaps: x.flaps, State: proto.Tuning}
		switch {
		case x.failed:
			r.State = proto.Failed
		case x.path == proto.Dark:
			r.State = proto.Blocked
		case !x.busy && x.hasLight(x.path):
			r.State = proto.Tuned
		}
		buf = append(buf, r)
	}
	return buf
}

// Sides appends a report for each side; none for a node that is in no ring.
func (m *Machine) Sides(buf []proto.SideReport) []proto.SideReport {
	if m.ring() == nil {
		return buf
	}
	for i := range m.sides {
		s := &m.sides[i]
		r := proto.SideReport{Ring: m.Ring(), Side: s.id, State: s.state, Request: s.requestOf(),
			Working: uint8(s.working), Current: int8(s.cur)}
		if t, until := s.waits(); t != proto.TimerNone {
			r.Timer, r.UntilMicros = t, uint64(until.Microseconds())
		}
		if s.cur != none {
			r.Peer = s.list[s.cur].Peer
		}
		for k := range s.list {
			if s.list[k].banned {
				r.Banned |= 1 << k
			}
		}
		buf = append(buf, r)
	}
	return buf
}

// requestOf is what holds a side where it is, by precedence. Non-revertive: a
// side that a plan does not move stays where light took it.
func (s *side) requestOf() proto.Request {
	switch {
	case s.state == proto.SideEnd:
		return proto.NoRequest
	case s.tied():
		return s.asked.Kind
	case s.cause == proto.CausePlan && (s.state == proto.SideSwitch || s.state == proto.SideListen):
		return proto.ManualSwitch
	case s.asked.Kind == proto.ManualSwitch && s.state != proto.SideWork:
		return proto.ManualSwitch
	case s.state != proto.SideWork || s.lostAt != Never:
		return proto.SignalFail
	case s.degraded(s.cur):
		return proto.SignalDegrade
	case s.asked.Kind != proto.NoRequest:
		return s.asked.Kind
	case s.cur != s.working && s.node.restoreWait > 0:
		return proto.WaitToRestore
	case s.cur != s.working:
		return proto.DoNotRevert
	}
	return proto.NoRequest
}

// waits is what a side waits for and until when, for people: the waits of a
// search are over before anyone reads of them.
func (s *side) waits() (proto.SideTimer, time.Duration) {
	switch {
	case s.state == proto.SideWork && s.lostAt != Never && s.node.holdOff > 0 && !s.hold && !s.tied():
		return proto.TimerHoldOff, s.lostAt + s.node.holdOff
	case s.steadyAt != Never && s.state == proto.SideWork:
		return proto.TimerSteady, s.steadyAt
	case s.follow && s.planAt != Never && s.planAt > s.node.now && s.home() == s.working:
		if s.state == proto.SideClosed && s.node.restoreWait > 0 {
			return proto.TimerRestore, s.planAt
		}
		return proto.TimerPlan, s.planAt
	case s.state == proto.SideWork && s.cur != s.working && s.node.restoreWait > 0 && s.asked.Kind == proto.NoRequest:
		return proto.TimerRestore, s.since + s.node.restoreWait
	}
	for k := range s.list {
		if s.list[k].banned && s.lit(k) {
			return proto.TimerBan, s.list[k].on.litAt[s.list[k].Path] + banClear
		}
	}
	return proto.TimerNone, 0
}

// bundleHome is the bundle that a request of an operator is about.
func (s *side) bundleHome() proto.BundleID {
	if k := s.home(); k != none && len(s.list) > 0 {
		return s.list[k].Bundle
	}
	return s.asked.Bundle
}

// waysOut says what ends each reason for which a node is out of service.
func (r reason) waysOut(id proto.NodeID, hostSays string) string {
	var out []string
	add := func(one reason, text string) {
		if r&one != 0 {
			out = append(out, text)
		}
	}
	add(hostGone, strings.TrimSuffix("the host's GPUs are gone: "+hostSays, ": ")+"; ocs-agent host ok ends it")
	add(ownFault, "own optics failed; they are tried again, and ocs-agent calibrate does so at once")
	add(drained, "an operator took it out; ocsctl undrain "+itoa(int(id))+" ends it")
	return strings.Join(out, "; ")
}

// Alarms appends the standing conditions that the machine knows of.
func (m *Machine) Alarms(buf []proto.Alarm) []proto.Alarm {
	add := func(kind proto.EventKind, severity proto.Severity, b proto.BundleID, since time.Duration, text string) {
		buf = append(buf, proto.Alarm{Kind: kind, Severity: severity, Bundle: b, SinceMicros: uint64(since.Microseconds()), Text: text})
	}
	if m.missed != 0 {
		add(proto.EvBoundNotMet, proto.SeverityWarning, 0, 0, "recovery takes up to "+micros(m.missed))
	}
	if mode := m.Mode(); m.reasons&^noPlanner != 0 {
		add(proto.EvIsolated, severity(mode), 0, m.outAt, proto.Clip(mode.String()+": "+m.reasons.waysOut(m.id, m.hostSays)))
	}
	for b := range m.bundles {
		if x := &m.bundles[b]; x.failed || x.silent != "" {
			add(proto.EvPathFailed, proto.SeverityCritical, proto.BundleID(b), x.wrongAt, proto.Clip(x.outlook(b)))
		}
		if m.bundles[b].late {
			add(proto.EvAlarm, proto.SeverityWarning, proto.BundleID(b), m.bundles[b].since, lateText)
		}
	}
	for i := range m.sides {
		s := &m.sides[i]
		if s.asked.Kind != proto.NoRequest {
			add(proto.EvRequest, proto.SeverityWarning, s.bundleHome(), 0, s.id.String()+" side: "+s.asked.Kind.String()+" of an operator; ocsctl switch clear "+itoa(int(m.id))+" "+s.id.String()+" ends it")
		}
		if s.state == proto.SideClosed && m.Mode() == proto.ModeService && m.ring() != nil {
			add(proto.EvClosed, proto.SeverityWarning, 0, s.since, s.id.String()+" side")
		}
		for _, c := range s.list {
			if c.banned {
				add(proto.EvBanned, proto.SeverityWarning, c.Bundle, 0, s.id.String()+" side, "+c.Path.String()+" to node "+itoa(int(c.Peer))+
					": 8 losses within 10 s; 10 s of steady light or a plan that names it lift it")
			}
		}
	}
	return buf
}
