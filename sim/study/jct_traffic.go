package study

import (
	"math/bits"
	"slices"
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
	rates
	unbarred bool // no barrier after each exchange: flow.Fullest
	cluster  JCTCluster
	strategy string
	seed     uint64
	net      *flow.LeafSpine
	sim      *flow.Sim
	balanced *flow.Balanced
	placed   map[int]*flow.Placed // jobs that run
}

func newJCTTraffic(c JCTCluster, r rates, strategy string, seed uint64, sharing flow.Sharing) (*jctTraffic, error) {
	net, err := flow.NewLeafSpine(c.Leaves, c.Spines, c.Uplinks, c.GPUsPerServer, c.Uplinks, r.far, r.near)
	if err != nil {
		return nil, err
	}
	sim, err := flow.New(net.Capacities(), sharing)
	if err != nil {
		return nil, err
	}
	return &jctTraffic{rates: r, unbarred: sharing == flow.Fullest, cluster: c, strategy: strategy, seed: seed, net: net, sim: sim, balanced: net.NewBalanced(seed), placed: map[int]*flow.Placed{}}, nil
}

// put is a job where it is, for the routes of its transfers, until it is released.
func (t *jctTraffic) put(job int, gpus []int) *flow.Placed {
	t.placed[job] = &flow.Placed{GPUs: gpus, Route: t.route(job)}
	return t.placed[job]
}

func (t *jctTraffic) release(job int) {
	if placed := t.placed[job]; placed != nil && t.strategy == StrategyBalanced {
		for _, p := range placed.Paths {
			t.balanced.Release(p)
		}
	}
	delete(t.placed, job)
}

// gpus of a placement in the order of ranks; a job uses as many as it asked
// for.
func (t *jctTraffic) gpus(n int, p isolate.Placement) (out []int) {
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
	steps := time.Duration(times)
	step := j.Duration / steps
	sc := &flow.Script{Iterations: int64(times), Stages: []flow.Stage{{{}}}}
	var talks time.Duration
	for _, c := range collectives(j, t.perServer) {
		target := step / workload.Shares * time.Duration(c.share)
		if target == 0 {
			continue
		}
		exchanges := c.of(sized(target, t.alone(placed.GPUs, c.of(probeBytes))))
		rounds, err := placed.Rounds(exchanges)
		if err != nil {
			return nil, err
		}
		talks += t.alone(placed.GPUs, exchanges)
		sc.Stages = append(sc.Stages, flow.Stage{{Rounds: rounds}})
	}
	sc.Stages[0][0].Compute = (j.Duration - talks*steps + steps - 1) / steps
	return sc, nil
}

// collective is what a share of a job's time goes to.
type collective struct {
	share int // of workload.Shares
	of    func(bytes int64) []flow.Exchange
}

// collectives of a job: between experts, each GPU so many bytes to each other,
// then of gradients, of which each GPU has so many bytes.
func collectives(j workload.Job, perServer int) [2]collective {
	n := int(j.GPUs)
	reduce := func(bytes int64) []flow.Exchange { return flow.HalvingDoubling(n, bytes) }
	if j.Pattern == workload.Ring || n&(n-1) != 0 {
		reduce = func(bytes int64) []flow.Exchange { return flow.Ring(n, bytes) }
		if n%perServer == 0 {
			reduce = func(bytes int64) []flow.Exchange { return flow.HierarchicalRing(n, perServer, bytes) }
		}
	}
	return [2]collective{{j.AllToAll(), func(bytes int64) []flow.Exchange { return flow.AllToAll(n, bytes) }}, {j.AllReduce(), reduce}}
}

// rates are of a GPU: to others of its server, and over the network.
type rates struct {
	perServer int
	near, far int64
}

// sized is the bytes that take a time, where probeBytes take another.
func sized(want, probe time.Duration) int64 {
	return max(1, scaled(probeBytes, int64(want), max(1, int64(probe))))
}

// alone is how long exchanges take on idle links, as the simulator shares them.
func (t *jctTraffic) alone(gpus []int, exchanges []flow.Exchange) time.Duration {
	if t.unbarred {
		return t.slowest(t.busiest(gpus, exchanges...))
	}
	return t.idle(gpus, exchanges)
}

// scaled is a x b / by, rounded down.
func scaled(a, b, by int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(by))
	return int64(q)
}

// idle is how long exchanges take when every transfer has its links to itself.
func (r rates) idle(gpus []int, exchanges []flow.Exchange) time.Duration {
	var total time.Duration
	for _, e := range exchanges {
		once := flow.Exchange{Transfers: e.Transfers, Times: 1}
		total += time.Duration(e.Times) * r.slowest(r.busiest(gpus, once))
	}
	return total
}

// busiest is the most bytes that one of the GPUs sends or gets in exchanges, within its
// server and beyond.
func (r rates) busiest(gpus []int, exchanges ...flow.Exchange) (near, far int64) {
	ports := make([][4]int64, len(gpus)) // what each sends and gets, near and far
	for _, e := range exchanges {
		for _, x := range e.Transfers {
			kind, most := 0, &near
			if gpus[x.From]/r.perServer != gpus[x.To]/r.perServer {
				kind, most = 2, &far
			}
			ports[x.From][kind] += x.Bytes * int64(e.Times)
			ports[x.To][kind+1] += x.Bytes * int64(e.Times)
			*most = max(*most, ports[x.From][kind], ports[x.To][kind+1])
		}
	}
	return near, far
}

// slowest is how long so many bytes of one GPU take, side by side.
func (r rates) slowest(near, far int64) time.Duration {
	return max(flow.TransferTime(far, r.far), flow.TransferTime(near, r.near))
}

// apart is by how much longer a job runs on these GPUs, with links of its own, than on
// those of as few servers as it fits, as its duration says.
func (r rates) apart(j workload.Job, gpus []int) (longer time.Duration) {
	if j.GPUs < 2 || j.Pattern == workload.Alone {
		return 0
	}
	near := packed(int(j.GPUs))
	slices.Sort(gpus)
	for _, c := range collectives(j, r.perServer) {
		want := j.Duration / workload.Shares * time.Duration(c.share)
		e := c.of(sized(want, r.idle(near, c.of(probeBytes))))
		if want > 0 {
			longer += r.idle(gpus[:j.GPUs], e) - r.idle(near, e)
		}
	}
	return longer
}
