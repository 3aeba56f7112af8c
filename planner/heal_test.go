package planner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: whatever a planner holds of a device that is well and has nothing to say
// is right again within a minute, however it came to be wrong.
// Method: one view spoiled at a time, telemetry each 10 s as agents send it. A
// report that was lost, or forged, stood until the node's next change.
func TestEveryViewHeals(t *testing.T) {
	const id = proto.NodeID(3)
	for _, c := range []struct {
		name  string
		spoil func(w *fleet, n *fakeNode)
	}{
		{"forged death note", func(w *fleet, _ *fakeNode) { w.will(id) }},
		{"death note of nobody's, then silence", func(w *fleet, n *fakeNode) {
			w.publish(n, w.topics.Presence(id), proto.TopicPresence, &proto.Presence{Version: proto.Version, Node: id, Session: 77})
		}},
		{"forged birth", func(w *fleet, n *fakeNode) {
			w.publish(n, w.topics.Presence(id), proto.TopicPresence, &proto.Presence{Version: proto.Version, Node: id, Session: 77, Online: true, GPUs: 4, Bundles: 2, Modules: 8})
		}},
		{"lost report", func(w *fleet, n *fakeNode) {
			n.bypass++
			n.repSeq++ // sent, and lost
			n.lastSent = w.reportOf(n)
			n.lastSent.Seq = n.repSeq
		}},
		{"forged report", func(w *fleet, n *fakeNode) {
			r := *w.reportOf(n)
			r.Seq, r.Mode = n.repSeq+1000, proto.ModeDrained
			w.publish(n, w.topics.Reported(id), proto.TopicReported, &r)
		}},
		{"forged event", func(w *fleet, n *fakeNode) {
			w.publish(n, w.topics.Event(id), proto.TopicEvent, &proto.Event{Version: proto.Version, Node: id, Session: n.session,
				Seq: uint64(len(n.events)) + 100, Count: 1, Kind: proto.EvAlarm, Text: "forged"})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := small(t, 9, 2, 32, 1)
			n := &w.nodes[id]
			_, d := w.p.find(id)
			n.quiet = true
			w.run(10 * time.Second)
			c.spoil(w, n)
			for range 6 {
				w.run(10 * time.Second)
				w.publish(n, w.topics.Health(id), proto.TopicHealth, &proto.Health{Version: proto.Version, Node: id, Session: n.session, Seq: 1, Reported: n.repSeq,
					Samples: []proto.Sample{{Sensor: proto.SensorCase, Value: 318_150}}})
			}
			if !d.Online() || d.Session != n.session || d.ReportOf() != n.session || d.Report.Seq() != n.repSeq ||
				d.Report.BypassSeq() != n.bypass || d.Report.Mode() != n.mode || !d.Ready() {
				t.Errorf("held: online %v, session %d, %v, report %+v; it is session %d, bypasses %d, report %d", d.Online(), d.Session, d.WhyNot(), d.Report, n.session, n.bypass, n.repSeq)
			}
			if got := d.Events.Last; got != uint64(len(n.events)) {
				t.Errorf("events up to %d are known, it told %d", got, len(n.events))
			}
			n.bypass++
			w.event(n, proto.Event{Kind: proto.EvAlarm, Text: "a new one"})
			w.run(time.Second)
			if got := d.Events.Last; got != uint64(len(n.events)) || n.acked != got {
				t.Errorf("an event then: %d known, %d acknowledged, %d told", got, n.acked, len(n.events))
			}
			if r := w.p.Rings.Placed.Statuses(); r[0].State != proto.RingInService || len(r[0].Nodes) != 8 {
				t.Errorf("ring %+v", r[0])
			}
		})
	}
}

