package hbd

import (
	"testing"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// turn has a member's side lose its planned neighbour and find the light of another.
func turn(r *ringView, at int, s proto.Side, other int) {
	r.at(at).lose(s, lossView{lost: true, lit: true, peer: r.nodes[other]})
}

// Goal: a ring is closed where members beside each other, past those that are out, have
// each other's light; one that cannot take part has said nothing else.
func TestClosedPastThoseThatAreOut(t *testing.T) {
	out := func(p *Rings, r *ringView, at int) { p.say(r.at(at), true, proto.ModeHostDown, 0) }
	for _, c := range []struct {
		name string
		do   func(p *Rings, r *ringView)
		want bool
	}{
		{"whole", func(*Rings, *ringView) {}, true},
		{"split", func(_ *Rings, r *ringView) { r.splitAt = 1 }, false},
		{"a member is away", func(p *Rings, r *ringView) {
			p.Table.Presence(r.at(3).Device, &proto.Presence{Node: r.nodes[3], Session: 1})
		}, true},
		{"the first is out", func(p *Rings, r *ringView) { out(p, r, 0) }, true},
		{"one is out, passed by from both sides", func(p *Rings, r *ringView) {
			out(p, r, 3)
			turn(r, 2, proto.Right, 4)
			turn(r, 4, proto.Left, 2)
		}, true},
		{"from one side", func(p *Rings, r *ringView) { out(p, r, 3); turn(r, 2, proto.Right, 4) }, false},
		{"the other way", func(p *Rings, r *ringView) { out(p, r, 3); turn(r, 4, proto.Left, 2) }, false},
		{"to another", func(p *Rings, r *ringView) {
			out(p, r, 3)
			turn(r, 2, proto.Right, 5)
			turn(r, 4, proto.Left, 2)
		}, false},
		{"a side has no light", func(_ *Rings, r *ringView) { r.at(2).lose(proto.Right, lossView{lost: true}) }, false},
		{"a side looks past one that is well", func(_ *Rings, r *ringView) { turn(r, 2, proto.Right, 4) }, false},
		{"a member is not told yet", func(p *Rings, r *ringView) { report(p, &proto.Reported{Node: r.nodes[2], Session: 1}) }, false},
	} {
		p := standing(t, 64, 0)
		r := p.Placed.rings[0]
		if c.do(p, r); r.closed() != c.want {
			t.Errorf("%s: closed %t, want %t", c.name, r.closed(), c.want)
		}
	}
}

// Goal: a member that has just gone away is waited for however long its ring has needed
// a change, and a ring that just came to need one waits for a member however long that
// has been away; no longer than it takes.
func TestStepOverWaitsForWhoMayComeBack(t *testing.T) {
	for _, gone := range []time.Duration{0, time.Minute} {
		p := standing(t, 64, 0)
		r := p.Placed.rings[0]
		r.seeLight()
		p.j.Now += time.Minute
		away, out := r.at(2), r.at(5)
		p.Table.Presence(away.Device, &proto.Presence{Node: away.Device.ID, Session: 1})
		p.j.Now += gone
		p.say(out, true, proto.ModeHostDown, 0)
		turn(r, 4, proto.Right, 6)
		r.at(6).lose(proto.Left, lossView{lost: true}) // so the ring is in pieces
		if gone == 0 {
			r.needAt = time.Second
		}
		from := p.j.Now
		p.Agenda.mark(r)
		p.look()
		if away.over != "" || p.obstacles.at != from+stepWait {
			t.Fatalf("gone for %v: stepped over %q, looked at again at %v, now %v", gone, away.over, p.obstacles.at, from)
		}
		p.j.Now += stepWait
		if p.look(); away.over == "" {
			t.Errorf("gone for %v: not stepped over", gone)
		}
	}
}

// Goal: a node that is back is let into its ring though another member cannot be told
// anything: that one is stepped over.
// Method: a member goes and its neighbours pass it by; a second one says nothing any
// more; then the first is back, in loopback, and its neighbours keep each other's light.
func TestStepOverLetsInWhoIsBack(t *testing.T) {
	p := standing(t, 64, 4)
	r := p.Placed.rings[0]
	r.seeLight()
	p.j.Now += time.Minute
	back, mute := r.at(2), r.at(3)
	turn(r, 1, proto.Right, 3)
	turn(r, 3, proto.Left, 1)
	p.Table.Silence(mute.Device, journal.Never)
	for _, s := range []proto.Side{proto.Left, proto.Right} {
		back.lose(s, lossView{lost: true})
	}
	p.Agenda.mark(r)
	p.look()
	p.j.Now += stepWait + agentPatience
	if p.Agenda.mark(r); p.look() == nil || mute.over == "" || back.over != "" {
		t.Errorf("stepped over %q, %q", mute.over, back.over)
	}
}

// Goal: whether a member is stepped over is weighed with what others may do for the ring.
// Method: two members beside each other are out and the next one says nothing: past it
// no fibre reaches, and no spare is near.
func TestStepOverIsWeighedWithMoves(t *testing.T) {
	p := standing(t, 64, 4)
	r := p.Placed.rings[0]
	r.seeLight()
	p.j.Now += time.Minute
	for _, at := range []int{6, 7} {
		p.say(r.at(at), true, proto.ModeHostDown, 0)
	}
	mute := r.at(8)
	p.Table.Silence(mute.Device, journal.Never)
	turn(r, 5, proto.Right, 8)
	turn(r, 8, proto.Left, 5)
	p.Agenda.mark(r)
	p.look()
	p.j.Now += stepWait
	if p.look(); mute.over == "" {
		near := p.Placed.index.Look([]proto.RingID{r.id}, true)
		far := p.Placed.index.Look([]proto.RingID{r.id}, false)
		t.Errorf("not stepped over; near %+v, far %+v", near.Groups, far.Groups)
	}
}

// Goal: a member that says nothing, and has nobody's light, is stepped over even where that
// leaves its ring one node: nothing is lost, and the others are free for other rings. One
// that has its neighbour's light is more than one node.
// Method: all but the first, the second, which is mute, and the last are out.
func TestStepOverWhereNobodyIsJoined(t *testing.T) {
	for _, lit := range []bool{false, true} {
		p := standing(t, 64, 0)
		r := p.Placed.rings[0]
		r.seeLight()
		p.j.Now += time.Minute
		last := len(r.nodes) - 1
		for at := 2; at < last; at++ {
			p.say(r.at(at), true, proto.ModeHostDown, 0)
		}
		mute := r.at(1)
		p.Table.Silence(mute.Device, journal.Never)
		if !lit {
			r.at(0).lose(proto.Right, lossView{lost: true})
		}
		r.at(last).lose(proto.Left, lossView{lost: true})
		p.Agenda.mark(r)
		p.look()
		p.j.Now += stepWait
		if p.look(); (mute.over == "") != lit {
			t.Errorf("lit %t: stepped over %q", lit, mute.over)
		}
	}
}
