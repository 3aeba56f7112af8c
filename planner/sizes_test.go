package planner

import (
	"slices"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Goal: in a fabric of two TP sizes each ring keeps its size over faults,
// restarts and a lost store. Method: a ring of 8 nodes beside two of 4 loses a
// node more than there are spares; the planner restarts while it is short; then
// the node comes back.
func TestRingsKeepTheirSize(t *testing.T) {
	for _, lost := range []bool{false, true} {
		f, err := fabric.New(fabric.Params{Name: "f", Nodes: 17, GPUsPerNode: 4, K: 2, TP: 16, RingSizes: []fabric.RingSize{{TP: 32, Rings: 1}}, Spares: 1})
		if err != nil {
			t.Fatal(err)
		}
		w := newFleet(t, f)
		w.start()
		for i := range w.nodes {
			w.birth(proto.NodeID(i), true)
		}
		w.run(5 * time.Second)
		sizes := func() (out []int) {
			for _, r := range w.p.Rings.Placed.Statuses() {
				out = append(out, len(r.Nodes))
			}
			slices.Sort(out)
			return out
		}
		if got := sizes(); !slices.Equal(got, []int{4, 4, 8}) || w.p.Overview().InService != 3 {
			t.Fatalf("sizes %v\n%s", got, w.show())
		}
		large := w.p.Rings.Placed.Statuses()[slices.IndexFunc(w.p.Rings.Placed.Statuses(), func(r proto.RingStatus) bool { return len(r.Nodes) == 8 })]
		first, second := large.Nodes[3], large.Nodes[5]
		w.die(first)
		w.run(5 * time.Second)
		if got := sizes(); !slices.Equal(got, []int{4, 4, 8}) {
			t.Fatalf("with its spare: sizes %v\n%s", got, w.show())
		}
		w.die(second)
		w.run(5 * time.Second)
		if got := sizes(); !slices.Equal(got, []int{4, 4, 7}) {
			t.Fatalf("without a spare: sizes %v\n%s", got, w.show())
		}
		if lost { // and no word of the dead says where they stood
			clear(w.store)
			w.forget(first)
			w.forget(second)
		}
		w.start()
		w.run(15 * time.Second)
		if o := w.p.Overview(); o.Rings != 3 || o.Degraded != 1 {
			t.Errorf("store lost %v: after a restart %+v\n%s", lost, o, w.show())
		}
		w.birth(second, true)
		w.run(10 * time.Second)
		if got := sizes(); !slices.Equal(got, []int{4, 4, 8}) || w.p.Overview().InService != 3 {
			t.Errorf("store lost %v: a node came back: sizes %v\n%s", lost, got, w.show())
		}
	}
}
