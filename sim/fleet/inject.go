package fleet

import (
	"fmt"
	"slices"
	"time"

	"ringlight/agent"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// later lets a fault happen after a while.
func (r *Run) later(f Fault, after time.Duration) {
	r.extra = append(r.extra, f)
	r.agenda.push(task{at: r.now + after, kind: taskStep, n: len(r.extra) - 1})
}

// apply lets a fault happen now. What cannot happen - a dark node that loses
// its supply - does not.
func (r *Run) apply(f *Fault) error {
	line := f.String()
	r.traceText(line)
	if r.cfg.TraceLine != nil {
		r.cfg.TraceLine(fmt.Sprintf("%v %s", r.now, line))
	}
	switch f.Verb {
	case NodeDark, NodeOn, HostFault, HostOK, AgentCrash, AgentStart, Reboot, BoardBreak, BoardRepair, LinkCut, LinkMend:
		return r.applyNode(f, r.stations[f.Node])
	case PartitionCut, PartitionMend:
		for n := f.Node; n <= f.Last; n++ {
			r.cutLink(&r.stations[n].client, f.Verb == PartitionCut)
		}
	case AgentCalibrate:
		return r.calibrate(f)
	case Drain, Undrain, Switch:
		r.operate(f)
	case FibreCut, FibreMend, FibreGlitch, FibreFlap:
		return r.applyFibre(f)
	case BrokerDown:
		if r.net.up {
			r.died = r.now
			r.audit.still()
			r.net.die()
		}
	case BrokerUp:
		if !r.net.up {
			r.net.rise(f.Span, r.died)
		}
	default:
		return r.applyPlanner(f)
	}
	return nil
}

func (r *Run) applyPlanner(f *Fault) error {
	b, rival := r.planners[0], r.planners[1]
	switch f.Verb {
	case PlannerKill:
		r.audit.still()
		b.kill()
	case PlannerLose:
		r.audit.still()
		b.kill()
		clear(b.store)
	case PlannerStart:
		return b.start()
	case PlannerPause:
		b.paused = b.host != nil
	case PlannerResume:
		b.paused = false
		b.run()
	case PlannerCut, PlannerMend:
		r.cutLink(&b.client, f.Verb == PlannerCut)
	case RivalStart:
		return rival.start()
	case RivalKill:
		rival.kill()
	case Network:
		r.net.rates = f.Rates
	}
	return nil
}

func (r *Run) applyNode(f *Fault, st *station) error {
	switch f.Verb {
	case NodeDark:
		if st.dark {
			return nil
		}
		r.measure.strike(f, st)
		r.powerOff(st)
	case NodeOn:
		return r.powerOn(st, bootTime)
	case HostFault:
		if st.hostBad {
			return nil
		}
		r.measure.strike(f, st)
		st.hostBad = true
		r.measure.health()
		r.touch(st)
		return r.ask(st, agent.AskHostFault, "told by the script")
	case HostOK:
		if !st.hostBad {
			return nil
		}
		st.hostBad = false
		r.measure.health()
		r.touch(st)
		return r.ask(st, agent.AskHostOK, "told by the script")
	case AgentCrash:
		r.audit.stillNode(st)
		r.endAgent(st, false)
	case AgentStart:
		return r.startAgent(st)
	case Reboot:
		if st.agent == nil {
			return nil
		}
		r.audit.stillNode(st)
		r.endAgent(st, true)
		st.boot++
		r.agenda.push(task{at: r.now + f.Span, kind: taskStart, who: int32(st.id), gen: st.life})
		st.clock.base = r.now
	case BoardBreak, BoardRepair:
		r.touch(st)
		if f.Verb == BoardBreak {
			st.broken++
			st.watch.walked = st.watch.walked || f.Board.Kind == sim.DriftWalk || f.Board.Kind == sim.CellWalk
			st.watch.shorted = st.watch.shorted || f.Board.Kind == sim.HeaterShort
			return r.world.Inject(st.board, f.Board)
		}
		st.broken = max(0, st.broken-1)
		st.watch.mended = r.now
		return r.world.Repair(st.board, f.Board)
	case LinkCut, LinkMend:
		r.cutLink(&st.client, f.Verb == LinkCut)
	}
	return nil
}

// cutLink cuts the network of a client, or mends it.
func (r *Run) cutLink(c *client, cut bool) {
	if was := c.cut; was || !cut {
		c.cut = was && cut
		return
	}
	c.cut = true
	c.cuts++
	if c.up {
		r.agenda.push(task{at: r.now + keepAlive + r.net.hop(), kind: taskLost, who: c.who, gen: c.conn, n: c.cuts})
		r.agenda.push(task{at: r.now + graveAfter, kind: taskWill, who: c.who, gen: c.session, n: c.cuts})
	}
}

// powerOn gives a node its supply; its agent starts when the computer has
// booted.
func (r *Run) powerOn(st *station, after time.Duration) error {
	if !st.dark {
		return nil
	}
	st.dark, st.cold = false, true
	st.boot++
	st.clock.base = r.now
	r.world.SetPower(st.board, true)
	r.touch(st)
	r.measure.health()
	r.agenda.push(task{at: r.now + after, kind: taskStart, who: int32(st.id), gen: st.life})
	return nil
}

// powerOff takes the supply of the whole node: lasers fall, registers and all
// that was not on disk are lost, and nobody tells the broker.
func (r *Run) powerOff(st *station) {
	r.world.SetPower(st.board, false)
	st.dark = true
	st.watch.full, st.watch.death = false, nil
	r.endAgent(st, true)
	r.touch(st)
	r.measure.health()
}

func (r *Run) applyFibre(f *Fault) error {
	port := SimPort(f.Port)
	far, _, ok := r.cfg.Fabric.At(f.Port)
	if !ok {
		return fmt.Errorf("fleet: port %v has no fibre", f.Port)
	}
	if f.Verb != FibreMend {
		r.measure.shake(f.Port)
	}
	r.touch(r.stations[f.Port.Node])
	r.touch(r.stations[far.Node])
	mend := Fault{Verb: FibreMend, Port: f.Port, Way: f.Way}
	r.cut(f.Port, far, f.Verb != FibreMend)
	switch f.Verb {
	case FibreMend:
		return r.world.Mend(port, f.Way)
	case FibreGlitch:
		r.later(mend, f.Span)
	case FibreFlap:
		r.later(mend, f.Span)
		if f.Count > 1 {
			again := *f
			again.Count--
			r.later(again, 2*f.Span)
		}
	}
	return r.world.Cut(port, f.Way)
}

// cut keeps which fibres are not whole.
func (r *Run) cut(a, b fabric.Port, cut bool) {
	for _, p := range [2]fabric.Port{a, b} {
		r.cuts = slices.DeleteFunc(r.cuts, func(o fabric.Port) bool { return o == p })
		if cut {
			r.cuts = append(r.cuts, p)
		}
	}
}

// touch notes that something happened at a node: what follows from it has its
// time, then the checkers look.
func (r *Run) touch(st *station) {
	st.watch.touched = r.now
	r.look(st)
}

// closeBound is within what everything at a node must be closed again
// (invariant 1 of package node).
const closeBound = 12 * time.Millisecond

func (r *Run) look(st *station) {
	if r.epoch != 0 && !st.watch.checking {
		st.watch.checking = true
		r.agenda.push(task{at: r.now + closeBound, kind: taskCheck, who: int32(st.id)})
	}
}

// neighbours calls do for a node and those within K hops of it.
func (r *Run) neighbours(id proto.NodeID, do func(*station)) {
	n, k := len(r.stations), r.cfg.Fabric.K
	for d := -k; d <= k; d++ {
		i := int(id) + d
		if i < 0 || i >= n {
			i = (i + n) % n // a line has no such neighbour; a look too many is harmless
		}
		do(r.stations[i])
	}
}
