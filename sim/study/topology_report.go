package study

import (
	"fmt"
	"slices"
	"strings"

	"ringlight/planner/topo"
)

// TopologyCost is the network's cost of one server, in dollars.
type TopologyCost struct {
	Degree  int     `json:"degree"`
	Gbps    int     `json:"gbps"`
	Panel   int     `json:"patch_panel"`
	OCS     int     `json:"ocs"`
	Ideal   int     `json:"ideal"`
	FatTree float64 `json:"fat_tree_of_equal_cost_gbps"`
}

// TopologyResult is the experiments.
type TopologyResult struct {
	Study  string            `json:"study"`
	Hops   []*TopologyHops   `json:"hops"`
	Costs  []TopologyCost    `json:"costs"`
	Jobs   []*TopologyJob    `json:"models"`
	Sweep  []*TopologyBatch  `json:"batches"`
	Shared []*TopologyShared `json:"shared"`
	Report
}

// Topology runs the experiments of [TOPO] sec 5.
func Topology(c TopologyConfig) (*TopologyResult, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	out := &TopologyResult{Study: "topology", Hops: []*TopologyHops{}, Costs: []TopologyCost{}, Jobs: []*TopologyJob{}, Sweep: []*TopologyBatch{}, Shared: []*TopologyShared{}}
	of, done := len(c.Degrees)*(2+len(c.Models)+len(c.Batches)), 0
	if c.Shared > 0 {
		of += len(sharedJobs)
	}
	step := func() { done++; c.report(done, of) }
	for _, d := range c.Degrees {
		for _, method := range []topo.Method{topo.Totient, topo.Random} {
			h, err := c.hops(d, method)
			if err != nil {
				return nil, err
			}
			out.Hops = append(out.Hops, h)
			step()
		}
		for _, gbps := range c.Gbps {
			panel := directCost(d, gbps, false)
			out.Costs = append(out.Costs, TopologyCost{d, gbps, panel, directCost(d, gbps, true), idealCost(d, gbps), float64(fatTreeMbps(panel)) / 1000})
		}
		for _, m := range c.Models {
			jobs, err := c.job(m, d)
			if err != nil {
				return nil, err
			}
			out.Jobs = append(out.Jobs, jobs...)
			step()
		}
		for _, b := range c.Batches {
			row, err := c.batch(d, b)
			if err != nil {
				return nil, err
			}
			out.Sweep = append(out.Sweep, row)
			step()
		}
	}
	if c.Shared > 0 {
		var err error
		if out.Shared, err = c.shared(step); err != nil {
			return nil, err
		}
	}
	out.describe(c)
	return out, nil
}

// Table is every experiment, one row a case.
func (r *TopologyResult) Table() Table {
	t := Table{Columns: []string{"experiment", "case", "Fat-tree", "totient", "random", "Ideal", "ratio"}}
	for i := 0; i+1 < len(r.Hops); i += 2 {
		a, b := r.Hops[i], r.Hops[i+1]
		t.add("hops, mean", fmt.Sprintf("d %d", a.Degree), "", decimals(a.Mean, 3), decimals(b.Mean, 3), "1", "")
		t.add("least link below fullest", fmt.Sprintf("d %d", a.Degree), "", percent(a.LeastBelow, 0), percent(b.LeastBelow, 0), "", "")
		for k := range a.Tax {
			t.add("bandwidth tax", fmt.Sprintf("d %d, all-to-all %s", a.Degree, percent(a.Tax[k].Ratio, 0)), "", decimals(a.Tax[k].Tax, 3), decimals(b.Tax[k].Tax, 3), "1", "")
		}
	}
	for _, c := range r.Costs {
		t.add("cost of a server, $; OCS/panel", fmt.Sprintf("d %d, %d Gb/s", c.Degree, c.Gbps), decimals(c.FatTree, 1)+" Gb/s", c.Panel, c.Panel, c.Ideal, decimals(float64(c.OCS)/float64(c.Panel), 3))
	}
	for _, j := range r.Jobs {
		t.add("iteration, ms; gain", fmt.Sprintf("%s, d %d, %d Gb/s, %s", j.Model, j.Degree, j.Gbps, j.Division), decimals(j.FatTree, 1), decimals(j.Totient, 1), decimals(j.Random, 1), decimals(j.Ideal, 1), decimals(j.Gain, 2))
	}
	for _, b := range r.Sweep {
		t.add("DLRM all-to-all, ms; gain", fmt.Sprintf("d %d, batch %d, all-to-all %s", b.Degree, b.Batch, percent(b.Ratio, 0)), decimals(b.FatTree, 1), decimals(b.Totient, 1), decimals(b.Random, 1), decimals(b.Ideal, 1), decimals(b.FatTree/b.direct(), 2))
	}
	for _, s := range r.Shared {
		t.add("432 servers, mean and p99 ms", fmt.Sprintf("%d jobs, %s", s.Jobs, s.Network), "", "", decimals(s.MeanMS, 1), "", decimals(s.P99MS, 1))
	}
	return t
}

