package fleet

import (
	"slices"
	"time"

	"ringlight/agent"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// injector lets the faults of a script happen.
type injector struct {
	*Run
	steps     []Fault // of faults that have several, and of those that end
	pending   int     // of steps
	last      time.Duration
	died      time.Duration // of the broker
	cuts      []fabric.Port // of fibres that are not whole
	installed string        // software, where no line said otherwise
	listed    string        // jobs that were applied last
	rolls     bool          // a line of the script brings another to all
}

// later lets a fault happen after a while.
func (in *injector) later(f Fault, after time.Duration) {
	in.steps = append(in.steps, f)
	in.pending++
	in.agenda.Push(in.now+after, task{kind: taskStep, n: len(in.steps) - 1})
}

// step is a fault that later planned.
func (in *injector) step(n int) error {
	in.pending--
	in.last = in.now
	return in.apply(&in.steps[n])
}

// committed is told of every commit that a planner publishes for the first
// time, with the switches that it is for: some faults wait for one.
func (in *injector) committed(stage []proto.NodeID) {
	in.atCore.Commits++
	for i := range in.cfg.Faults {
		f := in.cfg.Faults[i]
		if f.Commit != in.atCore.Commits || len(stage) == 0 {
			continue
		}
		if f.Stage > 0 {
			f.Node = stage[(f.Stage-1)%len(stage)]
			f.Stage = 0
		}
		in.later(f, f.At)
	}
}

// apply lets a fault happen now. What cannot happen - a dark node that loses
// its supply - does not.
func (in *injector) apply(f *Fault) error {
	line := f.String()
	in.audit.disturbed()
	in.tracer.text(line)
	in.tracer.linef("%s", line)
	if f.Commit > 0 {
		in.atCore.Struck++
		if f.Verb == AgentCrash && in.station(f.Node).host != nil {
			in.atCore.Killed++
		}
	}
	if f.For > 0 {
		undo := *f
		undo.Verb, undo.At, undo.Commit, undo.For = forms[f.Verb].undo, 0, 0, 0
		defer in.later(undo, f.For)
	}
	switch f.Verb {
	case NodeDark, NodeOn, HostFault, HostOK, AgentCrash, AgentStart, Reboot, BoardBreak, BoardRepair, LinkCut, LinkMend, MirrorStick, MirrorFree, Starve, Feed:
		return in.device(f, in.station(f.Node))
	case PartitionCut, PartitionMend:
		for n := f.Node; n <= f.Last; n++ {
			in.cutLink(&in.stations[n].client, f.Verb == PartitionCut)
		}
	case AgentCalibrate:
		return in.calibrate(f)
	case RolloutRun:
		for _, st := range in.nodes {
			if st.installed == in.installed {
				st.installed = f.Software
			}
		}
		in.installed = f.Software
		in.operate(f)
	case Install:
		in.station(f.Node).installed = f.Software
	case Drain, Undrain, Switch, JobsApply, RolloutStop:
		in.operate(f)
	case FabricEdit:
		return in.edits.edit(f)
	case FibreCut, FibreMend, FibreGlitch, FibreFlap:
		return in.fibre(f)
	case BrokerDown:
		if in.net.up {
			in.died = in.now
			in.audit.dies(nil)
			in.net.die()
		}
	case BrokerUp:
		if !in.net.up {
			in.net.rise(f.Span, in.died)
		}
	case Network:
		in.net.rates = f.Rates
	case Shed:
		in.net.shed = uint32(f.Count)
	default:
		return in.planner(f)
	}
	return nil
}

// planner is a fault of a planner's process.
func (in *injector) planner(f *Fault) error {
	p, rival := in.planners[0], in.planners[1]
	switch f.Verb {
	case PlannerKill:
		in.audit.dies(nil)
		p.kill()
	case PlannerLose:
		in.audit.dies(nil)
		p.kill()
		clear(p.store)
	case PlannerStart:
		return p.start()
	case PlannerPause:
		p.paused = p.host != nil
	case PlannerResume:
		p.paused = false
		p.run()
	case PlannerCut, PlannerMend:
		in.cutLink(&p.client, f.Verb == PlannerCut)
	case RivalStart:
		return rival.start()
	case RivalKill:
		rival.kill()
	}
	return nil
}

func (in *injector) device(f *Fault, st *station) error {
	if st == nil {
		return nil // the edit that brings it has not come
	}
	switch f.Verb {
	case NodeDark:
		if !st.dark {
			in.measure.strike(f, st)
			in.powerOff(st)
		}
	case NodeOn:
		in.powerOn(st, bootTime)
	case HostFault, HostOK:
		return in.gpus(f, st)
	case AgentCrash:
		in.audit.dies(st)
		st.end(false)
	case AgentStart:
		return st.start()
	case Reboot:
		if st.host == nil {
			return nil
		}
		in.audit.dies(st)
		st.end(true)
		st.boot++
		in.agenda.Push(in.now+f.Span, task{kind: taskStart, who: st.who, gen: st.life})
		st.clock.base = in.now
	case BoardBreak:
		in.touch(st)
		st.broken++
		st.watch.walked = st.watch.walked || f.Board.Kind == sim.DriftWalk || f.Board.Kind == sim.CellWalk
		st.watch.shorted = st.watch.shorted || f.Board.Kind == sim.HeaterShort
		return in.world.Inject(st.board, f.Board)
	case BoardRepair:
		in.touch(st)
		st.broken = max(0, st.broken-1)
		st.watch.mended = in.now
		return in.world.Repair(st.board, f.Board)
	case LinkCut, LinkMend:
		in.cutLink(&st.client, f.Verb == LinkCut)
	case Starve:
		return st.starve(uint32(f.Count))
	case Feed:
		return st.starve(million)
	case MirrorStick, MirrorFree:
		in.world.StickMirror(st.board, f.Mirror.Side, f.Mirror.Port, f.Verb == MirrorStick)
	}
	return nil
}

// gpus is the host's word on those of a node.
func (in *injector) gpus(f *Fault, st *station) error {
	bad := f.Verb == HostFault
	if st.hostBad == bad {
		return nil
	}
	verb := agent.AskHostOK
	if bad {
		in.measure.strike(f, st)
		verb = agent.AskHostFault
	}
	st.hostBad = bad
	in.measure.health()
	in.touch(st)
	return st.ask(agent.Ask{Verb: verb, Text: "told by the script"})
}

// cutLink cuts the network of a client, or mends it.
func (in *injector) cutLink(c *client, cut bool) {
	if was := c.cut; was || !cut {
		c.cut = was && cut
		return
	}
	c.cut = true
	c.cuts++
	if c.up {
		in.agenda.Push(in.now+keepAlive+in.net.hop(), task{kind: taskLost, who: c.who, gen: c.conn, n: c.cuts})
		in.agenda.Push(in.now+graveAfter, task{kind: taskWill, who: c.who, gen: c.session, n: c.cuts})
	}
}

// powerOn gives a device its supply; its agent starts when the computer has
// booted.
func (in *injector) powerOn(st *station, after time.Duration) {
	if !st.dark {
		return
	}
	st.dark, st.cold = false, true
	st.boot++
	st.clock.base = in.now
	in.world.SetPower(st.board, true)
	in.touch(st)
	in.measure.health()
	in.agenda.Push(in.now+after, task{kind: taskStart, who: st.who, gen: st.life})
}

// powerOff takes the supply of a whole device: lasers fall, mirrors fall back,
// registers and all that was not on disk are lost, and nobody tells the broker.
func (in *injector) powerOff(st *station) {
	in.world.SetPower(st.board, false)
	if x := st.box(); x != nil {
		x.Restart()
	}
	st.dark = true
	st.watch.full, st.watch.death = false, nil
	in.audit.circuits.darken(st)
	st.end(true)
	in.touch(st)
	in.measure.health()
}

func (in *injector) fibre(f *Fault) error {
	port := SimPort(f.Port)
	far, _, ok := in.cfg.Fabric.At(f.Port)
	if !ok {
		return nil // an edit has taken it
	}
	if f.Verb != FibreMend {
		in.measure.shake(f.Port)
	}
	in.touch(in.stations[f.Port.Node])
	in.touch(in.stations[far.Node])
	mend := Fault{Verb: FibreMend, Port: f.Port, Way: f.Way}
	in.cut(f.Port, far, f.Verb != FibreMend)
	switch f.Verb {
	case FibreMend:
		return in.world.Mend(port, f.Way)
	case FibreGlitch:
		in.later(mend, f.Span)
	case FibreFlap:
		in.later(mend, f.Span)
		if f.Count > 1 {
			again := *f
			again.Count--
			in.later(again, 2*f.Span)
		}
	}
	return in.world.Cut(port, f.Way)
}

// cut keeps which fibres are not whole.
func (in *injector) cut(a, b fabric.Port, cut bool) {
	for _, p := range [2]fabric.Port{a, b} {
		in.cuts = slices.DeleteFunc(in.cuts, func(o fabric.Port) bool { return o == p })
		if cut {
			in.cuts = append(in.cuts, p)
		}
	}
}

// calibrate is what ocs-agent calibrate asks.
func (in *injector) calibrate(f *Fault) error {
	st := in.stations[f.Node]
	if st.host == nil || f.Count >= in.cfg.Fabric.Bundles {
		return nil
	}
	in.touch(st)
	return st.ask(agent.Ask{Verb: agent.AskCalibrate, Bundle: proto.BundleID(f.Count)})
}

// heal brings broker, planner, network and agents back.
func (in *injector) heal() error {
	mend := []Fault{{Verb: BrokerUp}, {Verb: RivalKill}, {Verb: PlannerMend}, {Verb: PlannerStart}, {Verb: PlannerResume}, {Verb: Network}}
	if in.net.shed > 0 {
		mend = append(mend, Fault{Verb: Shed})
	}
	for _, st := range in.stations {
		if st.cut {
			mend = append(mend, Fault{Verb: LinkMend, Node: st.id})
		}
		if st.host == nil && !st.dark {
			mend = append(mend, Fault{Verb: AgentStart, Node: st.id})
		}
	}
	for i := range mend {
		if err := in.apply(&mend[i]); err != nil {
			return err
		}
	}
	return nil
}

// heal brings network and planner back and gives them time: what was queued
// must arrive, and usable nodes be used.
func (r *Run) heal() error {
	if err := r.inject.heal(); err != nil {
		return err
	}
	r.audit.ended = true
	var list []out
	for from := r.now; r.now < from+restAfter; {
		if err := r.runTo(r.now + time.Second); err != nil {
			return err
		}
		quiet := r.audit.allDelivered() && r.edits.settled() && r.idle() && r.coreStands() && r.now > r.epoch+r.cfg.Span+5*time.Second
		if !quiet && r.now < from+healAfter {
			continue
		}
		if list, _ = r.audit.out(); len(list) == 0 {
			break
		}
	}
	r.audit.rested(list)
	r.audit.sweep()
	r.audit.done(true)
	return nil
}

// tell lets the run go on until all is told, or should be, and judges the end.
func (r *Run) tell(told func() bool) error {
	for end := r.now + healAfter; r.now < end && !told(); {
		if err := r.runTo(min(end, r.now+time.Second)); err != nil {
			return err
		}
	}
	r.audit.sweep()
	r.audit.done(true)
	return nil
}
