package live

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"ringlight/planner/fabric"
	"ringlight/sim"
	"ringlight/sim/fleet"
	"ringlight/sim/trace"
)

// FleetConfig says what fleets to run: one for each seed from Seed on.
type FleetConfig struct {
	Params    fabric.Params
	Modules   int    `flag:"modules" usage:"modules of a bundle"`
	Seed      uint64 `flag:"seed" usage:"seed of everything drawn"`
	Runs      int    `flag:"runs" usage:"seeds to run, from -seed on"`
	Span      time.Duration
	Health    time.Duration `flag:"health" usage:"time of one health round over a node's modules, virtual"`
	FaultRate float64       `flag:"fault-rate" usage:"random faults per node or optical switch and day"`
	Script    []fleet.Fault // in their place, when not nil
	Trace     *trace.Trace  // in their place, when not nil
	Catalogue int           `flag:"catalogue" usage:"different modules that are made and calibrated; all others are like one of them"`
	Physics   *sim.Physics  // of every board; nil: sim.DefaultPhysics
	Costs     sim.Costs     // of every board's computer; without a source: sim.DefaultCosts
	Rates     fleet.Rates
	Loss      float64                  `flag:"loss" usage:"share of messages, 0 to 0.5, that are lost above TCP on the way to the broker, and again on the way from it: a queue sheds them, and nobody sends them again by itself; until the faults are over"`
	Exchange  bool                     `flag:"exchange" usage:"rings, of as many nodes as a power of two, go through the steps of Binary Exchange, over -spans 1,2,4: pairs over each span"`
	Starve    float64                  `flag:"starve" usage:"share of a processor, 0.01 to 1, that each agent has, in slices of 3 ms; 0: all of it"`
	Replay    func(seed uint64) string // the command that runs one seed again
	Progress  io.Writer                // nil: none
	TraceOut  io.Writer                // faults and violations as text, of all seeds; nil: none
}

// catalogueSeed draws the personalities, whatever the seeds of the runs.
const catalogueSeed = 1

// progressEvery is the time between two lines of progress.
const progressEvery = 2 * time.Second

// Fleet runs the fleets, as many at a time as there are processors, and puts
// their results together in the order of their seeds.
func Fleet(ctx context.Context, cfg FleetConfig) (*fleet.Result, error) {
	f, err := fabric.New(cfg.Params)
	if err != nil {
		return nil, err
	}
	size := cmp.Or(cfg.Catalogue, fleet.CatalogueSize)
	progress := cfg.Progress
	if progress == nil {
		progress = io.Discard
	}
	// One catalogue for all seeds, so that each can be run again alone.
	optics, _, err := calibrate(ctx, cfg.Physics, catalogueSeed, size, progressTo(progress, "modules calibrated"))
	if err != nil {
		return nil, err
	}
	defer collectSeldom(f.Nodes * min(cfg.Runs, runtime.GOMAXPROCS(0)))()
	ticker := &fleetProgress{w: progress, start: time.Now(), runs: cfg.Runs}
	runs := seeds{first: cfg.Seed, runs: cfg.Runs, trace: cfg.TraceOut, progress: ticker.finished, of: func(seed uint64) fleet.Config {
		one := cfg.one(f, optics, seed)
		one.Progress = func(at, of time.Duration, r *fleet.Run) error {
			ticker.tell(seed, at, of, r)
			return ctx.Err()
		}
		return one
	}}
	results, err := runs.run(ctx)
	if err != nil {
		return nil, err
	}
	took := time.Since(ticker.start)
	res := results[0]
	if len(results) > 1 {
		sum := sha256.New()
		for _, r := range results {
			sum.Write([]byte(r.TraceSHA256))
		}
		res.Merge(results[1:]...)
		res.TraceSHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	res.EventsPerS = float64(res.Steps) / took.Seconds()
	res.RSSMiB = peakMemory()
	return res, nil
}

// Memory is dear in time here: a collection goes over ten thousand boards that
// hardly ever become garbage. chosen: twice as much garbage as there is use, within a fleet's
// least and what docs/board.md allows a node.
const (
	garbagePercent = 200
	memoryLeast    = 1 << 30
	memoryOfNode   = 250 << 10
)

// collectSeldom sets the collector for a fleet, unless the environment does,
// and returns what puts it back.
func collectSeldom(nodes int) (restore func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	percent, limit := debug.SetGCPercent(garbagePercent), debug.SetMemoryLimit(max(memoryLeast, int64(nodes)*memoryOfNode))
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}

// one is the configuration of one seed's run.
func (c *FleetConfig) one(f *fabric.Fabric, optics *fleet.Optics, seed uint64) fleet.Config {
	cfg := fleet.Config{Fabric: f, Modules: c.Modules, Seed: seed, Span: c.Span, Health: c.Health, HealthModules: 1,
		Optics: optics, Costs: c.Costs, Rates: c.Rates, Shed: million(c.Loss), Starve: million(c.Starve), Replay: c.Replay(seed), Exchange: c.Exchange}
	switch {
	case c.Trace != nil:
		cfg.Faults = fleet.FromTrace(c.Trace, f, seed, c.Span)
	case c.Script != nil:
		cfg.Faults = c.Script
	default:
		cfg.Faults = fleet.Random(f, c.Modules, seed, c.Span, c.FaultRate)
	}
	return cfg
}

// million is a share in parts of a million.
func million(share float64) uint32 { return uint32(math.Round(share * 1e6)) }

// fleetProgress tells how far the runs are.
type fleetProgress struct {
	start time.Time
	runs  int

	mu   sync.Mutex
	w    io.Writer
	last time.Time
	done int
}

func (p *fleetProgress) finished(done, _ int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = done
}

// tell writes a line of progress now and then.
func (p *fleetProgress) tell(seed uint64, at, of time.Duration, r *fleet.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.last) < progressEvery {
		return
	}
	p.last = now
	fmt.Fprintf(p.w, "seed %d: %v of %v, %d steps, %d violations, %d of %d runs done, %v\n",
		seed, at.Round(time.Second), of, r.Steps(), r.Violations(), p.done, p.runs, now.Sub(p.start).Round(time.Second))
}

// peakMemory is the most memory this process has had, in MiB, where the
// system tells.
func peakMemory() int64 {
	self, _ := os.ReadFile("/proc/self/status") // of Linux: nothing elsewhere
	for line := range strings.Lines(string(self)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			return kib >> 10
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys >> 20)
}
