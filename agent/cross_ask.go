package agent

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// question takes a question of someone on this host that only a switch
// understands.
func (o *crossOptics) question(now time.Duration, q Ask) {
	ans := &Answer{ID: q.ID}
	switch q.Verb {
	case AskHold:
		ans.Err = o.holdPort(now, q)
	default:
		ans.Err = &proto.Error{Code: proto.Unsupported, Field: "verb", Reason: "not for a switch"}
	}
	ans.Status = o.agent.status(now)
	o.agent.reply(ans)
}

// holdPort holds a port off, or lets it go.
func (o *crossOptics) holdPort(now time.Duration, q Ask) *proto.Error {
	h := node.HeldPort{Array: q.Array, Port: q.Port, Override: q.Override}
	switch {
	case int(h.Array) >= hal.NumSides:
		return &proto.Error{Code: proto.Invalid, Field: "side", Limit: "a or b", Reason: itoa(int(h.Array))}
	case int(h.Port) >= o.agent.cfg.ports():
		return &proto.Error{Code: proto.NotFound, Field: "port", Limit: "1 to " + itoa(o.agent.cfg.ports()), Reason: "no port " + itoa(int(h.Port)+1)}
	case h.Override > proto.PoweredOff:
		return &proto.Error{Code: proto.Invalid, Field: "override", Limit: "normal, force_blocked or powered_off", Reason: itoa(int(h.Override))}
	case o.cross == nil || o.faulty != "":
		return &proto.Error{Code: proto.HardwareFailed, Field: "port", Reason: "the board does not answer: " + o.faulty}
	}
	if err := o.cross.Override(now, int(h.Array), int(h.Port), h.Override); err != nil {
		return &proto.Error{Code: proto.Unsupported, Field: "override", Reason: err.Error()}
	}
	o.turn = true
	o.agent.step(now, node.Event{Kind: node.Hold, Array: h.Array, Port: h.Port, Override: h.Override})
	for _, c := range o.cross.Circuits(nil) {
		if at := [hal.NumSides]uint16{c.Pair.A, c.Pair.B}[h.Array]; at == h.Port {
			o.tell(now, proto.CircuitReport{A: c.Pair.A, B: c.Pair.B, State: c.State, Loss: proto.NoPower}, proto.NoPower, "")
		}
	}
	return nil
}

// addStatus says how the switch stands, in words.
func (o *crossOptics) addStatus(s *Status) {
	w := &SwitchStatus{Ports: o.agent.cfg.ports(), Busy: o.busy, Reason: o.faulty, DarkUS: o.dark.Microseconds(), Circuits: []CircuitStatus{}, Held: []string{}}
	s.Switch = w
	for _, h := range o.sw.State().Held {
		w.Held = append(w.Held, fmt.Sprintf("%d%c %v", h.Port+1, 'A'+rune(h.Array), h.Override))
	}
	if o.cross == nil {
		return
	}
	jobs := map[circuit.Pair]proto.JobID{}
	for _, r := range s.Reported.Circuits {
		jobs[circuit.Pair{A: r.A, B: r.B}] = r.Job
	}
	for _, c := range o.cross.Circuits(nil) {
		cs := CircuitStatus{Circuit: c.Pair.String(), A: c.Pair.A, B: c.Pair.B, Job: jobs[c.Pair], State: c.State.String(),
			Loss: c.Loss, Factory: c.Factory, Moves: c.Moves, TookUS: c.Took.Microseconds()}
		if c.Err != nil {
			cs.Reason = c.Err.Error()
		}
		w.Circuits = append(w.Circuits, cs)
	}
}
