package study

import (
	"fmt"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/model"
	"ringlight/planner/topo"
	"ringlight/sim/flow"
)

// The shared cluster of [TOPO] sec 5.6: 432 servers, a Fat-tree of 72 edge
// switches with six servers each; jobs of 16 servers.
const (
	sharedLeaves, sharedPerLeaf = 72, 6
	sharedDegree, sharedGbps    = 8, 100
	sharedServers               = 16
	sharedHorizon               = int64(400 * time.Millisecond) // that every job runs at least, alone
)

// sharedJobs are the loads of Fig. 16: 20 to 100 %.
var sharedJobs = []int{5, 10, 15, 20, 27}

// sharedModels are the models with the sizes of [TOPO] List 1 for that section,
// and how many of ten jobs each is.
func sharedModels() []sharedModel {
	dense := func(n, size int) model.Layer {
		return model.Layer{Kind: model.Dense, Count: n, Inputs: size, Outputs: size}
	}
	dlrm, bert, candle := *model.Named("dlrm"), *model.Named("bert"), *model.Named("candle")
	dlrm.BatchPerGPU = 256
	dlrm.Layers = []model.Layer{dense(8, 1024), dense(16, 2048)}
	dlrm.Embeddings = []model.Embedding{{Count: 16, Rows: 10_000_000, Dimension: 256}}
	bert.Layers = []model.Layer{{Kind: model.Dense, Count: 1, Inputs: 30522, Outputs: 512}, {Kind: model.Block, Count: 6, Hidden: 768, Sequence: 256}}
	candle.Layers = []model.Layer{dense(24, 4096)}
	return []sharedModel{{model: &dlrm, of10: 4}, {model: &bert, of10: 3}, {model: &candle, of10: 2}, {model: model.Named("vgg"), of10: 1}}
}

type sharedModel struct {
	model *model.Model
	of10  int
	times
	groups  []topo.Group
	demands []topo.Demand
}

// TopologyShared is iterations on the shared cluster at a load.
type TopologyShared struct {
	Jobs    int     `json:"jobs"`
	Network string  `json:"network"`
	MeanMS  float64 `json:"iteration_mean_ms"`
	P99MS   float64 `json:"iteration_p99_ms"`
}

// The networks of the shared cluster.
const (
	NetDirect  = "direct links"
	NetFatTree = "Fat-tree of equal cost"
	NetApart   = "the same, no flows meet"
	NetOversub = "2:1 Fat-tree"
	NetIdeal   = "Ideal"
)

var sharedNetworks = []string{NetDirect, NetFatTree, NetApart, NetOversub, NetIdeal}

func (c TopologyConfig) shared(report func()) ([]*TopologyShared, error) {
	models := sharedModels()
	var ten []*sharedModel
	c.Servers, c.ShareLayers = sharedServers, false
	for i := range models {
		m := &models[i]
		ten = append(ten, slices.Repeat([]*sharedModel{m}, m.of10)...)
		hand, err := c.byHand(m.model, sharedDegree)
		if err != nil {
			return nil, err
		}
		if m.times, err = c.timed(m.model, hand, sharedDegree, sharedGbps); err != nil {
			return nil, err
		}
		if m.groups, m.demands, err = m.model.Traffic(c.cluster(), hand.Strategy); err != nil {
			return nil, err
		}
	}
	var out []*TopologyShared
	for _, jobs := range sharedJobs {
		times := map[string][]float64{}
		for run := range c.Shared {
			rnd := detmath.Stream(c.Seed+uint64(run), uint64(jobs))
			drawn := make([]*sharedModel, jobs)
			for i := range drawn {
				drawn[i] = ten[rnd.Below(len(ten))]
				times[NetDirect] = append(times[NetDirect], msOf(drawn[i].random))
				times[NetApart] = append(times[NetApart], msOf(drawn[i].fatTree))
				times[NetIdeal] = append(times[NetIdeal], msOf(drawn[i].ideal))
			}
			servers := packed(sharedLeaves * sharedPerLeaf)
			rnd.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
			for network, rate := range map[string][2]int64{NetFatTree: {equalCost(sharedDegree, sharedGbps), sharedPerLeaf}, NetOversub: {sharedDegree * sharedGbps * 1e9, sharedPerLeaf / 2}} { // any order: each has its own list
				ms, err := together(drawn, servers, rate[0], int(rate[1]), c.Seed+uint64(run))
				if err != nil {
					return nil, err
				}
				times[network] = append(times[network], ms...)
			}
		}
		for _, network := range sharedNetworks {
			list := times[network]
			slices.Sort(list)
			sum := 0.0
			for _, v := range list {
				sum += v
			}
			out = append(out, &TopologyShared{jobs, network, sum / float64(len(list)), list[(99*len(list)+99)/100-1]})
		}
		report()
	}
	return out, nil
}

// together runs the jobs at the same time on a Fat-tree by flows, each on the
// next 16 servers of the list, by ECMP, and gives the mean iteration of each.
func together(jobs []*sharedModel, servers []int, bitPerS int64, uplinks int, seed uint64) ([]float64, error) {
	net, err := flow.NewLeafSpine(sharedLeaves, uplinks, sharedPerLeaf, 1, uplinks, bitPerS, bitPerS)
	if err != nil {
		return nil, err
	}
	sim, err := flow.New(net.Capacities(), flow.Rounds)
	if err != nil {
		return nil, err
	}
	iterations := make([]int64, len(jobs))
	for i, m := range jobs {
		placed := &flow.Placed{GPUs: servers[i*sharedServers : (i+1)*sharedServers], Route: net.ECMP(seed, i)}
		stages := []flow.Stage{{{Compute: time.Duration(m.random.Compute)}}}
		for _, exchanges := range [][]flow.Exchange{rings(m.groups), {sent(m.demands, min(1, len(m.demands)))}} {
			rounds, err := placed.Rounds(exchanges)
			if err != nil {
				return nil, err
			}
			if len(rounds) > 0 {
				stages = append(stages, flow.Stage{{Rounds: rounds}})
			}
		}
		iterations[i] = sharedHorizon/m.ideal.Total() + 1
		if _, err := sim.Add(&flow.Script{Stages: stages, Iterations: iterations[i]}); err != nil {
			return nil, fmt.Errorf("%s: %w", m.model.Name, err)
		}
	}
	out := make([]float64, len(jobs))
	for sim.Live() > 0 {
		for _, j := range sim.Advance(sim.Next()) {
			out[j] = float64(sim.Now()) / 1e6 / float64(iterations[j])
		}
	}
	return out, nil
}

// rings are the rounds of AllReduce of groups that reduce side by side; here
// each model has one.
func rings(groups []topo.Group) []flow.Exchange {
	return each(groups, func(g topo.Group) flow.Exchange {
		return sent(onRings([]topo.Group{g}), 2*(len(g.Servers)-1))
	})
}

// sent is demands in so many rounds; 0: there is none.
func sent(demands []topo.Demand, times int) flow.Exchange {
	t := each(demands, func(d topo.Demand) flow.Transfer {
		return flow.Transfer{From: d.From, To: d.To, Bytes: d.Bytes / int64(times)}
	})
	return flow.Exchange{Transfers: t, Times: times}
}
