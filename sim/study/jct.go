package study

import (
	"fmt"
	"strings"
	"time"

	"ringlight/planner/isolate"
	"ringlight/proto"
	"ringlight/sim/flow"
	"ringlight/sim/workload"
)

// Strategies of [VCLOS] sec 9.3, as in results.
const (
	StrategyBest     = "best"     // one switch with a port for everybody: no job slows another
	StrategyVClos    = "vclos"    // isolated jobs on fixed links
	StrategyOCS      = "ocs"      // isolated jobs on circuits
	StrategySR       = "sr"       // a shared core, source routing
	StrategyBalanced = "balanced" // a shared core, the uplink with fewest connections
	StrategyECMP     = "ecmp"     // a shared core, by hash
	// StrategyRelax is isolated jobs on circuits on any GPUs, of whichever servers: what
	// GPUs of a server would say to each other goes over the network.
	StrategyRelax = "ocs-relax"
)

// Strategies is the order of rows.
var Strategies = []string{StrategyBest, StrategyVClos, StrategyOCS, StrategySR, StrategyBalanced, StrategyECMP, StrategyRelax}

// JCTCluster is a leaf-spine core, as fixed links and as circuits.
type JCTCluster struct {
	Leaves        int `json:"leaves"`
	Uplinks       int `json:"uplinks"` // of a leaf, and GPUs below it
	GPUsPerServer int `json:"gpus_per_server"`
	Spines        int `json:"spines"` // without optical switches
	Gbps          int `json:"gbps"`   // of a link
	OCS           struct {
		Spines   int  `json:"spines"`
		Switches int  `json:"switches"`
		AnyToAny bool `json:"any_to_any"` // a switch may join two leaves
	} `json:"ocs"`
}

// DefaultJCTCluster is the core of [VCLOS] sec 9.2: leaves of 32 GPUs in
// servers of 4 at 100 Gb/s. The optical side is that of its public simulator:
// a switch has one port of each leaf; for 16 leaves there are 8 spines of 64
// ports.
func DefaultJCTCluster(leaves int) JCTCluster {
	c := JCTCluster{Leaves: leaves, Uplinks: 32, GPUsPerServer: 4, Spines: 32, Gbps: 100}
	c.OCS.Spines, c.OCS.Switches, c.OCS.AnyToAny = leaves/2, 32, true
	return c
}

// ReadJCTCluster reads a cluster; what a file leaves out is as in the default.
func ReadJCTCluster(text []byte) (JCTCluster, error) {
	c := DefaultJCTCluster(16)
	if err := proto.DecodeFile(text, &c); err != nil {
		return c, invalid("cluster", "a JSON object of leaves, uplinks, gpus_per_server, spines, gbps and ocs", "%v", err)
	}
	return c, c.Validate()
}

// GPUsTotal of the cluster.
func (c JCTCluster) GPUsTotal() int { return c.Leaves * c.Uplinks }

func (c JCTCluster) rates() rates {
	return rates{c.GPUsPerServer, serverFaster * int64(c.Gbps) * 1e9, int64(c.Gbps) * 1e9}
}

// Validate names the field that is not acceptable and what would be.
func (c JCTCluster) Validate() error {
	if err := within([]span{
		{"cluster.leaves", c.Leaves, 1, isolate.MaxLeaves}, {"cluster.uplinks", c.Uplinks, 1, 256}, {"cluster.gpus_per_server", c.GPUsPerServer, 1, c.Uplinks},
		{"cluster.spines", c.Spines, 1, c.Uplinks}, {"cluster.gbps", c.Gbps, 1, 10_000},
		{"cluster.ocs.spines", c.OCS.Spines, 1, isolate.MaxSpines}, {"cluster.ocs.switches", c.OCS.Switches, 1, c.Uplinks},
	}...); err != nil {
		return err
	}
	for _, f := range []struct {
		name, limit string
		value, of   int
	}{
		{"uplinks", "a multiple of gpus_per_server", c.Uplinks, c.GPUsPerServer},
		{"uplinks", "a multiple of spines", c.Uplinks, c.Spines},
		{"uplinks", "a multiple of ocs.switches", c.Uplinks, c.OCS.Switches},
		{"leaves", "leaves x uplinks a multiple of ocs.spines x ocs.switches", c.GPUsTotal(), c.OCS.Spines * c.OCS.Switches},
	} {
		if f.value%f.of != 0 {
			return invalid("cluster."+f.name, f.limit, "%d is no multiple of %d", f.value, f.of)
		}
	}
	for _, core := range []isolate.Core{c.fixed(), c.optical()} {
		if err := core.Validate(); err != nil {
			return invalid("cluster", "a core that can be built", "%v", err)
		}
	}
	return nil
}

