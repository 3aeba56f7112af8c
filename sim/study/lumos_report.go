package study

import (
	"fmt"
	"strings"
)

// What [LUMOS] prints: gains of LumosCore (25.6T, tau 1) over a Clos of three
// tiers of the same chips, as shares of the Clos's times (sec 6.4); what its
// public logs have for one of its runs (mean gap 2,000 s): JRT, JWT, JCT in
// seconds, and how much longer jobs take than on the ideal network; links that
// a change moves (Table 6).
var (
	lumosPaperJRT = map[int]float64{4096: 0.0506}
	lumosPaperJCT = map[int]float64{4096: 0.161, 16384: 0.341}
	lumosMoved    = map[int]string{2048: "0.319 %", 4096: "0.282 %", 8192: "0.441 %", 16384: "0.445 %"}
	lumosSlow     = map[string]LumosSlow{LumosCore: {0, 0.0046, 0.0509}, LumosClos: {0.0103, 0.0921, 0.3547}}
	lumosLogs     = map[string][3]float64{LumosBest: {21679, 11609, 33288}, LumosCore: {21793, 12064, 33857}, LumosClos: {23364, 25266, 48630}}
)

// LumosGain is what LumosCore saves of the Clos's mean times, over all seeds.
type LumosGain struct {
	Case string `json:"case"`
	LumosInputs
	ClosGbps  int      `json:"clos_port_gbps" column:"clos_gbps"`
	JRT       float64  `json:"jrt_saved_ratio" table:"6" column:"jrt_saved"`
	JCT       float64  `json:"jct_saved_ratio" table:"6" column:"jct_saved"`
	JCTLeast  float64  `json:"jct_saved_ratio_min" table:"6" column:"jct_saved_min"` // of one seed
	JCTMost   float64  `json:"jct_saved_ratio_max" table:"6" column:"jct_saved_max"`
	Excess    float64  `json:"jrt_excess_ratio" table:"6" column:"jrt_excess"` // of LumosCore over the ideal network
	Granted   float64  `json:"links_granted_ratio" table:"6" column:"links_granted"`
	Moved     float64  `json:"paths_moved_ratio" table:"6" column:"paths_moved"`             // of those in use, by a change
	Again     float64  `json:"links_reallocated_ratio" table:"6" column:"links_reallocated"` // to another spine or circuit switch
	Level     float64  `json:"contention_level,omitempty" table:"4" column:"contention"`     // of LumosCore
	ClosLevel float64  `json:"clos_contention_level,omitempty" table:"4" column:"clos_contention"`
	PaperJRT  *float64 `json:"paper_jrt_saved_ratio,omitempty" table:"6" column:"jrt_paper"`
	PaperJCT  *float64 `json:"paper_jct_saved_ratio,omitempty" table:"6" column:"jct_paper"`
}

// LumosResult is the comparison, case by case.
type LumosResult struct {
	Study string      `json:"study"`
	Jobs  int         `json:"jobs"`
	Seeds int         `json:"seeds"`
	Gains []LumosGain `json:"gains"`
	Runs  []LumosRun  `json:"runs"`
	Report
}

// Result puts runs, in the order of Cells, together.
func (c LumosConfig) Result(runs []LumosRun) *LumosResult {
	of := map[LumosCell]LumosRun{}
	for i, cell := range c.Cells() {
		of[cell] = runs[i]
	}
	res := &LumosResult{Study: "lumos-jct", Jobs: runs[0].Jobs, Seeds: c.Runs}
	for i, k := range c.Cases {
		sums := map[string]LumosRun{}
		g := LumosGain{Case: k.Name, LumosInputs: k.LumosInputs, JCTLeast: 1, JCTMost: -1}
		for n := range c.Runs {
			for _, network := range lumosNetworks {
				r := of[k.cell(network, c.Seed+uint64(n))]
				r.Case = k.Name
				res.Runs = append(res.Runs, r)
				sums[network] = sums[network].plus(r)
			}
			one := res.Runs[len(res.Runs)-len(lumosNetworks):]
			jct := saved(one[1].JCT, one[2].JCT)
			g.JCTLeast, g.JCTMost = min(g.JCTLeast, jct), max(g.JCTMost, jct)
		}
		best, core, clos := sums[LumosBest], sums[LumosCore], sums[LumosClos]
		g.ClosGbps = clos.Gbps
		g.JRT, g.JCT, g.Excess = saved(core.JRT, clos.JRT), saved(core.JCT, clos.JCT), -saved(core.JRT, best.JRT)
		g.Granted, g.Moved = share(core.Granted, max(1, core.Asked)), share(core.Moved, max(1, core.Moved+core.Kept))
		g.Again = share(core.Moved+core.Turned, max(1, core.Moved+core.Placed))
		g.Level, g.ClosLevel = core.Contention/float64(c.Runs), clos.Contention/float64(c.Runs)
		if v, ok := lumosPaperJRT[k.GPUs]; ok && i == 0 {
			g.PaperJRT = &v
		}
		if v, ok := lumosPaperJCT[k.GPUs]; ok && (i == 0 || k.GPUs != c.Cases[0].GPUs) {
			g.PaperJCT = &v
		}
		res.Gains = append(res.Gains, g)
	}
	res.describe(c)
	return res
}

