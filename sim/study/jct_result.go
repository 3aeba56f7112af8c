package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/planner/isolate"
)

// JCTMean is the mean of the runs of one strategy, queue and lambda.
type JCTMean struct {
	Strategy    string   `json:"strategy"`
	Queue       string   `json:"queue"`
	LambdaMS    int64    `json:"lambda_ms,omitempty" table:"-1m,omitzero" column:"lambda_s"`
	Runs        int      `json:"runs"`
	JRT         int64    `json:"jrt_ms" table:"1m" column:"jrt_s"`
	JWT         int64    `json:"jwt_ms" table:"1m" column:"jwt_s"`
	JCT         int64    `json:"jct_ms" table:"1m" column:"jct_s"`
	Least       int64    `json:"jct_ms_least" table:"1m" column:"jct_least_s"` // of the runs
	Most        int64    `json:"jct_ms_most" table:"1m" column:"jct_most_s"`
	OfBest      *float64 `json:"jct_of_best_ratio,omitempty" table:"4" column:"jct_of_best"` // same jobs, best
	OfFIFO      *float64 `json:"jct_of_fifo_ratio,omitempty" table:"4" column:"jct_of_fifo"` // same jobs, fifo
	Stability   int64    `json:"stability_ms" table:"1m" column:"stability_s"`
	GPU         float64  `json:"blocked_gpu" table:"1"`
	Network     float64  `json:"blocked_network" table:"1"`
	WorstBlock  int      `json:"blocked_network_most"` // of the runs
	OverCore    float64  `json:"over_core_ratio" table:"1%" column:"over_core"`
	Stretch     float64  `json:"over_core_stretch" table:"4"`
	Utilisation float64  `json:"utilisation_ratio" table:"6" column:"utilisation"`
	DecideP99   int64    `json:"decide_us_p99,omitempty" table:",omitzero" column:"decide_p99_us"` // the worst run's
	DecideMax   int64    `json:"decide_us_max,omitempty" table:",omitzero" column:"decide_max_us"`
	P50         int64    `json:"jct_ms_p50" table:"1m" column:"jct_p50_s"`
	P90         int64    `json:"jct_ms_p90" table:"1m" column:"jct_p90_s"`
	P99         int64    `json:"jct_ms_p99" table:"1m" column:"jct_p99_s"`

	paper float64 `table:"1,omitzero" column:"paper_jct_s"` // what the paper prints, 0 if nothing
}

// JCTResult is the study.
type JCTResult struct {
	Study     string     `json:"study"`
	Workload  string     `json:"workload"`
	Jobs      int        `json:"jobs"`
	GPUsTotal int        `json:"gpus_total"`
	Cluster   JCTCluster `json:"cluster"`
	Sharing   string     `json:"sharing"`
	Steps     int        `json:"steps"`
	Seed      uint64     `json:"seed"`
	Runs      []JCTRun   `json:"runs"`
	Means     []JCTMean  `json:"means"`
	Report
}

// Result puts the runs of all cells, in their order, together.
func (c JCTConfig) Result(runs []JCTRun) *JCTResult {
	r := &JCTResult{Study: "jct", Workload: c.Workload.Kind, Jobs: c.Workload.Jobs, GPUsTotal: c.Cluster.GPUsTotal(), Cluster: c.Cluster,
		Sharing: c.Sharing, Steps: c.Steps, Seed: c.Seed, Runs: runs}
	if c.List != nil {
		r.Workload, r.Jobs = c.Name, len(c.List)
	}
	for i := 0; i < len(runs); i += c.Runs {
		r.Means = append(r.Means, meanOf(runs[i:i+c.Runs]))
	}
	for i := range r.Means {
		m := &r.Means[i]
		m.paper = r.paperJCT(*m)
		if best := r.mean(StrategyBest, m.Queue, m.LambdaMS); best != nil {
			m.OfBest = new(share(int(m.JCT), max(1, int(best.JCT))))
		}
		if fifo := r.mean(m.Strategy, isolate.FIFO.String(), m.LambdaMS); fifo != nil {
			m.OfFIFO = new(share(int(m.JCT), max(1, int(fifo.JCT))))
		}
	}
	r.describe(c)
	return r
}

func meanOf(runs []JCTRun) JCTMean {
	first, n := runs[0], int64(len(runs))
	m := JCTMean{Strategy: first.Strategy, Queue: first.Queue, LambdaMS: first.LambdaMS, Runs: len(runs), Least: first.JCT.Mean}
	for _, r := range runs {
		m.JRT, m.JWT, m.JCT = m.JRT+r.JRT, m.JWT+r.JWT, m.JCT+r.JCT.Mean
		m.P50, m.P90, m.P99 = m.P50+r.JCT.P50, m.P90+r.JCT.P90, m.P99+r.JCT.P99
		m.Least, m.Most = min(m.Least, r.JCT.Mean), max(m.Most, r.JCT.Mean)
		m.Stability += r.Stability
		m.GPU += float64(r.Blocked.GPU) / float64(n)
		m.Network += float64(r.Blocked.Network) / float64(n)
		m.WorstBlock = max(m.WorstBlock, r.Blocked.Network)
		m.Stretch += r.Stretch / float64(n)
		m.OverCore += share(r.OverCore, r.Jobs) / float64(n)
		m.Utilisation += r.Utilisation / float64(n)
		if r.Decide != nil {
			m.DecideP99, m.DecideMax = max(m.DecideP99, r.Decide.P99), max(m.DecideMax, r.Decide.Max)
		}
	}
	m.JRT, m.JWT, m.JCT, m.Stability = m.JRT/n, m.JWT/n, m.JCT/n, m.Stability/n
	m.P50, m.P90, m.P99 = m.P50/n, m.P90/n, m.P99/n
	return m
}

