package fleet

import (
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// Goal: with after_repair a fibre that was held to be cut is used again when its bits are
// good, and not while it is dirty, though its light is there. Method: a fibre of a ring is
// cut, its nodes are drained, it is mended, dirty or not, and its nodes are let in.
func TestAMendedFibreMustPass(t *testing.T) {
	for _, dirty := range []bool{false, true} {
		b := newBench(t, 12, 8, 1, 1)
		b.cfg.Fabric.Qualify = &fabric.Qualify{AfterRepair: true}
		f := named(b, "1-2")
		if err := b.world.Cut(SimPort(f.A), sim.Both); err != nil {
			t.Fatal(err)
		}
		state := func() proto.LinkStatus {
			for _, l := range b.answer(proto.OpRequest{Noun: proto.NounLinks}).Links {
				if l.Fibre == "1-2" {
					return l
				}
			}
			t.Fatal("no link 1-2")
			return proto.LinkStatus{}
		}
		for end := b.now + 30*time.Second; state().State != proto.FibreDark; {
			if b.now > end {
				t.Fatalf("not held to be cut: %+v", state())
			}
		}
		for _, n := range []proto.NodeID{1, 2} {
			b.answer(proto.OpRequest{Noun: proto.NounDrain, Node: n})
		}
		if err := b.world.Mend(SimPort(f.A), sim.Both); err != nil {
			t.Fatal(err)
		}
		if node, bundle, path := port(f, 0); dirty {
			if err := b.world.Inject(b.nodes[node].board, sim.Fault{Kind: sim.Dirt, Bundle: bundle, Path: path, Index: 5000}); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range []proto.NodeID{1, 2} {
			b.answer(proto.OpRequest{Noun: proto.NounUndrain, Node: n})
		}
		var got proto.LinkStatus
		for end := b.now + 10*time.Minute; b.now < end; {
			if got = state(); got.Qualified != nil && (dirty || got.State != proto.FibreDark) {
				break
			}
			b.run(5 * time.Second)
		}
		t.Logf("dirty %v: %v at %v: %+v", dirty, got.State, b.now, got.Qualified)
		if got.Qualified == nil {
			t.Fatalf("dirty %v: never counted: %+v", dirty, got)
		}
		if dirty != (got.Qualified.Result == proto.Bad) || dirty != (got.State == proto.FibreDark) || dirty != strings.Contains(got.Qualified.Text, "loss") {
			t.Errorf("dirty %v: %v, %+v", dirty, got.State, got.Qualified)
		}
	}
}
