package planner

import (
	"fmt"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// pairs are the members of rings that have each other's light on a planned side, lower first.
func (w *fleet) pairs() (out [][2]proto.NodeID) {
	for _, r := range w.p.Rings.Placed.Statuses() {
		q := w.ask(proto.OpRequest{Noun: proto.NounRing, Ring: r.Ring, Bundle: -1})
		for _, j := range q.Rings[0].Joints {
			if j.Confirmed {
				out = append(out, [2]proto.NodeID{j.A.Node, j.B.Node})
			}
		}
	}
	return out
}

// Goal: a job's ring goes through the steps of Binary Exchange over fibres to n +- 2^i and
// back; a restart leaves it in its step; who lacks fibres of a step, or names none, is told
// so; a member that is lost ends the step, and the ring is mended.
// Method: the ring is named twice; light of each step is held against n xor 2^i; other spans, names and states; a
// planner that starts anew; a node that dies in each step.
func TestRingsGoThroughAnExchange(t *testing.T) {
	w := started(t, fabric.Params{Name: "f", Nodes: 9, GPUsPerNode: 4, Spans: fabric.Spans{1, 2, 4}, TP: 32, Spares: 1})
	if r := w.put("a", `{"tp":32}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(2 * time.Second)
	ring := w.p.Rings.Placed.Statuses()[0]
	order := fmt.Sprint(w.job("a").Rings[0].GPUOrder)
	enter := func(name string) *proto.OpReply {
		r := w.ask(proto.OpRequest{Noun: proto.NounFlip, Rings: []proto.RingID{ring.Ring, ring.Ring}, Name: name, Bundle: -1})
		w.run(2 * time.Second)
		return r
	}
	lit := func(step int) {
		t.Helper()
		var want [][2]proto.NodeID
		for n := range proto.NodeID(8) {
			if far := n ^ 1<<max(0, step-1); step > 0 && n < far {
				want = append(want, [2]proto.NodeID{ring.Nodes[n], ring.Nodes[far]})
			} else if step == 0 && n < 7 {
				want = append(want, [2]proto.NodeID{ring.Nodes[n], ring.Nodes[n+1]})
			}
		}
		w.p.Rings.Placed.Facing(ring.Nodes[2], func(by proto.NodeID, _ proto.BundleID) {
			if step > 0 && by != ring.Nodes[2^1<<(step-1)] {
				t.Errorf("step %d: node %d is said to face node %d", step, by, ring.Nodes[2])
			}
		})
		r, j := w.p.Rings.Placed.Statuses()[0], w.job("a")
		if got := w.pairs(); fmt.Sprint(got) != fmt.Sprint(want) || r.State != proto.RingInService || int(r.Exchange) != step {
			t.Fatalf("step %d: light joins %v, want %v; %+v\n%s", step, got, want, r, w.show())
		}
		if j.State != job.Ready || fmt.Sprint(j.Rings[0].GPUOrder) != order {
			t.Errorf("step %d: the job is %s, its GPUs %v, were %s", step, j.State, j.Rings[0].GPUOrder, order)
		}
	}
	for _, step := range []int{1, 2, 3, 0, 3, 1, 1} {
		name := proto.ExchangeStep(uint8(step))
		if step == 0 {
			name = proto.PhaseRing
		}
		if r := enter(name); r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
		lit(step)
	}
	w.start()
	w.run(20 * time.Second)
	lit(1)
	for _, c := range []struct {
		name string
		code proto.Code
	}{{"exchange-4", proto.Conflict}, {"exchange-5", proto.NotFound}, {"p1", proto.NotFound}} {
		if r := enter(c.name); r.Code != c.code || r.Field != "phase" {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	for step := 1; step <= 3; step++ {
		if r := enter(proto.ExchangeStep(uint8(step))); r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
		lit(step)
		lost := ring.Nodes[step]
		w.die(lost)
		w.run(5 * time.Second)
		if r := w.p.Rings.Placed.Statuses()[0]; r.Exchange != 0 || r.State != proto.RingInService || len(r.Nodes) != 8 || len(w.pairs()) != 7 {
			t.Fatalf("without node %d: %+v\n%s", lost, r, w.show())
		}
		if r := enter(proto.ExchangeStep(3)); r.Code != proto.Conflict {
			t.Errorf("a ring that passes node %d by has no fibres of the last step: %+v", lost, r)
		}
		w.birth(lost, true)
		w.die(w.p.Rings.Placed.Statuses()[0].Nodes[7])
		w.run(5 * time.Second)
		w.birth(8, true)
		w.run(20 * time.Second)
		if r := w.p.Rings.Placed.Statuses()[0]; fmt.Sprint(r.Nodes) != fmt.Sprint(ring.Nodes) {
			t.Fatalf("%v, want %v as before", r.Nodes, ring.Nodes)
		}
		order = fmt.Sprint(w.job("a").Rings[0].GPUOrder)
	}
	other := started(t, fabric.Params{Name: "f", Nodes: 8, GPUsPerNode: 4, K: 3, TP: 32})
	for step, code := range []proto.Code{proto.OK, proto.OK, proto.Conflict} {
		if r := other.ask(proto.OpRequest{Noun: proto.NounFlip, Rings: []proto.RingID{1}, Name: proto.ExchangeStep(uint8(step + 1)), Bundle: -1}); r.Code != code {
			t.Errorf("step %d over 1, 2, 3: %+v", step+1, r)
		}
		other.run(2 * time.Second)
	}
}
