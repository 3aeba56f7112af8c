package node

import (
	"time"

	"ringlight/proto"
)

// search is a side's way to another candidate: where it began, and what is
// left to try.
type search struct {
	from     int // candidate, or none
	fromPath proto.Path
	steps    [proto.MaxCandidates]uint8
	left     int // steps not taken yet, at the end of steps[:total]
	total    int
	jumps    int // to a light, not counted as steps
}

// begin starts a search, or a planned move, from where the side is.
func (s *side) begin() {
	s.search = search{from: s.cur, fromPath: proto.Loopback}
	if s.cur != none {
		s.fromPath = s.list[s.cur].Path
	}
	s.lostAt, s.steadyAt = Never, Never
	s.stamps = Stamps{Lost: s.node.now, Decided: s.node.now}
}

// queue adds a step.
func (q *search) queue(k int) {
	q.steps[q.total] = uint8(k)
	q.total++
	q.left++
}

// next takes the next step, or none.
func (q *search) next() int {
	if q.left == 0 {
		return none
	}
	q.left--
	return int(q.steps[q.total-q.left-1])
}

// protect looks for another way on after a loss: farther candidates first,
// since the lost peer's own neighbour is most likely looking for this node,
// then nearer ones, then the lost one again. With nothing else to try, one
// end of the link keeps asking and the other closes, so that the two cannot
// miss each other without end. A planned link that never held was a peer's last
// light before it gave up waiting: nobody is gone, ask it again.
func (s *side) protect() {
	lost, others, lostAt := s.cur, false, s.lostAt
	s.begin()
	s.stamps.Lost = lostAt
	if s.follow && lost == s.working {
		s.queue(lost)
		s.step()
		return
	}
	for k := lost + 1; k < len(s.list); k++ {
		s.queue(k)
		others = others || s.free(k)
	}
	for k := lost - 1; k >= 0; k-- {
		s.queue(k)
		others = others || s.free(k)
	}
	s.queue(lost)
	if !others && (s.list[lost].Others || s.id == proto.Left) {
		s.close(proto.CauseNoCandidate)
		return
	}
	s.step()
}

// runAgain has a side that found nobody search again when its node was late since
// the side last had light: somebody may have asked meanwhile. It does so a few times
// from when the node was late last; the other end may be late too, but then knows it
// itself. A node that came back only listens.
func (s *side) runAgain() bool {
	if s.searches == 0 || s.cause != proto.CauseNoCandidate {
		return false
	}
	if s.hold || s.tied() || s.follow && s.planAt != Never {
		s.searchAt = Never
		return false
	}
	if s.searchAt == Never {
		s.wait = searchFirst
		s.searchAt = s.node.now + s.wait
	}
	if !s.node.due(s.searchAt) {
		return false
	}
	s.wait = min(2*s.wait, searchLast)
	s.searchAt = s.node.now + s.wait
	if s.searches--; s.searches == 0 {
		s.searchAt = Never
	}
	s.begin()
	for i := range s.list {
		if k := (i + 1) % len(s.list); s.free(k) {
			s.queue(k)
		}
	}
	if s.left == 0 {
		return false
	}
	s.step()
	return true
}

// step goes to the next free candidate of the search, together with a later
// one that has a bundle of its own: the probe pair.
func (s *side) step() {
	for k := s.next(); k != none; k = s.next() {
		if !s.free(k) {
			continue
		}
		probe := s.takeProbe(k)
		dwell, cause := s.node.timers.dwell, proto.CauseLightLost
		if s.from == none {
			dwell = max(dwell, s.lag)
		}
		if k == s.from {
			dwell, cause = s.node.timers.retry, proto.CauseRetry
			if s.total == 1 {
				dwell = s.node.timers.alone
			}
		}
		s.goTo(k, probe, dwell, cause)
		return
	}
	s.close(proto.CauseNoCandidate)
}

// takeProbe finds a later step that has a bundle other than k's and takes it
// out of the search: beside k it has its dwell now. The lost candidate alone
// keeps its own step, which is longer.
func (s *side) takeProbe(k int) int {
	rest := s.steps[s.total-s.left : s.total]
	for i, p := range rest {
		if p := int(p); s.list[p].Bundle != s.list[k].Bundle && s.free(p) {
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
func (s *side) goTo(k, probe int, dwell time.Duration, cause proto.Cause) {
	s.node.closeAll(s.disown(k, probe), cause)
	s.cur, s.probe, s.dwell, s.cause = k, probe, dwell, cause
	s.lateAt = s.node.now + s.node.timers.late
	s.closing = 0
	for _, k := range [2]int{k, probe} {
		if k != none {
			c := &s.list[k]
			c.on.owner = int8(s.id)
			s.node.drive(int(c.Bundle), c.Path, cause)
		}
	}
	s.become(proto.SideSwitch)
}

// work settles on candidate k, whose light has come.
func (s *side) work(k int, cause proto.Cause) {
	s.node.closeAll(s.disown(k, none), cause)
	s.cur, s.probe, s.cause = k, none, cause
	s.become(proto.SideWork)
	if s.asked.Kind == proto.ManualSwitch && k != s.home() {
		s.drop() // nobody answered there
	}
	if k != s.working {
		s.planAt = Never
	}
	s.lostAt, s.steadyAt = Never, s.node.now+s.node.timers.steady
	s.searchAt, s.searches, s.lag = Never, 0, 0
	s.stamps.Confirmed = s.node.now
	e := proto.Event{Kind: proto.EvSwitched, FromPath: s.fromPath, Cause: cause}
	if k == s.from {
		e.Kind, e.Cause = proto.EvLightFound, proto.CauseRetry
	}
	s.noteSide(e, s.stamps)
}

// close gives up: loopback is the last resort.
func (s *side) close(cause proto.Cause) {
	s.closing = s.disown(none, none)
	s.node.closeAll(s.closing, cause)
	if s.from == none {
		s.from = s.cur
	}
	s.cur, s.probe, s.cause = none, none, cause
	s.lateAt = s.node.now + s.node.timers.late
	s.become(proto.SideClosing)
}

// leave is close for a node that goes out of service; where its bundles go is
// for the caller to say.
func (s *side) leave() {
	s.planAt, s.follow = Never, false
	s.clear() // a node out of service has no sides to hold
	switch s.state {
	case proto.SideWork, proto.SideSwitch, proto.SideListen:
	default:
		return
	}
	s.closing = s.disown(none, none)
	s.from, s.cur, s.probe = s.cur, none, none
	s.lateAt = s.node.now + s.node.timers.late
	s.become(proto.SideClosing)
}

// disown gives up what the side has outside but for candidates k and probe,
// each or none, and says which bundles that was.
func (s *side) disown(k, probe int) (given uint16) {
	for b := range s.node.bundles {
		if x := &s.node.bundles[b]; x.owner == int8(s.id) && !s.uses(k, b) && !s.uses(probe, b) {
			x.owner = nobody
			given |= 1 << b
		}
	}
	return given
}

// uses tells whether candidate k, or none, goes over bundle b.
func (s *side) uses(k, b int) bool { return k != none && int(s.list[k].Bundle) == b }
