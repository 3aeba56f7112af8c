package node

import (
	"time"

	"ringlight/proto"
)

// side is one end of the node in its ring.
type side struct {
	id    proto.Side
	state proto.SideState // only become writes it
	since time.Duration

	list    []candidate // nearest first
	hold    bool        // policy: act only when told
	asked   request     // of an operator
	working int         // as planned, index into list
	follow  bool        // the planned candidate has not held since the plan was committed
	cur     int         // in use or tried, none in loopback
	probe   int         // lit beside cur during a step

	// The search: what was lost, what is left to try, how often it went to a
	// light, and how long its present step may take.
	from     int // candidate the search started from
	fromPath proto.Path
	steps    [proto.MaxCandidates]uint8
	left     int // steps not taken yet, at the end of steps[:total]
	total    int
	jumps    int
	dwell    time.Duration
	cause    proto.Cause // of the present step
	closing  uint16      // bundles on their way into loopback

	lostAt   time.Duration // light of cur lost and not searched for (hold)
	dwellAt  time.Duration
	graceAt  time.Duration
	stuckAt  time.Duration
	steadyAt time.Duration
	planAt   time.Duration // go to the planned candidate without its light
	asks     int           // how often still
	stamps   Stamps
}

const none = -1

// candidate is one way on, and how it has behaved.
type candidate struct {
	proto.Candidate
	banned bool
	losses [banLosses]time.Duration // last ones, a ring
	count  int
}

// lose counts a loss and reports whether there have been too many.
func (c *candidate) lose(now time.Duration) bool {
	c.losses[c.count%banLosses] = now
	c.count++
	if c.count < banLosses || now-c.losses[c.count%banLosses] > banWindow {
		return false
	}
	c.banned, c.count = true, 0
	return true
}

// lit is the filtered light of candidate k.
func (m *Machine) lit(s *side, k int) bool {
	c := &s.list[k]
	return m.bundles[c.Bundle].lit&(1<<c.Path) != 0
}

// litFor is since when candidate k has had light.
func (m *Machine) litAt(s *side, k int) time.Duration {
	c := &s.list[k]
	return m.bundles[c.Bundle].litAt[c.Path]
}

// free tells whether the side may go to candidate k: a bundle belongs to the
// side that took it first.
func (m *Machine) free(s *side, k int) bool {
	c := &s.list[k]
	b := &m.bundles[c.Bundle]
	return !c.banned && b.ready && (b.owner == nobody || b.owner == int8(s.id))
}

// askedBy is the nearest free candidate but cur and probe whose light has
// lasted, or none.
func (m *Machine) askedBy(s *side, now time.Duration) int {
	for k := range s.list {
		if k == s.cur || k == s.probe || (s.hold || s.tied()) && k != s.home() || !m.lit(s, k) || !m.free(s, k) {
			continue
		}
		if m.due(m.litAt(s, k)+persist, now) {
			return k
		}
	}
	return none
}

// run takes one step of a side's table and reports whether it moved.
func (m *Machine) run(s *side, now time.Duration) bool {
	switch s.state {
	case proto.SideWork:
		return m.runWork(s, now)
	case proto.SideSwitch:
		return m.runSwitch(s, now)
	case proto.SideListen:
		return m.runListen(s, now)
	case proto.SideClosing:
		return m.runClosing(s, now)
	case proto.SideClosed:
		return m.runClosed(s, now)
	}
	return false // END: the bundle stays in loopback
}

// runWork: light of other candidates is ignored, whoever asks with it, but
// for the one that the last plan names.
func (m *Machine) runWork(s *side, now time.Duration) bool {
	if !m.lit(s, s.cur) {
		if s.lostAt == Never {
			m.lose(s, now)
		}
		if s.hold || s.tied() || !m.due(s.lostAt+m.holdOff, now) {
			return false
		}
		if s.asked.kind == proto.ManualSwitch {
			m.drop(s, now)
		}
		m.search(s, now)
		return true
	}
	if s.lostAt != Never { // held, and the light is back
		s.stamps.Confirmed = now
		m.noteSide(s, proto.Event{Kind: proto.EvLightFound, Cause: proto.CauseNone}, s.stamps, now)
		s.lostAt, s.steadyAt = Never, now+m.timers.steady
	}
	if s.steadyAt != Never && m.due(s.steadyAt, now) {
		s.steadyAt = Never
		if s.cur == s.working {
			s.follow, s.planAt = false, Never
		}
		m.noteSide(s, proto.Event{Kind: proto.EvRestored, Cause: s.cause}, Stamps{}, now)
	}
	return m.runDegraded(s, now) || m.runFollow(s, now) || m.runRestore(s, now)
}

