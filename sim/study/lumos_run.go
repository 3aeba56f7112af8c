package study

import (
	"fmt"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/isolate"
	"ringlight/sim/agenda"
	"ringlight/sim/flow"
)

// LumosRun is one simulation: mean times from start to end (JRT), from arrival
// to start (JWT) and from arrival to end (JCT).
type LumosRun struct {
	Case    string `json:"case"`
	Network string `json:"network"`
	Seed    uint64 `json:"seed"`
	Gbps    int    `json:"gbps"` // of a port
	Jobs    int    `json:"jobs"`
	JRT     int64  `json:"jrt_ms"`
	JWT     int64  `json:"jwt_ms"`
	JCT     int64  `json:"jct_ms"`
	JCTP99  int64  `json:"jct_p99_ms"`
	NoRoom  int    `json:"heads_without_servers"` // that failed at first
	NoPorts int    `json:"heads_without_links"`
	LumosLinks
	// Slow is by how much of itself the running time of a job exceeds that on the
	// ideal network ([LUMOS] Fig. 8a).
	Slow LumosSlow `json:"jrt_slowdown_ratio"`
	// Contention is how many times what a job sends takes longer than on the ideal
	// network, the mean of jobs that send (close to [LUMOS] eq. 10); 0: GPUs fail.
	Contention float64 `json:"contention_level,omitempty"`
	Soft       int     `json:"soft_failures,omitempty"` // of GPUs in use or not
	Hard       int     `json:"hard_failures,omitempty"`
	Restarts   int     `json:"restarts,omitempty"` // of jobs
}

// LumosLinks is what became of the links between pods.
type LumosLinks struct {
	Across  int `json:"jobs_across_pods"`
	Asked   int `json:"links_asked"`
	Granted int `json:"links_granted"`
	Kept    int `json:"paths_kept"` // of jobs that ran, over all changes
	Moved   int `json:"paths_moved"`
	Placed  int `json:"circuits_asked_again"` // of circuits that were there and are wanted on, over all changes
	Turned  int `json:"circuits_moved"`       // of these: that go through another switch
}

// LumosSlow is how slow-downs lie.
type LumosSlow struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// lumosRun is a simulation under way, and the house of its line.
type lumosRun struct {
	*line
	*pods
	LumosRun
	jobs   []lumosJob
	steps  int
	failed int // head that was counted, or -1
}

func (r *lumosRun) place(job int) ([]int, isolate.Cause, error) { return r.lodge(job, &r.jobs[job]) }

// Run simulates a cell.
func (c LumosConfig) Run(cell LumosCell) (LumosRun, error) {
	r, err := c.newRun(cell)
	if err != nil {
		return LumosRun{}, err
	}
	if err := r.run(); err != nil {
		return LumosRun{}, fmt.Errorf("study: %s, seed %d: %w", cell.Network, cell.Seed, err)
	}
	return r.sum(), nil
}

func (c LumosConfig) newRun(cell LumosCell) (*lumosRun, error) {
	jobs := c.lumosJobs(cell)
	for i, j := range jobs {
		if j.servers*gpusPerServer > cell.GPUs {
			return nil, invalid("gpus-total", fmt.Sprintf("at least the %d of the largest job", j.servers*gpusPerServer), "job %d does not fit into %d", i+1, cell.GPUs)
		}
	}
	r := &lumosRun{pods: newPods(newNet(cell)), jobs: jobs, steps: c.Steps, failed: -1}
	r.Network, r.Seed, r.Gbps, r.Jobs = cell.Network, cell.Seed, r.gbps, len(jobs)
	sim, err := flow.New(r.capacity, flow.Rounds)
	arrivals := each(jobs, func(j lumosJob) time.Duration { return j.Arrival })
	r.line = newLine(r, sim, r.gpus/r.perServer, arrivals, slices.Repeat([]int64{int64(c.Steps)}, len(jobs)))
	r.setup, r.reload, r.refused = time.Duration(cell.Setup)*time.Millisecond, reload, r.full
	if cell.Faults > 0 {
		r.hazards = newGPUFailures(r, cell)
	}
	return r, err
}

// full counts a head that has no place, and gives up where it never has.
func (r *lumosRun) full(job int, why isolate.Cause, waited time.Duration) error {
	switch {
	case r.failed == job:
	case why == isolate.ByNetwork:
		r.NoPorts++
	default:
		r.NoRoom++
	}
	if r.failed = job; waited > maxWait {
		return invalid("gpu-faults", fmt.Sprintf("jobs that find their servers in order within %v", maxWait), "job %d waits for ever", job+1)
	}
	return nil
}

