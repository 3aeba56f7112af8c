package study

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/planner/sched"
	"ringlight/planner/wiring"
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
	Across  int    `json:"jobs_across_pods"`
	Asked   int    `json:"links_asked"`
	Granted int    `json:"links_granted"`
	Kept    int    `json:"paths_kept"` // of jobs that ran, over all changes
	Moved   int    `json:"paths_moved"`
	// Slow is by how much of itself the running time of a job exceeds that on the
	// ideal network ([LUMOS] Fig. 8a).
	Slow LumosSlow `json:"jrt_slowdown_ratio"`
}

// LumosSlow is how slow-downs lie.
type LumosSlow struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// lumosRun is a simulation under way.
type lumosRun struct {
	*net
	LumosRun
	jobs    []lumosJob
	steps   int
	setup   time.Duration
	sim     *flow.Sim
	waiting []int // FIFO
	failed  int   // head that was counted, or -1
	seats   map[int]*seat
	number  map[flow.Job]int
	begins  agenda.Queue[int] // jobs that wait for circuits
	spread  wiring.Spread
	idle    []int       // servers of a leaf
	slots   [][]int     // of a leaf: idle servers
	shared  map[int]int // server with small jobs: GPUs left
	started []time.Duration
	ended   []time.Duration
}

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
	jobs, err := c.lumosJobs(cell)
	if err != nil {
		return nil, err
	}
	for i, j := range jobs {
		if j.servers*gpusPerServer > cell.GPUs {
			return nil, invalid("gpus-total", fmt.Sprintf("at least the %d of the largest job", j.servers*gpusPerServer), "job %d does not fit into %d", i+1, cell.GPUs)
		}
	}
	r := &lumosRun{net: newNet(cell), jobs: jobs, steps: c.Steps, setup: time.Duration(cell.Setup) * time.Millisecond, failed: -1,
		seats: map[int]*seat{}, number: map[flow.Job]int{}, shared: map[int]int{},
		started: make([]time.Duration, len(jobs)), ended: make([]time.Duration, len(jobs))}
	r.Network, r.Seed, r.Gbps, r.Jobs = cell.Network, cell.Seed, r.gbps, len(jobs)
	r.spread = wiring.Spread{Leaves: r.core.Leaves, Spine: make([]wiring.Topology, r.spines)}
	for h := range r.spread.Spine {
		r.spread.Spine[h].Pods = len(r.core.PodOf)
	}
	for leaf, servers := range r.core.Servers {
		r.idle = append(r.idle, servers)
		var slots []int
		for i := range servers {
			slots = append(slots, leaf*servers+servers-1-i)
		}
		r.slots = append(r.slots, slots)
	}
	r.sim, err = flow.New(r.capacity, flow.Rounds)
	return r, err
}

// run goes from instant to instant at which a job comes, begins or ends. What
// ends frees its place before what comes asks for one.
func (r *lumosRun) run() error {
	for next := 0; next < len(r.jobs) || r.sim.Live() > 0 || r.begins.Len() > 0 || len(r.waiting) > 0; {
		at := flow.Never
		if next < len(r.jobs) {
			at = r.jobs[next].Arrival
		}
		if r.begins.Len() > 0 {
			first, _ := r.begins.First()
			at = min(at, first)
		}
		if at == flow.Never {
			if at = r.sim.Next(); at == flow.Never {
				return fmt.Errorf("%d jobs wait for nothing at %v", len(r.waiting), r.sim.Now())
			}
		}
		ended := r.sim.Advance(at)
		now := r.sim.Now()
		for _, j := range ended {
			r.leave(r.number[j], now)
			delete(r.number, j)
		}
		for r.begins.Len() > 0 {
			if first, _ := r.begins.First(); first > now {
				break
			}
			_, job := r.begins.Pop()
			if err := r.begin(job); err != nil {
				return err
			}
		}
		for ; next < len(r.jobs) && r.jobs[next].Arrival <= now; next++ {
			r.waiting = append(r.waiting, next)
		}
		if err := r.admit(now); err != nil {
			return err
		}
	}
	return nil
}

// admit starts jobs from the head of the queue as long as there is room.
func (r *lumosRun) admit(now time.Duration) error {
	for len(r.waiting) > 0 {
		job := r.waiting[0]
		s, why := r.place(&r.jobs[job])
		if s == nil {
			if r.failed != job {
				r.failed = job
				if errors.Is(why, errNoPorts) {
					r.NoPorts++
				} else {
					r.NoRoom++
				}
			}
			if !errors.Is(why, sched.ErrNoRoom) && !errors.Is(why, errNoPorts) {
				return why
			}
			return nil
		}
		r.waiting = r.waiting[1:]
		r.seats[job], r.started[job] = s, now
		if len(s.placed.Wants) > 0 && r.setup > 0 {
			r.begins.Push(now+r.setup, job)
		} else if err := r.begin(job); err != nil {
			return err
		}
	}
	return nil
}

// begin lets a job that has its place run.
func (r *lumosRun) begin(job int) error {
	s, j := r.seats[job], &r.jobs[job]
	script := &flow.Script{Stages: []flow.Stage{{{Compute: j.Duration}}}, Iterations: 1}
	if j.servers > 0 {
		if err := r.elements(s, j); err != nil {
			return err
		}
		script = r.script(s, job, j, r.steps)
	}
	id, err := r.sim.Add(script)
	r.number[id] = job
	return err
}

// errNoPorts: servers are idle, and their links find no way.
var errNoPorts = errors.New("no links")

