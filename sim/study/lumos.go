package study

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/sched"
	"ringlight/proto"
	"ringlight/sim/workload"
)

// The networks of [LUMOS] sec 6.2, as in results. All have chips of 25.6 Tb/s.
const (
	LumosCore = "lumoscore" // pods of two tiers at 1.6 Tb/s, circuits between them, tau 1
	LumosClos = "clos"      // three tiers of electrical switches, ports as fast as reach everybody
	LumosBest = "best"      // one ideal switch at 1.6 Tb/s
)

// lumosNetworks is the order of rows.
var lumosNetworks = []string{LumosBest, LumosCore, LumosClos}

// Ways through a Clos.
const (
	RouteBalanced = "balanced" // the way whose fullest link has fewest connections: probing
	RouteECMP     = "ecmp"     // by hash
	RouteIdeal    = "ideal"    // no two meet: only the rate of the ports is left
	RoutePlanned  = "planned"  // of circuits: those that a job was given, one after the other
)

// LumosInputs is what a comparison depends on.
type LumosInputs struct {
	GPUs     int    `json:"gpus_total" column:"gpus" flag:"gpus-total" usage:"GPUs of the cluster"`
	Workload string `json:"workload"`
	Load     int    `json:"load_mille"`
	Share    int    `json:"communication_mille"` // of what the models send
	EP       int    `json:"ep_max" flag:"ep" usage:"most GPUs of an expert parallel domain"`
	Setup    int    `json:"setup_ms" flag:"setup-ms" usage:"milliseconds until circuits and routes of a new job between pods are there"`
	Reduce   string `json:"collective" flag:"collective" usage:"of the replicas of a stage: ring, halving-doubling, double-tree or all-to-all"`
	Routing  string `json:"routing,omitempty" flag:"routing" usage:"of the Clos: balanced, ecmp or ideal"`
	Core     string `json:"core_routing,omitempty" flag:"core-routing" usage:"of LumosCore: planned (a job's own circuits), or over any between two pods: balanced, ecmp or ideal"`
	Rails    bool   `json:"rails,omitempty" flag:"rails" usage:"like-numbered GPUs of the servers of a pod are at one leaf"`
	Faults   int    `json:"gpu_faults,omitempty" flag:"gpu-faults" usage:"of 1,000 GPUs that fail in a year; a job goes back to its last iteration"`
	Gbps     int    `json:"clos_gbps,omitempty" table:"-"` // of the ports of the Clos; 0: what its chips allow
}

// LumosCase is a comparison; all but the first differ from it in one input.
type LumosCase struct {
	Name string `json:"case"`
	LumosInputs
}

// LumosConfig is jobs on networks of [LUMOS], case by case.
type LumosConfig struct {
	Cases []LumosCase
	Jobs  int            `flag:"jobs" usage:"jobs that the generator draws"`
	List  []workload.Job // of one's own, instead of a workload and its load
	Steps int            `flag:"steps" usage:"iterations of a job"`
	Runs  int            `flag:"runs" usage:"times that the jobs are drawn"`
	Seed  uint64
}

// Limits of the study; chosen: some times the paper's.
const (
	maxLumosGPUs  = 32768 // the most that circuit switches of 512 ports join
	maxLumosRuns  = 1000
	maxLumosSteps = 1000
)

// defaultLumosInputs are those of [LUMOS] sec 6.2 on 4,096 GPUs. Setup is what
// its Table 3 has for routes to converge; mirrors add a tenth of a second.
func defaultLumosInputs() LumosInputs {
	return LumosInputs{GPUs: 4096, Workload: "lumos", Load: 655, Share: 1000, EP: 64, Setup: 2400, Reduce: proto.CollectiveRing.String(), Routing: RouteBalanced, Core: RoutePlanned}
}

// DefaultLumos is the paper's comparison; ten iterations are those of its
// public simulator.
func DefaultLumos() LumosConfig {
	return LumosConfig{Cases: []LumosCase{{"base", defaultLumosInputs()}}, Jobs: 1000, Steps: 10, Runs: 3}
}

