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
		p.Table.Reported(p.Placed.nodes[id].Device, &proto.Reported{Node: id, Session: 1, Seq: 9, Measured: slow}, false)
	}
	p := standing(t, 64, 0)
	say(p, 5)
	if n := &p.Placed.nodes[5]; n.usable() || !strings.Contains(n.unmeasured, "390000 us") {
		t.Errorf("usable %t: %q", n.usable(), n.unmeasured)
	}
	if e := p.Placed.envelope([]proto.NodeID{3, 4, 6}); e.SwitchMaxMicros != defaultEnvelope.SwitchMaxMicros {
		t.Errorf("%+v", e)
	}
	p = standing(t, 64, 0)
	for range 2 { // who spoke first is looked at again with its next report
		for id := range proto.NodeID(64) {
			say(p, id)
		}
	}
	for i := range p.Placed.nodes {
		if n := &p.Placed.nodes[i]; !n.usable() {
			t.Fatalf("node %d: %s", n.Device.ID, n.unmeasured)
		}
	}
}

// Goal: of a ring that waits with its members' times one is named that takes at least twice
// as long as every other, by what that costs most, and nobody where two are alike.
func TestTheSlowestOfARingIsNamed(t *testing.T) {
	for _, c := range []struct {
		name   string
		detect map[int]uint32 // by member; the others take 1,000
		who    int            // place of the member, -1: nobody
	}{
		{"all alike", nil, -1},
		{"one, the others after it", map[int]uint32{2: 5000, 9: 2500}, 2},
		{"one, after the others", map[int]uint32{2: 2500, 9: 5000}, 9},
		{"not twice as slow", map[int]uint32{2: 4999, 9: 2500}, -1},
		{"not twice as slow as one before it", map[int]uint32{2: 3000, 9: 5000}, -1},
		{"two alike", map[int]uint32{2: 5000, 9: 5000}, -1},
	} {
		p := standing(t, 64, 0)
		r := p.Placed.rings[0]
		for at, id := range r.nodes {
			e := proto.Envelope{DetectMaxMicros: 1000, SwitchMaxMicros: 10, SkewMicros: 10}
			if d, ok := c.detect[at]; ok {
				e.DetectMaxMicros = d
			}
			report(p, &proto.Reported{Node: id, Session: 1, Seq: 9, Measured: e})
		}
		slow := p.Placed.SlowOf(r.nodes[0])
		if slow.All {
			slow = nil
		}
		switch {
		case c.who < 0:
			if slow != nil {
				t.Errorf("%s: %+v", c.name, slow)
			}
		case slow == nil || slow.ID != r.nodes[c.who]:
			t.Errorf("%s: %+v, want member %d", c.name, slow, c.who)
		}
	}
}
