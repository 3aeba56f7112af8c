package node

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// adopt takes the circuits as the hardware was found to carry them. What has
// light stays as it is, whatever the journal says; a change that the journal
// knows to have begun is completed. A board that could not be read (Text) is
// taken to do what it did, until it is Ready.
func (s *CrossConnect) adopt(ev *Event, now time.Duration) {
	found := ev.Circuits
	s.adopted = true
	s.reasons &^= ownFault
	if ev.Text != "" {
		s.reasons |= ownFault
	}
	s.take(found, now)
	lit := slices.ContainsFunc(found, func(r proto.CircuitReport) bool { return r.State != proto.Failed })
	s.amiss = ev.Lit && s.applied != nil
	s.out = s.watch(s.out)
	for _, r := range found {
		if r.State != proto.Failed || !s.planned(r.A, r.B) {
			continue
		}
		s.amiss = true
		if lit { // else EvStarted says that all are gone
			s.lose(&s.have[r.A], proto.EvAdopted, proto.SeverityCritical, proto.NoPower, "light does not show the circuit that the journal has", now)
		}
	}
	if s.moving {
		s.connect(now)
	}
}

func (s *CrossConnect) planned(a, b uint16) bool {
	return s.applied != nil && slices.ContainsFunc(s.applied.Desired.Circuits, func(c proto.Circuit) bool { return c.A == a && c.B == b })
}

// take replaces what is known of the circuits; their jobs are the plan's.
func (s *CrossConnect) take(found []proto.CircuitReport, now time.Duration) {
	before := slices.Clone(s.have)
	clear(s.have)
	clear(s.owner)
	for _, r := range found {
		if int(r.A) >= s.ports || int(r.B) >= s.ports {
			continue
		}
		r.Job = 0
		if was := &before[r.A]; was.used && was.r.B == r.B {
			r.Job = was.r.Job
		} else if s.applied != nil {
			for _, c := range s.applied.Desired.Circuits {
				if c.A == r.A && c.B == r.B {
					r.Job = c.Job
				}
			}
		}
		was := before[r.A]
		s.put(r, now)
		if x := &s.have[r.A]; was.lost && was.r.B == r.B {
			x.lost, x.kind, x.text = true, was.kind, was.text
			s.circuit(x.r, proto.NoPower, was.text, now)
		}
	}
}

// byHand takes circuits that somebody at the board has made. The next plan
// must know of it, and undoes what it does not want.
func (s *CrossConnect) byHand(now []proto.CircuitReport, at time.Duration) {
	s.take(now, at)
	s.bypassSeq++
	s.unsaved = true
	s.note(proto.Event{Kind: proto.EvSwitched, Severity: proto.SeverityWarning, Cause: proto.CauseOperator,
		Text: fmt.Sprintf("circuits changed by hand: %d now", len(now))}, at)
}

// circuit takes in how one circuit stands.
func (s *CrossConnect) circuit(r proto.CircuitReport, expected proto.MilliDBm, text string, now time.Duration) {
	if int(r.A) >= s.ports || !s.carries(r.A, r.B) {
		return
	}
	x := &s.have[r.A]
	if x.r.State != r.State {
		x.since = now
	}
	x.r.State, x.r.Loss = r.State, r.Loss
	x.again = 0
	if r.State == proto.Failed && s.planned(x.r.A, x.r.B) {
		x.again = now + min(againFirst<<min(x.tries, 10), againLast)
		x.tries++
	}
	switch {
	case r.State == proto.Tuned:
		x.proven, x.text, x.tries = true, "", 0
		if x.lost {
			x.lost = false
			s.note(x.event(proto.EvLightFound, proto.SeverityOK, expected, "", true), now)
		}
	case r.State == proto.Failed && x.proven:
		s.lose(x, proto.EvLightLost, proto.SeverityCritical, expected, text, now)
	case r.State == proto.Failed:
		s.lose(x, proto.EvPathFailed, proto.SeverityCritical, expected, text, now)
	case r.State == proto.Tuning && text != "": // no light comes in
		s.lose(x, proto.EvLightLost, proto.SeverityWarning, expected, text, now)
	}
}

// lose tells of a circuit without its light, once until it is found.
func (s *CrossConnect) lose(x *cross, kind proto.EventKind, severity proto.Severity, expected proto.MilliDBm, text string, now time.Duration) {
	x.text = proto.Clip(text)
	if x.lost {
		return
	}
	x.lost, x.kind = true, kind
	s.note(x.event(kind, severity, expected, x.text, false), now)
}

func (x *cross) event(kind proto.EventKind, severity proto.Severity, expected proto.MilliDBm, text string, resolved bool) proto.Event {
	return proto.Event{Kind: kind, Severity: severity, PortA: x.r.A, PortB: x.r.B, Job: x.r.Job, Measured: x.r.Loss, Expected: expected,
		Text: text, Resolved: resolved}
}

// tryAgain makes circuits of the plan anew that have failed.
func (s *CrossConnect) tryAgain(now time.Duration) {
	ch := &Change{Again: true}
	for a := range s.have {
		if x := &s.have[a]; x.again != 0 && x.again <= now {
			x.again, x.r.State, x.since = 0, proto.Tuning, now
			ch.Create = append(ch.Create, proto.Circuit{A: x.r.A, B: x.r.B, Job: x.r.Job})
		}
	}
	s.out = append(s.out, Action{Kind: Connect, Change: ch})
}

// Report fills in what the machine knows of a cross-connect's report; losses and
// everything about the agent itself are the agent's.
func (s *CrossConnect) Report(r *proto.Reported) {
	r.Version, r.Node = proto.Version, s.id
	r.Mode, r.SeenTerm, r.BypassSeq = s.Mode(), s.seenTerm, s.bypassSeq
	if !s.amiss {
		r.Term, r.Generation, r.Plan = s.applied.name()
	}
	r.StagedTerm, r.StagedGeneration, r.StagedPlan = s.staged.name()
	r.Circuits, r.Alarms = r.Circuits[:0], r.Alarms[:0]
	for a := range s.have {
		if x := &s.have[a]; x.used {
			r.Circuits = append(r.Circuits, x.r)
			if x.fresh && x.r.State == proto.Tuned {
				// Until it is on disk how its mirrors stand, a next life would
				// move them.
				r.Circuits[len(r.Circuits)-1].State = proto.Tuning
			}
			if x.lost && len(r.Alarms) < maxCircuitAlarms {
				r.Alarms = append(r.Alarms, proto.Alarm{Kind: x.kind, Severity: proto.SeverityCritical, SinceMicros: uint64(x.since.Microseconds()),
					Text: x.text, PortA: x.r.A, PortB: x.r.B})
			}
		}
	}
}

// maxCircuitAlarms bounds the alarms of a report. chosen: the states of the
// circuits say the rest.
const maxCircuitAlarms = 64
