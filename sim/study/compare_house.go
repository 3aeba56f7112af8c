package study

import (
	"time"

	"ringlight/planner/isolate"
	"ringlight/sim/flow"
	"ringlight/sim/workload"
)

// house builds a system, empty, and the links on which its jobs meet; nil:
// none do.
func (c CompareConfig) house(cell CompareCell, jobs []workload.Job, talks []talk) (house, *flow.Sim, error) {
	price, err := c.priced(cell.System)
	if err != nil {
		return nil, nil, err
	}
	base := leaves{cluster: c.Cluster, rates: price.rates(c), jobs: jobs, talks: talks, placed: map[int]isolate.Placement{}}
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
		traffic, err := newJCTTraffic(c.Cluster, base.rates, name, cell.Seed, flow.Fullest.String())
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
	cluster JCTCluster
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
	return each(p.Servers, func(s isolate.Server) int { return s.Leaf*h.perLeaf() + s.Server }), why, nil
}

func (h *leaves) perLeaf() int { return h.cluster.Uplinks / h.perServer }

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
	p := isolate.Placement{Servers: []isolate.Server{{Leaf: server / h.perLeaf(), Server: server % h.perLeaf(), GPUs: h.perServer}}}
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
	placed := h.traffic.placed(job, t.gpus, p)
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
	h.traffic.keep(job, placed)
	return &work{script: sc}, nil
}