// work is what a job does that has its place.
func (r *lumosRun) work(job int, steps int64) (*work, error) {
	s, j := r.seats[job], &r.jobs[job]
	if j.servers == 0 {
		return &work{step: j.Duration, steps: 1}, nil
	}
	if err := r.elements(s); err != nil {
		return nil, err
	}
	return &work{script: &flow.Script{Stages: r.stages(s, job, j, r.steps), Iterations: steps}}, nil
}

func (r *lumosRun) sum() LumosRun {
	var jct []int64
	var slow []float64
	var run, wait int64
	var contended, talking float64
	for i := range r.jobs {
		if j := &r.jobs[i]; j.reduce+j.exchange+j.forward > 0 {
			contended += 1 + float64(r.lives[i].ended-r.lives[i].began-j.Duration)/(float64(j.Duration)*float64(j.reduce+j.exchange+j.forward)/10_000)
			talking++
		}
		run += r.ran(i).Milliseconds()
		wait += r.waited(i).Milliseconds()
		jct = append(jct, (r.ran(i) + r.waited(i)).Milliseconds())
		slow = append(slow, float64(r.ran(i)-r.jobs[i].Duration)/float64(r.jobs[i].Duration))
	}
	n := int64(len(r.jobs))
	slices.Sort(jct)
	slices.Sort(slow)
	out := r.LumosRun
	out.LumosLinks = r.pods.LumosLinks
	out.JRT, out.JWT, out.JCT, out.JCTP99 = run/n, wait/n, (run+wait)/n, quantile(jct, 990)
	if r.hazards == nil {
		out.Contention = contended / max(1, talking)
	}
	out.Slow = LumosSlow{quantile(slow, 500), quantile(slow, 900), quantile(slow, 990)}
	return out
}

// Failures of GPUs. [LUMOS] sec 6.5 has soft ones, by software, and hard ones, by
// hardware, at rates and times to repair of its own operation that it does not print.
const (
	// gpuFaults is how many of 1,000 GPUs fail in a year: 419 on 16,384 in 54 days, of
	// which 78 % by hardware (Llama Team, "The Llama 3 Herd of Models", 2024, sec 3.3.4).
	gpuFaults    = 173
	hardMille    = 780
	maxGPUFaults = 2000 // chosen: a job of half of 4,096 GPUs loses one every two hours

	reload = 10 * time.Minute // chosen: of a job, from its last iteration
	repair = 24 * time.Hour   // chosen: of a server whose GPU failed hard
)

// gpuFailures strike a run: of a soft one a job begins anew where there is room, which is
// where it was; of a hard one its server is out meanwhile.
type gpuFailures struct {
	*lumosRun
	rng  *detmath.Random
	mean float64 // nanoseconds between two
	at   time.Duration
	back agenda.Queue[int] // servers that will be in order
	out  map[int]bool
}

func newGPUFailures(r *lumosRun, cell LumosCell) *gpuFailures {
	const stream = 0x464c54
	f := &gpuFailures{lumosRun: r, rng: detmath.Stream(cell.Seed, stream), out: map[int]bool{},
		mean: float64(365*24*time.Hour) * 1000 / float64(cell.GPUs*cell.Faults)}
	f.draw()
	return f
}

func (f *gpuFailures) draw() {
	f.at += time.Duration(f.mean * -detmath.Log(float64(f.rng.Next()>>11+1)/(1<<53)))
}

func (f *gpuFailures) next() time.Duration {
	if f.back.Len() > 0 {
		first, _ := f.back.First()
		return min(f.at, first)
	}
	return f.at
}

func (f *gpuFailures) strike(now time.Duration) {
	for f.next() <= now {
		if f.at > now {
			_, server := f.back.Pop()
			delete(f.out, server)
			f.fails(server, false)
			continue
		}
		server, hard := f.rng.Below(f.net.gpus)/f.perServer, f.rng.Below(1000) < hardMille
		if f.draw(); f.out[server] {
			continue // it is out already
		}
		f.Restarts += f.lose(server)
		if hard {
			f.Hard++
			f.out[server] = true
			f.fails(server, true)
			f.back.Push(now+repair, server)
		} else {
			f.Soft++
		}
	}
}
