package node

import (
	"fmt"
	"strconv"
	"time"

	"ringlight/proto"
)

// CrossConnect is every decision of one optical cross-connect, a circuit
// switch of any make: which plan is in force, and what its mirrors are to do
// about it. It is a machine like Machine, of the same events and actions.
//
// A cross-connect protects nothing by itself, so it can afford what a node
// cannot: a committed change is on disk before the first mirror moves (Connect
// after Save). A life that ends before that leaves the old circuits and says so.
// One that ends later may leave some of each: the next one holds what it finds,
// says that no plan is in effect, and completes the change or makes another as
// the planner of the term in force has it. It never completes a change out of
// the journal, which may be an old one.
//
// Circuits of both the old and the new plan are never touched, nor are those
// that the hardware carries at a start. What a loss of power has taken is not
// lit out of the journal, which may be old: the report names no plan, and the
// planner's decision, the same or another, brings it back.
type CrossConnect struct {
	participant
	state    crossState // only become writes it
	ports    int
	circuits []circuit // by port of side A
	owner    []int     // by port of side B: port of A + 1, 0 = none
	held     [2][]proto.Override
	hand     []proto.Circuit // made by operators, as the journal had it
}

// NewCrossConnect returns one of so many ports on either side that has heard
// nothing yet.
func NewCrossConnect(id proto.NodeID, ports int) *CrossConnect {
	x := &CrossConnect{participant: participant{fence: fence{id: id}, reasons: noPlanner}, ports: ports,
		circuits: make([]circuit, ports), owner: make([]int, ports)}
	for i := range x.held {
		x.held[i] = make([]proto.Override, ports)
	}
	return x
}

// Restore gives a new one what its journal kept. It must come before Adopt.
func (x *CrossConnect) Restore(st State) {
	x.restore(&st)
	if st.Moving {
		x.become(crossUnfinished)
	}
	x.hand = st.ByHand
	for _, h := range st.Held {
		if int(h.Array) < len(x.held) && int(h.Port) < x.ports {
			x.held[h.Array][h.Port] = h.Override
		}
	}
}

// State is what must survive a crash; it shares the plans with the machine,
// which never changes them.
func (x *CrossConnect) State() State {
	st := x.journal()
	st.Moving = !x.Vouched()
	for side := range x.held {
		for p, o := range x.held[side] {
			if o != proto.Normal {
				st.Held = append(st.Held, HeldPort{Array: uint8(side), Port: uint16(p), Override: o})
			}
		}
	}
	for a := range x.circuits {
		if c := &x.circuits[a]; c.used && c.r.Job == proto.ByHand {
			st.ByHand = append(st.ByHand, c.name())
		}
	}
	if !x.adopted {
		st.ByHand = x.hand
	}
	return st
}

// silent tells whether the board does not answer.
func (x *CrossConnect) silent() bool { return x.reasons&ownFault != 0 }

// Next is the time of the next due timer, or Never.
func (x *CrossConnect) Next() time.Duration {
	next := Never
	if x.silent() || x.state != crossSettled && x.state != crossMoving {
		return next
	}
	for a := range x.circuits {
		if c := &x.circuits[a]; c.again != 0 {
			next = min(next, c.again)
		}
	}
	return next
}

// Planned tells whether a planner's generation is in force.
func (x *CrossConnect) Planned() bool { return x.applied != nil }

// Step takes one event and appends what is to be done about it, in order.
func (x *CrossConnect) Step(ev Event, out []Action) []Action {
	x.now, x.out = max(x.now, ev.At), out
	x.handle(&ev)
	if x.Next() <= x.now {
		x.tryAgain()
	}
	if x.unsaved {
		x.save()
	}
	out, x.out = x.out, nil
	return out
}

func (x *CrossConnect) handle(ev *Event) {
	switch ev.Kind {
	case Adopt, Ready:
		x.adopt(ev)
	case Unready:
		if !x.silent() {
			x.reasons |= ownFault
			x.note(proto.Event{Kind: proto.EvIsolated, Severity: proto.SeverityCritical, Cause: proto.CauseOwnFault, Text: ev.Text})
		}
	case Stage, Decide, DropStaged, HeardTerm:
		x.tell(x, ev)
	case Circuit:
		for _, r := range ev.Circuits {
			x.observe(r, ev.Expected, ev.Text)
		}
	case Switched:
		x.changed()
	case Hold:
		if int(ev.Array) < len(x.held) && int(ev.Port) < x.ports && x.held[ev.Array][ev.Port] != ev.Override {
			x.held[ev.Array][ev.Port] = ev.Override
			x.bypassSeq++
			x.unsaved = true
		}
	case ByHand:
		x.byHand(ev.Circuits, ev.Text, ev.Stays)
	}
}

