package study

import (
	"fmt"
	"slices"
	"time"

	"ringlight/sim/trace"
)

// Source is where the faults come from.
type Source struct {
	Trace *trace.Trace // nil: the generator, another trace for each run
	Name  string
}

// maxRuns keeps a study below minutes; chosen.
const maxRuns = 10_000

// maxTraceNodes of a replay; chosen: a million GPUs in nodes of 4.
const maxTraceNodes = 250_000

// ClusterConfig is a study of a cluster under the faults of a trace.
type ClusterConfig struct {
	Size
	Source
	Layout     // its seed is that of the first run
	Runs   int // with following seeds
	Progress
}

// DefaultSize is the cluster of [IHBD] sec 6.2: 9,792 GPUs, the largest number
// below 10,000 that 576 divides, in nodes of 4, as rings.
func DefaultSize() Size {
	return Size{Nodes: 2448, GPUsPerNode: 4, Ring: true, TPs: []int{8, 16, 32, 64}}
}

// Header says what a result was computed from.
type Header struct {
	Study     string  `json:"study"`
	Faults    string  `json:"faults"` // name of the trace, "generator" or "iid"
	Seed      uint64  `json:"seed"`
	Runs      int     `json:"runs"`
	Nodes     int     `json:"nodes"`
	GPUsNode  int     `json:"gpus_per_node"`
	GPUsTotal int     `json:"gpus_total"`
	Topology  string  `json:"topology"`
	Siblings  string  `json:"siblings,omitempty"`
	Days      float64 `json:"days,omitempty"`
	Events    int     `json:"events,omitempty"` // nodes that failed or came back, all runs
	Faulty    float64 `json:"faulty_node_ratio,omitempty"`
}

// Progress is told how much of a study is done; nil is nobody.
type Progress func(done, of int)

func (p Progress) report(done, of int) {
	if p != nil {
		p(done, of)
	}
}

// Clock tells how long something takes, as the difference of two times; nil: nobody asks.
type Clock func() time.Duration

func (c Clock) read() time.Duration {
	if c == nil {
		return 0
	}
	return c()
}

// Drawn is what any study is told that draws.
type Drawn struct {
	Seed uint64
	Progress
}

// By says from which seed, and who is told how much is done.
func (d *Drawn) By(seed uint64, p Progress) { d.Seed, d.Progress = seed, p }

func checkRuns(runs int) error { return within(span{"runs", runs, 1, maxRuns}) }

func (s Size) header(study, faults string, seed uint64, runs int) Header {
	h := Header{Study: study, Faults: faults, Seed: seed, Runs: runs, Nodes: s.Nodes, GPUsNode: s.GPUsPerNode, GPUsTotal: s.GPUsTotal(), Topology: "line"}
	if s.Ring {
		h.Topology = "ring"
	}
	return h
}

func (l Layout) siblings(s Size) string {
	switch {
	case s.GPUsPerNode == serverGPUs:
		return "none"
	case l.Adjacent:
		return "adjacent"
	}
	return "apart"
}

// each lays the trace out once for each run, hands it over and fills the
// header of the study that it names.
func (cfg ClusterConfig) each(h *Header, visit func(run int, c *cluster, s schedule)) error {
	if err := cfg.Size.Validate(); err != nil {
		return err
	}
	if err := checkRuns(cfg.Runs); err != nil {
		return err
	}
	if cfg.Nodes > maxTraceNodes {
		return invalid("nodes", fmt.Sprintf("1 to %d with a trace", maxTraceNodes), "%d is out of range", cfg.Nodes)
	}
	if cfg.Trace != nil && cfg.Trace.Span <= 0 {
		return invalid("trace", "events over some time", "all its events are at one instant")
	}
	name, traceOf := "generator", trace.Generate
	if cfg.Trace != nil {
		name, traceOf = cfg.Name, func(uint64) *trace.Trace { return cfg.Trace }
	}
	*h = cfg.Size.header(h.Study, name, cfg.Seed, cfg.Runs)
	h.Siblings = cfg.siblings(cfg.Size)
	cfg.report(0, cfg.Runs)
	for run := range cfg.Runs {
		layout := cfg.Layout
		layout.Seed += uint64(run)
		s, err := layout.lay(traceOf(layout.Seed), cfg.Size)
		if err != nil {
			return err
		}
		c := newCluster(cfg.Size)
		c.place = layout.places(cfg.Size)
		visit(run, c, s)
		h.Days = s.span.Hours() / 24
		h.Events += len(s.flips)
		h.Faulty += s.faulty() / float64(cfg.Nodes) / float64(cfg.Runs)
		cfg.report(run+1, cfg.Runs)
	}
	return nil
}

