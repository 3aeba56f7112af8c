package node

import (
	"fmt"
	"time"

	"ringlight/proto"
)

// scenario is what a seeded run suffers.
type scenario uint8

const (
	oneDeath scenario = iota
	adjacentDeaths
	hostFault
	ownOptics // a cell, a laser, a tap, heat: the agent says that a path failed
	cutOneWay // a fibre, or the diode behind it
	cutBothWays
	glitch
	drain
	degrade
	farPair
	lateReturn
	flap
	slowBus
	operator
	storm
	pair   // of losses of nodes
	triple // of losses of nodes
	readmit
	recut
	agentCrash
	orders // of an operator, then new members, then the orders end
	numScenarios
)

var scenarioNames = [...]string{"one death", "adjacent deaths", "host fault", "own optics", "one-way cut", "two-way cut", "glitch", "drain", "signal degrade", "two deaths apart",
	"late return", "flapping fibre", "hanging bus", "operator's request", "storm", "pair of losses", "triple of losses", "re-admission", "new members", "agent crash", "orders and new members"}

func (s scenario) String() string { return scenarioNames[s] }

// class is how many faults a scenario has.
type class uint8

const (
	singleFault class = iota
	doubleFault
	tripleFault
	manyFaults // of any kind, cuts among them: what fibres allow is not judged
	numClasses
)

var classNames = [numClasses]string{"single faults", "double faults", "triple faults", "more faults"}

// maxSplits is how many runs in a thousand may part a ring that fibres let
// stay one. chosen: none after a single fault; the others leave closed pieces
// that a planner joins.
var maxSplits = [numClasses]int{0, 3, 10, 0}

func (s scenario) class() class {
	switch s {
	case adjacentDeaths, farPair, pair, slowBus, operator, agentCrash, orders:
		return doubleFault
	case triple:
		return tripleFault
	case storm:
		return manyFaults
	}
	return singleFault
}

// lossKinds are the faults that take one node out of its ring.
var lossKinds = [...]scenario{oneDeath, oneDeath, hostFault, ownOptics, drain, lateReturn}

// strike lays out a fault and says whether it leaves a fibre cut.
func (n *network) strike(s scenario, gone map[int]bool) (cuts bool) {
	members := []int{}
	for i, nd := range n.nodes {
		if nd.member {
			members = append(members, i)
		}
	}
	at := n.now + n.between(0, 100)
	pick := n.rng.IntN(len(members))
	victim := members[pick]
	if n.nodes[victim].member && len(members) < 3 {
		return false
	}
	die := func(i int, at time.Duration) { gone[i] = true; n.push(at, netDeath, port{node: i}, 0) }
	switch s {
	case oneDeath:
		die(victim, at)
	case adjacentDeaths:
		pick = n.rng.IntN(len(members) - 1)
		die(members[pick], at)
		die(members[pick+1], at+n.between(0, 1000))
		if n.k == 4 && pick+2 < len(members) && n.rng.IntN(3) == 0 {
			die(members[pick+2], at+n.between(0, 1000))
		}
	case storm:
		for range 2 + n.rng.IntN(4) {
			n.also(scenario(n.rng.IntN(int(storm))), 6000, gone)
		}
		return true
	case pair, triple:
		// In half of the runs the later ones come in the search after the
		// first, in the others in it or long after.
		window := uint32(4000)
		if n.rng.IntN(2) == 0 {
			window = 40_000
		}
		for range 2 + int(s-pair) {
			n.also(lossKinds[n.rng.IntN(len(lossKinds))], window, gone)
		}
	case agentCrash:
		// A neighbour dies at about the same time, and the agent comes back.
		if pick+1 < len(members) {
			die(members[pick+1], at)
		}
		crash := at + n.between(0, 4000)
		n.push(crash, netCrash, port{node: victim}, 0)
		n.push(crash+n.between(100, 20_000), netRestart, port{node: victim}, 0)
		return true
	case readmit:
		die(victim, at)
		n.push(at+n.between(2000, 20_000), netReturn, port{node: victim}, 0)
	case recut:
		if n.rng.IntN(2) == 0 {
			die(victim, at)
		}
	case farPair:
		die(victim, at)
		die(members[n.rng.IntN(len(members))], at+n.between(0, 4000))
	case drain:
		gone[victim] = true
		n.push(at, netDrain, port{node: victim}, 0)
		if n.rng.IntN(2) == 0 {
			n.push(at+n.between(500, 10_000), netDrain, port{node: victim}, 1)
		}
	case degrade:
		// Weak light is no lost light: nobody moves without a better way.
		p := n.inUse(victim)
		n.push(at, netDegrade, p, 0)
		n.push(at+n.between(100, 20_000), netDegrade, p, uint32(n.rng.IntN(2)))
	case slowBus:
		// A bus that does nothing, and a loss that needs it.
		p, most := n.inUse(victim), uint32(80_000)
		if n.rng.IntN(4) == 0 {
			most = 600_000 // the machine gives the bundle up
		}
		hang := n.between(500, most)
		n.push(at, netHang, p, uint32(hang/time.Microsecond))
		n.last = max(n.last, at+hang)
		if pick+1 < len(members) {
			die(members[pick+1], at+n.between(0, 2000))
		}
		return true
	case orders:
		for range 1 + n.rng.IntN(3) {
			n.order(members[n.rng.IntN(len(members))], at+n.between(0, 30_000))
		}
		return true
	case operator:
		p, side := n.order(victim, at)
		n.push(at+n.between(500, 30_000), netRequest, p, uint32(proto.NoRequest)<<1|side)
		if n.rng.IntN(2) == 0 && pick+1 < len(members) {
			die(members[pick+1], at+n.between(0, 2000))
		}
		return true
	case hostFault:
		gone[victim] = true
		n.push(at, netHost, port{node: victim}, 0)
		if n.rng.IntN(2) == 0 {
			n.push(at+n.between(500, 10_000), netHostOK, port{node: victim}, 0)
		}
	case ownOptics:
		gone[victim] = true
		n.push(at, netFail, port{victim, n.rng.IntN(len(n.nodes[victim].bundles)), 0}, 0)
	case lateReturn:
		die(victim, at)
		n.push(at+n.between(600, 8000), netReturn, port{node: victim}, 0)
	case cutOneWay, cutBothWays, glitch, flap:
		b := n.rng.IntN(len(n.nodes[victim].bundles))
		p := int(proto.External1) + n.rng.IntN(2)
		ends := []port{{victim, b, p}}
		if f := n.nodes[victim].fibres[b][p]; f == nowhere {
			return false
		} else if s == cutBothWays || s != cutOneWay && n.rng.IntN(2) == 0 {
			ends = append(ends, f)
		}
		if s == flap {
			n.flap(at, ends)
			return true
		}
		back := n.between(20, 2500)
		for _, e := range ends {
			n.push(at, netCut, e, 0)
			if s == glitch {
				n.push(at+back, netMend, e, 0)
			}
		}
		return s != glitch
	}
	return false
}

