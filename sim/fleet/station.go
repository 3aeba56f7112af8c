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

// station is one device, a node or a circuit switch: its board in the world,
// its agent while it lives, its journal, its clock and its place on the
// network. It is the ports of its agent's host.
type station struct {
	client
	r            *Run
	id           proto.NodeID
	board        sim.BoardID
	calibrations []*ocs.Calibration // of a node

	host     *agent.Host // nil: no agent
	life     uint32      // counts the agents
	boot     uint64
	clock    clock
	thinking agent.Thinking
	disk     agent.Disk

	share     share         // of its processor
	decide    time.Duration // what a decision takes with all of it
	waits     []agent.Input // for the processor
	busyUntil time.Duration // with what it had last

	dark      bool // has no supply
	cold      bool // no agent has run since it has
	hostBad   bool
	broken    int    // faults on the board
	installed string // software that the next life is of
	over      bool   // this life starts its successor
	watch     watched
}

// watched is what the checkers have seen of a node.
type watched struct {
	touched   time.Duration // last fault, start or plan here
	struck    time.Duration // the same but for plans
	tried     time.Duration // until when a planner may have fibres of it lit
	acted     time.Duration // last bus work that moves light
	planned   time.Duration // last decision
	mended    time.Duration // last repair of the board
	walked    bool          // its optics have drifted, and nobody has calibrated them since
	shorted   bool          // a heater was short
	death     *snapshot     // what an agent's death left
	born      time.Duration // start of the agent after the supply came
	checking  bool          // a look is planned
	openSince time.Duration // first seen open, 0: is closed
	listed    bool          // the open strand is a violation already
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
	streamShed
	streamShare
)

// Times of a device's computer, and of a box on the network. chosen.
const (
	boxLeast     = 2 * time.Millisecond
	boxMean      = 10 * time.Millisecond  // boxes of the field switch in 10 to 25 ms
	persistLeast = 700 * time.Microsecond // append and sync to a flash chip
	persistMean  = 500 * time.Microsecond
	bootTime     = 2 * time.Second // from supply to agent
)

// local is the time on the device's own clock.
func (st *station) local() time.Duration { return st.clock.local(st.r.now) }

// config is what a new agent of this device is told.
func (st *station) config() agent.Config {
	r := st.r
	cfg := agent.Config{
		Fabric: r.cfg.Fabric.Name, Node: st.id, Boot: st.boot, Software: "ringlight " + st.installed, Seed: r.cfg.Seed, HealthPeriod: r.cfg.Health,
		Session: proto.Session(detmath.Hash(r.cfg.Seed, streamSession, uint64(st.id), uint64(st.life))), Restarts: r.inject.rolls,
	}
	if st.id.IsSwitch() {
		r.mirrors.Agent(int(st.id-proto.FirstSwitch), &cfg)
		if cfg.Factory == nil {
			cfg.Decide = r.costs.Decide
		}
	} else {
		cfg.Board, cfg.Calibrations, cfg.HealthModules, cfg.Decide = r.board, st.calibrations, r.cfg.HealthModules, r.costs.Decide
	}
	return cfg
}

// start makes a fresh agent that knows only its journal.
func (st *station) start() error {
	if st.host != nil || st.dark {
		return nil
	}
	r := st.r
	st.life++
	cfg := st.config()
	will, err := cfg.Will()
	if err != nil {
		return fmt.Errorf("fleet: %s: %w", st.name(), err)
	}
	journal := st.disk.Restore()
	mutant := r.cfg.mutant
	if mutant != nil && mutant.restored != nil && st.life > 1 {
		mutant.restored(st, &journal)
	}
	st.host, st.thinking, st.decide = agent.NewHost(cfg, journal, st, nil), agent.Thinking{Takes: cfg.Decide}, cfg.Decide
	st.host.Calibrated, st.host.Log, st.host.Bins = st.calibrated, st.log, st.disk.KeepBins
	st.host.Firmware = st.firmware
	st.host.Restart, st.host.End = st.restart, func() { st.over = true }
	st.will, st.rings, st.alive, st.tries = will, nil, true, 0
	if err := st.host.Levels(st.local(), func(line hal.LineID) (bool, error) { return r.world.Level(st.board, line), nil }); err != nil {
		return err
	}
	if st.cold {
		st.cold, st.watch.born = false, r.now
	} else {
		r.audit.returns(st)
	}
	if mutant != nil && mutant.born != nil && st.life > 1 {
		mutant.born(r, st)
	}
	r.touch(st)
	r.agenda.Push(r.now+r.net.hop(), task{kind: taskConnect, who: st.who, gen: st.conn})
	if st.hostBad {
		return st.ask(agent.Ask{Verb: agent.AskHostFault, Text: "told again after a start"})
	}
	return st.settle()
}

