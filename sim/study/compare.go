package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/planner/sched"
	"ringlight/sim/flow"
	"ringlight/sim/trace"
	"ringlight/sim/workload"
)

// Systems that are compared, as in results, and two that nobody can build.
const (
	SystemIdeal       = "ideal"         // everybody reaches everybody as fast as GPUs of a server do
	SystemSwitch      = "switch"        // one switch with a port for every GPU
	SystemInfiniteHBD = "infinitehbd"   // rings of servers, and a balanced Clos between rings
	SystemLumosCore   = "lumoscore"     // pods, circuits between them
	SystemVClos       = "ocs-vclos"     // leaves and spines of a job's own, by circuits
	SystemTopoOpt     = "topoopt"       // servers joined directly, a topology a job
	SystemBalanced    = "clos-balanced" // the uplink with fewest connections
	SystemECMP        = "clos-ecmp"     // by hash
)

// Systems is the order of rows.
var Systems = []string{SystemIdeal, SystemSwitch, SystemInfiniteHBD, SystemLumosCore, SystemVClos, SystemTopoOpt, SystemBalanced, SystemECMP}

// Budgets: what is the same for all systems.
const (
	BudgetBandwidth = "bandwidth" // the rate of a GPU's port
	BudgetCost      = "cost"      // the price of the network
)

// CompareConfig is one workload on all systems.
type CompareConfig struct {
	Cluster    JCTCluster      // its leaves, and the rate of a GPU's port
	PodLeaves  int             `flag:"pod-leaves" usage:"leaves of a pod of LumosCore"`
	Ring       int             `flag:"ring" usage:"most GPUs of a ring of InfiniteHBD"`
	Hops       int             `flag:"k" usage:"how many servers ahead a fibre of InfiniteHBD reaches"`
	ScaleUp    int             `flag:"scale-up-gbps" usage:"Gb/s of a GPU to others of its server, or around its ring"`
	Budget     string          `flag:"budget" usage:"what all systems have alike: bandwidth of a GPU's port, or cost of its network"`
	Dollars    int             `flag:"dollars" usage:"a GPU, with -budget cost (0: what the dearest system costs at -gbps)"`
	Workload   workload.Config // its Gap and Seed are those of loads and Runs
	List       []workload.Job  // of one's own, instead of the workload
	Name       string          // of the list
	Load       int             // thousandths of the GPUs that the jobs ask for; 0: a list as it stands
	Loads      []int           // of the curve
	FaultRate  int             `flag:"fault-rate" usage:"traces that lie over each other in the table"`
	FaultRates []int           `flag:"fault-rates" usage:"fault rates of the curve"`
	Source                     // of the faults
	Checkpoint time.Duration   // of running time between two points that a job can go back to
	Reload     time.Duration   // of a job that lost a server, before it goes on
	Setup      time.Duration   // of circuits and routes of a job
	Systems    []string
	Runs       int `flag:"runs" usage:"times that jobs and faults are drawn"`
	Seed       uint64
}

// DefaultCompare is the cluster of [VCLOS] sec 9.2, whose port is the one for
// which its models' shares of communication were measured; rings of 32 GPUs
// and K = 2 as in [IHBD] sec 6. Setup is what [LUMOS] Table 3 has for routes
// to converge. chosen: a checkpoint every half hour, ten minutes to reload.
func DefaultCompare() CompareConfig {
	return CompareConfig{Cluster: DefaultJCTCluster(16), PodLeaves: 4, Ring: 32, Hops: 2, ScaleUp: serverFaster * referenceGbps, Budget: BudgetBandwidth,
		Workload: workload.Config{Kind: "w1", Jobs: 5000}, Load: 750, Loads: []int{500, 600, 700, 800, 900},
		FaultRate: 1, FaultRates: []int{0, 1, 2, 4, 8}, Checkpoint: 30 * time.Minute, Reload: 10 * time.Minute, Setup: 2400 * time.Millisecond,
		Systems: Systems, Runs: 5, Seed: 1}
}

// Limits of the study, all chosen.
const (
	referenceGbps    = 100 // of the network on which a job takes its duration ([VCLOS] sec 9.1)
	maxCompareRuns   = 100
	maxFaultRate     = 64
	maxCompareGPUs   = 1 << 14
	maxCompareDollar = 1_000_000
)

