package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/proto"
)

func small(t testing.TB, nodes, k, tp, spares int) *fleet {
	t.Helper()
	return started(t, fabric.Params{Name: "f", Nodes: nodes, GPUsPerNode: 4, K: k, TP: tp, Spares: spares})
}

func started(t testing.TB, p fabric.Params) *fleet {
	t.Helper()
	f, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	w := newFleet(t, f)
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	w.run(time.Second)
	return w
}

// feed sends events of node 0 by number, straight to the planner.
func (w *fleet) feed(seqs ...uint64) {
	for _, seq := range seqs {
		payload, err := proto.Encode(&proto.Event{Version: proto.Version, Node: 0, Session: w.nodes[0].session, Seq: seq, Kind: proto.EvAlarm, Count: 1,
			Severity: proto.SeverityWarning, Text: fmt.Sprint("event ", seq)})
		if err != nil {
			w.t.Fatal(err)
		}
		w.step(Event{Kind: Packet, Packet: proto.Packet{Kind: proto.Publish, Topic: w.topics.Event(0), Payload: payload}})
	}
}

// logged are the numbers of node 0's events in the log.
func (w *fleet) logged() (out []uint64) {
	for i := range w.p.j.Len() {
		if e := w.p.j.At(i); e.Event != nil && e.Event.Node == 0 {
			out = append(out, e.Event.Seq)
		}
	}
	return out
}

// Repeated and shuffled events are logged once and in order, and the highest
// in order is acknowledged only when it is in the store.
func TestEventsOnceAndInOrder(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	w.feed(1, 2, 2, 1, 5, 4, 5)
	w.run(100 * time.Millisecond)
	if got := fmt.Sprint(w.logged()); got != "[1 2]" || w.nodes[0].acked != 2 {
		t.Fatalf("log %s, acked %d", got, w.nodes[0].acked)
	}
	w.holdDisk = true
	w.feed(3)
	w.run(100 * time.Millisecond)
	if got := fmt.Sprint(w.logged()); got != "[1 2 3 4 5]" || w.nodes[0].acked != 2 {
		t.Fatalf("log %s, acked %d before the store has it", got, w.nodes[0].acked)
	}
	w.step(Event{Kind: Persisted, Persist: w.onDisk})
	if w.nodes[0].acked != 5 || w.p.Overview().EventGaps != 0 {
		t.Fatalf("acked %d, gaps %d", w.nodes[0].acked, w.p.Overview().EventGaps)
	}
}

// A lost acknowledgement is given again when the event comes again.
func TestLostEventAckIsRepeated(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	w.nodes[0].mute = true
	w.feed(1)
	w.run(100 * time.Millisecond)
	w.nodes[0].mute = false
	if w.nodes[0].acked != 0 {
		t.Fatal("a mute agent heard its acknowledgement")
	}
	w.feed(1)
	w.run(100 * time.Millisecond)
	if got := fmt.Sprint(w.logged()); got != "[1]" || w.nodes[0].acked != 1 {
		t.Fatalf("log %s, acked %d", got, w.nodes[0].acked)
	}
}

// Events that never come are counted, said, and the rest goes on.
func TestEventGapIsCounted(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	var said []string
	w.trace = func(s string) { said = append(said, s) }
	w.nodes[0].events = make([]proto.Event, 6) // so many have been given out
	w.report(&w.nodes[0])
	w.feed(1, 4, 6)
	w.run(39 * time.Second)
	if w.p.Overview().EventGaps != 0 {
		t.Fatal("given up too early")
	}
	w.run(80 * time.Second)
	if got := fmt.Sprint(w.logged()); got != "[1 4 6]" || w.p.Overview().EventGaps != 3 || w.nodes[0].acked != 6 {
		t.Fatalf("log %s gaps %d acked %d", got, w.p.Overview().EventGaps, w.nodes[0].acked)
	}
	if !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "events 2 to 3 did not come") }) {
		t.Errorf("%q", said)
	}
	w.feed(3, 5) // too late: they are gone for good
	if got := fmt.Sprint(w.logged()); got != "[1 4 6]" {
		t.Fatalf("log %s", got)
	}
}

// A board that was exchanged counts from 1 again: its events are not taken
// for old ones.
func TestEventNumbersThatStartAnew(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	w.feed(1, 2, 3)
	w.run(time.Second)
	w.nodes[0].events, w.nodes[0].acked = nil, 0
	w.birth(0, true)
	w.run(time.Second)
	w.feed(1)
	if got := fmt.Sprint(w.logged()); got != "[1 2 3 1]" {
		t.Fatalf("log %s", got)
	}
}

// Goal: an event that waited for a planner is logged with its own time, one on its way
// with that of its coming, in the order in which they came.
// Method: an agent of which a report tells the clock, its events of a minute and of .9 s ago,
// and one of a life of which nobody knows the clock.
func TestOldEventsKeepTheirTime(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	n := &w.nodes[0]
	n.repSeq++
	r := w.reportOf(n)
	r.Seq, r.UptimeMicros = n.repSeq, 100e6
	w.hear(w.topics.Reported(0), proto.TopicReported, r)
	for i, e := range []proto.Event{{Session: n.session, AtMicros: 40e6}, {Session: n.session, AtMicros: 99.1e6}, {Session: n.session - 1, AtMicros: 40e6}} {
		e.Version, e.Seq, e.Kind, e.Count = proto.Version, uint64(i+1), proto.EvAlarm, 1
		w.hear(w.topics.Event(0), proto.TopicEvent, &e)
	}
	var ago []uint64
	for i := range w.p.j.Len() {
		if e := w.p.j.At(i); e.Event != nil && e.Event.Node == 0 {
			ago = append(ago, w.p.j.Wall-e.Millis)
		}
	}
	if fmt.Sprint(ago) != "[60000 0 0]" {
		t.Error(ago)
	}
}

// The log is bounded, in memory and in the store.
func TestLogIsBounded(t *testing.T) {
	w := small(t, 4, 2, 16, 0)
	for seq := uint64(1); seq <= journal.MaxEntries+500; seq++ {
		w.feed(seq)
		if seq%100 == 0 {
			w.run(20 * time.Millisecond)
		}
	}
	w.run(time.Second)
	if n := w.p.j.Len(); n != journal.MaxEntries {
		t.Errorf("%d entries in memory", n)
	}
	count := 0
	for k := range w.store {
		if strings.HasPrefix(k, journal.PrefixLog) {
			count++
		}
	}
	if count != journal.MaxEntries {
		t.Errorf("%d entries in the store", count)
	}
	w.start()
	if n := w.p.j.Len(); n != journal.MaxEntries || w.p.j.At(n-1).Seq < journal.MaxEntries+500 {
		t.Errorf("%d entries restored, last %d", n, w.p.j.At(n-1).Seq)
	}
}
