package fleet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/agenda"
)

// Config of one run.
type Config struct {
	Fabric  *fabric.Fabric // of nodes, of circuit switches, or of both
	Modules int
	Seed    uint64
	Span    time.Duration // of the faults, from when the fabric stands; 0: the run ends with the job lists
	Health  time.Duration
	// HealthModules is how many modules a node reads in that time, 0: all.
	HealthModules int
	Optics        *Optics   // of nodes and servers
	Boxes         []string  // what switches are, see BuildMirrors
	Costs         sim.Costs // of all boards' computers; without a source: sim.DefaultCosts
	Jobs          []string  // lists of jobs for the core, each applied when all is quiet, before Span begins
	Faults        []Fault   // in order of time
	Rates         Rates     // of the network from the beginning
	Shed          uint32    // messages in a million that are lost above TCP, each way
	Exchange      bool      // rings go through the steps of Binary Exchange
	Starve        uint32    // of a processor, in a million, that every agent has; 0: all of it
	Replay        string    // the command that runs it again
	// Progress, when not nil, is told now and then how far the run is. An
	// error ends it.
	Progress func(at, of time.Duration, r *Run) error
	// TraceLine, when not nil, is given every fault and violation, every split
	// and its repair, and the logs of planner and agents, as text.
	TraceLine func(line string)

	mutant *mutant
}

// Run is one fleet. Make it with New, run it with Do.
type Run struct {
	timeline
	cfg      Config
	costs    sim.Costs
	board    *hal.Board // of nodes
	mirrors  *Mirrors   // of switches; nil: none
	stations []*station // nodes, then switches; a station's place is its board's
	nodes    []*station
	switches []*station
	queue    agenda.Roster // of the stations' agents
	net      *network
	planners [2]*process
	disk     random
	drifts   random        // of clocks
	epoch    time.Duration // when the faults begin

	inject  *injector
	edits   *editor
	audit   *audit
	atCore  CoreCounts
	measure measure
	flips   flips
	tracer  *tracer
	polls   uint64
	asked   uint64 // requests of operators

	closeBound time.Duration // of this run's boards and processors
	ringBound  time.Duration // of a ring round a loss
	coldStart  time.Duration
	reach      int // the most hops that a description had a fibre span
}

// New builds a fleet without power.
func New(cfg Config) (*Run, error) {
	widest, err := widest(&cfg)
	if err != nil {
		return nil, err
	}
	for i := range cfg.Faults {
		if err := cfg.Faults[i].check(cfg.Fabric, widest); err != nil {
			return nil, err
		}
	}
	for n, list := range cfg.Jobs {
		kind, text := entryOf(list)
		switch kind {
		case coreEdit:
			_, err = parseChange(text)
		case goPhases, goTraffic: // of the same form
			_, err = parsePhases(text)
		default:
			if _, known := cfg.Fabric.FindPart(text); kind == "" || !known {
				_, err = parseJobs(list)
			}
		}
		if err != nil || cfg.Fabric.Core == nil {
			return nil, fmt.Errorf("fleet: job list %d: %w", n, errors.Join(err, (&Fault{Verb: JobsApply}).check(cfg.Fabric, widest)))
		}
	}
	r := &Run{cfg: cfg, closeBound: closeWithin(&cfg), ringBound: ringWithin(&cfg), coldStart: max(coldStart, coldTurns*longestPeriod(&cfg)), reach: cfg.Fabric.K, disk: random{seed: detmath.Hash(cfg.Seed, streamCrash)}}
	r.world = sim.NewWorld(sim.WorldConfig{Seed: cfg.Seed, Costs: cfg.Costs})
	r.costs = r.world.Costs()
	r.tracer = &tracer{timeline: &r.timeline, sum: sha256.New(), line: cfg.TraceLine}
	if err := r.build(); err != nil {
		return nil, err
	}
	r.queue = agenda.NewRoster(len(r.stations))
	var processes []*client
	for i := range r.planners {
		r.planners[i] = &process{client: client{who: plannerID - int32(i)}, r: r, rival: i > 0, store: map[string][]byte{}}
		processes = append(processes, &r.planners[i].client)
	}
	r.sources = []source{boards{r}, agents{r}, planners{r}, scheduled{r}}
	r.net = newNetwork(&r.timeline, cfg.Seed, each(r.stations, func(st *station) *client { return &st.client }), len(r.nodes), processes)
	r.net.rates, r.net.shed = cfg.Rates, cfg.Shed
	r.net.lossy = cfg.Shed > 0 || slices.ContainsFunc(cfg.Faults, func(f Fault) bool { return f.Verb == Shed && f.Count > 0 })
	r.inject = &injector{Run: r, installed: ownSoftware, rolls: slices.ContainsFunc(r.cfg.Faults, func(f Fault) bool { return f.Verb == RolloutRun })}
	r.edits = &editor{in: r.inject}
	r.audit = newAudit(r)
	r.measure = measure{r: r, open: map[int]*strike{}, latest: map[proto.RingID]proto.Generation{}, bypasses: map[int][]int64{}, wasted: make([]time.Duration, r.cfg.Fabric.Nodes+1)}
	r.net.resent = r.measure.lost
	r.flips.r = r
	return r, nil
}

