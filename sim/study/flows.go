package study

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/sim/flow"
)

// Patterns of traffic that the study of flows runs.
const (
	PatternRing     = "ring"
	PatternHalving  = "halving-doubling"
	PatternTree     = "double-binary-tree"
	PatternAllToAll = "all-to-all"
)

// FlowPatterns is the order of rows.
var FlowPatterns = []string{PatternRing, PatternHalving, PatternTree, PatternAllToAll}

// flowPatterns are what ranks say to each other of which each has so many bytes.
var flowPatterns = map[string]func(ranks int, bytes int64) []flow.Exchange{
	PatternRing: flow.Ring, PatternHalving: flow.HalvingDoubling, PatternTree: flow.DoubleBinaryTree,
	PatternAllToAll: func(ranks int, bytes int64) []flow.Exchange { return flow.AllToAll(ranks, bytes/int64(ranks)) },
}

// Limits of the study, all chosen: some ten times what is asked of it.
const (
	maxFlowJobs       = 10000
	maxFlowGPUs       = 1 << 16 // of the network
	maxFlowJob        = 2048    // GPUs of a job: all-to-all has so many squared flows an iteration
	maxFlowIterations = 1000
	maxFlowMegabytes  = 100000
	maxFlowSets       = 1000
	maxLiveFlows      = 1 << 23
)

// FlowsConfig is jobs on a leaf-spine network that start in their order as
// GPUs become free, each on whole servers, routed by ECMP.
type FlowsConfig struct {
	Leaves        int `flag:"leaves" usage:"leaves of the network"`
	Spines        int `flag:"spines" usage:"spines of the network"`
	GPUsPerLeaf   int `flag:"gpus-per-leaf" usage:"GPUs below a leaf, and its uplinks"`
	GPUsPerServer int `flag:"gpus-per-server" usage:"GPUs of a server, which reach each other by links of their own"`
	Gbps          int `flag:"gbps" usage:"Gb/s of a GPU's port and of an uplink"`
	Patterns      []string
	Jobs          int           `flag:"jobs" usage:"jobs of a pattern other than all-to-all"`
	AllToAllJobs  int           `flag:"all-to-all-jobs" usage:"jobs of the pattern all-to-all"`
	MinGPUs       int           `flag:"min-gpus" usage:"GPUs of the smallest job"`
	MaxGPUs       int           `flag:"max-gpus" usage:"GPUs of the largest job"`
	Iterations    int           `flag:"iterations" usage:"iterations of a job"`
	Megabytes     int           `flag:"megabytes" usage:"MB that a rank reduces in an iteration, or sends to all others together"`
	Compute       time.Duration // of an iteration, times 0.5 to 1.5 by job
	Packed        bool          `flag:"packed" usage:"a job takes the first free servers, not any"`
	Sets          int           `flag:"sets" usage:"sets of jobs, a pattern, on which models of sharing are compared; 0: none"`
	Live          int           `flag:"live" usage:"flows under way at once whose memory is measured; 0: none"`
	Faults        FaultsConfig
	Clock         Clock        // processor time
	Memory        func() int64 // bytes in use; nil: nobody asks
	Drawn
}

// DefaultFlows is 300 jobs of 8 to 256 GPUs on 64 leaves and 32 spines.
func DefaultFlows() FlowsConfig {
	return FlowsConfig{Leaves: 64, Spines: 32, GPUsPerLeaf: 32, GPUsPerServer: 8, Gbps: 100,
		Patterns: []string{PatternRing, PatternAllToAll}, Jobs: 300, AllToAllJobs: 60, MinGPUs: 8, MaxGPUs: 256, Iterations: 5,
		Megabytes: 100, Compute: 5 * time.Millisecond, Sets: 25, Live: 1000000, Drawn: Drawn{Seed: 1},
		Faults: FaultsConfig{Days: 348, Spares: 16, Bypass: 12 * time.Millisecond, Reload: 10 * time.Minute}}
}

