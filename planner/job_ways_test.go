package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// nodesIn are a job's, ring by ring.
func nodesIn(v *job.View) (out [][]proto.NodeID) {
	for _, r := range v.Rings {
		var ring []proto.NodeID
		for _, n := range r.Nodes {
			ring = append(ring, node(n))
		}
		out = append(out, ring)
	}
	return out
}

// Goal: a job's rings stand side by side, apart, or so that ranks that talk to each
// other share a ToR switch, as it prefers; several sizes at once.
// Method: jobs on 64 nodes of 4 under a switch; distances and switches counted here.
func TestJobsStandAsTheyPrefer(t *testing.T) {
	w := started(t, fabric.Params{Name: "f", Nodes: 64, GPUsPerNode: 4, K: 2, TP: 16, NodesPerToR: 8, NodesPerDomain: 32})
	for id, wish := range map[string]string{"compact": `{"tp":16,"rings":3}`, "spread": `{"tp":8,"rings":3,"prefer":"spread"}`, "tor": `{"tp":24,"rings":2,"prefer":"cross_tor"}`} { // any order
		if r := w.put(id, wish); r.Code != proto.OK {
			t.Fatalf("%s: %+v", id, r)
		}
		w.run(3 * time.Second)
		if v := w.job(id); v.State != job.Ready {
			t.Fatalf("%+v\n%s", v, w.show())
		}
	}
	span := func(id string) (gap, all int) {
		rings := nodesIn(w.job(id))
		slices.SortFunc(rings, func(a, b []proto.NodeID) int { return int(a[0]) - int(b[0]) })
		gap = 64
		for i := 1; i < len(rings); i++ {
			gap = min(gap, int(rings[i][0])-int(rings[i-1][len(rings[i-1])-1]))
		}
		last := rings[len(rings)-1]
		return gap, int(last[len(last)-1]) - int(rings[0][0]) + 1
	}
	if gap, all := span("compact"); gap != 1 || all != 12 {
		t.Errorf("side by side: gap %d, %d nodes in all\n%s", gap, all, w.show())
	}
	if gap, _ := span("spread"); gap < 8 {
		t.Errorf("apart: gap %d\n%s", gap, w.show())
	}
	tor := w.job("tor")
	if tor.CrossToR == nil {
		t.Fatalf("%+v", tor)
	}
	rings, cross, pairs := nodesIn(tor), 0, 0
	for i := range rings {
		for k, n := range rings[i] {
			pairs++
			if a, b := torOf(int(n)), torOf(int(rings[(i+1)%len(rings)][k])); a != b {
				cross++
			}
		}
	}
	if share := float64(cross) / float64(pairs); share != *tor.CrossToR || share > 0.5 {
		t.Errorf("%d of %d leave their switch, said is %v: %v", cross, pairs, *tor.CrossToR, rings)
	}
}

// torOf counts nodes of 64 in HBD order, 8 under a switch: every eighth of a switch.
func torOf(n int) int { return n % 8 }

