package hbd

import (
	"testing"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// mend commits what is to be changed until nothing is, and tells how often.
func mend(p *Rings) (times int) {
	for times < 8 {
		p.j.Now += settleWait
		q := p.look()
		if q == nil {
			break
		}
		commit(p, q)
		times++
	}
	return times
}

// Goal: a fibre that gets another chance is used by the ring that lacks a node for it at
// once, though what could be better placed has to wait.
// Method: one in the middle of a ring is held to be cut, which leaves a node out that
// nobody can look from.
func TestAFibreThatIsWellMendsItsRingAtOnce(t *testing.T) {
	p, r := shining(t, 0)
	p.Evidence.hold(r, 7, "no light")
	p.Agenda.mark(r)
	if mend(p) == 0 || len(p.Placed.ring(r.id).nodes) != 15 {
		t.Fatalf("ring %d of %v", r.id, p.Placed.ring(r.id).nodes)
	}
	p.Agenda.betterAt = journal.Never
	p.j.Now = p.Evidence.cuts.at
	p.Evidence.Conclude()
	if mend(p) != 1 || len(p.Placed.ring(r.id).nodes) != 16 {
		t.Errorf("ring %d of %v", r.id, p.Placed.ring(r.id).nodes)
	}
}

// Goal: where a ring is missing, a fibre that has light again lets it be formed.
// Method: one of four rings is gone, and all six fibres between the first eight of its nodes
// and the others are held to be cut. One has light at a look, none at the next, and then
// goes on having it: it is used after three looks in a row.
func TestAFibreThatIsWellLetsARingBeFormed(t *testing.T) {
	p := standing(t, 64, 0)
	gone := p.Placed.rings[1]
	p.Placed.dropRing(gone.id)
	for _, id := range gone.nodes {
		p.Placed.place(id, 0)
	}
	mid := gone.nodes[8]
	for a := mid - 3; a < mid; a++ {
		for b := mid; b <= a+3; b++ {
			p.Evidence.cuts.hold(a, b, p.j.Now, 0)
			p.Evidence.cuts.known[pair(a, b)].until = p.j.Now + time.Hour
			p.Placed.reads(a)
		}
	}
	p.Agenda.markAll()
	if mend(p) != 0 || len(p.Placed.rings) != 3 {
		t.Fatalf("%d rings", len(p.Placed.rings))
	}
	p.Evidence.cuts.known[pair(mid-1, mid)].until, p.Evidence.cuts.at = p.j.Now, p.j.Now
	for i, dark := range []string{"", "no light at node 3", "", "", ""} {
		p.j.Now = p.Evidence.cuts.at
		p.Evidence.Conclude()
		tried := p.Evidence.Doubted()
		if len(tried) != 1 || !p.Evidence.broken(mid-1, mid) {
			t.Fatalf("look %d: %+v are looked at", i, tried)
		}
		if p.Evidence.Looked(&tried[0], [2]bool{}, false, dark); p.Evidence.broken(mid-1, mid) == (i == 4) {
			t.Errorf("look %d: broken %t", i, i == 4)
		}
	}
	if p.Agenda.planAt != p.j.Now+debounce {
		t.Errorf("looked at again at %v, it is %v", p.Agenda.planAt, p.j.Now)
	}
	if mend(p) != 1 || len(p.Placed.rings) != 4 {
		t.Errorf("%d rings", len(p.Placed.rings))
	}
}

// Goal: how often a ring was formed anew in vain is of its members: with others it has not
// been tried, and waits for nothing.
func TestAttemptsAreOfTheMembers(t *testing.T) {
	p, r := shining(t, 0)
	for _, nodes := range [][]proto.NodeID{r.nodes, r.nodes[1:]} {
		old := p.Placed.ring(r.id)
		old.renewed, old.renewAt, old.retold = 2, time.Hour, time.Minute
		same := len(nodes) == len(old.nodes)
		p.Placed.enter(p.Placed.view(r.id, nodes, r.size), r.Decided)
		if now := p.Placed.ring(r.id); (now.renewed == 2 && now.renewAt == time.Hour) != same || !same && int(now.renewed)+int(now.renewAt) != 0 || now.retold != time.Minute {
			t.Errorf("the same %t: %d attempts, not before %v", same, now.renewed, now.renewAt)
		}
	}
}

// Goal: a fibre that was given another chance is held again at once where its ring is
// split soon after, though it has light at that moment; later it is judged as any other.
func TestAFibreOnProbationIsBlamedFirst(t *testing.T) {
	for _, after := range []time.Duration{probation - time.Second, probation} {
		p, r := shining(t, 0)
		p.j.Now = time.Minute
		p.Evidence.hold(r, 3, "no light")
		p.Evidence.cuts.known[pair(r.nodes[3], r.nodes[4])].held = false
		p.Evidence.cuts.known[pair(r.nodes[3], r.nodes[4])].until = p.j.Now
		p.j.Now += after
		r.splitAt = p.j.Now - splitWait
		p.Evidence.dueSplit(r)
		if held := p.Evidence.broken(r.nodes[3], r.nodes[4]); held != (after < probation) || r.renew == held {
			t.Errorf("after %v: held %t, told again %t", after, held, r.renew)
		}
	}
}
