package node

import (
	"time"

	"ringlight/proto"
)

// side is one end of the node in its ring.
type side struct {
	node  *shared
	id    proto.Side
	state proto.SideState // only become writes it
	since time.Duration

	list    []candidate   // nearest first
	hold    bool          // policy: act only when told
	asked   RequestRecord // of an operator
	working int           // as planned, index into list
	follow  bool          // the planned candidate has not held since the plan was committed
	cur     int           // in use or tried, none in loopback
	probe   int           // lit beside cur during a step

	search
	dwell   time.Duration // of the present step
	cause   proto.Cause   // of it
	closing uint16        // bundles on their way into loopback

	lostAt   time.Duration // light of cur lost and not searched for (hold)
	dwellAt  time.Duration
	graceAt  time.Duration
	lateAt   time.Duration
	steadyAt time.Duration
	planAt   time.Duration // go to the planned candidate without its light
	asks     int           // how often still
	searchAt time.Duration // closed, search again
	searches int           // how often still
	wait     time.Duration // before the next
	lag      time.Duration // by how much its node was late last, 0: not since it had light
	stamps   Stamps
}

const none = -1

// candidate is one way on, and how it has behaved.
type candidate struct {
	proto.Candidate
	on     *bundle // that it goes over
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
func (s *side) lit(k int) bool { return s.list[k].on.lit&s.list[k].bit() != 0 }

// degraded tells whether candidate k has a signal degrade.
func (s *side) degraded(k int) bool { return s.list[k].on.degraded&s.list[k].bit() != 0 }

func (c *candidate) bit() uint8 { return 1 << c.Path }

// steady tells whether candidate k has had light for so long.
func (s *side) steady(k int, long time.Duration) bool {
	return s.lit(k) && s.node.due(s.list[k].on.litAt[s.list[k].Path]+long)
}

// free tells whether the side may go to candidate k: a bundle belongs to the
// side that took it first.
func (s *side) free(k int) bool {
	b := s.list[k].on
	return !s.list[k].banned && b.ready && (b.owner == nobody || b.owner == int8(s.id))
}

// askedBy is the nearest free candidate but cur and probe whose light has
// lasted, or none.
func (s *side) askedBy() int {
	for k := range s.list {
		if k != s.cur && k != s.probe && (!s.hold && !s.tied() || k == s.home()) && s.lit(k) && s.free(k) && s.steady(k, persist) {
			return k
		}
	}
	return none
}

// run takes one step of a side's table and reports whether it moved.
func (s *side) run() bool {
	switch s.state {
	case proto.SideWork:
		return s.runWork()
	case proto.SideSwitch:
		return s.runSwitch()
	case proto.SideListen:
		return s.runListen()
	case proto.SideClosing:
		return s.runClosing()
	case proto.SideClosed:
		return s.runClosed()
	}
	return false // END: the bundle stays in loopback
}

// runWork: light of other candidates is ignored, whoever asks with it, but
// for the one that the last plan names.
func (s *side) runWork() bool {
	if !s.lit(s.cur) {
		if s.lostAt == Never {
			s.lose()
		}
		wait := s.node.holdOff
		if s.lostAt == s.node.toldLate { // told late: what is told next may be that it is back
			wait = max(wait, persist)
		}
		if s.hold || s.tied() || !s.node.due(s.lostAt+wait) {
			return false
		}
		if s.asked.Kind == proto.ManualSwitch {
			s.drop()
		}
		s.protect()
		return true
	}
	if s.lostAt != Never { // held, and the light is back
		s.stamps.Confirmed = s.node.now
		s.noteSide(proto.Event{Kind: proto.EvLightFound, Cause: proto.CauseNone}, s.stamps)
		s.lostAt, s.steadyAt = Never, s.node.now+s.node.timers.steady
	}
	if s.steadyAt != Never && s.node.due(s.steadyAt) {
		s.steadyAt = Never
		if s.cur == s.working {
			s.follow, s.planAt = false, Never
		}
		s.noteSide(proto.Event{Kind: proto.EvRestored, Cause: s.cause}, Stamps{})
	}
	return s.runDegraded() || s.runFollow() || s.runRestore()
}

// runFollow moves a side that works or is closed to the candidate that its
// plan names: as soon as that one's light shows, and after a while without
// it, since its other end may be waiting too - once from where it has light,
// a few times from loopback, where two ends can just miss each other. Until
// then both ends stay with what they have, so that it does not matter how far
// apart their commits come in.
func (s *side) runFollow() bool {
	if !s.follow || s.cur == s.working || s.home() != s.working || !s.free(s.working) {
		return false
	}
	asked := s.steady(s.working, persist)
	if !asked && (s.planAt == Never || !s.node.due(s.planAt)) {
		return false
	}
	s.asks--
	s.planAt = s.node.now + planWait<<(maxAsks-s.asks)
	if s.asks == 0 {
		s.planAt = Never
	}
	back, dwell := s.cur, s.node.timers.dwell
	s.begin()
	if back != none {
		s.queue(back)
	} else {
		dwell = max(dwell, s.lag)
	}
	s.goTo(s.working, none, dwell, proto.CausePlan)
	return true
}

// awaited is a bundle that the side waits for to settle, or none.
func (s *side) awaited() int {
	switch s.state {
	case proto.SideSwitch:
		for _, k := range [2]int{s.cur, s.probe} {
			if k != none && s.list[k].on.busy {
				return int(s.list[k].Bundle)
			}
		}
	case proto.SideClosing:
		for b := range s.node.bundles {
			if x := &s.node.bundles[b]; s.closing&(1<<b) != 0 && x.busy && x.owner == nobody {
				return b
			}
		}
	}
	return none
}

func (s *side) runSwitch() bool {
	if s.awaited() != none {
		return false
	}
	if s.stamps.Settled == 0 {
		s.stamps.Settled = s.node.now
	}
	s.dwellAt, s.graceAt = s.node.now+s.dwell, s.node.now+s.node.timers.grace
	s.become(proto.SideListen)
	return true
}

func (s *side) runListen() bool {
	if s.lit(s.cur) {
		s.work(s.cur, s.cause)
		return true
	}
	if s.probe != none && s.lit(s.probe) && s.node.due(s.graceAt) {
		s.work(s.probe, proto.CauseProbe)
		return true
	}
	if s.jumps < maxJumps {
		if k := s.askedBy(); k != none {
			s.jumps++
			s.goTo(k, none, s.node.timers.retry, proto.CauseGoToLight)
			return true
		}
	}
	if s.node.due(s.dwellAt) {
		if s.tied() { // told to be here, with light or without
			s.become(proto.SideWork)
			return true
		}
		s.step()
		return true
	}
	return false
}

func (s *side) runClosing() bool {
	if s.awaited() != none {
		return false
	}
	s.become(proto.SideClosed)
	if s.node.Mode() == proto.ModeService && s.cause != proto.CausePlan { // a plan's own way through loopback is no news
		s.noteSide(proto.Event{Kind: proto.EvClosed, Severity: proto.SeverityWarning, Path: proto.Loopback,
			FromPath: s.fromPath, Cause: s.cause}, Stamps{})
	}
	s.armRestore()
	return true
}

// runClosed: loopback and listening. Only a node in service listens.
func (s *side) runClosed() bool {
	if s.node.Mode() != proto.ModeService {
		return false
	}
	if k := s.askedBy(); k != none {
		s.begin()
		s.goTo(k, none, s.node.timers.answer, proto.CauseLateLight)
		return true
	}
	return s.runFollow() || s.runAgain()
}

// lose notes the loss of the light in use and counts it against its peer.
func (s *side) lose() {
	c := &s.list[s.cur]
	s.lostAt, s.steadyAt = s.node.now, Never
	s.stamps = Stamps{Lost: s.node.now, Decided: s.node.now}
	c.on.flaps++
	s.noteSide(proto.Event{Kind: proto.EvLightLost, Severity: proto.SeverityWarning, Cause: proto.CauseLightLost}, Stamps{})
	if c.lose(s.node.now) {
		s.noteSide(proto.Event{Kind: proto.EvBanned, Severity: proto.SeverityWarning, Cause: proto.CausePeerSilent}, Stamps{})
	}
}

// lift ends bans after steady light.
func (s *side) lift() {
	for k := range s.list {
		if c := &s.list[k]; c.banned && s.steady(k, banClear) {
			c.banned = false
			s.node.note(proto.Event{Kind: proto.EvBanned, Resolved: true, Side: s.id, Bundle: c.Bundle, Path: c.Path, Peer: c.Peer})
		}
	}
}

// noteSide notes something about the candidate in use.
func (s *side) noteSide(e proto.Event, st Stamps) {
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
	s.node.noteMove(e, st)
}
