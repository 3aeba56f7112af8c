package study

import (
	"fmt"
	"slices"
	"time"

	"ringlight/sim/flow"
	"ringlight/sim/trace"
)

// The cluster of the faults' part, all chosen: TP-32 on rings of 8 nodes of 4
// GPUs, a leaf a ring for what goes between rings.
const (
	faultRings   = 32
	ringNodes    = 8
	ringsPerJob  = 8
	ringGbps     = 3200 // a way, of a node's bundle
	nodeGbps     = 400
	tpMegabytes  = 4000 // that a node reduces in its ring, an iteration
	dpMegabytes  = 1000 // between rings, half of it beside backward
	faultForward = 200 * time.Millisecond
	maxFaultDays = 3650
	maxReload    = 24 * time.Hour
)

// FaultsConfig is what a lost node costs.
type FaultsConfig struct {
	Days   int           `flag:"days" usage:"days of faults that jobs on rings live through; 0: none"`
	Spares int           `flag:"spares" usage:"spare nodes on the rings"`
	Bypass time.Duration // for which a ring is dark that goes around a node
	Reload time.Duration // from when a job has all its nodes again until it goes on
	Trace  *trace.Trace  // nil: the built-in generator's
}

func (c FaultsConfig) validate() error {
	if c.Spares < 0 || c.Spares > faultRings {
		return invalid("spares", fmt.Sprintf("0 to %d, one a ring", faultRings), "%d is out of range", c.Spares)
	}
	return within(span{"days", c.Days, 0, maxFaultDays}, span{"bypass-us", int(c.Bypass.Microseconds()), 0, int(time.Minute.Microseconds())},
		span{"reload-s", int(c.Reload.Seconds()), 0, int(maxReload.Seconds())})
}

// FlowsFaults is all jobs over all faults.
type FlowsFaults struct {
	Bypass     bool    `json:"bypass"`
	Nodes      int     `json:"nodes"`
	Jobs       int     `json:"jobs"`
	Faults     int     `json:"faults"` // of nodes that were well
	Iterations int64   `json:"iterations"`
	Ideal      int64   `json:"iterations_without_faults"`
	Lost       float64 `json:"lost_ratio"`
	DarkUS     int64   `json:"dark_us"`  // of rings whose jobs went on, all together
	WaitS      int64   `json:"wait_s"`   // of jobs for a node, all together
	ReloadS    int64   `json:"reload_s"` // of jobs that had all nodes again
}

// faultRun is one pass over the faults.
type faultRun struct {
	cfg    FaultsConfig
	bypass bool
	sim    *flow.Sim
	rings  *flow.Rings
	jobs   []faultJob
	light  []time.Duration // per ring, when it is around a lost node; Never: it is not dark
	seat   []int           // per node the ring it serves, -1: none
	spares []int           // nodes that are well and serve nowhere
	queue  []int           // rings that lack a node, the longest first
	out    FlowsFaults
}

type faultJob struct {
	id     flow.Job
	lacks  int           // nodes; in a ring that cannot go around, any lost one
	since  time.Duration // when it began to wait or to reload
	resume time.Duration // when it has reloaded, Never: it runs or waits
}

// play lays the trace over the jobs. With bypass, a ring goes around a lost
// node and a spare takes its place; without, the ring waits for the repair.
func (c FaultsConfig) play(seed uint64, bypass bool) (*FlowsFaults, error) {
	r := &faultRun{cfg: c, bypass: bypass}
	period, err := r.build()
	if err != nil {
		return nil, err
	}
	t := c.Trace
	if t == nil {
		t = trace.Generate(seed)
	}
	end := min(t.Span, time.Duration(c.Days)*24*time.Hour)
	for _, e := range t.Nodes(len(r.seat), seed, end) {
		r.until(e.At)
		switch {
		case e.Before == trace.None && e.After != trace.None:
			r.lose(e.Node)
		case e.Before != trace.None && e.After == trace.None:
			r.repaired(e.Node)
		}
	}
	r.until(end)
	for k := range r.jobs {
		r.account(&r.jobs[k], end)
		r.out.Iterations += r.sim.Progress(r.jobs[k].id).Iterations
		r.out.Ideal += int64(end / period)
	}
	r.out.Bypass, r.out.Nodes, r.out.Jobs = bypass, len(r.seat), len(r.jobs)
	r.out.Lost = 1 - float64(r.out.Iterations)/float64(r.out.Ideal)
	return &r.out, nil
}

// build makes rings, leaves and jobs, and tells how long an iteration takes.
func (r *faultRun) build() (time.Duration, error) {
	const members = faultRings * ringNodes
	rings := make([][]int, faultRings)
	for n := range members + r.cfg.Spares {
		ring := n / ringNodes
		r.seat = append(r.seat, ring)
		if n >= members {
			ring = n - members
			r.seat[n] = -1
			r.spares = append(r.spares, n)
		}
		rings[ring] = append(rings[ring], n)
	}
	net, err := flow.NewLeafSpine(faultRings, ringNodes, ringNodes, 1, ringNodes, nodeGbps*1e9, nodeGbps*1e9)
	if err != nil {
		return 0, err
	}
	capacity := net.Capacities()
	if r.rings, err = flow.NewRings(rings, ringGbps*1e9, flow.Link(len(capacity))); err != nil {
		return 0, err
	}
	capacity = append(capacity, r.rings.Capacities()...)
	if r.sim, err = flow.New(capacity, flow.Rounds); err != nil {
		return 0, err
	}
	var period time.Duration
	for first := 0; first < faultRings; first += ringsPerJob {
		stages, err := r.stages(net, first)
		if err != nil {
			return 0, err
		}
		if period, err = flow.Alone(capacity, stages); err != nil {
			return 0, err
		}
		id, err := r.sim.Add(&flow.Script{Stages: stages, Iterations: 1 << 50})
		if err != nil {
			return 0, err
		}
		r.jobs = append(r.jobs, faultJob{id: id, resume: flow.Never})
	}
	r.light = slices.Repeat([]time.Duration{flow.Never}, len(rings))
	return period, nil
}

