package main

import (
	"cmp"
	"fmt"

	"ringlight/cmd/cli"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// maxPerToR bounds the sub-lines; chosen: no switch has more ports for nodes.
const maxPerToR = 128

type orchestrateInput struct {
	ringInput
	NodesPerToR, NodesPerDomain, GPUsTotal int
	Method                                 string
}

func (in *orchestrateInput) keys() []planKey {
	return append(in.ringInput.keys(),
		planKey{"nodes_per_tor", &in.NodesPerToR, "an integer"}, planKey{"nodes_per_domain", &in.NodesPerDomain, "an integer"},
		planKey{"gpus_total", &in.GPUsTotal, "an integer"}, planKey{"method", &in.Method, "exact or paper"})
}

func (in *orchestrateInput) check() error {
	if err := in.ringInput.check(); err != nil {
		return err
	}
	in.Method = cmp.Or(in.Method, "exact")
	switch p, d := in.NodesPerToR, in.NodesPerDomain; {
	case p < 1 || p > maxPerToR || in.Nodes%p != 0:
		return wrongUsage("nodes_per_tor", fmt.Sprintf("a divisor of nodes (%d) up to %d", in.Nodes, maxPerToR), "%d", p)
	case d < p || d > in.Nodes || d%p != 0:
		return wrongUsage("nodes_per_domain", fmt.Sprintf("a multiple of nodes_per_tor (%d) up to nodes (%d)", p, in.Nodes), "%d", d)
	case in.GPUsTotal < 1:
		return wrongUsage("gpus_total", "at least 1", "%d", in.GPUsTotal)
	case in.Method != "exact" && in.Method != "paper":
		return wrongUsage("method", "exact or paper", "%q", cli.Clip(in.Method))
	}
	return nil
}

func (in *orchestrateInput) job() ring.Job {
	return ring.Job{
		Deployment: ring.Deployment{Nodes: in.Nodes, PerToR: in.NodesPerToR}, PerDomain: in.NodesPerDomain,
		K: in.K, Wrap: in.Topology == "ring", Shared: in.shared(), Size: in.TP / in.GPUsPerNode, Want: (in.GPUsTotal-1)/in.TP + 1,
		Faulty: func(n proto.NodeID) bool { return in.out[n] },
	}
}

// solve checks the input and runs the method that it asks for. none is the answer to a
// job that does not fit.
func (in *orchestrateInput) solve() (res ring.Orchestration, none any, err error) {
	if err := in.check(); err != nil {
		return res, nil, err
	}
	run := ring.Orchestrate
	if in.Method == "paper" {
		run = ring.OrchestratePaper
	}
	if res = run(in.job()); !res.OK() {
		best := res.Most * in.TP
		return res, unsolved{[][]proto.NodeID{}, best}, &cli.NoSolution{Why: fmt.Sprintf("gpus_total: %d GPUs do not fit: at most %d in groups of %d", in.GPUsTotal, best, in.TP)}
	}
	return res, nil, nil
}

type orchestrateOutput struct {
	Groups          [][]proto.NodeID `json:"groups"`
	InnerSets       [][]int          `json:"inner_sets"`
	CrossToRFlows   int              `json:"cross_tor_flows"`
	InnerFlows      int              `json:"inner_flows"`
	UnalignedGroups int              `json:"unaligned_groups"`
	Moved           *int             `json:"moved,omitempty"`
}

// unsolved is the answer to a job that does not fit.
type unsolved struct {
	Groups        [][]proto.NodeID `json:"groups"`
	BestGPUsTotal int              `json:"best_gpus_total"`
}

func planOrchestrate(text []byte, _ func() ([]byte, error)) (any, error) {
	var in orchestrateInput
	if err := decodePlan(text, in.keys()); err != nil {
		return nil, err
	}
	res, none, err := in.solve()
	if err != nil {
		return none, err
	}
	o := orchestrateOutput{Groups: res.Groups, InnerSets: [][]int{}, CrossToRFlows: res.CrossToR, InnerFlows: res.Inner, UnalignedGroups: res.Unaligned}
	o.InnerSets = append(o.InnerSets, res.Sets...)
	if in.Running != nil {
		o.Moved = new(ring.Moved(in.running(), res.Groups))
	}
	return o, nil
}
