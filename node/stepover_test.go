package node

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: a lit member may be stepped over at any time: a plan without it that it is
// not told of opens nothing, whatever else breaks while the others commit.
// Method: the rings of TestRingsHeal, another fault or none while commits come in
// over 30 ms, in half of the runs to starved agents; the member goes on by its old
// plan. It must end closed, or
// with others that have not heard of the plan, then be told that it is idle, and be let in again.
func TestSteppedOverInTime(t *testing.T) {
	count := *runs
	if testing.Short() {
		count = min(count, 2000)
	}
	var trace func(string, ...any)
	if *replay {
		trace = t.Logf
	}
	tally := map[scenario][2]int{}
	for i := range count {
		seed := *first + uint64(i)
		o, over := playSteppedOver(seed, trace)
		if len(o.bad) > 0 {
			t.Fatalf("seed %d, %s, %s, K=%d: %v\nreplay: go test ./node -run TestSteppedOverInTime -runs 1 -first %[1]d -replay -v", seed, o.scenario, o.shape, o.k, o.bad)
		}
		if over {
			c := tally[o.scenario]
			c[0]++
			if o.whole {
				c[1]++
			}
			tally[o.scenario] = c
		}
	}
	for s := range numScenarios {
		if c := tally[s]; c[0] > 0 {
			t.Logf("%-20s %d runs, %d in one ring once everyone was told", s, c[0], c[1])
		}
	}
}

// playSteppedOver runs one seed; over is whether there was a member whose fibres
// the others can do without. In the outcome numScenarios stands for no other fault.
func playSteppedOver(seed uint64, trace func(string, ...any)) (o outcome, over bool) {
	rng := rand.New(rand.NewPCG(seed, 0x6f766572))
	n, o := drawRing(rng, trace)
	v := rng.IntN(n.count)
	in := func(i int) bool { return n.nodes[i].member && i != v && n.nodes[i].alive }
	left := 0
	for i := range n.nodes {
		if in(i) {
			left++
		}
	}
	if !n.nodes[v].member || left < 2 || !n.joinable(in) {
		return o, false
	}
	until := n.now
	if rng.IntN(2) == 0 {
		until = n.starve(time.Second)
	}
	n.nodes[v].member = false
	n.spread(2, func(i int) bool { return i != v })
	o.scenario, n.last = scenario(rng.IntN(int(storm))), n.now
	gone, cuts := map[int]bool{}, true
	if rng.IntN(2) == 0 {
		also := *n // same heap, another time
		also.now += n.between(0, 40_000)
		also.nodes[v].member = true // it is struck too
		cuts = also.strike(o.scenario, gone)
		n.nodes[v].member = false
		n.heap, n.seq, n.last = also.heap, also.seq, max(also.last, also.now)
	} else {
		o.scenario, cuts = oneDeath, false
	}
	n.run(max(until, n.last) + 5*time.Second)
	o.bad = n.halves()
	for b, x := range n.nodes[v].bundles {
		if !x.path.External() || !n.nodes[v].alive {
			continue
		}
		// Who came back from the dead does not know of the plan yet, either.
		if _, gen, _ := n.nodes[n.nodes[v].fibres[b][x.path].node].m.applied.name(); gen > 1 {
			o.bad = append(o.bad, fmt.Sprintf("node %d was stepped over and is on bundle %d %s", v, b, x.path))
		}
	}
	if len(o.bad) > 0 || cuts {
		return o, true
	}
	n.spread(2, func(i int) bool { return i == v })
	n.run(n.now + time.Second)
	o.bad = n.halves()
	for i, nd := range n.nodes {
		nd.member = nd.alive && !gone[i] && (nd.member || i == v)
	}
	if in = func(i int) bool { return n.nodes[i].member }; !n.joinable(in) || n.k == 3 && n.pinched() {
		return o, true
	}
	n.spread(3, func(int) bool { return true })
	n.run(n.now + time.Second)
	o.bad = append(o.bad, n.halves()...)
	o.bad = append(o.bad, n.unplanned()...)
	o.judge(n, in, false)
	return o, true
}

// spread prepares a plan at some nodes; their commits come in over up to 30 ms.
func (n *network) spread(gen proto.Generation, told func(i int) bool) {
	n.plan(gen)
	for i := range n.nodes {
		if told(i) {
			n.prepare(i)
			n.push(n.now+n.between(0, 30_000), netCommit, port{node: i}, 0)
		}
	}
}
