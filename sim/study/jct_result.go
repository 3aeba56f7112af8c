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
func (r *JCTResult) Charts() (out []Chart) {
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

func (r *JCTResult) bars() (out []Chart) {
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

// paperMark ends the name of a series that [VCLOS] printed.
const paperMark = ", paper"

// What [VCLOS] prints for 512 GPUs and 5,000 jobs, in seconds. Its order is
// OCS-vClos, vClos, Best, source routing, balanced ECMP, ECMP,
// OCS-Relax.
var vclosOrder = []string{StrategyOCS, StrategyVClos, StrategyBest, StrategySR, StrategyBalanced, StrategyECMP, StrategyRelax}

// vclosTable5 is JCT by lambda, FIFO.
var vclosTable5 = map[int64][7]float64{
	100_000: {7800.5, 9799.6, 7514.3, 10083.5, 12267.1, 35032.9, 24313.3},
	110_000: {6368.0, 6981.5, 6131.8, 7449.6, 8622.5, 25055.6, 13768.4},
	120_000: {5229.9, 5550.6, 5053.0, 6228.6, 7105.4, 23545.4, 11291.4},
	130_000: {4491.5, 4710.4, 4340.7, 4955.6, 5436.9, 13118.7, 7586.6},
	140_000: {4025.4, 4105.1, 3986.5, 4209.3, 4764.5, 11395.6, 5917.9},
}

// vclosTable6 is JCT by queue at a lambda of 120 s. The EDF figure of
// OCS-vClos is misprinted ("1.170.0").
var vclosTable6 = map[string][7]float64{
	isolate.EDF.String():    {0, 4401.4, 4176.5, 4685.5, 5020.9, 7658.6},
	isolate.Fewest.String(): {4081.6, 4137.2, 4029.9, 4250.5, 4607.8, 6667.6},
}

// vclosTable7 is JCT with the sizes of TPUv4, of which the lambda is not
// printed; of the running times only that of OCS-vClos is legible.
var (
	vclosTable7 = [7]float64{11958.1, 11958.9, 11958.1, 11973.7, 12021.8, 22808.7}
	vclosJRT7   = 3856.1
)

// vclosTable2 is heads blocked by GPU and network by lambda, of vClos and
// OCS-vClos.
var vclosTable2 = map[int64]map[string][2]int{
	100_000: {StrategyVClos: {1311, 264}, StrategyOCS: {1180, 172}},
	110_000: {StrategyVClos: {988, 250}, StrategyOCS: {1047, 161}},
	120_000: {StrategyVClos: {878, 218}, StrategyOCS: {920, 129}},
	130_000: {StrategyVClos: {726, 145}, StrategyOCS: {705, 98}},
}

// vclosLambda is the default of the paper.
const vclosLambda = 120_000

// What sec 9.4 says of running times: those of OCS-vClos are so much shorter.
var vclosJRT = map[string]float64{StrategySR: 0.031, StrategyBalanced: 0.0617}

// likePaper says whether the paper has such a cluster and such jobs.
func (r *JCTResult) likePaper() bool {
	return r.GPUsTotal == 512 && r.Cluster.GPUsPerServer == 4 && r.Jobs == 5000
}

// paperJCT is what the paper prints for a row, 0 if nothing.
func (r *JCTResult) paperJCT(m JCTMean) float64 {
	row, ok := [7]float64{}, false
	switch {
	case !r.likePaper():
	case r.Workload == "tpuv4":
		row, ok = vclosTable7, m.Queue == isolate.FIFO.String()
	case r.Workload != "w1":
	case m.Queue == isolate.FIFO.String():
		row, ok = vclosTable5[m.LambdaMS]
	case m.LambdaMS == vclosLambda:
		row, ok = vclosTable6[m.Queue]
	}
	if !ok {
		return 0
	}
	return row[slices.Index(vclosOrder, m.Strategy)]
}

func (r *JCTResult) paperBlocked(m JCTMean) (gpu, network int) {
	if !r.likePaper() || r.Workload != "w1" || m.Queue != isolate.FIFO.String() {
		return 0, 0
	}
	b := vclosTable2[m.LambdaMS][m.Strategy]
	return b[0], b[1]
}

func (r *JCTResult) compareWithPaper() {
	for _, m := range r.Means {
		best := r.mean(StrategyBest, m.Queue, m.LambdaMS)
		if best == nil || m.paper == 0 {
			continue
		}
		name := map[bool]string{true: "Table 5", false: "Table 6"}[m.Queue == isolate.FIFO.String()]
		if r.Workload == "tpuv4" {
			name = "Table 7"
		}
		what := fmt.Sprintf("%s, %s, lambda %s, %s: JCT s", name, m.Queue, decimals(float64(m.LambdaMS)/1000, -1), m.Strategy)
		ours, theirs := seconds(m.JCT), decimals(m.paper, 1)
		if best.paper > 0 && m.Strategy != StrategyBest {
			ours += fmt.Sprintf(" (%s of Best)", decimals(*m.OfBest, 3))
			theirs += fmt.Sprintf(" (%s)", decimals(m.paper/best.paper, 3))
		}
		r.compare(what, ours, theirs, r.why(m, *best))
	}
	// The row of OCS that Table 7 has.
	if m := firstOf(r.Means, func(m JCTMean) bool { return m.Strategy == StrategyOCS && r.Workload == "tpuv4" && m.paper > 0 }); m != nil {
		r.compare("Table 7, ocs: JRT s", seconds(m.JRT), decimals(vclosJRT7, 1), "durations of another sample; the paper's are of Helios")
	}
	for _, m := range r.Means {
		if gpu, network := r.paperBlocked(m); gpu > 0 {
			why := fmt.Sprintf("of the blocked heads the network has %s here and %s there", percent(m.Network/(m.GPU+m.Network), 1), percent(share(network, gpu+network), 1))
			if m.Strategy == StrategyOCS {
				why += fmt.Sprintf(": a leaf may hold several virtual leaves here, s may be any; the worst run has %d", m.WorstBlock)
			}
			r.compare(fmt.Sprintf("Table 2, lambda %s, %s: heads blocked by gpu / network", decimals(float64(m.LambdaMS)/1000, -1), m.Strategy),
				decimals(m.GPU, 1)+" / "+decimals(m.Network, 1), fmt.Sprintf("%d / %d", gpu, network), why)
		}
	}
	for _, m := range r.Means {
		paper, ok := vclosJRT[m.Strategy]
		ocs := r.mean(StrategyOCS, m.Queue, m.LambdaMS)
		if !ok || ocs == nil || !r.likePaper() || r.Workload != "w1" || m.LambdaMS != vclosLambda || m.Queue != isolate.FIFO.String() {
			continue
		}
		r.compare("sec 9.4, lambda 120: JRT of ocs against "+m.Strategy, percent(share(int(ocs.JRT-m.JRT), int(m.JRT)), 2), percent(-paper, 2),
			fmt.Sprintf("only jobs on more than one leaf can meet another: here %s of them, which run %s longer; the paper does not say its share", percent(m.OverCore, 1), percent(m.Stretch-1, 1)))
	}
}

// why says from the figures of this study why a row is not the paper's.
func (r *JCTResult) why(m, best JCTMean) string {
	switch m.Strategy {
	case StrategyBest:
		return fmt.Sprintf("another sample of jobs: the %d seeds alone lie between %s and %s", m.Runs, seconds(m.Least), seconds(m.Most))
	case StrategyVClos, StrategyOCS:
		return fmt.Sprintf("no job is slower (JRT %s, Best %s); waiting %s against %s, %s heads blocked by the network", seconds(m.JRT), seconds(best.JRT), seconds(m.JWT), seconds(best.JWT), decimals(m.Network, 1))
	case StrategyRelax:
		return fmt.Sprintf("no link is shared, and what GPUs of a server say goes over the network, %d times slower: JRT %s, Best %s; the paper does not say where its jobs go", serverFaster, seconds(m.JRT), seconds(best.JRT))
	}
	return fmt.Sprintf("%s of the jobs are on more than one leaf and run %s longer, all together %s; the rest is waiting, %s against %s",
		percent(m.OverCore, 1), percent(m.Stretch-1, 1), percent(share(int(m.JRT-best.JRT), int(best.JRT)), 1), seconds(m.JWT), seconds(best.JWT))
}
