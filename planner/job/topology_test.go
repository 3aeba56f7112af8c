package job

import (
	"errors"
	"testing"

	"ringlight/proto"
)

func place(host string, node int, ring int, s Standing) FabricNode {
	return FabricNode{Host: host, Node: proto.NodeID(node), Ring: proto.RingID(ring), State: s}
}

// Goal: Slurm is told of rings by the members that carry them, of a tree all
// nodes, of blocks those that are whole, and nothing that it would refuse.
// Method: two rings of two nodes, one of which has lost a node, and a free node.
func TestTopologyForSlurm(t *testing.T) {
	top := &Topology{GPUsPerNode: 4, TP: 8,
		Rings: []FabricRing{{Ring: 3, Nodes: []string{"n01", "n02"}}, {Ring: 4, Nodes: []string{"n05", "n03"}}},
		Nodes: []FabricNode{place("n01", 1, 3, Well), place("n02", 2, 3, Silent), place("n03", 3, 4, Well), place("n04", 4, 0, Well), place("n05", 5, 4, Lost)}}
	for format, want := range map[string]string{
		"slurm-tree":       "SwitchName=ring3 Nodes=n[01-02]\nSwitchName=ring4 Nodes=n03\nSwitchName=free Nodes=n[04-05]\nSwitchName=fabric Switches=ring[3-4],free\n",
		"slurm-block":      "BlockName=ring3 Nodes=n[01-02]\nBlockSizes=2\n",
		"slurm-ring":       "RingName=ring3 Nodes=n[01-02]\nRingName=ring4 Nodes=n03\n",
		"slurm-block.yaml": "---\n- topology: ringlight\n  cluster_default: true\n  block:\n    block_sizes:\n      - 2\n    blocks:\n      - block: ring3\n        nodes: n[01-02]\n",
		"slurm-tree.yaml":  "---\n- topology: ringlight\n  cluster_default: true\n  tree:\n    switches:\n      - switch: ring3\n        nodes: n[01-02]\n      - switch: ring4\n        nodes: n03\n      - switch: free\n        nodes: n[04-05]\n      - switch: fabric\n        children: ring[3-4],free\n",
	} {
		if got, _, err := top.Text(format); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", format, err, got, want)
		}
	}
	field := func(format string) string {
		_, _, err := top.Text(format)
		var e *proto.Error
		if !errors.As(err, &e) {
			t.Fatalf("%s: %v", format, err)
		}
		return e.Field
	}
	if f := field("slurm-torus"); f != "format" {
		t.Error(f)
	}
	top.Rings = append(top.Rings, FabricRing{Ring: 5, Nodes: make([]string, 17)})
	if f := field("slurm-ring"); f != "format" {
		t.Error(f)
	}
	top.Nodes[0].Host = "1"
	if f := field("slurm-tree"); f != "node_names" {
		t.Error(f)
	}
}
