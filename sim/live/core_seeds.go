package live

import (
	"context"
	"fmt"
	"io"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/fleet"
)

// CoreSeedsConfig says which runs of a core on the virtual clock: one for each
// seed from Seed on, with an agent killed in the middle of every stage.
type CoreSeedsConfig struct {
	Core     *fabric.Core
	Seed     uint64
	Runs     int
	Lists    int                // job lists of a run
	Mix      []proto.Collective // of the jobs, any of them
	Boxes    []string           // what the switches are, in turn, see fleet.BuildMirrors
	Alone    bool               // of a direct core: no job is provisioned beside another
	Phases   int                // of a direct core: each job has so many, and goes through them; 0: none
	Traffic  int                // of a direct core: what each job sends is counted so many times after each list
	Calm     bool               // nobody dies
	Fail     []string           // kinds of parts that fail, see fleet.Fails
	Grow     []int              // pods, leaves or servers, which the core comes to have one after the other while jobs run
	Replay   func(seed uint64) string
	Progress io.Writer // nil: none
	TraceOut io.Writer // strikes, violations and the planner's log of all seeds; nil: none
}

// CoreSeedsResult sums up the runs.
type CoreSeedsResult struct {
	Runs     int `json:"runs"`
	Switches int `json:"switches"`
	fleet.CoreCounts
	Violations int      `json:"violations"`
	List       []string `json:"violation_list"`
	VirtualS   float64  `json:"virtual_s"`
	WallS      float64  `json:"wall_s"`
	// Dark interfaces of servers that are joined directly; nil: there are none.
	Dark   *fleet.DarkTimes `json:"dark,omitempty"`
	Steps  uint64           `json:"steps"`
	SHA256 []string         `json:"trace_sha256"` // by seed
}

// Verdict is an error when an invariant broke.
func (r *CoreSeedsResult) Verdict() error {
	if r.Violations > 0 {
		return fmt.Errorf("live: %d violations; first %s", r.Violations, r.List[0])
	}
	return nil
}

// coreHealth is the time between two looks at all mirrors of a switch.
const coreHealth = 10 * time.Second

// strikesOf is how many commits of a run have somebody die in them: more than
// there are. chosen.
const strikesOf = 1000

// Transceivers of servers that are joined directly. chosen: what a flip takes
// does not depend on how many modules flip together.
const (
	directCatalogue = 8
	directModules   = 1
)

// CoreSeeds runs them, as many at a time as there are processors.
func CoreSeeds(ctx context.Context, cfg CoreSeedsConfig) (*CoreSeedsResult, error) {
	if cfg.Core.Alone() && len(cfg.Grow) > 0 { // boards have ports for all that is to come
		core := *cfg.Core
		for _, n := range cfg.Grow {
			core.SwitchPorts = max(core.SwitchPorts, core.Ports(), fleet.Grown(cfg.Core, n).Ports())
		}
		cfg.Core = &core
	}
	f, err := fabric.New(fabric.Params{Name: "core", Core: cfg.Core})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	strikes := strikesOf
	if cfg.Core.Switches() == 0 || cfg.Calm {
		strikes = 0 // nothing is committed
	}
	var optics *fleet.Optics
	if cfg.Core.Direct != nil {
		if optics, _, err = calibrate(ctx, nil, catalogueSeed, directCatalogue, progressTo(cfg.Progress, "modules calibrated")); err != nil {
			return nil, err
		}
	}
	draw := func(seed uint64) []string {
		if len(cfg.Grow) > 0 {
			return fleet.Growing(cfg.Core, seed, cfg.Lists, cfg.Grow, !cfg.Alone, cfg.Mix...)
		}
		if cfg.Core.Direct != nil {
			lists := fleet.DirectLists(cfg.Core, seed, cfg.Lists, !cfg.Alone && cfg.Traffic == 0, cfg.Phases)
			return fleet.Measuring(lists, cfg.Traffic)
		}
		return fleet.JobLists(cfg.Core, seed, cfg.Lists, cfg.Mix...)
	}
	lists := func(seed uint64) []string {
		if len(cfg.Fail) == 0 {
			return draw(seed)
		}
		return fleet.Failing(cfg.Core, seed, draw(seed), cfg.Fail)
	}
	runs := seeds{first: cfg.Seed, runs: cfg.Runs, trace: cfg.TraceOut, progress: progressTo(cfg.Progress, "runs"), of: func(seed uint64) fleet.Config {
		return fleet.Config{Fabric: f, Seed: seed, Health: coreHealth, Jobs: lists(seed), Boxes: cfg.Boxes, Optics: optics, Modules: directModules,
			Faults: fleet.Strikes(seed, strikes), Replay: cfg.Replay(seed)}
	}}
	results, err := runs.run(ctx)
	if err != nil {
		return nil, err
	}
	sum := &CoreSeedsResult{Runs: cfg.Runs, Switches: cfg.Core.Switches(), List: []string{}}
	for _, r := range results {
		sum.add(r)
	}
	sum.WallS = time.Since(began).Seconds()
	return sum, nil
}

func (r *CoreSeedsResult) add(x *fleet.Result) {
	c := x.Core
	r.CoreCounts.Add(&c.CoreCounts)
	if c.Dark != nil {
		if r.Dark == nil {
			r.Dark = new(fleet.DarkTimes)
		}
		r.Dark.Add(c.Dark)
	}
	r.Violations += x.Violations
	r.List = append(r.List, x.ViolationList...)
	r.VirtualS += c.Virtual
	r.Steps += x.Steps
	r.SHA256 = append(r.SHA256, x.TraceSHA256)
}