func (r *JCTResult) mean(strategy, queue string, lambda int64) *JCTMean {
	return firstOf(r.Means, func(m JCTMean) bool { return m.Strategy == strategy && m.Queue == queue && m.LambdaMS == lambda })
}

func seconds(ms int64) string { return decimals(float64(ms)/1000, 1) }

// Table is a row a strategy, queue and lambda: means of the runs, in seconds.
func (r *JCTResult) Table() Table {
	return tableOf(r.Means, "queue", "lambda_s", "strategy", "runs", "jrt_s", "jwt_s", "jct_s", "jct_least_s", "jct_most_s", "jct_p50_s", "jct_p90_s", "jct_p99_s",
		"jct_of_best", "jct_of_fifo", "blocked_gpu", "blocked_network", "over_core", "over_core_stretch", "stability_s", "utilisation", "decide_p99_us", "decide_max_us", "paper_jct_s")
}

// Charts are, for each queue, completion times over lambda with the paper's
// points beside, and the same as a ratio to Best; for one lambda bars of
// running and waiting.
func (r *JCTResult) Charts() []Chart {
	var out []Chart
	if !slices.ContainsFunc(r.Means, func(m JCTMean) bool { return m.LambdaMS != r.Means[0].LambdaMS }) {
		return r.bars()
	}
	const label = "mean time between arrivals (lambda), s"
	both := func(title, ylabel string, of func(m JCTMean) (ours, paper float64)) {
		for _, m := range r.Means {
			c := panelOf(&out, title+", queue "+m.Queue, Chart{XLabel: label, YLabel: ylabel, YFit: true})
			ours, paper := of(m)
			if ours >= 0 {
				c.point(m.Strategy, float64(m.LambdaMS)/1000, ours)
			}
			if paper > 0 {
				c.mark(m.Strategy+paperMark, float64(m.LambdaMS)/1000, paper)
			}
		}
	}
	both("Completion", "mean JCT, s", func(m JCTMean) (float64, float64) { return float64(m.JCT) / 1000, m.paper })
	both("Completion against the ideal network", "JCT / JCT of Best", func(m JCTMean) (float64, float64) {
		best := r.mean(StrategyBest, m.Queue, m.LambdaMS)
		if best == nil || m.Strategy == StrategyBest || m.Strategy == StrategyECMP {
			return -1, 0 // ECMP would flatten all others
		}
		paper := 0.0
		if best.paper > 0 {
			paper = m.paper / best.paper
		}
		return *m.OfBest, paper
	})
	both("Blocked by the network", "heads of the queue that had to wait", func(m JCTMean) (float64, float64) {
		if m.Strategy != StrategyVClos && m.Strategy != StrategyOCS {
			return -1, 0
		}
		_, network := r.paperBlocked(m)
		return m.Network, float64(network)
	})
	return out
}

func (r *JCTResult) bars() []Chart {
	var out []Chart
	for _, m := range r.Means {
		c := panelOf(&out, "Running (JRT), waiting (JWT) and both (JCT), queue "+m.Queue, Chart{YLabel: "mean of the jobs, s"})
		c.bar(m.Strategy, "JRT", float64(m.JRT)/1000)
		c.bar(m.Strategy, "JWT", float64(m.JWT)/1000)
		c.bar(m.Strategy, "JCT", float64(m.JCT)/1000)
		c.bar(m.Strategy, "JCT"+paperMark, orAbsent(m.paper))
	}
	return out
}

func (r *JCTResult) describe(c JCTConfig) {
	gaps := each(c.Gaps, time.Duration.String)
	r.Title = fmt.Sprintf("Completion of jobs, %d GPUs", r.GPUsTotal)
	k := c.Cluster
	r.note("%d GPUs: %d leaves of %d in servers of %d, %d Gb/s a GPU and uplink; vclos, sr, balanced and ecmp over %d spines with %d link(s) a pair; ocs over %d spines and %d optical switches with %d port(s) of each leaf and %d of each spine, leaf to leaf %v",
		r.GPUsTotal, k.Leaves, k.Uplinks, k.GPUsPerServer, k.Gbps, k.Spines, k.Uplinks/k.Spines, k.OCS.Spines, k.OCS.Switches, k.Uplinks/k.OCS.Switches, k.GPUsTotal()/(k.OCS.Spines*k.OCS.Switches), k.OCS.AnyToAny)
	if c.List != nil {
		r.note("%d jobs of %s, as they stand there", r.Jobs, c.Name)
	} else {
		r.note("%d jobs of generator %s, Poisson arrivals, mean gaps %s; the same jobs for every strategy and queue; seeds %d to %d", r.Jobs, r.Workload, strings.Join(gaps, ", "), c.Seed, c.Seed+uint64(c.Runs)-1)
	}
	if c.Patience > 0 {
		r.note("a job that was passed %d times by jobs that came later becomes the head of any queue", c.Patience)
	} else {
		r.note("a job may be passed without end by jobs that came later")
	}
	r.note("best, vclos, ocs: a job runs for its duration, since no other touches its links; sr, balanced, ecmp: placed in the emptiest leaves, its flows share links by the model %s, in %d step(s) of compute and then collectives", r.Sharing, r.Steps)
	r.note("times are means in seconds: JRT from start to end, JWT from arrival to start, JCT both; least and most are of the runs; stability is the standard deviation of JCT, mean over models and sizes")
	r.note("blocked: heads of the queue that could not be placed when they first were tried, by what was missing, mean of the runs; over_core: jobs on more than one leaf, and how much longer these ran than alone")
	if len(r.Means) > 0 && r.Means[0].DecideMax > 0 {
		r.note("decide: one look at the queue, all that starts then; processor time, the worst run's")
	}
	r.compareWithPaper()
}
