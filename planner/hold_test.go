package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
)

func (w *fleet) status(id proto.NodeID) proto.NodeStatus {
	w.t.Helper()
	r := w.ask(proto.OpRequest{Noun: proto.NounNode, Node: id, Bundle: -1})
	if len(r.Nodes) != 1 {
		w.t.Fatalf("node %d: %+v", id, r)
	}
	return r.Nodes[0]
}

// Goal: who took a node out, and why, is known as long as it is out, over
// restarts of the planner, and no longer.
func TestDrainIsSignedAndExplained(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	w.later(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1, Author: "alice@head", Reason: "RMA 4711"})
	w.run(3 * time.Second)
	for _, when := range []string{"at once", "after a restart"} {
		s := w.status(3)
		if d := s.Drain; d == nil || d.Author != "alice@head" || d.Reason != "RMA 4711" || s.Reason != "drained by alice@head: RMA 4711" || s.Usable {
			t.Fatalf("%s: %+v %+v", when, s, d)
		}
		w.start()
		w.run(15 * time.Second)
	}
	if s := w.status(2); s.Drain != nil {
		t.Errorf("%+v", s)
	}
	// Said again with another reason: that is the one that counts.
	if r := w.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1, Author: "bob@head", Reason: "waits for parts"}); r.Code != proto.Duplicate {
		t.Errorf("%+v", r)
	}
	if d := w.status(3).Drain; d == nil || d.Author != "bob@head" {
		t.Errorf("%+v", d)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounUndrain, Node: 3, Bundle: -1}); r.Code != proto.OK {
		t.Errorf("%+v", r)
	}
	w.run(3 * time.Second)
	if s := w.status(3); s.Drain != nil || !s.Usable || w.store["hold/0000000003"] != nil {
		t.Errorf("%+v", s)
	}
}

// Goal: a dead node that is drained does not come back in the middle of its
// repair, whenever its agent comes and goes and whoever plans then; let in
// again it is.
// Method: it dies, is drained, and is born again, before and after a restart of
// the planner; then it is let in again, or was before it came.
// Before, the drain was refused ("the agent is offline") and the node joined a
// ring as soon as it was born.
func TestDeadNodeStaysOutOverItsRepair(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for _, away := range []bool{false, true} {
			w := small(t, 8, 2, 32, 0)
			w.die(3)
			w.run(3 * time.Second)
			r := w.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1, Reason: "power supply"})
			if r.Code != proto.OK || !strings.Contains(r.Reason, "offline") || w.status(3).Drain == nil {
				t.Fatalf("%+v", r)
			}
			if restart {
				w.start()
				w.run(15 * time.Second)
			}
			for round := 0; round < 3 && !away; round++ {
				w.birth(3, true)
				w.run(5 * time.Second)
				if rings := w.p.Rings.Placed.Statuses(); slices.Contains(rings[0].Nodes, 3) || w.nodes[3].mode != proto.ModeDrained || w.nodes[3].applied != nil && len(w.nodes[3].applied.Rings) != 0 {
					t.Fatalf("restart %v: it is back: %+v, mode %v", restart, rings, w.nodes[3].mode)
				}
				w.die(3)
				w.run(time.Second)
				w.nodes[3].mode = proto.ModeService // its journal is lost in the repair
			}
			if !away {
				w.birth(3, true)
				w.run(5 * time.Second)
			}
			if r := w.ask(proto.OpRequest{Noun: proto.NounUndrain, Node: 3, Bundle: -1}); r.Code != proto.OK {
				t.Fatalf("%+v", r)
			}
			if away {
				w.birth(3, true)
			}
			w.run(5 * time.Second)
			if rings := w.p.Rings.Placed.Statuses(); !slices.Contains(rings[0].Nodes, 3) || rings[0].State != proto.RingInService || w.status(3).Drain != nil {
				t.Errorf("restart %v, away %v: %+v %+v", restart, away, rings, w.status(3))
			}
		}
	}
}

// Goal: a ring goes round a lit member whose agent is offline when an operator takes
// that out, and it is drained when it is back.
func TestOfflineNodeIsDrainedWhenItIsBack(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	w.offline(3)
	w.run(time.Second)
	for _, dry := range []bool{true, false} { // both tell the ring that is formed without it
		r := w.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1, DryRun: dry})
		if r.Code != proto.OK || r.Cost == nil || len(r.Cost.Rings) != 1 || !slices.Equal(r.Cost.Joins, []proto.NodeID{8}) || w.p.Rings.Placed.Statuses()[0].Generation != 1 {
			t.Fatalf("dry run %v: %+v, cost %+v, %+v", dry, r, r.Cost, w.p.Rings.Placed.Statuses())
		}
	}
	w.run(10 * time.Second)
	if r := w.p.Rings.Placed.Statuses(); slices.Contains(r[0].Nodes, 3) || r[0].State != proto.RingInService || w.nodes[3].mode != proto.ModeService {
		t.Fatalf("%+v, mode %v", r, w.nodes[3].mode)
	}
	w.online(3)
	w.run(5 * time.Second)
	if r := w.p.Rings.Placed.Statuses(); !slices.Equal(r[0].Nodes, []proto.NodeID{0, 1, 2, 4, 5, 6, 7, 8}) || r[0].State != proto.RingInService || w.nodes[3].mode != proto.ModeDrained {
		t.Errorf("%+v, mode %v", r, w.nodes[3].mode)
	}
}
