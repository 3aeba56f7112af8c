package fleet

import (
	"cmp"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/trace"
)

// The mix of random faults, per cent. chosen: single losses are the most,
// and each other kind comes often enough to be seen in a run.
const (
	singles = 60
	pairs   = 15
	triples = 5
)

// A lost node returns, and what is broken is whole again, after so long.
// chosen: a reboot, and a person who is near.
const (
	awayLeast = time.Minute
	awayMost  = 10 * time.Minute
)

// whole is how many times in a thousand a fault of another kind is one of the
// whole network, in fleets of a hundred nodes; fewer in larger ones, since
// there is one broker and one planner whatever the number of nodes. chosen.
const whole = 200

// Random draws the faults of a run: so many a device and day.
func Random(f *fabric.Fabric, modules int, seed uint64, span time.Duration, perDeviceDay float64) []Fault {
	g := &generator{f: f, fibres: f.AllFibres(), modules: modules, r: random{seed: detmath.Hash(seed, streamFaults)}, away: make([]time.Duration, f.Nodes)}
	if perDeviceDay <= 0 {
		return nil
	}
	if f.Nodes > 0 {
		g.ofNodes(span, meanTime(perDeviceDay, f.Nodes))
	}
	if f.Core != nil {
		g.r = random{seed: detmath.Hash(seed, streamSwitches)}
		g.ofSwitches(seed, span, meanTime(perDeviceDay, f.Core.Switches()))
	}
	order(g.out)
	return g.out
}

// meanTime between two faults of all devices.
func meanTime(perDeviceDay float64, devices int) time.Duration {
	return time.Duration(float64(trace.Day) / float64(perDeviceDay*float64(devices)))
}

// jobsEvery is the time between two lists of jobs. chosen: long after the last
// is done with all that happens to it, mostly.
const jobsEvery = 10 * time.Minute

// streamSwitches is the stream of the switches' faults, beside those of
// station.go.
const streamSwitches = 65

// ofSwitches draws lists of jobs, and faults of the switches that run them.
func (g *generator) ofSwitches(seed uint64, span, mean time.Duration) {
	for n, list := range JobLists(g.f.Core, seed, int(span/jobsEvery)+1) {
		g.add(Fault{At: time.Duration(n) * jobsEvery, Verb: JobsApply, Jobs: list})
	}
	for at := g.r.wait(mean); at < span && g.f.Core.Switches() > 0; at += g.r.wait(mean) {
		x := g.r.below(g.f.Core.Switches())
		f := Fault{At: at, Node: proto.FirstSwitch + proto.NodeID(x)}
		switch n := g.r.below(8); {
		case n == 0:
			f.Verb, f.For = NodeDark, g.r.between(time.Second, time.Minute)
		case n == 1:
			f.Verb, f.For = LinkCut, g.r.between(time.Second, 2*time.Minute)
		case n == 2:
			f.Verb, f.Span = Reboot, g.r.between(20*time.Second, 90*time.Second)
		case n == 3 && x < g.f.Core.Mirrors():
			f.Verb, f.For = MirrorStick, g.r.between(time.Second, time.Minute)
			f.Mirror = Mirror{g.r.below(2), g.r.below(g.f.Core.Ports())}
		default:
			f.Verb, f.For = AgentCrash, g.r.between(10*time.Millisecond, 10*time.Second)
		}
		g.add(f)
	}
}

// ofNodes draws the nodes' faults, and those of broker and planner.
func (g *generator) ofNodes(span, mean time.Duration) {
	for at := g.r.wait(mean); at < span; at += g.r.wait(mean) {
		switch n := g.r.below(100); {
		case n < singles:
			g.lose(at, 1)
		case n < singles+pairs:
			g.lose(at, 2)
		case n < singles+pairs+triples:
			g.lose(at, 3)
		default:
			g.other(at)
		}
	}
}

type generator struct {
	f       *fabric.Fabric
	fibres  []fabric.Fibre
	modules int
	r       random
	away    []time.Duration // until when a node is lost
	out     []Fault
	group   int
}

func (g *generator) add(f Fault) { g.out = append(g.out, f) }

// both adds a fault and, from until on, what ends it.
func (g *generator) both(f Fault, ends Verb, until time.Duration) {
	g.add(f)
	f.Verb, f.At = ends, until
	g.add(f)
}

func (g *generator) back(at time.Duration) time.Duration {
	return at + g.r.between(awayLeast, awayMost)
}

// lose takes the supply of nodes beside each other.
func (g *generator) lose(at time.Duration, count int) {
	first := g.r.below(max(1, g.f.Nodes-count+1))
	g.group++
	for i := range min(count, g.f.Nodes) {
		n := first + i
		if g.away[n] >= at {
			continue // it is lost already
		}
		when := at
		if i > 0 {
			when += g.r.between(0, adjacentWithin-time.Microsecond)
		}
		g.away[n] = g.back(at)
		g.add(Fault{At: when, Verb: NodeDark, Node: proto.NodeID(n), Group: g.group})
		g.add(Fault{At: g.away[n], Verb: NodeOn, Node: proto.NodeID(n)})
	}
}

