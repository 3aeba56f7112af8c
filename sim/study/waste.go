package study

import (
	"fmt"
	"slices"
	"time"
)

// WasteRow is one architecture at one group size; shares of all GPUs.
type WasteRow struct {
	TP    int     `json:"tp"`
	Model Model   `json:"model"`
	Mean  float64 `json:"mean" table:"6"` // over time and runs
	Low   float64 `json:"low" table:"6"`  // smallest mean of one run
	High  float64 `json:"high" table:"6"`
	P50   float64 `json:"p50" table:"6"` // over time, all runs together
	P99   float64 `json:"p99" table:"6"`
	Max   float64 `json:"max" table:"6"`

	cdfX, cdfY []float64
	days       []float64 // mean of each day of the first run
}

// WasteResult is GPU waste over a trace ([IHBD] Fig. 9, 16, 17).
type WasteResult struct {
	Header
	rowsOf[WasteRow]
	Report
	ByDay bool `json:"-"` // the charts are of each day
}

// WasteOnTrace replays a trace and keeps the waste of every architecture.
func WasteOnTrace(cfg ClusterConfig) (*WasteResult, error) {
	total := cfg.GPUsTotal()
	var sum []tally
	var first *daily
	means := make([][]float64, len(Models)*len(cfg.TPs)) // of each run
	res := &WasteResult{}
	err := cfg.each(&res.Header, func(run int, c *cluster, s schedule) {
		waste := newCells(c, func(int) (int, int) { return cfg.GPUsPerNode, total })
		days := newDaily(s.span, len(means))
		s.replay(c, func(at, lasts time.Duration) {
			for i := range waste {
				w := c.wasted(waste[i].model, waste[i].tp)
				waste[i].add(w, lasts)
				if run == 0 {
					days.add(i, w, at, lasts)
				}
			}
		})
		for i := range means {
			means[i] = append(means[i], waste[i].mean()/float64(total))
		}
		if run == 0 {
			sum, first = waste, days
			return
		}
		merge(sum, waste)
	})
	if err != nil {
		return nil, err
	}
	for i, t := range sum {
		row := WasteRow{
			TP: cfg.TPs[t.tp], Model: Models[t.model], Mean: t.mean() / float64(total), Low: slices.Min(means[i]), High: slices.Max(means[i]),
			P50: share(t.quantile(500), total), P99: share(t.quantile(990), total), Max: share(t.quantile(1000), total),
			days: first.mean(i, total),
		}
		row.cdfX, row.cdfY = t.cdf(total)
		res.Rows = append(res.Rows, row)
	}
	res.Study = "waste"
	res.describe()
	return res, nil
}

func share(part, of int) float64 { return float64(part) / float64(of) }

// of is the row of a model at a TP; nil: there is none.
func (r *WasteResult) of(m Model, tp int) *WasteRow {
	return r.row(func(x WasteRow) bool { return x.Model == m && x.TP == tp })
}

// Charts are the distribution over time, a panel for each TP ([IHBD] Fig. 9,
// 17), or the waste of each day ([IHBD] Fig. 16).
func (r *WasteResult) Charts() []Chart {
	if r.ByDay {
		return r.timeline()
	}
	panels := r.panels(Chart{XLabel: "healthy GPUs in no group, % of all", YLabel: "share of time with waste of at most x, %", XPercent: true, YPercent: true}, func(row WasteRow) Series { return Series{X: row.cdfX, Y: row.cdfY, Step: true} })
	return append(panels, r.means()...)
}

func (r *WasteResult) timeline() []Chart {
	return r.panels(Chart{XLabel: "day", YLabel: "healthy GPUs in no group, % of all", YPercent: true}, func(row WasteRow) Series {
		s := Series{Y: row.days}
		for i := range s.Y {
			s.X = append(s.X, float64(i))
		}
		return s
	})
}

func (r *WasteResult) panels(dress Chart, curve func(WasteRow) Series) []Chart {
	var out []Chart
	for _, row := range r.Rows {
		s := curve(row)
		s.Name = string(row.Model)
		c := panelOf(&out, fmt.Sprintf("Groups of %d GPUs (TP-%d)", row.TP, row.TP), dress)
		c.Series = append(c.Series, s)
	}
	return out
}
