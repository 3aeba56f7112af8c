package study

import (
	"math"
	"slices"
	"time"

	"ringlight/planner/isolate"
	"ringlight/sim/flow"
	"ringlight/sim/workload"
)

// JCTSpread is how the completion times of a run lie.
type JCTSpread struct {
	Mean int64 `json:"mean"`
	P50  int64 `json:"p50"`
	P90  int64 `json:"p90"`
	P99  int64 `json:"p99"`
}

// JCTBlocked is heads of the queue that failed at first, by what was missing.
type JCTBlocked struct {
	GPU     int `json:"gpu"`
	Network int `json:"network"`
}

// JCTDecide is how long a look at the queue took, in microseconds: all that
// starts then, and in a backfilling queue every reservation.
type JCTDecide struct {
	P50 int64 `json:"p50"`
	P99 int64 `json:"p99"`
	Max int64 `json:"max"`
	N   int   `json:"n"`
}

// JCTRun is one simulation: times from start to end (JRT), from arrival to
// start (JWT) and from arrival to end (JCT).
type JCTRun struct {
	Strategy    string     `json:"strategy"`
	Queue       string     `json:"queue"`
	LambdaMS    int64      `json:"lambda_ms,omitempty"`
	Seed        uint64     `json:"seed"`
	Jobs        int        `json:"jobs"`
	JRT         int64      `json:"jrt_ms"`
	JWT         int64      `json:"jwt_ms"`
	JCT         JCTSpread  `json:"jct_ms"`
	Stability   int64      `json:"stability_ms"`
	Blocked     JCTBlocked `json:"blocked"`
	OverCore    int        `json:"over_core"`         // jobs on more than one leaf
	Stretch     float64    `json:"over_core_stretch"` // of them: time that they ran, of what they would alone
	Utilisation float64    `json:"utilisation_ratio"`
	Makespan    int64      `json:"makespan_ms"`
	Decide      *JCTDecide `json:"decide_us,omitempty"`
}

// jctRun is a simulation under way: the queue of isolated scheduling.
type jctRun struct {
	*timeline
	cfg     JCTConfig
	jobs    []workload.Job
	queue   *isolate.Queue
	traffic *jctTraffic // of jobs that meet others; nil: there are none
	took    []time.Duration
	over    []int // jobs on more than one leaf
	relaxed bool  // jobs are on any GPUs
}

// Run simulates a cell.
func (c JCTConfig) Run(cell JCTCell) (JCTRun, error) {
	jobs := c.jobs(cell)
	core := c.Cluster.fixed()
	switch cell.Strategy {
	case StrategyOCS:
		core = c.Cluster.optical()
	case StrategyRelax:
		apart := c.Cluster
		apart.GPUsPerServer = 1
		core = apart.optical()
	case StrategyVClos:
	default:
		core.Links = nil // nobody owns one
	}
	rules := isolate.Rules{Patience: c.Patience}
	if rules.Order, _ = isolate.OrderOf(cell.Queue); c.Patience == 0 {
		rules.Patience = -1
	}
	r := &jctRun{cfg: c, jobs: jobs, queue: isolate.NewQueue(core.Empty(), rules), relaxed: cell.Strategy == StrategyRelax}
	sharing, err := flow.ParseSharing(c.Sharing)
	var sim *flow.Sim
	if core.Links == nil && core.Optics == nil && cell.Strategy != StrategyBest && sharing != flow.Isolated {
		if r.traffic, err = newJCTTraffic(c.Cluster, c.Cluster.rates(), cell.Strategy, cell.Seed, sharing); err != nil {
			return JCTRun{}, err
		}
		sim = r.traffic.sim
	}
	r.timeline = newTimeline(r, arrivalsOf(jobs), sim)
	if err == nil {
		err = r.check(cell.Strategy)
	}
	if err == nil {
		err = r.run()
	}
	if err != nil {
		return JCTRun{}, err
	}
	return r.result(cell), nil
}

func arrivalsOf(jobs []workload.Job) []time.Duration {
	return each(jobs, func(j workload.Job) time.Duration { return j.Arrival })
}

// check refuses jobs that the empty cluster has no place for.
func (r *jctRun) check(strategy string) error {
	seen := map[int32]bool{}
	for i, j := range r.jobs {
		if seen[j.GPUs] {
			continue
		}
		seen[j.GPUs] = true
		if err := r.queue.Check(isolateJob(i, j)); err != nil {
			return invalid("gpus", "what the empty cluster has room for under "+strategy, "job %d asks for %d: %v", i+1, j.GPUs, err)
		}
	}
	return nil
}

func isolateJob(i int, j workload.Job) isolate.Job {
	return isolate.Job{ID: isolate.JobID(i), GPUs: int(j.GPUs), DurationMS: j.Declared().Milliseconds(), DeadlineMS: j.Deadline().Milliseconds()}
}

