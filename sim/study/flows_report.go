package study

import (
	"fmt"
	"math"
	"time"

	"ringlight/sim/flow"
)

// FlowsRow is one run of jobs of one pattern. Flows are counted as the jobs'
// scripts have them: each flow of each repeat of a round, whether it went
// through the solver, ran on links of its own or was skipped with others.
type FlowsRow struct {
	Pattern   string   `json:"pattern"`
	Sharing   string   `json:"sharing"`
	Abridged  bool     `json:"abridged"`
	Jobs      int      `json:"jobs"`
	Flows     int64    `json:"flows"`
	Rounds    int64    `json:"rounds"`
	Events    int64    `json:"events"`
	Solved    int64    `json:"rates_solved"`
	JCTMeanUS int64    `json:"jct_mean_us"`
	Hash      string   `json:"trace_sha256"`
	CPUMS     *float64 `json:"cpu_ms"`         // without routing; null: not measured
	RoutingMS *float64 `json:"cpu_routing_ms"` // scripts and their routes
	FlowsPerS *int64   `json:"flows_per_s"`
}

// FlowsMemory is what flows take that are under way at once.
type FlowsMemory struct {
	Flows  int   `json:"live_flows"`
	Script int64 `json:"script_bytes"` // flows and paths of the script
	Sim    int64 `json:"sim_bytes"`    // what the simulator adds
}

// FlowsModel compares a model of sharing with rounds on sets of jobs.
type FlowsModel struct {
	Pattern string  `json:"pattern"`
	Sharing string  `json:"sharing"`
	Sets    int     `json:"sets"`
	Within2 int     `json:"sets_within_2_percent"`
	Mean    float64 `json:"jct_mean_excess_ratio"`  // of the mean JCT over that of rounds, signed
	Worst   float64 `json:"jct_worst_excess_ratio"` // the one farthest from 0
}

// FlowsResult is the study of the flow simulator.
type FlowsResult struct {
	Rows   []*FlowsRow    `json:"rows"`
	Models []FlowsModel   `json:"models"`
	Memory *FlowsMemory   `json:"memory"` // null: not measured
	Faults []*FlowsFaults `json:"faults"`
	Report
}

// Flows runs the flow simulator on jobs that meet on a leaf-spine network: how
// fast it is, what it needs, and how far its models of sharing lie apart.
func Flows(c FlowsConfig) (*FlowsResult, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	out := &FlowsResult{Models: []FlowsModel{}, Faults: []*FlowsFaults{}}
	of, done := 2*len(c.Patterns)+3, 0
	step := func() { done++; c.report(done, of) }
	for _, p := range c.Patterns {
		jobs := c.Jobs
		if p == PatternAllToAll {
			jobs = c.AllToAllJobs
		}
		for _, abridged := range []bool{true, false} {
			row, err := c.run(p, flow.Rounds, jobs, abridged)
			if err != nil {
				return nil, err
			}
			out.Rows = append(out.Rows, row)
			step()
		}
	}
	if err := out.models(c); err != nil {
		return nil, err
	}
	step()
	if c.Memory != nil && c.Live > 0 {
		var err error
		if out.Memory, err = c.live(); err != nil {
			return nil, err
		}
	}
	step()
	for _, bypass := range []bool{true, false} {
		if c.Faults.Days == 0 {
			break
		}
		f, err := c.Faults.play(c.Seed, bypass)
		if err != nil {
			return nil, err
		}
		out.Faults = append(out.Faults, f)
	}
	step()
	out.describe(c)
	return out, nil
}

// modelSet is a set of jobs that are all there from the start, so that their
// JCT is their running time: four jobs of 8 to 32 GPUs, spread over 8 leaves.
func modelSet(seed uint64) FlowsConfig {
	return FlowsConfig{Leaves: 8, Spines: 8, GPUsPerLeaf: 16, GPUsPerServer: 1, Gbps: 100, MinGPUs: 8, MaxGPUs: 32,
		Iterations: 5, Megabytes: 50, Compute: 5 * time.Millisecond, Drawn: Drawn{Seed: seed}}
}

func (r *FlowsResult) models(c FlowsConfig) error {
	if c.Sets == 0 {
		return nil
	}
	for _, p := range FlowPatterns {
		phases := FlowsModel{Pattern: p, Sharing: flow.Phases.String(), Sets: c.Sets}
		equal := FlowsModel{Pattern: p, Sharing: flow.Equal.String(), Sets: c.Sets}
		for k := range c.Sets {
			set := modelSet(c.Seed + uint64(k))
			exact, err := set.run(p, flow.Rounds, 4, true)
			if err != nil {
				return err
			}
			for sharing, m := range map[flow.Sharing]*FlowsModel{flow.Phases: &phases, flow.Equal: &equal} { // any order: each has its own sum
				row, err := set.run(p, sharing, 4, true)
				if err != nil {
					return err
				}
				off := float64(row.JCTMeanUS)/float64(exact.JCTMeanUS) - 1
				m.Mean += off / float64(c.Sets)
				if math.Abs(off) > math.Abs(m.Worst) {
					m.Worst = off
				}
				if math.Abs(off) <= 0.02 {
					m.Within2++
				}
			}
		}
		r.Models = append(r.Models, phases, equal)
	}
	return nil
}

