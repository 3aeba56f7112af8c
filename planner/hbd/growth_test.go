package hbd

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

// Goal: what a fault costs the planner depends on what it touches, not on how
// many nodes there are: at most 1 ms at 100,000 nodes and 3 ms at 1,000,000,
// all looks together, and no step takes more than 5 ms at 100,000.
// Method: fabrics in service with some nodes out already, then single faults:
// the look that mends the ring, the generation that carries it out, the look at
// what could be placed better, and all that follows. RINGLIGHT_GROWTH names the
// largest fabric (make bench-growth); else a small one is looked at, whatever
// it takes.
func TestOneFaultCostsWhatItTouches(t *testing.T) {
	largest, timed := 2_000, os.Getenv("RINGLIGHT_GROWTH")
	fmt.Sscan(timed, &largest)
	t.Logf("%9s %7s %6s  %18s  %18s  %18s  %9s", "nodes", "spares", "short", "near look, p50 p90", "all looks, p50 p90", "any step, p50 p90", "heap MiB")
	for nodes := min(10_000, largest); nodes <= largest; nodes *= 10 {
		for _, spares := range []int{0, nodes / 64} {
			growth(t, nodes, spares, timed != "")
		}
	}
}

func growth(t *testing.T, nodes, spares int, timed bool) {
	p := standing(t, nodes, spares)
	rng := rand.New(rand.NewPCG(uint64(nodes), 1))
	var longest, near, all time.Duration
	clock := func(f func()) (took time.Duration) {
		start := time.Now()
		f()
		took = time.Since(start)
		longest = max(longest, took)
		return took
	}
	settle := func() {
		near, all, longest = 0, 0, 0
		for looks, quiet := 0, 0; quiet < 2; looks++ {
			if looks == 20 {
				t.Fatal("no end of changes")
			}
			p.j.Now += 2 * settleWait
			var q *proposal
			took := clock(func() { q = p.look() })
			if all += took; looks == 0 {
				near = took
			}
			if quiet++; q == nil {
				continue
			}
			quiet = 0
			clock(func() { p.prepare(q) })
			for _, part := range p.txn.Parts {
				clock(func() {
					p.table.Ack(part.Device, &proto.Ack{Session: 1, Phase: proto.PhasePrepare, Term: p.txn.Term, Generation: p.txn.Gen, Plan: p.txn.Plan})
				})
			}
			clock(func() { p.Persisted(p.j.Persist() - 1) })
			clock(p.Resend)
			for _, r := range q.rings {
				shine(p, p.ring(r.id))
			}
			for _, id := range q.idle {
				p.nodes[id].Report = &proto.Reported{Node: id, Session: 1, Term: p.txn.Term, Generation: p.txn.Gen, Plan: p.txn.Plan}
			}
			p.j.Now += 2 * time.Second
			clock(p.Resend)
			p.j.End()
		}
	}
	fault := func() {
		for {
			n := &p.nodes[rng.IntN(nodes)]
			if before := n.flags(); !n.said.out {
				p.say(n, true, proto.ModeHostDown, 0)
				clock(func() { p.changed(n, before) })
				return
			}
		}
	}
	for range max(4, nodes*3/4000) {
		fault()
	}
	settle()
	var nears, alls, steps []time.Duration
	for range 40 {
		fault()
		settle()
		nears, alls, steps = append(nears, near), append(alls, all), append(steps, longest)
	}
	short := 0
	for _, r := range p.rings {
		if len(r.nodes) < r.size {
			short++
		}
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	us := func(d []time.Duration) string {
		slices.Sort(d)
		return fmt.Sprintf("%d %d us", d[len(d)/2].Microseconds(), d[len(d)*9/10-1].Microseconds())
	}
	t.Logf("%9d %7d %6d  %18s  %18s  %18s  %9d", nodes, spares, short, us(nears), us(alls), us(steps), m.HeapAlloc>>20)
	runtime.KeepAlive(p)
	limit := time.Millisecond
	if nodes > 100_000 {
		limit *= 3
	}
	if timed && (alls[len(alls)*9/10-1] > limit || nodes <= 100_000 && steps[len(steps)*9/10-1] > 5*time.Millisecond) {
		t.Errorf("%d nodes: all looks at a fault took %v, want at most %v; a step %v", nodes, alls[len(alls)*9/10-1], limit, steps[len(steps)*9/10-1])
	}
}
