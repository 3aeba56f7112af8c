package planner

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// later asks without waiting for the answer.
func (w *fleet) later(q proto.OpRequest) {
	w.t.Helper()
	w.replies = nil
	w.asked++
	q.Version, q.TTLMillis, q.Corr = proto.Version, 20_000, proto.Corr{1, 2, byte(w.asked)}
	payload, err := proto.Encode(&q)
	if err != nil {
		w.t.Fatal(err)
	}
	w.raw(w.topics.Request("ctl-1"), payload)
}

// Goal: a drain says first what it costs, forms the ring anew with a spare,
// and takes the node out only when the ring has light; undrain lets it in.
func TestDrain(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	before := w.show()
	cost := w.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1, DryRun: true}).Cost
	if cost == nil || !slices.Equal(cost.Rings, []proto.RingID{1}) || cost.Jobs != 1 || cost.GPUs != 0 || !slices.Equal(cost.Joins, []proto.NodeID{8}) ||
		cost.Links != 4 || cost.DarkMicros == 0 || cost.Stages != 1 {
		t.Errorf("cost %+v", cost)
	}
	if w.show() != before {
		t.Error("a dry run changed something")
	}
	w.later(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1})
	w.run(3 * time.Second)
	if len(w.replies) != 1 || w.replies[0].Code != proto.OK || w.nodes[3].mode != proto.ModeDrained {
		t.Fatalf("replies %+v, mode %v", w.replies, w.nodes[3].mode)
	}
	if r := w.p.Rings.Placed.Statuses(); !slices.Equal(r[0].Nodes, []proto.NodeID{0, 1, 2, 4, 5, 6, 7, 8}) || r[0].State != proto.RingInService {
		t.Errorf("%+v", r)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1}); r.Code != proto.Duplicate {
		t.Errorf("drained again: %+v", r)
	}
	// The ring loses another: the drained node is no spare, the undrained is.
	w.die(5)
	w.run(3 * time.Second)
	if r := w.p.Rings.Placed.Statuses(); len(r[0].Nodes) != 7 {
		t.Errorf("%+v", r)
	}
	if cost := w.ask(proto.OpRequest{Noun: proto.NounUndrain, Node: 3, Bundle: -1, DryRun: true}).Cost; cost == nil || !slices.Equal(cost.Joins, []proto.NodeID{3}) {
		t.Errorf("cost of undrain %+v", cost)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounUndrain, Node: 3, Bundle: -1}); r.Code != proto.OK {
		t.Errorf("undrain: %+v", r)
	}
	w.run(3 * time.Second)
	if r := w.p.Rings.Placed.Statuses(); len(r[0].Nodes) != 8 || r[0].State != proto.RingInService || !slices.Contains(r[0].Nodes, 3) {
		t.Errorf("%+v", r)
	}
}

// Goal: a drain outlives its planner: whenever that is killed, the next one
// brings it to its end, answers the one who asked, and keeps nothing of it.
// Method: a planner killed and started again at each of many moments.
func TestDrainSurvivesARestart(t *testing.T) {
	for after := time.Duration(0); after < 120*time.Millisecond; after += 3 * time.Millisecond {
		w := small(t, 9, 2, 32, 1)
		w.later(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1})
		w.run(after)
		w.start()
		w.run(15 * time.Second)
		if len(w.replies) == 0 || w.replies[len(w.replies)-1].Code != proto.OK || w.replies[len(w.replies)-1].Cost == nil || w.nodes[3].mode != proto.ModeDrained {
			t.Fatalf("killed after %v: replies %+v, mode %v", after, w.replies, w.nodes[3].mode)
		}
		if r := w.p.Rings.Placed.Statuses(); !slices.Equal(r[0].Nodes, []proto.NodeID{0, 1, 2, 4, 5, 6, 7, 8}) || r[0].State != proto.RingInService {
			t.Errorf("killed after %v: %+v", after, r)
		}
		if w.draining(3) {
			t.Errorf("killed after %v: the drain goes on", after)
		}
		for k := range w.store {
			if strings.HasPrefix(k, "drain/") {
				t.Errorf("killed after %v: %s is still in the store", after, k)
			}
		}
		if r := w.ask(proto.OpRequest{Noun: proto.NounUndrain, Node: 3, Bundle: -1}); r.Code != proto.OK {
			t.Errorf("killed after %v: undrain: %+v", after, r)
		}
	}
}