func (g *generator) port() fabric.Port {
	x := g.fibres[g.r.below(len(g.fibres))]
	if g.r.next()&1 == 0 {
		return x.A
	}
	return x.B
}

func (g *generator) way() sim.Direction { return sim.Direction(g.r.below(3)) }

// other draws one of the faults that are no loss of a node.
func (g *generator) other(at time.Duration) {
	if g.r.below(1000) < max(1, whole*100/max(100, g.f.Nodes)) {
		g.network(at)
		return
	}
	n := proto.NodeID(g.r.below(g.f.Nodes))
	bundle, module := g.r.below(g.f.Bundles), g.r.below(g.modules)
	board := func(f sim.Fault, until time.Duration) {
		f.Bundle, f.Module = bundle, module
		g.both(Fault{At: at, Verb: BoardBreak, Node: n, Board: f}, BoardRepair, until)
	}
	kind := g.r.below(16)
	if kind <= 2 && len(g.fibres) == 0 {
		return // a single node has none that could break
	}
	switch kind {
	case 0:
		g.both(Fault{At: at, Verb: FibreCut, Port: g.port(), Way: g.way()}, FibreMend, g.back(at))
	case 1:
		g.add(Fault{At: at, Verb: FibreGlitch, Port: g.port(), Way: g.way(), Span: g.r.between(10*time.Microsecond, 3*time.Millisecond)})
	case 2:
		g.add(Fault{At: at, Verb: FibreFlap, Port: g.port(), Way: g.way(), Span: g.r.between(time.Millisecond, 50*time.Millisecond), Count: 2 + g.r.below(19)})
	case 3:
		board(sim.Fault{Kind: sim.HeaterStuck, Index: g.r.below(hal.BenesCells)}, g.back(at))
	case 4:
		board(sim.Fault{Kind: sim.LaserDead, Index: g.r.below(hal.Lanes)}, g.back(at))
	case 5:
		board(sim.Fault{Kind: sim.DiodeDead, Path: g.r.below(hal.NumLOS), Index: g.r.below(hal.Lanes)}, g.back(at))
	case 6:
		f := sim.Fault{Kind: sim.DriftWalk}
		if g.r.next()&1 == 0 {
			f = sim.Fault{Kind: sim.CellWalk, Index: g.r.below(hal.BenesCells)}
		}
		until := g.back(at)
		board(f, until)
		// Whoever mends it takes the node out and calibrates what has drifted.
		g.add(Fault{At: until - 10*time.Second, Verb: Drain, Node: n})
		g.add(Fault{At: until + time.Second, Verb: AgentCalibrate, Node: n, Count: bundle})
		g.undrain(until+time.Minute, n)
	case 7:
		f := sim.Fault{Kind: sim.BusStuck, Bus: hal.BusID(g.r.below(g.f.Bundles))}
		f.Bus = g.slowBus(bundle)
		g.both(Fault{At: at, Verb: BoardBreak, Node: n, Board: f}, BoardRepair, at+g.r.between(time.Second, time.Minute))
	case 8:
		g.both(Fault{At: at, Verb: AgentCrash, Node: n}, AgentStart, at+g.r.between(10*time.Millisecond, 10*time.Second))
	case 9:
		g.add(Fault{At: at, Verb: Reboot, Node: n, Span: g.r.between(20*time.Second, 90*time.Second)})
	case 10:
		g.both(Fault{At: at, Verb: HostFault, Node: n}, HostOK, g.back(at))
	case 11:
		g.both(Fault{At: at, Verb: LinkCut, Node: n}, LinkMend, at+g.r.between(time.Second, 2*time.Minute))
	case 12:
		board(sim.Fault{Kind: sim.ModuleHot}, g.back(at))
	case 13:
		last := proto.NodeID(min(g.f.Nodes-1, int(n)+g.r.below(2*g.f.GroupNodes())))
		g.both(Fault{At: at, Verb: PartitionCut, Node: n, Last: last}, PartitionMend, at+g.r.between(time.Second, 2*time.Minute))
	case 14:
		g.add(Fault{At: at, Verb: Drain, Node: n})
		g.undrain(g.back(at), n)
	case 15:
		g.request(at, n)
	}
}

// undrain lets a node in again, more than once: the planner may be away.
func (g *generator) undrain(at time.Duration, n proto.NodeID) {
	for again := range time.Duration(3) {
		g.add(Fault{At: at + again*time.Minute, Verb: Undrain, Node: n})
	}
}

