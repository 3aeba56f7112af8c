package node

import (
	"time"

	"ringlight/proto"
)

// begin starts a search, or a planned move, from where the side is.
func (m *Machine) begin(s *side, now time.Duration) {
	s.from, s.fromPath = s.cur, proto.Loopback
	if s.cur != none {
		s.fromPath = s.list[s.cur].Path
	}
	s.total, s.left, s.jumps = 0, 0, 0
	s.lostAt, s.steadyAt = Never, Never
	s.stamps = Stamps{Lost: now, Decided: now}
}

// queue adds a step to the search.
func (s *side) queue(k int) {
	s.steps[s.total] = uint8(k)
	s.total++
	s.left++
}

// search looks for another way on after a loss: farther candidates first,
// since the lost peer's own neighbour is most likely looking for this node,
// then nearer ones, then the lost one again. With nothing else to try, one
// end of the link keeps asking and the other closes, so that the two cannot
// miss each other for ever. A planned link that never held was a peer's last
// light before it gave up waiting: nobody is gone, ask it again.
func (m *Machine) search(s *side, now time.Duration) {
	lost, others, lostAt := s.cur, false, s.lostAt
	m.begin(s, now)
	s.stamps.Lost = lostAt
	if s.follow && lost == s.working {
		s.queue(lost)
		m.step(s, now)
		return
	}
	for k := lost + 1; k < len(s.list); k++ {
		s.queue(k)
		others = others || m.free(s, k)
	}
	for k := lost - 1; k >= 0; k-- {
		s.queue(k)
		others = others || m.free(s, k)
	}
	s.queue(lost)
	if !others && (s.list[lost].Others || s.id == proto.Left) {
		m.close(s, proto.CauseNoCandidate, now)
		return
	}
	m.step(s, now)
}

// step goes to the next free candidate of the search, together with a later
// one that has a bundle of its own: the probe pair.
func (m *Machine) step(s *side, now time.Duration) {
	for s.left > 0 {
		k := int(s.steps[s.total-s.left])
		s.left--
		if !m.free(s, k) {
			continue
		}
		probe := m.takeProbe(s, k)
		dwell, cause := m.timers.dwell, proto.CauseLightLost
		if k == s.from {
			dwell, cause = m.timers.retry, proto.CauseRetry
			if s.total == 1 {
				dwell = m.timers.alone
			}
		}
		m.goTo(s, k, probe, dwell, cause, now)
		return
	}
	m.close(s, proto.CauseNoCandidate, now)
}

// takeProbe finds a later step that has a bundle other than k's and takes it
// out of the search: beside k it has its dwell now. The lost candidate alone
// keeps its own step, which is longer.
func (m *Machine) takeProbe(s *side, k int) int {
	rest := s.steps[s.total-s.left : s.total]
	for i, p := range rest {
		if p := int(p); s.list[p].Bundle != s.list[k].Bundle && m.free(s, p) {
			if p != s.from {
				copy(rest[1:i+1], rest[:i])
				s.left--
			}
			return p
		}
	}
	return none
}

// goTo lights candidate k, and probe if any, for dwell. What the side leaves
// goes dark at once and into loopback.
func (m *Machine) goTo(s *side, k, probe int, dwell time.Duration, cause proto.Cause, now time.Duration) {
	for b := range m.bundles {
		if !s.uses(k, b) && !s.uses(probe, b) {
			m.release(s, b, cause, now)
		}
	}
	s.cur, s.probe, s.dwell, s.cause = k, probe, dwell, cause
	s.stuckAt = now + m.timers.stuck
	s.closing = 0
	for _, k := range [2]int{k, probe} {
		if k != none {
			c := &s.list[k]
			m.bundles[c.Bundle].owner = int8(s.id)
			m.drive(int(c.Bundle), c.Path, cause, now)
		}
	}
	s.become(proto.SideSwitch, now)
}

// work settles on candidate k, whose light has come.
func (m *Machine) work(s *side, k int, cause proto.Cause, now time.Duration) {
	for b := range m.bundles {
		if !s.uses(k, b) {
			m.release(s, b, cause, now)
		}
	}
	s.cur, s.probe, s.cause = k, none, cause
	s.become(proto.SideWork, now)
	if s.asked.kind == proto.ManualSwitch && k != s.home() {
		m.drop(s, now) // nobody answered there
	}
	if k != s.working {
		s.planAt = Never
	}
	s.lostAt, s.steadyAt = Never, now+m.timers.steady
	s.stamps.Confirmed = now
	e := proto.Event{Kind: proto.EvSwitched, FromPath: s.fromPath, Cause: cause}
	if k == s.from {
		e.Kind, e.Cause = proto.EvLightFound, proto.CauseRetry
	}
	m.noteSide(s, e, s.stamps, now)
}

// close gives up: loopback has the last word.
func (m *Machine) close(s *side, cause proto.Cause, now time.Duration) {
	s.closing = 0
	for b := range m.bundles {
		if m.bundles[b].owner == int8(s.id) {
			s.closing |= 1 << b
			m.release(s, b, cause, now)
		}
	}
	if s.from == none {
		s.from = s.cur
	}
	s.cur, s.probe, s.cause = none, none, cause
	s.stuckAt = now + m.timers.stuck
	s.become(proto.SideClosing, now)
}

// leave is close for a node that goes out of service; where its bundles go is
// for the caller to say.
func (m *Machine) leave(s *side, now time.Duration) {
	s.planAt, s.follow = Never, false
	m.clear(s, now) // a node out of service has no sides to hold
	switch s.state {
	case proto.SideWork, proto.SideSwitch, proto.SideListen:
	default:
		return
	}
	s.closing = 0
	for b := range m.bundles {
		if m.bundles[b].owner == int8(s.id) {
			s.closing |= 1 << b
			m.bundles[b].owner = nobody
		}
	}
	s.from, s.cur, s.probe = s.cur, none, none
	s.stuckAt = now + m.timers.stuck
	s.become(proto.SideClosing, now)
}

// release gives up a bundle that the side has outside, if it has it.
func (m *Machine) release(s *side, b int, cause proto.Cause, now time.Duration) {
	if m.bundles[b].owner == int8(s.id) {
		m.bundles[b].owner = nobody
		m.drive(b, proto.Loopback, cause, now)
	}
}

// uses tells whether candidate k, or none, goes over bundle b.
func (s *side) uses(k, b int) bool { return k != none && int(s.list[k].Bundle) == b }
