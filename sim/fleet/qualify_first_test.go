package fleet

import (
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// Goal: with before_use no fibre carries a ring before its bits were counted: not when a
// fabric is brought up, nor when a node is let in again; a dirty one never does, and rings
// form without it. Nothing that is lit changes.
func TestFibresAreTriedBeforeTheirFirstRing(t *testing.T) {
	o, err := catalogue()
	if err != nil {
		t.Fatal(err)
	}
	dirty := func(b *bench, name string) {
		node, bundle, path := port(named(b, name), 0)
		if err := b.world.Inject(b.nodes[node].board, sim.Fault{Kind: sim.Dirt, Bundle: bundle, Path: path, Index: 5000}); err != nil {
			t.Fatal(err)
		}
	}
	b := newBenchOf(t, o, 16, 8, 1, 1, func(b *bench) {
		b.cfg.Fabric.Qualify = &fabric.Qualify{BeforeUse: true}
		dirty(b, "2-3")
	})
	links := func() map[string]proto.LinkStatus {
		out := map[string]proto.LinkStatus{}
		for q := (proto.OpRequest{Noun: proto.NounLinks}); ; {
			r := b.answer(q)
			for _, l := range r.Links {
				if l.Ring != 0 && (l.Qualified == nil || l.Qualified.Result != proto.Good) {
					t.Errorf("at %v fibre %s carries ring %d: %+v", b.now, l.Fibre, l.Ring, l.Qualified)
				}
				out[l.Fibre] = l
			}
			if q.Page = r.Next; q.Page == 0 {
				return out
			}
		}
	}
	inService := func() bool {
		for _, r := range b.answer(proto.OpRequest{Noun: proto.NounRings}).Rings {
			if r.State == proto.RingInService {
				return true
			}
		}
		return false
	}
	for end := b.now + time.Minute; !inService(); links() {
		if b.now > end {
			t.Fatalf("no ring: %+v", links())
		}
	}
	t.Logf("a ring in service at %v", b.now)
	tried := 0
	for _, l := range links() {
		if l.Qualified != nil {
			tried++
		}
	}
	if all := len(b.cfg.Fabric.AllFibres()); tried != all {
		t.Errorf("%d fibres tried of %d", tried, all)
	}
	if l := links()["2-3"]; l.State != proto.FibreDark || l.Qualified == nil || l.Qualified.Result != proto.Bad {
		t.Errorf("dirty: %v, %+v", l.State, l.Qualified)
	}
	b.answer(proto.OpRequest{Noun: proto.NounDrain, Node: 13})
	dirty(b, "13-14")
	before := links()
	b.answer(proto.OpRequest{Noun: proto.NounUndrain, Node: 13})
	b.run(20 * time.Second)
	after := links()
	for _, name := range []string{"12-13", "13-14", "13-15"} {
		l, was := after[name], before[name]
		if l.Qualified == nil || l.Qualified.AtMillis <= was.Qualified.AtMillis {
			t.Errorf("fibre %s was not tried anew: %+v, before %+v", name, l.Qualified, was.Qualified)
		} else if want := map[bool]proto.Qualified{true: proto.Bad, false: proto.Good}[name == "13-14"]; l.Qualified.Result != want {
			t.Errorf("fibre %s: %+v", name, l.Qualified)
		}
	}
	b.quiet("at the end")
}