// Charts draws the gains, the sweep and the shared cluster.
func (r *TopologyResult) Charts() (out []Chart) {
	for _, division := range []string{ByHand, Searched} {
		for _, j := range r.Jobs {
			if j.Division == division && j.Degree == r.Jobs[0].Degree {
				c := panelOf(&out, "Fat-tree against direct links, model divided: "+division, Chart{XLabel: fmt.Sprintf("Gb/s of each of %d interfaces, logarithmic", j.Degree), YLabel: "iteration, Fat-tree / direct", XLog: true})
				c.point(j.Model, float64(j.Gbps), j.Gain)
			}
		}
	}
	for _, b := range r.Sweep {
		c := panelOf(&out, fmt.Sprintf("DLRM, a table a server, %d interfaces", b.Degree), Chart{XLabel: "batch of a GPU, logarithmic", XLog: true, YLabel: "iteration, ms"})
		c.point("Fat-tree", float64(b.Batch), b.FatTree)
		c.point("totient", float64(b.Batch), b.Totient)
		c.point("random", float64(b.Batch), b.Random)
		c.point("Ideal", float64(b.Batch), b.Ideal)
	}
	for _, s := range r.Shared {
		panelOf(&out, "432 servers shared by jobs", Chart{XLabel: "jobs of 16 servers", YLabel: "iteration, ms, mean"}).point(s.Network, float64(s.Jobs), s.MeanMS)
	}
	return out
}

// topoGains are [TOPO] sec 5.3: Fat-tree / TopoOpt and TopoOpt / Ideal, means
// over bandwidths at degree 4.
var topoGains = []struct {
	model       string
	gain, ideal float64
}{{"CANDLE", 2.8, 0}, {"VGG16", 2.8, 0}, {"BERT", 3, 0}, {"DLRM", 2.8, 1.3}, {"NCF", 2.1, 1.7}}

func (r *TopologyResult) describe(c TopologyConfig) {
	r.Title = fmt.Sprintf("Direct links, %d servers", c.Servers)
	r.note("%d servers of %d GPUs; direct links are bidirectional; a ring of AllReduce runs both ways", c.Servers, c.GPUsPerServer)
	r.note("iteration: compute, then the fullest link by AllReduce, then by the rest, nothing overlapped ([TOPO] eq. 1); a dense layer takes 0.15 ms and its FLOP at 71e12/s forward, 1.9 times that backward")
	r.note("by hand: data parallel, tables shared out evenly; searched: annealing of 4,000 proposals, on direct links in turn with the topology; layers shared among servers: %v", c.ShareLayers)
	r.note("Fat-tree of equal cost: a host's bandwidth at which full bisection costs what patch panels do, prices of [TOPO] Table 2 on straight lines; Ideal: all of d x B")
	if c.Shared > 0 {
		r.note("432 servers: Fat-trees by flows (sim/flow, rounds) on 72 leaves of 6 servers, ECMP, servers drawn by chance, %d draws; direct links share nothing, so an iteration is that of the job alone", c.Shared)
	}
	for _, h := range r.Hops {
		paper := map[int]string{4: "5.7", 8: "3"}[h.Degree]
		if paper == "" || c.Servers != 128 {
			continue
		}
		why := "jumps 1, 3, 11, 37 by Alg. 3; the paper gives one digit"
		if h.Degree == 4 {
			why = fmt.Sprintf("jumps 1 and 11 by Alg. 3; 1 and 13 would give %s, 1 and 9 %s, no second jump 5.7", decimals(regularHops(c.Servers, 1, 13), 2), decimals(regularHops(c.Servers, 1, 9), 2))
		}
		if h.Method == topo.Random {
			why = "random rings, swapped while hops become fewer; Moore's bound is 3.43 at d 4 and 2.43 at d 8"
		}
		r.compare(fmt.Sprintf("hops, mean, d %d, %s", h.Degree, h.Method), decimals(h.Mean, 2), paper, why)
		below := map[int]string{4: "39 %", 8: "59 %"}[h.Degree]
		r.compare(fmt.Sprintf("least link below the fullest, d %d, %s", h.Degree, h.Method), percent(h.LeastBelow, 0), below, "ways are levelled by weights over the whole table; the paper's are not")
		for _, x := range h.Tax {
			paper := map[string]string{"4 0.03": "1.11", "8 0.03": "1.05", "4 0.8": "3.03"}[fmt.Sprint(h.Degree, x.Ratio)]
			if paper != "" {
				r.compare(fmt.Sprintf("bandwidth tax, all-to-all %s, d %d, %s", percent(x.Ratio, 0), h.Degree, h.Method), decimals(x.Tax, 2), paper, "follows from hops: (1 + ratio x hops) / (1 + ratio)")
			}
		}
	}
	r.describeCosts()
	r.describeJobs(c)
	r.describeSweep()
	r.describeShared()
}

