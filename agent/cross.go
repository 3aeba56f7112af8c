package agent

import (
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/node"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// crossOptics are the circuits of a switch.
//
// What was committed is on disk before a mirror moves, and where the mirrors
// stand is on disk before a circuit is told as tuned: a next life then never
// moves what somebody relies on.
type crossOptics struct {
	*Agent
	sw    *node.CrossConnect
	cross crossbar
	lit   lit   // the crossbar, where it has pins; nil: it has none
	err   error // why there is no crossbar

	done   []*hal.Completion
	next   time.Duration
	turn   bool          // the crossbar wants one now
	busy   bool          // it makes circuits
	retry  time.Duration // when a board that does not answer is read again
	faulty string        // why it is out of service
	own    []proto.Alarm // of the switch itself, in its own words

	waiting  []waitingChange
	changing bool          // the last change is being made
	began    time.Duration // when it was
	dark     time.Duration // from then to the last of its circuits proven
	fresh    []circuit.Pair

	healthAt time.Duration
	kept     []circuit.Saved // of the journal
	parked   bool            // and whether the other mirrors are parked
	parks    bool            // a change of this life has seen to that
	clients  []client        // scripts
	served   *circuit.Served
	ops      []hal.BusOp
	events   []circuit.Event
	circuits []circuit.Circuit
}

// waitingChange waits for the record that says that it is wanted.
type waitingChange struct {
	change *node.Change
	after  uint64
}

// newCrossOptics makes an agent that of a switch.
func newCrossOptics(agent *Agent) {
	a := &crossOptics{Agent: agent, next: Never, retry: Never, healthAt: Never}
	cfg := &agent.cfg
	a.sw = node.NewCrossConnect(cfg.Node, cfg.ports())
	agent.machine = a.sw
	agent.optics, agent.executor, agent.operator, agent.rounds, agent.memory, agent.reporter, agent.scripts = a, a, a, a, a, a, a
	if agent.journal.State != nil {
		a.sw.Restore(*agent.journal.State)
	}
	// Of a change that may not be over nobody knows which mirrors it has moved.
	a.kept = slices.DeleteFunc(slices.Clone(agent.journal.Circuits), func(s circuit.Saved) bool { return !a.sw.Untouched(s.Pair.A, s.Pair.B) })
	a.parked = agent.journal.Parked && a.sw.Vouched()
	if a.cross, a.err = a.connect(); a.err == nil {
		a.served = &circuit.Served{Switch: handled{a: a}, Ports: a.cfg.ports(), Busy: a.cross.Busy, Power: a.cross.Power,
			Identity: "Ringlight," + a.cfg.Software + "," + number(a.cfg.Node-proto.FirstSwitch) + ",1"}
	}
}

// isSwitch: the agent is that of a circuit switch, not of a node.
func (c *Config) isSwitch() bool {
	return c.Board.Mirrors != nil || c.Box != nil || c.Node.IsSwitch()
}

// ports of either side.
func (c *Config) ports() int {
	switch {
	case c.Box != nil:
		return c.BoxPorts
	case c.Board.Mirrors == nil:
		return 2 * len(c.Board.Bundles) // two fibres each
	}
	return c.Board.Mirrors.Ports
}

func (a *crossOptics) open(now time.Duration) {
	if a.err != nil {
		a.log(2, a.err.Error())
		return
	}
	a.cross.Start(now)
	a.turn = true
	for _, h := range a.sw.State().Held {
		a.hold(now, h)
	}
}

// hold gives an operator's override to the crossbar.
func (a *crossOptics) hold(now time.Duration, h node.HeldPort) {
	if err := a.cross.Override(now, int(h.Array), int(h.Port), h.Override); err != nil {
		a.log(2, err.Error())
	}
	a.turn = true
}

func (a *crossOptics) heard(now time.Duration, ev hal.Event) {
	if ev.Completion != nil {
		a.done = append(a.done, ev.Completion)
	}
	if ev.Edge != nil && a.lit != nil {
		a.lit.Edge(now, ev.Edge)
		a.turn = true
	}
}

// work gives the crossbar its turns until nothing more is due.
func (a *crossOptics) work(now time.Duration, out []Output) []Output {
	for range maxRounds {
		if a.cross != nil && a.retry <= now {
			a.retry, a.turn = Never, true
			a.cross.Recall(a.kept, a.parked)
			a.cross.Start(now)
		}
		if a.adopted && a.machine.Next() <= now {
			a.step(now, node.Event{Kind: node.Tick})
		}
		for len(a.waiting) > 0 && a.persist.has(a.waiting[0].after) {
			ch := a.waiting[0].change
			a.waiting = append(a.waiting[:0], a.waiting[1:]...)
			a.change(now, ch)
		}
		if a.adoptBy <= now {
			a.adoptUnread(now, a.unread()+" within "+node.BoardPatience.String())
		}
		if a.cross == nil || !a.turn && len(a.done) == 0 && a.next > now {
			break
		}
		a.turn = false
		a.ops, a.next = a.cross.Poll(now, a.done, a.ops[:0])
		a.done = a.done[:0]
		for _, op := range a.ops {
			out = append(out, Output{Kind: OutSubmit, Bus: op.Bus, Op: op.Op})
		}
		a.events = a.cross.TakeEvents(a.events[:0])
		for i := range a.events {
			a.event(now, &a.events[i])
		}
		a.finish(now)
	}
	a.serveClients(now)
	return out
}

func (a *crossOptics) due(now time.Duration) time.Duration {
	if a.turn {
		return now
	}
	return min(a.next, a.retry, a.healthAt)
}

func (a *crossOptics) unread() string { return "the board was not read" }

func (a *crossOptics) do(now time.Duration, act *node.Action) {
	switch act.Kind {
	case node.Note:
		a.note(now, act.Note)
	case node.Connect:
		after := a.persist.stateIn
		if a.lit != nil {
			after = 0 // what it does can be read back
		}
		a.waiting = append(a.waiting, waitingChange{act.Change, after})
		a.turn = true
	default:
		panic("agent: a switch asks for " + act.Kind.String())
	}
}

// change makes a change in one act.
func (a *crossOptics) change(now time.Duration, ch *node.Change) {
	if !a.changing && !ch.Again {
		a.dark, a.fresh = 0, a.fresh[:0]
	}
	a.changing, a.turn = true, true
	if !ch.Again {
		a.began = now
	}
	c := circuit.Change{Mode: circuit.Update, Park: true}
	for _, x := range ch.Remove {
		c.Remove = append(c.Remove, circuit.Pair{A: x.A, B: x.B})
	}
	for _, x := range ch.Create {
		c.Create = append(c.Create, circuit.Pair{A: x.A, B: x.B})
	}
	if !ch.Again {
		a.fresh = append(a.fresh, c.Create...)
	}
	err := a.cross.Apply(now, c)
	if err == nil {
		a.parks = true
		return
	}
	a.log(2, err.Error())
	for _, x := range ch.Create {
		a.tell(now, proto.CircuitReport{A: x.A, B: x.B, State: proto.Failed, Loss: proto.NoPower}, proto.NoPower, err.Error())
	}
}

// finish finds the end of a change, and of tuning in service.
func (a *crossOptics) finish(now time.Duration) {
	was := a.busy
	a.busy = a.cross.Busy()
	if a.busy || a.faulty != "" {
		return
	}
	if was {
		a.persist.saveLight()
	}
	if a.changing && len(a.waiting) == 0 {
		a.changing = false
		a.persist.saveLight()
		a.step(now, node.Event{Kind: node.Switched})
		if found := a.found(); !a.sw.Knows(found) { // a port is free of what was wanted there
			a.step(now, changedThere(found))
		}
	}
}

// changedThere: somebody has made or taken away circuits at the switch itself.
func changedThere(found []proto.CircuitReport) node.Event {
	return node.Event{Kind: node.ByHand, Circuits: found, Text: "it was taken away at the switch itself"}
}

// tell tells the machine how a circuit stands.
func (a *crossOptics) tell(now time.Duration, r proto.CircuitReport, expected proto.MilliDBm, text string) {
	if a.adopted {
		a.step(now, node.Event{Kind: node.Circuit, Circuits: []proto.CircuitReport{r}, Expected: expected, Text: text})
		a.report(now)
	}
}

// event passes on what the crossbar found.
func (a *crossOptics) event(now time.Duration, ev *circuit.Event) {
	r := proto.CircuitReport{A: ev.Pair.A, B: ev.Pair.B, Loss: ev.Loss}
	text := ""
	if ev.Err != nil {
		text = ev.Err.Error()
	}
	switch ev.Kind {
	case circuit.Ready:
		a.ready(now, ev.Err)
	case circuit.Tuned:
		r.State = proto.Tuned
		if slices.Contains(a.fresh, ev.Pair) {
			a.dark = max(a.dark, now-a.began)
			for side, port := range [hal.NumSides]uint16{ev.Pair.A, ev.Pair.B} {
				a.pm.took(now, portPlace(side, port), 0, proto.SwitchTime, now-a.began)
			}
		}
		if ev.Moves.BusEnd > 0 {
			a.noteMoves(now, ev)
		}
		a.tell(now, r, ev.Factory, "")
	case circuit.Unproven:
		r.State, r.Loss = proto.Unproven, proto.NoPower
		a.tell(now, r, ev.Factory, text)
	case circuit.Failed:
		r.State = proto.Failed
		a.tell(now, r, ev.Factory, text)
	case circuit.Unlit:
		if r.State, r.Loss = proto.Tuning, proto.NoPower; ev.Err == nil {
			r.State = proto.Blocked // an operator holds one of its ports off
		}
		a.tell(now, r, ev.Factory, text)
	case circuit.AlarmRaised, circuit.AlarmCleared:
		a.portAlarm(now, ev)
	case circuit.Changed:
		a.step(now, changedThere(a.found()))
	}
	a.report(now)
}

// found is how the circuits stand, for the machine.
func (a *crossOptics) found() []proto.CircuitReport {
	a.circuits = a.cross.Circuits(a.circuits[:0])
	out := make([]proto.CircuitReport, 0, len(a.circuits))
	for i := range a.circuits {
		c := &a.circuits[i]
		out = append(out, proto.CircuitReport{A: c.Pair.A, B: c.Pair.B, State: c.State, Loss: c.Loss})
	}
	return out
}

// ready: the board has been read, or does not answer.
func (a *crossOptics) ready(now time.Duration, err error) {
	if err != nil {
		a.retry = now + restartAfter
		if !a.adopted {
			a.adoptUnread(now, err.Error())
			return
		}
		a.fault(now, err.Error())
		return
	}
	found := a.found()
	if a.adopted {
		a.fault(now, "")
		a.step(now, node.Event{Kind: node.Ready, Circuits: found, Lit: a.cross.Stray()})
		return
	}
	a.take(now, node.Event{Circuits: found, Lit: a.cross.Stray()})
}

// adoptUnread goes into service with a board that cannot be read: as far as
// anybody knows, it does what it did.
func (a *crossOptics) adoptUnread(now time.Duration, why string) {
	var found []proto.CircuitReport
	for _, s := range a.kept {
		found = append(found, proto.CircuitReport{A: s.Pair.A, B: s.Pair.B, State: proto.Tuning, Loss: proto.NoPower})
	}
	a.take(now, node.Event{Circuits: found, Text: proto.Clip(why)})
	a.fault(now, why)
}

func (a *crossOptics) take(now time.Duration, ev node.Event) {
	dark := !slices.ContainsFunc(ev.Circuits, func(r proto.CircuitReport) bool { return r.State != proto.Failed })
	a.adopt(now, ev, dark)
	if a.cfg.HealthPeriod > 0 {
		a.healthAt, a.pm.seen = now+phase(a.cfg.Node, a.cfg.HealthPeriod), now
	}
}

// fault tells that the board is out of service, or, "", back.
func (a *crossOptics) fault(now time.Duration, why string) {
	was := a.faulty
	if a.faulty = proto.Clip(why); (why == "") == (was == "") {
		if a.faulty != was {
			a.log(2, "out of service: "+why) // for another cause, which reports say from now on
			a.report(now)
		}
		return
	}
	if why == "" {
		a.alarm(now, Alarm{Text: "the board answers again", Resolved: true})
		return
	}
	a.log(2, "out of service: "+why)
	a.step(now, node.Event{Kind: node.Unready, Text: a.faulty})
	a.alarm(now, Alarm{Text: a.faulty})
}

// round looks at every circuit, and tells the planner which report was the last.
func (a *crossOptics) round(now time.Duration, out []Output) []Output {
	if a.healthAt <= now {
		a.healthAt = now + a.cfg.HealthPeriod
		if a.cross != nil && a.faulty == "" {
			a.pm.sides(now, a.cross, a.cfg.ports())
			out = a.pm.watched(now, a.cfg.HealthPeriod, out)
			a.cross.HealthRound(now)
			a.turn = true
		}
		out = a.telemetry(out, nil)
	}
	return out
}

// addRecord adds where the mirrors stand, once they stand.
func (a *crossOptics) addRecord(r *record) bool {
	if a.cross == nil || a.faulty != "" || a.busy || a.changing {
		return false
	}
	saved := a.cross.Save(nil)
	parked := a.parked || a.parks
	if slices.Equal(saved, a.kept) && parked == a.parked {
		return false
	}
	if saved == nil {
		saved = []circuit.Saved{}
	}
	a.kept, a.parked = saved, parked
	r.Circuits, r.Parked = &saved, parked
	return true
}

// release: there is nothing that a plan has to end.
func (a *crossOptics) release(time.Duration) {}

// waitsForDisk keeps reports back until the disk has what they say.
func (a *crossOptics) waitsForDisk() bool { return !a.persist.settled() }

func (a *crossOptics) execute(now time.Duration, c *proto.Command, _ proto.Ack) (later bool, _ error) {
	switch c.Verb {
	case proto.VerbConnect:
		return false, a.connectByHand(now, c)
	case proto.VerbHostFault, proto.VerbHostOK, proto.VerbDrain, proto.VerbUndrain, proto.VerbCalibrate, proto.VerbRequest, proto.VerbTry:
		return false, &proto.Error{Code: proto.Unsupported, Field: "verb", Reason: c.Verb.String() + " is not for a switch"}
	}
	return false, unknownVerb(c.Verb)
}

// occupied: a change that is cut short is finished only on the planner's word.
func (a *crossOptics) occupied() string {
	if a.busy || a.changing || len(a.waiting) > 0 {
		return "circuits are being made"
	}
	return ""
}

func (a *crossOptics) addReport(_ time.Duration, r *proto.Reported) {
	r.DarkMicros = uint32(min(max(a.dark, 0), maxPart*time.Microsecond) / time.Microsecond)
	if a.faulty != "" {
		r.Alarms = append(r.Alarms, proto.Alarm{Kind: proto.EvAlarm, Severity: proto.SeverityCritical, Text: a.faulty})
	}
	r.Alarms = append(r.Alarms, a.own...)
	if a.cross == nil {
		return
	}
	a.circuits = a.cross.Circuits(a.circuits[:0])
	n := 0
	for i := range r.Circuits { // both in the order of side A
		c := &r.Circuits[i]
		c.State = toldAs(c.State, a.wire.beat.features)
		for n < len(a.circuits) && a.circuits[n].Pair.A < c.A {
			n++
		}
		if n < len(a.circuits) && a.circuits[n].Pair == (circuit.Pair{A: c.A, B: c.B}) && c.State == proto.Tuned {
			c.Loss = a.circuits[n].Loss
		}
	}
}

func (a *crossOptics) addPresence(p *proto.Presence) { p.Ports = uint16(a.cfg.ports()) }