// build puts the boards into the world.
func (r *Run) build() error {
	f := r.cfg.Fabric
	var calibrations [][]*ocs.Calibration
	var err error
	if f.Nodes > 0 {
		if r.board, calibrations, err = r.cfg.Optics.Build(r.world, f, r.cfg.Modules, r.cfg.Seed); err != nil {
			return err
		}
	}
	r.drifts = random{seed: detmath.Hash(r.cfg.Seed, streamClock)}
	for n := range f.Nodes {
		r.addNode(proto.NodeID(n), calibrations[n])
	}
	r.nodes = r.stations
	if f.Core == nil {
		return nil
	}
	if r.mirrors, err = BuildMirrors(r.world, f.Core, r.cfg.Seed, r.cfg.Boxes...); err != nil {
		return err
	}
	if m := r.cfg.mutant; m != nil {
		r.mirrors.plug = m.plug
	}
	if err := r.mirrors.AddServers(r.world, f.Core, r.cfg.Optics, r.cfg.Modules, r.cfg.Seed); err != nil {
		return err
	}
	for s := range f.Core.Switches() {
		r.add(proto.FirstSwitch + proto.NodeID(s)).boot = 1
	}
	r.switches = r.stations[f.Nodes:]
	r.nodes = r.stations[:f.Nodes]
	return nil
}

func (r *Run) add(id proto.NodeID) *station {
	n := len(r.stations)
	st := &station{client: client{who: int32(n)}, r: r, id: id, board: sim.BoardID(n), installed: ownSoftware,
		share: shareOf(detmath.Hash(r.cfg.Seed, streamShare, uint64(id)), r.cfg.Starve)}
	r.stations = append(r.stations, st)
	return st
}

// station is the device of a number; nil: there is none.
func (r *Run) station(id proto.NodeID) *station {
	if n := r.net.device(id); int(n) < len(r.stations) && (id.IsSwitch() || int(id) < len(r.nodes)) {
		return r.stations[n]
	}
	return nil
}

// Times of a run. chosen.
const (
	standWithin = time.Hour        // the rings must stand by then; the last of 1,000 nodes waited until 119 rings were worth moving for it
	listWithin  = 15 * time.Minute // and a job list, with all that happens meanwhile: the planner's longest patiences, several times
	lookEvery   = 250 * time.Millisecond
	coreEvery   = 100 * time.Millisecond
	healAfter   = 3 * time.Minute // after the last fault everything must be quiet
	// tellWithin is how long a returned node may take to be heard: until then the
	// planner goes by what it last knew.
	tellWithin = 5 * time.Second
	sweepEvery = time.Hour
	tellEvery  = 1 << 16 // steps between two words on progress
)

