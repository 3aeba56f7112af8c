package planner

import (
	"slices"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: of two that have just begun and have said as much, the one of the lower life
// goes on and the other steps back and looks round, so that one does.
func TestOneOfTwoThatBeginGoesOn(t *testing.T) {
	for life, goesOn := range map[uint64]bool{1: false, 1000: true} {
		w := small(t, 4, 2, 16, 0)
		w.hear(w.topics.Planner(), proto.TopicPlanner, &proto.PlannerState{Version: proto.Version, Planner: life, Life: life, Online: true, Term: w.p.j.Term, Seq: w.p.pulse.beat,
			PeriodMillis: uint32(BeatPeriod.Milliseconds()), Fabric: w.fab.Name, Layout: layoutOf(w.fab)})
		if w.p.pulse.beat > beatsAlive || (w.p.j.Term == 1) != goesOn {
			t.Errorf("life %d, ours %d, beat %d: term %d", life, w.p.j.Life, w.p.pulse.beat, w.p.j.Term)
		}
	}
}

// Goal: a planner that leaves, since the agents hold plans made from another
// description, leaves none in an empty store: the next start may bring the right one.
func TestWhoLeavesKeepsNoDescription(t *testing.T) {
	w := small(t, 8, 2, 32, 0)
	clear(w.store)
	old := w.fab
	f := *old
	f.Policy = "hold"
	w.fab = &f
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), false)
	}
	w.run(20 * time.Second)
	if w.exit == "" || w.store[keyFabric] != nil {
		t.Fatalf("exit %q, description %q", w.exit, w.store[keyFabric])
	}
	w.fab = old
	w.start()
	w.run(20 * time.Second)
	if r := w.p.Rings.Placed.Statuses(); w.exit != "" || len(r) != 1 || r[0].State != proto.RingInService {
		t.Errorf("exit %q: %+v", w.exit, r)
	}
}

// Goal: a term of another planner that is heard while a decision is on its way to the
// disk is gone on from when that is there.
func TestTermHeardWhileDecidingIsGoneOnFrom(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	w.holdDisk = true
	w.die(3)
	w.run(time.Second)
	if !w.p.Rings.Deciding() {
		t.Fatal("nothing is being decided")
	}
	payload, err := proto.Encode(&proto.PlannerState{Version: proto.Version, Planner: 5, Life: 5, Online: true, Term: 9, PeriodMillis: 2000, Fabric: w.fab.Name, Layout: layoutOf(w.fab)})
	if err != nil {
		t.Fatal(err)
	}
	w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: w.topics.Planner(), Payload: payload, QoS: 1, Retain: true}})
	if w.p.state != serving {
		t.Fatalf("%s while a decision is under way", w.p.state)
	}
	w.holdDisk = false
	for id := range w.onDisk {
		w.step(Event{Kind: Persisted, Persist: id + 1})
	}
	w.run(10 * time.Second)
	if o := w.p.Overview(); o.Term != 10 || slices.Contains(w.p.Rings.Placed.Statuses()[0].Nodes, 3) {
		t.Errorf("%+v %+v", o, w.p.Rings.Placed.Statuses())
	}
}