// regularHops is the mean distance by bidirectional rings of these jumps.
func regularHops(servers int, jumps ...int) float64 {
	sum := sumOf(topo.CoinChangeMod(servers, jumps, true).Count, func(n int) int { return n })
	return float64(sum) / float64(servers-1)
}

func (r *TopologyResult) describeCosts() {
	var ocs, ideal float64
	n := 0.0
	for _, x := range r.Costs {
		if x.Degree == 4 && x.Gbps == 100 || x.Degree == 8 && x.Gbps == 200 {
			ocs, ideal, n = ocs+float64(x.OCS)/float64(x.Panel), ideal+float64(x.Ideal)/float64(x.Panel), n+1
		}
	}
	if n == 2 {
		r.compare("cost OCS / patch panel, mean of d 4 at 100 and d 8 at 200 Gb/s", decimals(ocs/n, 2), "1.33", "one NIC price for two interfaces")
		r.compare("cost Ideal / direct, the same", decimals(ideal/n, 2), "3.2", "one NIC a host for Ideal, links side by side")
	}
}

// describeJobs says for each figure which input would make it the paper's.
func (r *TopologyResult) describeJobs(c TopologyConfig) {
	for _, p := range topoGains {
		var gain, ideal, n float64
		at100 := map[string]*TopologyJob{}
		for _, j := range r.Jobs {
			if j.Model != p.model || j.Degree != 4 {
				continue
			}
			if j.Division == ByHand {
				gain, ideal, n = gain+j.Gain, ideal+j.OverIdeal, n+1
			}
			if j.Gbps == 100 {
				at100[j.Division] = j
			}
		}
		hand, searched := at100[ByHand], at100[Searched]
		if hand == nil {
			continue
		}
		ours := func(of func(*TopologyJob) float64, mean float64) string {
			return fmt.Sprintf("%s at 100 Gb/s (searched %s), mean %s", decimals(of(hand), 2), decimals(of(searched), 2), decimals(mean/n, 2))
		}
		r.compare(p.model+", Fat-tree / direct", ours(func(j *TopologyJob) float64 { return j.Gain }, gain), decimals(p.gain, 1), hand.otherInputs(p.gain))
		if p.ideal > 0 {
			r.compare(p.model+", direct / Ideal", ours(func(j *TopologyJob) float64 { return j.OverIdeal }, ideal), decimals(p.ideal, 1), hand.moreTables(p.ideal))
		}
	}
	if len(r.Jobs) > 0 && slices.Contains(c.Gbps, 10) {
		r.note("means are over all bandwidths: at 10 Gb/s patch panels cost more than a Fat-tree of 40 Gb/s a host, so that the Fat-tree of equal cost is the wider of the two")
	}
	if c.ShareLayers {
		r.note("searches share dense layers among up to 4 servers, which a Fat-tree gains from more than links of degree 4")
	}
}

// otherInputs says with which compute, or which Fat-tree, direct links would
// be faster by a ratio: gain = (compute + wider*network) / (compute + network).
func (j *TopologyJob) otherInputs(gain float64) string {
	wider := float64(j.Degree*j.Gbps) / j.FatTreeGbps
	network := j.direct() - j.ComputeMS
	text := fmt.Sprintf("bandwidth of %s to 1, compute of %s in %s ms; the paper's figure is that of ", decimals(wider, 2), decimals(j.ComputeMS, 0), decimals(j.direct(), 0))
	if gain < wider {
		text += decimals(network*(wider-gain)/(gain-1), 0) + " ms of compute, or "
	}
	needs := (float64(gain*j.direct()) - j.ComputeMS) / network
	return text + fmt.Sprintf("a Fat-tree of %s Gb/s a host where equal cost gives %s", decimals(float64(j.Degree*j.Gbps)/needs, 0), decimals(j.FatTreeGbps, 0))
}

