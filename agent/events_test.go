package agent

import (
	"testing"
	"time"

	"ringlight/proto"
)

func event(b proto.BundleID, k proto.EventKind, at uint64) proto.Event {
	return proto.Event{Version: 1, Bundle: b, Kind: k, AtMicros: at}
}

func TestFullQueueMergesByBundleAndKind(t *testing.T) {
	// Goal: nothing is lost when the queue is full: every occurrence is in
	// exactly one event's count, first and last are kept, numbers stay gapless,
	// and what may have been sent is not touched any more.
	o := newOutbox(&Config{}, &Journal{})
	const total = 5000
	for i := range total {
		o.add(event(proto.BundleID(i%2), proto.EvLightLost+proto.EventKind(i%3), uint64(i)))
		if i == 99 {
			o.reserve()
			if o.reserved != window {
				t.Fatalf("reserved up to %d, want %d", o.reserved, window)
			}
		}
	}
	if n := len(o.queue); n != maxEvents {
		t.Errorf("%d events in the queue, want %d", n, maxEvents)
	}
	sum := uint32(0)
	for i, e := range o.queue {
		if e.Seq != uint64(i+1) {
			t.Fatalf("event %d has number %d", i, e.Seq)
		}
		if e.Seq <= window && e.Count != 1 {
			t.Errorf("event %d was merged though it may have been sent", e.Seq)
		}
		if e.Count > 1 && e.FirstMicros >= e.AtMicros {
			t.Errorf("event %d: first %d, last %d", e.Seq, e.FirstMicros, e.AtMicros)
		}
		sum += e.Count
	}
	if sum != total {
		t.Errorf("counts add up to %d, want %d", sum, total)
	}
	// A pair that is not in the queue still finds a place.
	o.add(event(7, proto.EvIsolated, 9999))
	if e := o.at(o.last); e == nil || e.Bundle != 7 || len(o.queue) != maxEvents+1 {
		t.Errorf("the first event of its kind was not kept: %+v", e)
	}
}

func TestEventsAreSentOnlyWhenTheirNumberIsOnDisk(t *testing.T) {
	// Goal: a number that was sent can never be given to another event after a
	// crash; acknowledgements move the window; a rewind starts again behind
	// them.
	o := newOutbox(&Config{}, &Journal{})
	for i := range 100 {
		o.add(event(0, proto.EvLightLost, uint64(i)))
	}
	if o.next() != nil {
		t.Fatal("an event may be sent that no journal knows")
	}
	o.reserve()
	if o.next() != nil {
		t.Fatal("an event may be sent before the disk has it")
	}
	o.durable = o.reserved
	sendAll := func() (n int) {
		for e := o.next(); e != nil; e = o.next() {
			o.sent = e.Seq
			n++
		}
		return n
	}
	if n := sendAll(); n != window {
		t.Errorf("%d sent, window %d", n, window)
	}
	for _, seq := range []uint64{0, 101, 1 << 60} {
		if o.ack(seq) {
			t.Errorf("acknowledgement of %d taken", seq)
		}
	}
	if !o.ack(10) || o.ack(10) || o.queue[0].Seq != 11 {
		t.Error("acknowledgement of 10")
	}
	if o.next() != nil {
		t.Error("sent beyond what the disk has")
	}
	o.reserve()
	o.durable = o.reserved
	if n := sendAll(); n != 10 {
		t.Errorf("%d more sent, want 10", n)
	}
	o.rewind()
	if e := o.next(); e == nil || e.Seq != 11 {
		t.Errorf("after a rewind %+v, want number 11", e)
	}
}

func TestRecentEventsComeInPages(t *testing.T) {
	o := newOutbox(&Config{}, &Journal{})
	for i := range 300 {
		o.add(event(0, proto.EvLightLost, uint64(i)))
	}
	o.ack(300)
	var seqs []uint64
	for next, page := uint32(0), 0; ; page++ {
		events, more := o.page(next)
		if len(events) > eventPage || page > 10 {
			t.Fatalf("page %d of %d events", page, len(events))
		}
		for _, e := range events {
			seqs = append(seqs, e.Seq)
		}
		if more == 0 {
			break
		}
		next = more
	}
	if len(seqs) != maxRecent || seqs[0] != 45 || seqs[maxRecent-1] != 300 {
		t.Errorf("%d events from %d to %d", len(seqs), seqs[0], seqs[len(seqs)-1])
	}
	if e, more := o.page(10_000); len(e) != 0 || more != 0 {
		t.Errorf("page beyond the end: %d events, next %d", len(e), more)
	}
	// The fullest page still fits into a message.
	ack := proto.Ack{Version: 1, Session: 1, Phase: proto.PhaseCommand}
	long := make([]byte, proto.MaxText)
	for i := range long {
		long[i] = 'x'
	}
	for range eventPage {
		e := proto.Event{Version: 1, Node: 1 << 31, Session: 1 << 63, Seq: proto.MaxCount, Kind: 255, AtMicros: proto.MaxCount, FirstMicros: proto.MaxCount,
			Count: 1 << 31, Ledger: &proto.Ledger{DetectMicros: 1 << 29}, Measured: proto.NoPower, Expected: proto.NoPower,
			Text: string(long), Generation: proto.MaxCount, Ring: 1 << 31, Peer: 1 << 31}
		ack.Events = append(ack.Events, e)
	}
	if _, err := proto.Encode(&ack); err != nil {
		t.Error(err)
	}
}

func TestPhaseSpreadsNodes(t *testing.T) {
	// Goal: the health rounds of a fleet do not come in bursts.
	const nodes, period = 4096, 10 * time.Second
	var slots [16]int
	for n := range proto.NodeID(nodes) {
		p := phase(n, period)
		if p < 0 || p >= period || p != phase(n, period) {
			t.Fatalf("node %d: phase %v", n, p)
		}
		slots[p*16/period]++
	}
	for i, n := range slots {
		if n < nodes/32 || n > nodes/8 {
			t.Errorf("slot %d has %d of %d nodes", i, n, nodes)
		}
	}
}
