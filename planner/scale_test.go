package planner

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// standing is a planner whose rings are all in service, without agents.
func standing(t testing.TB, nodes, spares int) *Planner {
	t.Helper()
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: nodes, GPUsPerNode: 4, K: 3, TP: 64, Spares: spares})
	if err != nil {
		t.Fatal(err)
	}
	p := New(Config{Fabric: f, Term: 1, PlannerID: 7})
	p.linkUp, p.fresh = true, false
	p.become(idle)
	for i := range p.nodes {
		n := &p.nodes[i]
		n.heard, n.online, n.session = true, true, 1
		n.report = &proto.Reported{Node: n.id, Session: 1}
	}
	d := decided{1, 1, proto.Digest{1}}
	m := p.mending()
	for _, g := range m.Replace(nil).Groups {
		r := &ringView{id: p.nextRing, nodes: g.Nodes}
		p.nextRing++
		p.enter(r, d)
		for _, id := range g.Nodes {
			p.nodes[id].want = target{d, []byte{1}}
		}
		shine(p, r)
	}
	p.gen = 1
	p.plan() // what stands is looked at once
	return p
}

// shine lets the members of a ring report its generation, with light.
func shine(p *Planner, r *ringView) {
	for at, id := range r.nodes {
		m := &proto.Reported{Node: id, Session: 1, Term: r.term, Generation: r.gen, Plan: r.plan}
		for _, other := range [2]int{at - 1, at + 1} {
			if other >= 0 && other < len(r.nodes) {
				if link, ok := p.fab.Link(id, r.nodes[other]); ok {
					m.Bundles = append(m.Bundles, proto.BundleReport{Bundle: link.Local.Bundle, Path: link.Local.Path, State: proto.Tuned})
				}
			}
		}
		p.nodes[id].report = m
	}
}

// pretend commits a proposal and lets its members say that they are there.
func pretend(p *Planner, q *proposal) {
	p.gen++
	p.state = deciding
	p.txn = txn{decided: decided{1, p.gen, proto.Digest{byte(p.gen)}}, proposal: q}
	d := p.txn.decided
	p.commit()
	for _, r := range q.rings {
		for _, id := range r.nodes {
			n := &p.nodes[id]
			n.want, n.unassigned = target{d, []byte{1}}, false
		}
		shine(p, p.ring(r.id))
	}
	for _, id := range q.idle {
		p.nodes[id].unassigned = false
	}
	p.out = p.out[:0]
}

// Goal: looks at the rings that were stirred leave nothing to mend that a look
// at all rings would find. Method: thousands of random losses and returns.
func TestLooksAtFewLeaveNothingToMend(t *testing.T) {
	p := standing(t, 600, 24)
	rng := rand.New(rand.NewPCG(3, 4))
	mended := 0
	for step := range 1500 {
		n := &p.nodes[rng.IntN(len(p.nodes))]
		before := n.flags()
		if n.said.out {
			p.say(n, false, proto.ModeService, 0)
		} else if rng.IntN(3) == 0 {
			p.say(n, true, proto.ModeHostDown, 0)
		}
		p.now += time.Second
		p.changed(n, before)
		for looks, quiet := 0, 0; quiet < 3; looks++ { // a ring with a fault waits for its neighbours' words first
			quiet++
			p.now += 2 * settleWait
			p.wantBetter = false
			if q := p.look(); q != nil {
				mended, quiet = mended+1, 0
				pretend(p, q)
			}
			if looks == 20 {
				t.Fatalf("step %d: no end of changes", step)
			}
		}
		if q := p.propose(p.rings, true); !q.empty() {
			t.Fatalf("step %d: a look at all finds more: %s", step, p.explain(q))
		}
	}
	if mended < 250 {
		t.Errorf("only %d changes", mended)
	}
}

// One fault of a fabric of any size, from the evidence to the placement that
// mends it: what the planner thinks, without the desired states it writes.
func BenchmarkMendOneFault(b *testing.B) {
	for _, nodes := range []int{2_000, 32_000, 250_000} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			p := standing(b, nodes, nodes/64)
			r := p.rings[len(p.rings)/2]
			n := &p.nodes[r.nodes[5]]
			p.nodes[r.nodes[4]].loss[proto.Right].lost = true // they say so
			p.nodes[r.nodes[6]].loss[proto.Left].lost = true
			for b.Loop() {
				p.now += time.Minute
				p.say(n, true, proto.ModeHostDown, 0)
				p.changed(n, flags{})
				if q := p.look(); q == nil || len(q.rings) != 1 {
					b.Fatalf("the fault is not mended: %+v", q)
				}
				p.say(n, false, proto.ModeService, 0)
				p.changed(n, flags{})
				p.out = p.out[:0]
			}
		})
	}
}
