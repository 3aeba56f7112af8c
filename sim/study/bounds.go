package study

import (
	"cmp"
	"fmt"

	"ringlight/mzi/detmath"
)

// Rates behind [IHBD] Table 7: the 99th percentile of faulty 8-GPU servers,
// and the fault rate of one GPU that gives it.
const (
	p99Server = 0.0792
	p99GPU    = 0.0103
	boundTP   = 32
)

// paperBounds is [IHBD] Table 7 by GPUs of a node and K.
var paperBounds = []struct {
	gpus, k int
	printed string
	value   float64
}{
	{4, 2, "9.22 %", 0.0922}, {4, 3, "0.37 %", 0.0037}, {4, 4, "1.52e-4", 0.000152},
	{8, 2, "30.11 %", 0.3011}, {8, 3, "2.38 %", 0.0238}, {8, 4, "0.19 %", 0.0019},
}

// BoundRow is one cell of Table 7.
type BoundRow struct {
	GPUsNode  int     `json:"gpus_per_node"`
	K         int     `json:"k"`
	NodeFault float64 `json:"node_fault_ratio" table:"6"`
	Printed   float64 `json:"bound_printed" table:"6"` // 2 (Nt - R) Ps^K, the formula of App. C
	Sound     float64 `json:"bound" table:"6"`         // the same without the spare factor R
	Simulated float64 `json:"simulated" table:"6"`     // what breaks cost, by drawing
	Total     float64 `json:"simulated_total" table:"6"`
	Paper     float64 `json:"paper" table:"6"`
}

// BoundsConfig says how often the clusters are drawn.
type BoundsConfig struct {
	GPUs int `flag:"gpus-total" usage:"GPUs of the cluster that is drawn"`
	Runs int `flag:"runs" usage:"times that it is drawn"`
	Drawn
}

// DefaultBounds is the cluster of [IHBD] sec 6.2.
func DefaultBounds() BoundsConfig {
	return BoundsConfig{GPUs: DefaultSize().GPUsTotal(), Runs: 400}
}

// BoundsResult is Table 7 with a simulation beside it.
type BoundsResult struct {
	Study     string `json:"study"`
	Seed      uint64 `json:"seed"`
	Runs      int    `json:"runs"`
	GPUsTotal int    `json:"gpus_total"`
	TP        int    `json:"tp"`
	rowsOf[BoundRow]
	Report
}

// Bounds derives Table 7 and draws clusters to see how near it is.
func Bounds(cfg BoundsConfig) (*BoundsResult, error) {
	cfg.GPUs = cmp.Or(cfg.GPUs, DefaultSize().GPUsTotal())
	if cfg.GPUs < boundTP || cfg.GPUs%8 != 0 || cfg.GPUs > maxNodes {
		return nil, invalid("gpus-total", fmt.Sprintf("a multiple of 8 from %d to %d", boundTP, maxNodes), "%d is not", cfg.GPUs)
	}
	if err := checkRuns(cfg.Runs); err != nil {
		return nil, err
	}
	res := &BoundsResult{Study: "bounds", Seed: cfg.Seed, Runs: cfg.Runs, GPUsTotal: cfg.GPUs, TP: boundTP}
	cfg.report(0, len(paperBounds))
	for i, p := range paperBounds {
		row := BoundRow{GPUsNode: p.gpus, K: p.k, NodeFault: p99Server, Paper: p.value}
		if p.gpus == serverGPUs/2 {
			row.NodeFault = 1 - power(1-p99GPU, p.gpus) // [IHBD] App. A
		}
		row.Sound = 2 * float64(boundTP-p.gpus) * power(row.NodeFault, p.k) / float64(p.gpus)
		row.Printed = row.Sound * float64(p.gpus)
		row.Simulated, row.Total = breakWaste(cfg, p.gpus, p.k, row.NodeFault)
		res.Rows = append(res.Rows, row)
		cfg.report(i+1, len(paperBounds))
	}
	res.describe()
	return res, nil
}

func power(v float64, n int) float64 {
	out := 1.0
	for range n {
		out *= v
	}
	return out
}

// breakWaste draws lines of independently faulty nodes: the waste beyond that
// of a big switch, which is what breaks cost, and all of it.
func breakWaste(cfg BoundsConfig, gpus, k int, fault float64) (breaks, total float64) {
	h := khop{nodes: cfg.GPUs / gpus, k: k}
	size := boundTP / gpus
	r := detmath.Stream(cfg.Seed, streamBounds+uint64(16*gpus+k)<<8)
	ideal, ours := 0, 0
	var faulty []int
	for range cfg.Runs {
		faulty = faulty[:0]
		for n := range h.nodes {
			if r.Chance(fault) {
				faulty = append(faulty, n)
			}
		}
		h.walk(faulty)
		healthy := h.nodes - len(faulty)
		ideal += healthy % size
		ours += healthy - size*h.groups(size)
	}
	all := h.nodes * cfg.Runs
	return share(ours-ideal, all), share(ours, all)
}

func (r *BoundsResult) describe() {
	r.Title = "Bound of the GPU waste"
	r.note("TP-%d; node fault ratio: 7.92 %% for 8 GPUs, 1-(1-1.03 %%)^4 for 4 ([IHBD] App. A, C)", r.TP)
	r.note("bound_printed is 2 (Nt - R) Ps^K; a break costs at most Nt - R GPUs, not R (Nt - R), and a GPU is one of R of its node, so bound, without the factor R, still holds")
	r.note("simulated: %d lines of %d GPUs, waste beyond a big switch's; simulated_total adds the rest that any architecture leaves", r.Runs, r.GPUsTotal)
	for i, row := range r.Rows {
		why := "the same formula"
		if row.Simulated > 0 {
			why += fmt.Sprintf("; it is loose: %s without its spare factor R, %s when drawn", percent(row.Sound, 4), percent(row.Simulated, 4))
		}
		r.compare(fmt.Sprintf("Table 7, R=%d, K=%d", row.GPUsNode, row.K), percent(row.Printed, 3), paperBounds[i].printed, why)
	}
}

// Charts are the bounds beside what is drawn, a panel for each node size.
func (r *BoundsResult) Charts() (out []Chart) {
	for _, row := range r.Rows {
		c := panelOf(&out, fmt.Sprintf("%d GPUs per node, TP-%d", row.GPUsNode, r.TP), Chart{XLabel: "hops that a fibre spans", YLabel: "GPU waste, % of GPUs", YPercent: true, YLog: true})
		k := fmt.Sprintf("K=%d", row.K)
		c.bar(k, "bound of [IHBD] App. C", row.Printed)
		c.bar(k, "Table 7, paper", row.Paper)
		c.bar(k, "bound without its spare factor", row.Sound)
		c.bar(k, "drawn at random", row.Simulated)
	}
	return out
}
