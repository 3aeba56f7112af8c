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
	agent *Agent
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
	o := &crossOptics{agent: agent, next: Never, retry: Never, healthAt: Never}
	cfg := &agent.cfg
	o.sw = node.NewCrossConnect(cfg.Node, cfg.ports())
	agent.machine = o.sw
	agent.optics, agent.operator, agent.scripts = o, o, o
	if agent.journal.State != nil {
		o.sw.Restore(*agent.journal.State)
	}
	// Of a change that may not be over nobody knows which mirrors it has moved.
	o.kept = slices.DeleteFunc(slices.Clone(agent.journal.Circuits), func(s circuit.Saved) bool { return !o.sw.Untouched(s.Pair.A, s.Pair.B) })
	o.parked = agent.journal.Parked && o.sw.Vouched()
	if o.cross, o.err = o.connect(); o.err == nil {
		o.served = &circuit.Served{Switch: handled{optics: o}, Ports: o.agent.cfg.ports(), Busy: o.cross.Busy, Power: o.cross.Power,
			Identity: "Ringlight," + o.agent.cfg.Software + "," + number(o.agent.cfg.Node-proto.FirstSwitch) + ",1"}
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

func (o *crossOptics) open(now time.Duration) {
	if o.err != nil {
		o.agent.log(2, o.err.Error())
		return
	}
	o.cross.Start(now)
	o.turn = true
	for _, h := range o.sw.State().Held {
		o.hold(now, h)
	}
}

// hold gives an operator's override to the crossbar.
func (o *crossOptics) hold(now time.Duration, h node.HeldPort) {
	if err := o.cross.Override(now, int(h.Array), int(h.Port), h.Override); err != nil {
		o.agent.log(2, err.Error())
	}
	o.turn = true
}

func (o *crossOptics) heard(now time.Duration, ev hal.Event) (_ node.Event, told bool) {
	if ev.Completion != nil {
		o.done = append(o.done, ev.Completion)
	}
	if ev.Edge != nil && o.lit != nil {
		o.lit.Edge(now, ev.Edge)
		o.turn = true
	}
	return node.Event{}, false
}

// work gives the crossbar its turns until nothing more is due.
func (o *crossOptics) work(now time.Duration, out []Output) []Output {
	for range maxRounds {
		if o.cross != nil && o.retry <= now {
			o.retry, o.turn = Never, true
			o.cross.Recall(o.kept, o.parked)
			o.cross.Start(now)
		}
		if o.agent.adopted && o.agent.machine.Next() <= now {
			o.agent.step(now, node.Event{Kind: node.Tick})
		}
		for len(o.waiting) > 0 && o.agent.persist.has(o.waiting[0].after) {
			ch := o.waiting[0].change
			o.waiting = append(o.waiting[:0], o.waiting[1:]...)
			o.change(now, ch)
		}
		if o.agent.adoptBy <= now {
			o.adoptUnread(now, o.unread()+" within "+node.BoardPatience.String())
		}
		if o.cross == nil || !o.turn && len(o.done) == 0 && o.next > now {
			break
		}
		o.turn = false
		o.ops, o.next = o.cross.Poll(now, o.done, o.ops[:0])
		o.done = o.done[:0]
		for _, op := range o.ops {
			out = append(out, Output{Kind: OutSubmit, Bus: op.Bus, Op: op.Op})
		}
		o.events = o.cross.TakeEvents(o.events[:0])
		for i := range o.events {
			o.event(now, &o.events[i])
		}
		o.finish(now)
	}
	o.serveClients(now)
	return out
}

func (o *crossOptics) due(now time.Duration) time.Duration {
	if o.turn {
		return now
	}
	return min(o.next, o.retry, o.healthAt)
}

func (o *crossOptics) unread() string { return "the board was not read" }

func (o *crossOptics) do(now time.Duration, act *node.Action) {
	switch act.Kind {
	case node.Note:
		o.agent.note(now, act.Note)
	case node.Connect:
		after := o.agent.persist.stateIn
		if o.lit != nil {
			after = 0 // what it does can be read back
		}
		o.waiting = append(o.waiting, waitingChange{act.Change, after})
		o.turn = true
	default:
		panic("agent: a switch asks for " + act.Kind.String())
	}
}

// change makes a change in one act.
func (o *crossOptics) change(now time.Duration, ch *node.Change) {
	if !o.changing && !ch.Again {
		o.dark, o.fresh = 0, o.fresh[:0]
	}
	o.changing, o.turn = true, true
	if !ch.Again {
		o.began = now
	}
	c := circuit.Change{Mode: circuit.Update, Park: true}
	for _, x := range ch.Remove {
		c.Remove = append(c.Remove, circuit.Pair{A: x.A, B: x.B})
	}
	for _, x := range ch.Create {
		c.Create = append(c.Create, circuit.Pair{A: x.A, B: x.B})
	}
	if !ch.Again {
		o.fresh = append(o.fresh, c.Create...)
	}
	err := o.cross.Apply(now, c)
	if err == nil {
		o.parks = true
		return
	}
	o.agent.log(2, err.Error())
	for _, x := range ch.Create {
		o.tell(now, proto.CircuitReport{A: x.A, B: x.B, State: proto.Failed, Loss: proto.NoPower}, proto.NoPower, err.Error())
	}
}

// finish finds the end of a change, and of tuning in service.
func (o *crossOptics) finish(now time.Duration) {
	was := o.busy
	o.busy = o.cross.Busy()
	if o.busy || o.faulty != "" {
		return
	}
	if was {
		o.agent.persist.saveLight()
	}
	if o.changing && len(o.waiting) == 0 {
		o.changing = false
		o.agent.persist.saveLight()
		o.agent.step(now, node.Event{Kind: node.Switched})
		if found := o.found(); !o.sw.Knows(found) { // a port is free of what was wanted there
			o.agent.step(now, changedThere(found))
		}
	}
}

// changedThere: somebody has made or taken away circuits at the switch itself.
func changedThere(found []proto.CircuitReport) node.Event {
	return node.Event{Kind: node.ByHand, Circuits: found, Text: "it was taken away at the switch itself"}
}

// tell tells the machine how a circuit stands.
func (o *crossOptics) tell(now time.Duration, r proto.CircuitReport, expected proto.MilliDBm, text string) {
	if o.agent.adopted {
		o.agent.step(now, node.Event{Kind: node.Circuit, Circuits: []proto.CircuitReport{r}, Expected: expected, Text: text})
		o.agent.report(now)
	}
}

// event passes on what the crossbar found.
func (o *crossOptics) event(now time.Duration, ev *circuit.Event) {
	r := proto.CircuitReport{A: ev.Pair.A, B: ev.Pair.B, Loss: ev.Loss}
	text := ""
	if ev.Err != nil {
		text = ev.Err.Error()
	}
	switch ev.Kind {
	case circuit.Ready:
		o.ready(now, ev.Err)
	case circuit.Tuned:
		r.State = proto.Tuned
		if slices.Contains(o.fresh, ev.Pair) {
			o.dark = max(o.dark, now-o.began)
			for side, port := range [hal.NumSides]uint16{ev.Pair.A, ev.Pair.B} {
				o.agent.pm.took(now, portPlace(side, port), 0, proto.SwitchTime, now-o.began)
			}
		}
		if ev.Moves.BusEnd > 0 {
			o.noteMoves(now, ev)
		}
		o.tell(now, r, ev.Factory, "")
	case circuit.Unproven:
		r.State, r.Loss = proto.Unproven, proto.NoPower
		o.tell(now, r, ev.Factory, text)
	case circuit.Failed:
		r.State = proto.Failed
		o.tell(now, r, ev.Factory, text)
	case circuit.Unlit:
		if r.State, r.Loss = proto.Tuning, proto.NoPower; ev.Err == nil {
			r.State = proto.Blocked // an operator holds one of its ports off
		}
		o.tell(now, r, ev.Factory, text)
	case circuit.AlarmRaised, circuit.AlarmCleared:
		o.portAlarm(now, ev)
	case circuit.Changed:
		o.agent.step(now, changedThere(o.found()))
	}
	o.agent.report(now)
}

// found is how the circuits stand, for the machine.
func (o *crossOptics) found() []proto.CircuitReport {
	o.circuits = o.cross.Circuits(o.circuits[:0])
	out := make([]proto.CircuitReport, 0, len(o.circuits))
	for i := range o.circuits {
		c := &o.circuits[i]
		out = append(out, proto.CircuitReport{A: c.Pair.A, B: c.Pair.B, State: c.State, Loss: c.Loss})
	}
	return out
}

// ready: the board has been read, or does not answer.
func (o *crossOptics) ready(now time.Duration, err error) {
	if err != nil {
		o.retry = now + restartAfter
		if !o.agent.adopted {
			o.adoptUnread(now, err.Error())
			return
		}
		o.fault(now, err.Error())
		return
	}
	found := o.found()
	if o.agent.adopted {
		o.fault(now, "")
		o.agent.step(now, node.Event{Kind: node.Ready, Circuits: found, Lit: o.cross.Stray()})
		return
	}
	o.take(now, node.Event{Circuits: found, Lit: o.cross.Stray()})
}

// adoptUnread goes into service with a board that cannot be read: as far as
// anybody knows, it does what it did.
func (o *crossOptics) adoptUnread(now time.Duration, why string) {
	var found []proto.CircuitReport
	for _, s := range o.kept {
		found = append(found, proto.CircuitReport{A: s.Pair.A, B: s.Pair.B, State: proto.Tuning, Loss: proto.NoPower})
	}
	o.take(now, node.Event{Circuits: found, Text: proto.Clip(why)})
	o.fault(now, why)
}

func (o *crossOptics) take(now time.Duration, ev node.Event) {
	dark := !slices.ContainsFunc(ev.Circuits, func(r proto.CircuitReport) bool { return r.State != proto.Failed })
	o.agent.adopt(now, ev, dark)
	if o.agent.cfg.HealthPeriod > 0 {
		o.healthAt, o.agent.pm.seen = now+phase(o.agent.cfg.Node, o.agent.cfg.HealthPeriod), now
	}
}

// fault tells that the board is out of service, or, "", back.
func (o *crossOptics) fault(now time.Duration, why string) {
	was := o.faulty
	if o.faulty = proto.Clip(why); (why == "") == (was == "") {
		if o.faulty != was {
			o.agent.log(2, "out of service: "+why) // for another cause, which reports say from now on
			o.agent.report(now)
		}
		return
	}
	if why == "" {
		o.agent.alarm(now, Alarm{Text: "the board answers again", Resolved: true})
		return
	}
	o.agent.log(2, "out of service: "+why)
	o.agent.step(now, node.Event{Kind: node.Unready, Text: o.faulty})
	o.agent.alarm(now, Alarm{Text: o.faulty})
}

// round looks at every circuit, and tells the planner which report was the last.
func (o *crossOptics) round(now time.Duration, out []Output) []Output {
	if o.healthAt <= now {
		o.healthAt = now + o.agent.cfg.HealthPeriod
		if o.cross != nil && o.faulty == "" {
			o.agent.pm.sides(now, o.cross, o.agent.cfg.ports())
			out = o.agent.pm.watched(now, o.agent.cfg.HealthPeriod, out)
			o.cross.HealthRound(now)
			o.turn = true
		}
		out = o.agent.telemetry(out, nil)
	}
	return out
}

// addRecord adds where the mirrors stand, once they stand.
func (o *crossOptics) addRecord(r *record) bool {
	if o.cross == nil || o.faulty != "" || o.busy || o.changing {
		return false
	}
	saved := o.cross.Save(nil)
	parked := o.parked || o.parks
	if slices.Equal(saved, o.kept) && parked == o.parked {
		return false
	}
	if saved == nil {
		saved = []circuit.Saved{}
	}
	o.kept, o.parked = saved, parked
	r.Circuits, r.Parked = &saved, parked
	return true
}

// release: there is nothing that a plan has to end.
func (o *crossOptics) release(time.Duration) {}

// waitsForDisk keeps reports back until the disk has what they say.
func (o *crossOptics) waitsForDisk() bool { return !o.agent.persist.settled() }

func (o *crossOptics) execute(now time.Duration, c *proto.Command, _ proto.Ack) (later bool, _ error) {
	switch c.Verb {
	case proto.VerbConnect:
		return false, o.connectByHand(now, c)
	case proto.VerbHostFault, proto.VerbHostOK, proto.VerbDrain, proto.VerbUndrain, proto.VerbCalibrate, proto.VerbRequest, proto.VerbTry:
		return false, &proto.Error{Code: proto.Unsupported, Field: "verb", Reason: c.Verb.String() + " is not for a switch"}
	}
	return false, unknownVerb(c.Verb)
}

// occupied: a change that is cut short is finished only on the planner's word.
func (o *crossOptics) occupied() string {
	if o.busy || o.changing || len(o.waiting) > 0 {
		return "circuits are being made"
	}
	return ""
}

func (o *crossOptics) addReport(_ time.Duration, r *proto.Reported) {
	r.DarkMicros = uint32(min(max(o.dark, 0), maxPart*time.Microsecond) / time.Microsecond)
	if o.faulty != "" {
		r.Alarms = append(r.Alarms, proto.Alarm{Kind: proto.EvAlarm, Severity: proto.SeverityCritical, Text: o.faulty})
	}
	r.Alarms = append(r.Alarms, o.own...)
	if o.cross == nil {
		return
	}
	o.circuits = o.cross.Circuits(o.circuits[:0])
	n := 0
	for i := range r.Circuits { // both in the order of side A
		c := &r.Circuits[i]
		c.State = c.State.ToldAs(o.agent.wire.beat.features)
		for n < len(o.circuits) && o.circuits[n].Pair.A < c.A {
			n++
		}
		if n < len(o.circuits) && o.circuits[n].Pair == (circuit.Pair{A: c.A, B: c.B}) && c.State == proto.Tuned {
			c.Loss = o.circuits[n].Loss
		}
	}
}

func (o *crossOptics) addPresence(p *proto.Presence) { p.Ports = uint16(o.agent.cfg.ports()) }
