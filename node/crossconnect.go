package node

import (
	"fmt"
	"strconv"
	"time"

	"ringlight/proto"
)

// CrossConnect is every decision of one optical cross-connect, a circuit
// switch of any make: which plan is in force, and
// what its mirrors are to do about it. It is a machine like Machine, of the
// same events and actions.
//
// A cross-connect protects nothing by itself, so it can afford what a node cannot: a
// committed change is on disk before the first mirror moves (Connect after
// Save). A life that ends before that leaves the old circuits, one that ends
// later is followed by one that completes the new ones; never half of each.
//
// Circuits of both the old and the new plan are never touched, nor are those
// that the hardware carries at a start. What a loss of power has taken is not
// lit out of the journal, which may be old: it says that its plan is
// not in effect, and the planner's decision, the same or another, brings it
// back.
type CrossConnect struct {
	fence
	now       time.Duration
	adopted   bool
	reasons   reason
	amiss     bool // the plan is not what outlived the time without an agent
	moving    bool // a committed change is not known to be over
	ports     int
	have      []cross // by port of side A
	owner     []int   // by port of side B: port of A + 1, 0 = none
	held      [2][]proto.Override
	bypassSeq uint64
	unsaved   bool
	out       []Action
}

// cross is a circuit that the mirrors make, or are on the way to.
type cross struct {
	used   bool
	r      proto.CircuitReport
	since  time.Duration // of the state
	proven bool          // by light, in this life
	fresh  bool          // of the change under way: no journal knows it yet
	lost   bool          // told as without its light
	tries  int           // since it failed
	again  time.Duration // when it is tried again, 0: not
	kind   proto.EventKind
	text   string // why it has failed
}

// A failed circuit is tried again: its ports are of no other use, mirrors have
// been seen to come free, and what light it has is kept by who tries. chosen:
// as often as the optics of a node are, and then seldom.
const (
	againFirst = 10 * time.Second
	againLast  = 5 * time.Minute
)

// NewCrossConnect returns one of so many ports on either side that has heard
// nothing yet.
func NewCrossConnect(id proto.NodeID, ports int) *CrossConnect {
	s := &CrossConnect{fence: fence{id: id}, reasons: unheard, ports: ports, have: make([]cross, ports), owner: make([]int, ports)}
	for i := range s.held {
		s.held[i] = make([]proto.Override, ports)
	}
	return s
}

// Restore gives a new one what its journal kept. It must come before Adopt.
func (s *CrossConnect) Restore(st State) {
	s.seenTerm, s.bypassSeq, s.moving = st.SeenTerm, st.BypassSeq, st.Moving
	s.applied, s.staged = st.Applied, st.Staged
	if s.applied != nil {
		s.reasons &^= unheard
	}
	for _, h := range st.Held {
		if int(h.Array) < len(s.held) && int(h.Port) < s.ports {
			s.held[h.Array][h.Port] = h.Override
		}
	}
}

// State is what must survive a crash; it shares the plans with the machine,
// which never changes them.
func (s *CrossConnect) State() State {
	st := State{SeenTerm: s.seenTerm, Applied: s.applied, Staged: s.staged, BypassSeq: s.bypassSeq, Reasons: uint8(s.reasons), Moving: s.moving}
	for side := range s.held {
		for p, o := range s.held[side] {
			if o != proto.Normal {
				st.Held = append(st.Held, HeldPort{Array: uint8(side), Port: uint16(p), Override: o})
			}
		}
	}
	return st
}

// Mode is the standing of the cross-connect.
func (s *CrossConnect) Mode() proto.Mode { return s.reasons.mode() }

// Next is the time of the next due timer, or Never.
func (s *CrossConnect) Next() time.Duration {
	next := Never
	if !s.adopted || s.amiss || s.reasons&ownFault != 0 {
		return next
	}
	for a := range s.have {
		if x := &s.have[a]; x.again != 0 {
			next = min(next, x.again)
		}
	}
	return next
}

// Overridden is an operator's hold on a port of an array.
func (s *CrossConnect) Overridden(array, port int) proto.Override { return s.held[array][port] }

// Planned tells whether a planner's generation is in force.
func (s *CrossConnect) Planned() bool { return s.applied != nil }

// Step takes one event and appends what is to be done about it, in order.
func (s *CrossConnect) Step(ev Event, out []Action) []Action {
	s.now = max(s.now, ev.At)
	s.out = out
	s.handle(&ev, s.now)
	if s.Next() <= s.now {
		s.tryAgain(s.now)
	}
	if s.unsaved {
		s.save()
	}
	out, s.out = s.out, nil
	return out
}