// Validate names the flag that is not acceptable and what would be.
func (c CompareConfig) Validate() error {
	if err := c.Cluster.Validate(); err != nil {
		return err
	}
	leaf, server := c.Cluster.Uplinks, c.Cluster.GPUsPerServer
	if err := within([]span{
		{"cluster.leaves", c.Cluster.Leaves, 2, maxCompareGPUs / leaf}, {"pod-leaves", c.PodLeaves, 1, c.Cluster.Leaves / 2}, {"ring", c.Ring, server, c.Cluster.GPUsTotal()},
		{"k", c.Hops, 2, 3}, {"scale-up-gbps", c.ScaleUp, c.Cluster.Gbps, 100_000}, {"runs", c.Runs, 1, maxCompareRuns}, {"dollars", c.Dollars, 0, maxCompareDollar},
		{"fault-rate", c.FaultRate, 0, maxFaultRate}, {"checkpoint-s", int(c.Checkpoint.Seconds()), 1, 86400},
		{"reload-s", int(c.Reload.Seconds()), 0, 86400}, {"setup-ms", int(c.Setup.Milliseconds()), 0, 600_000},
	}...); err != nil {
		return err
	}
	switch {
	case c.Cluster.Leaves%c.PodLeaves != 0:
		return invalid("pod-leaves", fmt.Sprintf("a divisor of the %d leaves", c.Cluster.Leaves), "%d is not", c.PodLeaves)
	case c.Ring%server != 0:
		return invalid("ring", fmt.Sprintf("a multiple of the %d GPUs of a server", server), "%d is not", c.Ring)
	case c.Budget != BudgetBandwidth && c.Budget != BudgetCost:
		return invalid("budget", BudgetBandwidth+" or "+BudgetCost, "%q is neither", c.Budget)
	case c.Dollars > 0 && c.Budget != BudgetCost:
		return invalid("dollars", "only with -budget "+BudgetCost, "the budget is %s", c.Budget)
	case len(c.Systems) == 0:
		return invalid("systems", "at least one of "+strings.Join(Systems, ","), "none given")
	case c.List == nil && c.Load == 0:
		return invalid("load", "above 0 with a generator", "it has no arrivals of its own")
	}
	if err := someOf("systems", c.Systems, Systems); err != nil {
		return err
	}
	for _, s := range c.Systems {
		if _, err := c.priced(s); err != nil {
			return err
		}
	}
	return c.validateCurves()
}

func (c CompareConfig) validateCurves() error {
	for _, l := range append([]int{c.Load}, c.Loads...) {
		if l < 0 || l > 990 || l == 0 && c.Load > 0 {
			return invalid("load", "0.001 to 0.99", "%v is out of range", float64(l)/1000)
		}
	}
	faults := c.FaultRate > 0
	for _, r := range c.FaultRates {
		if r < 0 || r > maxFaultRate {
			return invalid("fault-rates", fmt.Sprintf("0 to %d", maxFaultRate), "%d is out of range", r)
		}
		faults = faults || r > 0
	}
	if c.Trace != nil && c.Trace.Span <= 0 {
		return invalid("trace", "events over some time", "all its events are at one instant")
	}
	if t := c.Cluster.GPUsPerServer; faults && t != serverGPUs && t != serverGPUs/2 {
		return invalid("cluster.gpus_per_server", "4 or 8 with faults of 8-GPU servers", "%d is neither", t)
	}
	if c.List != nil {
		return nil
	}
	w := c.Workload
	w.Gap = time.Second
	return w.Validate()
}

// CompareCell is one simulation of the study.
type CompareCell struct {
	System string
	Load   int // thousandths
	Faults int // traces over each other
	Seed   uint64
}

// Cells are all simulations, in the order of the result: at the load of the
// table without faults and with them, then the curves. They share nothing.
func (c CompareConfig) Cells() (out []CompareCell) {
	add := func(load, faults int) {
		for _, s := range c.Systems {
			for run := range c.Runs {
				out = append(out, CompareCell{s, load, faults, c.Seed + uint64(run)})
			}
		}
	}
	add(c.Load, 0)
	add(c.Load, c.FaultRate)
	for _, r := range c.FaultRates {
		add(c.Load, r)
	}
	for _, l := range c.Loads {
		add(l, c.FaultRate)
	}
	return once(out)
}

// once leaves the first of cells that are the same.
func once[C comparable](cells []C) []C {
	seen := map[C]bool{}
	return slices.DeleteFunc(cells, func(c C) bool {
		again := seen[c]
		seen[c] = true
		return again
	})
}