// moreTables says with how many times the bytes of tables direct links would be
// slower than Ideal by a ratio.
func (j *TopologyJob) moreTables(ratio float64) string {
	rest := j.ComputeMS + j.ReduceMS
	sent := j.Ideal - rest // on Ideal; AllReduce takes as long on both
	text := fmt.Sprintf("tables take %s of %s ms by direct links", decimals(j.SendMS, 1), decimals(j.Random, 1))
	// (rest + x*direct) / (rest + x*sent) = ratio
	if over := j.SendMS - float64(ratio*sent); over > 0 {
		text += fmt.Sprintf("; the paper's figure is that of %s times the bytes", decimals((ratio-1)*rest/over, 1))
	}
	return text
}

func (r *TopologyResult) describeSweep() {
	for _, b := range r.Sweep {
		if b.Degree != 4 {
			continue
		}
		switch b.Batch {
		case 128:
			r.compare("DLRM all-to-all, batch 128, d 4: Fat-tree / direct", decimals(b.FatTree/b.direct(), 2), "2.7", "compute of all layers is in both; the network alone is 2.95")
		case 2048:
			why := fmt.Sprintf("all-to-all is %s of AllReduce by our count of bytes, 80 %% by the paper's; random rings take fewer hops", percent(b.Ratio, 0))
			r.compare("DLRM all-to-all, batch 2048, d 4: direct by totient / Fat-tree", decimals(b.Totient/b.FatTree, 2), "1.1", why)
			r.compare("the same by random rings", decimals(b.Random/b.FatTree, 2), "1.1", why)
		}
	}
	x := firstOf(r.Costs, func(c TopologyCost) bool { return c.Degree == 4 && c.Gbps == sweepGbps })
	for _, h := range r.Hops {
		if h.Degree == 4 && x != nil {
			fat := 1.8 * 4 * sweepGbps / x.FatTree
			r.compare(fmt.Sprintf("eq. 1 without compute at 80 %%, d 4, %s: direct / Fat-tree", h.Method), decimals((1+float64(0.8*h.Slowdown))/fat, 2), "1.1", fmt.Sprintf("all-to-all takes %s times as long as on links without hops", decimals(h.Slowdown, 2)))
		}
	}
}

// repositoryMeans are direct links' own means at the loads, as published beside
// [TOPO].
var repositoryMeans = []float64{64.4, 70.6, 63.1, 61.4, 60.4}

func (r *TopologyResult) describeShared() {
	if len(r.Shared) == 0 {
		return
	}
	loads := len(r.Shared) / len(sharedNetworks)
	at := func(load int, network string) *TopologyShared {
		return r.Shared[load*len(sharedNetworks)+slices.Index(sharedNetworks, network)]
	}
	mean := func(value func(load int) float64) string {
		sum := 0.0
		for l := range loads {
			sum += value(l)
		}
		return decimals(sum/float64(loads), 2)
	}
	gain := func(network string) func(int) float64 {
		return func(l int) float64 { return at(l, network).MeanMS / at(l, NetDirect).MeanMS }
	}
	tail := func(network string) func(int) float64 {
		return func(l int) float64 { return at(l, network).P99MS / at(l, NetDirect).P99MS }
	}
	slower := func(l int) float64 {
		return (at(l, NetFatTree).MeanMS-at(l, NetDirect).MeanMS)/repositoryMeans[l] + 1
	}
	own := each(packed(loads), func(l int) string { return decimals(at(l, NetDirect).MeanMS, 1) })
	full := loads - 1
	r.compare("432 servers, mean over loads: Fat-tree / direct", mean(gain(NetFatTree)), "1.7",
		fmt.Sprintf("collisions: %s if no flows met; compute: %s with as much more as brings direct links to the published means", mean(gain(NetApart)), mean(slower)))
	r.compare("the same, 2:1 Fat-tree / direct", mean(gain(NetOversub)), "1.15", "one way a pair of servers, by a hash; its hosts have all of d x B")
	r.compare("432 servers, p99 at full load: Fat-tree / direct", decimals(tail(NetFatTree)(full), 2), "3.4", "ours is of jobs' mean iterations, which smooths; the paper's of iterations")
	r.compare("the same, mean over loads", mean(tail(NetFatTree)), "3", "the same")
	r.compare("the same, 2:1 Fat-tree / direct", mean(tail(NetOversub)), "1.4", "the same")
	r.compare("direct links alone, mean ms at 5 .. 27 jobs", strings.Join(own, " "), "64.4 70.6 63.1 61.4 60.4", "compute: ours is 0.15 ms a layer and 71e12 FLOP/s, and the mix is drawn")
	r.compare("direct links alone, p99 ms at full load", decimals(at(full, NetDirect).P99MS, 1), "131.5", "VGG16's iteration, whichever the load; compute again")
}
