package fleet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// Config of one run.
type Config struct {
	Fabric  *fabric.Fabric
	Modules int
	Seed    uint64
	Span    time.Duration // of the faults, from when the fabric stands
	Health  time.Duration
	// HealthModules is how many modules a node reads in that time, 0: all.
	HealthModules int
	Optics        *Optics
	Faults        []Fault // in order of time
	Rates         Rates   // of the network from the beginning
	Replay        string  // the command that runs it again
	// Progress, when not nil, is told now and then how far the run is. An
	// error ends it.
	Progress func(at, of time.Duration, r *Run) error
	// TraceLine, when not nil, is given every fault and violation, every split
	// and its repair, and the planner's log, as text.
	TraceLine func(line string)

	mutant *mutant
}

// Run is one fleet. Make it with New, run it with Do.
type Run struct {
	timeline
	cfg      Config
	costs    sim.Costs
	board    *hal.Board
	lines    []place // by line
	stations []*station
	queue    roster
	net      *network
	planners [2]*process
	disk     random
	epoch    time.Duration // when the faults begin
	extra    []Fault       // steps of faults that have several
	died     time.Duration // of the broker
	cuts     []fabric.Port // of fibres that are not whole

	audit   *audit
	measure measure
	sum     hash.Hash
	scratch []byte
	polls   uint64
	steps   uint64
	asked   uint64 // requests of operators
}

// place is what an input line tells of.
type place struct{ bundle, path int }

// New builds a fleet without power.
func New(cfg Config) (*Run, error) {
	r := &Run{cfg: cfg, costs: sim.DefaultCosts(), sum: sha256.New(), disk: random{seed: detmath.Hash(cfg.Seed, streamCrash)}}
	for i := range cfg.Faults {
		if err := cfg.Faults[i].check(cfg.Fabric); err != nil {
			return nil, err
		}
	}
	r.world = sim.NewWorld(sim.WorldConfig{Seed: cfg.Seed, Costs: r.costs})
	board, calibrations, err := cfg.Optics.Build(r.world, cfg.Fabric, cfg.Modules, cfg.Seed)
	if err != nil {
		return nil, err
	}
	r.board = board
	r.lines = make([]place, len(board.Lines))
	for b := range board.Bundles {
		for path, line := range board.Bundles[b].LOS {
			r.lines[line] = place{b, path}
		}
	}
	draw := random{seed: detmath.Hash(cfg.Seed, streamClock)}
	for n := range cfg.Fabric.Nodes {
		st := &station{client: client{who: int32(n)}, id: proto.NodeID(n), board: sim.BoardID(n), calibrations: calibrations[n],
			slot: n, next: agent.Never, dark: true}
		st.clock.drift = int64(draw.below(2*maxDrift+1)) - maxDrift
		r.stations = append(r.stations, st)
	}
	for _, st := range r.stations {
		r.queue = append(r.queue, waiter{st.next, st})
	}
	for i := range r.planners {
		r.planners[i] = newProcess(r, i)
	}
	var devices, planners []*client
	for _, st := range r.stations {
		devices = append(devices, &st.client)
	}
	for _, b := range r.planners {
		planners = append(planners, &b.client)
	}
	r.net = newNetwork(&r.timeline, cfg.Seed, devices, cfg.Fabric.Nodes, planners)
	r.net.rates = cfg.Rates
	r.audit = newAudit(r)
	r.measure = newMeasure(r)
	return r, nil
}

// Times of a run. chosen.
const (
	standWithin = 10 * time.Minute // the fabric must stand by then
	lookEvery   = 250 * time.Millisecond
	healAfter   = 3 * time.Minute // after the last fault everything must be quiet
	sweepEvery  = time.Hour
	tellEvery   = 1 << 16 // steps between two words on progress
)

var errNotStanding = errors.New("fleet: the fabric does not stand")