// compareJobs are the jobs of a cell, the same for every system.
func (c CompareConfig) compareJobs(cell CompareCell) []workload.Job {
	jobs := slices.Clone(c.List)
	if jobs == nil {
		w := c.Workload
		w.Gap, w.Seed = time.Second, cell.Seed
		jobs = workload.Draw(w)
	}
	if cell.Load > 0 {
		workload.AtLoad(jobs, c.Cluster.GPUsTotal(), cell.Load)
	}
	return jobs
}

// talk is what a job does, the same on every system: in each step it computes,
// then each GPU sends each other one so many bytes, then gradients of so many
// bytes are reduced. On an idle switch at the reference rate all steps together
// take its duration.
type talk struct {
	gpus    int
	steps   int64
	compute time.Duration
	bytes   [2]int64      // of its ways
	ways    [2]collective // how, where GPUs reach each other: exchanging, reducing
	parts   []part
}

// part is what runs at once: an exchange between ranks that all wait for, or all
// that experts send. It takes as long as its fullest link.
type part struct {
	way, first, after int   // of ways; exchanges of it
	near, far         int64 // most bytes of one GPU, to others of its server and beyond
}

// The ways of a talk.
const (
	exchanging = iota
	reducing
)

func talkOf(j workload.Job, perServer int, checkpoint time.Duration) talk {
	t := talk{gpus: int(j.GPUs), steps: int64((j.Duration + checkpoint - 1) / checkpoint), ways: collectives(j, perServer)}
	step := (j.Duration + time.Duration(t.steps) - 1) / time.Duration(t.steps)
	t.compute = step
	if t.gpus <= perServer || j.Pattern == workload.Alone {
		return t // in one server, which is the same everywhere
	}
	reference := rates{perServer, serverFaster * referenceGbps * 1e9, referenceGbps * 1e9}
	for way := range t.ways {
		target := step / workload.Shares * time.Duration(t.ways[way].share)
		if target == 0 {
			continue
		}
		probe := t.partsOf(way, probeBytes, reference)
		t.bytes[way] = sized(target, reference.takes(probe))
		parts := t.partsOf(way, t.bytes[way], reference)
		t.parts = append(t.parts, parts...)
		t.compute -= reference.takes(parts)
	}
	t.compute = max(t.compute, 0)
	return t
}

// partsOf is the parts of a collective: what experts send is one, since no GPU
// waits there for another.
func (t *talk) partsOf(way int, bytes int64, r rates) (out []part) {
	all, size := t.ways[way].of(bytes), 1
	if way == exchanging {
		size = max(1, len(all))
	}
	for e := range slices.Chunk(all, size) {
		p := part{way: way, first: len(out) * size, after: len(out)*size + len(e)}
		p.near, p.far = r.busiest(packed(t.gpus), e...)
		out = append(out, p)
	}
	return out
}

// takes is how long parts take on idle links.
func (r rates) takes(parts []part) time.Duration {
	return sumOf(parts, func(p part) time.Duration { return r.slowest(p.near, p.far) })
}

// exchanges of a part.
func (t *talk) exchanges(p part) []flow.Exchange {
	return t.ways[p.way].of(t.bytes[p.way])[p.first:p.after]
}

// silent says whether a job has nothing to send beyond its server.
func (t *talk) silent() bool { return len(t.parts) == 0 }

// gpusOf are the GPUs of servers, so many of each.
func gpusOf(servers []int, perServer int) (out []int) {
	for _, s := range servers {
		for g := range perServer {
			out = append(out, s*perServer+g)
		}
	}
	return out
}

// packed is so many side by side, from 0 on.
func packed(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// links is the collective for which LumosCore lights circuits.
func links(j workload.Job) sched.Collective {
	switch j.Pattern {
	case workload.AllToAll:
		return sched.AllToAll
	case workload.HalvingDoubling:
		return sched.HalvingDoubling
	}
	return sched.Ring
}

// faults are the outages of a cell.
func (c CompareConfig) faults(cell CompareCell) (*outages, error) {
	t := c.Trace
	if t == nil {
		t = trace.Generate(cell.Seed)
	}
	return newOutages(t, Size{Nodes: c.Cluster.GPUsTotal() / c.Cluster.GPUsPerServer, GPUsPerNode: c.Cluster.GPUsPerServer}, cell.Faults, cell.Seed)
}