// Vary adds cases that differ from the first in one input each; a list of
// one's own has its load.
func (c *LumosConfig) Vary() {
	base := c.Cases[0].LumosInputs
	add := func(name string, change func(*LumosInputs)) {
		in := base
		if change(&in); in != base {
			c.Cases = append(c.Cases, LumosCase{name, in})
		}
	}
	for _, gpus := range []int{16384, 8192, 2048} {
		add(fmt.Sprintf("%d GPUs", gpus), func(in *LumosInputs) { in.GPUs = gpus })
	}
	if c.List == nil {
		add("load .755", func(in *LumosInputs) { in.Load = 755 })
		add("load .555", func(in *LumosInputs) { in.Load = 555 })
		add("Helios sizes", func(in *LumosInputs) { in.Workload = "helios" })
	}
	add("0.4 traffic", func(in *LumosInputs) { in.Share = in.Share * 2 / 5 })
	add("EP in a server", func(in *LumosInputs) { in.EP = gpusPerServer })
	add("EP to 32", func(in *LumosInputs) { in.EP = 32 })
	for _, of := range []proto.Collective{proto.CollectiveRing, proto.CollectiveHalvingDoubling, proto.CollectiveDoubleTree, proto.CollectiveAllToAll} {
		add(of.String(), func(in *LumosInputs) { in.Reduce = of.String() })
	}
	for _, way := range lumosWays {
		add("Clos "+way, func(in *LumosInputs) { in.Routing = way })
		add("circuits "+way, func(in *LumosInputs) { in.Core = way })
	}
	add(caseRails, func(in *LumosInputs) { in.Rails = true })
	for _, times := range []int{1, 4} {
		add(fmt.Sprintf("faults x%d", times), func(in *LumosInputs) { in.Faults = times * gpuFaults })
	}
	add(caseSameRate, func(in *LumosInputs) { in.Gbps = fastGbps })
	add("no setup", func(in *LumosInputs) { in.Setup = 0 })
}

// lumosWays are those of [LUMOS] Fig. 25: probing, by hash, and without contention.
var lumosWays = []string{RouteBalanced, RouteECMP, RouteIdeal}

const caseRails = "rails"

// caseSameRate leaves the ways of the Clos as the only difference.
const caseSameRate = "Clos at 1.6T"

// Validate names the flag that is not acceptable and what would be.
func (c LumosConfig) Validate() error {
	if err := within(span{"runs", c.Runs, 1, maxLumosRuns}, span{"steps", c.Steps, 1, maxLumosSteps}); err != nil {
		return err
	}
	if len(c.Cases) == 0 {
		return invalid("cases", "at least one", "none given")
	}
	for _, k := range c.Cases {
		if err := k.validate(); err != nil {
			return err
		}
		if c.List != nil {
			continue
		}
		w := workload.Config{Kind: k.Workload, Jobs: c.Jobs, Gap: time.Second}
		if err := w.Validate(); err != nil {
			return err
		}
	}
	return nil
}

func (in LumosInputs) validate() error {
	pod := lumosShape(LumosCore, in).podGPUs()
	big := lumosShape(LumosClos, in).podGPUs()
	if _, wrong := proto.ParseCollective(in.Reduce); wrong != nil {
		return wrong
	}
	switch {
	case in.GPUs < 2*big || in.GPUs > maxLumosGPUs || in.GPUs%pod != 0 || in.GPUs%big != 0:
		return invalid("gpus-total", fmt.Sprintf("%d to %d, a multiple of the %d and %d GPUs of a pod", 2*big, maxLumosGPUs, pod, big), "%d is not", in.GPUs)
	case in.Load < 1 || in.Load > 990:
		return invalid("load", "0.001 to 0.99", "%d thousandths are out of range", in.Load)
	case in.Share < 0 || in.Share > 2000:
		return invalid("communication", "0 to 2", "%d thousandths are out of range", in.Share)
	case in.EP < gpusPerServer || in.EP > pod || in.EP&(in.EP-1) != 0:
		return invalid("ep", fmt.Sprintf("a power of two from %d to %d, what a pod has", gpusPerServer, pod), "%d is not", in.EP)
	case in.Setup < 0 || in.Setup > 600_000:
		return invalid("setup-ms", "0 s to 10 minutes", "%d ms are out of range", in.Setup)
	case !slices.Contains(lumosWays, in.Routing):
		return invalid("routing", strings.Join(lumosWays, ", "), "%q is not", in.Routing)
	case in.Core != RoutePlanned && !slices.Contains(lumosWays, in.Core):
		return invalid("core-routing", RoutePlanned+", "+strings.Join(lumosWays, ", "), "%q is not", in.Core)
	case in.Faults < 0 || in.Faults > maxGPUFaults:
		return invalid("gpu-faults", fmt.Sprintf("0 to %d", maxGPUFaults), "%d is out of range", in.Faults)
	}
	return nil
}

