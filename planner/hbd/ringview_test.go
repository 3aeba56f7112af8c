package hbd

import (
	"slices"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/member"
	"ringlight/proto"
)

// Goal: a link counts as lit when both its ends say that they are tuned on the planned
// path, and no event after that said else.
func TestLinkIsLitAtBothEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(r *ringView, m *proto.Reported, b *proto.BundleReport)
		want bool
	}{
		{"lit", func(*ringView, *proto.Reported, *proto.BundleReport) {}, true},
		{"not tuned", func(_ *ringView, _ *proto.Reported, b *proto.BundleReport) { b.State = proto.Blocked }, false},
		{"on another path", func(_ *ringView, _ *proto.Reported, b *proto.BundleReport) { b.Path = proto.Loopback }, false},
		{"of another generation", func(_ *ringView, m *proto.Reported, _ *proto.BundleReport) { m.Generation++ }, false},
	} {
		p := standing(t, 64, 0)
		r := p.Placed.rings[0]
		m := *p.Placed.nodes[r.nodes[4]].Device.Whole()
		link, _ := p.Placed.fab.Link(r.nodes[4], r.nodes[5])
		m.Bundles = slices.Clone(m.Bundles)
		at := slices.IndexFunc(m.Bundles, func(b proto.BundleReport) bool { return b.Bundle == link.Local.Bundle })
		c.do(r, &m, &m.Bundles[at])
		if report(p, &m); r.confirmed(4) != c.want {
			t.Errorf("%s: %t, want %t", c.name, r.confirmed(4), c.want)
		}
	}
}

// Goal: what events and reports tell of a side: whether it has left its planned
// neighbour, still moves, and whose light it has.
func TestWhatIsReadOfASide(t *testing.T) {
	p := standing(t, 64, 0)
	n := p.Placed.rings[0].at(4)
	for _, c := range []struct {
		kind     proto.EventKind
		bypassed bool
		want     lossView
	}{
		{proto.EvLightLost, false, lossView{lost: true, moving: true}},
		{proto.EvSwitched, true, lossView{lost: true, lit: true}},
		{proto.EvClosed, true, lossView{lost: true}},
		{proto.EvRestored, false, lossView{}},
	} {
		n.unlost()
		n.readLoss(&proto.Event{Kind: c.kind, Side: proto.Right, Ring: n.Device.Group, Generation: n.Device.Want.Gen, Seq: 3, SideBypassed: c.bypassed, Peer: 9}, time.Second)
		got := n.loss[proto.Right]
		if c.want.seq = 3; c.want.lost {
			c.want.at, c.want.peer = time.Second, 9
		}
		if got != c.want {
			t.Errorf("%v: %+v, want %+v", c.kind, got, c.want)
		}
	}
	for _, c := range []struct {
		state        proto.SideState
		current      int8
		lost, moving bool
	}{
		{proto.SideWork, 0, false, false}, {proto.SideWork, 1, true, false}, {proto.SideEnd, -1, false, false}, {proto.SideClosed, -1, true, false},
		{proto.SideSwitch, 0, true, true}, {proto.SideListen, 0, true, true}, {proto.SideClosing, 0, true, true},
	} {
		n.loss = [2]lossView{}
		m := *n.Device.Whole()
		m.Sides = []proto.SideReport{{Ring: n.Device.Group, Side: proto.Left, State: c.state, Current: c.current}}
		report(p, &m)
		n.readSides(time.Second)
		if got := n.loss[proto.Left]; got.lost != c.lost || got.moving != c.moving {
			t.Errorf("%v on %d: %+v", c.state, c.current, got)
		}
		if got := n.settled(); got == c.moving {
			t.Errorf("%v: settled %t", c.state, got)
		}
	}
}

// Goal: a node that was born and has reported nothing looks at no port.
func TestWhoHasNotReportedLooksNowhere(t *testing.T) {
	p := standing(t, 64, 0)
	n := p.Placed.rings[0].at(4)
	port := fabric.Port{Node: n.Device.ID, Bundle: 0, Path: proto.External2}
	m := *n.Device.Whole()
	m.Mode, m.Rings = proto.ModeService, []proto.RingAssignment{{Ring: n.Device.Group}}
	n.Device.Want.Payload = ""
	if report(p, &m); !p.Placed.looks(port) {
		t.Fatalf("it does not look at %+v: %+v", port, m)
	}
	n.Device.Known, n.Device.Want = false, member.Target{Decided: new(member.Decided)}
	if p.Placed.looks(port) {
		t.Error("it looks")
	}
}

// Goal: a ring of which no two members hang together is down, though one that is out
// told of a bypass under a former plan; a bypass of one that is there leaves it degraded.
func TestRingWithoutLightIsDown(t *testing.T) {
	p := standing(t, 64, 0)
	r := p.Placed.rings[0]
	tell := func(at int, gen proto.Generation, bypassed bool) {
		n := r.at(at)
		m := &proto.Reported{Node: n.Device.ID, Session: 1, Term: r.Term, Generation: gen, Plan: r.Plan}
		if bypassed {
			m.Sides = []proto.SideReport{{Ring: r.id, Side: proto.Right, State: proto.SideWork, Current: 1}}
		}
		report(p, m)
	}
	for at := range r.nodes {
		tell(at, r.Gen, false)
	}
	p.say(r.at(4), true, proto.ModeHostDown, 0)
	tell(4, r.Gen+1, true)
	if s := r.stateNow(); s != proto.RingDown {
		t.Errorf("%s without light", s)
	}
	tell(6, r.Gen, true)
	if s := r.stateNow(); s != proto.RingDegraded {
		t.Errorf("%s with a bypass", s)
	}
}
