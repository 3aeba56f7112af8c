package planner

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/journal"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// Whatever the network loses, repeats and shuffles, whoever dies and returns,
// wherever the planner is killed: once all is well again, every node is where
// the planner wants it, every ring is whole or cannot be, nothing went back,
// and every event is in the log exactly once and in order.
// Seeded random histories; the fake agents check that generations grow.
func TestChaosConverges(t *testing.T) {
	seeds := 60
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) { chaos(t, uint64(seed)) })
	}
}

func chaosFabric(t *testing.T, rng *rand.Rand) *fabric.Fabric {
	p := fabric.Params{Name: "f", Nodes: 8 + rng.IntN(12), GPUsPerNode: 4, K: 1 + rng.IntN(4), TP: 8 + 4*rng.IntN(4), Spares: rng.IntN(3)}
	if p.Nodes > 2*p.K+1 && rng.IntN(3) == 0 {
		p.Topology = fabric.Ring
	}
	f, err := fabric.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func chaos(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := newFleet(t, chaosFabric(t, rng))
	w.rng, w.chaos = rng, float64(rng.IntN(3))*0.15
	w.start()
	for i := range w.nodes {
		w.birth(proto.NodeID(i), true)
	}
	lostStore := false
	for range 40 {
		w.run(time.Duration(rng.IntN(4000)) * time.Millisecond)
		if w.exit != "" {
			t.Fatal("exited:", w.exit)
		}
		lostStore = w.strike(rng) || lostStore
		w.checkRings()
	}
	w.heal()
	w.run(6 * time.Minute)
	w.checkHealed(lostStore)
}

// strike does one random thing.
func (w *fleet) strike(rng *rand.Rand) (lostStore bool) {
	id := proto.NodeID(rng.IntN(len(w.nodes)))
	n := &w.nodes[id]
	switch k := rng.IntN(17); {
	case k < 3 && n.alive:
		w.die(id)
	case k < 6 && !n.alive:
		w.birth(id, rng.IntN(3) > 0)
	case k == 6 && n.alive && !n.offline:
		w.offline(id)
	case k == 7 && n.offline:
		w.online(id)
	case k == 8 && n.alive && n.mode == proto.ModeService:
		w.setMode(id, proto.ModeHostDown)
	case k == 9 && n.alive && n.mode == proto.ModeHostDown:
		w.setMode(id, proto.ModeService)
	case k == 10:
		w.linkUp = false
		w.step(Event{Kind: LinkDown})
	case k == 11:
		w.reconnect()
	case k == 12:
		w.start() // killed and started
		if !w.linkUp {
			w.reconnect()
		}
	case k == 14, k == 15:
		w.later(proto.OpRequest{Noun: proto.NounDrain, Node: id, Bundle: -1})
	case k == 16:
		w.later(proto.OpRequest{Noun: proto.NounUndrain, Node: id, Bundle: -1})
	case k == 13 && rng.IntN(20) == 0:
		clear(w.store)
		w.start()
		return true
	}
	return false
}

func (w *fleet) reconnect() {
	if w.linkUp {
		return
	}
	w.connect()
	for i := range w.nodes {
		w.nodes[i].lastSent = nil
		if n := &w.nodes[i]; n.alive && !n.offline {
			w.birthNote(n)
		}
	}
	w.light()
}

func (w *fleet) heal() {
	w.chaos = 0
	w.reconnect()
	for i := range w.nodes {
		n := &w.nodes[i]
		switch {
		case !n.alive:
			w.birth(n.id, true)
		case n.offline:
			w.online(n.id)
		}
		if n.mode == proto.ModeHostDown || n.mode == proto.ModeDrained {
			w.setMode(n.id, proto.ModeService)
		}
		w.birthNote(n)
		n.lastSent = nil
	}
	w.light()
}

// checkRings: no committed ring breaks the order, no node is in two.
func (w *fleet) checkRings() {
	seen := map[proto.NodeID]bool{}
	for _, r := range w.p.Rings.Placed.Statuses() {
		if err := ring.OrderOf(w.fab).Check(r.Nodes); err != nil {
			w.t.Fatalf("ring %d: %v", r.Ring, err)
		}
		for _, n := range r.Nodes {
			if seen[n] {
				w.t.Fatalf("node %d is in two rings", n)
			}
			seen[n] = true
		}
	}
}

// draining: the planner says so.
func (w *fleet) draining(id proto.NodeID) bool {
	return slices.ContainsFunc(w.p.Rings.Agenda.Facts(id, -1), func(l proto.WhyLine) bool { return l.Text == "it is being drained" })
}

func (w *fleet) checkHealed(lostStore bool) {
	w.checkRings()
	if o := w.p.Overview(); !o.Quiet || o.Pending > 0 || o.Online != len(w.nodes) {
		w.t.Fatalf("not quiet: %+v\n%s", o, w.show())
	}
	member := map[proto.NodeID]proto.RingID{}
	for _, r := range w.p.Rings.Placed.Statuses() {
		if r.LinksConfirmed != r.Links {
			w.t.Errorf("ring %d: %d of %d links", r.Ring, r.LinksConfirmed, r.Links)
		}
		if whole := len(r.Nodes) == w.fab.GroupNodes(); whole != (r.State == proto.RingInService) {
			w.t.Errorf("ring %d of %d nodes is %s", r.Ring, len(r.Nodes), r.State)
		}
		for _, n := range r.Nodes {
			member[n] = r.Ring
		}
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		var ring proto.RingID
		if n.applied == nil && n.mode != proto.ModeDrained {
			w.t.Errorf("node %d was never told anything", n.id)
		} else if n.applied != nil && len(n.applied.Rings) > 0 {
			ring = n.applied.Rings[0].Ring
		}
		// Who was taken out while it was down is told when it is let in again.
		if ring != member[n.id] && n.mode != proto.ModeDrained {
			w.t.Errorf("node %d stands in ring %d, the planner has it in %d", n.id, ring, member[n.id])
		}
	}
	for i := range w.nodes {
		if w.draining(proto.NodeID(i)) {
			w.t.Errorf("node %d is still being drained", i)
		}
	}
	// No free node could still help a ring: a link that comes up makes the
	// planner look at everything, and it finds nothing.
	gen := w.p.Overview().Generation
	w.connect()
	w.run(time.Second)
	if o := w.p.Overview(); o.Generation != gen || !o.Quiet {
		w.t.Errorf("the placement was not at rest: generation %d, then %+v\n%s", gen, o, w.show())
	}
	if !lostStore {
		w.checkLog()
	}
}

// checkLog reads the store, not the planner.
func (w *fleet) checkLog() {
	log := journal.New()
	for _, k := range slices.Sorted(maps.Keys(w.store)) {
		if key, ok := strings.CutPrefix(k, journal.PrefixLog); ok {
			if err := log.Restore(key, w.store[k]); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	last := make([]uint64, len(w.nodes))
	for i := range log.Len() {
		e := log.At(i).Event
		if e == nil {
			continue
		}
		if at := &last[e.Node]; e.Seq != *at+1 {
			w.t.Errorf("node %d: event %d after %d", e.Node, e.Seq, *at)
		} else {
			*at++
		}
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		if last[i] != uint64(len(n.events)) || n.acked != last[i] {
			w.t.Errorf("node %d: %d events, %d in the log, %d acknowledged", i, len(n.events), last[i], n.acked)
		}
	}
}