// runFollow moves a side that works or is closed to the candidate that its
// plan names: as soon as that one's light shows, and after a while without
// it, since its other end may be waiting too - once from where it has light,
// a few times from loopback, where two ends can just miss each other. Until
// then both ends stay with what they have, so that it does not matter how far
// apart their commits come in.
func (m *Machine) runFollow(s *side, now time.Duration) bool {
	if !s.follow || s.cur == s.working || s.home() != s.working || !m.free(s, s.working) {
		return false
	}
	asked := m.lit(s, s.working) && m.due(m.litAt(s, s.working)+persist, now)
	if !asked && (s.planAt == Never || !m.due(s.planAt, now)) {
		return false
	}
	s.asks--
	s.planAt = now + planWait<<(maxAsks-s.asks)
	if s.asks == 0 {
		s.planAt = Never
	}
	back := s.cur
	m.begin(s, now)
	if back != none {
		s.queue(back)
	}
	m.goTo(s, s.working, none, m.timers.dwell, proto.CausePlan, now)
	return true
}

func (m *Machine) runSwitch(s *side, now time.Duration) bool {
	for _, k := range [2]int{s.cur, s.probe} {
		if k == none || !m.bundles[s.list[k].Bundle].busy {
			continue
		}
		if m.due(s.stuckAt, now) {
			c := &s.list[k]
			m.pathFailed(&Event{Bundle: c.Bundle, Path: c.Path, Text: "does not settle"}, now)
			return true
		}
		return false
	}
	if s.stamps.Settled == 0 {
		s.stamps.Settled = now
	}
	s.dwellAt, s.graceAt = now+s.dwell, now+m.timers.grace
	s.become(proto.SideListen, now)
	return true
}

func (m *Machine) runListen(s *side, now time.Duration) bool {
	if m.lit(s, s.cur) {
		m.work(s, s.cur, s.cause, now)
		return true
	}
	if s.probe != none && m.lit(s, s.probe) && m.due(s.graceAt, now) {
		m.work(s, s.probe, proto.CauseProbe, now)
		return true
	}
	if s.jumps < maxJumps {
		if k := m.askedBy(s, now); k != none {
			s.jumps++
			m.goTo(s, k, none, m.timers.retry, proto.CauseGoToLight, now)
			return true
		}
	}
	if m.due(s.dwellAt, now) {
		if s.tied() { // told to be here, with light or without
			s.become(proto.SideWork, now)
			return true
		}
		m.step(s, now)
		return true
	}
	return false
}

func (m *Machine) runClosing(s *side, now time.Duration) bool {
	for b := range m.bundles {
		x := &m.bundles[b]
		if s.closing&(1<<b) == 0 || !x.busy || x.owner != nobody {
			continue
		}
		if !m.due(s.stuckAt, now) {
			return false
		}
		m.pathFailed(&Event{Bundle: proto.BundleID(b), Path: x.path, Text: "does not settle"}, now)
	}
	s.become(proto.SideClosed, now)
	if m.Mode() == proto.ModeService && s.cause != proto.CausePlan { // a plan's own way through loopback is no news
		m.noteSide(s, proto.Event{Kind: proto.EvClosed, Severity: proto.SeverityWarning, Path: proto.Loopback,
			FromPath: s.fromPath, Cause: s.cause}, Stamps{}, now)
	}
	m.armRestore(s, now)
	return true
}

// runClosed: loopback and listening. Only a node in service listens.
func (m *Machine) runClosed(s *side, now time.Duration) bool {
	if m.Mode() != proto.ModeService {
		return false
	}
	if k := m.askedBy(s, now); k != none {
		m.begin(s, now)
		m.goTo(s, k, none, m.timers.answer, proto.CauseLateLight, now)
		return true
	}
	return m.runFollow(s, now)
}

// lose notes the loss of the light in use and counts it against its peer.
func (m *Machine) lose(s *side, now time.Duration) {
	c := &s.list[s.cur]
	s.lostAt, s.steadyAt = now, Never
	s.stamps = Stamps{Lost: now, Decided: now}
	m.bundles[c.Bundle].flaps++
	m.noteSide(s, proto.Event{Kind: proto.EvLightLost, Severity: proto.SeverityWarning, Cause: proto.CauseLightLost}, Stamps{}, now)
	if c.lose(now) {
		m.noteSide(s, proto.Event{Kind: proto.EvBanned, Severity: proto.SeverityWarning, Cause: proto.CausePeerSilent}, Stamps{}, now)
	}
}

// lift ends bans after steady light.
func (m *Machine) lift(s *side, now time.Duration) {
	for k := range s.list {
		c := &s.list[k]
		if c.banned && m.lit(s, k) && m.due(m.litAt(s, k)+banClear, now) {
			c.banned = false
			m.note(proto.Event{Kind: proto.EvBanned, Resolved: true, Side: s.id, Bundle: c.Bundle, Path: c.Path, Peer: c.Peer}, now)
		}
	}
}

// noteSide notes something about the candidate in use.
func (m *Machine) noteSide(s *side, e proto.Event, st Stamps, now time.Duration) {
	e.Side = s.id
	k := s.cur
	if k == none {
		k = s.from
	}
	if k != none {
		c := &s.list[k]
		e.Bundle, e.Peer = c.Bundle, c.Peer
		if s.cur != none {
			e.Path = c.Path
		}
	}
	e.SideBypassed = s.cur != s.working
	m.noteStamped(e, st, now)
}
