package agent

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ringlight/hal"
	"ringlight/hal/linux"
	"ringlight/sim"
)

// bypasses has node 1 of a ring of three die and come back, runs times. lost is
// called when node 0 is about to hear of its light, due when its time has come
// after that, and wrote when it submits what answers it.
func bypasses(t *testing.T, runs int, lost, due func(now time.Duration), wrote func()) {
	t.Helper()
	f := newFleet(t, 3, 1)
	f.decide = 0 // the real one
	f.join()
	for range runs {
		armed, waits := true, false
		kept := make([]Work, 0, 16) // the simulated bus allocates
		f.before = func(x *fleetNode, ev hal.Event) {
			switch {
			case x.id != 0 || !armed:
			case ev.Edge != nil && !ev.Edge.High && !waits:
				waits = true
				lost(f.world.Now())
			case waits && ev == hal.Event{}:
				due(f.world.Now())
			}
		}
		f.asked = func(x *fleetNode, w Work) bool {
			if x.id != 0 || !waits || !armed {
				return false
			}
			if kept = append(kept, w); w.Op.Class != hal.ClassSwitch {
				return true
			}
			armed = false
			wrote()
			for _, w := range kept {
				if err := f.world.Submit(f.world.Now(), sim.BoardID(x.id), w.Bus, w.Op); err != nil {
					t.Error(err)
				}
			}
			return true
		}
		f.power(f.nodes[1], false)
		f.must("bypass of node 1", 20*time.Millisecond, func() bool { return f.linkedTo(0, 2) })
		if armed {
			t.Fatal("node 0 wrote nothing")
		}
		f.before, f.asked = nil, nil
		f.run(100*time.Millisecond, nil)
		x := f.nodes[1]
		f.power(x, true)
		f.link(x, true)
		f.must("node 1 ready", 5*time.Second, func() bool {
			o := x.agent.optics.(*nodeOptics)
			return x.agent.adopted && o.bundles[0].ready && o.bundles[1].ready
		})
		f.heard()
		f.run(100*time.Millisecond, nil)
		f.commit(f.ring(0, 2))
		f.must("ring", time.Second, func() bool { return f.linkedTo(0, 1) && f.linkedTo(1, 2) })
		f.run(100*time.Millisecond, nil)
	}
}

func TestAnAnswerToALostLightAllocatesNothing(t *testing.T) {
	// Goal: between the edge that tells of lost light and the write that answers
	// it the agent allocates nothing: no collection begins there, and none has to
	// be helped along.
	// Method: the count of the allocator when an agent in a ring hears the edge,
	// and when it submits the write; the least of some runs, since the runtime
	// itself allocates now and then.
	var before, after runtime.MemStats
	least := uint64(1 << 32)
	bypasses(t, 5, func(time.Duration) { runtime.ReadMemStats(&before) }, func(time.Duration) {}, func() {
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
	})
	if least > 0 {
		t.Errorf("%d allocations", least)
	}
}

// TestLatencyOfAnAnswer is `make bench-latency`: RINGLIGHT_LATENCY runs, under
// RINGLIGHT_LOAD (idle; alloc, collected by the runtime; garbage, collected as Run does; apart,
// the same with threads as they are; or verify and how many goroutines check seals). RINGLIGHT_COSTS is the file that takes what was
// measured, for ocs-sim -costs.
func TestLatencyOfAnAnswer(t *testing.T) {
	// Goal: the wall clock from a line's edge, in another thread, to the write
	// that answers it, on this machine, with what it gives of promptness.
	// Method: the agent and its optics on their virtual clock, but for what lies
	// between: the thread waits in the kernel for the edge and for the agent's own
	// deadline, and the agent thinks as long as it does. The machine's 100 us of
	// persistence, which it waits on purpose, are taken out.
	runs, err := strconv.Atoi(os.Getenv("RINGLIGHT_LATENCY"))
	if err != nil {
		t.Skip("RINGLIGHT_LATENCY: number of runs")
	}
	board, err := linux.Open(&hal.Board{}, func(hal.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer board.Close()
	runtime.LockOSThread()
	runtime.GOMAXPROCS(runtime.NumCPU() + spareProcessors)
	p := board.Attach(func() {})
	// As Run has it: collections begin between switches. Garbage as quickly as it
	// can be made is another matter.
	load := os.Getenv("RINGLIGHT_LOAD")
	if load != "alloc" {
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
	}
	r := &runner{hardware: board, thread: board}
	if load == "apart" {
		r.thread = apart{board}
	}
	pause := map[string]time.Duration{"alloc": 0, "garbage": garbagePause, "apart": garbagePause}
	if rest, ok := pause[load]; ok {
		var stop atomic.Bool
		defer stop.Store(true)
		for range 2 {
			go allocate(&stop, rest)
		}
	}
	checkers, _ := strconv.Atoi(strings.TrimPrefix(os.Getenv("RINGLIGHT_LOAD"), "verify")) // others: none
	var over atomic.Bool
	defer over.Store(true)
	for range checkers {
		go verify(&over)
	}
	arm, edges := make(chan time.Duration), make(chan time.Duration, 1)
	go func() { // another thread, before all others, as an interrupt is
		runtime.LockOSThread()
		_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 50}, 0) // where it may
		for after := range arm {
			<-time.After(after)
			edges <- board.Now()
			board.Wake()
		}
	}()
	var edge, heard, virtual, wait time.Duration
	var wakes, thinks, totals []time.Duration
	until := func(at time.Duration) {
		for board.Now() < at && len(edges) == 0 {
			if _, err := board.Wait(min(at, board.Now()+collectLook), nil); err != nil {
				t.Fatal(err)
			}
			if load == "garbage" || load == "apart" {
				r.collect()
			}
		}
	}
	bypasses(t, runs, func(now time.Duration) {
		virtual, wait = now, 0
		if len(totals)%16 == 15 {
			runtime.GC()
		}
		arm <- time.Duration(2+len(totals)%7) * time.Millisecond
		until(board.Now() + time.Minute)
		heard, edge = board.Now(), <-edges
		r.collector.edge = heard
		wakes = append(wakes, heard-edge)
	}, func(now time.Duration) {
		wait = now - virtual
		until(heard + wait)
	}, func() {
		total := board.Now() - edge - wait
		totals = append(totals, total)
		thinks = append(thinks, total-(heard-edge))
	})
	fmt.Printf("latency: priority %d, locked %v, load %s, %d runs: wake-up %s; edge to write entered %s\n",
		p.Priority, p.Locked, os.Getenv("RINGLIGHT_LOAD"), runs, quantiles(wakes), quantiles(totals))
	fmt.Printf("latency: to stop the world for a collection: %s; until it goes on: %s\n", stops("/sched/pauses/stopping/gc:seconds"), stops("/sched/pauses/total/gc:seconds"))
	if late := wakes[len(wakes)*99/100]; checkers > 0 && p.Priority > 0 && late > protectionWaits {
		t.Errorf("while %d goroutines check seals the p99 of a wake-up is %v", checkers, late)
	}
	if file := os.Getenv("RINGLIGHT_COSTS"); file != "" {
		keepCosts(t, file, fmt.Sprintf("%d answers on %d processors, load %s, priority %d", runs, runtime.NumCPU(), os.Getenv("RINGLIGHT_LOAD"), p.Priority), wakes, thinks)
	}
}

