package study

import (
	"math/bits"
	"slices"
	"time"

	"ringlight/planner/isolate"
	"ringlight/planner/sched"
	"ringlight/planner/topo"
	"ringlight/sim/flow"
	"ringlight/sim/workload"
)

// house builds a system, empty, and the links on which its jobs meet; nil:
// none do.
func (c CompareConfig) house(cell CompareCell, jobs []workload.Job, talks []talk) (house, *flow.Sim, error) {
	price, _ := c.priced(cell.System) // Validate has asked
	base := leaves{perLeaf: c.Cluster.Uplinks / c.Cluster.GPUsPerServer, rates: price.rates(c), jobs: jobs, talks: talks, placed: map[int]isolate.Placement{}}
	core := c.Cluster.fixed()
	core.Links = nil // nobody owns one
	switch cell.System {
	case SystemVClos:
		core = c.Cluster.optical()
	case SystemIdeal:
		base.far = base.near
	case SystemLumosCore:
		return newPodHouse(c, base, cell.Seed)
	case SystemInfiniteHBD:
		return newRingHouse(c, base, cell.Seed)
	case SystemTopoOpt:
		return &direct{leaves: base.on(core), known: map[directKey][2]int64{}}, nil, nil
	case SystemBalanced, SystemECMP:
		name := map[string]string{SystemBalanced: StrategyBalanced, SystemECMP: StrategyECMP}[cell.System]
		traffic, err := newJCTTraffic(c.Cluster, base.rates, name, cell.Seed, flow.Fullest)
		if err != nil {
			return nil, nil, err
		}
		return &clos{base.on(core), traffic}, traffic.sim, nil
	}
	h := base.on(core)
	return &h, nil, nil
}

// leaves is jobs on leaves of servers, placed as planner/isolate does. As a
// house it is one in which no job meets another: a switch for all, or a core of
// which each job has its own part.
type leaves struct {
	rates
	perLeaf int // servers
	jobs    []workload.Job
	talks   []talk
	state   *isolate.State
	placed  map[int]isolate.Placement
}

func (h leaves) on(core isolate.Core) leaves {
	h.state = core.Empty()
	return h
}

func (h *leaves) place(job int) ([]int, isolate.Cause, error) {
	p, why := h.state.Place(int(h.jobs[job].GPUs))
	if why != isolate.Fits {
		return nil, why, nil
	}
	if err := h.state.Take(isolate.JobID(job), p); err != nil {
		return nil, why, err
	}
	h.placed[job] = p
	return each(p.Servers, func(s isolate.Server) int { return s.Leaf*h.perLeaf + s.Server }), why, nil
}

func (h *leaves) free(job int) {
	h.state.Release(isolate.JobID(job))
	delete(h.placed, job)
}

// outOfOrder begins the job numbers that stand for servers out of order.
const outOfOrder isolate.JobID = 1 << 31

func (h *leaves) withhold(server int, out bool) {
	id := outOfOrder + isolate.JobID(server)
	if !out {
		h.state.Release(id)
		return
	}
	p := isolate.Placement{Servers: []isolate.Server{{Leaf: server / h.perLeaf, Server: server % h.perLeaf, GPUs: h.perServer}}}
	if err := h.state.Take(id, p); err != nil {
		panic("study: invariant: nobody is on a server that is withheld: " + err.Error())
	}
}

func (h *leaves) circuits(job int) bool { return len(h.placed[job].Circuits) > 0 }

func (h *leaves) work(job int, steps int64) (*work, error) {
	t := &h.talks[job]
	return fixedWork(t, h.takes(t.parts), steps), nil
}

// fixedWork is steps in which nobody else has a part.
func fixedWork(t *talk, sends time.Duration, steps int64) *work {
	return &work{step: max(1, t.compute+sends), steps: steps}
}

// clos is a core that all jobs share.
type clos struct {
	leaves
	traffic *jctTraffic
}

func (h *clos) free(job int) {
	h.traffic.release(job)
	h.leaves.free(job)
}

func (h *clos) work(job int, steps int64) (*work, error) {
	t, p := &h.talks[job], h.placed[job]
	if p.L <= 1 || t.silent() {
		return h.leaves.work(job, steps)
	}
	placed := h.traffic.put(job, h.traffic.gpus(t.gpus, p))
	sc := &flow.Script{Iterations: steps, Stages: []flow.Stage{{{Compute: t.compute}}}}
	for _, p := range t.parts {
		if p.far == 0 {
			sc.Stages = append(sc.Stages, flow.Stage{{Compute: flow.TransferTime(p.near, h.near)}})
			continue
		}
		rounds, err := placed.Rounds(t.exchanges(p))
		if err != nil {
			return nil, err
		}
		sc.Stages = append(sc.Stages, flow.Stage{{Rounds: rounds}})
	}
	return &work{script: sc}, nil
}

// direct is TopoOpt: any idle servers, joined directly by planner/topo for what
// the job sends. Jobs share no link; an iteration takes as long as the fullest
// link of each phase ([TOPO] eq. 1).
type direct struct {
	leaves
	known map[directKey][2]int64 // what the fullest link has of either way
}

// directKey is a topology: servers, and what goes to each other GPU and what is
// reduced, the larger of them directUnit, with directDigits digits.
type directKey struct {
	servers int
	bytes   [2]int64
}

// Of the traffic for which a topology is found; chosen: finer ones give the same.
const (
	directUnit   = 1 << 20
	directDigits = 8
)

