package study

import (
	"fmt"
	"time"

	"ringlight/sim/trace"
)

// JobScaleRow is the largest job that one architecture carries.
type JobScaleRow struct {
	TP     int     `json:"tp"`
	Model  Model   `json:"model"`
	Always int     `json:"always_gpus"` // carried at every moment of every run
	Most   int     `json:"most_gpus"`   // carried in 99 % of the time
	Mean   float64 `json:"mean_gpus" table:"1"`
}

// JobScaleResult is [IHBD] Fig. 11.
type JobScaleResult struct {
	Header
	rowsOf[JobScaleRow]
	Report
}

// JobScale is the largest job that runs through a trace without a pause.
func JobScale(cfg ClusterConfig) (*JobScaleResult, error) {
	res := &JobScaleResult{Header: Header{Study: "jobscale"}}
	usable, err := cfg.usable(&res.Header)
	if err != nil {
		return nil, err
	}
	res.Rows = each(usable, func(t tally) JobScaleRow {
		return JobScaleRow{cfg.TPs[t.tp], Models[t.model], t.min(), t.exceeded(990), t.mean()}
	})
	res.Title = fmt.Sprintf("Largest job on %d GPUs (%s)", res.GPUsTotal, res.Faults)
	res.note("a job takes whole groups and pauses when there are fewer; the largest job that never pauses is the smallest number of GPUs in groups over %d run(s)", cfg.Runs)
	res.faultNotes(&res.Report)
	res.describe()
	return res, nil
}

// usable is how long how many GPUs stood in groups.
func (cfg ClusterConfig) usable(h *Header) ([]tally, error) {
	var sum []tally
	err := cfg.each(h, func(run int, c *cluster, s schedule) {
		if sum == nil {
			sum = newCells(c, func(tp int) (int, int) { return tp, cfg.GPUsTotal() })
		}
		s.replay(c, func(_, lasts time.Duration) {
			for i := range sum {
				sum[i].add(c.usable(sum[i].model, sum[i].tp), lasts)
			}
		})
	})
	return sum, err
}

// exceeded is the largest value that is reached in permille of the time.
func (t *tally) exceeded(permille int) int {
	var above time.Duration
	want := t.total / 1000 * time.Duration(permille)
	for i := len(t.spent) - 1; i >= 0; i-- {
		if above += t.spent[i]; above >= want && above > 0 {
			return i * t.step
		}
	}
	return 0
}

func (r *JobScaleResult) describe() {
	if r.GPUsTotal != DefaultSize().GPUsTotal() {
		return // the paper's cluster is another
	}
	first, last := r.Rows[0].TP, r.Rows[len(r.Rows)-1].TP
	for _, c := range []struct {
		m     Model
		paper string
		why   string
	}{
		{IHBDK3, "leads, with K = 2 and NVL-576", "agrees; the paper prints a chart without figures"},
		{IHBDK2, "as K = 3", "agrees where the halves of a server stand apart"},
		{NVL576, "leads too", "less at large groups: 576 GPUs leave a rest at every fault"},
		{SiPRing, "declines with the group size", "agrees"},
	} {
		at := func(tp int) *JobScaleRow {
			return r.row(func(x JobScaleRow) bool { return x.Model == c.m && x.TP == tp })
		}
		if a, b := at(first), at(last); a != nil && b != nil {
			r.compare(fmt.Sprintf("largest job without a pause, %s, TP-%d / TP-%d", c.m, first, last), fmt.Sprintf("%d / %d GPUs", a.Always, b.Always), c.paper+" (Fig. 11)", c.why)
		}
	}
}

// Charts are groups of bars, one for each TP ([IHBD] Fig. 11).
func (r *JobScaleResult) Charts() []Chart {
	always := Chart{Title: "Largest job that never pauses", XLabel: "GPUs of a group", YLabel: "GPUs of the job"}
	most := Chart{Title: "Largest job that runs 99 % of the time", XLabel: "GPUs of a group", YLabel: "GPUs of the job"}
	for _, row := range r.Rows {
		name := fmt.Sprintf("TP-%d", row.TP)
		always.bar(name, string(row.Model), float64(row.Always))
		most.bar(name, string(row.Model), float64(row.Most))
	}
	return []Chart{always, most}
}

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
	res := &WaitResult{Header: Header{Study: "wait"}}
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
func (r *WaitResult) Charts() (out []Chart) {
	for _, row := range r.Rows {
		c := panelOf(&out, fmt.Sprintf("Groups of %d GPUs (TP-%d)", row.TP, row.TP), Chart{XLabel: "GPUs of the job, % of all", YLabel: "time spent waiting, %", XPercent: true, YPercent: true})
		c.point(string(row.Model), row.Scale, row.Wait)
	}
	return out
}