func (r *jctRun) come(job int) error { return r.queue.Submit(isolateJob(job, r.jobs[job])) }

func (r *jctRun) leave(job int) {
	if r.traffic != nil {
		r.traffic.release(job)
	}
	r.queue.Finished(isolate.JobID(job))
}

// seat asks the queue and notes how long it takes.
func (r *jctRun) seat(now time.Duration) (out []seated, err error) {
	before := r.cfg.Clock.read()
	starts := r.queue.Start(now.Milliseconds())
	if r.cfg.Clock != nil {
		r.took = append(r.took, r.cfg.Clock()-before)
	}
	for _, s := range starts {
		job, p := int(s.Job.ID), s.Placement
		if p.L > 1 {
			r.over = append(r.over, job)
		}
		out = append(out, seated{job: job, work: func() (*work, error) { return r.work(job, p) }})
	}
	return out, nil
}

func (r *jctRun) work(job int, p isolate.Placement) (*work, error) {
	j := r.jobs[job]
	if r.relaxed {
		gpus := each(p.Servers, func(s isolate.Server) int { return s.Leaf*r.cfg.Cluster.Uplinks + s.Server })
		return &work{step: j.Duration + r.cfg.Cluster.rates().apart(j, gpus), steps: 1}, nil
	}
	if r.traffic == nil || p.L <= 1 || j.Pattern == workload.Alone || j.AllReduce()+j.AllToAll() == 0 {
		return &work{step: j.Duration, steps: 1}, nil
	}
	script, err := r.traffic.script(j, r.traffic.put(job, r.traffic.gpus(int(j.GPUs), p)), r.cfg.Steps)
	return &work{script: script}, err
}

// quantile of sorted values, the nearest from above.
func quantile[T any](sorted []T, thousandths int) T {
	return sorted[min(len(sorted)-1, (len(sorted)*thousandths)/1000)]
}

func (r *jctRun) result(cell JCTCell) JCTRun {
	out := JCTRun{Strategy: cell.Strategy, Queue: cell.Queue, LambdaMS: cell.Gap.Milliseconds(), Seed: cell.Seed, Jobs: len(r.jobs)}
	n := int64(len(r.jobs))
	var jrt, jwt, busy, last int64
	jct := make([]int64, len(r.jobs))
	for i, j := range r.jobs {
		run, wait := r.ran(i).Milliseconds(), r.waited(i).Milliseconds()
		jrt, jwt, jct[i] = jrt+run, jwt+wait, run+wait
		busy += run / 1000 * int64(j.GPUs)
		last = max(last, r.lives[i].ended.Milliseconds())
	}
	b := r.queue.Blocked()
	out.JRT, out.JWT, out.Makespan = jrt/n, jwt/n, last
	out.Blocked, out.OverCore, out.Stretch = JCTBlocked{b.GPU, b.Network}, len(r.over), 1
	var ran, alone time.Duration
	for _, i := range r.over {
		ran, alone = ran+r.ran(i), alone+r.jobs[i].Duration
	}
	if alone > 0 {
		out.Stretch = float64(ran) / float64(alone)
	}
	out.Utilisation = share(int(busy), int(last/1000)*r.cfg.Cluster.GPUsTotal())
	out.Stability = stability(r.jobs, jct)
	slices.Sort(jct)
	out.JCT = JCTSpread{(jrt + jwt) / n, quantile(jct, 500), quantile(jct, 900), quantile(jct, 990)}
	if len(r.took) > 0 {
		slices.Sort(r.took)
		out.Decide = &JCTDecide{quantile(r.took, 500).Microseconds(), quantile(r.took, 990).Microseconds(), r.took[len(r.took)-1].Microseconds(), len(r.took)}
	}
	return out
}

// stability is the mean, over all models and sizes with two jobs or more, of
// the standard deviation of completion times ([VCLOS] sec 9.3).
func stability(jobs []workload.Job, jctMS []int64) int64 {
	type sums struct{ n, sum, squares float64 }
	groups := map[[2]int32]*sums{} // by model and size
	var order []*sums
	for i, j := range jobs {
		sort := [2]int32{int32(j.Model), j.GPUs}
		g := groups[sort]
		if g == nil {
			g = &sums{}
			groups[sort], order = g, append(order, g)
		}
		v := float64(jctMS[i])
		g.n, g.sum, g.squares = g.n+1, g.sum+v, g.squares+float64(v*v)
	}
	total, counted := 0.0, 0
	for _, g := range order {
		if g.n > 1 {
			mean := g.sum / g.n
			total += math.Sqrt(max(0, g.squares/g.n-float64(mean*mean)))
			counted++
		}
	}
	return int64(total / float64(max(1, counted)))
}
