package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/mzi/detmath"
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
	res := &WasteResult{Header: Header{Study: "waste"}}
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
		return Series{X: each(packed(len(row.days)), func(day int) float64 { return float64(day) }), Y: row.days}
	})
}

func (r *WasteResult) panels(dress Chart, curve func(WasteRow) Series) (out []Chart) {
	for _, row := range r.Rows {
		s := curve(row)
		s.Name = string(row.Model)
		c := panelOf(&out, fmt.Sprintf("Groups of %d GPUs (TP-%d)", row.TP, row.TP), dress)
		c.Series = append(c.Series, s)
	}
	return out
}

// paperWaste is the mean GPU waste on the paper's full trace at TP-32
// ([IHBD] sec 1).
var paperWaste = []struct {
	model Model
	mean  float64
	why   string
}{
	{IHBDK3, 0.0015, "they agree; a big switch wastes %s, the rest when the healthy GPUs are no multiple of 32"},
	{NVL72, 0.1031, "72 GPUs hold two groups of 32 and eight over; the faults hardly matter"},
	{TPUv4, 0.0676, "the public trace has 2.30 % of its servers out where the paper's full one has 2.66 %"},
}

func (r *WasteResult) describe() {
	r.Title = fmt.Sprintf("GPU waste over %.0f days, %d GPUs (%s)", r.Days, r.GPUsTotal, r.Faults)
	r.note("waste is healthy GPUs in no group over all GPUs, mean over time and %d run(s) with following seeds", r.Runs)
	r.faultNotes(&r.Report)
	r.note("a TPUv4 cube of 64 loses the group-sized block that a fault lies in, so that with groups that divide 64 it wastes what SiP-Ring does; a last partial unit counts with its own size")
	if def := DefaultSize(); r.GPUsTotal != def.GPUsTotal() || r.GPUsNode != def.GPUsPerNode {
		return // the paper's cluster is another
	}
	floor := r.of(BigSwitch, 32)
	for _, p := range paperWaste {
		if row := r.of(p.model, 32); row != nil {
			r.compare("mean waste, TP-32, "+string(p.model), percent(row.Mean, 2), percent(p.mean, 2), strings.Replace(p.why, "%s", percent(floor.Mean, 2), 1))
		}
	}
	if row := r.of(IHBDK2, 32); row != nil && r.Siblings != "none" {
		why := "the paper gives no figure; with the halves of a server adjacent in HBD order it would be about 1 %"
		if r.Siblings == "adjacent" {
			why = "both halves of a server fail together, which is a gap that K = 2 cannot pass; put them apart"
		}
		r.compare("mean waste, TP-32, infinitehbd-k2", percent(row.Mean, 2), "nearly as K = 3 (Fig. 9)", why)
	}
	if row := r.of(NVL72, 16); row != nil {
		r.compare("mean waste, TP-16, nvl-72", percent(row.Mean, 1), "about 11 % (one ninth in reserve)", "the reserve takes the faults: it is used up by as much as they are")
	}
}

// means are a panel of what the paper prints too, where its cluster is drawn.
func (r *WasteResult) means() []Chart {
	c := Chart{Title: "Mean over time, groups of 32 GPUs", YLabel: "healthy GPUs in no group, % of all", YPercent: true, YLog: true}
	for _, model := range Models {
		row := r.of(model, 32)
		if row == nil || r.GPUsTotal != DefaultSize().GPUsTotal() {
			return nil
		}
		name, paper := strings.NewReplacer("infinitehbd-", "ihbd-", "-wired", "w").Replace(string(model)), Absent
		for _, p := range paperWaste {
			if p.model == model {
				paper = p.mean
			}
		}
		c.bar(name, "mean", row.Mean)
		c.bar(name, "mean"+paperMark, paper)
	}
	return []Chart{c}
}

// faultNotes say where the faults came from, for every study of a trace.
func (h Header) faultNotes(r *Report) {
	if h.Faults == "generator" {
		r.note("no trace given: each run draws one with the statistics of the public trace (-trace FILE replays one)")
	} else {
		r.note("the trace's servers are shuffled by the seed and repeated with equal shifts in time to fill the cluster; overlapping faults of a server are one outage")
	}
	if stand := map[string]string{"apart": "half a cluster apart in HBD order", "in one rack": "on different sub-lines of their rack", "adjacent": "side by side in HBD order"}[h.Siblings]; stand != "" {
		r.note("nodes are halves of 8-GPU servers, each out with probability %.4f in an outage ([IHBD] App. A), and stand %s", halfFails, stand)
	}
	r.note("HBD order is a %s", h.Topology)
}

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
	res := &IIDResult{Header: cfg.Size.header("waste", "iid", cfg.Seed, cfg.Runs)}
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
func (r *IIDResult) Charts() (out []Chart) {
	for _, row := range r.Rows {
		c := panelOf(&out, fmt.Sprintf("Groups of %d GPUs (TP-%d)", row.TP, row.TP), Chart{XLabel: "faulty nodes, % of all", YLabel: "healthy GPUs in no group, % of all", XPercent: true, YPercent: true})
		c.point(string(row.Model), row.Ratio, row.Mean)
	}
	return out
}