// place finds servers, and links between them.
func (r *lumosRun) place(j *lumosJob) (*seat, error) {
	if j.servers == 0 {
		return r.part(int(j.GPUs))
	}
	s := &seat{placed: sched.Placed{Job: j.sched()}}
	cluster := sched.Cluster{GPUsPerServer: gpusPerServer, Idle: make([][]int, r.pods)}
	for p := range r.pods {
		cluster.Idle[p] = r.idle[p*r.leaves : (p+1)*r.leaves]
	}
	var err error
	if s.placed.Shares, err = sched.Place(cluster, s.placed.Job); err != nil {
		return nil, err
	}
	if r.network == LumosCore {
		if err := r.links(s); err != nil {
			return nil, err
		}
	}
	for _, x := range s.placed.Shares {
		leaf := x.Pod*r.leaves + x.Leaf
		r.take(s, leaf, x.Servers)
	}
	if len(s.placed.Shares) > 0 && s.placed.Shares[0].Pod != s.placed.Shares[len(s.placed.Shares)-1].Pod {
		r.Across++
	}
	return s, nil
}

func (r *lumosRun) take(s *seat, leaf, servers int) {
	slots := r.slots[leaf]
	s.servers = append(s.servers, slots[len(slots)-servers:]...)
	r.slots[leaf] = slots[:len(slots)-servers]
	r.idle[leaf] -= servers
}

// links finds a job's links as the planner does: as many as its collective
// wants and its leaves' ports allow, over spines that have ports left.
func (r *lumosRun) links(s *seat) error {
	var running []sched.Placed
	for job := range r.jobs {
		if o := r.seats[job]; o != nil && len(o.placed.Wants) > 0 {
			running = append(running, o.placed)
		}
	}
	before, err := r.core.Need(running)
	if err != nil {
		return err
	}
	if s.placed.Wants, err = r.core.Wants(s.placed.Job, s.placed.Shares); err != nil || len(s.placed.Wants) == 0 {
		return err
	}
	if s.placed.Links, err = sched.Fit(s.placed.Wants, before.Ports(), r.core.Ports()); err != nil {
		return fmt.Errorf("%w: %v", errNoPorts, err)
	}
	need, err := r.core.Need(append(running, s.placed))
	if err != nil {
		return err
	}
	next, err := r.core.Respread(need, r.spread)
	if err != nil {
		return fmt.Errorf("%w: %v", errNoPorts, err)
	}
	for n, w := range s.placed.Wants {
		r.Asked += w.Links()
		r.Granted += s.placed.Links[n]
	}
	r.count(before, next)
	r.spread = next
	r.lay(s, next)
	return nil
}

// count adds up the paths of jobs that run and stay on their spines, and those
// that do not.
func (r *lumosRun) count(running wiring.Topology, next wiring.Spread) {
	all, kept := 0, 0
	for _, l := range running.Links {
		all += int(l.Count)
	}
	of := map[[2]int32]bool{}
	for _, l := range running.Links {
		of[[2]int32{l.I, l.J}] = true
	}
	for h, t := range r.spread.Spine {
		was := map[[2]int32]int32{}
		for _, l := range t.Links {
			was[[2]int32{l.I, l.J}] = l.Count
		}
		for _, l := range next.Spine[h].Links {
			if pair := [2]int32{l.I, l.J}; of[pair] {
				kept += int(min(l.Count, was[pair]))
			}
		}
	}
	r.Kept += kept
	r.Moved += all - kept
}

// part finds room in a server for a job that does not fill one: in the fullest
// that it fits, else in an idle one.
func (r *lumosRun) part(gpus int) (*seat, error) {
	best := -1
	for server, left := range r.shared { // any order: the fullest, of those the first
		if left >= gpus && (best < 0 || left < r.shared[best] || left == r.shared[best] && server < best) {
			best = server
		}
	}
	s := &seat{}
	if best < 0 {
		for leaf, idle := range r.idle {
			if idle > 0 && (best < 0 || idle < r.idle[best]) {
				best = leaf
			}
		}
		if best < 0 {
			return nil, sched.ErrNoRoom
		}
		r.take(s, best, 1)
		best = s.servers[0]
		r.shared[best] = gpusPerServer
	}
	s.servers = []int{best}
	r.shared[best] -= gpus
	return s, nil
}

// leave frees what a job has.
func (r *lumosRun) leave(job int, now time.Duration) {
	s, j := r.seats[job], &r.jobs[job]
	r.ended[job] = now
	delete(r.seats, job)
	if j.servers == 0 {
		server := s.servers[0]
		if r.shared[server] += int(j.GPUs); r.shared[server] < gpusPerServer {
			return
		}
		delete(r.shared, server)
	}
	for _, server := range s.servers {
		leaf := server / r.leafServer
		r.slots[leaf] = append(r.slots[leaf], server)
		r.idle[leaf]++
	}
	r.release(s.paths)
	r.lift(s)
}

func (r *lumosRun) sum() LumosRun {
	var jct []int64
	var slow []float64
	var run, wait int64
	for i := range r.jobs {
		run += (r.ended[i] - r.started[i]).Milliseconds()
		wait += (r.started[i] - r.jobs[i].Arrival).Milliseconds()
		jct = append(jct, (r.ended[i] - r.jobs[i].Arrival).Milliseconds())
		slow = append(slow, float64(r.ended[i]-r.started[i]-r.jobs[i].Duration)/float64(r.jobs[i].Duration))
	}
	n := int64(len(r.jobs))
	slices.Sort(jct)
	slices.Sort(slow)
	out := r.LumosRun
	out.JRT, out.JWT, out.JCT, out.JCTP99 = run/n, wait/n, (run+wait)/n, quantile(jct, 990)
	out.Slow = LumosSlow{quantile(slow, 500), quantile(slow, 900), quantile(slow, 990)}
	return out
}