// stages of the job on the rings from first on: tensor parallel in each ring,
// gradients between the nodes of one place of all rings.
func (r *faultRun) stages(net *flow.LeafSpine, first int) ([]flow.Stage, error) {
	const n = ringsPerJob * ringNodes
	nodes := packed(first*ringNodes + n)[first*ringNodes:]
	inner := flow.HierarchicalRing(n, ringNodes, tpMegabytes*1e6)
	tensor, err := (&flow.Placed{GPUs: nodes, Route: r.rings.Route}).Rounds([]flow.Exchange{inner[0], inner[2]})
	if err != nil {
		return nil, err
	}
	outer := flow.HierarchicalRing(n, ringNodes, dpMegabytes*1e6)[1]
	grads, err := (&flow.Placed{GPUs: nodes, Route: net.Source(func(_, port int) int { return port })}).Rounds([]flow.Exchange{outer})
	if err != nil {
		return nil, err
	}
	return flow.Iteration(faultForward, 2*faultForward, []flow.Phase{{Rounds: tensor}}, flow.Phase{Rounds: grads}, 1, 2), nil
}

// until goes on to a time, over all that reloads end and rings get light.
func (r *faultRun) until(to time.Duration) {
	for {
		at := min(to, slices.Min(r.light))
		for k := range r.jobs {
			at = min(at, r.jobs[k].resume)
		}
		r.sim.Advance(at)
		for k := range r.jobs {
			if j := &r.jobs[k]; j.resume <= at {
				r.account(j, at)
				j.resume = flow.Never
				r.sim.Resume(j.id)
			}
		}
		for ring, t := range r.light {
			if t <= at {
				r.lit(ring, true)
			}
		}
		if at == to {
			return
		}
	}
}

// lit gives a ring light, or takes it for as long as going around takes.
func (r *faultRun) lit(ring int, on bool) {
	rate := int64(0)
	r.light[ring] = r.sim.Now() + r.cfg.Bypass
	if on {
		rate, r.light[ring] = ringGbps*1e9, flow.Never
	}
	for _, l := range r.rings.Links(ring) {
		if err := r.sim.SetCapacity(l, rate); err != nil {
			panic("study: invariant: a ring's link: " + err.Error())
		}
	}
}

// account adds what a job has waited, or reloaded, to the sums.
func (r *faultRun) account(j *faultJob, now time.Duration) {
	switch s := int64((now - j.since) / time.Second); {
	case j.lacks > 0:
		r.out.WaitS += s
	case j.resume < flow.Never:
		r.out.ReloadS += s
	}
	j.since = now
}

func (r *faultRun) job(ring int) *faultJob { return &r.jobs[ring/ringsPerJob] }

// lack stops a ring's job, or keeps it stopped, for the want of a node.
func (r *faultRun) lack(ring int) {
	j := r.job(ring)
	r.account(j, r.sim.Now())
	j.lacks++
	j.resume = flow.Never
	r.sim.Stop(j.id)
}

// has gives a ring's job a node, and lets it reload when it has all.
func (r *faultRun) has(ring int) {
	j := r.job(ring)
	r.account(j, r.sim.Now())
	if j.lacks--; j.lacks == 0 {
		j.resume = r.sim.Now() + r.cfg.Reload
	}
}

// ringOf a node, where its fibres are.
func (r *faultRun) ringOf(node int) int {
	if members := faultRings * ringNodes; node >= members {
		return node - members
	}
	return node / ringNodes
}

func (r *faultRun) lose(node int) {
	r.out.Faults++
	if !r.bypass {
		r.lack(r.ringOf(node))
		return
	}
	if at := r.ringOf(node); r.cfg.Bypass > 0 {
		if r.seat[node] < 0 {
			r.out.DarkUS += r.cfg.Bypass.Microseconds()
		}
		r.lit(at, false)
	}
	ring := r.seat[node]
	r.seat[node] = -1
	if ring < 0 {
		r.spares = slices.DeleteFunc(r.spares, func(s int) bool { return s == node })
		return
	}
	r.lack(ring)
	r.queue = append(r.queue, ring)
	r.seatSpares()
}

func (r *faultRun) repaired(node int) {
	if !r.bypass {
		r.has(r.ringOf(node))
		return
	}
	r.spares = append(r.spares, node)
	r.seatSpares()
}

// seatSpares gives spares to the rings that wait, the longest first.
func (r *faultRun) seatSpares() {
	for len(r.queue) > 0 && len(r.spares) > 0 {
		ring, node := r.queue[0], r.spares[0]
		r.queue, r.spares = r.queue[1:], r.spares[1:]
		r.seat[node] = ring
		r.has(ring)
	}
}