// Do runs the fleet: powers it, waits until the planner has formed its rings,
// lets the faults happen, mends the network and waits until all is told.
func (r *Run) Do() (*Result, error) {
	defer func() {
		// A broken invariant of a machine: say how to see it again.
		if p := recover(); p != nil {
			panic(fmt.Sprintf("%v (at %v, seed %d; again: %s)", p, r.now, r.cfg.Seed, r.cfg.Replay))
		}
	}()
	for _, st := range r.stations {
		if err := r.powerOn(st, 0); err != nil {
			return nil, err
		}
	}
	if err := r.planners[0].start(); err != nil {
		return nil, err
	}
	for !r.stands() {
		if r.now > standWithin {
			o := r.planners[0].host.Planner().Overview()
			return nil, fmt.Errorf("%w after %v: %+v", errNotStanding, r.now, o)
		}
		if err := r.runTo(r.now + lookEvery); err != nil {
			return nil, err
		}
	}
	r.epoch = r.now.Truncate(time.Second) + 2*time.Second
	if err := r.runTo(r.epoch); err != nil {
		return nil, err
	}
	r.audit.stand()
	r.measure.stand()
	for i := range r.cfg.Faults {
		if f := &r.cfg.Faults[i]; f.At < r.cfg.Span {
			r.agenda.push(task{at: r.epoch + f.At, kind: taskFault, n: i})
		}
	}
	if m := r.cfg.mutant; m != nil && m.act != nil {
		r.agenda.push(task{at: r.epoch + m.at, kind: taskMutant})
	}
	for at := sweepEvery; at < r.cfg.Span; at += sweepEvery {
		r.agenda.push(task{at: r.epoch + at, kind: taskSweep})
	}
	if err := r.runTo(r.epoch + r.cfg.Span); err != nil {
		return nil, err
	}
	r.measure.until(r.now)
	if err := r.heal(); err != nil {
		return nil, err
	}
	return r.result(), nil
}

// stands: every ring is formed and told so.
func (r *Run) stands() bool {
	if r.planners[0].host == nil {
		return false
	}
	o := r.planners[0].host.Planner().Overview()
	return o.Quiet && o.Pending == 0 && o.Online == r.cfg.Fabric.Nodes && o.Rings == r.cfg.Fabric.TargetRings() && o.LinksConfirmed == o.LinksTotal
}

// process is the planner's computer behind a client's number.
func (r *Run) process(who int32) *process { return r.planners[plannerID-who] }

// plannerDue is the one that wants a tick first, and when; nil: none.
func (r *Run) plannerDue() (b *process, at time.Duration) {
	for _, x := range r.planners {
		if next := x.next(); next != planner.Never && (b == nil || next < at) {
			b, at = x, next
		}
	}
	return b, at
}

// planning tells whether a planner is at work.
func (r *Run) planning() bool { return r.planners[0].host != nil || r.planners[1].host != nil }

// planned: one is, and has nothing to do.
func (r *Run) planned() bool {
	for _, b := range r.planners {
		if b.host != nil && !b.host.Planner().Overview().Quiet {
			return false
		}
	}
	return r.planning()
}

// heal brings network and planner back and gives them time: what was queued
// must arrive.
func (r *Run) heal() error {
	mend := []Fault{{Verb: BrokerUp}, {Verb: RivalKill}, {Verb: PlannerMend}, {Verb: PlannerStart}, {Verb: PlannerResume}, {Verb: Network}}
	for _, st := range r.stations {
		if st.cut {
			mend = append(mend, Fault{Verb: LinkMend, Node: st.id})
		}
		if st.agent == nil && !st.dark {
			mend = append(mend, Fault{Verb: AgentStart, Node: st.id})
		}
	}
	for i := range mend {
		if err := r.apply(&mend[i]); err != nil {
			return err
		}
	}
	end := r.now + healAfter
	for r.now < end {
		if err := r.runTo(min(end, r.now+time.Second)); err != nil {
			return err
		}
		if r.audit.allTold() && r.planned() && r.now > r.epoch+r.cfg.Span+5*time.Second {
			break
		}
	}
	r.audit.sweep()
	r.audit.finish()
	return nil
}