// Validate names the flag that is not acceptable and what would be.
func (c FlowsConfig) Validate() error {
	if err := within([]span{
		{"leaves", c.Leaves, 2, 4096}, {"spines", c.Spines, 1, 1024}, {"gpus-per-leaf", c.GPUsPerLeaf, 1, 1024},
		{"gpus-per-server", c.GPUsPerServer, 1, c.GPUsPerLeaf}, {"gbps", c.Gbps, 1, 100000},
		{"jobs", c.Jobs, 1, maxFlowJobs}, {"all-to-all-jobs", c.AllToAllJobs, 1, maxFlowJobs},
		{"min-gpus", c.MinGPUs, 2, maxFlowJob}, {"max-gpus", c.MaxGPUs, c.MinGPUs, maxFlowJob},
		{"iterations", c.Iterations, 1, maxFlowIterations}, {"megabytes", c.Megabytes, 1, maxFlowMegabytes},
		{"sets", c.Sets, 0, maxFlowSets}, {"live", c.Live, 0, maxLiveFlows}, {"compute-us", int(c.Compute.Microseconds()), 1, 1e9},
	}...); err != nil {
		return err
	}
	gpus := c.Leaves * c.GPUsPerLeaf
	switch {
	case c.GPUsPerLeaf%c.GPUsPerServer != 0:
		return invalid("gpus-per-leaf", "a multiple of gpus-per-server", "%d is none of %d", c.GPUsPerLeaf, c.GPUsPerServer)
	case gpus > maxFlowGPUs:
		return invalid("leaves", fmt.Sprintf("leaves x gpus-per-leaf of at most %d", maxFlowGPUs), "more than that")
	case c.MinGPUs%c.GPUsPerServer != 0 || c.MaxGPUs%c.GPUsPerServer != 0:
		return invalid("max-gpus", "min-gpus and max-gpus multiples of gpus-per-server", "%d and %d are not of %d", c.MinGPUs, c.MaxGPUs, c.GPUsPerServer)
	case c.MaxGPUs > gpus:
		return invalid("max-gpus", fmt.Sprintf("at most the %d GPUs there are", gpus), "%d are more", c.MaxGPUs)
	case c.Spines > c.GPUsPerLeaf:
		return invalid("spines", fmt.Sprintf("at most the %d uplinks of a leaf", c.GPUsPerLeaf), "%d are more", c.Spines)
	case c.Live > gpus*(gpus-1):
		return invalid("live", fmt.Sprintf("at most one flow a pair of GPUs, %d", gpus*(gpus-1)), "%d are more", c.Live)
	case len(c.Patterns) == 0:
		return invalid("patterns", fmt.Sprintf("some of %v", FlowPatterns), "none given")
	}
	for _, p := range c.Patterns {
		if !slices.Contains(FlowPatterns, p) {
			return invalid("patterns", fmt.Sprintf("some of %v", FlowPatterns), "%q is none", p)
		}
	}
	return c.Faults.validate()
}

// flowRun is jobs of one pattern on their way through one simulation.
type flowRun struct {
	cfg     FlowsConfig
	pattern string
	net     *flow.LeafSpine
	sim     *flow.Sim
	draw    *detmath.Random
	free    []int // servers
	servers map[flow.Job][]int
	hash    hash.Hash
	sum     time.Duration // of the times at which jobs end
	routing time.Duration // of the processor, to make scripts
}

// run plays so many jobs of one pattern.
func (c FlowsConfig) run(pattern string, sharing flow.Sharing, jobs int, abridged bool) (*FlowsRow, error) {
	began := c.Clock.read()
	r := &flowRun{cfg: c, pattern: pattern, draw: detmath.Stream(c.Seed, 1), servers: map[flow.Job][]int{}, hash: sha256.New()}
	var err error
	if r.net, r.sim, err = c.network(sharing); err != nil {
		return nil, err
	}
	if !abridged {
		r.sim.Unabridged()
	}
	r.free = packed(c.Leaves * c.GPUsPerLeaf / c.GPUsPerServer)
	for next, size := 0, r.size(); next < jobs || r.sim.Live() > 0; {
		for ; next < jobs && size <= len(r.free); next++ {
			if err := r.add(next, size); err != nil {
				return nil, err
			}
			size = r.size()
		}
		if r.sim.Next() == flow.Never {
			return nil, fmt.Errorf("study: jobs that never end, at %v", r.sim.Now())
		}
		for _, j := range r.sim.Advance(flow.Never - 1) {
			r.free = append(r.free, r.servers[j]...)
			r.sum += r.sim.Now()
			r.hash.Write(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(nil, uint32(j)), uint64(r.sim.Now())))
		}
	}
	n := r.sim.Count()
	row := &FlowsRow{Pattern: pattern, Sharing: sharing.String(), Abridged: abridged, Jobs: jobs, Flows: n.Flows, Rounds: n.Rounds,
		Events: n.Events, Solved: n.Solved, JCTMeanUS: (r.sum / time.Duration(jobs)).Microseconds(), Hash: fmt.Sprintf("%x", r.hash.Sum(nil))}
	if c.Clock != nil {
		took := c.Clock() - began - r.routing
		row.CPUMS, row.RoutingMS = new(milliseconds(took)), new(milliseconds(r.routing))
		row.FlowsPerS = new(int64(float64(row.Flows) / max(took, time.Microsecond).Seconds()))
	}
	return row, nil
}

