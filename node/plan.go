package node

import (
	"fmt"
	"slices"
	"strconv"

	"ringlight/proto"
)

// validate checks a desired state as a whole against this node.
func (m *Machine) validate(d *proto.Desired) *proto.Error {
	switch {
	case d.Term == 0 || d.Generation == 0:
		return proto.Wrong("generation", "over 0, as the term", "term %d, generation %d", d.Term, d.Generation)
	case len(d.Decisions) == 0:
		return proto.Wrong("decisions", "at least 1", "no ring on whose topic the decision comes")
	case len(d.Rings) > proto.MaxRings:
		return proto.Wrong("rings", "at most 1", "%d rings", len(d.Rings))
	case len(d.Rings) == 0:
		return nil
	case m.reasons&^noPlanner != 0:
		return m.outOfService("rings", "none")
	}
	r := &d.Rings[0]
	if r.Position >= r.Size {
		return proto.Wrong("rings[0].position", "under size", "position %d of %d", r.Position, r.Size)
	}
	if r.Policy > proto.PolicyHold {
		return proto.Wrong("rings[0].policy", "bypass or hold", "%s", r.Policy)
	}
	e := envelopeOf(r.Envelope)
	if err := check(e, derive(e)); err != nil {
		err.Field = "rings[0]." + err.Field
		return err
	}
	return m.validateLists(r)
}

func (m *Machine) validateLists(r *proto.RingAssignment) *proto.Error {
	var taken [proto.MaxBundles]uint8 // paths by bundle
	var use [2]int                    // bundle of each side's working candidate
	for i, list := range [2][]proto.Candidate{r.Left, r.Right} {
		name := "rings[0]." + proto.Side(i).String()
		use[i] = none - i
		if len(list) > proto.MaxCandidates {
			return proto.Wrong(name, "at most "+strconv.Itoa(proto.MaxCandidates), "%d candidates", len(list))
		}
		for k, c := range list {
			at := name + "[" + strconv.Itoa(k) + "]"
			switch {
			case int(c.Bundle) >= len(m.bundles):
				return proto.Wrong(at+".bundle", "under "+strconv.Itoa(len(m.bundles)), "bundle %d", c.Bundle)
			case !c.Path.External():
				return proto.Wrong(at+".path", "external1 or external2", "%s", c.Path)
			case taken[c.Bundle]&(1<<c.Path) != 0:
				return proto.Wrong(at, "each bundle and path once", "bundle %d %s again", c.Bundle, c.Path)
			case c.Peer == m.id:
				return proto.Wrong(at+".peer", "another node", "the node itself")
			case !m.bundles[c.Bundle].ready:
				return &proto.Error{Code: proto.NotCalibrated, Field: at + ".bundle",
					Reason: fmt.Sprintf("bundle %d cannot switch: ocs-agent status says why, ocs-agent calibrate calibrates it", c.Bundle)}
			}
			taken[c.Bundle] |= 1 << c.Path
		}
		if len(list) == 0 {
			continue
		}
		w := workingOf(r, i)
		if w >= len(list) {
			return proto.Wrong(name+"_working", "under "+strconv.Itoa(len(list)), "%d", w)
		}
		use[i] = int(list[w].Bundle)
	}
	if use[0] == use[1] {
		return proto.Wrong("rings[0].right_working", "another bundle than left_working", "both need bundle %d", use[0])
	}
	return nil
}

func workingOf(r *proto.RingAssignment, side int) int {
	return int([2]uint8{r.LeftWorking, r.RightWorking}[side])
}

// enact puts a committed generation into effect. A candidate that stays in
// use is not touched; the rest is in replan.
func (m *Machine) enact(h *Held) *proto.Error {
	if h != nil {
		m.applied, m.missed = h, 0
		m.setTimers()
		m.note(proto.Event{Kind: proto.EvApplied, Cause: proto.CausePlan})
		m.replan()
		m.save()
	}
	if m.ring() != nil && m.Mode() != proto.ModeService {
		return m.outOfService("", "")
	}
	return nil
}