// restart says whether the software that is installed is the one that is wanted, as
// ocs-agent does.
func (st *station) restart(software string) {
	var why string
	if is := st.installed; software != "" && proto.Release(software) != is {
		why = fmt.Sprintf("ocs-agent is %s, wanted is %s: install that first", is, software)
	}
	st.host.Deliver(st.local(), agent.Input{Kind: agent.InRestart, Text: why})
}

// firmwareBytes are those of an image behind its head. chosen: a run is not to be long.
const firmwareBytes = 3000

// firmware gives the file of a version of the modules' firmware, of which a device has all.
func (st *station) firmware(version string) {
	in := agent.Input{Kind: agent.InFirmware}
	v, err := proto.ParseFirmware(version)
	if err != nil {
		in.Text = err.Error()
	} else {
		in.Line = sim.FirmwareImage(sim.FirmwareVersion(v), firmwareBytes)
	}
	st.host.Deliver(st.local(), in)
}

// ownSoftware is what agents are of where no line of the script says another.
const ownSoftware = "fleet"

// startTakes is the time from the end of an agent to the first step of what follows
// it. chosen: what a process takes on a slow controller.
const startTakes = 40 * time.Millisecond

// succeed ends a life that starts its successor; it takes leave of the broker.
func (st *station) succeed() {
	if !st.over {
		return
	}
	st.over = false
	st.r.audit.dies(st)
	st.r.net.leave(&st.client)
	st.end(true)
	st.r.agenda.Push(st.r.now+startTakes, task{kind: taskStart, who: st.who, gen: st.life})
}

// name is the device's for people.
func (st *station) name() string { return deviceName(st.id) }

func deviceName(id proto.NodeID) string {
	if id.IsSwitch() {
		return fmt.Sprintf("switch %d", id-proto.FirstSwitch)
	}
	return fmt.Sprintf("node %d", id)
}

// end ends the process; quiet: nobody tells the broker. The record under way
// is on disk, or it is not.
func (st *station) end(quiet bool) {
	if st.host == nil {
		return
	}
	if st.disk.Busy() && detmath.Hash(st.r.cfg.Seed, streamCrash, uint64(st.id), uint64(st.life))&1 == 0 {
		st.written()
	}
	st.disk.Lose()
	st.r.net.hangUp(&st.client, quiet)
	st.alive, st.host, st.waits, st.busyUntil = false, nil, nil, 0
	st.r.queue.Place(int(st.who), never)
	st.r.touch(st)
}

// written brings the record under way to the disk.
func (st *station) written() uint64 {
	id, err := st.disk.Commit()
	if err != nil {
		st.r.audit.violate(st.id, "nothing lost", "the journal refuses a record: "+err.Error())
	}
	return id
}

// persisted is told when the record under way is on disk.
func (st *station) persisted() error {
	return st.deliver(agent.Input{Kind: agent.InPersisted, ID: st.written()})
}

// hardware hands an event of the board to the agent, in its own time, and lets
// it act.
func (st *station) hardware(ev hal.Event) error {
	r := st.r
	if st.host == nil || r.cfg.mutant.misses(st, ev.Edge) {
		return nil
	}
	if c := ev.Completion; c != nil {
		c.Start, c.End = st.clock.local(c.Start), st.clock.local(c.End)
	}
	if ev.Edge != nil {
		r.tracer.edge(st.who, ev.Edge)
		e := *ev.Edge
		e.At = st.clock.local(e.At)
		if e.Origin != 0 {
			e.Origin = st.clock.local(e.Origin)
		}
		ev.Edge = &e
	}
	return st.deliver(agent.Input{Kind: agent.InHardware, Hardware: ev})
}

func (st *station) ask(q agent.Ask) error {
	if st.host == nil {
		return nil
	}
	st.host.Ask(st.local(), q, nil)
	return st.settle()
}

// settle lets the agent act now, after a delivery or when it is due, or as soon
// as it has the processor.
func (st *station) settle() error {
	r, now := st.r, st.local()
	if at := st.turn(r.now); at > r.now {
		r.queue.Place(int(st.who), at)
		return nil
	}
	st.think()
	mode := st.host.View().Mode()
	for range maxPolls {
		r.polls++
		if _, err := st.host.Round(now); err != nil {
			return fmt.Errorf("fleet: %s: %w", st.name(), err)
		}
		if !st.host.Quiet(now) {
			continue
		}
		next := st.host.Next()
		if next != never {
			next = st.turn(st.clock.world(next))
		}
		r.queue.Place(int(st.who), next)
		if st.host.View().Mode() != mode {
			r.touch(st)
		}
		st.succeed()
		return nil
	}
	return fmt.Errorf("fleet: %s wants to be polled for ever at %v", st.name(), r.now)
}

