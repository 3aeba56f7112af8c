package planner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

func (w *fleet) ask(q proto.OpRequest) *proto.OpReply {
	w.t.Helper()
	w.replies = nil
	w.asked++
	q.Version, q.TTLMillis, q.Corr = proto.Version, 5000, proto.Corr{1, 2, 3, byte(w.asked)}
	payload, err := proto.Encode(&q)
	if err != nil {
		w.t.Fatal(err)
	}
	w.raw(w.topics.Request("ctl-1"), payload)
	w.run(50 * time.Millisecond)
	if len(w.replies) != 1 {
		w.t.Fatalf("%d replies to %+v", len(w.replies), q)
	}
	if w.replies[0].Corr != q.Corr {
		w.t.Fatalf("reply to %v", w.replies[0].Corr)
	}
	return &w.replies[0]
}

func (w *fleet) raw(topic string, payload []byte) {
	w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload}})
}

func TestOperatorAsks(t *testing.T) {
	w := small(t, 18, 2, 32, 2)
	w.setMode(3, proto.ModeHostDown)
	w.run(time.Second)

	f := w.ask(proto.OpRequest{Noun: proto.NounFabric, Bundle: -1}).Fabric
	if f == nil || f.Name != "f" || f.Term != 1 || f.Generation != 2 || f.Nodes != 18 || f.Online != 18 || f.LinksTotal != 14 || f.LinksConfirmed != 14 {
		t.Errorf("fabric %+v", f)
	}
	nodes := w.ask(proto.OpRequest{Noun: proto.NounNodes, Bundle: -1}).Nodes
	if len(nodes) != 18 || nodes[3].Usable || !strings.Contains(nodes[3].Reason, "host down") || nodes[8].Ring != 1 || nodes[17].Ring != 0 || !nodes[17].Usable {
		t.Errorf("nodes %+v", nodes)
	}
	one := w.ask(proto.OpRequest{Noun: proto.NounNode, Node: 8, Bundle: -1}).Nodes
	if len(one) != 1 || one[0].Reported == nil || len(one[0].Reported.Bundles) != 2 {
		t.Errorf("node %+v", one)
	}
	rings := w.ask(proto.OpRequest{Noun: proto.NounRings, Bundle: -1}).Rings
	if len(rings) != 2 || rings[0].State != proto.RingInService || rings[0].GPUs != 32 || rings[0].Links != 7 {
		t.Errorf("rings %+v", rings)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounRing, Ring: 2, Bundle: -1}).Rings; len(r) != 1 || r[0].Ring != 2 {
		t.Errorf("ring %+v", r)
	}
	if e := w.ask(proto.OpRequest{Noun: proto.NounEvents, Bundle: -1}).Events; len(e) != 3 || e[0].Event.Kind != proto.EvIsolated {
		t.Errorf("events %+v", e)
	}
	for _, c := range []struct {
		q    proto.OpRequest
		code proto.Code
		text string
	}{
		{proto.OpRequest{Noun: proto.NounRing, Ring: 9, Bundle: -1}, proto.NotFound, "ring 1 to 2"},
		{proto.OpRequest{Noun: proto.NounNode, Node: 18, Bundle: -1}, proto.NotFound, "node 0 to 17"},
		{proto.OpRequest{Noun: proto.NounWhy, Node: 1, Bundle: 2}, proto.NotFound, "bundle 0 to 1"},
		{proto.OpRequest{Noun: proto.NounDrain, Node: 18, Bundle: -1}, proto.NotFound, "node 0 to 17"},
		{proto.OpRequest{Noun: proto.NounUndrain, Node: 1, Bundle: -1}, proto.Invalid, "node a drained node"},
		{proto.OpRequest{Noun: 99, Bundle: -1}, proto.Unsupported, "noun "},
	} {
		if r := w.ask(c.q); r.Code != c.code || r.Field+" "+r.Limit != c.text || r.Reason == "" {
			t.Errorf("%+v: %+v", c.q, r)
		}
	}
}

