package node

import (
	"slices"

	"ringlight/proto"
)

// Restore gives a new machine what its journal kept. It must come before
// Adopt.
func (m *Machine) Restore(s State) {
	m.participant.restore(&s)
	// Whether optics failed is a matter of the bundles that did, each of which is
	// tried again; without any it is for the optics to say anew.
	m.recalled = reason(s.Reasons) &^ (noPlanner | ownFault)
	for b := range m.bundles {
		if s.Failed&(1<<b) != 0 {
			m.bundles[b].failed = true
			m.recalled |= ownFault
		}
	}
	m.reasons |= m.recalled
	if m.ring() != nil {
		m.ringTimers()
	}
	for i, r := range s.Requests {
		if i < len(m.sides) {
			m.sides[i].asked = r
		}
	}
	for b := range m.bundles {
		if b < len(s.Bundles) {
			m.bundles[b].path, m.bundles[b].flaps = s.Bundles[b].Path, s.Bundles[b].Flaps
		}
	}
}

// State is what must survive a crash; it shares the plans with the machine,
// which never changes them.
func (m *Machine) State() State {
	s := m.journal()
	s.Bundles = make([]BundleRecord, len(m.bundles))
	for i := range m.sides {
		if m.sides[i].asked.Kind != proto.NoRequest && s.Requests == nil {
			s.Requests = make([]RequestRecord, len(m.sides))
		}
	}
	for i := range s.Requests {
		s.Requests[i] = m.sides[i].asked
	}
	for b := range m.bundles {
		s.Bundles[b] = BundleRecord{Path: m.bundles[b].path, Flaps: m.bundles[b].flaps}
		if m.bundles[b].failed {
			s.Failed |= 1 << b
		}
	}
	return s
}

// adopt takes the hardware as it is found. What is lit stays lit; what the
// journal would have had otherwise is told, not driven. After a start in the
// dark the journal's paths are not lit again, since they may be of an old
// generation: with a plan in the journal both sides close and listen, else
// the node stays dark, without a plan, until a planner speaks.
func (m *Machine) adopt(found []BundleLight) {
	m.adopted = true
	m.disbelieve(found)
	cold, differs := true, false
	for _, f := range found {
		if int(f.Bundle) >= len(m.bundles) || int(f.Path) >= proto.NumPaths {
			continue
		}
		b := &m.bundles[f.Bundle]
		if f.Unread {
			f.Path = b.path
		}
		cold = cold && !f.Unread && f.Path == proto.Dark
		if m.applied != nil && f.Path != b.path {
			differs = true
			m.note(proto.Event{Kind: proto.EvAdopted, Severity: proto.SeverityWarning, Bundle: f.Bundle,
				Path: f.Path, FromPath: b.path, Cause: proto.CauseAdopted})
		}
		b.path, b.lit, b.ready, b.since, b.cause = f.Path, f.Lit, f.Ready, m.now, proto.CauseAdopted
		for p := range b.litAt {
			b.litAt[p] = m.now
		}
	}
	if differs {
		m.bypassSeq++ // the moves that led here may not be in the journal; one makes an older plan too old
		m.unsaved = true
	}
	for b := range m.bundles {
		if x := &m.bundles[b]; x.failed {
			x.fail(m.now) // of the last life; it is tried again
		}
	}
	m.watch()
	mode := m.Mode()
	if mode == proto.ModeUnplanned {
		return
	}
	for i := range m.sides {
		m.sides[i].relist()
	}
	for i := range m.sides {
		m.sides[i].adopt()
	}
	cause := proto.CauseAdopted
	if cold && mode == proto.ModeService {
		cause = proto.CauseColdStart
		m.note(proto.Event{Kind: proto.EvReturned, Path: proto.Loopback, Cause: cause})
	}
	for b := range m.bundles {
		m.idle(b, cause)
	}
}

// idle takes a bundle that was found as it is where one belongs that no side has; in
// service loopback is, and what shines outside may be somebody's.
func (m *Machine) idle(b int, cause proto.Cause) {
	x, mode := &m.bundles[b], m.Mode()
	if x.owner == nobody && (mode != proto.ModeService || x.path == proto.Dark || x.path.External() && !x.unowned()) {
		m.drive(b, idlePath(mode), cause)
	}
}

// disbelieve drops a reason to be out of service that is the journal's alone and
// that light contradicts: none is written down before every bundle has been taken
// to the idle path, and one that is well shines outside, while none is dark, as
// with a dead host or a lost supply. So the journal is an older one, and what has
// ended since does not take light; that another bundle is in loopback says nothing,
// the end of a ring has one. Who means it says it again.
func (m *Machine) disbelieve(found []BundleLight) {
	mode := m.Mode()
	if m.recalled.mode() != mode || mode == proto.ModeService || mode == proto.ModeUnplanned ||
		slices.ContainsFunc(found, func(f BundleLight) bool { return f.Path == proto.Dark }) {
		return
	}
	shines := slices.IndexFunc(found, func(f BundleLight) bool {
		return int(f.Bundle) < len(m.bundles) && f.Ready && f.Path.External() && f.Lit&(1<<f.Path) != 0 &&
			!m.bundles[f.Bundle].path.External() && !m.bundles[f.Bundle].failed
	})
	if shines < 0 {
		return
	}
	for b := range m.bundles {
		m.bundles[b].failed = false
	}
	m.reasons, m.unsaved = m.reasons&^m.recalled, true
	m.note(proto.Event{Kind: proto.EvAdopted, Severity: proto.SeverityCritical, Bundle: found[shines].Bundle, Path: found[shines].Path, FromPath: idlePath(mode), Cause: proto.CauseAdopted,
		Text: "the journal has the node " + mode.String() + ", the light does not; the light is believed: say it again if it is so"})
}

// adopt finds the candidate that a side is on: with light if there is
// one, else the nearest. Of a probe pair the other one goes into loopback.
func (s *side) adopt() {
	if len(s.list) == 0 {
		return
	}
	if s.node.Mode() == proto.ModeService {
		for k := range s.list {
			if s.list[k].on.path == s.list[k].Path && (s.cur == none || s.lit(k) && !s.lit(s.cur)) {
				s.cur = k
			}
		}
	}
	if s.cur == none {
		s.become(proto.SideClosed)
		return
	}
	s.list[s.cur].on.owner = int8(s.id)
	s.cause = proto.CauseAdopted
	s.become(proto.SideWork)
}