func (s LumosSlow) String() string {
	return percent(s.P50, 1) + " / " + percent(s.P90, 1) + " / " + percent(s.P99, 1)
}

// saved is the share of b that a saves.
func saved(a, b int64) float64 { return 1 - float64(a)/float64(max(1, b)) }

func (r LumosRun) plus(o LumosRun) LumosRun {
	o.JRT, o.JWT, o.JCT = o.JRT+r.JRT, o.JWT+r.JWT, o.JCT+r.JCT
	o.Placed, o.Turned, o.Contention = o.Placed+r.Placed, o.Turned+r.Turned, o.Contention+r.Contention
	o.Asked, o.Granted, o.Kept, o.Moved = o.Asked+r.Asked, o.Granted+r.Granted, o.Kept+r.Kept, o.Moved+r.Moved
	return o
}

func (r *LumosResult) describe(c LumosConfig) {
	base := c.Cases[0]
	r.Title = fmt.Sprintf("LumosCore against a Clos, %d jobs", r.Jobs)
	r.note("%d jobs a run, %d seeds, FIFO; tensor parallel in a server of %d, experts in a pod, by planner/sched; %d iterations a job, each computes, exchanges between experts, forwards between stages and reduces by its collective, nothing hidden; flows with max-min rates and a barrier after each of these", r.Jobs, r.Seeds, gpusPerServer, c.Steps)
	r.note("chips of %d Gb/s: LumosCore of ports of %d, pods of %d GPUs, a server a leaf, tau 1, its links granted and spread as the planner does; the Clos has the fastest ports that reach everybody in three tiers", chipGbps, fastGbps, lumosShape(LumosCore, base.LumosInputs).podGPUs())
	r.note("what a job sends is the share of its time on the ideal network of five models that the paper's public simulator has; workload lumos has the running times of its public logs and sizes of its simulator (Helios times, TPUv4 sizes)")
	r.note("a path of a job that runs and moves to another spine counts as moved; its flows stay where they were")
	r.note("each case but the first differs from it in one input; saved is 1 - LumosCore / Clos of the means over all seeds; a tenth of the jobs has four fifths of the time, so seeds differ: see jct_saved_ratio_min and max")
	first := r.Gains[0]
	why := r.effects()
	if first.PaperJRT != nil {
		r.compare(fmt.Sprintf("JRT saved, %d GPUs", first.GPUs), percent(first.JRT, 2), percent(*first.PaperJRT, 2), why+"; the paper's own public logs have 6.7 % at a gap of 2,000 s")
	}
	for _, g := range r.Gains {
		if g.PaperJCT == nil {
			continue
		}
		text := fmt.Sprintf("JRT saves %s of it, the queue the rest; one seed has %s to %s", percent(g.JRT, 1), percent(g.JCTLeast, 1), percent(g.JCTMost, 1))
		if g.GPUs == 4096 {
			text += "; the paper's own public logs have 30.4 %"
		} else {
			text += fmt.Sprintf("; the ports of the Clos have %d Gb/s here", g.ClosGbps)
		}
		r.compare(fmt.Sprintf("JCT saved, %d GPUs", g.GPUs), percent(g.JCT, 1), percent(*g.PaperJCT, 1), text)
	}
	for _, g := range r.Gains {
		if g.Case == caseSameRate && g.GPUs == 4096 {
			r.compare("JRT and JCT saved of a Clos with ports of 1.6 Tb/s", percent(g.JRT, 1)+", "+percent(g.JCT, 1), "3.7 %, 12.8 %",
				"its public logs of 4 tiers, which chips of 25.6 Tb/s need for that; probing finds ways on which nobody meets here, and the paper's jobs meet")
		}
	}
	for n, g := range r.Gains {
		if text := lumosMoved[g.GPUs]; text != "" && (n == 0 || g.GPUs != first.GPUs) {
			r.compare(fmt.Sprintf("links that a change reallocates, %d GPUs", g.GPUs), percent(g.Again, 3), text, "of the inputs the collective changes it most, see its cases; the paper does not say what its jobs do at which scale")
		}
	}
	if base.LumosInputs == defaultLumosInputs() && c.List == nil {
		for _, network := range lumosNetworks {
			sum, slow, runs := LumosRun{}, LumosSlow{}, float64(r.Seeds)
			for _, run := range r.Runs {
				if run.Case == base.Name && run.Network == network {
					sum = sum.plus(run)
					slow.P50, slow.P90, slow.P99 = slow.P50+run.Slow.P50/runs, slow.P90+run.Slow.P90/runs, slow.P99+run.Slow.P99/runs
				}
			}
			n, log := float64(r.Seeds)*1000, lumosLogs[network]
			r.compare("JRT / JWT / JCT of "+network+", s", fmt.Sprintf("%.0f / %.0f / %.0f", float64(sum.JRT)/n, float64(sum.JWT)/n, float64(sum.JCT)/n),
				fmt.Sprintf("%.0f / %.0f / %.0f", log[0], log[1], log[2]), "its public logs, one draw of the jobs; ours the mean of the seeds")
			if paper, ok := lumosSlow[network]; ok {
				r.compare("slow-down of JRT on "+network+", p50 / p90 / p99", slow.String(), paper.String(), map[string]string{LumosCore: "its public logs; here a job's pipelines share links where the ports of its leaves do not do, and with tau 1 two paths of a leaf a spine",
					LumosClos: "its public logs: those that send most agree, half of its jobs send hardly anything, of what its models' shares say"}[network])
			}
		}
	}
}