// Long lists come in pages that neither repeat nor leave out an item, and no
// page is too large for the wire.
func TestPages(t *testing.T) {
	w := small(t, 600, 2, 8, 0)
	var rings []proto.RingID
	for q := (proto.OpRequest{Noun: proto.NounRings, Bundle: -1}); ; {
		r := w.ask(q)
		if len(r.Rings) > proto.MaxPage {
			t.Fatalf("%d items", len(r.Rings))
		}
		for _, x := range r.Rings {
			rings = append(rings, x.Ring)
		}
		if q.Page = r.Next; q.Page == 0 {
			break
		}
	}
	if len(rings) != 300 || !slices.IsSorted(rings) || rings[299] != 300 {
		t.Errorf("%d rings %v", len(rings), rings)
	}
	long := strings.Repeat("x", proto.MaxText)
	_, d := w.p.find(0)
	for i := range uint64(300) {
		w.p.j.Take(d.ID, &d.Events, &proto.Event{Version: proto.Version, Session: 1, Seq: i + 1, Kind: proto.EvAlarm, Count: 1, Text: long}, 0)
	}
	var seqs []uint64
	for q := (proto.OpRequest{Noun: proto.NounEvents, Bundle: -1}); ; {
		r := w.ask(q)
		for _, x := range r.Events {
			seqs = append(seqs, x.Event.Seq)
		}
		if q.Page = r.Next; q.Page == 0 {
			break
		}
	}
	if len(seqs) != 300 || !slices.IsSorted(seqs) {
		t.Errorf("%d events %v", len(seqs), seqs)
	}
}

