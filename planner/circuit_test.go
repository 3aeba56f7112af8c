package planner

import (
	"fmt"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

func smallCore() *fabric.Core { return fabric.DefaultCore(4) }

func spec(id, servers, tp, pp int) proto.JobSpec {
	return proto.JobSpec{Job: proto.JobID(id), TP: uint32(tp), EP: 1, PP: uint32(pp), Servers: uint32(servers)}
}

func startedWorld(t testing.TB, core *fabric.Core) *coreWorld {
	w := newCoreWorld(t, core)
	w.start()
	for s := range w.switches {
		w.birth(s)
	}
	if !w.quiet(10 * time.Second) {
		t.Fatalf("the planner does not come to rest: %s", w.show())
	}
	return w
}

// A job list becomes light: every link that was granted is there both ways.
// Method: three jobs over all pods of a small core.
func TestJobsBecomeLight(t *testing.T) {
	for _, wiring := range []fabric.Wiring{fabric.Interleaved, fabric.Uniform} {
		core := smallCore()
		core.Wiring = wiring
		w := startedWorld(t, core)
		r := w.apply(spec(1, 20, 4, 2), spec(2, 24, 4, 4), spec(3, 10, 2, 1))
		if r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
		if !w.quiet(10 * time.Second) {
			t.Fatal(w.show())
		}
		if d := w.consistent(); d != "" {
			t.Error(d)
		}
		s := w.p.Core.Status()
		if s.Placed != 3 || s.Granted == 0 || wiring == fabric.Interleaved && s.Realised != s.Granted {
			t.Error(w.show())
		}
		t.Logf("%s: %s%+v", wiring, w.show(), r.Change)
	}
}

// A stage that is slow does not delay a ring, and has generations of its own.
// Method: switches that are prepared and never answer; meanwhile a node dies
// and its ring is mended.
func TestRingsDoNotWaitForStages(t *testing.T) {
	core := smallCore()
	core.LeavesPerPod, core.SpinesPerPod, core.SpinePorts = 1, 1, 2
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: 6, GPUsPerNode: 4, K: 2, TP: 16, Spares: 2, Core: core})
	if err != nil {
		t.Fatal(err)
	}
	w := newFleet(t, f)
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	for s := range core.Switches() {
		id := proto.FirstSwitch + proto.NodeID(s)
		for topic, msg := range map[string]any{ // any order: both come before anything is done
			w.topics.Presence(id): &proto.Presence{Version: proto.Version, Node: id, Session: 5, Online: true, Ports: 8},
			w.topics.Reported(id): &proto.Reported{Version: proto.Version, Node: id, Session: 5, Seq: 1},
		} {
			payload, err := proto.Encode(msg)
			if err != nil {
				t.Fatal(err)
			}
			w.up = append(w.up, proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload})
		}
	}
	w.run(time.Second)
	if o := w.p.Overview(); o.InService != 1 || o.Generation == 0 {
		t.Fatal(w.show())
	}
	ring := w.p.Overview().Generation
	payload, err := proto.Encode(&proto.OpRequest{Version: proto.Version, Corr: proto.Corr{1}, TTLMillis: 1000, Noun: proto.NounApply, Bundle: -1,
		Jobs: []proto.JobSpec{spec(1, 8, 4, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	w.up = append(w.up, proto.Packet{Kind: proto.Publish, Topic: w.topics.Request("op"), Payload: payload})
	w.run(100 * time.Millisecond)
	if w.p.Core.Stages.Phase() != "preparing" || len(w.toSwitches) < 2 {
		t.Fatalf("no stage is under way: %v, %d messages", w.p.Core.Stages.Phase(), len(w.toSwitches))
	}
	if w.p.Overview().Generation != ring {
		t.Error("a stage took a generation of the rings")
	}
	w.die(w.p.Rings.Placed.Statuses()[0].Nodes[1])
	w.run(2 * time.Second)
	if o := w.p.Overview(); o.InService != 1 || o.Generation <= ring {
		t.Errorf("the ring waits: %s", w.show())
	}
	if s := w.p.Core.Stages.Phase(); s != "preparing" {
		t.Errorf("the stage is %v", s)
	}
}

// A circuit that nobody asked for, a port that does not exist, a switch that
// does not exist: what a report says is judged, not trusted.
// Method: reports with nonsense to a planner that adopts and to one that runs.
func TestNonsenseOfSwitchesIsJudged(t *testing.T) {
	core := smallCore()
	core.LeavesPerPod, core.SpinesPerPod, core.SpinePorts = 1, 1, 2
	w := newCoreWorld(t, core)
	w.start()
	say := func(id proto.NodeID, kind proto.TopicKind, topic string, msg any) {
		t.Helper()
		payload, err := proto.Encode(msg)
		if err != nil {
			t.Fatal(err)
		}
		w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload}})
	}
	odd := []proto.CircuitReport{{A: 9, B: 1, Job: 3, State: proto.Tuned}, {A: 0, B: 200, Job: 3}, {A: 1, B: 2, Job: 3, State: proto.Tuned}, {A: 2, B: 2}}
	for _, id := range []proto.NodeID{proto.FirstSwitch, proto.FirstSwitch + 1, proto.FirstSwitch + 99} {
		say(id, proto.TopicPresence, w.topics.Presence(id), &proto.Presence{Version: proto.Version, Node: id, Session: 5, Online: true, Ports: 8})
		say(id, proto.TopicReported, w.topics.Reported(id), &proto.Reported{Version: proto.Version, Node: id, Session: 5, Seq: 1, Term: 1, Generation: 4, Circuits: odd})
	}
	w.run(10 * time.Second)
	if w.p.Overview().Refused != 2 {
		t.Errorf("%d messages refused, want those of a switch that does not exist", w.p.Overview().Refused)
	}
	if jobs := w.jobs(); len(jobs) != 1 || jobs[0].Job != 3 || jobs[0].State != proto.JobAdopted {
		t.Errorf("job 3 is not adopted by its circuit: %s", w.show())
	}
	if c := w.wanted()[0]; len(c) != 1 || c[0].A != 1 || c[0].B != 2 {
		t.Errorf("%+v", c)
	}
}