// schedule is what happens to the nodes of a cluster in one run.
type schedule struct {
	flips []flipAt
	span  time.Duration
}

// replay calls see with each state that lasts, when it begins and how long it
// does.
func (s schedule) replay(c *cluster, see func(at, lasts time.Duration)) {
	var now time.Duration
	for _, f := range s.flips {
		if f.at > now {
			see(now, f.at-now)
			now = f.at
		}
		c.flip(f.node)
	}
	if s.span > now {
		see(now, s.span-now)
	}
}

// faulty is the mean number of faulty nodes.
func (s schedule) faulty() float64 {
	sum := sumOf(s.flips, func(f flipAt) time.Duration {
		if f.out {
			return s.span - f.at
		}
		return f.at - s.span
	})
	return sum.Seconds() / s.span.Seconds()
}

// newCells is a tally for each TP and model, in the order of tables; values tells
// the step and the most of a count.
func newCells(c *cluster, values func(tp int) (step, top int)) (out []tally) {
	for t, tp := range c.TPs {
		for m := range Models {
			step, top := values(tp)
			out = append(out, tally{tp: t, model: m, step: step, spent: make([]time.Duration, top/step+1)})
		}
	}
	return out
}

// merge adds what others have counted of the same cells.
func merge(cells, others []tally) {
	for i := range cells {
		t, o := &cells[i], &others[i]
		for value, spent := range o.spent {
			t.spent[value] += spent
		}
		t.total += o.total
	}
}

// tally is how long a count had each value.
type tally struct {
	tp    int // by index into TPs
	model int // by index into Models
	step  int // values are multiples of it
	spent []time.Duration
	total time.Duration
}

func (t *tally) add(value int, d time.Duration) {
	t.spent[value/t.step] += d
	t.total += d
}

// mean value over time.
func (t *tally) mean() float64 {
	sum := 0.0
	for i, d := range t.spent {
		sum += float64(float64(i*t.step) * d.Seconds())
	}
	if t.total == 0 {
		return 0
	}
	return sum / t.total.Seconds()
}

// quantile is the smallest value that is not exceeded in permille of the time.
func (t *tally) quantile(permille int) int {
	var below time.Duration
	want := t.total/1000*time.Duration(permille) + t.total%1000*time.Duration(permille)/1000
	for i, d := range t.spent {
		if below += d; below >= want && below > 0 {
			return i * t.step
		}
	}
	return 0
}

// under is the share of the time with values below v.
func (t *tally) under(v int) float64 {
	var sum time.Duration
	for i, d := range t.spent {
		if i*t.step < v {
			sum += d
		}
	}
	return sum.Seconds() / t.total.Seconds()
}

func (t *tally) min() int {
	i := slices.IndexFunc(t.spent, func(d time.Duration) bool { return d > 0 })
	return max(0, i) * t.step
}

// cdf is the share of time in which a value, as a share of total, is not
// exceeded.
func (t *tally) cdf(total int) (x, y []float64) {
	var below time.Duration
	for i, d := range t.spent {
		if d > 0 {
			below += d
			x = append(x, share(i*t.step, total))
			y = append(y, below.Seconds()/t.total.Seconds())
		}
	}
	return x, y
}

// daily is the mean of several counts for each day.
type daily struct{ sum [][]float64 } // [series][day] GPU-seconds

func newDaily(span time.Duration, series int) *daily {
	days := int((span + trace.Day - 1) / trace.Day)
	d := &daily{make([][]float64, series)}
	for i := range d.sum {
		d.sum[i] = make([]float64, days)
	}
	return d
}

func (d *daily) add(series, value int, at, lasts time.Duration) {
	for lasts > 0 {
		day := int(at / trace.Day)
		part := min(lasts, time.Duration(day+1)*trace.Day-at)
		d.sum[series][day] += float64(float64(value) * part.Seconds())
		at, lasts = at+part, lasts-part
	}
}

func (d *daily) mean(series, total int) []float64 {
	return each(d.sum[series], func(s float64) float64 { return s / trace.Day.Seconds() / float64(total) })
}
