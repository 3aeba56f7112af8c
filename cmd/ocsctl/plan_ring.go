package main

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// maxPlanGPUs bounds a node; chosen: several times the largest there is.
const maxPlanGPUs = 64

// ringInput is what plan ring reads, and a part of what others read.
type ringInput struct {
	Nodes, GPUsPerNode, K, TP int
	Topology                  fabric.Topology
	Faulty                    []int
	Running                   [][]int
	SharedBundle              *bool
	RingSizes                 []fabric.RingSize

	out []bool // by node: it is faulty
}

func (in *ringInput) keys() []planKey {
	return []planKey{
		{"nodes", &in.Nodes, "an integer"}, {"gpus_per_node", &in.GPUsPerNode, "an integer"}, {"k", &in.K, "an integer"},
		{"topology", &in.Topology, "line or ring"}, {"tp", &in.TP, "an integer"}, {"faulty", &in.Faulty, "an array of integers"},
		{"running", &in.Running, "an array of arrays of integers"}, {"shared_bundle", &in.SharedBundle, "true or false"},
	}
}

// check names the first key that is out of its limits.
func (in *ringInput) check() error {
	span := func(key string, v, lo, hi int, why string) error {
		if v < lo || v > hi {
			return wrongUsage(key, fmt.Sprintf("%d to %d%s", lo, hi, why), "%d", v)
		}
		return nil
	}
	if err := cmp.Or(span("nodes", in.Nodes, 1, fabric.MaxNodes, ""), span("gpus_per_node", in.GPUsPerNode, 1, maxPlanGPUs, ""),
		span("k", in.K, 1, in.GPUsPerNode, " (gpus_per_node)")); err != nil {
		return err
	}
	switch most := min(in.Nodes, fabric.MaxGroupNodes); {
	case in.Topology != fabric.Line && in.Topology != fabric.Ring:
		return wrongUsage("topology", "line or ring", "%q", cli.Clip(string(in.Topology)))
	case in.TP < in.GPUsPerNode || in.TP%in.GPUsPerNode != 0:
		return wrongUsage("tp", fmt.Sprintf("a multiple of gpus_per_node (%d)", in.GPUsPerNode), "%d", in.TP)
	case in.TP/in.GPUsPerNode > most:
		return wrongUsage("tp", fmt.Sprintf("at most %d GPUs, %d nodes", most*in.GPUsPerNode, most), "%d", in.TP)
	}
	in.out = make([]bool, in.Nodes)
	if err := in.nodes("faulty", in.Faulty, in.out); err != nil {
		return err
	}
	seen := make([]bool, in.Nodes)
	for i, g := range in.Running {
		key := fmt.Sprintf("running[%d]", i)
		if len(g) == 0 {
			return wrongUsage(key, "at least one node", "it is empty")
		}
		if err := in.nodes(key, g, seen); err != nil {
			return err
		}
	}
	return nil
}

// nodes marks nodes that must exist and must not be marked yet.
func (in *ringInput) nodes(key string, list []int, seen []bool) error {
	for i, n := range list {
		if n < 0 || n >= in.Nodes {
			return wrongUsage(fmt.Sprintf("%s[%d]", key, i), fmt.Sprintf("0 to %d", in.Nodes-1), "no node %d", n)
		}
		if seen[n] {
			return wrongUsage(fmt.Sprintf("%s[%d]", key, i), "each node once", "node %d is there twice", n)
		}
		seen[n] = true
	}
	return nil
}

// problem is the input as the planner's mathematics sees it.
func (in *ringInput) problem() ring.Problem {
	return ring.Problem{
		Order: ring.Order{Nodes: in.Nodes, K: in.K, Wrap: in.Topology == fabric.Ring, Shared: in.shared()},
		Size:  in.TP / in.GPUsPerNode, Want: -1,
		Usable: func(n proto.NodeID) bool { return !in.out[n] },
	}
}

