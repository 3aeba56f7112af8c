package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ringlight/agent"
	"ringlight/mzi/detmath"
	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/limit"
	"ringlight/sim"
	"ringlight/sim/agenda"
	"ringlight/sim/trace"
)

// epoch is when the trace begins on the virtual clock: what comes before is
// bringing the fabric up. chosen: long enough for any fabric, and fixed, so
// that the same seed has the same faults at the same times.
const epoch = time.Hour

// apart is how far events of the trace lie apart at least. What happens at one
// instant of the trace, which knows no better than 8.64 s, happens one after
// the other, each when the planner is quiet; by the minute, so that the times
// do not depend on how long that took. chosen.
const apart = time.Minute

// darkAtLeast is how long a node stays without power when its trace says that
// the fault had no length; chosen: a supply that was off has been off.
const darkAtLeast = time.Second

// Demo runs the whole product over a fault trace and returns what it found.
func Demo(ctx context.Context, cfg DemoConfig) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Log = limit.Logger(cfg.Log)
	f, err := fabric.New(cfg.Params)
	if err != nil {
		return nil, err
	}
	d := &demo{cfg: cfg, screen: screen{w: cfg.Screen, gpusPerNode: cfg.GPUsPerNode}, result: &Result{}}
	if cfg.Costs.Source != sim.DefaultCosts().Source {
		d.result.Costs = cfg.Costs.Source
	}
	if d.trace = cfg.Trace; d.trace == nil {
		d.trace = trace.Generate(cfg.Seed)
		d.cfg.TraceName = fmt.Sprintf("built-in generator, seed %d", cfg.Seed)
	}
	d.screen.fabric(&d.cfg, f.Nodes*f.Bundles, d.cfg.TraceName)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := d.prepare(ctx, f); err != nil {
		return nil, err
	}
	defer d.close(cancel)
	if err := d.bringUp(ctx); err != nil {
		return nil, err
	}
	if err := d.replay(ctx); err != nil {
		if errors.Is(err, context.Canceled) { // what there is so far is worth its line
			d.account()
			d.count()
			d.screen.interrupted(&d.cfg, d.result, inDays(d.nodes.now-epoch))
		}
		return nil, err
	}
	if err := d.finish(ctx); err != nil {
		return d.result, err
	}
	if cfg.Finished != nil {
		cfg.Finished(d.result)
	}
	if cfg.Hold {
		return d.result, d.hold(ctx)
	}
	return d.result, d.screen.err
}

type demo struct {
	cfg    DemoConfig
	trace  *trace.Trace
	nodes  *stepper
	above  *Central
	screen screen
	result *Result
	waste  waste
	known  view // the planner's rings at the last quiet moment
	down   bool // the broker is stopped
}

// prepare builds the world and starts broker and planner.
func (d *demo) prepare(ctx context.Context, f *fabric.Fabric) error {
	bench, spread, err := calibrate(ctx, d.cfg.Physics, d.cfg.Seed, catalogueSize, progressTo(d.cfg.Progress, "modules calibrated"))
	if err != nil {
		return err
	}
	s := &stepper{cfg: d.cfg, fabric: f, costs: d.cfg.Costs, inbox: make(chan arrival, inboxSize), watch: &watch{news: make(chan struct{}, 1)}, log: d.cfg.Log}
	s.world = sim.NewWorld(sim.WorldConfig{Seed: d.cfg.Seed, Costs: s.costs})
	board, calibrations, err := bench.Build(s.world, f, d.cfg.Modules, d.cfg.Seed)
	if err != nil {
		return err
	}
	s.board = board
	for n := range f.Nodes {
		st := &station{id: proto.NodeID(n), board: sim.BoardID(n), calibrations: calibrations[n], next: agent.Never, synced: agent.Never}
		s.stations = append(s.stations, st)
	}
	s.queue = agenda.NewRoster(f.Nodes)
	d.nodes = s
	d.waste = waste{groupNodes: f.GroupNodes(), nodes: f.Nodes, since: epoch}

	observe := func(p *planner.Planner) { s.watch.planner(p.Overview(), p.Rings.Placed.Statuses) }
	if d.above, err = StartCentral(ctx, f, d.cfg.Listen, d.cfg.HTTP, d.cfg.Log, observe); err != nil {
		return err
	}
	s.broker, s.skips = d.above.Link(), d.above.skips
	d.screen.broker(s.broker.Broker, spread, catalogueSize)
	if d.above.View != "" {
		d.screen.line("view     %s", d.above.View)
	}
	return nil
}