func (s *CrossConnect) handle(ev *Event, now time.Duration) {
	switch ev.Kind {
	case Adopt, Ready:
		s.adopt(ev, now)
	case Unready:
		if s.reasons&ownFault == 0 {
			s.reasons |= ownFault
			s.note(proto.Event{Kind: proto.EvIsolated, Severity: proto.SeverityCritical, Cause: proto.CauseOwnFault, Text: ev.Text}, now)
		}
	case Stage:
		s.stage(ev.Desired, ev.Digest, now)
	case Decide:
		s.decide(ev.Decision, now)
	case DropStaged:
		if ev.Term >= s.seenTerm && s.staged != nil {
			s.staged = nil
			s.save()
			s.out = s.watch(s.out)
		}
	case HeardTerm:
		s.hear(ev.Term)
	case Circuit:
		for _, r := range ev.Circuits {
			s.circuit(r, ev.Expected, ev.Text, now)
		}
	case Switched:
		if s.moving {
			s.moving, s.unsaved = false, true
			for a := range s.have {
				s.have[a].fresh = false
			}
		}
	case Hold:
		if int(ev.Array) < len(s.held) && int(ev.Port) < s.ports && s.held[ev.Array][ev.Port] != ev.Override {
			s.held[ev.Array][ev.Port] = ev.Override
			s.bypassSeq++
			s.unsaved = true
		}
	case ByHand:
		s.byHand(ev.Circuits, now)
	}
}

// hear takes note of a planner's term.
func (s *CrossConnect) hear(t proto.Term) {
	if t == 0 || t < s.seenTerm {
		return
	}
	if t > s.seenTerm {
		s.seenTerm, s.unsaved = t, true
	}
	s.reasons &^= unheard
}

func (s *CrossConnect) save() {
	s.unsaved = false
	s.out = append(s.out, Action{Kind: Save})
}

func (s *CrossConnect) note(e proto.Event, now time.Duration) {
	e.Version, e.Node, e.Count = proto.Version, s.id, 1
	e.AtMicros = uint64(now.Microseconds())
	e.FirstMicros = e.AtMicros
	if e.Measured == 0 && e.Expected == 0 {
		e.Measured, e.Expected = proto.NoPower, proto.NoPower
	}
	e.BypassSeq = s.bypassSeq
	if s.applied != nil {
		e.Generation = s.applied.Desired.Generation
	}
	s.out = append(s.out, Action{Kind: Note, Cause: e.Cause, Note: e})
}

func (s *CrossConnect) answer(p proto.Phase, t proto.Term, g proto.Generation, plan proto.Digest, err *proto.Error) {
	a := s.ack(p, t, g, plan, err)
	if a.Code == proto.Conflict {
		a.BypassSeq = s.bypassSeq
	}
	s.out = append(s.out, Action{Kind: Answer, Ack: a})
}

// stage takes a desired state: whole and valid, or not at all. It moves no
// mirror and has no deadline: without a decision the old circuits stay.
func (s *CrossConnect) stage(d *proto.Desired, digest proto.Digest, now time.Duration) {
	if d == nil {
		return
	}
	held, err := s.admit(d, digest, now)
	if s.adopted && d.Node == s.id {
		s.hear(d.Term)
	}
	if err == nil && held == nil {
		s.staged = &Held{Desired: *d, Digest: digest}
		s.bypassSeq = max(s.bypassSeq, d.BypassSeq) // an unsaved tail may have been lost
		s.save()
		s.out = s.watch(s.out)
	}
	s.answer(proto.PhasePrepare, d.Term, d.Generation, d.Plan, err)
	if err == nil {
		s.decide(s.overdue(), now)
	}
}

func (s *CrossConnect) admit(d *proto.Desired, digest proto.Digest, now time.Duration) (held *Held, err *proto.Error) {
	if !s.adopted {
		return nil, errBusy
	}
	held, err = s.judge(d, digest)
	switch {
	case err == errSplit:
		s.contradict(held, d.Plan, now)
		return nil, err
	case err != nil || held != nil:
		return held, err
	}
	if d.BypassSeq < s.bypassSeq {
		return nil, errMoved(s.bypassSeq)
	}
	return nil, s.validate(d)
}

func (s *CrossConnect) contradict(ours *Held, theirs proto.Digest, now time.Duration) {
	if e, news := s.splitBrain(ours.Desired.Plan, theirs); news {
		s.note(e, now)
	}
}

