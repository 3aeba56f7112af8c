package study

import (
	"fmt"

	"ringlight/sim/trace"
)

// WaitConfig is a study of how long jobs of some sizes wait.
type WaitConfig struct {
	ClusterConfig
	Scales []float64 `flag:"scales" usage:"job sizes"`
	// TraceRepair takes every repair time from the trace; the paper, and we
	// without it, give all faults the mean one.
	TraceRepair bool
}

// DefaultScales are 80 to 100 % of the cluster.
func DefaultScales() []float64 {
	return ladder(80, 100, 100)
}

// WaitRow is one architecture, group size and job scale.
type WaitRow struct {
	TP    int     `json:"tp"`
	Model Model   `json:"model"`
	Scale float64 `json:"job_scale" table:"4"`
	Job   int     `json:"job_gpus"`
	Wait  float64 `json:"wait_ratio" table:"6"` // of the time
	Days  float64 `json:"wait_days" table:"2"`
}

// WaitResult is [IHBD] Fig. 12 and 19.
type WaitResult struct {
	Header
	RepairDays float64 `json:"repair_days"` // 0: as in the trace
	rowsOf[WaitRow]
	Report
}

// Wait is the time in which fewer GPUs stand in groups than a job needs.
func Wait(cfg WaitConfig) (*WaitResult, error) {
	if err := checkRatios("scales", cfg.Scales); err != nil {
		return nil, err
	}
	res := &WaitResult{}
	if !cfg.TraceRepair {
		t := cfg.Trace
		if t == nil {
			t = trace.Generate(cfg.Seed)
		}
		cfg.Repair = t.MeanRepair()
		res.RepairDays = cfg.Repair.Hours() / 24
	}
	usable, err := cfg.usable(&res.Header)
	if err != nil {
		return nil, err
	}
	res.Study = "wait"
	for _, t := range usable {
		tp := cfg.TPs[t.tp]
		for _, scale := range cfg.Scales {
			job := int(float64(scale*float64(cfg.GPUsTotal()))+0.5) / tp * tp
			w := t.under(job)
			res.Rows = append(res.Rows, WaitRow{tp, Models[t.model], scale, job, w, w * res.Header.Days})
		}
	}
	res.Title = fmt.Sprintf("Time that jobs wait, %d GPUs (%s)", res.GPUsTotal, res.Faults)
	res.note("a job of the given share of all GPUs, rounded down to whole groups, waits while fewer GPUs stand in groups; mean over %d run(s)", cfg.Runs)
	if !cfg.TraceRepair {
		res.note("every repair takes the mean of the trace, %.2f days, as in the paper; one that would end behind the trace lasts to its end", res.RepairDays)
	}
	res.faultNotes(&res.Report)
	res.describe()
	return res, nil
}

func (r *WaitResult) describe() {
	if r.GPUsTotal != DefaultSize().GPUsTotal() {
		return // the paper's cluster is another
	}
	for _, c := range []struct {
		tp         int
		models     []Model
		paper, why string
	}{
		{16, []Model{IHBDK3, NVL72}, "NVL-36 and NVL-72 worst for TP-8 and TP-16", "agrees: a ninth of their GPUs is out of reach from the start (NVL-72 at TP-8 is not: 72 is nine times 8)"},
		{32, []Model{IHBDK3, SiPRing, TPUv4}, "SiP-Ring and TPUv4 worst for TP-32 and TP-64", "does not hold here: from 90 % on NVL-72 waits always, and NVL-36 longer than these"},
	} {
		for _, m := range c.models {
			if row := r.row(func(x WaitRow) bool { return x.TP == c.tp && x.Model == m && x.Scale == 0.9 }); row != nil {
				r.compare(fmt.Sprintf("time a job of 90 %% waits, TP-%d, %s", c.tp, m), percent(row.Wait, 1), c.paper+" (Fig. 12, 19, no figures printed)", c.why)
			}
		}
	}
}

// Charts are waiting time over job scale, a panel for each TP.
func (r *WaitResult) Charts() []Chart {
	var out []Chart
	for _, row := range r.Rows {
		c := panelOf(&out, fmt.Sprintf("Groups of %d GPUs (TP-%d)", row.TP, row.TP), Chart{XLabel: "GPUs of the job, % of all", YLabel: "time spent waiting, %", XPercent: true, YPercent: true})
		c.point(string(row.Model), row.Scale, row.Wait)
	}
	return out
}