// A planner's store is checked before anything is made of it.
// Method: one damaged record each.
func TestDamagedCircuitRecordsAreRefused(t *testing.T) {
	w := startedWorld(t, smallCore())
	w.apply(spec(1, 20, 4, 2))
	if !w.quiet(10 * time.Second) {
		t.Fatal(w.show())
	}
	for key, value := range map[string]string{ // any order: each is judged by itself
		"deck/000000":       `{"links":[[0,1,1],[0,2,1]]}`,
		"deck/000099":       `{"links":[]}`,
		"deck/000001":       `{"links":[[0,99,1]]}`,
		"job/0000000001":    `{"spec":{"Job":1},"paths":[{"Spine":9,"A":0,"B":1,"Count":1}]}`,
		"job/0000000002":    `{"spec":{"Job":2},"shares":[{"Pod":9,"Leaf":0,"Servers":1}]}`,
		"job/0000000003":    `{`,
		"job/0000000004":    `{"spec":{"Job":4,"Collective":9}}`,
		"switch/0000000001": `{}`,
		"switch/0001048999": `{}`,
		"stage":             `{"switches":[99]}`,
		"circuits":          `[]`,
	} {
		st := State{{Key: key, Value: []byte(value)}}
		if _, err := Start(st, w.fab, 77); err == nil {
			t.Errorf("%s %s: accepted", key, value)
		}
	}
	if _, err := Start(State{{Key: "deck/000000", Value: []byte(`{"links":[]}`)}}, fabric.Default(), 77); err == nil {
		t.Error("circuits in a fabric without a core: accepted")
	}
}

// Goal: what the loss of a switch takes is what its mirrors carry, and the status says
// so. Method: jobs on cores of both wirings, one small enough to be on few switches;
// links and jobs are counted from the light of each switch by itself.
func TestStatusTellsWhatASwitchCarries(t *testing.T) {
	for _, wiring := range []fabric.Wiring{fabric.Interleaved, fabric.Uniform} {
		core := smallCore()
		core.Wiring = wiring
		w := startedWorld(t, core)
		if r := w.ask(proto.OpRequest{Noun: proto.NounStatus}); r.Status == nil || len(r.Status.Breaks) != 0 {
			t.Errorf("%s: without jobs: %+v", wiring, r.Status)
		}
		if r := w.apply(spec(1, 20, 4, 2), spec(2, 24, 4, 4), spec(3, 10, 2, 1)); r.Code != proto.OK || !w.quiet(10*time.Second) {
			t.Fatalf("%+v, %s", r, w.show())
		}
		ways := map[fabric.Wiring]int{fabric.Interleaved: 1, fabric.Uniform: 2}[wiring] // circuits of a link in one switch
		everywhere := map[proto.JobID]int{}
		for s := range w.switches {
			for _, x := range w.switches[s].light {
				everywhere[x.job]++
			}
		}
		most, want := 0, map[string]proto.Break{}
		for s := range w.switches {
			b, of := proto.Break{Lose: fmt.Sprintf("switch %d", s)}, map[proto.JobID]int{}
			for _, x := range w.switches[s].light {
				of[x.job]++
			}
			for id, n := range of {
				b.Links += uint32(n / ways)
				b.Jobs++
				if 2*n/ways == everywhere[id] {
					b.Down++
				}
			}
			if b.Links > 0 {
				want[b.Lose] = b
			}
			most = max(most, int(b.Down)*1000+int(b.Links))
		}
		got := w.ask(proto.OpRequest{Noun: proto.NounStatus}).Status.Breaks
		if len(got) != min(len(want), maxBreaks) || len(got) == 0 {
			t.Fatalf("%s: %d of %d switches: %+v", wiring, len(got), len(want), got)
		}
		for i, b := range got {
			if b != want[b.Lose] || i == 0 && int(b.Down)*1000+int(b.Links) != most {
				t.Errorf("%s: %+v, want %+v, the worst first", wiring, b, want[b.Lose])
			}
		}
		t.Logf("%s: %+v", wiring, got)
	}
}