// protectionWaits at most for what the same process does with messages. chosen: some
// wake-ups of a machine that has one processor; what waits for a seal takes ten times that.
const protectionWaits = time.Millisecond

// keepCosts writes what was measured as a table of the simulator's costs; what
// the drivers of buses cost was not.
func keepCosts(t *testing.T, file, source string, wakes, thinks []time.Duration) {
	t.Helper()
	slices.Sort(wakes)
	slices.Sort(thinks)
	micros := func(d []time.Duration, share float64) float64 {
		return float64(d[min(int(share*float64(len(d))), len(d)-1)].Nanoseconds()) / 1000
	}
	decide := micros(thinks, 0.5)
	table := sim.CostTable{Source: source, Decide: &decide}
	for _, share := range []float64{0, .01, .1, .25, .5, .75, .9, .95, .99, .999, 1} {
		table.Interrupt = append(table.Interrupt, [2]float64{share, micros(wakes, share)})
	}
	raw, err := json.Marshal(table)
	if err == nil {
		err = os.WriteFile(file, raw, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

func quantiles(d []time.Duration) string {
	slices.Sort(d)
	us := func(share int) int64 { return d[min(len(d)*share/100, len(d)-1)].Microseconds() }
	return fmt.Sprintf("p50 %d p99 %d max %d us", us(50), us(99), us(100))
}

// stops tells a histogram of the runtime's, by the upper ends of its buckets.
func stops(name string) string {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	h := sample[0].Value.Float64Histogram()
	n := uint64(0)
	for _, c := range h.Counts {
		n += c
	}
	us := func(share uint64) int64 {
		sum := uint64(0)
		for i, c := range h.Counts {
			if sum += c; sum*100 >= n*share && sum > 0 {
				return int64(h.Buckets[i+1] * 1e6)
			}
		}
		return 0
	}
	return fmt.Sprintf("%d times, p50 %d p99 %d max %d us", n, us(50), us(99), us(100))
}

// verify checks a seal again and again, as an agent does under an attack.
func verify(stop *atomic.Bool) {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	public, message := key.Public().(ed25519.PublicKey), make([]byte, 200)
	seal := ed25519.Sign(key, message)
	for !stop.Load() {
		ed25519.Verify(public, message, seal)
	}
}

// garbagePause between 64 blocks of 4 KiB. chosen: 25 MB/s of two goroutines, ten collections
// a second, some hundred times what an agent makes.
const garbagePause = 20 * time.Millisecond

// apart leaves threads as they are.
type apart struct{ *linux.Board }

func (apart) Together(f func()) { f() }

// allocate makes garbage, as quickly as it can where there is no pause.
func allocate(stop *atomic.Bool, pause time.Duration) {
	var keep [256][]byte
	for i := 0; !stop.Load(); i++ {
		keep[i%len(keep)] = make([]byte, 4096)
		if i%64 == 0 {
			runtime.Gosched()
		}
		if i%64 == 0 && pause > 0 { // a timer that is due at once would be another load
			<-time.After(pause)
		}
	}
}