// validate checks a desired state as a whole against this cross-connect.
func (s *CrossConnect) validate(d *proto.Desired) *proto.Error {
	bad := func(field, limit, format string, args ...any) *proto.Error {
		return &proto.Error{Code: proto.Invalid, Field: field, Limit: limit, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case d.Term == 0 || d.Generation == 0:
		return bad("generation", "over 0, as the term", "term %d, generation %d", d.Term, d.Generation)
	case len(d.Decisions) == 0:
		return bad("decisions", "at least 1", "no group on whose topic the decision comes")
	case len(d.Rings) > 0:
		return bad("rings", "none for a switch", "%d rings", len(d.Rings))
	case len(d.Circuits) > 0 && s.reasons&ownFault != 0:
		return &proto.Error{Code: proto.HardwareFailed, Field: "circuits", Limit: "none", Reason: "the switch does not answer its agent"}
	}
	under := "under " + strconv.Itoa(s.ports)
	used := [2][]bool{make([]bool, s.ports), make([]bool, s.ports)}
	for i := range d.Circuits {
		c := &d.Circuits[i]
		for side, port := range [2]uint16{c.A, c.B} {
			at := func() string { return "circuits[" + strconv.Itoa(i) + "]." + string("ab"[side]) }
			switch {
			case int(port) >= s.ports:
				return bad(at(), under, "port %d", port)
			case used[side][port]:
				return bad(at(), "each port once", "port %d twice", port)
			case s.held[side][port] != proto.Normal && !s.carries(c.A, c.B):
				// A circuit that is there keeps its place in every plan, or the
				// hold would stop all changes of this one.
				return &proto.Error{Code: proto.HardwareFailed, Field: at(), Limit: "a port that nobody holds",
					Reason: fmt.Sprintf("port %d is held: %s", port, s.held[side][port])}
			}
			used[side][port] = true
		}
	}
	return nil
}

func (s *CrossConnect) carries(a, b uint16) bool { return s.have[a].used && s.have[a].r.B == b }

// decide settles a generation. It may come before the desired state, twice,
// or too late.
func (s *CrossConnect) decide(d *proto.Decision, now time.Duration) {
	if d == nil {
		return
	}
	err := errBusy
	if s.adopted {
		var rival *Held
		if rival, err = s.weigh(d); rival != nil {
			s.contradict(rival, d.Plan, now)
		}
		s.hear(d.Term)
	}
	switch {
	case err != nil:
	case s.staged.compare(d.Term, d.Generation) == 0:
		held := s.staged
		s.staged = nil
		if d.Verdict == proto.Commit {
			s.applied, s.moving = held, true
			s.note(proto.Event{Kind: proto.EvApplied, Cause: proto.CausePlan}, now)
		}
		s.save()
		if d.Verdict == proto.Commit {
			s.connect(now)
		}
		s.out = s.watch(s.out)
	case d.Verdict == proto.Commit && s.amiss:
		s.moving = true
		s.save()
		s.connect(now)
	}
	if err == nil && d.Verdict == proto.Commit && s.reasons&ownFault != 0 {
		err = &proto.Error{Code: proto.HardwareFailed, Reason: "the switch does not answer its agent"}
	}
	s.answer(proto.PhaseCommit, d.Term, d.Generation, d.Plan, err)
}

// connect makes the circuits those of the plan in force: what is in both is
// left alone, but for what has failed, which is tried again.
func (s *CrossConnect) connect(now time.Duration) {
	if s.reasons&ownFault != 0 {
		return // when the board answers again
	}
	s.amiss = false
	want := make([]int, s.ports) // port of B + 1, by port of A
	for _, c := range s.applied.Desired.Circuits {
		want[c.A] = int(c.B) + 1
	}
	ch := &Change{}
	for a := range s.have {
		if x := &s.have[a]; x.used && want[a] != int(x.r.B)+1 {
			ch.Remove = append(ch.Remove, proto.Circuit{A: x.r.A, B: x.r.B, Job: x.r.Job})
			s.drop(uint16(a))
		}
	}
	for _, c := range s.applied.Desired.Circuits {
		x := &s.have[c.A]
		if x.used && x.r.State != proto.Failed {
			x.r.Job = c.Job // it may have been handed to another job as it is
			continue
		}
		ch.Create = append(ch.Create, c)
		s.put(proto.CircuitReport{A: c.A, B: c.B, Job: c.Job, State: proto.Tuning, Loss: proto.NoPower}, now)
		s.have[c.A].fresh = true
	}
	// Also when nothing is to be moved: it is how the end of the change is
	// found.
	s.out = append(s.out, Action{Kind: Connect, Change: ch})
}

func (s *CrossConnect) put(r proto.CircuitReport, now time.Duration) {
	if a := s.owner[r.B]; a > 0 && a != int(r.A)+1 {
		s.drop(uint16(a - 1))
	}
	s.drop(r.A)
	s.have[r.A] = cross{used: true, r: r, since: now, proven: r.State == proto.Tuned}
	s.owner[r.B] = int(r.A) + 1
}

func (s *CrossConnect) drop(a uint16) {
	if x := &s.have[a]; x.used {
		s.owner[x.r.B] = 0
		*x = cross{}
	}
}
