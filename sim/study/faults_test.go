package study

import (
	"errors"
	"slices"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/trace"
)

// Goal: the halves of a server fail as often as they should, alone and
// together, and come back.
// Method: many seeds of a generated trace on one node per half.
func TestHalvesOfServers(t *testing.T) {
	tr := trace.Generate(1)
	s := Size{Nodes: 2 * trace.Servers, GPUsPerNode: 4, TPs: []int{8}}
	outages, hits, both := 0, 0, 0
	for seed := range uint64(30) {
		lay, err := Layout{Seed: seed}.lay(tr, s)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := Layout{Seed: seed}.lay(tr, Size{Nodes: trace.Servers, GPUsPerNode: 8, TPs: []int{8}})
		if err != nil {
			t.Fatal(err)
		}
		down := make([]bool, s.Nodes)
		for _, f := range lay.flips {
			if down[f.node] = !down[f.node]; down[f.node] {
				hits++
				if down[f.node^1] {
					both++
				}
			}
		}
		out := make([]bool, trace.Servers)
		for _, f := range whole.flips {
			if out[f.node] = !out[f.node]; out[f.node] {
				outages++
			}
		}
	}
	starts := float64(outages)
	if got := float64(hits) / starts / 2; got < 0.49 || got > 0.52 {
		t.Errorf("a half fails in %.4f of its server's outages, want %.4f", got, halfFails)
	}
	if got := float64(both) / starts; got < 0.24 || got > 0.27 {
		t.Errorf("both halves fail in %.4f of the outages, want %.4f", got, halfFails*halfFails)
	}
}

// Goal: siblings stand half a cluster apart, or side by side, and every place
// is taken once.
// Method: both layouts of even and odd clusters.
func TestPlacesOfSiblings(t *testing.T) {
	for _, nodes := range []int{2, 7, 2448} {
		s := Size{Nodes: nodes, GPUsPerNode: 4}
		places := Layout{}.places(s)
		seen := make([]bool, nodes)
		for _, p := range places {
			if p < 0 || p >= nodes || seen[p] {
				t.Fatalf("%d nodes: place %d is taken or not there", nodes, p)
			}
			seen[p] = true
		}
		if nodes%2 == 0 && places[1]-places[0] != nodes/2 {
			t.Errorf("%d nodes: siblings %d apart", nodes, places[1]-places[0])
		}
		if !slices.Equal((Layout{Adjacent: true}).places(s), packed(nodes)) {
			t.Error("adjacent siblings are moved")
		}
	}
}

// Goal: a state is seen for as long as it lasts, overlapping faults are one
// outage, and a fixed repair ends each fault after that time.
// Method: one server with three faults, as a node of eight GPUs.
func TestReplayOfOverlappingFaults(t *testing.T) {
	day := trace.Day
	a, b := trace.Fault{Class: "GPU"}, trace.Fault{Class: "NIC"}
	tr := &trace.Trace{Servers: 1, Span: 20 * day, Events: []trace.Event{
		{At: 1 * day, Start: true, Fault: a}, {At: 2 * day, Start: true, Fault: b}, {At: 3 * day, Fault: a}, {At: 5 * day, Fault: b},
		{At: 18 * day, Start: true, Fault: a},
	}}
	s := Size{Nodes: 1, GPUsPerNode: 8, TPs: []int{8}}
	for _, c := range []struct {
		repair time.Duration
		down   time.Duration
	}{{0, 6 * day}, {4 * day, 7 * day}} {
		lay, err := Layout{Repair: c.repair}.lay(tr, s)
		if err != nil {
			t.Fatal(err)
		}
		cl := newCluster(s)
		var down, all time.Duration
		lay.replay(cl, func(at, lasts time.Duration) {
			if at != all {
				t.Errorf("repair %v: state at %v after %v", c.repair, at, all)
			}
			if all += lasts; cl.down[0] {
				down += lasts
			}
		})
		if down != c.down || all != tr.Span {
			t.Errorf("repair %v: down %v of %v, want %v of %v", c.repair, down, all, c.down, tr.Span)
		}
	}
}

// Goal: a trace of 8-GPU servers becomes nodes of 8 or 4 GPUs, nothing else.
func TestTraceNeedsHalvesOrWholes(t *testing.T) {
	_, err := WasteOnTrace(ClusterConfig{Size: Size{Nodes: 100, GPUsPerNode: 2, TPs: []int{8}}, Runs: 1})
	var e *proto.Error
	if !errors.As(err, &e) || e.Field != "gpus" {
		t.Errorf("got %v", err)
	}
	if _, err := WasteOnTrace(ClusterConfig{Size: Size{Nodes: 101, GPUsPerNode: 8, TPs: []int{8}}, Runs: 2}); err != nil {
		t.Error(err)
	}
	if _, err := WasteOnTrace(ClusterConfig{Size: Size{Nodes: 101, GPUsPerNode: 4, TPs: []int{8}}, Runs: 2}); err != nil {
		t.Error(err)
	}
}

// Goal: mending with any number of moves wastes what placing from nothing
// wastes and touches far fewer running groups.
// Method: a generated trace over a small cluster.
func TestDisruptionAtTheSameWaste(t *testing.T) {
	res, err := Disruption(ClusterConfig{Size: Size{Nodes: 400, GPUsPerNode: 4, Ring: true, TPs: []int{32}}, Runs: 2}, []int{2, 3}, false, fabric.MoveAny)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range res.Rows {
		if row.Faults < 100 || row.Repairs < 100 {
			t.Errorf("K=%d: %d faults, %d repairs", row.K, row.Faults, row.Repairs)
		}
		near(t, "waste", row.OursWaste, row.PaperWaste, row.PaperWaste)
		near(t, "groups per fault", row.OursFault, 0, row.PaperFault/2)
		near(t, "groups per repair", row.OursRepair, 0, row.PaperRepair/2)
	}
}
