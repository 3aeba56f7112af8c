package node

import (
	"slices"

	"ringlight/proto"
)

// Requests of operators and what else moves a side, in the words and the
// order of ITU-T G.808.1: lockout > forced switch > signal fail > signal
// degrade > manual switch > wait-to-restore > do-not-revert > no request.
//
//	lockout          the side stays on, or goes to, its working candidate and no
//	                 loss moves it
//	forced switch    ... to the candidate named, or into loopback
//	signal fail      side.go, search.go
//	signal degrade   light of another free candidate is gone to; without any the
//	                 weak one stays: a weak link is better than none
//	manual switch    to the candidate named while the side works and nothing is
//	                 wrong; over with the next loss
//	wait-to-restore  in a revertive ring: back to the working candidate
//	do-not-revert    in any other: the side stays where light took it

// RequestRecord is an operator's request for one side, as the journal keeps it
// too. Bundle and Path name the candidate; Loopback closes the side.
type RequestRecord struct {
	_      struct{}      `cbor:",toarray"`
	Kind   proto.Request // NoRequest, ManualSwitch, ForcedSwitch or Lockout
	Bundle proto.BundleID
	Path   proto.Path
}

// tied tells whether a request above signal fail holds the side.
func (s *side) tied() bool { return s.asked.Kind >= proto.ForcedSwitch }

// find is the candidate on a bundle and path, or none.
func (s *side) find(b proto.BundleID, p proto.Path) int {
	return slices.IndexFunc(s.list, func(c candidate) bool { return c.Bundle == b && c.Path == p })
}

// home is the candidate that the side belongs on, none for loopback: what an
// operator names comes before what the plan names.
func (s *side) home() int {
	switch s.asked.Kind {
	case proto.ForcedSwitch, proto.ManualSwitch:
		return s.find(s.asked.Bundle, s.asked.Path)
	}
	return s.working
}

// Refuses says why a request for a side cannot be taken now, or nil. A
// request of a lower rank than the one in force is refused; clearing is not.
func (m *Machine) Refuses(id proto.Side, kind proto.Request, b proto.BundleID, p proto.Path) *proto.Error {
	bad := func(code proto.Code, field, limit, reason string) *proto.Error {
		return &proto.Error{Code: code, Field: field, Limit: limit, Reason: reason}
	}
	if id > proto.Right {
		return bad(proto.Invalid, "side", "left or right", id.String())
	}
	s := &m.sides[id]
	switch kind {
	case proto.NoRequest:
		return nil
	case proto.Lockout, proto.ForcedSwitch, proto.ManualSwitch:
	default:
		return bad(proto.Invalid, "request", "lockout, forced_switch, manual_switch or no_request", kind.String())
	}
	switch {
	case !m.adopted:
		return errBusy
	case m.Mode() != proto.ModeService:
		return m.outOfService("node", "in service")
	case len(s.list) == 0:
		return bad(proto.NotFound, "side", "a side with candidates", "the "+id.String()+" side is an end of its ring or in none")
	case kind < s.asked.Kind:
		return bad(proto.Conflict, "request", "at least "+s.asked.Kind.String(), s.asked.Kind.String()+" is in force")
	}
	k := s.working
	if kind != proto.Lockout {
		if p == proto.Loopback && kind == proto.ForcedSwitch {
			return nil
		}
		k = s.find(b, p)
	}
	switch {
	case k == none:
		return bad(proto.NotFound, "path", "a candidate of the "+id.String()+" side", "bundle "+itoa(int(b))+" "+p.String())
	case !s.list[k].on.ready:
		return bad(proto.NotCalibrated, "bundle", "a bundle that can switch", "bundle "+itoa(int(s.list[k].Bundle))+" cannot switch")
	case s.list[k].on.owner == int8(1-s.id):
		return bad(proto.Busy, "bundle", "a free bundle", "the other side has it")
	case kind != proto.ManualSwitch:
	case s.state != proto.SideWork || s.lostAt != Never:
		return bad(proto.Conflict, "request", "above signal_fail", "the side has lost its light")
	case s.list[k].banned || s.degraded(k):
		return bad(proto.Conflict, "path", "a candidate that is well", "the candidate is banned or degraded")
	}
	return nil
}

