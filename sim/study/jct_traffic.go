package study

import (
	"math/bits"
	"time"

	"ringlight/planner/isolate"
	"ringlight/sim/flow"
	"ringlight/sim/workload"
)

// serverFaster is how much faster GPUs of one server reach each other than
// over the network, as in the public simulator of [VCLOS].
const serverFaster = 10

// probeBytes is what the time of a collective is measured with before it is
// scaled; chosen: large enough that rounding does not show.
const probeBytes = 1 << 30

// jctTraffic is the way of jobs through a shared core.
type jctTraffic struct {
	cluster  JCTCluster
	strategy string
	seed     uint64
	net      *flow.LeafSpine
	sim      *flow.Sim
	balanced *flow.Balanced
	paths    map[int][][]flow.Link // of jobs that run
}

func newJCTTraffic(c JCTCluster, strategy string, seed uint64, name string) (*jctTraffic, error) {
	sharing, err := flow.ParseSharing(name)
	if err != nil {
		return nil, err
	}
	rate := int64(c.Gbps) * 1e9
	net, err := flow.NewLeafSpine(c.Leaves, c.Spines, c.Uplinks, c.GPUsPerServer, c.Uplinks, rate, serverFaster*rate)
	if err != nil {
		return nil, err
	}
	sim, err := flow.New(net.Capacities(), sharing)
	if err != nil {
		return nil, err
	}
	return &jctTraffic{cluster: c, strategy: strategy, seed: seed, net: net, sim: sim, balanced: net.NewBalanced(seed), paths: map[int][][]flow.Link{}}, nil
}

// placed is a job where it is, for the routes of its transfers.
func (t *jctTraffic) placed(job, gpus int, p isolate.Placement) *flow.Placed {
	return &flow.Placed{GPUs: t.gpus(gpus, p), Route: t.route(job)}
}

// keep notes the ways that a job has got, until it is released.
func (t *jctTraffic) keep(job int, placed *flow.Placed) { t.paths[job] = placed.Paths }

func (t *jctTraffic) release(job int) {
	if t.strategy == StrategyBalanced {
		for _, p := range t.paths[job] {
			t.balanced.Release(p)
		}
	}
	delete(t.paths, job)
}

// gpus of a placement in the order of ranks; a job uses as many as it asked
// for.
func (t *jctTraffic) gpus(n int, p isolate.Placement) []int {
	var out []int
	for _, s := range p.Servers {
		for g := range s.GPUs {
			out = append(out, s.Leaf*t.cluster.Uplinks+s.Server*t.cluster.GPUsPerServer+g)
		}
	}
	return out[:n]
}

func (t *jctTraffic) route(job int) flow.Route {
	switch t.strategy {
	case StrategySR:
		return t.net.Source(func(_, port int) int { return port })
	case StrategyBalanced:
		return t.balanced.Route
	}
	return t.net.ECMP(t.seed, job)
}

// script is a job that computes, meets for its experts and then for its
// gradients, in so many steps, and takes its duration when no link of it is
// shared.
func (t *jctTraffic) script(j workload.Job, placed *flow.Placed, times int) (*flow.Script, error) {
	n, steps := int(j.GPUs), time.Duration(times)
	step := j.Duration / steps
	reduce := func(bytes int64) []flow.Exchange { return flow.HalvingDoubling(n, bytes) }
	if j.Pattern == workload.Ring || n&(n-1) != 0 {
		reduce = func(bytes int64) []flow.Exchange { return flow.Ring(n, bytes) }
		if n%t.cluster.GPUsPerServer == 0 {
			reduce = func(bytes int64) []flow.Exchange {
				return flow.HierarchicalRing(n, t.cluster.GPUsPerServer, bytes)
			}
		}
	}
	sc := &flow.Script{Iterations: int64(times), Stages: []flow.Stage{{{}}}}
	var talks time.Duration
	for _, c := range []struct {
		share int
		of    func(bytes int64) []flow.Exchange
	}{{j.AllToAll(), func(bytes int64) []flow.Exchange { return flow.AllToAll(n, bytes) }}, {j.AllReduce(), reduce}} {
		target := step / workload.Shares * time.Duration(c.share)
		if target == 0 {
			continue
		}
		exchanges := c.of(scaled(probeBytes, target, t.idle(placed.GPUs, c.of(probeBytes))))
		rounds, err := placed.Rounds(exchanges)
		if err != nil {
			return nil, err
		}
		talks += t.idle(placed.GPUs, exchanges)
		sc.Stages = append(sc.Stages, flow.Stage{{Rounds: rounds}})
	}
	sc.Stages[0][0].Compute = (j.Duration - talks*steps + steps - 1) / steps
	return sc, nil
}

// scaled is bytes x want / took, at least one.
func scaled(bytes int64, want, took time.Duration) int64 {
	hi, lo := bits.Mul64(uint64(bytes), uint64(want))
	q, _ := bits.Div64(hi, lo, uint64(max(took, 1)))
	return max(1, int64(q))
}

// idle is how long exchanges take when every transfer has its links to itself.
func (t *jctTraffic) idle(gpus []int, exchanges []flow.Exchange) time.Duration {
	server := int64(t.cluster.GPUsPerServer)
	rate := int64(t.cluster.Gbps) * 1e9
	var total time.Duration
	for _, e := range exchanges {
		var far, near int64 // most bytes of one transfer
		for _, x := range e.Transfers {
			if int64(gpus[x.From])/server == int64(gpus[x.To])/server {
				near = max(near, x.Bytes)
			} else {
				far = max(far, x.Bytes)
			}
		}
		total += time.Duration(e.Times) * max(transferTime(far, rate), transferTime(near, serverFaster*rate))
	}
	return total
}

// transferTime is rounded up, as the flow simulator does.
func transferTime(bytes, rate int64) time.Duration {
	hi, lo := bits.Mul64(uint64(bytes)*8, uint64(time.Second))
	q, rest := bits.Div64(hi, lo, uint64(rate))
	if rest > 0 {
		q++
	}
	return time.Duration(q)
}