func (c FlowsConfig) network(sharing flow.Sharing) (*flow.LeafSpine, *flow.Sim, error) {
	rate := int64(c.Gbps) * 1e9
	net, err := flow.NewLeafSpine(c.Leaves, c.Spines, c.GPUsPerLeaf, c.GPUsPerServer, c.GPUsPerLeaf, rate, serverFaster*rate)
	if err != nil {
		return nil, nil, err
	}
	sim, err := flow.New(net.Capacities(), sharing)
	return net, sim, err
}

// size of the next job, in servers.
func (r *flowRun) size() int {
	lo, hi := r.cfg.MinGPUs/r.cfg.GPUsPerServer, r.cfg.MaxGPUs/r.cfg.GPUsPerServer
	return lo + r.draw.Below(hi-lo+1)
}

// add starts a job on free servers.
func (r *flowRun) add(job, size int) error {
	began := r.cfg.Clock.read()
	if r.cfg.Packed {
		slices.Sort(r.free)
	} else {
		r.draw.Shuffle(len(r.free), func(i, j int) { r.free[i], r.free[j] = r.free[j], r.free[i] })
	}
	mine := slices.Clone(r.free[:size])
	r.free = r.free[size:]
	sc, err := r.script(job, mine)
	if err != nil {
		return err
	}
	r.routing += r.cfg.Clock.read() - began
	id, err := r.sim.Add(sc)
	r.servers[id] = mine
	return err
}

func (r *flowRun) script(job int, servers []int) (*flow.Script, error) {
	c := r.cfg
	placed := flow.Placed{Route: r.net.ECMP(c.Seed, job), GPUs: gpusOf(servers, c.GPUsPerServer)}
	rounds, err := placed.Rounds(flowPatterns[r.pattern](len(placed.GPUs), int64(c.Megabytes)*1e6))
	if err != nil {
		return nil, err
	}
	compute := c.Compute/2 + time.Duration(r.draw.Modulo(int(c.Compute)+1))
	return &flow.Script{Iterations: int64(c.Iterations), Stages: []flow.Stage{{{Compute: compute}}, {{Rounds: rounds}}}}, nil
}

// live puts so many flows on the network at once, each by itself, and tells
// what they take.
func (c FlowsConfig) live() (*FlowsMemory, error) {
	net, sim, err := c.network(flow.Rounds)
	if err != nil {
		return nil, err
	}
	sim.Unabridged()
	before := c.Memory()
	gpus := c.Leaves * c.GPUsPerLeaf
	route := net.ECMP(c.Seed, 0)
	flows := make([]flow.Flow, 0, c.Live)
	for step := 1; len(flows) < c.Live; step++ {
		for from := 0; from < gpus && len(flows) < c.Live; from++ {
			path, err := route(from, (from+step)%gpus)
			if err != nil {
				return nil, err
			}
			flows = append(flows, flow.Flow{Path: path, Bytes: 1e6})
		}
	}
	script := c.Memory()
	if _, err := sim.Add(&flow.Script{Iterations: 1, Stages: []flow.Stage{{{Rounds: []flow.Round{{Flows: flows, Times: 1}}}}}}); err != nil {
		return nil, err
	}
	if sim.Next() == flow.Never {
		return nil, fmt.Errorf("study: flows that never end")
	}
	m := &FlowsMemory{Flows: c.Live, Script: script - before, Sim: c.Memory() - script}
	sim.Next() // it was all needed until here
	return m, nil
}