// plannerSeen: the first planner of all ends the wait for one.
func (x *CrossConnect) plannerSeen() { x.reasons &^= noPlanner }

// validate checks a desired state as a whole against this cross-connect.
func (x *CrossConnect) validate(d *proto.Desired) *proto.Error {
	switch {
	case d.Term == 0 || d.Generation == 0:
		return proto.Wrong("generation", "over 0, as the term", "term %d, generation %d", d.Term, d.Generation)
	case len(d.Decisions) == 0:
		return proto.Wrong("decisions", "at least 1", "no group on whose topic the decision comes")
	case len(d.Rings) > 0:
		return proto.Wrong("rings", "none for a switch", "%d rings", len(d.Rings))
	case len(d.Circuits) > 0 && x.silent():
		return &proto.Error{Code: proto.HardwareFailed, Field: "circuits", Limit: "none", Reason: "the switch does not answer its agent"}
	}
	under := "under " + strconv.Itoa(x.ports)
	used := [2][]bool{make([]bool, x.ports), make([]bool, x.ports)}
	for i := range d.Circuits {
		c := &d.Circuits[i]
		for side, port := range [2]uint16{c.A, c.B} {
			at := func() string { return "circuits[" + strconv.Itoa(i) + "]." + string("ab"[side]) }
			switch {
			case int(port) >= x.ports:
				return proto.Wrong(at(), under, "port %d", port)
			case used[side][port]:
				return proto.Wrong(at(), "each port once", "port %d twice", port)
			case x.held[side][port] != proto.Normal && !x.carries(c.A, c.B):
				// A circuit that is there keeps its place in every plan, or the
				// hold would stop all changes of this one.
				return &proto.Error{Code: proto.HardwareFailed, Field: at(), Limit: "a port that nobody holds",
					Reason: fmt.Sprintf("port %d is held: %s", port, x.held[side][port])}
			}
			used[side][port] = true
		}
	}
	return nil
}

// enact puts a committed generation into effect. The one that is in force
// already is carried out again when the light is not its own.
func (x *CrossConnect) enact(h *Held) *proto.Error {
	if h != nil {
		x.applied = h
		x.note(proto.Event{Kind: proto.EvApplied, Cause: proto.CausePlan})
	}
	if h != nil || !x.state.inEffect() {
		if x.state.inEffect() {
			x.become(crossMoving)
		} else {
			x.become(crossOwed)
		}
		x.save()
		x.connect()
	}
	if x.silent() {
		return &proto.Error{Code: proto.HardwareFailed, Reason: "the switch does not answer its agent"}
	}
	return nil
}

// connect makes the circuits those of the plan in force: what is in both is
// left alone, but for what has failed, which is tried again.
func (x *CrossConnect) connect() {
	if x.silent() {
		return // when the board answers again
	}
	x.become(crossMoving)
	want, owner := make([]int, x.ports), make([]int, x.ports) // port of the other side + 1, by port of A and of B
	for _, c := range x.applied.Desired.Circuits {
		want[c.A], owner[c.B] = int(c.B)+1, int(c.A)+1
	}
	ch := &Change{}
	for a := range x.circuits {
		if c := &x.circuits[a]; c.used && want[a] != int(c.r.B)+1 && (c.r.Job != proto.ByHand || want[a]+owner[c.r.B] > 0) {
			ch.Remove = append(ch.Remove, c.name())
			x.drop(uint16(a))
		}
	}
	for _, c := range x.applied.Desired.Circuits {
		if have := &x.circuits[c.A]; have.used && have.r.State != proto.Failed {
			have.r.Job = c.Job // it may have been handed to another job as it is
			continue
		}
		ch.Create = append(ch.Create, c)
		x.put(proto.CircuitReport{A: c.A, B: c.B, Job: c.Job, State: proto.Tuning, Loss: proto.NoPower})
		x.circuits[c.A].fresh = true
	}
	// Also when nothing is to be moved: it is how the end of the change is
	// found.
	x.out = append(x.out, Action{Kind: Connect, Change: ch})
}

// changed: every circuit of the change has come up, or has failed.
func (x *CrossConnect) changed() {
	switch x.state {
	case crossMoving:
		x.become(crossSettled)
	case crossOwed:
		x.become(crossDiffers)
	default:
		return
	}
	x.unsaved = true
	for a := range x.circuits {
		x.circuits[a].fresh = false
	}
}
