package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/proto"
)

// Goal: what is said to break next does, and nothing else. Method: fabrics with
// nodes lost already; every loss that is foretold, and every one that is not, of the
// largest fabric one in three, is carried out in a world of its own, whose rings are
// compared before and after; whether a ring is torn is what the light of its members
// says before the planner has done anything.
func TestWhatBreaksNextDoes(t *testing.T) {
	for _, c := range []struct {
		params fabric.Params
		onLoss fabric.OnLoss
		moves  fabric.Moves
		lost   []proto.NodeID
	}{
		{params: fabric.Params{Name: "f", Nodes: 18, GPUsPerNode: 4, K: 2, TP: 16, Spares: 2}, moves: fabric.MoveNone, lost: []proto.NodeID{4}},
		{params: fabric.Params{Name: "f", Nodes: 18, GPUsPerNode: 4, K: 2, TP: 16, Spares: 2}, moves: fabric.MoveNone, onLoss: fabric.Dissolve, lost: []proto.NodeID{4, 13}},
		{params: fabric.Params{Name: "f", Nodes: 20, GPUsPerNode: 4, K: 3, TP: 16, Spares: 4}, lost: []proto.NodeID{2, 9, 10}},
		{params: fabric.Params{Name: "f", Nodes: 20, GPUsPerNode: 4, K: 2, TP: 32, Topology: fabric.Ring}, lost: []proto.NodeID{3, 16}},
		{params: fabric.Params{Name: "f", Nodes: 12, GPUsPerNode: 4, K: 1, TP: 16}},
		{params: fabric.Params{Name: "f", Nodes: 40, GPUsPerNode: 4, K: 2, TP: 32, Spares: 4}, lost: []proto.NodeID{5, 22}},
	} {
		f, err := fabric.New(c.params)
		if err != nil {
			t.Fatal(err)
		}
		f.OnLoss, f.Moves = c.onLoss, c.moves
		begin := func() *fleet {
			w := newFleet(t, f)
			w.start()
			for i := range f.Nodes {
				w.birth(proto.NodeID(i), true)
			}
			w.run(10 * time.Second)
			for _, id := range c.lost {
				w.die(id)
				w.run(40 * time.Second)
			}
			return w
		}
		w := begin()
		o := w.p.Rings.Evidence.Outlook()
		if !o.Try(2 * f.Nodes) {
			t.Fatal("not all were tried")
		}
		name := fmt.Sprintf("%d nodes, k %d, without %v, %s, %s", f.Nodes, f.K, c.lost, f.Moves, f.OnLoss)
		every := 1 + f.Nodes/40*2
		if testing.Short() {
			every *= 3
		}
		for id := range proto.NodeID(f.Nodes) {
			if int(id)%every != 0 {
				continue
			}
			var said hbd.Loss
			if at := slices.IndexFunc(o.Losses, func(l hbd.Loss) bool { return l.Node == id && !l.Fibre }); at >= 0 {
				said = o.Losses[at]
			}
			if slices.Contains(c.lost, id) {
				if said.Node == id && id != 0 {
					t.Errorf("%s: node %d is lost already: %+v", name, id, said)
				}
				continue
			}
			w := begin()
			before := w.p.Rings.Placed.Statuses()
			w.die(id)
			torn := w.torn(before, id)
			w.run(40 * time.Second)
			gpus, down := fallen(before, w.p.Rings.Placed.Statuses(), f)
			w.inTheSameWords(name, said)
			if gpus != said.GPUs || !slices.Equal(down, said.Down) || torn != said.Torn {
				t.Errorf("%s: node %d: %d GPUs fewer, rings %v down, torn %v; said %+v\n%s", name, id, gpus, down, torn, said, w.show())
			}
		}
		for _, r := range w.p.Rings.Placed.Statuses() {
			for i := 1; i < len(r.Nodes); i += every {
				a, b := r.Nodes[i-1], r.Nodes[i]
				w := begin()
				before := w.p.Rings.Placed.Statuses()
				w.cuts[pair(a, b)] = true
				w.light()
				w.run(3 * time.Minute) // a fibre is held to be cut after some attempts
				gpus, down := fallen(before, w.p.Rings.Placed.Statuses(), f)
				var said hbd.Loss
				if at := slices.IndexFunc(o.Losses, func(l hbd.Loss) bool { return l.Fibre && l.Node == a && l.Peer == b }); at >= 0 {
					said = o.Losses[at]
				}
				w.inTheSameWords(name, said)
				if gpus != said.GPUs || !slices.Equal(down, said.Down) {
					t.Errorf("%s: fibre %d-%d: %d GPUs fewer, rings %v down; said %+v\n%s", name, a, b, gpus, down, said, w.show())
				}
			}
		}
		t.Logf("%s: %d of %d losses matter, %d spares, worst %+v", name, len(o.Losses), 2*f.Nodes, o.Spares, o.Worst(1))
	}
}

// inTheSameWords: a ring that a forecast calls degraded is that in the list, with as
// many GPUs.
func (w *fleet) inTheSameWords(name string, l hbd.Loss) {
	for i, id := range l.Down {
		is := fmt.Sprintf("ring %d ends", id)
		if r := w.p.Rings.Placed.Ring(id); r != nil {
			is = fmt.Sprintf("ring %d %s: %d of %d GPUs", id, r.State, r.GPUs, l.Left[i][1])
		}
		if i < 3 && !strings.Contains(l.Comes(), is) {
			w.t.Errorf("%s: lose %s: %s, said %s", name, l.What(), is, l.Comes())
		}
	}
}

// torn reports whether the light of a ring's other members is in pieces.
func (w *fleet) torn(rings []proto.RingStatus, id proto.NodeID) bool {
	for _, r := range rings {
		at := slices.Index(r.Nodes, id)
		if at <= 0 || at == len(r.Nodes)-1 {
			continue
		}
		left := &w.nodes[r.Nodes[at-1]]
		list, _, _ := left.side(proto.Right)
		now := left.current[proto.Right]
		return now < 0 || list[now].Peer != r.Nodes[at+1]
	}
	return false
}

// fallen compares rings: GPUs that are in none any more, and rings that were in
// service and have fewer nodes than they should.
func fallen(before, after []proto.RingStatus, f *fabric.Fabric) (gpus int, down []proto.RingID) {
	for _, b := range before {
		gpus += int(b.GPUs)
		at := slices.IndexFunc(after, func(r proto.RingStatus) bool { return r.Ring == b.Ring })
		if at >= 0 {
			gpus -= int(after[at].GPUs)
		}
		if b.State == proto.RingInService && (at < 0 || after[at].State != proto.RingInService) {
			down = append(down, b.Ring)
		}
	}
	return gpus, down
}
