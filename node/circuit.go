package node

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// circuit is one that the mirrors make, or are on the way to.
type circuit struct {
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
// been seen to come free, and the caller that tries keeps what light it has. chosen:
// as often as the optics of a node are, and then seldom.
const (
	againFirst = 10 * time.Second
	againLast  = 5 * time.Minute
)

// maxCircuitAlarms bounds the alarms of a report. chosen: the states of the
// circuits say the rest.
const maxCircuitAlarms = 64

func (c *circuit) name() proto.Circuit { return proto.Circuit{A: c.r.A, B: c.r.B, Job: c.r.Job} }

func (c *circuit) event(kind proto.EventKind, severity proto.Severity, expected proto.MilliDBm, text string, resolved bool) proto.Event {
	return proto.Event{Kind: kind, Severity: severity, PortA: c.r.A, PortB: c.r.B, Job: c.r.Job.Planned(), Measured: c.r.Loss, Expected: expected,
		Text: text, Resolved: resolved}
}

func (x *CrossConnect) carries(a, b uint16) bool {
	return x.circuits[a].used && x.circuits[a].r.B == b
}

func (x *CrossConnect) put(r proto.CircuitReport) {
	if a := x.owner[r.B]; a > 0 && a != int(r.A)+1 {
		x.drop(uint16(a - 1))
	}
	x.drop(r.A)
	x.circuits[r.A] = circuit{used: true, r: r, since: x.now, proven: r.State == proto.Tuned}
	x.owner[r.B] = int(r.A) + 1
}

func (x *CrossConnect) drop(a uint16) {
	if c := &x.circuits[a]; c.used {
		x.owner[c.r.B] = 0
		*c = circuit{}
	}
}

// adopt takes the circuits as the hardware was found to carry them. What has
// light stays as it is, whatever the journal says; a change that this life was
// told to make is completed. A board that could not be read (Text) is taken to
// do what it did, until it is Ready.
func (x *CrossConnect) adopt(ev *Event) {
	found := ev.Circuits
	x.adopted = true
	x.reasons &^= ownFault
	if ev.Text != "" {
		x.reasons |= ownFault
	}
	before := slices.Clone(x.circuits)
	x.take(found)
	lit := slices.ContainsFunc(found, func(r proto.CircuitReport) bool { return r.State != proto.Failed })
	asPlanned := !ev.Lit || x.applied == nil
	x.watch()
	for _, r := range found {
		if r.State != proto.Failed || x.planned(r.A, r.B) == nil {
			continue
		}
		asPlanned = false
		if lit { // else EvStarted says that all are gone
			x.lose(&x.circuits[r.A], proto.EvAdopted, proto.SeverityCritical, proto.NoPower, "light does not show the circuit that the journal has")
		}
	}
	gone := x.gone()
	if ev.Text != "" {
		gone = nil // nobody knows
	}
	for _, c := range gone { // what a switch that keeps its circuits itself came back without
		asPlanned = asPlanned && x.state == crossSettled && before[c.A].used && before[c.A].r.B == c.B
	}
	was := x.state
	x.become(was.found(ev.Text == "", asPlanned))
	if x.state == crossSettled {
		x.miss(gone, before, "the switch came back without it")
	}
	if was == crossUnfinished && x.state == crossDiffers {
		x.note(proto.Event{Kind: proto.EvAdopted, Severity: proto.SeverityWarning, Cause: proto.CauseAdopted,
			Text: "the journal is of the middle of a change: what light there is stays, until a planner commits to this plan again or to another"})
	}
	if x.state.changing() {
		x.connect()
	}
}

// gone are the circuits of the plan in force that are not there.
func (x *CrossConnect) gone() []proto.Circuit {
	if x.applied == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(x.applied.Desired.Circuits), func(c proto.Circuit) bool { return x.carries(c.A, c.B) })
}

// Knows tells whether all circuits that were found are known, but for those at whose ports
// others are wanted.
func (x *CrossConnect) Knows(found []proto.CircuitReport) bool {
	return !slices.ContainsFunc(found, func(r proto.CircuitReport) bool { return !x.circuits[r.A].used && x.owner[r.B] == 0 })
}

// miss takes those that were there before for failed: they are tried again.
func (x *CrossConnect) miss(gone []proto.Circuit, before []circuit, why string) {
	for _, c := range gone {
		if was := before[c.A]; was.used && was.r.B == c.B {
			x.put(proto.CircuitReport{A: c.A, B: c.B, Job: c.Job, State: proto.Failed, Loss: proto.NoPower})
			is := &x.circuits[c.A]
			is.proven, is.tries, is.lost, is.kind = was.proven, was.tries, was.lost, was.kind
			x.observe(is.r, proto.NoPower, why)
		}
	}
}

// Vouched tells whether the plan in force is known to be what the hardware
// carries.
func (x *CrossConnect) Vouched() bool { return x.state == crossUnread || x.state == crossSettled }

// Untouched tells whether a circuit that the journal's light has is there for all
// the journal knows: a change that may have begun does without all others, but for those
// by hand at ports that it has no use for, and light at a port does not tell where it comes from.
func (x *CrossConnect) Untouched(a, b uint16) bool {
	if !x.Vouched() && x.applied != nil {
		for _, c := range x.applied.Desired.Circuits {
			if c.A == a || c.B == b {
				return c.A == a && c.B == b
			}
		}
	}
	return x.Vouched() || slices.Contains(x.hand, proto.Circuit{A: a, B: b, Job: proto.ByHand})
}

