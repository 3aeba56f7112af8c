package hbd

import (
	"strings"
	"testing"

	"ringlight/proto"
)

// Goal: one node that says it takes a thousand times longer than those round it is
// left out and named, and no ring waits with its times; where all are slow none is.
func TestWhoSaysItIsSlowIsNamed(t *testing.T) {
	slow := proto.Envelope{DetectMaxMicros: 390_000, DetectMinMicros: 1, SwitchMaxMicros: 390_000, SwitchMinMicros: 100, SkewMicros: 390_000}
	say := func(p *Rings, id proto.NodeID) {
		p.table.Reported(p.nodes[id].Device, &proto.Reported{Node: id, Session: 1, Seq: 9, Measured: slow}, false)
	}
	p := standing(t, 64, 0)
	say(p, 5)
	if n := &p.nodes[5]; n.usable() || !strings.Contains(n.unmeasured, "390000 us") {
		t.Errorf("usable %t: %q", n.usable(), n.unmeasured)
	}
	if e := p.envelope([]proto.NodeID{3, 4, 6}); e.SwitchMaxMicros != defaultEnvelope.SwitchMaxMicros {
		t.Errorf("%+v", e)
	}
	p = standing(t, 64, 0)
	for range 2 { // who spoke first is looked at again with its next report
		for id := range proto.NodeID(64) {
			say(p, id)
		}
	}
	for i := range p.nodes {
		if n := &p.nodes[i]; !n.usable() {
			t.Fatalf("node %d: %s", n.ID, n.unmeasured)
		}
	}
}
