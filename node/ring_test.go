package node

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ringlight/proto"
)

var (
	runs   = flag.Int("runs", 20_000, "seeded runs of TestRingsHeal")
	first  = flag.Uint64("first", 1, "seed of the first run")
	replay = flag.Bool("replay", false, "print every action; use with -runs 1")
)

type scenario uint8

const (
	oneDeath scenario = iota
	adjacentDeaths
	hostFault
	ownOptics
	cutOneWay
	cutBothWays
	glitch
	lateReturn
	farPair
	storm
	readmit
	recut
	agentCrash
	numScenarios
)

var scenarioNames = [...]string{"one death", "adjacent deaths", "host fault", "own optics", "one-way cut", "two-way cut", "glitch", "late return", "two deaths apart", "storm", "re-admission", "new members", "agent crash"}

func (s scenario) String() string { return scenarioNames[s] }

type outcome struct {
	scenario scenario
	k        int
	whole    bool          // one piece, where that was possible
	could    bool          // one piece was possible
	missing  int           // most adjacent nodes that are bypassed
	recovery time.Duration // from the last loss to the last side confirmed
	bad      []string
}

// play runs one seed: a ring, a fault, 40 ms.
func playSeed(seed uint64, trace func(string, ...any)) outcome {
	rng := rand.New(rand.NewPCG(seed, 0x72696e67))
	k := 2 + int(rng.Uint32N(10))/4 // 2 and 3 in four runs of ten each, 4 in two
	count := 4 + rng.IntN(9)
	member := make([]bool, count)
	for i, run := 0, 0; i < count; i++ {
		// A hole in the ring now and then; never two holes near each other.
		member[i] = i == 0 || i == count-1 || run < 3 || rng.IntN(6) != 0
		run++
		if !member[i] {
			run = 0
		}
	}
	n := newNetwork(rng, k, count, member, rng.IntN(10) == 0, trace)
	o := outcome{scenario: scenario(rng.IntN(int(numScenarios))), k: k}
	gone := map[int]bool{}
	in := func(i int) bool { return n.nodes[i].member && !gone[i] && n.nodes[i].alive }
	if bad := n.halves(); len(bad) > 0 || n.pieces(in) != 1 {
		o.bad = append(bad, fmt.Sprintf("%d pieces before any fault", n.pieces(in)))
		return o
	}
	start := n.now
	cuts := n.strike(o.scenario, gone)
	if o.scenario <= glitch || o.scenario == farPair {
		n.run(start + 5*time.Millisecond) // the last fault is in
		n.run(n.lost + 12*time.Millisecond)
		o.bad = n.halves()
	}
	n.run(start + 60*time.Millisecond)
	o.bad = append(o.bad, n.halves()...)
	if o.scenario == readmit || o.scenario == recut {
		n.replan(o.scenario)
		n.run(n.now + 300*time.Millisecond)
		o.bad = append(o.bad, n.halves()...)
		in = func(i int) bool { return n.nodes[i].member }
		o.bad = append(o.bad, n.unplanned()...)
	}
	o.could = !cuts && n.joinable(in)
	o.whole = n.pieces(in) == 1
	last := -1
	for i, nd := range n.nodes {
		if in(i) {
			o.recovery = max(o.recovery, nd.moved-n.lost)
			if last >= 0 {
				o.missing = max(o.missing, i-last-1)
			}
			last = i
		}
	}
	return o
}

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
			at := at + n.between(0, 6000)
			next := scenario(n.rng.IntN(int(storm)))
			m := *n // same heap, another place and time
			m.now = at
			m.strike(next, gone)
			n.heap, n.seq = m.heap, m.seq
		}
		return true
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
	case cutOneWay, cutBothWays, glitch:
		b := n.rng.IntN(len(n.nodes[victim].bundles))
		p := int(proto.External1) + n.rng.IntN(2)
		ends := []port{{victim, b, p}}
		if f := n.nodes[victim].fibres[b][p]; f == nowhere {
			return false
		} else if s == cutBothWays || s == glitch && n.rng.IntN(2) == 0 {
			ends = append(ends, f)
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
	n.plan(2)
	for i := range n.nodes {
		n.prepare(i)
		n.push(n.now+n.between(0, 30_000), netCommit, port{node: i}, 0)
	}
}

// Goal: no fault opens a ring, and what can stay one ring does.
// Method: seeded random faults over rings of 4 to 12 nodes, K = 2, 3, 4, on
// the network above; every live node's outside bundle must have its peer.
func TestRingsHeal(t *testing.T) {
	count := *runs
	if testing.Short() {
		count = min(count, 2000)
	}
	var trace func(string, ...any)
	if *replay {
		trace = t.Logf
	}
	tally := map[tallyKey]*tallyOf{}
	for i := range count {
		seed := *first + uint64(i)
		o := playSeed(seed, trace)
		if len(o.bad) > 0 {
			t.Fatalf("seed %d, %s, K=%d: %v\n%s", seed, o.scenario, o.k, o.bad, again(seed))
		}
		if !o.could {
			continue
		}
		if !o.whole {
			t.Errorf("seed %d, %s, K=%d: split\n%s", seed, o.scenario, o.k, again(seed))
		}
		for _, key := range [2]tallyKey{{o.scenario, o.k, 0}, {bounded(o.scenario), 0, o.missing}} {
			if tally[key] == nil {
				tally[key] = &tallyOf{}
			}
			tally[key].times = append(tally[key].times, o.recovery)
		}
	}
	for s := range numScenarios {
		for k := 2; k <= 4; k++ {
			if c := tally[tallyKey{s, k, 0}]; c != nil {
				t.Logf("%-20s K=%d: %s", s, k, c)
			}
		}
	}
	for missing, limit := range []time.Duration{1: time.Millisecond, 2: time.Millisecond, 3: 2 * time.Millisecond} {
		c := tally[tallyKey{oneDeath, 0, missing}]
		if missing == 0 || c == nil {
			continue
		}
		t.Logf("%d adjacent losses: %s", missing, c)
		if p99 := c.percentile(99); len(c.times) >= 200 && p99 >= limit {
			t.Errorf("%d adjacent losses recover in %v p99, not under %v", missing, p99, limit)
		}
	}
}

// bounded gathers the scenarios whose recovery invariant 4 bounds under the
// first of them.
func bounded(s scenario) scenario {
	switch s {
	case oneDeath, adjacentDeaths, hostFault, ownOptics:
		return oneDeath
	}
	return numScenarios
}

func again(seed uint64) string {
	return fmt.Sprintf("replay: go test ./node -run TestRingsHeal -runs 1 -first %d -replay -v", seed)
}

// tallyKey is a scenario and its K, or any K and the nodes bypassed.
type tallyKey struct {
	s          scenario
	k, missing int
}

type tallyOf struct{ times []time.Duration }

func (c *tallyOf) percentile(p int) time.Duration {
	slices.Sort(c.times)
	return c.times[(len(c.times)*p+99)/100-1]
}

func (c *tallyOf) String() string {
	return fmt.Sprintf("%5d runs, recovery p50 %v p99 %v max %v", len(c.times), c.percentile(50), c.percentile(99), c.percentile(100))
}