// LumosCell is one simulation of the study.
type LumosCell struct {
	LumosInputs
	Network string
	Seed    uint64
}

// Cells are all simulations that differ. They share nothing, so that they may
// run side by side.
func (c LumosConfig) Cells() (out []LumosCell) {
	for _, k := range c.Cases {
		for _, network := range lumosNetworks {
			for run := range c.Runs {
				out = append(out, k.cell(network, c.Seed+uint64(run)))
			}
		}
	}
	return once(out)
}

// cell forgets inputs that a network does not have.
func (in LumosInputs) cell(network string, seed uint64) LumosCell {
	if network != LumosClos {
		in.Routing, in.Gbps = "", 0
	}
	if network != LumosCore {
		in.Setup, in.Core = 0, ""
	}
	if network == LumosBest { // by definition a job takes as long as it says
		in.Share, in.Reduce, in.Rails = 1000, proto.CollectiveRing.String(), false
	}
	return LumosCell{in, network, seed}
}

// gpusPerServer and TP are those of [LUMOS] sec 6.2: tensor parallel domains
// stay in a server.
const gpusPerServer = 8

// llms are the models of [LUMOS] sec 5 with the shares of their time, in ten
// thousandths, that gradients, experts and pipelines cannot hide, from its
// public simulator.
var llms = []struct {
	name                      string
	reduce, exchange, forward int64
}{
	{"PanguAlpha-6B", 737, 2580, 58},
	{"Llama-7B", 690, 2550, 77},
	{"Llama2-7B", 110, 520, 47},
	{"Llama2-13B", 17, 580, 34},
	{"GPT2-13B", 470, 1450, 63},
}

// lumosJob is a job of a run. What it sends is in ten thousandths of its
// duration on the ideal network.
type lumosJob struct {
	workload.Job
	servers                   int // 0: a part of one
	pp, dp, ep                int // ep in servers
	reduce, exchange, forward int64
	collective                sched.Collective // of the replicas
}

// drawLumos draws how each job is divided ([LUMOS]'s public simulator): a
// model of five, 4 to 32 stages, domains of 8 to 64 GPUs of experts, both at
// most what the job has and a divisor of it, and shares within a fifth of the
// model's.
func drawLumos(jobs []workload.Job, in LumosInputs, seed uint64) []lumosJob {
	const stream = 0x4c554d4f53
	r := detmath.Stream(seed, stream)
	reduce, _ := proto.ParseCollective(in.Reduce) // of the wire, whose numbers these are; Validate has asked
	return each(jobs, func(j workload.Job) lumosJob {
		model, pp, ep := llms[r.Below(len(llms))], 4<<r.Below(4), 1<<r.Below(4)
		times := func(share int64) int64 { return share * int64(800+r.Below(401)) * int64(in.Share) / 1_000_000 }
		k := lumosJob{Job: j, reduce: times(model.reduce), exchange: times(model.exchange), forward: times(model.forward), collective: sched.Collective(reduce)}
		if j.GPUs < gpusPerServer {
			return lumosJob{Job: j, collective: k.collective}
		}
		n := (int(j.GPUs) + gpusPerServer - 1) / gpusPerServer
		for pp > 1 && n%pp != 0 {
			pp /= 2
		}
		for ep > 1 && (n%ep != 0 || ep*gpusPerServer > in.EP) {
			ep /= 2
		}
		k.servers, k.pp, k.dp, k.ep = n, pp, n/pp, ep
		if k.dp == 1 {
			k.reduce = 0
		}
		if k.ep == 1 {
			k.exchange = 0
		}
		if k.pp == 1 {
			k.forward = 0
		}
		return k
	})
}

// lumosJobs are the jobs of a cell, the same for every network.
func (c LumosConfig) lumosJobs(cell LumosCell) []lumosJob {
	jobs := c.List
	if jobs == nil {
		jobs = workload.Draw(workload.Config{Kind: cell.Workload, Jobs: c.Jobs, Gap: 1000 * time.Second, Seed: cell.Seed})
		workload.AtLoad(jobs, cell.GPUs, cell.Load)
	}
	return drawLumos(jobs, cell.LumosInputs, cell.Seed)
}