// effects says which inputs change what is saved of the JRT, by half a
// hundredth of it at least, and to what.
func (r *LumosResult) effects() string {
	var parts []string
	for _, g := range r.Gains[1:] {
		if d := g.JRT - r.Gains[0].JRT; max(d, -d) < 0.005 {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s: JRT %s, JCT %s", g.Case, percent(g.JRT, 1), percent(g.JCT, 1)))
	}
	if len(parts) == 0 {
		return "no input was varied"
	}
	return "of the inputs, each by itself, these change it: " + strings.Join(parts, "; ")
}

// Table is a row a case.
func (r *LumosResult) Table() Table {
	return tableOf(r.Gains, "case", "gpus", "workload", "load_mille", "communication_mille", "ep_max", "setup_ms", "collective", "routing", "core_routing", "rails", "gpu_faults", "clos_gbps",
		"jrt_saved", "jrt_paper", "jct_saved", "jct_paper", "jct_saved_min", "jct_saved_max", "jrt_excess", "links_granted", "paths_moved", "links_reallocated", "contention", "clos_contention")
}

// Charts are what is saved, the paper's beside ours, four cases a panel.
func (r *LumosResult) Charts() (out []Chart) {
	for i, g := range r.Gains {
		c := panelOf(&out, fmt.Sprintf("Cases %d to %d of %d", i/4*4+1, min(i/4*4+4, len(r.Gains)), len(r.Gains)), Chart{YLabel: "time saved of the Clos's, %", YPercent: true})
		for _, s := range []struct {
			name  string
			value *float64
		}{{"JRT", &g.JRT}, {"JRT, paper", g.PaperJRT}, {"JCT", &g.JCT}, {"JCT, paper", g.PaperJCT}} {
			v := Absent
			if s.value != nil {
				v = *s.value
			}
			c.bar(g.Case, s.name, v)
		}
	}
	return out
}