// Goal: the same of a circuit switch: it says every 10 s which report was its
// last, and without that a report that was lost or forged stood until its next
// change. Method: as above; the light is that of the job list, in the planner's
// view too.
func TestEveryViewOfASwitchHeals(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(w *coreWorld, v *fakeSwitch)
	}{
		{"forged death note", func(w *coreWorld, v *fakeSwitch) {
			w.publish(v, w.topics.Presence(v.id), proto.TopicPresence, &proto.Presence{Version: proto.Version, Node: v.id, Session: v.session})
		}},
		{"forged birth", func(w *coreWorld, v *fakeSwitch) {
			w.publish(v, w.topics.Presence(v.id), proto.TopicPresence, &proto.Presence{Version: proto.Version, Node: v.id, Session: 77, Online: true, Ports: 1})
		}},
		{"lost report", func(w *coreWorld, v *fakeSwitch) {
			v.byHand++
			v.seq++ // sent, and lost
		}},
		{"forged report", func(w *coreWorld, v *fakeSwitch) {
			w.publish(v, w.topics.Reported(v.id), proto.TopicReported, &proto.Reported{Version: proto.Version, Node: v.id, Session: v.session, Seq: v.seq + 1000, Mode: proto.ModeIsolated})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := startedWorld(t, smallCore())
			if r := w.apply(spec(1, 20, 4, 2)); r.Code != proto.OK || !w.quiet(10*time.Second) {
				t.Fatalf("%+v: %s", r, w.show())
			}
			v := &w.switches[slices.IndexFunc(w.switches, func(v fakeSwitch) bool { return len(v.light) > 0 })]
			_, d := w.p.find(v.id)
			moves := w.applies
			c.spoil(w, v)
			for range 6 {
				w.run(10 * time.Second)
				w.publish(v, w.topics.Health(v.id), proto.TopicHealth, &proto.Health{Version: proto.Version, Node: v.id, Session: v.session, Seq: 1, Reported: v.seq})
			}
			w.run(time.Second)
			if !d.Ready() || d.Session != v.session || d.Report.Seq() != v.seq || d.Report.BypassSeq() != v.byHand || d.Report.Mode() != proto.ModeService || len(d.Circuits()) != len(v.light) {
				t.Errorf("held: session %d, %q, report %+v; it is session %d, report %d", d.Session, d.WhyNot(), d.Report, v.session, v.seq)
			}
			if s := w.p.Core.Status(); s.Realised != s.Granted || s.Tuned != s.Circuits || !s.Quiet {
				t.Errorf("%+v", s)
			}
			if c.name != "forged report" && w.applies != moves { // that one is told again what it has
				t.Errorf("%d switches made circuits", w.applies-moves)
			}
		})
	}
}

// Goal: a spare of which a bundle has failed closes no gap, neither while a sound one can
// nor alone; it is told why, is no spare in any count, and is one again when it works.
// Method: ten nodes, a ring of eight; the nearer of its two spares says that a bundle has failed.
func TestFailedSpareClosesNoGap(t *testing.T) {
	w := small(t, 10, 2, 32, 2)
	w.run(2 * time.Second)
	ring := func(want string, spares uint32) {
		t.Helper()
		if s := w.p.Status(); fmt.Sprint(w.p.Rings.Placed.Statuses()[0].Nodes) != want || s.Spares != spares {
			t.Errorf("%v and %d spares, want %s and %d", w.p.Rings.Placed.Statuses()[0].Nodes, s.Spares, want, spares)
		}
	}
	w.raises(8, proto.EvPathFailed, proto.SeverityCritical, "its bus does not answer")
	w.run(time.Second)
	if s := w.status(8); s.Usable || s.Reason != "its bundle 1 has failed: its bus does not answer" {
		t.Errorf("%+v", s)
	}
	w.die(3)
	w.run(5 * time.Second)
	ring("[0 1 2 4 5 6 7 9]", 0)
	w.die(9)
	w.run(5 * time.Second)
	ring("[0 1 2 4 5 6 7]", 0)
	w.nodes[8].alarms = nil
	w.report(&w.nodes[8])
	w.run(5 * time.Second)
	ring("[0 1 2 4 5 6 7 8]", 0)
}