func (r *FlowsResult) describe(c FlowsConfig) {
	r.Title = fmt.Sprintf("Flow simulator, %d leaves, %d spines, %d GPUs", c.Leaves, c.Spines, c.Leaves*c.GPUsPerLeaf)
	place := "any free servers"
	if c.Packed {
		place = "the first free servers"
	}
	r.note("%d leaves of %d GPUs in servers of %d, %d spines, ports and uplinks of %d Gb/s; jobs of %d to %d GPUs on %s, first come first served, all there at 0; routes by ECMP, one a pair of ranks; %d MB a rank and iteration, %d iterations; seed %d",
		c.Leaves, c.GPUsPerLeaf, c.GPUsPerServer, c.Spines, c.Gbps, c.MinGPUs, c.MaxGPUs, place, c.Megabytes, c.Iterations, c.Seed)
	r.note("flows are those of the scripts, each repeat of a round for itself; abridged: those that share a way are one, those on links of their own never enter the solver, and rounds and iterations that nobody disturbs are one event; unabridged: every flow of every round is on its links by itself, and its rate is solved anew when anything near it changes. Both give the same times to the nanosecond (trace_sha256)")
	r.note("rates_solved: rates given out, one a flow and solution; cpu: of this process, garbage collection included, routing apart")
	r.note("models: %d sets a pattern of four jobs of 8 to 32 GPUs on 8 leaves x 16 GPUs, servers of one GPU; the mean JCT against that of rounds. Phases knows no barriers but a phase's own pace alone: where rounds of a phase use different links (halving-doubling, all-to-all) a collision holds up the whole round, which phases spreads over the phase", c.Sets)
	if f := c.Faults; f.Days > 0 {
		r.note("faults: %d jobs of %d rings of %d nodes, tensor parallel on the rings, gradients between them over a leaf a ring; %d days at most, nodes in the order of the trace's servers, drawn; with bypass a ring is dark for %v while it goes around a lost node, any of %d spares (one in a ring) takes its place, and the job goes on %v after it has all nodes; without, a job waits for every node of its rings, spares too, to be repaired. What was computed since a checkpoint is not lost here",
			faultRings/ringsPerJob, ringsPerJob, ringNodes, f.Days, f.Bypass, f.Spares, f.Reload)
	}
	for _, row := range r.Rows {
		if row.FlowsPerS != nil && !row.Abridged && row.Pattern == PatternRing {
			r.compare("rings, flows a second and core, unabridged", fmt.Sprintf("%.1f M", float64(*row.FlowsPerS)/1e6), "0.148 M", "RapidNetSim, which [VCLOS] uses, on another machine: flows are Python objects there")
		}
	}
}

// Table is a row a run.
func (r *FlowsResult) Table() Table {
	t := Table{Columns: []string{"pattern", "sharing", "abridged", "jobs", "flows", "rounds", "events", "rates_solved", "jct_mean_ms", "cpu_ms", "routing_ms", "Mflows_per_s", "trace_sha256"}}
	for _, row := range r.Rows {
		cpu, way, rate := "", "", ""
		if row.CPUMS != nil {
			cpu, way, rate = decimals(*row.CPUMS, 1), decimals(*row.RoutingMS, 1), decimals(float64(*row.FlowsPerS)/1e6, 2)
		}
		t.add(row.Pattern, row.Sharing, row.Abridged, row.Jobs, row.Flows, row.Rounds, row.Events, row.Solved,
			decimals(float64(row.JCTMeanUS)/1000, 3), cpu, way, rate, row.Hash[:16])
	}
	for _, m := range r.Models {
		t.add(m.Pattern, m.Sharing, "", "", "", "", "", "", fmt.Sprintf("mean %s, worst %s against rounds, %d of %d sets within 2 %%", percent(m.Mean, 2), percent(m.Worst, 2), m.Within2, m.Sets))
	}
	if m := r.Memory; m != nil {
		t.add("memory", "rounds", false, "", m.Flows, "", "", "", fmt.Sprintf("script %d B a flow, simulator %d B a flow, %d MiB together", m.Script/int64(m.Flows), m.Sim/int64(m.Flows), (m.Script+m.Sim)>>20))
	}
	for _, f := range r.Faults {
		how := "no bypass"
		if f.Bypass {
			how = "bypass"
		}
		t.add("faults", how, "", f.Jobs, "", "", "", "", fmt.Sprintf("%d faults of %d nodes: %d of %d iterations, %s lost; dark %d us, waited %d h, reloaded %d h",
			f.Faults, f.Nodes, f.Iterations, f.Ideal, percent(f.Lost, 3), f.DarkUS, f.WaitS/3600, f.ReloadS/3600))
	}
	return t
}

// Charts are how far models of sharing are off, and flows a second by pattern if
// they were timed.
func (r *FlowsResult) Charts() (out []Chart) {
	for _, m := range r.Models {
		p := panelOf(&out, "Mean JCT by other models of sharing, against rounds", Chart{YLabel: "off by, %", YPercent: true})
		p.bar(m.Pattern, m.Sharing, m.Mean)
	}
	for _, row := range r.Rows {
		if row.FlowsPerS == nil {
			continue
		}
		c := panelOf(&out, "Flows simulated by one core", Chart{YLabel: "millions of flows a second", YLog: true})
		name := "unabridged"
		if row.Abridged {
			name = "abridged"
		}
		c.bar(row.Pattern, name, float64(*row.FlowsPerS)/1e6)
	}
	return out
}
