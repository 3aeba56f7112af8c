package fleet

import (
	"fmt"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// station is one node: its board in the world, its agent while it lives, its
// journal, its clock and its place on the network.
type station struct {
	client
	id           proto.NodeID
	board        sim.BoardID
	calibrations []*ocs.Calibration

	agent   *agent.Agent
	life    uint32 // counts the agents
	boot    uint64
	clock   clock
	dark    bool // has no supply
	cold    bool // no agent has run since it has
	hostBad bool
	broken  int // faults on the board
	next    time.Duration
	slot    int
	thinks  time.Duration // end of the modelled time of its last decision
	flying  []*hal.Op     // bus work of this life

	journal  agent.Journal // what is on disk
	record   *agent.Record // on the way there
	recordID uint64

	asked uint64
	out   []agent.Output
	watch watched
}

// watched is what the checkers have seen of a node.
type watched struct {
	touched   time.Duration // last fault, start or plan here
	acted     time.Duration // last bus work that moves light
	planned   time.Duration // last decision
	mended    time.Duration // last repair of the board
	walked    bool          // its optics have drifted, and nobody has calibrated them since
	shorted   bool          // a heater was short
	death     *still        // what an agent's death left
	born      time.Duration // start of the agent after the supply came
	checking  bool          // a look is planned
	openSince time.Duration // first seen open, 0: is closed
	told      bool          // of the open strand
	high      [hal.MaxBundles][hal.NumLOS]time.Duration
	switched  [2]moved      // by side
	applied   [2]uint64     // term and generation, highest acknowledged as committed
	reported  [3]uint64     // of this session: term, generation, seen term
	session   proto.Session // that reported them
	events    delivery
	full      bool // in a whole group
}

// moved is a side's last switch as the node told it.
type moved struct {
	at     time.Duration
	ledger proto.Ledger
}

// Streams of random numbers.
const (
	streamNetwork = iota + 1
	streamClock
	streamSession
	streamFaults
	streamCrash
	streamTrace
)

// Times of a node's computer. chosen.
const (
	persistLeast = 700 * time.Microsecond // append and sync to a flash chip
	persistMean  = 500 * time.Microsecond
	bootTime     = 2 * time.Second // from supply to agent
)

// startAgent makes a fresh agent that knows only its journal.
func (r *Run) startAgent(st *station) error {
	if st.agent != nil || st.dark {
		return nil
	}
	st.life++
	st.flying, st.record, st.thinks = nil, nil, 0
	session := proto.Session(detmath.Hash(r.cfg.Seed, streamSession, uint64(st.id), uint64(st.life)))
	cfg := agent.Config{
		Fabric: r.cfg.Fabric.Name, Node: st.id, Board: r.board, Calibrations: st.calibrations,
		Session: session, Boot: st.boot, Software: "ringlight fleet", Seed: r.cfg.Seed,
		HealthPeriod: r.cfg.Health, HealthModules: r.cfg.HealthModules, Decide: r.costs.Decide,
	}
	will, err := cfg.Will()
	if err != nil {
		return fmt.Errorf("fleet: node %d: %w", st.id, err)
	}
	journal := st.journal
	journal.Events = append([]proto.Event(nil), journal.Events...)
	mutant := r.cfg.mutant
	if mutant != nil && mutant.restored != nil && st.life > 1 {
		mutant.restored(st, &journal)
	}
	st.agent = agent.New(cfg, journal)
	st.will, st.rings, st.alive, st.tries = will, nil, true, 0
	now := st.clock.local(r.now)
	for l := range r.board.Lines {
		line := hal.LineID(l)
		edge := &hal.Edge{Line: line, High: r.world.Level(st.board, line), At: now}
		st.agent.Deliver(now, agent.Input{Kind: agent.InHardware, Hardware: hal.Event{Edge: edge}})
	}
	if st.cold {
		st.cold, st.watch.born = false, r.now
	} else {
		r.audit.stillAgain(st)
	}
	if mutant != nil && mutant.born != nil && st.life > 1 {
		mutant.born(r, st)
	}
	r.touch(st)
	r.agenda.push(task{at: r.now + r.net.hop(), kind: taskConnect, who: int32(st.id), gen: st.conn})
	if st.hostBad {
		return r.ask(st, agent.AskHostFault, "told again after a start")
	}
	return r.poll(st, false)
}

// endAgent ends the process. The record under way is on disk, or it is not.
func (r *Run) endAgent(st *station, quiet bool) {
	if st.agent == nil {
		return
	}
	if st.record != nil && detmath.Hash(r.cfg.Seed, streamCrash, uint64(st.id), uint64(st.life))&1 == 0 {
		r.written(st)
	}
	r.net.hangUp(&st.client, quiet)
	st.alive = false
	st.agent, st.record, st.flying = nil, nil, nil
	st.next = agent.Never
	r.queue.place(st)
	r.touch(st)
}

// written applies the record under way to the journal.
func (r *Run) written(st *station) {
	if err := st.journal.Take(st.record); err != nil {
		r.audit.violate(st.id, "nothing lost", "the journal refuses a record: "+err.Error())
	}
	st.record = nil
}

// hardware hands an event of a board to its agent and lets it act.
func (r *Run) hardware(st *station, ev hal.Event) error {
	if st.agent == nil || r.cfg.mutant.misses(st, ev.Edge) {
		return nil
	}
	edge := ev.Edge != nil
	if err := r.deliver(st, ev); err != nil {
		return err
	}
	return r.poll(st, edge)
}

// deliver hands an event of a board to its agent, in its own time.
func (r *Run) deliver(st *station, ev hal.Event) error {
	if c := ev.Completion; c != nil {
		at := -1
		for i, op := range st.flying {
			if op == c.Op {
				at = i
				break
			}
		}
		if at < 0 {
			return nil // of an earlier life
		}
		last := len(st.flying) - 1
		st.flying[at] = st.flying[last]
		st.flying = st.flying[:last]
		c.Start, c.End = st.clock.local(c.Start), st.clock.local(c.End)
	}
	if ev.Edge != nil {
		r.trace(traceEdge, int32(st.id), uint64(ev.Edge.Line), ev.Edge.High)
		if ev.Edge.High {
			at := r.lines[ev.Edge.Line]
			st.watch.high[at.bundle][at.path] = r.now
		}
		e := *ev.Edge
		e.At = st.clock.local(e.At)
		if e.Origin != 0 {
			e.Origin = st.clock.local(e.Origin)
		}
		ev.Edge = &e
	}
	st.agent.Deliver(st.clock.local(r.now), agent.Input{Kind: agent.InHardware, Hardware: ev})
	return nil
}

func (r *Run) ask(st *station, verb agent.AskVerb, text string) error {
	if st.agent == nil {
		return nil
	}
	st.asked++
	st.agent.Deliver(st.clock.local(r.now), agent.Input{Kind: agent.InAsk, Ask: agent.Ask{ID: st.asked, Verb: verb, Text: text}})
	return r.poll(st, false)
}

// poll lets the agent act now, after a delivery or when it is due.
func (r *Run) poll(st *station, edge bool) error {
	now := st.clock.local(r.now)
	mode := st.agent.Machine().Mode()
	for range maxPolls {
		var next time.Duration
		st.out, next = st.agent.Poll(now, st.out[:0])
		r.polls++
		for i := range st.out {
			if err := r.carryOut(st, &st.out[i], edge); err != nil {
				return err
			}
		}
		clear(st.out)
		if next > now {
			st.next = agent.Never
			if next != agent.Never {
				st.next = st.clock.world(next)
			}
			r.queue.place(st)
			if st.agent.Machine().Mode() != mode {
				r.touch(st)
			}
			return nil
		}
	}
	return fmt.Errorf("fleet: node %d wants to be polled for ever at %v", st.id, r.now)
}

func (r *Run) carryOut(st *station, o *agent.Output, edge bool) error {
	switch o.Kind {
	case agent.OutSubmit:
		if edge {
			st.thinks = r.now + r.costs.Decide
		}
		if o.Op.Class == hal.ClassSwitch {
			st.watch.acted = r.now
			r.look(st)
		}
		st.flying = append(st.flying, o.Op)
		if r.cfg.mutant.drops(st, o) {
			done := &hal.Completion{Bus: o.Bus, Op: o.Op, Start: r.now, End: r.now}
			return r.deliver(st, hal.Event{Completion: done})
		}
		// What is asked for while an earlier decision is still being thought
		// must not overtake its work.
		if err := r.world.Submit(max(r.now, st.thinks), st.board, o.Bus, o.Op); err != nil {
			return fmt.Errorf("fleet: node %d: %w", st.id, err)
		}
	case agent.OutSend:
		if r.cfg.mutant.swallows(st, o.Packet) {
			return nil
		}
		r.said(st, o.Packet)
		r.net.send(&st.client, o.Packet)
	case agent.OutCalibrate:
		st.calibrations[o.Bundle] = o.Calibration
		if st.broken == 0 {
			st.watch.walked, st.watch.mended = false, r.now
		}
	case agent.OutPersist:
		st.recordID = o.ID
		r.noted(st, o.Record)
		at := r.now + persistLeast + r.disk.wait(persistMean)
		r.agenda.push(task{at: at, kind: taskPersisted, who: int32(st.id), gen: st.life})
	}
	return nil
}

// said looks at what a node says and traces it.
func (r *Run) said(st *station, p proto.Packet) {
	if p.Kind != proto.Publish {
		return
	}
	r.tracePacket(int32(st.id), p)
	r.audit.said(st, p)
}

// noted reads a record as the disk will hold it and takes the switches out of
// it: a record is where every event is first.
func (r *Run) noted(st *station, raw []byte) {
	rec, err := agent.ReadRecord(raw)
	if err != nil {
		r.audit.violate(st.id, "nothing lost", "the journal refuses a record: "+err.Error())
		rec = new(agent.Record)
	}
	st.record = rec
	events := rec.Events()
	for i := range events {
		e := &events[i]
		if (e.Kind == proto.EvSwitched || e.Kind == proto.EvLightFound) && e.Ledger != nil && int(e.Side) < len(st.watch.switched) {
			at := st.clock.world(time.Duration(e.AtMicros) * time.Microsecond)
			if w := &st.watch.switched[e.Side]; at > w.at {
				*w = moved{at, *e.Ledger}
			}
		}
	}
}

// receive hands a packet from the network to the agent.
func (r *Run) receive(st *station, t *task) error {
	if st.agent == nil || t.gen != st.conn {
		return nil
	}
	if st.cut {
		r.net.hold(t, &st.downAt)
		return nil
	}
	p := t.packet
	if p.Kind == proto.Publish {
		if topic, err := proto.ParseTopic(p.Topic); err == nil && topic.Kind == proto.TopicDecision {
			r.touch(st)
			if !p.Retain {
				st.watch.planned = r.now
			}
		}
	}
	st.agent.Deliver(st.clock.local(r.now), agent.Input{Kind: agent.InPacket, Packet: p})
	return r.poll(st, false)
}