// shared: offsets hang on bundles in pairs, so an odd K leaves -K and +K for
// one bundle; K = 1 has a bundle for each.
func (in *ringInput) shared() bool {
	return in.K%2 == 1 && in.K >= 3 && (in.SharedBundle == nil || *in.SharedBundle)
}

func (in *ringInput) running() [][]proto.NodeID {
	out := make([][]proto.NodeID, len(in.Running))
	for i, g := range in.Running {
		for _, n := range g {
			out[i] = append(out[i], proto.NodeID(n))
		}
	}
	return out
}

// place is the plan, left to right, and what it makes of the running groups.
func (in *ringInput) place() (groups [][]proto.NodeID, moved int) {
	running := in.running()
	if len(running) == 0 && len(in.RingSizes) == 0 {
		return ring.Place(in.problem()), 0
	}
	p := in.problem()
	m := ring.Mend{Order: p.Order, Sizes: in.demands(), Usable: p.Usable, Free: p.Usable, Moves: ring.Any}
	was := make([]ring.Group, len(running))
	for i, nodes := range running {
		was[i] = ring.Group{ID: proto.RingID(i + 1), Nodes: nodes}
		if len(in.RingSizes) > 0 {
			was[i].Size = len(nodes)
		}
	}
	for _, g := range m.Replace(was).Groups {
		if len(g.Nodes) == g.Size {
			groups = append(groups, g.Nodes)
		}
	}
	slices.SortFunc(groups, func(a, b []proto.NodeID) int { return int(a[0]) - int(b[0]) })
	return groups, ring.Moved(running, groups)
}

// fabric is what the input says about the groups.
func (in *ringInput) fabric() *fabric.Fabric {
	return &fabric.Fabric{Nodes: in.Nodes, GPUsPerNode: in.GPUsPerNode, TP: in.TP, RingSizes: in.RingSizes}
}

// demands are the groups that the input asks for.
func (in *ringInput) demands() []ring.Demand {
	if len(in.RingSizes) > 0 {
		return ring.DemandsOf(in.fabric())
	}
	return []ring.Demand{{Size: in.TP / in.GPUsPerNode, Want: -1}}
}

// checkSizes checks groups of several sizes. A running group has the size that
// it has nodes, faulty ones included.
func (in *ringInput) checkSizes() error {
	if len(in.RingSizes) == 0 {
		return nil
	}
	if err := in.fabric().ValidateRingSizes(); err != nil {
		return err
	}
	for i, g := range in.Running {
		if !slices.ContainsFunc(in.fabric().Targets(), func(s fabric.RingSize) bool { return s.TP == len(g)*in.GPUsPerNode }) {
			return wrongUsage(fmt.Sprintf("running[%d]", i), "as many nodes as a group of some size", "%d nodes", len(g))
		}
	}
	return nil
}

type ringOutput struct {
	Groups       [][]proto.NodeID `json:"groups"`
	Idle         []proto.NodeID   `json:"idle"`
	Moved        int              `json:"moved"`
	LostToWiring int              `json:"lost_to_wiring"`
}

func planRing(text []byte, _ func() ([]byte, error)) (any, error) {
	var in ringInput
	err := decodePlan(text, append(in.keys(), planKey{"ring_sizes", &in.RingSizes, "an array of objects with tp and rings"}))
	if err == nil {
		err = in.check()
	}
	if err == nil {
		err = in.checkSizes()
	}
	if err != nil {
		return nil, err
	}
	groups, moved := in.place()
	return ringOutput{listOf(groups), in.idle(groups), moved, ring.LostToWiring(in.problem(), in.demands()...)}, nil
}

// idle lists the nodes that are well and in no group.
func (in *ringInput) idle(groups [][]proto.NodeID) []proto.NodeID {
	busy := slices.Clone(in.out)
	for _, g := range groups {
		for _, n := range g {
			busy[n] = true
		}
	}
	out := []proto.NodeID{}
	for n, b := range busy {
		if !b {
			out = append(out, proto.NodeID(n))
		}
	}
	return out
}
