package study

import (
	"fmt"

	"ringlight/mzi/detmath"
)

// IIDConfig is a study under independent faults ([IHBD] Fig. 10, 18).
type IIDConfig struct {
	Size
	Ratios []float64 `flag:"ratios" usage:"faulty nodes"`
	Runs   int
	Drawn
}

// maxRatios of a sweep; chosen: more points than a chart can show.
const maxRatios = 1000

// DefaultRatios are 0 to 10 % in steps of half a per cent.
func DefaultRatios() []float64 {
	return ladder(0, 20, 200)
}

// ladder is shares of one: from, to and all between, of so many parts.
func ladder(from, to, of int) (out []float64) {
	for i := from; i <= to; i++ {
		out = append(out, float64(i)/float64(of))
	}
	return out
}

// checkRatios wants rising shares of one.
func checkRatios(field string, ratios []float64) error {
	if len(ratios) == 0 || len(ratios) > maxRatios {
		return invalid(field, fmt.Sprintf("1 to %d values", maxRatios), "%d given", len(ratios))
	}
	for i, f := range ratios {
		if !(f >= 0 && f <= 1) || i > 0 && f <= ratios[i-1] {
			return invalid(field, "rising values from 0 to 1", "%v is not", f)
		}
	}
	return nil
}

// IIDRow is one architecture at one group size and fault ratio.
type IIDRow struct {
	TP    int     `json:"tp"`
	Model Model   `json:"model"`
	Ratio float64 `json:"fault_ratio" table:"6"`
	Mean  float64 `json:"mean" table:"6"` // waste as a share of all GPUs
	Max   float64 `json:"max" table:"6"`  // of all runs
}

// IIDResult is GPU waste by fault ratio.
type IIDResult struct {
	Header
	rowsOf[IIDRow]
	Report
}

// WasteIID draws clusters with independently faulty nodes.
func WasteIID(cfg IIDConfig) (*IIDResult, error) {
	if err := cfg.Size.Validate(); err != nil {
		return nil, err
	}
	if err := checkRatios("ratios", cfg.Ratios); err != nil {
		return nil, err
	}
	if err := checkRuns(cfg.Runs); err != nil {
		return nil, err
	}
	res := &IIDResult{Header: cfg.Size.header("iid", cfg.Seed, cfg.Runs)}
	res.Study = "waste"
	for _, tp := range cfg.TPs {
		for _, m := range Models {
			for _, f := range cfg.Ratios {
				res.Rows = append(res.Rows, IIDRow{TP: tp, Model: m, Ratio: f})
			}
		}
	}
	sweepIID(cfg, func(i int, c *cluster) { // GPUs, all runs together
		for m := range Models {
			for t := range c.TPs {
				row, w := &res.Rows[(t*len(Models)+m)*len(cfg.Ratios)+i], float64(c.wasted(m, t))
				row.Mean, row.Max = row.Mean+w, max(row.Max, w)
			}
		}
	})
	for i := range res.Rows {
		res.Rows[i].Mean /= float64(cfg.GPUsTotal() * cfg.Runs)
		res.Rows[i].Max /= float64(cfg.GPUsTotal())
	}
	res.Title = fmt.Sprintf("GPU waste under independent faults, %d GPUs", res.GPUsTotal)
	res.note("each node is faulty independently with the given ratio, %d draw(s) each; waste is healthy GPUs in no group over all GPUs", cfg.Runs)
	res.note("HBD order is a %s", res.Topology)
	for _, row := range res.Rows {
		if row.TP == 32 && row.Model == NVL72 && row.Ratio == 0 {
			res.compare("waste without faults, TP-32, nvl-72", percent(row.Mean, 1), "about 11 % (Fig. 10)", "eight of 72 GPUs fill no group of 32")
		}
	}
	return res, nil
}

// sweepIID shows clusters at every ratio. A run's nodes that are faulty at one
// ratio stay so at the next, so that curves differ by ratio and not by luck.
func sweepIID(cfg IIDConfig, see func(i int, c *cluster)) {
	cfg.report(0, cfg.Runs)
	luck := make([]float64, cfg.Nodes)
	for run := range cfg.Runs {
		r := detmath.Stream(cfg.Seed+uint64(run), streamIID)
		for n := range luck {
			luck[n] = float64(r.Next()>>11) / (1 << 53)
		}
		c := newCluster(cfg.Size)
		for i, f := range cfg.Ratios {
			for n, l := range luck {
				if l < f && !c.down[n] {
					c.flip(n)
				}
			}
			see(i, c)
		}
		cfg.report(run+1, cfg.Runs)
	}
}

// Charts are waste over fault ratio, a panel for each TP.
func (r *IIDResult) Charts() []Chart {
	var out []Chart
	for _, row := range r.Rows {
		c := panelOf(&out, fmt.Sprintf("Groups of %d GPUs (TP-%d)", row.TP, row.TP), Chart{XLabel: "faulty nodes, % of all", YLabel: "healthy GPUs in no group, % of all", XPercent: true, YPercent: true})
		c.point(string(row.Model), row.Ratio, row.Mean)
	}
	return out
}