// replan takes both sides to where the new plan wants them, and what they do
// not use into loopback.
func (m *Machine) replan() {
	var lost [2]bool
	for i := range m.sides {
		lost[i] = m.sides[i].relist()
	}
	for i := range m.sides {
		m.sides[i].replan(lost[i])
	}
	if m.Mode() != proto.ModeService {
		return
	}
	for b := range m.bundles {
		if m.bundles[b].owner == nobody {
			m.drive(b, proto.Loopback, proto.CausePlan)
		}
	}
}

// setTimers takes the times of a new ring, and tells when no hardware of its
// kind can recover within the target.
func (m *Machine) setTimers() {
	r := m.ring()
	if r == nil {
		return
	}
	m.ringTimers()
	probes := false
	for _, list := range [2][]proto.Candidate{r.Left, r.Right} {
		probes = probes || slices.ContainsFunc(list, func(c proto.Candidate) bool { return c.Bundle != list[0].Bundle })
	}
	if b := bound(envelopeOf(r.Envelope), m.timers, probes) + m.holdOff; b > recoveryTarget {
		m.missed = b
		m.note(proto.Event{Kind: proto.EvBoundNotMet, Severity: proto.SeverityWarning, Cause: proto.CausePlan,
			Text: "recovery takes up to " + micros(b)})
	}
}

// relist gives a side its new candidates and reports whether it was without
// light. The candidate in use it keeps where the new list has it too and its
// light, or the plan, speaks for it; other bundles it gives up, to be driven
// once both sides have chosen. A candidate's bad record stays unless the plan
// names it.
func (s *side) relist() (lost bool) {
	old, cur := s.list, s.cur
	lit := cur != none && s.lit(cur)
	lost = cur != none && !lit
	s.list, s.working, s.hold = nil, 0, false
	s.cur, s.probe, s.from = none, none, none
	if r := s.node.ring(); r != nil {
		s.working = workingOf(r, int(s.id))
		s.hold = r.Policy == proto.PolicyHold
		for k, c := range [2][]proto.Candidate{r.Left, r.Right}[s.id] {
			n := candidate{Candidate: c, on: &s.node.bundles[c.Bundle]}
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
	if s.asked.Kind != proto.NoRequest && (len(s.list) == 0 || s.home() == none && s.asked.Path != proto.Loopback) {
		s.drop() // its candidate is not in the ring any more
	}
	s.closing = s.disown(s.cur, none)
	return lost
}

// replan takes a side with a new list to where the plan wants it. A side that
// has light elsewhere in its ring stays with it for now, see runFollow; one
// that has not goes at once, and asks others only if it was searching before:
// while commits come in one by one, a silent planned peer is no loss.
func (s *side) replan(lost bool) {
	s.planAt, s.follow, s.asks = Never, false, maxAsks
	if len(s.list) == 0 {
		s.become(proto.SideEnd)
		return
	}
	if s.cur != none && s.state == proto.SideWork {
		if s.cur != s.working {
			s.follow = true
			if s.node.bypassSeq == s.node.applied.Desired.BypassSeq { // else the plan does not know why the side is here
				s.planAt = s.node.now + planWait
			}
		}
		return
	}
	s.follow = s.node.Mode() == proto.ModeService
	want := s.home()
	if want == none { // an operator wants it in loopback
		s.follow = false
		want = s.working
	}
	if s.cur == none && !(s.follow && s.free(want)) {
		s.planAt = s.node.now // where the other side still has the bundle: as soon as it is free
		switch s.state {
		case proto.SideEnd:
			s.become(proto.SideClosed)
		case proto.SideWork, proto.SideSwitch, proto.SideListen:
			s.cause, s.lateAt = proto.CausePlan, s.node.now+s.node.timers.late
			s.become(proto.SideClosing)
		}
		return
	}
	s.begin()
	s.from = none
	for k := range s.list {
		if lost && !s.hold && !s.tied() && k != want {
			s.queue(k)
		}
	}
	s.planAt = s.node.now + planWait
	s.goTo(want, none, s.node.timers.dwell, proto.CausePlan)
}