// outOfService refuses what only a node in service can do.
func (m *Machine) outOfService(field, limit string) *proto.Error {
	return &proto.Error{Code: proto.HardwareFailed, Field: field, Limit: limit, Reason: "the node is out of service: " + m.Mode().String()}
}

// request takes a request that Refuses has nothing against.
func (m *Machine) request(ev *Event) {
	if m.Refuses(ev.Side, ev.Request, ev.Bundle, ev.Path) != nil {
		return
	}
	s := &m.sides[ev.Side]
	if ev.Request == proto.NoRequest {
		s.clear()
		return
	}
	next := RequestRecord{Kind: ev.Request, Bundle: ev.Bundle, Path: ev.Path}
	if next.Kind == proto.Lockout {
		next.Bundle, next.Path = 0, proto.Dark
	}
	if next == s.asked {
		return
	}
	s.asked, m.unsaved = next, true
	s.follow, s.planAt = false, Never
	s.noteRequest(false)
	k := s.home()
	switch {
	case k == s.cur && s.probe == none && (k != none || s.state == proto.SideClosing || s.state == proto.SideClosed):
		return
	case k == none:
		s.begin()
		s.close(proto.CauseOperator)
		return
	}
	s.list[k].banned, s.list[k].count = false, 0 // an operator who names it knows of the ban
	back := s.cur
	s.begin()
	if back != none && !s.tied() {
		s.queue(back)
	}
	s.goTo(k, none, m.timers.dwell, proto.CauseOperator)
}

// drop ends a request that something of a higher rank has overtaken: the
// plan is not followed back.
func (s *side) drop() {
	s.clear()
	s.follow, s.planAt = false, Never
}

// clear ends a request; the side stays where it is, and follows its plan
// again when that wants it elsewhere.
func (s *side) clear() {
	if s.asked.Kind == proto.NoRequest {
		return
	}
	s.noteRequest(true)
	s.asked, s.node.unsaved = RequestRecord{}, true
	if len(s.list) > 0 && s.node.Mode() == proto.ModeService && s.cur != s.working {
		s.follow, s.asks, s.planAt = true, maxAsks, s.node.now
	}
}

func (s *side) noteRequest(over bool) {
	text := s.asked.Kind.String()
	e := proto.Event{Kind: proto.EvRequest, Cause: proto.CauseOperator, Resolved: over, Side: s.id, Bundle: s.asked.Bundle, Path: s.asked.Path, Text: text}
	if k := s.home(); k != none && len(s.list) > 0 { // a plan may have left the side none
		c := &s.list[k]
		e.Bundle, e.Path, e.Peer = c.Bundle, c.Path, c.Peer
	}
	s.node.note(e)
}

// runDegraded leaves a degraded candidate for another that has light.
func (s *side) runDegraded() bool {
	if s.tied() || s.hold || !s.degraded(s.cur) {
		return false
	}
	k := s.askedBy()
	if k == none || s.degraded(k) {
		return false
	}
	if s.asked.Kind == proto.ManualSwitch {
		s.drop()
	}
	s.back(k, proto.CauseDegraded)
	return true
}

// runRestore takes a side of a revertive ring back to its working candidate:
// when that one shows light, wait-to-restore after the side left it.
func (s *side) runRestore() bool {
	if s.node.restoreWait == 0 || s.cur == s.working || s.hold || s.asked.Kind != proto.NoRequest || !s.node.due(s.since+s.node.restoreWait) {
		return false
	}
	k := s.working
	if !s.free(k) || s.degraded(k) || !s.steady(k, persist) {
		return false
	}
	s.back(k, proto.CauseRestore)
	return true
}

// back goes from a candidate with light to another, and returns if that one
// does not answer.
func (s *side) back(k int, cause proto.Cause) {
	from := s.cur
	s.begin()
	s.queue(from)
	s.goTo(k, none, s.node.timers.dwell, cause)
}

// armRestore makes a closed side of a revertive ring ask its working
// candidate, wait-to-restore from now: its peer waits for light.
func (s *side) armRestore() {
	if s.node.restoreWait > 0 && len(s.list) > 0 && !s.follow && !s.tied() && !s.hold && s.state == proto.SideClosed && s.node.Mode() == proto.ModeService {
		s.follow, s.asks, s.planAt = true, maxAsks, s.node.now+s.node.restoreWait
	}
}
