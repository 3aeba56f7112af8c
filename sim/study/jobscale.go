package study

import (
	"fmt"
	"time"
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
	res := &JobScaleResult{}
	usable, err := cfg.usable(&res.Header)
	if err != nil {
		return nil, err
	}
	res.Study = "jobscale"
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