// Goal: nodes that a job may not have are never its, neither at first nor when
// something is mended; only those of its list are.
func TestJobsNeverGetWhatTheyExclude(t *testing.T) {
	w := small(t, 32, 2, 16, 4)
	if r := w.put("a", `{"tp":32,"rings":2,"exclude":["[4-7]",20]}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	if r := w.put("b", `{"tp":16,"spares":1,"nodes":["[24-31]"]}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(3 * time.Second)
	look := func() {
		t.Helper()
		for _, n := range slices.Concat(nodesIn(w.job("a"))...) {
			if n >= 4 && n < 8 || n == 20 {
				t.Errorf("a has node %d\n%s", n, w.show())
			}
		}
		for _, n := range slices.Concat(nodesIn(w.job("b"))...) {
			if n < 24 {
				t.Errorf("b has node %d\n%s", n, w.show())
			}
		}
	}
	look()
	for range 4 {
		for _, id := range []string{"a", "b"} {
			if v := w.job(id); len(v.Rings[0].Nodes) > 1 {
				w.die(node(v.Rings[0].Nodes[1]))
			}
		}
		w.run(3 * time.Second)
		look()
	}
}

// Goal: where there is no room a job waits, takes fewer rings, or is refused; where
// a node is lost and none takes its place, one that shrinks has a smaller ring whose
// size divides the one it had, and one that waits is whole again when the node is back.
func TestJobsWaitShrinkOrFail(t *testing.T) {
	w := small(t, 24, 2, 32, 0)
	if r := w.put("fail", `{"tp":32,"rings":3,"policy":"fail","exclude":[0]}`); r.Code != proto.Conflict || r.Field != "rings" {
		t.Errorf("%+v", r)
	}
	if r := w.put("wait", `{"tp":32}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	if r := w.put("shrink", `{"tp":32,"rings":3,"policy":"shrink"}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(2 * time.Second)
	s := w.job("shrink")
	if s.State != job.Ready || len(s.Rings) != 2 || s.GPUsTotal != 64 {
		t.Fatalf("%+v\n%s", s, w.show())
	}
	if r := w.put("late", `{"tp":32}`); r.Code != proto.OK || w.job("late").State != job.Waiting || w.job("late").Cause == "" {
		t.Errorf("%+v", w.job("late"))
	}
	if r := w.put("fail", `{"tp":32,"policy":"fail"}`); r.Code != proto.Conflict || r.Limit != "0 now" {
		t.Errorf("%+v", r)
	}

	lost := node(s.Rings[0].Nodes[3])
	w.die(lost)
	w.run(8 * time.Second)
	s = w.job("shrink")
	if n := len(s.Rings[0].Nodes); s.State != job.Ready || n == 8 || 8%n != 0 || len(s.Rings[0].GPUOrder) != 4*n || s.Confirmed != s.Links {
		t.Errorf("%+v\n%s\n%s", s, w.heard("shrink"), w.show())
	}
	v := w.job("wait")
	dead := node(v.Rings[0].Nodes[2])
	w.die(dead)
	w.run(8 * time.Second)
	if v = w.job("wait"); v.State != job.Degraded || v.GPUsTotal != 28 {
		t.Errorf("%+v\n%s", v, w.heard("wait"))
	}
	if _, _, err := v.File("ranks", job.Split{}); v.State == job.Degraded && err != nil {
		t.Error(err)
	}
	w.birth(dead, true)
	w.run(20 * time.Second)
	if v = w.job("wait"); v.State != job.Ready || v.GPUsTotal != 32 {
		t.Errorf("%+v\n%s\n%s", v, w.heard("wait"), w.show())
	}
	w.release("wait")
	w.run(3 * time.Second)
	if l := w.job("late"); l.State != job.Ready {
		t.Errorf("%+v\n%s", l, w.show())
	}
}

// Goal: a place that has not become ready in time is given back, and asked for again.
// Method: a node that is told falls silent.
func TestPlaceIsGivenBack(t *testing.T) {
	w := small(t, 24, 2, 16, 0)
	w.trace = func(line string) {
		if strings.Contains(line, "generation committed") {
			w.nodes[5].slow = true // it acts, and nobody hears of it
		}
	}
	if r := w.put("a", `{"tp":48,"hold_ms":5000,"nodes":["[0-11]"]}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(3 * time.Second)
	if a := w.job("a"); a.State != job.Forming || a.Confirmed == a.Links {
		t.Fatalf("%+v\n%s", a, w.heard("a"))
	}
	w.run(4 * time.Second)
	events, _, _ := w.p.Jobs.Events("a", 0)
	back := slices.IndexFunc(events, func(e job.Event) bool {
		return e.Event == string(job.Waiting) && strings.Contains(e.Cause, "not ready within 5s")
	})
	if back < 3 {
		t.Errorf("%+v", events)
	}
}

// Goal: a node that is replaced leaves, a spare stands in, and asking twice changes
// nothing more; one that is not the job's is refused, and so is a file of a number
// that the job has left.
func TestReplacedTwice(t *testing.T) {
	w := small(t, 32, 2, 32, 4)
	if r := w.put("a", `{"tp":32,"spares":1}`); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(2 * time.Second)
	out := w.job("a").Rings[0].Nodes[7]
	drain := func() *proto.OpReply {
		n, err := w.p.Jobs.Member("a", "", job.Name(out))
		if err != nil {
			e := proto.AsError(err)
			return &proto.OpReply{Code: e.Code, Field: e.Field, Limit: e.Limit}
		}
		return w.ask(proto.OpRequest{Noun: proto.NounDrain, Bundle: -1, Node: n, Reason: "replaced"})
	}
	first := drain()
	second := drain()
	w.run(5 * time.Second)
	if first.Code != proto.OK || second.Code != proto.OK && (second.Code != proto.Invalid || second.Field != "out") {
		t.Errorf("%+v, then %+v", first, second)
	}
	a := w.job("a")
	if a.State != job.Ready || a.GPUsTotal != 32 || slices.Contains(a.Rings[0].Nodes, out) || strings.Count(w.heard("a"), "replaced "+out) != 1 {
		t.Errorf("%+v\n%s", a, w.heard("a"))
	}
	if third := drain(); third.Code != proto.Invalid || third.Field != "out" || third.Limit == "" {
		t.Errorf("%+v", third)
	}
	if fmt.Sprint(a.Spares) != "[]" {
		t.Errorf("%v", a.Spares)
	}
}