var errNotStanding = errors.New("fleet: the fabric does not stand")

// Do runs the fleet: powers it, waits until the planner has formed its rings
// and heard its switches, applies the job lists, lets the faults happen, mends
// the network and waits until all is told.
func (r *Run) Do() (*Result, error) {
	defer func() {
		// A broken invariant of a machine: say how to see it again.
		if p := recover(); p != nil {
			panic(fmt.Sprintf("%v (at %v, seed %d; again: %s)", p, r.now, r.cfg.Seed, r.cfg.Replay))
		}
	}()
	if err := r.start(); err != nil {
		return nil, err
	}
	if err := r.jobs(); err != nil {
		return nil, err
	}
	if r.cfg.Span > 0 {
		if err := r.script(); err != nil {
			return nil, err
		}
	}
	return r.result(), nil
}

// start powers everything and waits until it stands. Switches are never
// without power for long: theirs is on.
func (r *Run) start() error {
	for _, st := range r.switches {
		if err := st.start(); err != nil {
			return err
		}
	}
	for _, st := range r.nodes {
		r.inject.powerOn(st, 0)
	}
	if err := r.planners[0].start(); err != nil {
		return err
	}
	if err := r.until("the rings", lookEvery, standWithin, r.ringsStand); err != nil {
		return err
	}
	return r.until("the switches", coreEvery, listWithin, r.coreStands)
}

// until lets the run go on until something is reached.
func (r *Run) until(what string, every, within time.Duration, reached func() bool) error {
	for end := r.now + within; !reached(); {
		if r.now > end {
			status := ""
			if h := r.planners[0].host; h != nil {
				status = fmt.Sprintf(": %+v, core %+v, waits for %q", h.Planner().Overview(), h.Planner().Core.Status(), h.Planner().Status().Waiting)
			}
			return fmt.Errorf("%w: %s after %v%s (seed %d; again: %s)", errNotStanding, what, within, status, r.cfg.Seed, r.cfg.Replay)
		}
		if err := r.runTo(r.now + every); err != nil {
			return err
		}
	}
	return nil
}

// script lets the faults happen that have a time.
func (r *Run) script() error {
	r.epoch = r.now.Truncate(time.Second) + 2*time.Second
	if err := r.runTo(r.epoch); err != nil {
		return err
	}
	r.audit.stand()
	r.measure.stand()
	for i := range r.cfg.Faults {
		if f := &r.cfg.Faults[i]; f.Commit == 0 && f.At < r.cfg.Span {
			r.agenda.Push(r.epoch+f.At, task{kind: taskFault, n: i})
		}
	}
	if m := r.cfg.mutant; m != nil && m.act != nil {
		r.agenda.Push(r.epoch+m.at, task{kind: taskMutant})
	}
	for at := sweepEvery; at < r.cfg.Span; at += sweepEvery {
		r.agenda.Push(r.epoch+at, task{kind: taskSweep})
	}
	if r.cfg.Exchange {
		r.agenda.Push(r.epoch, task{kind: taskExchange})
	}
	if err := r.runTo(r.epoch + r.cfg.Span); err != nil {
		return err
	}
	r.measure.until(r.now)
	return r.heal()
}

// ringsStand: every ring is formed and told so.
func (r *Run) ringsStand() bool {
	if len(r.nodes) == 0 {
		return true
	}
	if r.planners[0].host == nil {
		return false
	}
	o := r.planners[0].host.Planner().Overview()
	quiet := o.Quiet || r.net.lossy // of many nodes one always waits for what was lost
	return quiet && o.Pending == 0 && o.Online == r.cfg.Fabric.Nodes && o.Rings == r.cfg.Fabric.TargetRings() && o.LinksConfirmed == o.LinksTotal
}

