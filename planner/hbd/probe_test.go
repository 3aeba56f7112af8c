package hbd

import (
	"slices"
	"testing"
	"time"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// shining is a fabric that stands, and a ring of it whose light was seen a second ago:
// with spares one that has some on its left.
func shining(t *testing.T, spares int) (*Rings, *ringView) {
	t.Helper()
	p := standing(t, 64+spares, spares)
	r := p.Placed.rings[min(1, spares)]
	r.seeLight()
	p.j.Now += time.Second
	return p, r
}

// lostBetween has two members lose the light of what is between them.
func lostBetween(p *Rings, r *ringView, left, right int) {
	r.at(left).lose(proto.Right, lossView{lost: true, at: p.j.Now})
	r.at(right).lose(proto.Left, lossView{lost: true, at: p.j.Now})
}

// hostFails has the host of a member fail, so that both its neighbours lose it.
func hostFails(p *Rings, r *ringView, at int) {
	n := r.at(at)
	before := n.flags()
	p.say(n, true, proto.ModeHostDown, 0)
	lostBetween(p, r, at-1, at+1)
	p.changed(n, before)
}

// Goal: of members that are lost together, one that still told of its neighbour
// before it went is probed with the others, not after they were found silent.
// Method: three members are gone, the middle one has told; the two outside have
// lost their light.
func TestOneThatToldAndWentIsProbedToo(t *testing.T) {
	p, r := shining(t, 0)
	lostBetween(p, r, 2, 4)
	lostBetween(p, r, 2, 6)
	p.Evidence.probes.doubt(r)
	for at := range r.nodes {
		if open, want := r.at(at).probe.open, at > 2 && at < 6; open != want {
			t.Errorf("member %d is probed: %t, want %t", at, open, want)
		}
	}
}

// Goal: a generation does not wait until it is late for a member that is gone
// and that nobody else could miss: the last of a line, whose only neighbour died
// with it, and that still told of that.
// Method: all but the last answer the prepare that leaves the dead one out.
// When nobody answers it is the planner's own link, and nobody is dead.
func TestWhoDoesNotAnswerAPrepareIsAsked(t *testing.T) {
	for _, stalled := range [2]bool{false, true} {
		silentEnd(t, stalled)
	}
}

func silentEnd(t *testing.T, stalled bool) {
	p, r := shining(t, 0)
	last := len(r.nodes) - 1
	hostFails(p, r, last-1)
	p.j.Now += settleWait
	q := p.look()
	if q == nil {
		t.Fatal("nothing is planned")
	}
	p.prepare(q)
	for _, part := range p.txn.Parts {
		if !stalled && part.Device.ID != r.nodes[last] {
			p.Table.Ack(part.Device, &proto.Ack{Session: 1, Phase: proto.PhasePrepare, Term: p.txn.Term, Generation: p.txn.Gen, Plan: p.txn.Plan})
		}
	}
	for range 4 {
		p.j.Now = min(p.Next(), p.j.Now+member.PrepareTimeout)
		p.Evidence.probes.heard = p.j.Now // the others talk
		p.Evidence.Conclude()
		p.Resend()
	}
	if stalled {
		for _, id := range r.nodes {
			if p.Placed.nodes[id].dead || p.Placed.nodes[id].probe.open {
				t.Errorf("nobody answers, and node %d is doubted", id)
			}
		}
		return
	}
	if took := p.j.Now - time.Second - settleWait; p.txn.Phase() != member.Resting || !r.at(last).dead || took > joinWait+2*probeWait {
		t.Errorf("after %v: %s, node %d dead %t", took, p.txn.Phase(), r.nodes[last], r.at(last).dead)
	}
}

// Goal: no ring is planned with a member that was asked whether it lives and
// has not answered: the plan would be given up when it turns out to be dead.
// Method: of three that are gone, one was asked first and is found silent; when
// the last is, the plan leaves out all three, and nothing else is waited for.
func TestWhoIsAskedIsWaitedFor(t *testing.T) {
	p, r := shining(t, 0)
	lostBetween(p, r, 3, 5) // the last one told, and went
	p.Evidence.watch(r)
	p.j.Now += 4 * time.Millisecond
	r.at(7).lose(proto.Left, lossView{lost: true, at: p.j.Now})
	p.Evidence.watch(r)
	p.j.Now += probeWait - 4*time.Millisecond
	p.Evidence.probes.heard = p.j.Now
	p.Evidence.Conclude()
	if !r.at(4).dead || r.at(5).dead || !r.at(5).asked() {
		t.Fatalf("dead %t and %t, asked %t", r.at(4).dead, r.at(5).dead, r.at(5).asked())
	}
	p.j.Now = max(p.j.Now, p.Agenda.planAt)
	if q := p.look(); q != nil {
		t.Fatalf("before they have answered: %s", q.explain())
	}
	p.j.Now = p.Evidence.probes.at
	p.Evidence.probes.heard = p.j.Now
	p.Evidence.Conclude()
	if !r.at(5).dead || !r.at(6).dead || p.Agenda.planAt != p.j.Now {
		t.Fatalf("dead %t and %t; planned at %v, it is %v", r.at(5).dead, r.at(6).dead, p.Agenda.planAt, p.j.Now)
	}
	q := p.look()
	if q == nil {
		t.Fatal("nothing is planned")
	}
	for _, view := range q.rings {
		for _, id := range view.nodes {
			if p.Placed.nodes[id].dead {
				t.Errorf("%s: node %d is dead", q.explain(), id)
			}
		}
	}
}

// Goal: a ring that waits for the words of the neighbours of a fault is planned
// for when the last of them has come, not when the wait is over.
// Method: a member's host is down; one neighbour has told, the other tells later.
func TestLastWordEndsTheWait(t *testing.T) {
	p, r := shining(t, 0)
	out, late := r.at(5), r.at(6)
	before := out.flags()
	p.say(out, true, proto.ModeHostDown, 0)
	r.at(4).lose(proto.Right, lossView{lost: true, at: p.j.Now})
	p.changed(out, before)
	p.j.Now = p.Agenda.planAt
	if q := p.look(); q != nil || p.Agenda.planAt <= p.j.Now+settleWait/2 {
		t.Fatalf("plan %v before the neighbour told; next look %v, now %v", q, p.Agenda.planAt, p.j.Now)
	}
	p.j.Now += 10 * time.Millisecond
	late.lose(proto.Left, lossView{lost: true, at: p.j.Now})
	p.changed(late, late.flags())
	if p.Agenda.planAt != p.j.Now {
		t.Fatalf("the last word came at %v, planned for at %v", p.j.Now, p.Agenda.planAt)
	}
	if q := p.look(); q == nil {
		t.Error("nothing is planned")
	}
}

// Goal: an idle node that may have gone with a member is not counted on: it is
// asked with the member, no plan has it until it answers, and then it may join.
// Method: the second member of a ring is gone; two of the four idle nodes before
// the ring are within its reach.
func TestIdleNodesBesideTheDeadAreAskedToo(t *testing.T) {
	p, r := shining(t, 16)
	lostBetween(p, r, 0, 2)
	p.Evidence.watch(r)
	first := r.nodes[0]
	for by := proto.NodeID(1); by <= 4; by++ {
		if n := &p.Placed.nodes[first-by]; n.Device.Group != 0 || n.asked() != (by < 3) || p.Placed.free(n.Device.ID) == n.asked() {
			t.Errorf("idle node %d of ring %d is asked %t, free %t", n.Device.ID, n.Device.Group, n.asked(), p.Placed.free(n.Device.ID))
		}
	}
	p.j.Now = p.Evidence.probes.at
	p.Evidence.probes.heard = p.j.Now
	p.Evidence.Conclude()
	q := p.look()
	if q == nil {
		t.Fatal("nothing is planned")
	}
	for _, v := range q.rings {
		if slices.ContainsFunc(v.nodes, func(id proto.NodeID) bool { return p.Placed.nodes[id].probe.open && !p.Placed.nodes[id].dead }) {
			t.Errorf("%s, which has not answered", q.explain())
		}
	}
	n := &p.Placed.nodes[first-1]
	p.News(member.News{Kind: member.Spoke, Device: n.Device, Ack: &proto.Ack{Corr: n.probe.corr}})
	if !p.Placed.free(n.Device.ID) {
		t.Error("it has answered, and may not join")
	}
}

// Goal: a node that would join and does not answer is left out at once when the
// others, who were late too, have answered, not one more wait later.
// Method: nobody answers until the time of the joining one is over; then all but it.
func TestLateJoinerIsLeftOutWithTheLastAnswer(t *testing.T) {
	p, r := shining(t, 16)
	hostFails(p, r, 1)
	p.j.Now += settleWait
	p.prepare(p.look())
	p.j.Now = p.joinAt
	p.Resend()
	p.j.Now += joinWait / 3
	gen := p.txn.Gen
	for _, part := range p.txn.Parts {
		if !part.Optional {
			p.Table.Ack(part.Device, &proto.Ack{Session: 1, Phase: proto.PhasePrepare, Term: p.txn.Term, Generation: p.txn.Gen, Plan: p.txn.Plan})
		}
	}
	if p.txn.Gen != gen || p.Next() > p.j.Now {
		t.Fatalf("generation %d after %d; next look at %v, it is %v", p.txn.Gen, gen, p.Next(), p.j.Now)
	}
	p.Resend()
	if p.txn.Phase() == member.Preparing && p.txn.Gen == gen {
		t.Error("the generation still waits for a node that would join")
	}
}

// Goal: a node that would join and is only slow to answer joins at last: it is waited
// for longer each time, up to a limit, before it has missed so many that it is left out.
// Method: a spare would join, and has answered fewer and fewer prepares before.
func TestSlowJoinerIsWaitedForLonger(t *testing.T) {
	p, r := shining(t, 16)
	hostFails(p, r, 1)
	p.j.Now += settleWait
	p.prepare(p.look())
	at := slices.IndexFunc(p.txn.Parts, func(part member.Part) bool { return part.Optional })
	if at < 0 {
		t.Fatal("nobody joins")
	}
	joins := p.txn.Parts[at].Device
	for missed, want := range []time.Duration{joinWait, 2 * joinWait, 4 * joinWait, 4 * joinWait} {
		if wait := p.joinAt - p.j.Now; wait != want {
			t.Errorf("waited for %v after %d prepares without an answer, want %v", wait, missed, want)
		}
		p.Table.Silence(joins, journal.Never)
		p.Table.Ack(joins, &proto.Ack{Session: 1, Phase: proto.PhasePrepare}) // it speaks, of another plan
		p.markJoins()
	}
}

// Goal: a member whose agent stays away, and of which one neighbour has lost the light,
// is passed by when the patience with it is over, though nobody says a word until then.
func TestWhoStaysAwayIsPassedByInTime(t *testing.T) {
	p, r := shining(t, 0)
	n := r.at(3)
	p.Table.Presence(n.Device, &proto.Presence{Node: n.Device.ID, Session: 1})
	p.j.Now = p.Agenda.planAt
	p.look()
	r.at(2).lose(proto.Right, lossView{lost: true, at: p.j.Now})
	p.Evidence.watch(r)
	if p.Agenda.planAt != n.Device.GoneAt+agentPatience || n.dead {
		t.Fatalf("gone at %v; next look at %v, dead %t", n.Device.GoneAt, p.Agenda.planAt, n.dead)
	}
	p.j.Now = p.Agenda.planAt
	if p.look(); !n.dead {
		t.Error("it is not passed by")
	}
	// It was there all the time: then the fibre to the one neighbour that lost its light
	// is dark; in a new life it has been away.
	for _, life := range []proto.Session{2, 1} {
		n.dead, n.own().parted = true, parting{1, r.nodes[2]}
		p.Table.Presence(n.Device, &proto.Presence{Node: n.Device.ID, Session: life, Online: true})
		p.Evidence.answered(n, "it answers")
		if held := p.Evidence.broken(n.Device.ID, r.nodes[2]); held != (life == 1) || n.parted.life != 0 {
			t.Errorf("in life %d: the fibre is held to be cut: %t", life, held)
		}
	}
}

// Goal: where answers take long, a node that would join has longer to prepare: it is not
// left out for the network.
// Method: all others have answered, after probes that took 40 ms.
func TestJoinerHasAsLongAsAnswersTake(t *testing.T) {
	p, r := shining(t, 16)
	p.Evidence.probes.took, p.Evidence.probes.spread = 40*time.Millisecond, 5*time.Millisecond
	hostFails(p, r, 1)
	p.j.Now += settleWait
	p.prepare(p.look())
	gen, began := p.txn.Gen, p.j.Now
	for _, part := range p.txn.Parts {
		if !part.Optional {
			p.Table.Ack(part.Device, &proto.Ack{Session: 1, Phase: proto.PhasePrepare, Term: p.txn.Term, Generation: p.txn.Gen, Plan: p.txn.Plan})
		}
	}
	for _, after := range []time.Duration{2 * joinWait, 360 * time.Millisecond} {
		p.j.Now = began + after
		p.Resend()
		if waits := p.txn.Gen == gen && p.txn.Phase() == member.Preparing; waits != (after == 2*joinWait) {
			t.Errorf("after %v it is waited for: %t", after, waits)
		}
	}
}

// Goal: a ring that waits for the answer of one of its members is looked at when that
// has come, be it that nothing else does.
func TestAnswerEndsTheWait(t *testing.T) {
	p, r := shining(t, 0)
	n := r.at(3)
	p.Evidence.probes.ask(n, p.j.Now, 0)
	p.Agenda.mark(r)
	if q := p.look(); q != nil || p.Agenda.planAt != journal.Never || !r.marked {
		t.Fatalf("plan %v, looked at again at %v, ring marked %t", q, p.Agenda.planAt, r.marked)
	}
	p.News(member.News{Kind: member.Spoke, Device: n.Device, Before: n.Device.Standing(), Ack: &proto.Ack{Corr: n.probe.corr}})
	if p.Agenda.planAt > p.j.Now+debounce {
		t.Errorf("looked at again at %v", p.Agenda.planAt)
	}
}

// Goal: a ring in pieces that one member's refusal kept from being formed anew is when
// time has ended that, though nobody says anything then.
// Method: two members have lost each other while a third refuses plans.
func TestRingIsFormedAnewWhenARefusalEnds(t *testing.T) {
	p := standing(t, 64, 0)
	r := p.Placed.rings[0]
	r.seeLight()
	r.lit[4] = false
	p.j.Now += time.Second
	n := r.at(1)
	n.Device.Refused(member.Refusal{Code: proto.Invalid, Until: p.j.Now + 2*time.Second})
	p.refusing = append(p.refusing, n.Device.ID)
	for at, s := range map[int]proto.Side{4: proto.Right, 5: proto.Left} { // any order: each by itself
		r.at(at).Device.Events.Last = 1
		r.at(at).lose(s, lossView{lost: true, seq: 1, at: p.j.Now})
	}
	p.Evidence.watchRing(r)
	p.Agenda.replan(0)
	for p.j.Now < 10*time.Second && !r.renew {
		if q := p.look(); q != nil {
			break
		}
		p.j.Now = max(p.j.Now+time.Millisecond, min(p.Agenda.planAt, 10*time.Second))
	}
	if !r.renew || p.j.Now < 3*time.Second {
		t.Errorf("at %v: to be formed anew %t, split since %v", p.j.Now, r.renew, r.splitAt)
	}
}

// Goal: a spare that is told again after it had refused is free for rings as soon as it
// has answered: the index hears of it.
func TestWhoAnswersAgainIsFree(t *testing.T) {
	p := standing(t, 80, 16)
	at := slices.IndexFunc(p.Placed.nodes, func(n node) bool { return n.Device.Group == 0 })
	n := &p.Placed.nodes[at]
	n.Device.Unassigned = true
	n.Device.Refusing(1)
	before := n.Device.Standing()
	if told(before) || n.free() {
		t.Fatalf("%+v, free %t", before, n.free())
	}
	n.Device.Refusing(0)
	if n.flagsOf(before) == n.flags() || !n.free() {
		t.Errorf("nothing has changed, free %t", n.free())
	}
}
