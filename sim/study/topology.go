package study

import (
	"fmt"
	"slices"

	"ringlight/planner/model"
	"ringlight/planner/topo"
)

// TopologyConfig is the experiments of [TOPO] sec 5.
type TopologyConfig struct {
	Servers       int   `flag:"servers" usage:"servers of a job"`
	GPUsPerServer int   `flag:"gpus" usage:"GPUs of a server"`
	Degrees       []int `flag:"degree" usage:"interfaces of a server"`
	Gbps          []int `flag:"gbps" usage:"bandwidth of an interface, Gb/s"`
	Models        []*model.Model
	Batches       []int `flag:"batch" usage:"batches of the all-to-all sweep"`
	Shared        int   `flag:"shared" usage:"times that jobs are drawn on 432 shared servers; 0: not run"`
	ShareLayers   bool  `flag:"share-layers" usage:"searches may share dense layers among servers"`
	Drawn
}

// DefaultTopology is the paper's: 128 servers of four GPUs.
func DefaultTopology() TopologyConfig {
	return TopologyConfig{Servers: 128, GPUsPerServer: 4, Degrees: []int{4, 8}, Gbps: topoGbps(), Models: each([]string{"candle", "vgg", "bert", "dlrm", "ncf", "resnet50", "gpt-moe"}, model.Named),
		Batches: []int{64, 128, 256, 512, 1024, 2048}, Shared: 5, Drawn: Drawn{Seed: 1}}
}

// Validate checks the sizes.
func (c TopologyConfig) Validate() error {
	if err := within(span{"servers", c.Servers, 4, 512}, span{"gpus", c.GPUsPerServer, 1, 64}, span{"shared", c.Shared, 0, 100}); err != nil {
		return err
	}
	if len(c.Degrees) == 0 || len(c.Gbps) == 0 {
		return invalid("degree", "one degree and one bandwidth or more", "none given")
	}
	for _, d := range c.Degrees {
		if d < 2 || d > topo.MaxDegree || d%2 != 0 {
			return invalid("degree", fmt.Sprintf("2 to %d, even: links are bidirectional", topo.MaxDegree), "%d is not", d)
		}
	}
	for _, g := range c.Gbps {
		if !slices.Contains(topoGbps(), g) {
			return invalid("gbps", fmt.Sprintf("speeds with a price, %v", topoGbps()), "%d has none", g)
		}
	}
	for _, b := range c.Batches {
		if err := within(span{"batch", b, 1, 1 << 16}); err != nil {
			return err
		}
	}
	return nil
}

// serverMemory is what weights of a server may take: four A100 of 40 GB.
const serverMemory = 160 << 30

func (c TopologyConfig) cluster() model.Cluster {
	return model.Cluster{Servers: c.Servers, GPUsPerServer: c.GPUsPerServer, ServerBytes: serverMemory, ShareLayers: c.ShareLayers}
}

// TopologyHops is the distance of servers, and what all-to-all traffic beside
// AllReduce costs.
type TopologyHops struct {
	Degree     int           `json:"degree"`
	Method     topo.Method   `json:"method"`
	Mean       float64       `json:"hops_mean"`
	Max        int           `json:"hops_max"`
	Tax        []TopologyTax `json:"tax"`
	LeastBelow float64       `json:"least_link_below_fullest_ratio"` // of all-to-all alone
	Slowdown   float64       `json:"slowdown_ratio"`                 // of all-to-all against links without hops: alpha of eq. 1
}

// TopologyTax is the bandwidth tax at a ratio of all-to-all to AllReduce.
type TopologyTax struct {
	Ratio float64 `json:"mp_to_allreduce_ratio"`
	Tax   float64 `json:"tax_ratio"`
}

// topoRatios are the paper's axis, in percent.
var topoRatios = []int64{3, 5, 10, 20, 40, 80}

func (c TopologyConfig) hops(degree int, method topo.Method) (*TopologyHops, error) {
	const each = 1 << 20 // bytes of a pair for each percent
	pairs := int64(c.Servers) * int64(c.Servers-1)
	out := &TopologyHops{Degree: degree, Method: method, Tax: []TopologyTax{}}
	for _, percent := range topoRatios {
		r := topo.Request{Servers: c.Servers, Degree: degree, Bidirectional: true, Method: method, Seed: c.Seed,
			AllReduce: []topo.Group{{Servers: packed(c.Servers), Bytes: 100 * each * pairs}}, MP: topo.AllToAll(c.Servers, percent*each)}
		t, err := topo.Find(r)
		if err != nil {
			return nil, err
		}
		out.Tax = append(out.Tax, TopologyTax{float64(percent) / 100, float64(t.Carried) / float64(t.Asked)})
		if percent > topoRatios[0] {
			continue
		}
		// With few bytes besides, all interfaces are for rings.
		least := t.LeastSent(r.MP)
		out.Mean, out.Max = float64(t.Hops.Sum)/float64(t.Hops.Pairs), t.Hops.Max
		out.LeastBelow = 1 - float64(least)/float64(t.FullestSend)
		out.Slowdown = float64(t.FullestSend) * float64(degree) / float64(percent*each*int64(c.Servers-1))
	}
	return out, nil
}