// Submit gives work to a bus of the board. What is asked for while an earlier
// decision is still being thought must not overtake its work.
func (st *station) Submit(now time.Duration, w agent.Work) error {
	r := st.r
	leaves := st.thinking.Leaves(r.now, w.Decided)
	if w.Op.Class == hal.ClassSwitch {
		st.watch.acted = r.now
		r.look(st)
	}
	if r.cfg.mutant.drops(st, w.Op) {
		done := &hal.Completion{Bus: w.Bus, Op: w.Op, Start: now, End: now}
		st.host.Deliver(now, agent.Input{Kind: agent.InHardware, Hardware: hal.Event{Completion: done}})
		return nil
	}
	if st.box() != nil {
		said := w // else every w would be on the heap
		r.agenda.Push(leaves+boxLeast+r.disk.wait(boxMean), task{kind: taskBox, who: st.who, gen: st.life, work: &said})
		return nil
	}
	return r.world.Submit(leaves, st.board, w.Bus, w.Op)
}

// box is the commercial box that the agent drives; nil: it has a board.
func (st *station) box() *far { return st.r.mirrors.box(int(st.id) - int(proto.FirstSwitch)) }

// exchange carries what an agent said to its box and the answer back, if the line is the same still.
func (st *station) exchange(t *task) error {
	if t.gen != st.life || st.dark {
		return nil
	}
	far, m := st.box(), &t.work.Op.Msgs[0]
	far.Say(m.W)
	c := &hal.Completion{Bus: t.work.Bus, Op: t.work.Op, Start: st.r.now, End: st.r.now}
	if copy(m.R, far.Hear()) == 0 {
		c.Err = hal.ErrTimeout
	}
	st.r.audit.circuits.look(st)
	return st.hardware(hal.Event{Completion: c})
}

// Send gives a packet to the network, which loses some.
func (st *station) Send(_ time.Duration, p proto.Packet) error {
	r := st.r
	if r.cfg.mutant.swallows(st, p) {
		return nil
	}
	if p.Kind == proto.Publish {
		r.tracer.packet(st.who, p)
		r.audit.said(st, p)
	}
	r.net.send(&st.client, p)
	return nil
}

// Persist takes a record on its way to the disk, and the switches out of it: a
// record is where every event is first.
func (st *station) Persist(_ time.Duration, id uint64, record *agent.Record) error {
	r := st.r
	st.disk.Begin(id, record)
	events := record.Events()
	for i := range events {
		e := &events[i]
		if r.audit.circuits != nil {
			r.audit.circuits.shines.told(st, e)
		}
		if (e.Kind == proto.EvSwitched || e.Kind == proto.EvLightFound) && e.Ledger != nil && int(e.Side) < len(st.watch.switched) {
			at := st.clock.world(time.Duration(e.AtMicros) * time.Microsecond)
			if w := &st.watch.switched[e.Side]; at > w.at {
				*w = moved{at, *e.Ledger}
			}
		}
	}
	r.agenda.Push(r.now+persistLeast+r.disk.wait(persistMean), task{kind: taskPersisted, who: st.who, gen: st.life})
	return nil
}

func (st *station) calibrated(b proto.BundleID, c *ocs.Calibration) {
	st.calibrations[b] = c
	if st.broken == 0 {
		st.watch.walked, st.watch.mended = false, st.r.now
	}
}

// log is for people who follow a run.
func (st *station) log(_ uint8, text string) {
	st.r.tracer.linef("%s: %s", st.name(), text)
}

// receive hands a packet from the network to the agent.
func (st *station) receive(t *task) error {
	r := st.r
	if st.host == nil || t.gen != st.conn {
		return nil
	}
	if st.cut {
		r.net.hold(t, &st.downAt)
		return nil
	}
	if t.packet.Kind == proto.Publish {
		if topic, err := proto.ParseTopic(t.packet.Topic); err == nil && topic.Kind == proto.TopicDecision {
			r.measure.tell(st)
			st.watch.touched = r.now
			r.look(st)
			if !t.packet.Retain {
				st.watch.planned = r.now
			}
		}
	}
	return st.deliver(agent.Input{Kind: agent.InPacket, Packet: t.packet})
}