// Goal: a drain that a restart finds beyond help is stopped and answered.
// Method: the node dies while there is no planner.
func TestRestartStopsADrainOfADeadNode(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	w.holdDisk = true // nothing of the drain itself gets further
	w.later(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1})
	const key = "drain/0000000003"
	w.store[key] = []byte(`{"ring":1,"client":"ctl-1","corr":"0102` + strings.Repeat("00", 14) + `","cost":{},"ttl_millis":20000}`)
	w.holdDisk = false
	w.die(3)
	w.start()
	w.run(15 * time.Second)
	if len(w.replies) != 1 || w.replies[0].Code == proto.OK || w.draining(3) || w.store[key] != nil {
		t.Errorf("replies %+v, draining %v", w.replies, w.draining(3))
	}
	if r := w.p.Rings.Placed.Statuses(); len(r[0].Nodes) != 8 || r[0].State != proto.RingInService {
		t.Errorf("%+v", r)
	}
}

// Goal: a dry run counts what comes of the drain later, too: whole rings that
// move for the one that is left short, as far as the fabric lets them.
// Method: no spare beside the ring, one behind a whole neighbour.
func TestDryRunCountsMoves(t *testing.T) {
	for _, c := range []struct {
		moves  fabric.Moves
		rings  int
		stages uint32
		gpus   uint32
	}{{fabric.MoveNone, 1, 1, 4}, {fabric.MoveFew, 2, 2, 0}, {fabric.MoveAny, 2, 2, 0}} {
		f, err := fabric.New(fabric.Params{Name: "f", Nodes: 17, GPUsPerNode: 4, K: 2, TP: 32, Spares: 1, SpareLayout: fabric.AtEnd, Moves: c.moves})
		if err != nil {
			t.Fatal(err)
		}
		w := newFleet(t, f)
		w.start()
		for i := range w.nodes {
			w.birth(proto.NodeID(i), true)
		}
		w.run(3 * time.Second)
		cost := w.ask(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1, DryRun: true}).Cost
		if cost == nil || len(cost.Rings) != c.rings || cost.Jobs != uint32(c.rings) || cost.Stages != c.stages || cost.GPUs != c.gpus || cost.DarkMicros == 0 {
			t.Errorf("moves %s: %+v", c.moves, cost)
		}
		w.later(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1})
		w.run(10 * time.Second)
		if len(w.replies) != 1 || w.replies[0].Code != proto.OK {
			t.Fatalf("moves %s: %+v", c.moves, w.replies)
		}
		touched, gpus := 0, uint32(0)
		for _, r := range w.p.Rings.Placed.Statuses() {
			if r.Generation > 1 {
				touched++
			}
			gpus += r.GPUs
		}
		if touched != c.rings || 64-gpus != c.gpus {
			t.Errorf("moves %s: %d rings touched, %d GPUs in rings", c.moves, touched, gpus)
		}
	}
}

// Goal: a drain whose ring gets no light stops; the node is not taken out.
// Method: the fibre that the ring would need then is cut.
func TestDrainStops(t *testing.T) {
	w := small(t, 8, 2, 32, 0)
	w.cuts[pair(2, 4)] = true
	w.later(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1})
	w.run(19 * time.Second)
	if len(w.replies) != 1 || w.replies[0].Code != proto.HardwareFailed {
		t.Fatalf("replies %+v", w.replies)
	}
	if w.nodes[3].mode != proto.ModeService {
		t.Errorf("node 3 is %v", w.nodes[3].mode)
	}
	w.run(30 * time.Second)
	if r := w.p.Rings.Placed.Statuses(); r[0].State != proto.RingInService || len(r[0].Nodes) != 8 {
		t.Errorf("%+v", r)
	}
}

// Goal: a request goes to the candidate that faces the peer; a side that an
// operator holds is no reason to form a ring anew or to call a fibre cut.
func TestRequestOfOperator(t *testing.T) {
	w := small(t, 8, 2, 32, 0)
	peer, wrong := proto.NodeID(5), proto.NodeID(7)
	if r := w.ask(proto.OpRequest{Noun: proto.NounRequest, Node: 3, Bundle: -1, Side: proto.Right, Request: proto.ForcedSwitch, Peer: &wrong}); r.Code != proto.NotFound || r.Limit != "a candidate: 4, 5" {
		t.Errorf("%+v", r)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounRequest, Node: 3, Bundle: -1, Side: proto.Right, Request: proto.ForcedSwitch, Peer: &peer, DryRun: true}); r.Cost == nil || r.Cost.Jobs != 1 {
		t.Errorf("%+v", r)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounRequest, Node: 3, Bundle: -1, Side: proto.Right, Request: proto.ForcedSwitch, Peer: &peer}); r.Code != proto.OK {
		t.Errorf("%+v", r)
	}
	if got := w.nodes[3].asked; got.Request != proto.ForcedSwitch || got.Side != proto.Right || got.Bundle != 1 || got.Path != proto.External2 {
		t.Errorf("the agent is told %+v", got)
	}
	gen := w.p.Overview().Generation
	w.run(time.Minute)
	if w.p.Overview().Generation != gen || w.noted("cut") {
		t.Errorf("generation %d, want %d; a cut is noted: %v", w.p.Overview().Generation, gen, w.noted("cut"))
	}
}

