package node

import (
	"fmt"
	"strconv"
	"time"

	"ringlight/proto"
)

func (m *Machine) answer(p proto.Phase, t proto.Term, g proto.Generation, plan proto.Digest, err *proto.Error) {
	a := m.ack(p, t, g, plan, err)
	if a.Code == proto.Conflict {
		a.BypassSeq = m.bypassSeq
	}
	m.out = append(m.out, Action{Kind: Answer, Ack: a})
}

// stage takes a desired state: whole and valid, or not at all. It changes no
// light and has no deadline: without a decision the old state stays.
func (m *Machine) stage(d *proto.Desired, digest proto.Digest, now time.Duration) {
	if d == nil {
		return
	}
	err := m.admit(d, digest, now)
	if m.adopted && d.Node == m.id {
		m.hear(d.Term, now)
	}
	if err == nil && m.applied.compare(d.Term, d.Generation) != 0 && m.staged.compare(d.Term, d.Generation) != 0 {
		m.staged = &Held{Desired: *d, Digest: digest}
		m.bypassSeq = max(m.bypassSeq, d.BypassSeq) // an unsaved tail may have been lost
		m.save()
		m.out = m.watch(m.out)
	}
	m.answer(proto.PhasePrepare, d.Term, d.Generation, d.Plan, err)
	if err == nil {
		m.decide(m.overdue(), now)
	}
}

// admit says why a desired state cannot be staged, or nil.
func (m *Machine) admit(d *proto.Desired, digest proto.Digest, now time.Duration) *proto.Error {
	if !m.adopted {
		return errBusy
	}
	held, err := m.judge(d, digest)
	switch {
	case err == errSplit:
		m.contradict(held.Desired.Plan, d.Plan, now)
		return err
	case err != nil || held != nil:
		return err
	}
	if d.BypassSeq < m.bypassSeq {
		return errMoved(m.bypassSeq)
	}
	return m.validate(d)
}

// contradict tells of two planners with one term.
func (m *Machine) contradict(ours, theirs proto.Digest, now time.Duration) {
	if e, news := m.splitBrain(ours, theirs); news {
		m.note(e, now)
	}
}

