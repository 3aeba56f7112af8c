package ring

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: the index costs few bytes a node, and a look at one fault hardly more
// on a large fabric than on a small one.
// Method: fabrics with 0.075 % of the nodes out, with and without spares; the
// time of placing from nothing, of a plan on paper with all that runs, of one for as many
// groups as there can be on a line and on a closed ring, of making the index, and of one fault and its repair in it. RINGLIGHT_GROWTH names the
// largest fabric (make bench-growth).
func TestPlacementGrowsWithWhatChanges(t *testing.T) {
	largest, timed := 2_000, os.Getenv("RINGLIGHT_GROWTH")
	fmt.Sscan(timed, &largest)
	t.Logf("%9s %7s  %9s %9s %9s %9s %9s  %20s  %9s", "nodes", "spares", "place", "replace", "line", "ring", "index", "fault+repair p50 p90", "bytes/node")
	for nodes := min(10_000, largest); nodes <= largest; nodes *= 10 {
		for _, spares := range []int{0, nodes / 64} {
			grow(t, nodes, spares, timed != "")
		}
	}
}

func grow(t *testing.T, nodes, spares int, timed bool) {
	const size = 16
	rng := rand.New(rand.NewPCG(uint64(nodes), 1))
	out := make([]bool, nodes)
	for range nodes * 3 / 4000 {
		out[rng.IntN(nodes)] = true
	}
	well := func(n proto.NodeID) bool { return !out[n] }
	o := Order{Nodes: nodes, K: 3, Shared: true}
	m := Mend{Order: o, Sizes: []Demand{{size, (nodes - spares) / size}}, Usable: well, Free: well, Spread: true, Moves: maxMoves}
	clock := func(f func()) time.Duration {
		start := time.Now()
		f()
		return time.Since(start)
	}
	var running []Group
	place := clock(func() {
		running = runningGroups(Place(Problem{Order: o, Size: size, Usable: well, Want: m.Sizes[0].Want, Spread: true}))
	})
	out[rng.IntN(nodes)] = true
	replace := clock(func() { running = m.Replace(running).Groups })
	var most [2]time.Duration
	for i, wrap := range [2]bool{false, true} {
		all := m
		all.Wrap, all.Sizes = wrap, []Demand{{size, -1}}
		most[i] = clock(func() { all.Replace(running) }).Round(time.Microsecond)
	}
	next := proto.RingID(1)
	for i := range running {
		running[i].ID = next
		next++
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var tr *Tracker
	index := clock(func() { tr = NewTracker(m, running...) })
	runtime.GC()
	runtime.ReadMemStats(&after)
	look := func(n proto.NodeID) {
		tr.Refresh(n)
		ids := tr.Concerned(n)
		for _, near := range [2]bool{true, false} {
			r := tr.Look(ids, near)
			for i := range r.Groups {
				if r.Groups[i].ID == 0 {
					r.Groups[i].ID = next
					next++
				}
			}
			tr.Carry(r)
		}
	}
	var took []time.Duration
	for range 200 {
		n := proto.NodeID(rng.IntN(nodes))
		took = append(took, clock(func() {
			out[n] = true
			look(n)
			out[n] = false
			look(n)
		}))
	}
	checkCount := wholeIn(tr) + tr.tally[0].short + tr.absent(0)
	if checkCount != m.Sizes[0].Want {
		t.Errorf("%d nodes: %+v groups, want %d in all", nodes, tr.tally[0], m.Sizes[0].Want)
	}
	slices.Sort(took)
	per := int(after.HeapAlloc-before.HeapAlloc) / nodes
	t.Logf("%9d %7d  %9v %9v %9v %9v %9v  %20s  %9d", nodes, spares, place.Round(time.Microsecond), replace.Round(time.Microsecond), most[0], most[1], index.Round(time.Microsecond), fmt.Sprintf("%d %d us", took[len(took)/2].Microseconds(), took[len(took)*9/10].Microseconds()), per)
	limit := 2 * time.Millisecond // a fault and its repair
	if nodes > 100_000 {
		limit *= 3
	}
	if timed && took[len(took)*9/10] > limit || per > 100 {
		t.Errorf("%d nodes: a fault and its repair took %v, want at most %v; %d bytes a node, want at most 100", nodes, took[len(took)*9/10], limit, per)
	}
}
