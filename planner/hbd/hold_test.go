package hbd

import (
	"strings"
	"testing"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// commands counts what the planner has told a node since the last time.
func commands(p *Rings, id proto.NodeID) (count int) {
	for _, a := range p.j.End() {
		if a.Kind == journal.Send && a.Packet.Topic == p.j.Topics.Command(id) {
			count++
		}
	}
	return count
}

// idle are the first nodes that are in no ring.
func idle(t *testing.T, p *Rings, count int) (out []*node) {
	t.Helper()
	for i := range p.Placed.nodes {
		if n := &p.Placed.nodes[i]; n.Device.Group == 0 && len(out) < count {
			out = append(out, n)
		}
	}
	if len(out) < count {
		t.Fatalf("%d nodes are idle, want %d", len(out), count)
	}
	return out
}

// Goal: the agent of a node that stays out is told once, and again when it has had time
// to answer; not while it is to be told first where it stands.
func TestWhoStaysOutIsToldNowAndThen(t *testing.T) {
	p := standing(t, 80, 16)
	n := idle(t, p, 1)[0]
	n.Device.Unassigned = true
	p.drains.take(n, hold{Reason: "a fan"})
	for _, want := range []int{1, 0} {
		if p.drains.holds.check(); commands(p, n.Device.ID) != want {
			t.Errorf("at %v it is not told %d times", p.j.Now, want)
		}
	}
	if at := p.drains.holds.next(); at != p.j.Now+member.ResendFirst {
		t.Errorf("told again at %v, want %v", at, p.j.Now+member.ResendFirst)
	}
	p.j.Now += member.ResendFirst
	if p.drains.holds.check(); commands(p, n.Device.ID) != 1 {
		t.Error("it is not told again")
	}
	p.Table.Keep(n.Device, &proto.Reported{Node: n.Device.ID, Session: 1, Rings: []proto.RingAssignment{{Ring: 1}}})
	if p.drains.due(n) {
		t.Error("it carries a ring still, and is to be told first that it is in none")
	}
}

// Goal: nodes that went out and came back too often join no ring until they have been
// well for a while, and then do, each at its time, though nothing else happens.
func TestWhoGoesOutTooOftenWaits(t *testing.T) {
	p := standing(t, 80, 16)
	nodes := idle(t, p, 2)
	for _, n := range nodes {
		for range outsFree + 1 {
			if n.whyNot() != "" {
				t.Fatalf("node %d: %s", n.Device.ID, n.whyNot())
			}
			p.say(n, true, proto.ModeHostDown, 0)
			p.say(n, false, proto.ModeService, 0)
		}
		if p.Placed.free(n.Device.ID) || !strings.Contains(n.whyNot(), "times in a row") {
			t.Errorf("node %d may join: %q", n.Device.ID, n.whyNot())
		}
		p.j.Now += dampFirst / 4
	}
	p.look()
	for _, n := range nodes {
		if p.obstacles.at != n.outs.until {
			t.Fatalf("looked at again at %v, want %v", p.obstacles.at, n.outs.until)
		}
		p.j.Now = p.obstacles.at
		if p.Plan(); !p.Placed.free(n.Device.ID) || n.whyNot() != "" {
			t.Errorf("node %d may not join: %q", n.Device.ID, n.whyNot())
		}
	}
	if p.obstacles.at != journal.Never || len(p.obstacles.damped) != 0 {
		t.Errorf("%+v", p.obstacles)
	}
}

// Goal: a node that is quarantined stays so when it is drained, too, and the drain's reason is
// the one that counts; lifted, it is heard again.
func TestQuarantineOutlivesADrain(t *testing.T) {
	p := standing(t, 80, 16)
	n := idle(t, p, 1)[0]
	var r proto.OpReply
	if Quarantine(p, &proto.OpRequest{Node: n.Device.ID, Reason: "it lies"}, &r); r.Code != proto.OK {
		t.Fatalf("%+v", r)
	}
	if later := p.drains.begin("c", &proto.OpRequest{Node: n.Device.ID, Reason: "a fan"}, n, &r); later || r.Code != proto.Duplicate {
		t.Fatalf("%t: %+v", later, r)
	}
	if n.hold.about() != "quarantined: a fan" || !n.Device.Ignored {
		t.Errorf("%s, ignored %t", n.hold.about(), n.Device.Ignored)
	}
	r = proto.OpReply{}
	if Lift(p, &proto.OpRequest{Node: n.Device.ID}, &r); r.Code != proto.OK || n.Device.Ignored || n.hold != nil {
		t.Errorf("%+v, ignored %t", r, n.Device.Ignored)
	}
}

// Goal: what is known of the light of a node whose agent is away is said to be of before.
func TestWhyOfWhoIsOffline(t *testing.T) {
	p, r := shining(t, 0)
	n := r.at(3)
	said := func() (bundles, before int) {
		for _, l := range p.Agenda.Facts(n.Device.ID, -1) {
			if l.Rule == "bundle" {
				bundles++
				before += strings.Count(l.Text, ", as its report of 1s ago says")
			}
		}
		return bundles, before
	}
	if bundles, before := said(); bundles != 2 || before != 0 {
		t.Errorf("online: %d bundles, %d of before", bundles, before)
	}
	p.Table.Presence(n.Device, &proto.Presence{Node: n.Device.ID, Session: 1})
	if bundles, before := said(); bundles != 2 || before != 2 {
		t.Errorf("offline: %d bundles, %d of before", bundles, before)
	}
}