func (d *demo) close(cancel context.CancelFunc) {
	cancel()
	var goodbyes sync.WaitGroup
	for _, st := range d.nodes.stations {
		if st.link != nil {
			goodbyes.Go(st.link.Close)
		}
	}
	goodbyes.Wait()
	d.above.Close()
}

// bringUp powers every node and waits for the first generation.
func (d *demo) bringUp(ctx context.Context) error {
	s := d.nodes
	for _, st := range s.stations {
		if err := s.powerOn(st); err != nil {
			return err
		}
	}
	if err := d.settle(ctx); err != nil {
		return err
	}
	d.known = s.watch.view()
	w := s.watch
	took := w.done.Sub(w.pushed)
	d.result.CommitMillis = took.Milliseconds()
	d.screen.formed(d.known.overview, d.cfg.TP, d.cfg.Nodes, d.spares(), len(w.applied), took)
	if s.now > epoch {
		return fmt.Errorf("live: bringing the fabric up took until %v of virtual time", s.now)
	}
	return s.jump(ctx, epoch)
}

// settle waits until the planner is quiet, or ends with what stopped it.
func (d *demo) settle(ctx context.Context) error {
	err := d.nodes.settle(ctx, false)
	return errors.Join(d.above.gone(), err)
}

// spares counts the spare nodes and those that stand beside a ring: within
// reach of a fibre.
func (d *demo) spares() fabricSpares {
	var in []proto.NodeID
	for _, r := range d.known.rings {
		in = append(in, r.Nodes...)
	}
	var f fabricSpares
	for _, st := range d.nodes.stations {
		if slices.Contains(in, st.id) || st.effect != trace.None {
			continue
		}
		f.spares++
		if slices.ContainsFunc(in, func(other proto.NodeID) bool { _, ok := d.nodes.fabric.Link(st.id, other); return ok }) {
			f.reach++
		}
	}
	return f
}

// replay goes through the trace, one event after the other.
func (d *demo) replay(ctx context.Context) error {
	span := time.Duration(d.cfg.Days) * trace.Day
	at := time.Duration(0)
	days := progressTo(d.cfg.Progress, "days")
	for i, e := range d.trace.Nodes(d.cfg.Nodes, d.cfg.Seed, span) {
		if err := d.outages(ctx, e.At); err != nil {
			return err
		}
		at = max(epoch+e.At, at+apart)
		err := d.nodes.jump(ctx, at-apart/2)
		if err == nil && !d.down {
			err = d.settle(ctx)
		}
		if err == nil {
			err = d.nodes.jump(ctx, at)
		}
		if err != nil {
			return err
		}
		d.nodes.world.Reseed(detmath.Hash(d.cfg.Seed, uint64(i)))
		if d.screen.w == nil {
			days(int(e.At/trace.Day), d.cfg.Days)
		}
		if err := d.event(ctx, e); err != nil {
			return fmt.Errorf("day %.1f, node %d: %w", inDays(e.At), e.Node, err)
		}
	}
	if err := d.outages(ctx, span); err != nil {
		return err
	}
	if err := d.nodes.jump(ctx, epoch+span); err != nil {
		return err
	}
	d.account()
	if d.screen.w == nil {
		days(d.cfg.Days, d.cfg.Days)
	}
	return nil
}

// account adds the time since the last event to the waste.
func (d *demo) account() {
	healthy, full := d.nodes.groups()
	d.waste.until(d.nodes.now, healthy, full)
}

// event is one start or end of a fault.
func (d *demo) event(ctx context.Context, e trace.NodeEvent) error {
	d.account()
	s := d.nodes
	if !e.Start {
		return d.repair(ctx, e)
	}
	f, res, err := s.strike(e)
	if err != nil {
		return err
	}
	if !res.RingClosed {
		d.result.RingsOpen++
	}
	d.result.Faults = append(d.result.Faults, res)
	ends := make([]proto.NodeID, len(f.ends))
	for i, end := range f.ends {
		ends[i] = end.station.id
	}
	d.screen.fault(&res, ends, d.ringOf(f.ring), faultName(e.Fault))
	return d.follow(ctx)
}

func (d *demo) repair(ctx context.Context, e trace.NodeEvent) error {
	s := d.nodes
	st := s.stations[e.Node]
	if e.Before == trace.NodeDark && e.After != trace.NodeDark {
		if err := s.jump(ctx, s.now+darkAtLeast); err != nil {
			return err
		}
	}
	if err := s.apply(st, e); err != nil {
		return err
	}
	if e.After == trace.None {
		d.screen.again(inDays(e.At), st.id, "recovered")
	}
	return d.follow(ctx)
}