// TopologyTimes are those of one iteration, in milliseconds.
type TopologyTimes struct {
	FatTree float64 `json:"fat_tree_ms"` // of equal cost
	Totient float64 `json:"totient_ms"`
	Random  float64 `json:"random_ms"`
	Ideal   float64 `json:"ideal_ms"`
}

// direct is the better of the two methods.
func (t TopologyTimes) direct() float64 { return min(t.Totient, t.Random) }

// TopologyJob is one model alone on a cluster.
type TopologyJob struct {
	Model       string  `json:"model"`
	Division    string  `json:"division"` // by hand (data parallel, tables shared out) or searched
	Degree      int     `json:"degree"`
	Gbps        int     `json:"gbps"`
	FatTreeGbps float64 `json:"fat_tree_gbps"` // of a host
	ComputeMS   float64 `json:"compute_ms"`
	ReduceMS    float64 `json:"allreduce_ms"` // on direct links by random rings
	SendMS      float64 `json:"mp_ms"`
	TopologyTimes
	Gain      float64 `json:"fat_tree_to_direct_ratio"`
	OverIdeal float64 `json:"direct_to_ideal_ratio"`
}

// The two ways to divide a model.
const (
	ByHand   = "by hand"
	Searched = "searched"
)

func msOf(t model.Time) float64 { return float64(t.Total()) / 1e6 }

// times are those of one iteration, as in TopologyTimes.
type times struct{ fatTree, totient, random, ideal model.Time }

func (t times) ms() TopologyTimes {
	return TopologyTimes{msOf(t.fatTree), msOf(t.totient), msOf(t.random), msOf(t.ideal)}
}

// wired is a model divided by hand on direct links of either method.
type wired struct {
	model.Strategy
	totient, random *model.Plan
}

func (c TopologyConfig) byHand(m *model.Model, degree int) (out wired, err error) {
	if out.Strategy, err = model.Start(m, c.cluster()); err != nil {
		return out, err
	}
	if out.totient, err = model.Wire(m, c.cluster(), out.Strategy, c.wiring(degree, 100, topo.Totient)); err != nil {
		return out, err
	}
	out.random, err = model.Wire(m, c.cluster(), out.Strategy, c.wiring(degree, 100, topo.Random))
	return out, err
}

func (c TopologyConfig) wiring(degree, gbps int, method topo.Method) model.Wiring {
	return model.Wiring{Degree: degree, Bidirectional: true, Method: method, Bits: int64(gbps) * 1e9, Seed: c.Seed}
}

// at is the time of a plan with other links.
func at(p *model.Plan, gbps int) model.Time { return p.At(int64(gbps) * 1e9) }

// equalCost is the bandwidth of a host in a Fat-tree that costs what direct links do, bits
// a second.
func equalCost(degree, gbps int) int64 {
	return int64(fatTreeMbps(directCost(degree, gbps, false))) * 1e6
}

// timed is a model divided by hand on every network.
func (c TopologyConfig) timed(m *model.Model, hand wired, degree, gbps int) (t times, err error) {
	net := model.Switch{Servers: c.Servers}
	t.totient, t.random = at(hand.totient, gbps), at(hand.random, gbps)
	if t.fatTree, err = model.Evaluate(m, c.cluster(), hand.Strategy, net, equalCost(degree, gbps)); err == nil {
		t.ideal, err = model.Evaluate(m, c.cluster(), hand.Strategy, net, int64(degree*gbps)*1e9)
	}
	return t, err
}

// searched divides for each network by itself.
func (c TopologyConfig) searched(m *model.Model, degree, gbps int) (t times, err error) {
	net := model.Switch{Servers: c.Servers}
	if _, t.fatTree, err = model.Search(m, c.cluster(), net, equalCost(degree, gbps), c.Seed); err != nil {
		return t, err
	}
	if _, t.ideal, err = model.Search(m, c.cluster(), net, int64(degree*gbps)*1e9, c.Seed); err != nil {
		return t, err
	}
	totient, err := model.Alternate(m, c.cluster(), c.wiring(degree, gbps, topo.Totient))
	if err != nil {
		return t, err
	}
	random, err := model.Alternate(m, c.cluster(), c.wiring(degree, gbps, topo.Random))
	if err != nil {
		return t, err
	}
	t.totient, t.random = totient.Time, random.Time
	return t, nil
}