// validate checks a desired state as a whole against this node.
func (m *Machine) validate(d *proto.Desired) *proto.Error {
	bad := func(field, limit, format string, args ...any) *proto.Error {
		return &proto.Error{Code: proto.Invalid, Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case d.Term == 0 || d.Generation == 0:
		return bad("generation", "over 0, as the term", "term %d, generation %d", d.Term, d.Generation)
	case len(d.Decisions) == 0:
		return bad("decisions", "at least 1", "no ring on whose topic the decision comes")
	case len(d.Rings) > proto.MaxRings:
		return bad("rings", "at most 1", "%d rings", len(d.Rings))
	case len(d.Rings) == 0:
		return nil
	case m.reasons&^unheard != 0:
		return &proto.Error{Code: proto.HardwareFailed, Field: "rings", Limit: "none",
			Reason: "the node is out of service: " + m.Mode().String()}
	}
	r := &d.Rings[0]
	if r.Position >= r.Size {
		return bad("rings[0].position", "under size", "position %d of %d", r.Position, r.Size)
	}
	if r.Policy > proto.PolicyHold {
		return bad("rings[0].policy", "bypass or hold", "%s", r.Policy)
	}
	e := envelopeOf(r.Envelope)
	if err := check(e, derive(e)); err != nil {
		err.Field = "rings[0]." + err.Field
		return err
	}
	return m.validateLists(r, bad)
}

func (m *Machine) validateLists(r *proto.RingAssignment, bad func(string, string, string, ...any) *proto.Error) *proto.Error {
	var taken [proto.MaxBundles]uint8 // paths by bundle
	var use [2]int                    // bundle of each side's working candidate
	for i, list := range [2][]proto.Candidate{r.Left, r.Right} {
		name := "rings[0]." + proto.Side(i).String()
		use[i] = none - i
		if len(list) > proto.MaxCandidates {
			return bad(name, "at most "+strconv.Itoa(proto.MaxCandidates), "%d candidates", len(list))
		}
		for k, c := range list {
			at := name + "[" + strconv.Itoa(k) + "]"
			switch {
			case int(c.Bundle) >= len(m.bundles):
				return bad(at+".bundle", "under "+strconv.Itoa(len(m.bundles)), "bundle %d", c.Bundle)
			case !c.Path.External():
				return bad(at+".path", "external1 or external2", "%s", c.Path)
			case taken[c.Bundle]&(1<<c.Path) != 0:
				return bad(at, "each bundle and path once", "bundle %d %s again", c.Bundle, c.Path)
			case c.Peer == m.id:
				return bad(at+".peer", "another node", "the node itself")
			case !m.bundles[c.Bundle].ready:
				return &proto.Error{Code: proto.NotCalibrated, Field: at + ".bundle",
					Reason: fmt.Sprintf("bundle %d cannot switch", c.Bundle)}
			}
			taken[c.Bundle] |= 1 << c.Path
		}
		if len(list) == 0 {
			continue
		}
		w := workingOf(r, i)
		if w >= len(list) {
			return bad(name+"_working", "under "+strconv.Itoa(len(list)), "%d", w)
		}
		use[i] = int(list[w].Bundle)
	}
	if use[0] == use[1] {
		return bad("rings[0].right_working", "another bundle than left_working", "both need bundle %d", use[0])
	}
	return nil
}

func workingOf(r *proto.RingAssignment, side int) int {
	return int([2]uint8{r.LeftWorking, r.RightWorking}[side])
}

// decide settles a generation. It may come before the desired state, twice,
// or too late.
func (m *Machine) decide(d *proto.Decision, now time.Duration) {
	if d == nil {
		return
	}
	err := errBusy
	if m.adopted {
		var rival *Held
		if rival, err = m.weigh(d); rival != nil {
			m.contradict(rival.Desired.Plan, d.Plan, now)
		}
		m.hear(d.Term, now)
	}
	if err == nil && m.staged.compare(d.Term, d.Generation) == 0 {
		held := m.staged
		m.staged = nil
		if d.Verdict == proto.Commit {
			m.apply(held, now)
		}
		m.save()
		m.out = m.watch(m.out)
	}
	if err == nil && d.Verdict == proto.Commit && m.ring != nil && m.Mode() != proto.ModeService {
		err = &proto.Error{Code: proto.HardwareFailed, Reason: "the node is out of service: " + m.Mode().String()}
	}
	m.answer(proto.PhaseCommit, d.Term, d.Generation, d.Plan, err)
}

// apply puts a committed generation into effect. A candidate that stays in
// use is not touched; the rest is in replan.
func (m *Machine) apply(h *Held, now time.Duration) {
	m.applied, m.ring = h, nil
	m.missed = 0
	if len(h.Desired.Rings) > 0 {
		m.ring = &h.Desired.Rings[0]
		m.setTimers(now)
	}
	m.note(proto.Event{Kind: proto.EvApplied, Cause: proto.CausePlan}, now)
	var lost [2]bool
	for i := range m.sides {
		lost[i] = m.relist(&m.sides[i])
	}
	for i := range m.sides {
		m.replan(&m.sides[i], lost[i], now)
	}
	if m.Mode() != proto.ModeService {
		return
	}
	for b := range m.bundles {
		if m.bundles[b].owner == nobody {
			m.drive(b, proto.Loopback, proto.CausePlan, now)
		}
	}
}

// deriveTimers takes what the ring says of times.
func (m *Machine) deriveTimers() {
	m.timers = derive(envelopeOf(m.ring.Envelope))
	m.holdOff = time.Duration(m.ring.HoldOffMicros) * time.Microsecond
	m.restore = time.Duration(m.ring.WaitToRestoreMillis) * time.Millisecond
}

func (m *Machine) setTimers(now time.Duration) {
	m.deriveTimers()
	probes := false
	for _, list := range [2][]proto.Candidate{m.ring.Left, m.ring.Right} {
		for _, c := range list {
			probes = probes || c.Bundle != list[0].Bundle
		}
	}
	if b := bound(envelopeOf(m.ring.Envelope), m.timers, probes) + m.holdOff; b > recoveryTarget {
		m.missed = b
		m.note(proto.Event{Kind: proto.EvBoundNotMet, Severity: proto.SeverityWarning, Cause: proto.CausePlan,
			Text: "recovery takes up to " + micros(b)}, now)
	}
}

// relist gives a side its new candidates and reports whether it was without
// light. The candidate in use it keeps where the new list has it too and its
// light, or the plan, speaks for it; other bundles it gives up, to be driven
// once both sides have chosen. A candidate's bad record stays unless the plan
// names it.
func (m *Machine) relist(s *side) (lost bool) {
	old, cur := s.list, s.cur
	lit := cur != none && m.lit(s, cur)
	lost = cur != none && !lit
	s.list, s.working, s.hold = nil, 0, false
	s.cur, s.probe, s.from = none, none, none
	if m.ring != nil {
		s.working = workingOf(m.ring, int(s.id))
		s.hold = m.ring.Policy == proto.PolicyHold
		for k, c := range [2][]proto.Candidate{m.ring.Left, m.ring.Right}[s.id] {
			n := candidate{Candidate: c}
			for i := range old {
				if old[i].Bundle != c.Bundle || old[i].Path != c.Path || old[i].Peer != c.Peer {
					continue
				}
				n.banned, n.losses, n.count = old[i].banned, old[i].losses, old[i].count
				if i == cur && (k == s.working || s.state == proto.SideWork && (lit || s.tied())) {
					s.cur = k
				}
			}
			if k == s.working {
				n.banned, n.count = false, 0
			}
			s.list = append(s.list, n)
		}
	}
	if s.asked.kind != proto.NoRequest && (len(s.list) == 0 || s.home() == none && s.asked.path != proto.Loopback) {
		m.drop(s, m.now) // its candidate is not in the ring any more
	}
	s.closing = 0
	for b := range m.bundles {
		if m.bundles[b].owner == int8(s.id) && !s.uses(s.cur, b) {
			m.bundles[b].owner = nobody
			s.closing |= 1 << b
		}
	}
	return lost
}

// replan takes a side with a new list to where the plan wants it. A side that
// has light elsewhere in its ring stays with it for now, see runFollow; one
// that has not goes at once, and asks others only if it was searching before:
// while commits come in one by one, a silent planned peer is no loss.
func (m *Machine) replan(s *side, lost bool, now time.Duration) {
	s.planAt, s.follow, s.asks = Never, false, maxAsks
	if len(s.list) == 0 {
		s.become(proto.SideEnd, now)
		return
	}
	if s.cur != none && s.state == proto.SideWork {
		if s.cur != s.working {
			s.follow = true
			if m.bypassSeq == m.applied.Desired.BypassSeq { // else the plan does not know why the side is here
				s.planAt = now + planWait
			}
		}
		return
	}
	s.follow = m.Mode() == proto.ModeService
	want := s.home()
	if want == none { // an operator wants it in loopback
		s.follow = false
		want = s.working
	}
	if s.cur == none {
		switch s.state {
		case proto.SideEnd:
			if !s.follow || !m.free(s, want) {
				s.become(proto.SideClosed, now)
			}
		case proto.SideWork, proto.SideSwitch, proto.SideListen:
			if !s.follow || !m.free(s, want) {
				s.cause, s.stuckAt = proto.CausePlan, now+m.timers.stuck
				s.become(proto.SideClosing, now)
			}
		}
		s.planAt = now // where the other side still has the bundle: as soon as it is free
		if !s.follow || !m.free(s, want) {
			return
		}
	}
	m.begin(s, now)
	s.from = none
	for k := range s.list {
		if lost && !s.hold && !s.tied() && k != want {
			s.queue(k)
		}
	}
	s.planAt = now + planWait
	m.goTo(s, want, none, m.timers.dwell, proto.CausePlan, now)
}
