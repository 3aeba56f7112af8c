package study

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/isolate"
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

// compareRun is a simulation under way.
type compareRun struct {
	*line
	CompareRun
	*outages
	jobs    []workload.Job
	talks   []talk
	blocked []bool // was counted
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
	r := &compareRun{jobs: c.compareJobs(cell)}
	r.System, r.Load, r.Faults, r.Seed, r.Jobs = cell.System, cell.Load, cell.Faults, cell.Seed, len(r.jobs)
	r.talks = each(r.jobs, func(j workload.Job) talk { return talkOf(j, c.Cluster.GPUsPerServer, c.Checkpoint) })
	if err := c.check(cell, r.jobs, r.talks); err != nil {
		return nil, err
	}
	house, sim, err := c.house(cell, r.jobs, r.talks)
	if err != nil {
		return nil, err
	}
	r.line = newLine(house, sim, c.Cluster.GPUsTotal()/c.Cluster.GPUsPerServer, arrivalsOf(r.jobs), each(r.talks, func(t talk) int64 { return t.steps }))
	r.setup, r.reload, r.refused, r.blocked = c.Setup, c.Reload, r.full, make([]bool, len(r.jobs))
	if r.outages, err = c.faults(cell); err != nil {
		return nil, err
	}
	r.hazards = r
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

// full counts a head that has no place, once, and gives up where it never has.
func (r *compareRun) full(job int, why isolate.Cause, waited time.Duration) error {
	switch {
	case r.blocked[job]:
	case why == isolate.ByNetwork:
		r.Blocked.Network++
	default:
		r.Blocked.GPU++
	}
	if r.blocked[job] = true; waited > maxWait {
		return invalid("gpus", fmt.Sprintf("jobs that find their servers in order within %v", maxWait), "job %d asks for %d and waits for ever on %s, fault rate %d", job+1, r.jobs[job].GPUs, r.System, r.Faults)
	}
	return nil
}

// strike has servers fail and come back. A job that has lost one leaves all that it has.
func (r *compareRun) strike(now time.Duration) {
	out, back := r.until(now)
	for _, s := range out {
		r.Restarts += r.lose(s)
		r.fails(s, true)
	}
	for _, s := range back {
		r.fails(s, false)
	}
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