// job times one model at every bandwidth, divided by hand and searched.
func (c TopologyConfig) job(m *model.Model, degree int) ([]*TopologyJob, error) {
	hand, err := c.byHand(m, degree)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	var out []*TopologyJob
	for _, gbps := range c.Gbps {
		for _, division := range []string{ByHand, Searched} {
			t, err := c.timed(m, hand, degree, gbps)
			if division == Searched && err == nil {
				t, err = c.searched(m, degree, gbps)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
			j := &TopologyJob{Model: m.Name, Division: division, Degree: degree, Gbps: gbps, FatTreeGbps: float64(equalCost(degree, gbps)) / 1e9,
				ComputeMS: float64(t.random.Compute) / 1e6, ReduceMS: float64(t.random.Reduce) / 1e6, SendMS: float64(t.random.Send) / 1e6, TopologyTimes: t.ms()}
			j.Gain, j.OverIdeal = j.FatTree/j.direct(), j.direct()/j.Ideal
			out = append(out, j)
		}
	}
	return out, nil
}

// TopologyBatch is one point of the all-to-all sweep: DLRM with a table on each
// server.
type TopologyBatch struct {
	Degree int     `json:"degree"`
	Batch  int     `json:"batch_per_gpu"`
	Ratio  float64 `json:"mp_to_allreduce_ratio"`
	TopologyTimes
}

// sweepGbps is the bandwidth of [TOPO] Fig. 12.
const sweepGbps = 100

func (c TopologyConfig) batch(degree, batch int) (*TopologyBatch, error) {
	m := *model.Named("dlrm")
	m.BatchPerGPU = batch
	m.Embeddings = []model.Embedding{{Count: c.Servers, Rows: 10_000_000, Dimension: 128}}
	hand, err := c.byHand(&m, degree)
	if err != nil {
		return nil, err
	}
	groups, demands, err := m.Traffic(c.cluster(), hand.Strategy)
	if err != nil {
		return nil, err
	}
	reduced := sumOf(groups, func(g topo.Group) int64 { return g.Bytes })
	sent := sumOf(demands, func(d topo.Demand) int64 { return d.Bytes })
	t, err := c.timed(&m, hand, degree, sweepGbps)
	return &TopologyBatch{degree, batch, float64(sent) / float64(reduced), t.ms()}, err
}

// Prices of network components in dollars ([TOPO] Table 2).
type linkPrice struct{ gbps, transceiver, nic, port int }

var topoPrices = []linkPrice{{10, 20, 185, 94}, {25, 39, 185, 144}, {40, 39, 354, 144}, {100, 99, 678, 187}, {200, 198, 815, 374}}

const (
	panelPort = 100
	ocsPort   = 520
	oneByTwo  = 25
	fibre     = 150 // 30 cents a metre, 500 m in the mean ([TOPO] appendix G)
)

// topoGbps are the speeds that have prices.
func topoGbps() []int {
	return each(topoPrices, func(p linkPrice) int { return p.gbps })
}

// topoPrice is in cents, on straight lines between the speeds of the table, and
// beyond its ends on its first and last.
func topoPrice(gbps int) linkPrice {
	i := 1
	for i < len(topoPrices)-1 && topoPrices[i].gbps < gbps {
		i++
	}
	a, b := topoPrices[i-1], topoPrices[i]
	line := func(x, y int) int { return 100*x + 100*(y-x)*(gbps-a.gbps)/(b.gbps-a.gbps) }
	return linkPrice{gbps, line(a.transceiver, b.transceiver), line(a.nic, b.nic), line(a.port, b.port)}
}

// links is what a bill costs without a network card, in cents, with a
// transceiver at each end of copper too.
func (b bill) links(gbps int) int {
	p := topoPrice(gbps)
	return b.ports*p.port + (b.modules+2*b.cables)*p.transceiver + 100*((b.fibres+b.cables)*fibre+b.circuit*ocsPort+b.panel*panelPort+b.flips*oneByTwo)
}

// table2 is the whole bill in cents, one NIC price for two interfaces; 0: the
// table has no price for rings.
func (b bill) table2(gbps int) int {
	if b.rings > 0 {
		return 0
	}
	return b.links(gbps) + topoPrice(gbps).nic/2
}

// directCost is a server's share of direct links over patch panels, active and
// look-ahead, or over OCSes alone.
func directCost(degree, gbps int, ocs bool) int {
	b := bills[SystemTopoOpt]
	if ocs {
		b = bill{modules: 1, fibres: 1, circuit: 1}
	}
	return degree * b.table2(gbps) / 100
}

// fatTree is a host of a full-bisection Fat-tree of three tiers: five ports, and
// as many transceivers beside the NIC's, on three links.
var fatTree = bill{ports: 5, modules: 6, fibres: 3}

// idealCost is a server's share of a Fat-tree with its whole bandwidth: degree
// links side by side behind one NIC.
func idealCost(degree, gbps int) int {
	return (degree*fatTree.links(gbps) + topoPrice(gbps).nic) / 100
}

// fatTreeMbps is the bandwidth of a host in a full-bisection Fat-tree of equal
// cost, with prices on straight lines between those of the table and beyond the
// last.
func fatTreeMbps(dollars int) int {
	cost := func(p linkPrice) int { return idealCost(1, p.gbps) }
	at := 1
	for at < len(topoPrices)-1 && cost(topoPrices[at]) < dollars {
		at++
	}
	a, b := topoPrices[at-1], topoPrices[at]
	return 1000*a.gbps + int(1000*int64(b.gbps-a.gbps)*int64(dollars-cost(a))/int64(cost(b)-cost(a)))
}
