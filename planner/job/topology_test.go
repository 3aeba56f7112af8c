package job

import (
	"errors"
	"fmt"
	"testing"

	"ringlight/proto"
)

func place(host string, node int, ring int, s Standing) FabricNode {
	return FabricNode{Host: host, Node: proto.NodeID(node), Ring: proto.RingID(ring), State: s}
}

// Goal: Slurm is told of rings by the members that carry them and of the nodes
// near them, unless they are out, of a tree all nodes, of blocks those that are whole, of a job's own
// size nothing, and of nothing that it would refuse.
// Method: two rings of two nodes, one of which has lost a node, a ring of one, and
// free nodes between and behind.
func TestTopologyForSlurm(t *testing.T) {
	top := &Topology{GPUsPerNode: 4, TP: 8,
		Rings: []FabricRing{{Ring: 3, TP: 8, Nodes: []string{"n01", "n03"}}, {Ring: 4, TP: 8, Nodes: []string{"n06", "n05"}}, {Ring: 7, TP: 4, Nodes: []string{"n08"}}},
		Nodes: []FabricNode{place("n01", 11, 3, Well), place("n02", 12, 0, Well), place("n03", 13, 3, Silent), place("n04", 14, 0, Drained), place("n05", 15, 4, Well),
			place("n06", 16, 4, Lost), place("n07", 17, 0, Well), place("n08", 18, 7, Well)}}
	for format, want := range map[string]string{
		"slurm-tree": "SwitchName=ring3 Nodes=n[01,03]\nSwitchName=ring4 Nodes=n05\n" +
			"SwitchName=free3 Nodes=n[02,04]\nSwitchName=free4 Nodes=n[06-08]\nSwitchName=fabric Switches=ring[3-4],free[3-4]\n",
		"slurm-block":      "BlockName=ring3 Nodes=n[01-03,05,07-08]\nBlockSizes=2\n",
		"slurm-ring":       "RingName=ring3 Nodes=n[01-03]\nRingName=ring4 Nodes=n[05,07-08]\n",
		"slurm-block.yaml": "---\n- topology: ringlight\n  cluster_default: true\n  block:\n    block_sizes:\n      - 2\n    blocks:\n      - block: ring3\n        nodes: n[01-03,05,07-08]\n",
		"slurm-tree.yaml": "---\n- topology: ringlight\n  cluster_default: true\n  tree:\n    switches:\n      - switch: ring3\n        nodes: n[01,03]\n      - switch: ring4\n        nodes: n05\n" +
			"      - switch: free3\n        nodes: n[02,04]\n      - switch: free4\n        nodes: n[06-08]\n      - switch: fabric\n        children: ring[3-4],free[3-4]\n",
	} {
		if got, _, err := top.Text(format); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", format, err, got, want)
		}
	}
	if got, _, err := (&Topology{GPUsPerNode: 4, TP: 8, Nodes: top.Nodes[:2]}).Text("slurm-tree"); err != nil || string(got) != "SwitchName=fabric Nodes=n[01-02]\n" {
		t.Errorf("%s, %v", got, err)
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
	for i := range 14 {
		top.Nodes = append(top.Nodes, place(fmt.Sprintf("m%d", i), 100+i, 0, Well))
	}
	if f := field("slurm-ring"); f != "format" {
		t.Error(f)
	}
	top.Nodes[0].Host = "11"
	if f := field("slurm-tree"); f != "node_names" {
		t.Error(f)
	}
}