// coreStands: every switch is there, nothing is planned and nothing is broken.
func (r *Run) coreStands() bool {
	if len(r.switches) == 0 {
		return true
	}
	if r.inject.pending > 0 || !r.planners[0].up || r.now < max(r.inject.last, r.net.joined)+tellWithin {
		return false
	}
	on := 0
	for _, st := range r.switches[:r.cfg.Fabric.Core.Switches()] {
		if !st.up && !st.dark {
			return false
		}
		if !st.dark {
			on++
		}
	}
	s := r.coreStatus()
	return s.Quiet && int(s.Online) >= on && (s.Circuits == s.Tuned || r.audit.circuits.simplex())
}

// coreStatus is what the planner says of the circuits, when there is one.
func (r *Run) coreStatus() proto.CoreStatus {
	if r.planners[0].host == nil {
		return proto.CoreStatus{}
	}
	return r.planners[0].host.Planner().Core.Status()
}

// planning tells whether a planner is at work.
func (r *Run) planning() bool { return r.planners[0].host != nil || r.planners[1].host != nil }

// idle: one is, and has nothing to do.
func (r *Run) idle() bool {
	for _, b := range r.planners {
		if b.host != nil && !b.host.Planner().Overview().Quiet {
			return false
		}
	}
	return r.planning()
}

// runTo lets everything happen that is due up to t, and sets the clock to t.
func (r *Run) runTo(t time.Duration) error {
	err := r.run(t, func() error {
		if r.steps%tellEvery != 0 || r.cfg.Progress == nil {
			return nil
		}
		return r.cfg.Progress(r.now-r.epoch, r.cfg.Span, r)
	})
	if err != nil {
		return fmt.Errorf("%w (at %v, seed %d; again: %s)", err, r.now, r.cfg.Seed, r.cfg.Replay)
	}
	return nil
}

// do lets what is scheduled happen.
func (r *Run) do(t *task) error {
	switch t.kind {
	case taskUp, taskConnect, taskWill:
		r.net.do(t)
	case taskDown:
		if t.who >= 0 {
			return r.stations[t.who].receive(t)
		}
		r.process(t.who).receive(t)
	case taskLost:
		if !r.net.breaks(t) {
			return nil
		}
		if t.who < 0 {
			r.process(t.who).deliver(proto.Packet{Kind: proto.LinkDown})
			return nil
		}
		return r.stations[t.who].deliver(agent.Input{Kind: agent.InPacket, Packet: proto.Packet{Kind: proto.LinkDown}})
	case taskPersisted:
		return r.persisted(t)
	case taskBox:
		return r.stations[t.who].exchange(t)
	case taskFault:
		return r.inject.apply(&r.cfg.Faults[t.n])
	case taskStep:
		return r.inject.step(t.n)
	case taskStart:
		if st := r.stations[t.who]; st.life == t.gen {
			return st.start()
		}
	case taskCheck:
		r.audit.look(r.stations[t.who])
	case taskExchange:
		r.flips.next()
	case taskFlip:
		r.flips.look()
	case taskMove:
		r.measure.watchMove(t.n)
	case taskMeasure:
		r.measure.after(t.n)
	case taskSweep:
		r.audit.sweep()
	case taskMutant:
		r.cfg.mutant.act(r)
	case taskAsk:
		r.edits.again(t.n)
	case taskEdited:
		r.audit.keptDue()
	case taskCompare:
		r.audit.compare()
	case taskRest:
		r.audit.rest(t.n)
	}
	return nil
}

func (r *Run) persisted(t *task) error {
	if t.who < 0 {
		if b := r.process(t.who); t.gen == b.life {
			b.stored()
		}
		return nil
	}
	if st := r.stations[t.who]; st.life == t.gen && st.disk.Busy() {
		return st.persisted()
	}
	return nil
}

// neighbours calls do for a node and those within K hops of it.
func (r *Run) neighbours(id proto.NodeID, do func(*station)) {
	n, k := len(r.nodes), r.reach
	for d := -k; d <= k; d++ {
		i := int(id) + d
		if i < 0 || i >= n {
			i = (i%n + n) % n // a line has no such neighbour; a look too many is harmless
		}
		do(r.nodes[i])
	}
}
