package fleet

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/job"
	"ringlight/proto"
)

// Goal: a job whose board dies is told degraded within 10 ms of board time and
// replaced within a second, ready again with as many GPUs, and no light but its
// ring's has changed.
// Method: a fleet of production agents; a job of two rings with spares beside
// them; one of its nodes loses its supply, then another, then one that nobody replaces.
func TestJobIsDegradedThenReplaced(t *testing.T) {
	cfg := testConfig(t, 40, 2, 32, fabric.Line)
	cfg.Span = 30 * time.Second
	cfg.Rates = Rates{}
	cfg.Faults = script(t, "5s node dark 3", "15s node dark 12", "25s node dark 8 for 10s")
	var events []job.Event
	var view *job.View
	moments := []time.Duration{time.Second, 29 * time.Second}
	at, start := 0, uint64(0)
	cfg.mutant = &mutant{at: moments[0], act: func(r *Run) {
		switch at {
		case 0:
			start = epochMillis + uint64(r.now.Milliseconds())
			payload, err := proto.Encode(&proto.OpRequest{Version: proto.Version, Corr: proto.Corr{1}, TTLMillis: 5000, Noun: proto.NounSubmit, Bundle: -1, Name: "train",
				Text: `{"tp":24,"rings":2,"spares":2,"nodes":[0,1,2,3,4,5,6,7,8,9,10,11,12,13]}`})
			if err != nil {
				t.Fatal(err)
			}
			r.net.publish(operatorID, proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: r.cfg.Fabric.Name}.Request("test"), Payload: payload, QoS: 1})
		case 1:
			jobs := r.planners[0].host.Planner().Jobs
			var err error
			if events, _, err = jobs.Events("train", 0); err != nil {
				t.Fatal(err)
			}
			if view, err = jobs.Get("train"); err != nil {
				t.Fatal(err)
			}
		}
		if at++; at < len(moments) {
			r.agenda.Push(r.epoch+moments[at], task{kind: taskMutant})
		}
	}}
	clean(t, run(t, cfg))
	for _, e := range events {
		t.Logf("%6d ms  %d %s %s %s %s %d %s", int64(e.AtMS-start)+1000, e.Generation, e.Event, e.Node, e.Out, e.In, e.GPUsTotal, e.Cause)
	}
	if view == nil || view.State != job.Degraded || view.GPUsTotal != 44 || len(view.Spares) != 0 || slices.ContainsFunc(view.Rings, func(r job.Ring) bool { return slices.Contains(r.Nodes, "14") }) {
		t.Fatalf("%+v", view)
	}
	for _, fault := range []struct {
		at   int64
		node string
	}{{5000, "3"}, {15000, "12"}} {
		after := func(kind, node string) int64 {
			i := slices.IndexFunc(events, func(e job.Event) bool {
				return int64(e.AtMS-start)+1000 >= fault.at && e.Event == kind && (node == "" || e.Node == node || e.Out == node)
			})
			if i < 0 {
				t.Fatalf("no %s of node %s", kind, node)
			}
			return int64(events[i].AtMS-start) + 1000 - fault.at
		}
		degraded, lost, replaced, ready := after("degraded", ""), after(job.NodeLost, fault.node), after(job.Replaced, fault.node), after("ready", "")
		t.Logf("node %s: degraded after %d ms, node_lost %d, replaced %d, ready %d", fault.node, degraded, lost, replaced, ready)
		if degraded > 10 || replaced > 1000 {
			t.Errorf("node %s: degraded after %d ms (want 10), replaced after %d (want 1000)", fault.node, degraded, replaced)
		}
	}
	checkHandOvers(t, events, view)
}

// checkHandOvers holds the orders that a job's events have against each other, and the
// last against the order of light.
func checkHandOvers(t *testing.T, events []job.Event, view *job.View) {
	var before *job.Event
	var told []string
	for i := range events {
		e := &events[i]
		if e.HandOver == nil {
			continue
		}
		told = append(told, fmt.Sprintf("%s %d of %d, %s", e.Event, len(e.Lost), len(e.Members), e.Expect))
		if before == nil {
			before = e
			continue
		}
		if e.Before != before.Generation || len(e.Map) != len(before.Members) {
			t.Fatalf("event %d: map of %d ranks of event %d, want %d of %d", e.Generation, len(e.Map), e.Before, len(before.Members), before.Generation)
		}
		for was, now := range e.Map {
			if lost := slices.Contains(e.Lost, was); lost != (now < 0) || !lost && e.Members[now] != before.Members[was] || lost && slices.Contains(e.Members, before.Members[was]) {
				t.Errorf("event %d: rank %d of before, %v, is %d now", e.Generation, was, before.Members[was], now)
			}
		}
		if (e.Expect == job.Nothing) != (e.Event == job.Restored) {
			t.Errorf("event %d: %s expects %s", e.Generation, e.Event, e.Expect)
		}
		before = e
	}
	mend := []string{"degraded 0 of 48, degraded", "degraded 4 of 44, replaced", "replaced 0 of 48, restored", "degraded 0 of 48, restored", "restored 0 of 48, nothing"}
	want := slices.Concat([]string{"ready 0 of 48, nothing"}, mend, mend, []string{"degraded 0 of 48, degraded", "degraded 4 of 44, restored", "left 0 of 44, restored", "degraded 0 of 44, restored"})
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	var light []job.GPU
	for _, r := range view.Rings {
		light = append(light, r.GPUOrder...)
	}
	if !slices.Equal(before.Members, light) {
		t.Errorf("told members %v, light walks %v", before.Members, light)
	}
}
