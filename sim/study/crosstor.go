package study

import (
	"fmt"
	"slices"

	"ringlight/mzi/detmath"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// Method orchestrates a job.
type Method string

const (
	Exact    Method = "exact"    // fewest flows between ToRs, within each domain and over all
	Paper    Method = "paper"    // [IHBD] Alg. 1 and 5
	Baseline Method = "baseline" // [IHBD] sec 6.4: groups in random order
)

// methods in the order of every table.
var methods = []Method{Exact, Paper, Baseline}

// CrossTorConfig is [IHBD] Fig. 13a-c.
type CrossTorConfig struct {
	GPUs        int   `flag:"gpus-total" usage:"GPUs of the cluster; Fig. 13a also takes a quarter to four times as many"`
	GPUsPerNode int   `flag:"gpus" usage:"GPUs of a node"`
	TP          int   `flag:"tp" usage:"GPUs of a group"`
	K           int   `flag:"k" usage:"hops that a fibre may span"`
	PerToR      int   `flag:"nodes-per-tor" usage:"nodes under a ToR switch"`
	Domains     []int `flag:"nodes-per-domain" usage:"nodes under a group of aggregation switches"`
	Runs        int   `flag:"runs" usage:"times that each cluster is drawn"`
	Drawn
}

// DefaultCrossTor is the setup of [IHBD] sec 6.4, as far as it is printed:
// 8,192 GPUs, TP-32. chosen: K = 3 with our wiring, p = 2 (only that fits the
// paper's curves), and several sizes of domain, which the paper does not name.
func DefaultCrossTor() CrossTorConfig {
	return CrossTorConfig{GPUs: 8192, GPUsPerNode: 4, TP: 32, K: 3, PerToR: 2, Domains: []int{128, 256, 512, 1024, 2048}, Runs: 20}
}

// maxHops is what the default wiring offers with up to 64 GPUs per node.
const maxHops = 64

func (c CrossTorConfig) validate() error {
	size := Size{Nodes: c.GPUs / max(1, c.GPUsPerNode), GPUsPerNode: c.GPUsPerNode, TPs: []int{c.TP}}
	if err := size.Validate(); err != nil {
		return err
	}
	switch {
	case c.GPUs%c.GPUsPerNode != 0:
		return invalid("gpus-total", fmt.Sprintf("a multiple of gpus (%d)", c.GPUsPerNode), "%d does not fill whole nodes", c.GPUs)
	case c.K < 1 || c.K > min(c.GPUsPerNode, maxHops):
		return invalid("k", fmt.Sprintf("1 to gpus (%d)", c.GPUsPerNode), "%d hops need more bundles than a node has", c.K)
	case c.PerToR < 1 || size.Nodes%c.PerToR != 0:
		return invalid("nodes-per-tor", fmt.Sprintf("a divisor of the number of nodes (%d)", size.Nodes), "%d is none", c.PerToR)
	case len(c.Domains) == 0:
		return invalid("nodes-per-domain", "at least one size", "none given")
	case slices.Min(c.Domains) > size.Nodes:
		return invalid("nodes-per-domain", fmt.Sprintf("a size of at most %d, the nodes of the cluster", size.Nodes), "%d is the smallest", slices.Min(c.Domains))
	}
	for _, d := range c.Domains {
		if d < c.PerToR || d%c.PerToR != 0 {
			return invalid("nodes-per-domain", fmt.Sprintf("multiples of nodes-per-tor (%d)", c.PerToR), "%d is none", d)
		}
	}
	return checkRuns(c.Runs)
}

// CrossTorRow is one point of one curve.
type CrossTorRow struct {
	Figure   string  `json:"figure"` // "13a", "13b" or "13c"
	GPUs     int     `json:"gpus_total"`
	Scale    float64 `json:"job_scale" table:"2"`
	Faults   float64 `json:"fault_ratio" table:"2"`
	Domain   int     `json:"nodes_per_domain"`
	Method   Method  `json:"method"`
	Fits     int     `json:"runs_that_fit"`
	M        float64 `json:"cross_tor_of_inner" table:"6"` // M, mean over the runs that fit
	Tenth    float64 `json:"cross_tor_ratio" table:"6"`    // 0.1 M, which compares with the paper
	Unplaced float64 `json:"unaligned_groups" table:"2"`
}

// CrossTorResult is [IHBD] Fig. 13a-c.
type CrossTorResult struct {
	Study    string `json:"study"`
	Seed     uint64 `json:"seed"`
	Runs     int    `json:"runs"`
	GPUsNode int    `json:"gpus_per_node"`
	TP       int    `json:"tp"`
	K        int    `json:"k"`
	PerToR   int    `json:"nodes_per_tor"`
	rowsOf[CrossTorRow]
	Report
}

// points of the three figures, for all domains and methods. The scale and the faults of Fig. 13a are not
// printed; those of its neighbours are taken.
func (c CrossTorConfig) points() (out []CrossTorRow) {
	for _, g := range []int{c.GPUs / 4, c.GPUs / 2, c.GPUs, 2 * c.GPUs, 4 * c.GPUs} {
		if g/c.GPUsPerNode%c.PerToR == 0 && g%c.GPUsPerNode == 0 && g/c.GPUsPerNode > 2*c.K {
			out = append(out, CrossTorRow{Figure: "13a", GPUs: g, Scale: 0.85, Faults: 0.05})
		}
	}
	for s := 70; s <= 94; s += 2 {
		out = append(out, CrossTorRow{Figure: "13b", GPUs: c.GPUs, Scale: float64(s) / 100, Faults: 0.05})
	}
	for f := 0; f <= 10; f++ {
		out = append(out, CrossTorRow{Figure: "13c", GPUs: c.GPUs, Scale: 0.85, Faults: float64(f) / 100})
	}
	return out
}

// CrossTor orchestrates jobs by every method on the same drawn clusters.
func CrossTor(cfg CrossTorConfig) (*CrossTorResult, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	res := &CrossTorResult{Study: "crosstor", Seed: cfg.Seed, Runs: cfg.Runs, GPUsNode: cfg.GPUsPerNode, TP: cfg.TP, K: cfg.K, PerToR: cfg.PerToR}
	all := cfg.points()
	for i, p := range all {
		cfg.report(i, len(all))
		for _, d := range cfg.Domains {
			if p.Domain = d; d <= p.GPUs/cfg.GPUsPerNode {
				res.Rows = append(res.Rows, cfg.rows(p)...)
			}
		}
	}
	cfg.report(len(all), len(all))
	res.describe(cfg)
	return res, nil
}

func (c CrossTorConfig) rows(p CrossTorRow) []CrossTorRow {
	rows := each(methods, func(m Method) CrossTorRow { p.Method = m; return p })
	for run := range c.Runs {
		seed := c.Seed + uint64(run)
		job := c.job(p, seed)
		for i, o := range []ring.Orchestration{ring.Orchestrate(job), ring.OrchestratePaper(job), ring.OrchestrateBaseline(job, seed)} {
			if o.OK() {
				rows[i].Fits++
				rows[i].M += o.M()
				rows[i].Unplaced += float64(o.Unaligned)
			}
		}
	}
	for i := range rows {
		n := float64(max(1, rows[i].Fits))
		rows[i].M /= n
		rows[i].Unplaced /= n
		rows[i].Tenth = rows[i].M / 10
	}
	return rows
}

// job draws the cluster: so many faulty nodes, any of them.
func (c CrossTorConfig) job(p CrossTorRow, seed uint64) ring.Job {
	nodes := p.GPUs / c.GPUsPerNode
	r := detmath.Stream(seed, streamCrossTor)
	order := packed(nodes)
	down := make([]bool, nodes)
	for i := range int(float64(p.Faults*float64(nodes)) + 0.5) {
		k := i + int(r.Next()%uint64(nodes-i))
		order[i], order[k] = order[k], order[i]
		down[order[i]] = true
	}
	return ring.Job{
		Deployment: ring.Deployment{Nodes: nodes, PerToR: c.PerToR}, PerDomain: p.Domain, K: c.K, Shared: c.K%2 == 1 && c.K > 1,
		Size: c.TP / c.GPUsPerNode, Want: (int(float64(p.Scale*float64(p.GPUs))+0.5) + c.TP - 1) / c.TP, // the fewest groups that hold the job, as plan orchestrate has it
		Faulty: func(n proto.NodeID) bool { return down[n] },
	}
}

func (r *CrossTorResult) describe(cfg CrossTorConfig) {
	r.Title = fmt.Sprintf("Traffic that leaves its ToR, %d GPUs, TP-%d", cfg.GPUs, cfg.TP)
	r.note("%d draw(s) of exactly so many faulty nodes each; TP-%d, K = %d, %d nodes under a ToR; the HBD order is a line, deployed by [IHBD] Alg. 3", r.Runs, r.TP, r.K, r.PerToR)
	r.note("inner sets of %d groups; the node of rank j of one exchanges with that of the next; M = flows whose ends have different ToRs / all inner flows; cross_tor_ratio = 0.1 M, as inner flows are about a tenth of TP and DCN traffic", r.PerToR)
	r.note("the paper names neither p nor the size of a domain nor K")
	for _, d := range cfg.Domains {
		for _, c := range []struct {
			figure        string
			scale, faults float64
			paper         map[Method]string
		}{
			{"13b", 0.9, 0.05, map[Method]string{Exact: "1.72 % (its own method)", Paper: "1.72 %", Baseline: "about 10 %"}},
			{"13c", 0.85, 0.07, map[Method]string{Exact: "near zero (its own method)", Paper: "near zero", Baseline: "rises with the faults"}},
		} {
			for _, m := range methods {
				row := r.row(func(x CrossTorRow) bool {
					return x.Figure == c.figure && x.Scale == c.scale && x.Faults == c.faults && x.Domain == d && x.Method == m
				})
				if c.paper[m] == "" || row == nil {
					continue
				}
				why := map[Method]string{
					Exact:    "better: the fewest flows that groups in their domains can have; the paper's method aligns a whole domain or nothing",
					Paper:    "Algorithm 5 as printed, with the best placement kept; the paper's claim is reached by the exact method only",
					Baseline: "groups in random order meet under one ToR by chance only, faults or not",
				}[m]
				r.compare(fmt.Sprintf("cross-ToR, %.0f %% job, %.0f %% faults, domain of %d, %s", 100*c.scale, 100*c.faults, d, m), percent(row.Tenth, 2), c.paper[m], why)
			}
		}
	}
}

// Charts are the three figures at the smallest and the largest domain.
func (r *CrossTorResult) Charts() []Chart {
	dress := map[string]Chart{
		"13a": {Title: "By cluster ([IHBD] Fig. 13a)", XLabel: "GPUs of the cluster, logarithmic", XLog: true},
		"13b": {Title: "By size of the job ([IHBD] Fig. 13b)", XLabel: "GPUs of the job, % of all", XPercent: true},
		"13c": {Title: "By faults ([IHBD] Fig. 13c)", XLabel: "faulty nodes, % of all", XPercent: true},
	}
	smallest, largest := r.Rows[0].Domain, r.Rows[0].Domain
	for _, row := range r.Rows {
		smallest, largest = min(smallest, row.Domain), max(largest, row.Domain)
	}
	var out []Chart
	for _, row := range r.Rows {
		if row.Fits == 0 || row.Domain != smallest && row.Domain != largest || row.Method == Baseline && row.Domain != largest {
			continue
		}
		x := row.Scale
		switch row.Figure {
		case "13a":
			x = float64(row.GPUs)
		case "13c":
			x = row.Faults
		}
		name := string(row.Method)
		switch row.Method {
		case Exact:
			name = fmt.Sprintf("exact, %d nodes a domain", row.Domain)
		case Paper:
			name = fmt.Sprintf("[IHBD] Alg. 5, %d nodes a domain", row.Domain)
		}
		panel := dress[row.Figure]
		panel.YLabel, panel.YPercent = "traffic that leaves its ToR, % of all", true
		panelOf(&out, panel.Title, panel).point(name, x, row.Tenth)
	}
	return out
}
