package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// Goal: where the description says which nodes share a ToR switch, the running
// planner's first placement is the orchestrated one: a node that is missing
// from the start shifts no group but the one beside it off its ToRs. Without
// that, every group behind it is shifted. After that, few rings are touched.
// Reference: [IHBD] sec 4.3.
func TestFirstPlacementIsOrchestrated(t *testing.T) {
	const missing = 2
	for _, perToR := range []int{2, 0} {
		f, err := fabric.New(fabric.Params{Name: "f", Nodes: 36, GPUsPerNode: 4, K: 2, TP: 16, Spares: 4, NodesPerToR: perToR, NodesPerDomain: 18 * perToR, SpareLayout: fabric.AtEnd})
		if err != nil {
			t.Fatal(err)
		}
		w := newFleet(t, f)
		w.start()
		for i := range w.nodes {
			if i != missing {
				w.birth(proto.NodeID(i), true)
			}
		}
		w.run(time.Minute)
		d := ring.Deployment{Nodes: f.Nodes, PerToR: 2}
		inner := 0 // ranks whose partner in the other sub-line is under the same ToR
		at := map[int]int{}
		for _, r := range w.p.Rings.Placed.Statuses() {
			if r.State != proto.RingInService || len(r.Nodes) != f.GroupNodes() {
				t.Errorf("per ToR %d: ring %d of %v is %v", perToR, r.Ring, r.Nodes, r.State)
			}
			for rank, n := range r.Nodes {
				if tor := d.ToR(d.Node(int(n))); at[tor] == rank+1 {
					inner++
				} else {
					at[tor] = rank + 1
				}
			}
		}
		all := f.TargetRings() / 2 * f.GroupNodes()
		if orchestrated := perToR == 2; (inner == all) != orchestrated {
			t.Errorf("per ToR %d: %d of %d pairs of ranks meet under their ToR", perToR, inner, all)
		}
		if len(w.p.Rings.Placed.Statuses()) != f.TargetRings() {
			t.Errorf("per ToR %d: %d rings, want %d", perToR, len(w.p.Rings.Placed.Statuses()), f.TargetRings())
		}
		gen := w.p.Overview().Generation
		w.birth(missing, true)
		w.run(time.Minute)
		for _, r := range w.p.Rings.Placed.Statuses() {
			if r.Generation > gen && slices.Contains(r.Nodes, missing) {
				t.Errorf("per ToR %d: ring %d was touched by a node that came late", perToR, r.Ring)
			}
		}
	}
}

// In racks of several sizes, with rings of two sizes, the first placement is
// orchestrated too, and when a node is lost, its ring or the one that it met goes
// where they meet again: no rank is alone, for one whole ring moved at most.
// Reference: [IHBD] sec 4.3.
func TestRingsGoAlongInMixedRacks(t *testing.T) {
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: 60, GPUsPerNode: 4, K: 2, TP: 16, RingSizes: []fabric.RingSize{{TP: 32, Rings: 2}}, Spares: 28, SpareLayout: fabric.AtEnd})
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder // 12 racks of three, then 12 of two
	node := 0
	for line := range 3 {
		for rack := range 24 {
			if line < 2 || rack < 12 {
				fmt.Fprintf(&list, "%d,r%d\n", node, rack)
				node++
			}
		}
	}
	if f, err = f.ReadToRs([]byte(list.String())); err != nil {
		t.Fatal(err)
	}
	w := newFleet(t, f)
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	w.run(time.Minute)
	// alone counts ranks that meet no other ring's of their size.
	alone := func() (count int) {
		rings := w.p.Rings.Placed.Statuses()
		if len(rings) != f.TargetRings() {
			t.Errorf("%d rings, want %d", len(rings), f.TargetRings())
		}
		for i, r := range rings {
			for rank, n := range r.Nodes {
				if !slices.ContainsFunc(rings, func(o proto.RingStatus) bool {
					return o.Ring != rings[i].Ring && len(o.Nodes) == len(r.Nodes) && f.ToR(o.Nodes[rank]) == f.ToR(n)
				}) {
					count++
				}
			}
		}
		return count
	}
	if n := alone(); n != 0 {
		t.Fatalf("%d ranks meet nobody after the first placement", n)
	}
	before := map[proto.RingID][]proto.NodeID{}
	for _, r := range w.p.Rings.Placed.Statuses() {
		before[r.Ring] = r.Nodes
	}
	lost := w.p.Rings.Placed.Statuses()[0].Nodes[1]
	w.die(lost)
	w.run(time.Minute)
	moved := 0
	for _, r := range w.p.Rings.Placed.Statuses() {
		if !slices.Equal(before[r.Ring], r.Nodes) && !slices.Contains(before[r.Ring], lost) {
			moved++
		}
	}
	if n := alone(); n != 0 || moved > 1 {
		t.Errorf("%d ranks meet nobody after the loss of node %d, %d whole rings moved: %v, now %v", n, lost, moved, before, w.p.Rings.Placed.Statuses())
	}
}