// runTo lets everything happen that is due up to t, and sets the clock to t.
func (r *Run) runTo(t time.Duration) error {
	for {
		w, moves := r.world.Next()
		at := r.queue[0].next
		what := 1
		if moves && w <= at {
			at, what = w, 0
		}
		b, due := r.plannerDue()
		if b != nil && due < at {
			at, what = due, 2
		}
		if len(r.agenda.list) > 0 && r.agenda.list[0].at < at {
			at, what = r.agenda.list[0].at, 3
		}
		if at > t {
			break
		}
		if r.steps++; r.steps%tellEvery == 0 && r.cfg.Progress != nil {
			if err := r.cfg.Progress(r.now-r.epoch, r.cfg.Span, r); err != nil {
				return err
			}
		}
		if err := r.step(what, at, b); err != nil {
			return fmt.Errorf("%w (at %v, seed %d; again: %s)", err, r.now, r.cfg.Seed, r.cfg.Replay)
		}
	}
	if t > r.now {
		r.world.AdvanceTo(t)
		r.now = t
	}
	return nil
}

func (r *Run) step(what int, at time.Duration, b *process) error {
	if what == 0 {
		board, ev, visible := r.world.Step()
		r.now = max(r.now, r.world.Now())
		if !visible {
			return nil
		}
		return r.hardware(r.stations[board], ev)
	}
	if at > r.now {
		// The world's clock follows, so that what is written now ends later.
		r.now = at
		r.world.AdvanceTo(at)
	}
	switch what {
	case 1:
		return r.poll(r.queue[0].st, false)
	case 2:
		b.tick()
		return nil
	}
	t := r.agenda.pop()
	return r.do(&t)
}

func (r *Run) do(t *task) error {
	switch t.kind {
	case taskUp:
		r.net.arrived(t)
	case taskDown:
		if t.who >= 0 {
			return r.receive(r.stations[t.who], t)
		}
		switch b := r.process(t.who); {
		case b.host == nil || t.gen != b.conn:
		case b.cut:
			r.net.hold(t, &b.downAt)
		default:
			b.deliver(t.packet)
		}
	case taskConnect:
		if c := r.net.client(t.who); c.conn == t.gen {
			r.net.connect(c)
		}
	case taskLost:
		return r.linkLost(t)
	case taskWill:
		if c := r.net.client(t.who); c.session == t.gen && r.net.up && !c.mended(t.n) {
			r.net.bury(c)
		}
	case taskPersisted:
		return r.persisted(t)
	case taskFault:
		return r.apply(&r.cfg.Faults[t.n])
	case taskStep:
		return r.apply(&r.extra[t.n])
	case taskStart:
		if st := r.stations[t.who]; st.life == t.gen {
			return r.startAgent(st)
		}
	case taskCheck:
		r.audit.check(r.stations[t.who])
	case taskMove:
		r.measure.watchMove(t.n)
	case taskMeasure:
		r.measure.after(t.n)
	case taskSweep:
		r.audit.sweep()
	case taskMutant:
		r.cfg.mutant.act(r)
	case taskCompare:
		r.audit.compare()
	}
	return nil
}

func (r *Run) linkLost(t *task) error {
	c := r.net.client(t.who)
	if c.conn != t.gen || !c.up || c.mended(t.n) {
		return nil
	}
	c.up = false
	c.conn++
	r.net.retry(c)
	if t.who < 0 {
		r.process(t.who).deliver(proto.Packet{Kind: proto.LinkDown})
		return nil
	}
	st := r.stations[t.who]
	st.agent.Deliver(st.clock.local(r.now), agent.Input{Kind: agent.InPacket, Packet: proto.Packet{Kind: proto.LinkDown}})
	return r.poll(st, false)
}

func (r *Run) persisted(t *task) error {
	if t.who < 0 {
		if b := r.process(t.who); t.gen == b.life {
			b.stored()
		}
		return nil
	}
	st := r.stations[t.who]
	if st.life != t.gen || st.record == nil {
		return nil
	}
	r.written(st)
	st.agent.Deliver(st.clock.local(r.now), agent.Input{Kind: agent.InPersisted, ID: st.recordID})
	return r.poll(st, false)
}