func (h *direct) circuits(job int) bool { return len(h.placed[job].Servers) > 1 }

func (h *direct) work(job int, steps int64) (*work, error) {
	t, n := &h.talks[job], len(h.placed[job].Servers)
	if t.silent() {
		return fixedWork(t, 0, steps), nil
	}
	key := directKey{servers: n}
	for way, bytes := range t.bytes {
		v := scaled(bytes, directUnit, slices.Max(t.bytes[:]))
		low := max(0, bits.Len64(uint64(v))-directDigits)
		key.bytes[way] = v >> low << low
	}
	fullest, err := h.fullest(key)
	if err != nil {
		return nil, err
	}
	var sends time.Duration
	for _, p := range t.parts {
		if p.far == 0 {
			sends += flow.TransferTime(p.near, h.near)
		}
	}
	for way, bytes := range t.bytes {
		if bytes > 0 {
			sends += flow.TransferTime(scaled(fullest[way], bytes, key.bytes[way]), h.far)
		}
	}
	return fixedWork(t, sends, steps), nil
}

// fullest finds a topology: a server has as many interfaces as GPUs, and both
// fibres of one end at the same peer where that can be.
func (h *direct) fullest(key directKey) (known [2]int64, err error) {
	if known, ok := h.known[key]; ok {
		return known, nil
	}
	r := topo.Request{Servers: key.servers, Degree: h.perServer, Bidirectional: h.perServer%2 == 0, Seed: 1}
	if bytes := key.bytes[reducing]; bytes > 0 {
		r.AllReduce = []topo.Group{{Servers: packed(key.servers), Bytes: 2 * int64(key.servers-1) * bytes}}
	}
	if bytes := key.bytes[exchanging]; bytes > 0 {
		r.MP = topo.AllToAll(key.servers, int64(h.perServer*h.perServer)*bytes)
	}
	found, err := topo.Find(r)
	if err != nil {
		return known, err
	}
	known = [2]int64{exchanging: found.FullestSend, reducing: found.FullestReduce}
	h.known[key] = known
	return known, nil
}

// podHouse is LumosCore: leaves in pods, and circuits between spines of pods
// that a job's collective wants, by planner/sched.
type podHouse struct {
	*pods
	at leaves // rates, and what its jobs are
}

func newPodHouse(c CompareConfig, base leaves, seed uint64) (house, *flow.Sim, error) {
	s := shape{network: LumosCore, gbps: int(base.far / 1e9), pods: c.Cluster.Leaves / c.PodLeaves, leaves: c.PodLeaves,
		spines: c.Cluster.Uplinks, leafServer: base.perLeaf, perServer: base.perServer}
	h := &podHouse{pods: newPods(s.net(seed)), at: base}
	h.counts = s.leafServer > 1
	sim, err := flow.New(h.capacity, flow.Fullest)
	return h, sim, err
}

func (h *podHouse) place(job int) ([]int, isolate.Cause, error) {
	j := lumosJob{Job: h.at.jobs[job], pp: 1, ep: 1, collective: links(h.at.jobs[job])}
	if int(j.GPUs) >= h.perServer {
		j.servers = (int(j.GPUs) + h.perServer - 1) / h.perServer
		j.dp = j.servers
	}
	return h.lodge(job, &j)
}

func (h *podHouse) work(job int, steps int64) (*work, error) {
	t, s := &h.at.talks[job], h.seats[job]
	if t.silent() {
		return fixedWork(t, 0, steps), nil
	}
	if err := h.elements(s); err != nil {
		return nil, err
	}
	gpus := gpusOf(s.of[0], h.perServer)
	sc := &flow.Script{Iterations: steps, Stages: []flow.Stage{{{Compute: t.compute}}}}
	far := int64(0)
	for _, p := range t.parts {
		stage := flow.Stage{{Compute: flow.TransferTime(p.near, h.at.near)}}
		switch {
		case p.far == 0:
		case p.way == reducing: // below
			far += p.far
			continue
		default:
			placed := flow.Placed{GPUs: gpus, Route: func(from, to int) ([]flow.Link, error) { return h.path(s, job, from, to), nil }}
			rounds, err := placed.Rounds(beyond(flow.AllToAll(t.gpus, inUnits(t.bytes[exchanging])), h.perServer))
			if err != nil {
				return nil, err
			}
			stage = append(stage, flow.Phase{Rounds: rounds})
		}
		sc.Stages = append(sc.Stages, stage)
	}
	if far > 0 { // what leaves a GPU goes by the collective of its rail
		of := links(h.at.jobs[job])
		if of == sched.AllToAll {
			of = sched.Ring
		}
		for _, r := range h.pods.reduce(s, job, of, inUnits(far)) {
			sc.Stages = append(sc.Stages, flow.Stage{{Rounds: []flow.Round{r}}})
		}
	}
	return &work{script: sc}, nil
}

// inUnits are bytes as the links of pods count them.
func inUnits(bytes int64) int64 { return (bytes*unit + 1e9 - 1) / 1e9 }

// beyond is what of exchanges leaves a server, or another group of so many
// ranks. A round of which nothing does is left out.
func beyond(exchanges []flow.Exchange, group int) (out []flow.Exchange) {
	for _, e := range exchanges {
		var far []flow.Transfer
		for _, x := range e.Transfers {
			if x.From/group != x.To/group {
				far = append(far, x)
			}
		}
		if len(far) > 0 {
			out = append(out, flow.Exchange{Transfers: far, Times: e.Times})
		}
	}
	return out
}