// ringOf finds a ring in what was known of the planner.
func (d *demo) ringOf(id proto.RingID) *proto.RingStatus {
	for i := range d.known.rings {
		if d.known.rings[i].Ring == id {
			return &d.known.rings[i]
		}
	}
	return nil
}

// follow waits for the planner's answer to an event and tells it. Without a
// broker there is none: the nodes' own timers alone run out.
func (d *demo) follow(ctx context.Context) error {
	if d.down {
		return d.nodes.jump(ctx, d.nodes.now+horizon)
	}
	start := time.Now()
	if err := d.settle(ctx); err != nil {
		return err
	}
	d.planned(start)
	return nil
}

// planned tells what the planner has done since a time that it is quiet again.
func (d *demo) planned(start time.Time) {
	was := d.known
	d.known = d.nodes.watch.view()
	if d.known.overview.Generation != was.overview.Generation {
		d.screen.planned(changes(&was, &d.known, d.known.quietAt.Sub(start)))
	}
}

// outages stops and restarts the broker as its time comes, before an event at
// t of the trace.
func (d *demo) outages(ctx context.Context, t time.Duration) error {
	o := d.cfg.BrokerDown
	if o == nil {
		return nil
	}
	from := time.Duration(o.Day) * trace.Day
	to := from + time.Duration(o.Days)*trace.Day
	if !d.down && t >= from && d.nodes.now < epoch+from {
		if err := d.nodes.jump(ctx, epoch+from); err != nil {
			return err
		}
		d.screen.line("day "+dayWidth+"  broker stopped", inDays(from))
		d.down, d.nodes.alone = true, true
		if err := d.above.stop(); err != nil {
			return err
		}
	}
	if d.down && t >= to {
		return d.reconnect(ctx, to)
	}
	return nil
}

// reconnect starts the broker again and waits until everything has converged.
func (d *demo) reconnect(ctx context.Context, to time.Duration) error {
	if err := d.nodes.jump(ctx, epoch+to); err != nil {
		return err
	}
	d.account()
	if err := d.above.restart(); err != nil {
		return err
	}
	d.down, d.nodes.alone = false, false
	start := time.Now()
	if err := d.settle(ctx); err != nil {
		return err
	}
	d.screen.line("day "+dayWidth+"  broker back: every node reported and every event delivered after %.1f s", inDays(to), time.Since(start).Seconds())
	d.planned(start)
	return nil
}

// finish counts what is left to count.
func (d *demo) finish(ctx context.Context) error {
	if d.down {
		if err := d.reconnect(ctx, time.Duration(d.cfg.Days)*trace.Day); err != nil {
			return err
		}
	}
	if err := d.settle(ctx); err != nil {
		return err
	}
	d.count()
	if d.openMembers() {
		d.result.RingsOpen++
	}
	d.screen.end(&d.cfg, d.result)
	return nil
}

func (d *demo) count() {
	s, r := d.nodes, d.result
	o := s.watch.overview()
	r.Nodes, r.GPUsPerNode, r.GPUsTotal = d.cfg.Nodes, d.cfg.GPUsPerNode, d.cfg.Nodes*d.cfg.GPUsPerNode
	r.Rings, r.Spares = o.Rings, o.Spares
	r.Generation, r.Term = uint64(o.Generation), uint64(o.Term)
	r.LinksTotal, r.LinksConfirmed = o.LinksTotal, o.LinksConfirmed
	r.EventsQueued, r.EventsDelivered = s.eventCounts()
	r.EventsLost = r.EventsQueued - min(r.EventsQueued, r.EventsDelivered)
	r.GPUWasteRatio, r.GPUWasteIdeal = d.waste.ratios()
}

// openMembers walks the light of all rings at a quiet moment.
func (d *demo) openMembers() bool {
	members := map[proto.NodeID]bool{}
	for _, r := range d.nodes.watch.view().rings {
		for _, n := range r.Nodes {
			members[n] = d.nodes.stations[n].effect == trace.None
		}
	}
	return !d.nodes.closed(members)
}

// hold keeps everything running for whoever wants to look closer: from here
// on virtual time goes with the wall.
func (d *demo) hold(ctx context.Context) error {
	d.screen.line("holding on %s until interrupted", d.nodes.broker.Broker)
	err := d.nodes.realTime(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
