package planner

import (
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
			if !d.Online() || d.Session != n.session || d.Report == nil || d.Report.Session != n.session || d.Report.Seq != n.repSeq ||
				d.Report.BypassSeq != n.bypass || d.Report.Mode != n.mode || !d.Ready() {
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
			if r := w.p.Rings(); r[0].State != proto.RingInService || len(r[0].Nodes) != 8 {
				t.Errorf("ring %+v", r[0])
			}
		})
	}
}
