package study

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/isolate"
	"ringlight/sim/flow"
	"ringlight/sim/workload"
)

// CompareRun is one simulation: times at places (JRT), without one (JWT) and
// from arrival to end (JCT).
type CompareRun struct {
	System      string     `json:"system"`
	Load        int        `json:"load_mille"`
	Faults      int        `json:"fault_rate"`
	Seed        uint64     `json:"seed"`
	Jobs        int        `json:"jobs"`
	JRT         int64      `json:"jrt_ms"`
	JWT         int64      `json:"jwt_ms"`
	JCT         JCTSpread  `json:"jct_ms"`
	Makespan    int64      `json:"makespan_ms"`
	Utilisation float64    `json:"utilisation_ratio"` // GPU time at places, of all there is until the last end
	Computing   float64    `json:"computing_ratio"`   // of the GPU time at places: steps that count, without what they send
	Stretch     float64    `json:"stretch"`           // GPU time of steps of jobs on several servers, of that on the switch
	Blocked     JCTBlocked `json:"blocked"`
	Restarts    int        `json:"restarts"`       // of jobs that lost a server
	Lost        int64      `json:"lost_gpu_hours"` // of steps that did not end, and of reloading
}

// house is a system: which traffic goes where on it, and how long what jobs do takes.
type house interface {
	// place gives a job whole servers, or a part of one, and tells which.
	place(job int) (servers []int, why isolate.Cause, err error)
	free(job int)
	// work is the steps of a job at its place.
	work(job int, steps int64) (*work, error)
	// circuits says whether light is switched for a job before it runs.
	circuits(job int) bool
	// withhold keeps a server that nobody is on from all jobs, or gives it back.
	withhold(server int, out bool)
}

// compareRun is a simulation under way: jobs in the order of arrival, the first
// of which blocks all others. One that loses a server goes back to its place in
// that order, and to the last step that it has ended.
type compareRun struct {
	*timeline
	CompareRun
	house   house
	outages *outages
	reload  time.Duration
	setup   time.Duration
	jobs    []workload.Job
	talks   []talk
	servers [][]int // of a job at a place
	on      [][]int // jobs, of a server
	waiting []int
	left    []int64         // steps
	resumed []bool          // it lost a server
	spent   []time.Duration // at steps that did not end, and reloading
	tried   bool            // the head was, and nothing has become free
	blocked []bool          // was counted
}

// Run simulates a cell.
func (c CompareConfig) Run(cell CompareCell) (CompareRun, error) {
	r, err := c.newRun(cell)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		return CompareRun{}, err
	}
	return r.sum(c), nil
}

func (c CompareConfig) newRun(cell CompareCell) (*compareRun, error) {
	jobs := c.compareJobs(cell)
	r := &compareRun{reload: c.Reload, setup: c.Setup, jobs: jobs, servers: make([][]int, len(jobs)), left: make([]int64, len(jobs)),
		resumed: make([]bool, len(jobs)), blocked: make([]bool, len(jobs)), spent: make([]time.Duration, len(jobs)),
		on: make([][]int, c.Cluster.GPUsTotal()/c.Cluster.GPUsPerServer)}
	r.System, r.Load, r.Faults, r.Seed, r.Jobs = cell.System, cell.Load, cell.Faults, cell.Seed, len(jobs)
	for i, j := range jobs {
		r.talks = append(r.talks, talkOf(j, c.Cluster.GPUsPerServer, c.Checkpoint))
		r.left[i] = r.talks[i].steps
	}
	if err := c.check(cell, jobs, r.talks); err != nil {
		return nil, err
	}
	var sim *flow.Sim
	var err error
	if r.house, sim, err = c.house(cell, jobs, r.talks); err != nil {
		return nil, err
	}
	r.timeline = newTimeline(r, arrivalsOf(jobs), sim)
	if r.outages, err = c.faults(cell); err != nil {
		return nil, err
	}
	if r.outages != nil {
		r.hazards = r
	}
	return r, nil
}

// check refuses jobs that the empty system has no place for.
func (c CompareConfig) check(cell CompareCell, jobs []workload.Job, talks []talk) error {
	h, _, err := c.house(cell, jobs, talks)
	if err != nil {
		return err
	}
	seen := map[[2]int]bool{}
	for i, j := range jobs {
		key := [2]int{int(j.GPUs), int(links(j))}
		if seen[key] {
			continue
		}
		seen[key] = true
		if int(j.GPUs) > c.Cluster.GPUsTotal() {
			return invalid("gpus", fmt.Sprintf("the %d GPUs there are", c.Cluster.GPUsTotal()), "job %d asks for %d", i+1, j.GPUs)
		}
		servers, why, err := h.place(i)
		if err != nil {
			return err
		}
		if servers == nil {
			return invalid("gpus", "what the empty cluster has room for on "+cell.System, "job %d asks for %d: %s", i+1, j.GPUs, why)
		}
		h.free(i)
	}
	return nil
}