// Goal: a node whose agent is gone for good, and of which one neighbour has
// lost the light, is passed by; without a loss it is left alone however long.
func TestAbandonedNodeIsPassedBy(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	w.offline(3)
	w.run(time.Minute)
	if r := w.p.Rings.Placed.Statuses(); !slices.Contains(r[0].Nodes, 3) {
		t.Fatalf("%+v", r)
	}
	w.cuts[pair(2, 3)] = true
	w.light()
	w.run(8 * time.Second)
	if r := w.p.Rings.Placed.Statuses(); slices.Contains(r[0].Nodes, 3) || r[0].State != proto.RingInService {
		t.Errorf("%+v", r)
	}
}

// Goal: on_loss dissolve makes spares of a ring that finds none.
func TestDissolve(t *testing.T) {
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: 8, GPUsPerNode: 4, K: 2, TP: 16})
	if err != nil {
		t.Fatal(err)
	}
	f.OnLoss, f.Policy, f.HoldOffUS, f.WaitToRestoreMS = fabric.Dissolve, fabric.Hold, 100, 300_000
	w := newFleet(t, f)
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	w.run(10 * time.Second)
	if a := w.nodes[1].applied.Rings[0]; a.Policy != proto.PolicyHold || a.HoldOffMicros != 100 || a.WaitToRestoreMillis != 300_000 {
		t.Errorf("assignment %+v", a)
	}
	w.die(1)
	w.run(3 * time.Second)
	r := w.p.Rings.Placed.Statuses()
	if len(r) != 1 || r[0].Ring != 2 {
		t.Fatalf("%+v", r)
	}
	if o := w.p.Overview(); o.Spares != 3 {
		t.Errorf("%+v", o)
	}
}

// Goal: why explains a bypass, a ban and a refused plan: causes, measurements,
// and the timers that still run.
func TestWhyExplains(t *testing.T) {
	w := small(t, 8, 2, 32, 0)
	w.die(3)
	w.run(2 * time.Second)
	text := func(node proto.NodeID, bundle int16) string {
		s := ""
		for _, l := range w.ask(proto.OpRequest{Noun: proto.NounWhy, Node: node, Bundle: bundle}).Why {
			s += l.Rule + ": " + l.Text + " " + l.Cause.String() + " " + l.Measured.String() + "\n"
		}
		return s
	}
	must := func(got string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in\n%s", want, got)
			}
		}
	}
	must(text(2, -1), "right side of ring 1, peer 4, 407 us (detect 96", "light_lost", "bundle: external2, tuned, 0 losses so far none -3.20 dBm", "node 3 leaves ring 1")

	// A ban, with 4 s of the steady light still to come.
	r := *w.nodes[2].lastSent
	r.Sides = slices.Clone(r.Sides)
	r.Seq, r.UptimeMicros = r.Seq+1, 1_000_000
	right := &r.Sides[proto.Right]
	right.Banned, right.Timer, right.UntilMicros, right.Request = 1, proto.TimerBan, 5_000_000, proto.DoNotRevert
	w.publish(&w.nodes[2], w.topics.Reported(2), proto.TopicReported, &r)
	w.run(10 * time.Millisecond)
	must(text(2, 1), "right side: node 4 over 1/external2 is banned after 8 losses", "which it has had; 3.9", "request do_not_revert")

	// A plan that does not know of a bypass.
	w.nodes[4].refuse = proto.Conflict
	w.birth(3, true)
	w.run(100 * time.Millisecond)
	must(text(4, -1), "refused: conflict", "told to", "of its bypasses, was refused: conflict", "asked again in")
}

