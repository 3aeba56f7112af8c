package study

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/planner/sched"
	"ringlight/planner/wiring"
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
	*timeline
	LumosRun
	jobs    []lumosJob
	steps   int
	setup   time.Duration
	waiting []int // FIFO
	failed  int   // head that was counted, or -1
	seats   map[int]*seat
	spread  wiring.Spread
	idle    []int       // servers of a leaf
	slots   [][]int     // of a leaf: idle servers
	shared  map[int]int // server with small jobs: GPUs left
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
		seats: map[int]*seat{}, shared: map[int]int{}}
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
	sim, err := flow.New(r.capacity, flow.Rounds)
	var arrivals []time.Duration
	for _, j := range jobs {
		arrivals = append(arrivals, j.Arrival)
	}
	r.timeline = newTimeline(r, arrivals, sim)
	return r, err
}

func (r *lumosRun) come(job int) error {
	r.waiting = append(r.waiting, job)
	return nil
}

// seat starts jobs from the head of the queue as long as there is room.
func (r *lumosRun) seat(time.Duration) (out []seated, err error) {
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
				return nil, why
			}
			return out, nil
		}
		r.waiting = r.waiting[1:]
		r.seats[job] = s
		start := seated{job: job, work: func() (*work, error) { return r.work(job) }}
		if len(s.placed.Wants) > 0 {
			start.setup = r.setup
		}
		out = append(out, start)
	}
	return out, nil
}

// work is what a job does that has its place.
func (r *lumosRun) work(job int) (*work, error) {
	s, j := r.seats[job], &r.jobs[job]
	if j.servers == 0 {
		return &work{step: j.Duration, steps: 1}, nil
	}
	if err := r.elements(s, j); err != nil {
		return nil, err
	}
	return &work{script: r.script(s, job, j, r.steps)}, nil
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
func (r *lumosRun) leave(job int) {
	s, j := r.seats[job], &r.jobs[job]
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
		run += r.ran(i).Milliseconds()
		wait += r.waited(i).Milliseconds()
		jct = append(jct, (r.ran(i) + r.waited(i)).Milliseconds())
		slow = append(slow, float64(r.ran(i)-r.jobs[i].Duration)/float64(r.jobs[i].Duration))
	}
	n := int64(len(r.jobs))
	slices.Sort(jct)
	slices.Sort(slow)
	out := r.LumosRun
	out.JRT, out.JWT, out.JCT, out.JCTP99 = run/n, wait/n, (run+wait)/n, quantile(jct, 990)
	out.Slow = LumosSlow{quantile(slow, 500), quantile(slow, 900), quantile(slow, 990)}
	return out
}