func (c JCTCluster) fixed() isolate.Core {
	return isolate.Clos(c.Leaves, c.Uplinks, c.GPUsPerServer, c.Spines)
}

func (c JCTCluster) optical() isolate.Core {
	core := isolate.Optical(c.Leaves, c.Uplinks, c.GPUsPerServer, c.OCS.Spines, c.OCS.Switches)
	core.Optics.AnyToAny = c.OCS.AnyToAny
	return core
}

// JCTConfig is jobs on a cluster by strategy, queue and mean gap.
type JCTConfig struct {
	Cluster    JCTCluster
	Workload   workload.Config // its Gap and Seed are those of Gaps and Runs
	List       []workload.Job  // of one's own, instead of the workload; arrivals as they are
	Name       string          // of the list
	Gaps       []time.Duration // mean between arrivals
	Strategies []string
	Queues     []string // isolate.Order by name
	Patience   int      `flag:"patience" usage:"times that a job is passed by later ones before it becomes the head; 0: no end"`
	Sharing    string   // of a shared core, flow.Sharing by name
	Steps      int      `flag:"steps" usage:"steps of compute and collectives that a job is cut into"`
	Runs       int      `flag:"runs" usage:"times that the jobs are drawn"`
	Seed       uint64
	Clock      Clock // of a decision
}

// Limits of the study; chosen: ten times the paper's.
const (
	maxJCTRuns     = 1000
	maxJCTSteps    = 1000
	maxJCTPatience = 1 << 30
)

// QueueOrders are the names of the orders of a queue.
func QueueOrders() (out []string) {
	for o := isolate.FIFO; o <= isolate.Conservative; o++ {
		out = append(out, o.String())
	}
	return out
}

// DefaultJCT is the paper's first row at a lambda of 120 s.
func DefaultJCT() JCTConfig {
	return JCTConfig{Cluster: DefaultJCTCluster(16), Workload: workload.Config{Kind: "w1", Jobs: 5000},
		Gaps: []time.Duration{120 * time.Second}, Strategies: Strategies, Queues: []string{isolate.FIFO.String()}, Patience: isolate.Patience,
		Sharing: flow.Rounds.String(), Steps: 1, Runs: 1}
}

// Validate names the flag that is not acceptable and what would be.
func (c JCTConfig) Validate() error {
	if err := c.Cluster.Validate(); err != nil {
		return err
	}
	if err := within(span{"runs", c.Runs, 1, maxJCTRuns}, span{"steps", c.Steps, 1, maxJCTSteps}); err != nil {
		return err
	}
	switch {
	case c.Patience < 0 || c.Patience > maxJCTPatience:
		return invalid("patience", fmt.Sprintf("0 (no end) to %d", maxJCTPatience), "%d is out of range", c.Patience)
	case len(c.Strategies) == 0 || len(c.Queues) == 0 || len(c.Gaps) == 0:
		return invalid("strategies", "at least one strategy, queue and lambda", "none given")
	}
	if err := someOf("strategies", c.Strategies, Strategies); err != nil {
		return err
	}
	if err := someOf("queue", c.Queues, QueueOrders()); err != nil {
		return err
	}
	if _, err := flow.ParseSharing(c.Sharing); err != nil {
		return invalid("sharing", "one of "+strings.Join(flow.Sharings(), ", "), "%q is not", c.Sharing)
	}
	for _, gap := range c.Gaps {
		if c.List != nil {
			break
		}
		w := c.Workload
		w.Gap = gap
		if err := w.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// JCTCell is one simulation of the study.
type JCTCell struct {
	Strategy string
	Queue    string
	Gap      time.Duration
	Seed     uint64
}

// Cells are all simulations, in the order of the result. They share nothing,
// so that they may run side by side.
func (c JCTConfig) Cells() (out []JCTCell) {
	for _, q := range c.Queues {
		for _, gap := range c.Gaps {
			for _, s := range c.Strategies {
				for run := range c.Runs {
					out = append(out, JCTCell{s, q, gap, c.Seed + uint64(run)})
				}
			}
		}
	}
	return out
}

// jobs of a cell: the same for every strategy and queue.
func (c JCTConfig) jobs(cell JCTCell) []workload.Job {
	if c.List != nil {
		return c.List
	}
	w := c.Workload
	w.Gap, w.Seed = cell.Gap, cell.Seed
	return workload.Draw(w)
}
