package hbd

import (
	"testing"

	"ringlight/proto"
)

// Goal: a bypass is counted under as many losses as members were passed by, and
// nothing else is counted.
// Method: events of a ring whose node numbers are not its order; what is no
// bypass, or of a ring that is not known any more.
func TestBypassesAreCountedByLosses(t *testing.T) {
	r := &ringView{nodes: []proto.NodeID{10, 12, 13, 15, 18}}
	at := func(n, peer proto.NodeID, change func(*proto.Event)) *proto.Event {
		e := &proto.Event{Kind: proto.EvSwitched, Node: n, Peer: peer, SideBypassed: true, Ledger: &proto.Ledger{DetectMicros: 100, ConfirmMicros: 150}}
		if change != nil {
			change(e)
		}
		return e
	}
	for _, c := range []struct {
		r    *ringView
		e    *proto.Event
		want [4]uint64
	}{
		{r, at(10, 13, nil), [4]uint64{0, 1, 0, 0}},
		{r, at(18, 13, nil), [4]uint64{0, 1, 0, 0}},
		{r, at(15, 10, nil), [4]uint64{0, 0, 1, 0}},
		{r, at(10, 18, nil), [4]uint64{0, 0, 0, 1}},
		{r, at(10, 12, nil), [4]uint64{1, 0, 0, 0}}, // of another generation: its neighbour now
		{r, at(10, 99, nil), [4]uint64{1, 0, 0, 0}},
		{nil, at(10, 13, nil), [4]uint64{1, 0, 0, 0}},
		{r, at(10, 13, func(e *proto.Event) { e.SideBypassed = false }), [4]uint64{}},
		{r, at(10, 13, func(e *proto.Event) { e.Ledger = nil }), [4]uint64{}},
		{r, at(10, 13, func(e *proto.Event) { e.Kind = proto.EvRestored }), [4]uint64{}},
	} {
		b := newBypasses(3)
		b.take(c.r, c.e)
		var got [4]uint64
		for i := range b {
			got[i] = b[i].Count()
		}
		if got != c.want {
			t.Errorf("%d to %d: %v, want %v", c.e.Node, c.e.Peer, got, c.want)
		}
	}
}
