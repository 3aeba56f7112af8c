package hbd

import (
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// turns has a node report that its host is in another mode.
func turns(p *Rings, id proto.NodeID, mode proto.Mode) {
	n := &p.Placed.nodes[id]
	before := n.flags()
	p.say(n, mode != proto.ModeService, mode, 0)
	p.changed(n, before)
}

// Goal: a ring that needs more whole rings to move than may at once waits until
// it has lacked nodes for as long as they cost, says so, and is then made whole
// by a few at a time. The price is the fabric's, else what jobs said that it costs them.
// Method: a fabric without spares, a node lost near each end: 23 rings lie
// between the two that are short. Jobs say a second, and seven of sixteen an hour.
func TestMovesArePaidByShortage(t *testing.T) {
	t.Run("price of the fabric", func(t *testing.T) { movesArePaid(t, 1000) })
	t.Run("price of jobs", func(t *testing.T) { movesArePaid(t, 0) })
}

func movesArePaid(t *testing.T, priceMS int) {
	p := standing(t, 400, 0)
	p.Placed.fab.MovePriceMS = priceMS
	for i := range 16 {
		after := time.Hour
		if i%2 == 0 || i == 1 {
			after = time.Second
		}
		ClaimsOf(p).Resumed(after)
	}
	for _, id := range []proto.NodeID{5, 395} {
		turns(p, id, proto.ModeHostDown)
	}
	start, moved, last, said := p.j.Now, 0, time.Duration(0), false
	short := func() (count int) {
		for _, r := range p.Placed.rings {
			if len(r.nodes) < r.size {
				count++
			}
		}
		return count
	}
	for p.j.Now < start+time.Minute && !(moved > 0 && short() == 1) {
		p.j.Now += 2 * settleWait
		q := p.look()
		waited := p.j.Now - start
		learned := strings.Contains(strings.Join(p.Waits(), "\n"), "jobs computed again after 1s, the median of 16")
		said = said || learned == (priceMS == 0) && strings.Contains(strings.Join(p.Waits(), "\n"), "if 23 whole rings moved: they move once short rings have lacked nodes for 23s in total")
		if q == nil {
			continue
		}
		whole := 0
		for _, r := range q.rings {
			if old := p.Placed.ring(r.id); len(old.nodes) == old.size && len(r.nodes) == r.size && old.hasLight() && old.allReady() {
				whole++
			}
		}
		if whole > maxFetch+1 {
			t.Errorf("%v: %d whole rings move at once: %s", waited, whole, q.explain())
		}
		if whole > 0 && waited < 23*time.Second {
			t.Errorf("%d whole rings move after %v", whole, waited)
		}
		moved, last = moved+whole, waited
		commit(p, q)
	}
	if !said || short() != 1 || moved != 23 || last > 25*time.Second {
		t.Errorf("%d rings are short, %d whole ones moved in %v; want 1, 23 in 23 to 25 s; it was said: %t", short(), moved, last, said)
	}
	if p.Agenda.lookAt != journal.Never && p.Evidence.patience.Waits() != 0 {
		t.Errorf("something is still waited for: %d", p.Evidence.patience.Waits())
	}
}

// Goal: outages that were long are a reason to move at once what costs less than they lose.
// Method: the same, after the 16 nodes of a ring were out for four minutes each.
func TestOutagesTeachToMoveAtOnce(t *testing.T) {
	p := standing(t, 400, 0)
	p.Placed.fab.MovePriceMS = 1000
	for i := range 16 {
		id := proto.NodeID(i)
		turns(p, id, proto.ModeHostDown)
		p.j.Now += 4 * time.Minute
		turns(p, id, proto.ModeService)
	}
	for _, id := range []proto.NodeID{5, 395} {
		turns(p, id, proto.ModeHostDown)
	}
	start, moved := p.j.Now, 0
	for p.j.Now < start+10*time.Second {
		p.j.Now += 2 * settleWait
		q := p.look()
		if q == nil {
			continue
		}
		for _, r := range q.rings {
			if old := p.Placed.ring(r.id); len(old.nodes) == old.size && len(r.nodes) == r.size && old.hasLight() && old.allReady() {
				moved++
			}
		}
		commit(p, q)
	}
	if moved != 23 {
		t.Errorf("%d whole rings moved in 10 s, want 23", moved)
	}
}

// Goal: an idle node that is away for a moment does not begin the wait for the price anew.
// Method: as above, and after half of the price one of the idle nodes is away for a look.
func TestAMomentDoesNotBeginThePriceAnew(t *testing.T) {
	p := standing(t, 400, 0)
	p.Placed.fab.MovePriceMS = 1000
	turns(p, 5, proto.ModeHostDown)
	turns(p, 395, proto.ModeHostDown)
	var idle proto.NodeID
	away, back := false, false
	for start := p.j.Now; p.j.Now < start+time.Minute; {
		p.j.Now += 2 * settleWait
		waited := p.j.Now - start
		switch {
		case !away && waited > 12*time.Second:
			for i := range p.Placed.nodes {
				if p.Placed.nodes[i].free() {
					idle = proto.NodeID(i)
				}
			}
			away = true
			turns(p, idle, proto.ModeHostDown)
		case away && !back && waited > 13*time.Second:
			back = true
			turns(p, idle, proto.ModeService)
		}
		q := p.look()
		if q == nil {
			continue
		}
		for _, r := range q.rings {
			if old := p.Placed.ring(r.id); len(old.nodes) == old.size && old.allReady() {
				if waited < 23*time.Second || waited > 29*time.Second {
					t.Errorf("a whole ring moves after %v, want 23 s and what node %d was away for: %s", waited, idle, q.explain())
				}
				if !back {
					t.Errorf("a ring moves while node %d is away", idle)
				}
				return
			}
		}
		commit(p, q)
	}
	t.Errorf("no ring moved; node %d was away: %t", idle, away)
}

// Goal: what is lost while moves wait counts for every ring that could be whole:
// three rings that lack nodes are worth moves in a third of the time.
// Method: four nodes lost far from one another make four rings short that could
// be three whole ones; the time to the first move of a whole ring.
func TestAllShortRingsPay(t *testing.T) {
	p := standing(t, 800, 0)
	p.Placed.fab.MovePriceMS = 1000
	for _, id := range []proto.NodeID{5, 265, 530, 795} {
		turns(p, id, proto.ModeHostDown)
	}
	for start := p.j.Now; p.j.Now < start+time.Minute; {
		p.j.Now += 2 * settleWait
		q, waited := p.look(), p.j.Now-start
		if q == nil {
			continue
		}
		for _, r := range q.rings {
			if old := p.Placed.ring(r.id); len(old.nodes) == old.size && old.allReady() {
				if want := 15 * time.Second / 3; waited < want || waited > want+time.Second {
					t.Errorf("a whole ring moves after %v, want %v: %s", waited, want, q.explain())
				}
				return
			}
		}
		commit(p, q)
	}
	t.Error("no ring moved")
}

// Goal: what a drain costs is what plans do at once: whole rings that move for another only
// when it has been short for as long as they cost are none of it.
// Method: as above, with a node lost near one end and the drain of one near the other.
func TestADrainDoesNotCostWhatMovesLater(t *testing.T) {
	p := standing(t, 400, 0)
	turns(p, 5, proto.ModeHostDown)
	for range 10 {
		p.j.Now += 2 * settleWait
		if q := p.look(); q != nil {
			commit(p, q)
		}
	}
	n := &p.Placed.nodes[395]
	if cost := p.Evidence.costWithout(n); !slices.Equal(cost.Rings, []proto.RingID{n.Device.Group}) {
		t.Errorf("rings %v, want %d alone", cost.Rings, n.Device.Group)
	}
}