// request has an operator move a side, and let it go again.
func (g *generator) request(at time.Duration, n proto.NodeID) {
	f := Fault{At: at, Verb: Switch, Node: n, Side: proto.Side(g.r.below(2)), Ask: asks[1+g.r.below(len(asks)-1)], Peer: -1}
	hop := 1 + g.r.below(g.f.K)
	if f.Side == proto.Left {
		hop = -hop
	}
	if peer := int(n) + hop; peer >= 0 && peer < g.f.Nodes && f.Ask != proto.Lockout {
		f.Peer = peer
	}
	g.add(f)
	f.Ask, f.Peer = proto.NoRequest, -1
	back := at + g.r.between(100*time.Millisecond, time.Minute)
	for again := range time.Duration(3) {
		f.At = back + again*time.Minute
		g.add(f)
	}
}

// slowBus is an I2C bus of a bundle.
func (g *generator) slowBus(bundle int) hal.BusID {
	b, err := boardfile.Default(g.f.GPUsPerNode, g.f.Bundles, g.modules)
	if err != nil {
		return 0
	}
	m := &b.Bundles[bundle].Modules[0]
	return [2]hal.BusID{m.Slow, m.ADC}[g.r.below(2)]
}

// network draws a fault of broker or planner.
func (g *generator) network(at time.Duration) {
	switch g.r.below(8) {
	case 0, 1:
		g.add(Fault{At: at, Verb: BrokerDown})
		g.add(Fault{At: at + g.r.between(time.Second, time.Minute), Verb: BrokerUp, Span: g.r.between(0, 10*time.Second)})
	case 2, 3:
		g.both(Fault{At: at, Verb: PlannerKill}, PlannerStart, at+g.r.between(time.Second, time.Minute))
	case 4:
		g.both(Fault{At: at, Verb: PlannerPause}, PlannerResume, at+g.r.between(100*time.Millisecond, 20*time.Second))
	case 5:
		g.both(Fault{At: at, Verb: PlannerCut}, PlannerMend, at+g.r.between(time.Second, time.Minute))
	case 6:
		g.both(Fault{At: at, Verb: PlannerLose}, PlannerStart, at+g.r.between(time.Second, time.Minute))
	case 7:
		// Two planners: the first cannot be heard, and comes back.
		g.add(Fault{At: at, Verb: PlannerCut})
		g.add(Fault{At: at + g.r.between(time.Second, 10*time.Second), Verb: RivalStart})
		g.add(Fault{At: at + g.r.between(20*time.Second, time.Minute), Verb: PlannerMend})
		g.add(Fault{At: at + g.r.between(time.Minute, 2*time.Minute), Verb: RivalKill})
	}
}

// halfFails is how many times in ten thousand a fault of an 8-GPU server is
// one of a given half of it. [IHBD] App. A.
const halfFails = 5038

// FromTrace lays a fault trace over a fabric. With 8 GPUs a node is a server;
// with 4, nodes i and i + N/2 are the halves of server i.
func FromTrace(t *trace.Trace, f *fabric.Fabric, seed uint64, span time.Duration) []Fault {
	halves := 1
	if f.GPUsPerNode == 4 {
		halves = 2
	}
	servers := f.Nodes / halves
	draw := random{seed: detmath.Hash(seed, streamTrace)}
	type key struct {
		server int
		fault  trace.Fault
	}
	open := map[key][]int{} // which halves each open fault is of
	var events []trace.NodeEvent
	for _, e := range t.Nodes(servers, seed, span) {
		k := key{e.Node, e.Fault}
		mask := 0
		if e.Start {
			for h := range halves {
				if halves == 1 || draw.below(10_000) < halfFails {
					mask |= 1 << h
				}
			}
			open[k] = append(open[k], mask)
		} else if q := open[k]; len(q) > 0 {
			mask, open[k] = q[0], q[1:]
		}
		for h := range halves {
			if mask&(1<<h) != 0 {
				e.Node = k.server + h*servers
				events = append(events, e)
			}
		}
	}
	trace.Number(events, f.Nodes)
	var out []Fault
	for _, e := range events {
		out = append(out, turn(e.At, proto.NodeID(e.Node), e.Before, e.After)...)
	}
	slices.SortStableFunc(out, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return out
}

// turn is what brings a node from one effect to another.
func turn(at time.Duration, n proto.NodeID, was, is trace.Effect) (out []Fault) {
	if was == is {
		return nil
	}
	if was == trace.NodeDark {
		// A supply that was off has been off for a while, whatever the trace's
		// resolution.
		out = append(out, Fault{At: at + time.Second, Verb: NodeOn, Node: n})
	}
	if was == trace.HostFault {
		out = append(out, Fault{At: at, Verb: HostOK, Node: n})
	}
	switch is {
	case trace.NodeDark:
		out = append(out, Fault{At: at, Verb: NodeDark, Node: n})
	case trace.HostFault:
		out = append(out, Fault{At: at, Verb: HostFault, Node: n})
	}
	return out
}