// order has an operator tie a side of a node to one of its paths.
func (n *network) order(i int, at time.Duration) (p port, side uint32) {
	p, side = n.inUse(i), uint32(n.rng.IntN(2))
	p.path = int(proto.Loopback) + n.rng.IntN(3)
	kind := [...]proto.Request{proto.ManualSwitch, proto.ForcedSwitch, proto.Lockout}[n.rng.IntN(3)]
	n.push(at, netRequest, p, uint32(kind)<<1|side)
	return p, side
}

// also lets another fault strike within a window of microseconds.
func (n *network) also(s scenario, window uint32, gone map[int]bool) {
	m := *n // same heap, another time
	m.now = n.now + n.between(0, window)
	m.strike(s, gone)
	n.heap, n.seq, n.last = m.heap, m.seq, max(n.last, m.last, m.now)
}

// flap makes fibres dark and light again several times.
func (n *network) flap(at time.Duration, ends []port) {
	for range 2 + n.rng.IntN(19) {
		for _, e := range ends {
			n.push(at, netCut, e, 0)
		}
		at += n.between(20, 2500)
		for _, e := range ends {
			n.push(at, netMend, e, 0)
		}
		at += n.between(20, 2500)
	}
	n.last = max(n.last, at)
}

// inUse is a port that a node has outside, or any when it has none.
func (n *network) inUse(i int) port {
	nd := n.nodes[i]
	first := n.rng.IntN(len(nd.bundles))
	for b := range nd.bundles {
		if b := (b + first) % len(nd.bundles); nd.bundles[b].path.External() {
			return port{i, b, int(nd.bundles[b].path)}
		}
	}
	return port{i, first, int(proto.External1)}
}

// unplanned lists the sides that are not where their plan wants them.
func (n *network) unplanned() (bad []string) {
	for i, nd := range n.nodes {
		for _, s := range nd.m.Sides(nil) {
			if nd.alive && s.State != proto.SideEnd && (s.State != proto.SideWork || int(s.Current) != int(s.Working)) {
				bad = append(bad, fmt.Sprintf("node %d %s side is %s on %d, planned %d", i, s.Side, s.State, s.Current, s.Working))
			}
		}
	}
	return bad
}

// replan has a planner let everyone back in, or take and leave whom it likes;
// the commits come in over up to 30 ms.
func (n *network) replan(s scenario) {
	n.choose(s)
	for n.k == 3 && n.pinched() {
		n.choose(s)
	}
	n.spread(2, func(int) bool { return true })
}

// choose draws the members of the next plan.
func (n *network) choose(s scenario) {
	run := 0
	for i, nd := range n.nodes {
		if s == readmit {
			nd.member = nd.member || nd.alive && n.rng.IntN(2) == 0
		} else {
			nd.member = nd.alive && (run < 2 && i > 0 && i < len(n.nodes)-1 || n.rng.IntN(3) != 0)
		}
		run++
		if !nd.member {
			run = 0
		}
	}
}

// pinched: some member of a wrapped ring would need -3 and +3, which a
// planner knows better than to ask for.
func (n *network) pinched() bool {
	at := func(i int) bool { return n.nodes[(i+n.count)%n.count].member }
	for i := range n.nodes {
		if n.wrap && at(i) && !at(i-1) && !at(i-2) && at(i-3) && !at(i+1) && !at(i+2) && at(i+3) {
			return true
		}
	}
	return false
}
