package planner

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Goal: a viewer who is given changes alone sees what one sees who is given
// everything, and the checks of health, which leave out whom nothing has happened to, find
// what they find when they look at all. Method: nodes die, return, lose their agents, drain and lose
// fibres under a network that loses and repeats; now and then the changes are
// laid over what was known, and compared with all there is. The planner restarts
// on the way.
func TestChangesAreAllThatChanged(t *testing.T) {
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: 36, GPUsPerNode: 4, K: 2, TP: 32, Spares: 4})
	if err != nil {
		t.Fatal(err)
	}
	w := newFleet(t, f)
	w.start()
	cells, strips := map[proto.NodeID]Cell{}, map[proto.RingID]Strip{}
	take := func(all bool) {
		g := Look(w.p, all)
		if all {
			clear(cells)
			clear(strips)
		}
		for _, c := range g.Cells {
			cells[c.Node] = c
		}
		for _, s := range g.Strips {
			if strips[s.Ring] = s; len(s.Nodes) == 0 {
				delete(strips, s.Ring)
			}
		}
	}
	take(true)
	for i := range f.Nodes {
		w.birth(proto.NodeID(i), true)
	}
	w.chaos = 0.1
	rng := rand.New(rand.NewPCG(5, 6))
	seen, shy := map[string]int{}, 0
	for step := range 300 {
		id := proto.NodeID(rng.IntN(f.Nodes))
		switch n := &w.nodes[id]; rng.IntN(9) {
		case 0:
			w.die(id)
		case 1:
			w.offline(id)
		case 2:
			if n.alive {
				w.setMode(id, proto.ModeIsolated)
			}
		case 3:
			payload, err := proto.Encode(&proto.OpRequest{Version: proto.Version, Noun: proto.NounDrain + proto.Noun(rng.IntN(2)), Node: id, Bundle: -1, TTLMillis: 5000, Corr: proto.Corr{byte(step), byte(step >> 8)}})
			if err != nil {
				t.Fatal(err)
			}
			w.raw(w.topics.Request("ctl-1"), payload)
		case 4:
			w.cuts[pair(id, (id+1)%proto.NodeID(f.Nodes))] = rng.IntN(2) == 0
			w.light()
		case 5:
			if n.alive && !n.offline {
				w.doubt(id, []proto.PortState{proto.Unproven, proto.Blocked}[rng.IntN(2)])
			}
		default:
			if !n.alive || n.offline {
				w.birth(id, n.applied == nil)
			} else if n.mode != proto.ModeService {
				w.setMode(id, proto.ModeService)
			}
		}
		w.run(time.Duration(rng.IntN(6000)) * time.Millisecond)
		shy += w.sameFacts(t, step)
		if rng.IntN(3) > 0 {
			continue
		}
		if step == 150 || rng.IntN(40) == 0 {
			w.start()
			take(true)
			continue
		}
		take(false)
		known, rings := fmt.Sprint(cells), fmt.Sprint(strips)
		for _, c := range cells { // any order: counted
			seen[fmt.Sprint(c.Standing, c.Side[0])]++
		}
		take(true)
		if all := fmt.Sprint(cells); all != known {
			t.Fatalf("step %d: by changes\n%s\nall\n%s", step, known, all)
		}
		if all := fmt.Sprint(strips); all != rings {
			t.Fatalf("step %d: by changes\n%s\nall\n%s", step, rings, all)
		}
	}
	if shy < 50 {
		t.Errorf("only %d links were unproven", shy)
	}
	if len(seen) < 10 {
		t.Errorf("only %d kinds of cells were seen: %v", len(seen), seen)
	}
	entries := Entries(w.p, 0, 10)
	more := Entries(w.p, entries[9].Seq, 2)
	if len(entries) != 10 || len(more) != 2 || more[0].Seq != entries[9].Seq || more[1].Line().Seq != entries[9].Seq+1 {
		t.Errorf("%d entries, then %d", len(entries), len(more))
	}
}