func TestUnusableTimesAreTheirNodesOwnFault(t *testing.T) {
	// Goal: a node whose measured times no ring can be built with is left out by
	// name within 5 s, why says so and what to do, nobody is asked to take its
	// times, and rings form of the rest; from a member's new report on, its ring is
	// mended without it; with better times it is back.
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: 20, GPUsPerNode: 4, K: 2, TP: 32, Spares: 4})
	if err != nil {
		t.Fatal(err)
	}
	w := newFleet(t, f)
	bad := measured
	bad.DetectMinMicros = 0
	w.nodes[3].times = &bad
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	w.run(4 * time.Second)
	service := func(without proto.NodeID) {
		t.Helper()
		rings := w.p.Rings.Placed.Statuses()
		for _, r := range rings {
			if r.State != proto.RingInService || slices.Contains(r.Nodes, without) {
				t.Errorf("ring %d of %v is %v", r.Ring, r.Nodes, r.State)
			}
		}
		if len(rings) != 2 {
			t.Errorf("%d rings", len(rings))
		}
		for i := range w.nodes {
			if s := w.ask(proto.OpRequest{Noun: proto.NounNode, Node: proto.NodeID(i), Bundle: -1}).Nodes[0]; s.Usable != (s.Node != without) ||
				(s.Reason == "") != s.Usable {
				t.Errorf("node %d: usable %v, %q", i, s.Usable, s.Reason)
			}
		}
	}
	service(3)
	why := w.ask(proto.OpRequest{Noun: proto.NounWhy, Node: 3, Bundle: -1}).Why
	if !slices.ContainsFunc(why, func(l proto.WhyLine) bool {
		return strings.Contains(l.Text, "detect_min_micros is 0, want 1 to 150; calibrate its bundles")
	}) {
		t.Errorf("why says %+v", why)
	}
	if w.nodes[3].applied == nil || len(w.nodes[3].applied.Rings) != 0 {
		t.Error("it is not told that it has no ring")
	}
	w.nodes[3].times = nil
	slow := measured
	slow.DetectMaxMicros, slow.SwitchMaxMicros = 500_000, 600_000
	w.nodes[8].times = &slow
	for _, i := range []int{3, 8} {
		w.report(&w.nodes[i])
	}
	w.run(20 * time.Second)
	service(8)
	if n := &w.nodes[8]; len(n.applied.Rings) != 0 {
		t.Error("node 8 keeps its ring, and cannot be calibrated")
	}
}

// noted: a decision by a rule is in the journal.
func (w *fleet) noted(rule string) bool {
	for i := range w.p.j.Len() {
		if n := w.p.j.At(i).Note; n != nil && n.Rule == rule {
			return true
		}
	}
	return false
}

// Goal: a node that is drained and has a fault besides is drained, for who asks
// and for who ends it; one that is out already can be drained, so that it does
// not come back in the middle of a repair. It was "not drained", and could not be.
// Method: a fault before the drain and after it, each ended before and after the
// drain is.
func TestDrainedAndOutBesides(t *testing.T) {
	const n = proto.NodeID(3)
	fault, ok := proto.OpRequest{Noun: proto.NounHostFault, Node: n, Bundle: -1}, proto.OpRequest{Noun: proto.NounHostOK, Node: n, Bundle: -1}
	drain, undrain := proto.OpRequest{Noun: proto.NounDrain, Node: n, Bundle: -1}, proto.OpRequest{Noun: proto.NounUndrain, Node: n, Bundle: -1}
	for _, begin := range [][]proto.OpRequest{{drain, fault}, {fault, drain}} {
		for _, end := range [][]proto.OpRequest{{undrain, ok}, {ok, undrain}} {
			w := small(t, 9, 2, 32, 1)
			do := func(q proto.OpRequest) {
				t.Helper()
				w.later(q)
				w.run(3 * time.Second)
				if len(w.replies) != 1 || w.replies[0].Code != proto.OK {
					t.Fatalf("%v: replies %+v", q.Noun, w.replies)
				}
			}
			do(begin[0])
			do(begin[1])
			if r := w.ask(drain); r.Code != proto.Duplicate {
				t.Errorf("drained again: %+v", r)
			}
			if w.nodes[n].mode != proto.ModeHostDown {
				t.Errorf("it is %v", w.nodes[n].mode)
			}
			do(end[0])
			if r := w.p.Rings.Placed.Statuses(); slices.Contains(r[0].Nodes, n) || w.nodes[n].mode == proto.ModeService {
				t.Errorf("%v alone lets it in: %+v", end[0].Noun, r)
			}
			if r := w.ask(undrain); end[0].Noun == proto.NounUndrain && r.Code != proto.Invalid {
				t.Errorf("undrained again: %+v", r)
			}
			if end[0].Noun == proto.NounUndrain {
				do(end[1])
			}
			w.run(3 * time.Second)
			if w.nodes[n].mode != proto.ModeService {
				t.Errorf("it is %v", w.nodes[n].mode)
			}
		}
	}
}

// Goal: a node that loses its power while it is drained has not failed to be drained for
// its hardware: it is away, as the answer says.
// Method: no generation can be made meanwhile.
func TestDrainOfOneThatIsAway(t *testing.T) {
	w := small(t, 8, 2, 32, 0)
	for i := range w.nodes {
		w.nodes[i].mute = true
	}
	w.later(proto.OpRequest{Noun: proto.NounDrain, Node: 3, Bundle: -1})
	w.die(3)
	w.run(19 * time.Second)
	if len(w.replies) != 1 || w.replies[0].Code != proto.Expired || !strings.HasPrefix(w.replies[0].Reason, "dead: ") {
		t.Errorf("replies %+v", w.replies)
	}
}