// Goal: why reads the planner's log and the agent's own last events, page by page,
// and says what holds now; a silent agent does not keep the planner's half.
func TestWhy(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	w.setMode(3, proto.ModeHostDown)
	w.run(time.Second)
	w.nodes[2].noEvents = true // it has news that do not come
	for range 5 {
		w.event(&w.nodes[2], proto.Event{Kind: proto.EvAlarm, Bundle: 1, Text: "too warm"})
	}
	text := func(r *proto.OpReply) string {
		s := ""
		for _, l := range r.Why {
			s += fmt.Sprintf("%d %s: %s\n", l.Node, l.Rule, l.Text)
		}
		return s
	}
	got := text(w.ask(proto.OpRequest{Noun: proto.NounWhy, Node: 2, Bundle: -1}))
	for _, want := range []string{
		"2 Ringlight.1.0.Switched: switched, external2, right side of ring 1, peer 4, 407 us (detect 96",
		"2 commit: node 3 leaves ring 1; node 8 joins ring 1",
		"2 Ringlight.1.0.Alarm: agent only: alarm: too warm",
		"2 placement: member 3 of 8 of ring 1, which is in_service at generation 2",
		"2 bundle: external2, tuned",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if n := strings.Count(got, "too warm"); n != 5 {
		t.Errorf("%d of the agent's own events in\n%s", n, got)
	}
	if got := text(w.ask(proto.OpRequest{Noun: proto.NounWhy, Node: 3, Bundle: -1})); !strings.Contains(got, "host_fault: reported by the node: host down") || !strings.Contains(got, "in no ring; waits to be told so") {
		t.Errorf("node 3:\n%s", got)
	}
	if got := text(w.ask(proto.OpRequest{Noun: proto.NounWhy, Node: 2, Bundle: 0})); strings.Contains(got, "peer 4") || !strings.Contains(got, "bundle: external1") {
		t.Errorf("bundle 0:\n%s", got)
	}
	w.offline(1)
	w.birth(1, true)
	w.run(time.Second)
	if got := text(w.ask(proto.OpRequest{Noun: proto.NounWhy, Node: 1, Bundle: -1})); !strings.Contains(got, "1 offline: the broker reported it disconnected") {
		t.Errorf("an agent that was away is not told of:\n%s", got)
	}
	w.nodes[2].mute = true
	w.replies = nil
	payload, _ := proto.Encode(&proto.OpRequest{Version: proto.Version, TTLMillis: 5000, Noun: proto.NounWhy, Node: 2, Bundle: -1, Corr: proto.Corr{9}})
	w.raw(w.topics.Request("ctl-1"), payload)
	w.run(askTimeout + time.Second)
	if len(w.replies) != 1 || !strings.Contains(text(&w.replies[0]), "commit: node 3 leaves ring 1") {
		t.Errorf("silent agent: %+v", w.replies)
	}
}

// Host fault and host OK go through the planner to the agent and back; a
// silent agent is an error in time.
func TestHostFaultByCommand(t *testing.T) {
	w := small(t, 9, 2, 32, 1)
	if r := w.ask(proto.OpRequest{Noun: proto.NounHostFault, Node: 3, Bundle: -1}); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	w.run(time.Second)
	if r := w.p.Rings.Placed.Statuses()[0]; slices.Contains(r.Nodes, 3) || r.State != proto.RingInService {
		t.Errorf("ring %+v", r)
	}
	if r := w.ask(proto.OpRequest{Noun: proto.NounHostOK, Node: 3, Bundle: -1}); r.Code != proto.OK || w.nodes[3].mode != proto.ModeService {
		t.Fatalf("%+v", r)
	}
	w.offline(5)
	w.run(time.Second)
	if r := w.ask(proto.OpRequest{Noun: proto.NounHostFault, Node: 5, Bundle: -1}); r.Code != proto.Expired || !strings.Contains(r.Reason, "offline") {
		t.Errorf("%+v", r)
	}
	w.nodes[6].mute = true
	payload, _ := proto.Encode(&proto.OpRequest{Version: proto.Version, TTLMillis: 1000, Noun: proto.NounHostFault, Node: 6, Bundle: -1, Corr: proto.Corr{9}})
	w.replies = nil
	w.raw(w.topics.Request("ctl-1"), payload)
	w.run(900 * time.Millisecond)
	if len(w.replies) != 0 {
		t.Fatal("answered before its time")
	}
	w.run(200 * time.Millisecond)
	if len(w.replies) != 1 || w.replies[0].Code != proto.Expired {
		t.Errorf("%+v", w.replies)
	}
}

// What is not acceptable changes nothing and is counted.
func TestBadMessagesAreRefusedAndCounted(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	before := w.show()
	good, err := proto.Encode(&proto.Presence{Version: proto.Version, Node: 1, Session: w.nodes[1].session})
	if err != nil {
		t.Fatal(err)
	}
	other, _ := proto.Encode(&proto.Presence{Version: proto.Version, Node: 1, Session: 5, Online: true})
	other[2] = 9 // another major: map head, key 0, version
	for i, bad := range []struct {
		topic   string
		payload []byte
	}{
		{w.topics.Presence(2), good},                   // of another node
		{w.topics.Presence(77), good},                  // no such node
		{w.topics.Presence(1), good[:len(good)-1]},     // truncated
		{w.topics.Presence(1), append(good, 0)},        // trailing
		{w.topics.Presence(1), make([]byte, 65<<10)},   // oversized
		{w.topics.Presence(1), other},                  // unknown major
		{"ocs/v1/f/n/01/presence", good},               // topic
		{"ocs/v2/f/n/1/presence", good},                // topic's major
		{w.topics.Request("ctl-1"), []byte{0xa0}},      // an empty question
		{w.topics.Planner(), []byte("not cbor at al")}, //
	} {
		w.raw(bad.topic, bad.payload)
		if got := w.p.Overview().Refused; got != uint64(i)+1 {
			t.Errorf("message %d on %s: %d refused", i, bad.topic, got)
		}
	}
	w.step(Event{Kind: Packet, Packet: proto.ShedPacket(1 << 40)})
	w.step(Event{Kind: Packet, Packet: proto.ShedPacket(1)})
	if got := w.p.fabricStatus().Shed; got != 1<<40+1 {
		t.Errorf("%d messages shed", got)
	}
	if after := w.show(); after != before {
		t.Errorf("before\n%safter\n%s", before, after)
	}
}

// A death note of a former life does not kill the present one.
func TestOldDeathNoteIsIgnored(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	old := w.nodes[1].session
	w.birth(1, false)
	w.run(time.Second)
	payload, _ := proto.Encode(&proto.Presence{Version: proto.Version, Node: 1, Session: old})
	w.raw(w.topics.Presence(1), payload)
	if o := w.p.Overview(); o.Online != 4 {
		t.Errorf("%+v", o)
	}
}

// A store knows one fabric; a broken store is an error, not a panic.
func TestStartChecksTheStore(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	var st State
	for k, v := range w.store {
		st = append(st, Record{Key: k, Value: v})
	}
	slices.SortFunc(st, func(a, b Record) int { return strings.Compare(a.Key, b.Key) })
	cfg, err := Start(st, nil, 5)
	if err != nil || cfg.Term != 1 || cfg.PlannerID != 77 || cfg.Life != 5 || cfg.Fabric.Nodes != 4 {
		t.Errorf("term %d, planner %d, life %d: %v", cfg.Term, cfg.PlannerID, cfg.Life, err)
	}
	if _, err := Start(st, fabric.Default(), 5); err == nil || !strings.Contains(err.Error(), "differs") {
		t.Errorf("another fabric: %v", err)
	}
	for _, key := range []string{keyTerm, "head", "ring/0000000001", "node/0000000002", "log/0000000000000001"} {
		bad := slices.Clone(st)
		i := slices.IndexFunc(bad, func(r Record) bool { return r.Key == key })
		if i < 0 {
			t.Fatalf("no record %s", key)
		}
		bad[i].Value = []byte("\x00rubbish\xff\xff")
		if _, err := Start(bad, nil, 5); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := Start(nil, nil, 5); err == nil || !strings.Contains(err.Error(), "ocsctl fabric new") {
		t.Errorf("nothing to plan for: %v", err)
	}
	if cfg, err := Start(nil, fabric.Default(), 5); err != nil || cfg.Fabric.Name != "f1" || cfg.Term != 0 || cfg.PlannerID != 5 {
		t.Errorf("empty store: %+v %v", cfg, err)
	}
}

// No message makes the planner panic or send what does not encode.
func FuzzStep(f *testing.F) {
	w := small(f, 6, 3, 16, 1)
	for _, topic := range w.order {
		f.Add(topic, w.retained[topic].Payload)
	}
	f.Add(w.topics.Ack(1), []byte{0xa0})
	f.Add(w.topics.Request("ctl-1"), []byte{0xa0})
	f.Fuzz(func(t *testing.T, topic string, payload []byte) {
		w := small(t, 6, 3, 16, 1)
		w.raw(topic, payload)
		w.run(3 * time.Second)
	})
}

func BenchmarkQuietTick(b *testing.B) {
	w := small(b, 64, 2, 32, 8)
	var out []Action
	b.ReportAllocs()
	for b.Loop() {
		out = w.p.Step(Event{Kind: Tick, At: w.now}, out[:0])
	}
}

// One fault of a large fabric, from the host's word to the desired states.
func BenchmarkReplan(b *testing.B) {
	w := small(b, 2048, 3, 64, 128)
	for b.Loop() {
		w.setMode(100, proto.ModeHostDown)
		w.run(time.Second)
		b.StopTimer()
		w.setMode(100, proto.ModeService)
		w.run(time.Second)
		b.StartTimer()
	}
}

// Goal: the last telemetry of a node is kept, bounded, for people who ask why.
// Method: samples of two rounds, of a former life, and of what no node has.
func TestHealthIsTold(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	say := func(session proto.Session, samples ...proto.Sample) {
		t.Helper()
		payload, err := proto.Encode(&proto.Health{Version: proto.Version, Node: 1, Session: session, Seq: 1, Samples: samples})
		if err != nil {
			t.Fatal(err)
		}
		w.raw(w.topics.Health(1), payload)
	}
	told := func() (out []string) {
		for _, l := range w.p.Rings.Agenda.Facts(1, -1) {
			if l.Rule == "health" {
				out = append(out, fmt.Sprintf("%d: %s", l.Bundle, l.Text))
			}
		}
		return out
	}
	now := w.nodes[1].session
	say(now, proto.Sample{Module: 0, Sensor: proto.SensorCase, Value: 310_150}, proto.Sample{Module: 3, Sensor: proto.SensorCase, Value: 318_450, AgeMillis: 2000},
		proto.Sample{Bundle: 1, Module: 2, Sensor: proto.SensorUpperPath, Value: -3200}, proto.Sample{Bundle: 1, Module: 5, Sensor: proto.SensorUpperPath, Value: -4100})
	if got, want := told(), []string{"0: case 45.3 degrees C at module 3, 2s ago", "1: upper_path -4.10 dBm at module 5, 0s ago"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	w.run(10 * time.Second)
	say(now, proto.Sample{Module: 1, Sensor: proto.SensorCase, Value: 300_150}, proto.Sample{Module: 1, Sensor: proto.SensorRail, Value: 2_100_000})
	say(now-1, proto.Sample{Module: 1, Sensor: proto.SensorCase, Value: 400_000})
	say(now, proto.Sample{Bundle: 200, Sensor: proto.SensorCase, Value: 1}, proto.Sample{Sensor: 99, Value: 1})
	if got, want := told(), []string{"0: case 27.0 degrees C at module 1, 0s ago; rail 2100 mW at module 1, 0s ago", "1: upper_path -4.10 dBm at module 5, 10s ago"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Goal: a planner that cannot place a node says which and why within 5 s, in its
// log and to operators. Method: a node refuses, one never answers, one has times
// that no ring can be built with, while their ring is formed.
func TestWhoCannotBePlacedIsSaidInFiveSeconds(t *testing.T) {
	for what, spoil := range map[string]func(n *fakeNode){ // any order: each is judged by itself
		"node 3 refused: not_calibrated": func(n *fakeNode) { n.refuse = proto.NotCalibrated },
		"until these have prepared: 3":   func(n *fakeNode) { n.mute = true },
		"calibrate its bundles": func(n *fakeNode) {
			bad := measured
			bad.DetectMinMicros = 0
			n.times = &bad
		},
	} {
		f, err := fabric.New(fabric.Params{Name: "f", Nodes: 8, GPUsPerNode: 4, K: 2, TP: 32})
		if err != nil {
			t.Fatal(err)
		}
		w, log := newFleet(t, f), ""
		w.trace = func(line string) { log += line + "\n" }
		spoil(&w.nodes[3])
		w.start()
		for i := range w.nodes {
			w.birth(proto.NodeID(i), true)
		}
		w.run(5 * time.Second)
		if !strings.Contains(log, what) {
			t.Errorf("%s: the log says\n%s", what, log)
		}
		if r := w.ask(proto.OpRequest{Noun: proto.NounFabric, Bundle: -1}); len(r.Fabric.Waiting) == 0 {
			t.Errorf("%s: the status says nothing", what)
		}
	}
}

// A fabric file that is not the store's is refused with the keys that
// differ, what both have, and the ways on.
// Method: one key changed at a time, one of them absent in the default.
func TestStoreOfAnotherFabric(t *testing.T) {
	st := State{{Key: keyFabric, Value: fabric.Default().Encode()}}
	for _, c := range []struct {
		change func(f *fabric.Fabric)
		want   string
	}{
		{func(f *fabric.Fabric) { f.TP = 16 }, "tp 32, then 16"},
		{func(f *fabric.Fabric) { f.Name = "f2" }, `"f1", then "f2"`},
		{func(f *fabric.Fabric) { f.Spares = 8 }, "then 8"},
	} {
		other := fabric.Default()
		c.change(other)
		_, err := Start(st, other, 5)
		var refused *fabric.Error
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, c.want) || !strings.Contains(refused.Limit, "used where none is given") {
			t.Errorf("want %q: %v", c.want, err)
		}
	}
	if _, err := Start(st, fabric.Default(), 5); err != nil {
		t.Error(err)
	}
}

// Goal: who asks about a node is told what of a bundle's path nobody holds against
// drift, and how long the path has been in use.
// Method: reports with each code, one of them unknown, none, and a dark bundle.
func TestWhatIsNotHeldIsTold(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	for _, c := range []struct {
		path proto.Path
		held proto.Held
		want string
	}{
		{proto.Loopback, proto.HeldNothing, "loopback: drift lock off (last report: 42s on this path)"},
		{proto.Loopback, proto.HeldOnDrift, "loopback: drift lock on MZIs once they drift, not on the matrix (last report: 42s on this path)"},
		{proto.Loopback, proto.HeldMZIs, "loopback: drift lock on MZIs, not on the matrix (last report: 42s on this path)"},
		{proto.External1, proto.HeldOnDrift, "external1: drift lock on MZIs once they drift (last report: 42s on this path)"},
		{proto.External2, proto.HeldAll, "external2: drift lock on (last report: 42s on this path)"},
		{proto.Loopback, 9, "loopback: drift lock unknown(9) (last report: 42s on this path)"},
		{proto.Dark, proto.HeldNothing, ""},
	} {
		r := *w.nodes[1].lastSent
		r.Bundles = slices.Clone(r.Bundles)
		r.Seq, r.UptimeMicros = r.Seq+1, 100_000_000
		r.Bundles[1].Path, r.Bundles[1].Held, r.Bundles[1].SinceMicros = c.path, c.held, 58_000_000
		w.nodes[1].lastSent = &r
		w.publish(&w.nodes[1], w.topics.Reported(1), proto.TopicReported, &r)
		w.run(10 * time.Millisecond)
		got := ""
		for _, l := range w.p.Rings.Agenda.Facts(1, 1) {
			if l.Rule == "drift" {
				got = l.Text
			}
		}
		if got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.path, c.held, got, c.want)
		}
	}
}
