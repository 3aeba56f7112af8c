package planner

import (
	"slices"
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
		for _, r := range w.p.Rings() {
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
		if len(w.p.Rings()) != f.TargetRings() {
			t.Errorf("per ToR %d: %d rings, want %d", perToR, len(w.p.Rings()), f.TargetRings())
		}
		gen := w.p.Overview().Generation
		w.birth(missing, true)
		w.run(time.Minute)
		for _, r := range w.p.Rings() {
			if r.Generation > gen && slices.Contains(r.Nodes, missing) {
				t.Errorf("per ToR %d: ring %d was touched by a node that came late", perToR, r.Ring)
			}
		}
	}
}
