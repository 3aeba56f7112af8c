package hbd

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// nobody is a planner above that asks for nothing.
type nobody struct{}

func (nobody) Voiced()                           {}
func (nobody) Answer(*member.Device, *proto.Ack) {}
func (nobody) Listening() bool                   { return false }
func (nobody) Busy() string                      { return "" }
func (nobody) Reply(string, *proto.OpReply)      {}

// standing is a planner whose rings are all in service, without agents.
func standing(t testing.TB, nodes, spares int) *Rings {
	t.Helper()
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: nodes, GPUsPerNode: 4, K: 3, TP: 64, Spares: spares})
	if err != nil {
		t.Fatal(err)
	}
	j := journal.New()
	j.Term, j.LinkUp = 1, true
	p := New(f, j, nobody{})
	p.Table.Numbers.Fresh, p.Table.Numbers.Gen = false, 1
	for i := range p.Placed.nodes {
		d := p.Placed.nodes[i].Device
		p.Table.Presence(d, &proto.Presence{Node: d.ID, Session: 1, Online: true})
		p.Table.Reported(d, &proto.Reported{Node: d.ID, Session: 1}, false)
		d.Unassigned = false
	}
	d := member.Decided{Term: 1, Gen: 1, Plan: proto.Digest{1}}
	for _, g := range p.Evidence.mending().Replace(nil).Groups {
		r := p.Placed.form(p.nextRing, g.Nodes, 0, d)
		p.nextRing++
		p.Placed.enter(r, d)
		for _, id := range g.Nodes {
			p.Placed.nodes[id].Device.Want = member.Target{Decided: &r.Decided, Payload: "\x01"}
		}
		shine(p, r)
	}
	p.Evidence.reindex()
	p.Agenda.markAll()
	if q := p.look(); q != nil { // what stands is looked at once
		t.Fatalf("nothing is wrong: %s", q.explain())
	}
	j.End()
	return p
}

// report lets a node say something of which nothing follows.
func report(p *Rings, m *proto.Reported) {
	p.Table.Keep(p.Placed.nodes[m.Node].Device, m)
}

// shine lets the members of a ring report its generation, with light.
func shine(p *Rings, r *ringView) {
	for at, id := range r.nodes {
		m := &proto.Reported{Node: id, Session: 1, Term: r.Term, Generation: r.Gen, Plan: r.Plan}
		for _, other := range [2]int{at - 1, at + 1} {
			if other >= 0 && other < len(r.nodes) {
				if link, ok := p.Placed.fab.Link(id, r.nodes[other]); ok {
					m.Bundles = append(m.Bundles, proto.BundleReport{Bundle: link.Local.Bundle, Path: link.Local.Path, State: proto.Tuned})
				}
			}
		}
		report(p, m)
	}
}

// commit carries a proposal out, and lets its members say that they are there.
func commit(p *Rings, q *proposal) {
	p.prepare(q)
	carry(p, q)
}

// carry is commit of what is being prepared.
func carry(p *Rings, q *proposal) {
	for _, part := range p.txn.Parts {
		p.Table.Ack(part.Device, &proto.Ack{Session: 1, Phase: proto.PhasePrepare, Term: p.txn.Term, Generation: p.txn.Gen, Plan: p.txn.Plan})
	}
	p.Persisted(p.j.Persist() - 1)
	for _, r := range q.rings {
		shine(p, p.Placed.ring(r.id))
	}
	for _, id := range q.idle {
		report(p, &proto.Reported{Node: id, Session: 1, Term: p.txn.Term, Generation: p.txn.Gen, Plan: p.txn.Plan})
	}
	p.j.End()
}

// Goal: looks at the rings that were marked leave nothing to mend that a look
// at all rings would find. Method: thousands of random losses and returns.
func TestLooksAtFewLeaveNothingToMend(t *testing.T) {
	p := standing(t, 600, 24)
	rng := rand.New(rand.NewPCG(3, 4))
	mended := 0
	for step := range 1500 {
		n := &p.Placed.nodes[rng.IntN(len(p.Placed.nodes))]
		before := n.flags()
		if n.said.out {
			p.say(n, false, proto.ModeService, 0)
		} else if rng.IntN(3) == 0 {
			p.say(n, true, proto.ModeHostDown, 0)
		}
		p.j.Now += time.Second
		p.changed(n, before)
		for looks, quiet := 0, 0; quiet < 3; looks++ { // a ring with a fault waits for its neighbours' words first
			quiet++
			p.j.Now += 2 * settleWait
			p.Agenda.wantBetter = false
			if q := p.look(); q != nil {
				mended, quiet = mended+1, 0
				commit(p, q)
			}
			if looks == 20 {
				t.Fatalf("step %d: no end of changes", step)
			}
		}
		if step%25 == 0 {
			p.sameIndex(t, step)
			p.sameWaits(t, step)
		}
		if q := p.propose(p.Placed.rings, true); !q.empty() {
			t.Fatalf("step %d: a look at all finds more: %s", step, q.explain())
		}
	}
	if mended < 250 {
		t.Errorf("only %d changes", mended)
	}
}

// sameIndex compares what is found with an index that was kept and with one
// that is made anew.
func (h *Rings) sameIndex(t *testing.T, step int) {
	var ids []proto.RingID
	for _, r := range h.Placed.rings {
		ids = append(ids, r.id)
	}
	kept := h.Placed.index
	h.Evidence.reindex()
	if a, b := kept.Look(ids, false), h.Placed.index.Look(ids, false); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Fatalf("step %d: the index that was kept says %+v, one made anew %+v", step, a, b)
	}
	h.Placed.index = kept
}

// sameWaits compares what rings are said to wait for with what all of them do.
func (h *Rings) sameWaits(t *testing.T, step int) {
	var all []string
	for _, r := range h.Placed.rings {
		if text := r.waitsFor(); text != "" {
			all = append(all, text)
		}
	}
	if got := h.Waits(); fmt.Sprint(got[:min(len(got), len(all))]) != fmt.Sprint(all) {
		t.Fatalf("step %d: said to wait\n%q\nwait\n%q", step, got, all)
	}
}