// planned is the circuit of the plan in force that joins two ports, or nil.
func (x *CrossConnect) planned(a, b uint16) *proto.Circuit {
	if x.applied == nil {
		return nil
	}
	list := x.applied.Desired.Circuits
	if i := slices.IndexFunc(list, func(c proto.Circuit) bool { return c.A == a && c.B == b }); i >= 0 {
		return &list[i]
	}
	return nil
}

// take replaces what is known of the circuits; their jobs are the plan's.
func (x *CrossConnect) take(found []proto.CircuitReport) {
	before := slices.Clone(x.circuits)
	clear(x.circuits)
	clear(x.owner)
	for _, r := range found {
		if int(r.A) >= x.ports || int(r.B) >= x.ports {
			continue
		}
		r.Job = 0
		was := before[r.A]
		if was.used && was.r.B == r.B {
			r.Job = was.r.Job
		} else if slices.Contains(x.hand, proto.Circuit{A: r.A, B: r.B, Job: proto.ByHand}) {
			r.Job = proto.ByHand
		} else if c := x.planned(r.A, r.B); c != nil {
			r.Job = c.Job
		}
		x.put(r)
		if c := &x.circuits[r.A]; was.lost && was.r.B == r.B {
			c.lost, c.kind, c.text = true, was.kind, was.text
			x.observe(c.r, proto.NoPower, was.text)
		}
	}
}

// byHand takes circuits that somebody at the board has made. The next plan
// must know of it, and undoes what it does not want, but for what stays and is not in its way. What is gone and nobody took away
// through us (why) is wanted still.
func (x *CrossConnect) byHand(found []proto.CircuitReport, why string, stays bool) {
	before := slices.Clone(x.circuits)
	x.take(found)
	for a := range x.circuits {
		if c := &x.circuits[a]; stays && c.used && c.r.Job == 0 && x.planned(c.r.A, c.r.B) == nil && !(before[a].used && before[a].r.B == c.r.B) {
			c.r.Job = proto.ByHand
		}
	}
	if why != "" {
		x.miss(x.gone(), before, why)
	}
	x.bypassSeq++
	x.unsaved = true
	x.note(proto.Event{Kind: proto.EvSwitched, Severity: proto.SeverityWarning, Cause: proto.CauseOperator,
		Text: fmt.Sprintf("circuits changed by hand: %d now", len(found))})
}

// observe takes in how one circuit stands.
func (x *CrossConnect) observe(r proto.CircuitReport, expected proto.MilliDBm, text string) {
	if int(r.A) >= x.ports || !x.carries(r.A, r.B) {
		return
	}
	c := &x.circuits[r.A]
	if c.r.State != r.State {
		c.since = x.now
	}
	c.r.State, c.r.Loss = r.State, r.Loss
	c.again = 0
	if r.State == proto.Failed && x.planned(c.r.A, c.r.B) != nil {
		c.again = x.now + min(againFirst<<min(c.tries, 10), againLast)
		c.tries++
	}
	switch {
	case r.State.Lit():
		c.proven, c.text, c.tries = c.proven || r.State == proto.Tuned, "", 0
		if c.lost {
			c.lost = false
			x.note(c.event(proto.EvLightFound, proto.SeverityOK, expected, "", true))
		}
	case r.State == proto.Failed && c.proven:
		x.lose(c, proto.EvLightLost, proto.SeverityCritical, expected, text)
	case r.State == proto.Failed:
		x.lose(c, proto.EvPathFailed, proto.SeverityCritical, expected, text)
	case r.State == proto.Tuning && text != "": // no light comes in
		x.lose(c, proto.EvLightLost, proto.SeverityWarning, expected, text)
	}
}

// lose tells of a circuit without its light, once until it is found.
func (x *CrossConnect) lose(c *circuit, kind proto.EventKind, severity proto.Severity, expected proto.MilliDBm, text string) {
	c.text = proto.Clip(text)
	if c.lost {
		return
	}
	c.lost, c.kind = true, kind
	x.note(c.event(kind, severity, expected, c.text, false))
}

// tryAgain makes circuits of the plan anew that have failed.
func (x *CrossConnect) tryAgain() {
	ch := &Change{Again: true}
	for a := range x.circuits {
		if c := &x.circuits[a]; c.again != 0 && c.again <= x.now {
			c.again, c.r.State, c.since = 0, proto.Tuning, x.now
			ch.Create = append(ch.Create, c.name())
		}
	}
	x.out = append(x.out, Action{Kind: Connect, Change: ch})
}

// Report fills in what the machine knows of its report; losses and everything
// about the agent itself are the agent's.
func (x *CrossConnect) Report(r *proto.Reported) {
	x.report(r, x.state.inEffect())
	r.Circuits, r.Alarms = r.Circuits[:0], r.Alarms[:0]
	for a := range x.circuits {
		if c := &x.circuits[a]; c.used {
			r.Circuits = append(r.Circuits, c.r)
			if c.fresh && c.r.State.Lit() {
				// Until it is on disk how its mirrors stand, a next life would
				// not know them, and move them when it is told again.
				r.Circuits[len(r.Circuits)-1].State = proto.Tuning
			}
			if c.lost && len(r.Alarms) < maxCircuitAlarms {
				r.Alarms = append(r.Alarms, proto.Alarm{Kind: c.kind, Severity: proto.SeverityCritical, SinceMicros: uint64(c.since.Microseconds()),
					Text: c.text, PortA: c.r.A, PortB: c.r.B})
			}
		}
	}
}
