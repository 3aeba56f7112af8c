package study

import (
	"ringlight/planner/isolate"
	"ringlight/planner/sched"
	"ringlight/sim/flow"
)

// podHouse is LumosCore: leaves in pods, and circuits between spines of pods
// that a job's collective wants, by planner/sched.
type podHouse struct {
	*pods
	at leaves // rates, and what its jobs are
}

func newPodHouse(c CompareConfig, base leaves, seed uint64) (house, *flow.Sim, error) {
	s := shape{network: LumosCore, gbps: int(base.far / 1e9), pods: c.Cluster.Leaves / c.PodLeaves, leaves: c.PodLeaves,
		spines: c.Cluster.Uplinks, leafServer: base.perLeaf(), perServer: base.perServer}
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