func (r *compareRun) come(job int) error {
	at, _ := slices.BinarySearch(r.waiting, job)
	r.waiting = slices.Insert(r.waiting, at, job)
	if at == 0 {
		r.tried = false
	}
	return nil
}

func (r *compareRun) seat(now time.Duration) (out []seated, err error) {
	for len(r.waiting) > 0 && !r.tried {
		job := r.waiting[0]
		servers, why, err := r.house.place(job)
		if err != nil {
			return nil, fmt.Errorf("study: %s: job %d: %w", r.System, job+1, err)
		}
		if servers == nil {
			if r.tried = true; !r.blocked[job] {
				r.block(why)
				r.blocked[job] = true
			}
			if now-r.arrivals[job] > maxWait {
				return nil, invalid("gpus", fmt.Sprintf("jobs that find their servers in order within %v", maxWait), "job %d asks for %d and waits for ever on %s, fault rate %d", job+1, r.jobs[job].GPUs, r.System, r.Faults)
			}
			break
		}
		r.waiting, r.servers[job] = r.waiting[1:], servers
		for _, s := range servers {
			r.on[s] = append(r.on[s], job)
		}
		s := seated{job: job, work: func() (*work, error) { return r.house.work(job, r.left[job]) }}
		if r.house.circuits(job) {
			s.setup = r.setup
		}
		if r.resumed[job] {
			s.setup += r.reload
		}
		out = append(out, s)
	}
	return out, nil
}

// maxWait of a job; chosen: ten years, after which a study would not end.
const maxWait = 3650 * 24 * time.Hour

func (r *compareRun) block(why isolate.Cause) {
	if why == isolate.ByNetwork {
		r.Blocked.Network++
	} else {
		r.Blocked.GPU++
	}
}

func (r *compareRun) leave(job int) {
	for _, s := range r.servers[job] {
		r.on[s] = slices.DeleteFunc(r.on[s], func(j int) bool { return j == job })
	}
	r.house.free(job)
	r.tried = false
}

// next and strike: servers fail and come back. A job that has lost one leaves
// all that it has.
func (r *compareRun) next() time.Duration { return r.outages.next() }

func (r *compareRun) strike(now time.Duration) error {
	out, back := r.outages.until(now)
	for _, s := range out {
		for _, job := range slices.Clone(r.on[s]) {
			began := r.lives[job].work != nil
			steps, lost := r.stop(job)
			if r.resumed[job] && began {
				lost += r.reload
			}
			r.left[job] -= steps
			r.spent[job] += lost
			r.resumed[job] = true
			r.Restarts++
			if err := r.come(job); err != nil {
				return err
			}
		}
		r.house.withhold(s, true)
	}
	for _, s := range back {
		r.house.withhold(s, false)
		r.tried = false
	}
	return nil
}

func (r *compareRun) sum(c CompareConfig) CompareRun {
	out := r.CompareRun
	var jrt, jwt int64
	var held, computed, talked, onSwitch, lost float64 // GPU seconds
	jct := make([]int64, len(r.jobs))
	port := rates{c.Cluster.GPUsPerServer, int64(c.ScaleUp) * 1e9, int64(c.Cluster.Gbps) * 1e9}
	for i, j := range r.jobs {
		t, gpus := &r.talks[i], float64(j.GPUs)
		run, wait := r.ran(i), r.waited(i)
		jrt, jwt, jct[i] = jrt+run.Milliseconds(), jwt+wait.Milliseconds(), (run + wait).Milliseconds()
		spent := r.spent[i]
		if r.resumed[i] {
			spent += r.reload // the last time
		}
		steps := time.Duration(t.steps)
		held += float64(gpus * run.Seconds())
		lost += float64(gpus * spent.Seconds())
		computed += float64(gpus * (t.compute * steps).Seconds())
		if !t.silent() {
			talked += float64(gpus * (run - spent).Seconds())
			onSwitch += float64(gpus * ((t.compute + port.takes(t.parts)) * steps).Seconds())
		}
		out.Makespan = max(out.Makespan, r.lives[i].ended.Milliseconds())
	}
	n := int64(len(r.jobs))
	slices.Sort(jct)
	out.JRT, out.JWT, out.Lost = jrt/n, jwt/n, int64(lost/3600)
	out.JCT = JCTSpread{(jrt + jwt) / n, quantile(jct, 500), quantile(jct, 900), quantile(jct, 990)}
	out.Utilisation = held * 1000 / (float64(c.Cluster.GPUsTotal()) * float64(max(1, out.Makespan)))
	out.Computing, out.Stretch = computed/max(held, 1e-9), 1
	if onSwitch > 0 {
		out.Stretch = talked / onSwitch
	}
	return out
}
