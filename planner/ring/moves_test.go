package ring

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// mended places groups on a sound order, takes some nodes out, and replaces.
func mended(t *testing.T, o Order, size, spares, faults, moves int, seed uint64) (m Mend, running []Group, r Result) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	all := func(proto.NodeID) bool { return true }
	for i, g := range Place(Problem{Order: o, Size: size, Usable: all, Want: (o.Nodes - spares) / size, Spread: true}) {
		running = append(running, Group{ID: proto.RingID(i + 1), Nodes: g})
	}
	out := make([]bool, o.Nodes)
	for range faults {
		out[rng.IntN(o.Nodes)] = true
	}
	well := func(n proto.NodeID) bool { return !out[n] }
	m = Mend{Order: o, Sizes: []Demand{{size, len(running)}}, Usable: well, Free: well, Spread: true, Moves: moves}
	r = m.Replace(running)
	used := map[proto.NodeID]bool{}
	for _, g := range r.Groups {
		if err := o.Check(g.Nodes); err != nil || len(g.Nodes) > size {
			t.Fatalf("group %v: %v", g.Nodes, err)
		}
		for _, n := range g.Nodes {
			if used[n] || !well(n) {
				t.Fatalf("node %d is in two groups, or out", n)
			}
			used[n] = true
		}
	}
	return m, running, r
}

func whole(r Result, size int) (n int) {
	for _, g := range r.Groups {
		if len(g.Nodes) == size {
			n++
		}
	}
	return n
}

// Goal: with any number of moves as many groups are whole as a placement from
// nothing finds, on fabrics with hundreds of groups, and never more than asked.
// Method: random faults, K = 2 and 3, lines and rings, with and without spares.
func TestAnyMovesReachTheMost(t *testing.T) {
	for seed := range uint64(40) {
		o := Order{Nodes: 600, K: 2 + int(seed%2), Wrap: seed%4 >= 2, Shared: seed%2 == 1}
		spares := int(seed%3) * 8
		m, running, r := mended(t, o, 8, spares, 5+int(seed), Any, seed)
		most := len(Place(Problem{Order: o, Size: 8, Usable: m.Usable, Want: -1}))
		if got, want := whole(r, 8), min(most, len(running)); got != want {
			t.Errorf("seed %d: %d whole groups, want %d", seed, got, want)
		}
	}
}

// Goal: without moves a whole group stays exactly as it is, whatever is lost.
// Method: the same faults; every sound group is compared.
func TestNoMovesTouchNoWholeGroup(t *testing.T) {
	for seed := range uint64(40) {
		o := Order{Nodes: 600, K: 2 + int(seed%2), Wrap: seed%4 >= 2, Shared: seed%2 == 1}
		m, running, r := mended(t, o, 8, int(seed%3)*8, 5+int(seed), 0, seed)
		for i, g := range running {
			if slices.ContainsFunc(g.Nodes, func(n proto.NodeID) bool { return !m.Usable(n) }) {
				continue
			}
			at := slices.IndexFunc(r.Groups, func(x Group) bool { return x.ID == g.ID })
			if at < 0 || !slices.Equal(r.Groups[at].Nodes, g.Nodes) || slices.Contains(r.Touched, at) {
				t.Fatalf("seed %d: sound group %d %v was touched", seed, i+1, g.Nodes)
			}
		}
	}
}

// Goal: a broken link holds no group together, however the groups are laid.
// Method: one broken link in the middle of a whole group, any moves.
func TestAnyMovesMindBrokenLinks(t *testing.T) {
	o := Order{Nodes: 64, K: 2}
	all := func(proto.NodeID) bool { return true }
	var running []Group
	for i, g := range Place(Problem{Order: o, Size: 8, Usable: all, Want: 7}) {
		running = append(running, Group{ID: proto.RingID(i + 1), Nodes: g})
	}
	broken := func(a, b proto.NodeID) bool { return min(a, b) == 11 && max(a, b) == 12 }
	r := Mend{Order: o, Sizes: []Demand{{8, 7}}, Usable: all, Free: all, Moves: Any, Broken: broken}.Replace(running)
	if n := whole(r, 8); n != 7 {
		t.Errorf("%d whole groups, want 7", n)
	}
	for _, g := range r.Groups {
		for i := 1; i < len(g.Nodes); i++ {
			if broken(g.Nodes[i-1], g.Nodes[i]) {
				t.Errorf("group %v hangs on a broken link", g.Nodes)
			}
		}
	}
}

// Goal: with any number of moves the most groups are whole in every state that
// faults and repairs lead to, not only after the first ones.
// Method: random walks on small lines and rings, K from 1 to 4, with and
// without the shared bundle, against placement from nothing.
func TestAnyMovesStayAtTheMost(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, nodes := range []int{7, 11, 16, 40, 130} {
		for _, o := range orders(nodes) {
			for size := 1; size <= 5; size++ {
				out := make([]bool, nodes)
				well := func(n proto.NodeID) bool { return !out[n] }
				m := Mend{Order: o, Sizes: []Demand{{size, nodes / size}}, Usable: well, Free: well, Spread: true, Moves: Any}
				var running []Group
				for step := range 80 {
					r := m.Replace(running)
					checkGroups(t, o, size, well, wholeOf(r, size))
					if most := len(Place(Problem{Order: o, Size: size, Usable: well, Want: -1})); whole(r, size) != most {
						t.Fatalf("%+v size %d step %d, out %v: %d whole groups, want %d: %+v", o, size, step, out, whole(r, size), most, r)
					}
					running = r.Groups
					for i := range running {
						running[i].ID = proto.RingID(i + 1)
					}
					n := rng.IntN(nodes)
					out[n] = !out[n] && rng.IntN(4) > 0
				}
			}
		}
	}
}

// Goal: with few moves at most eight whole groups move aside for one that
// becomes whole, in every state that faults and repairs lead to.
// Method: a random walk of single faults and repairs on 600 nodes with no
// spares, groups compared before and after each event.
func TestFewMovesMoveAtMostEightForOne(t *testing.T) {
	const size, most = 8, 8
	rng := rand.New(rand.NewPCG(3, 3))
	o := Order{Nodes: 600, K: 3, Wrap: true, Shared: true}
	out := make([]bool, o.Nodes)
	well := func(n proto.NodeID) bool { return !out[n] }
	m := Mend{Order: o, Sizes: []Demand{{size, o.Nodes / size}}, Usable: well, Free: well, Spread: true, Moves: MovesOf(fabric.MoveFew)}
	running := m.Replace(nil).Groups
	farthest := 0
	for step := range 300 {
		before := map[proto.RingID][]proto.NodeID{}
		for i := range running {
			running[i].ID = proto.RingID(i + 1)
			before[running[i].ID] = slices.Clone(running[i].Nodes)
		}
		n := rng.IntN(o.Nodes)
		out[n] = !out[n] && rng.IntN(8) > 0
		r := m.Replace(running)
		moved, made := 0, 0
		for _, g := range r.Groups {
			old := before[g.ID]
			sound := len(old) == size && !slices.ContainsFunc(old, func(n proto.NodeID) bool { return out[n] })
			switch {
			case sound && !slices.Equal(old, g.Nodes):
				moved++
			case !sound && len(g.Nodes) == size:
				made++
			}
		}
		farthest = max(farthest, moved)
		if moved > most*made {
			t.Fatalf("step %d: %d whole groups moved for %d", step, moved, made)
		}
		running = r.Groups
	}
	t.Logf("at most %d whole groups moved in one event", farthest)
}

func wholeOf(r Result, size int) (out [][]proto.NodeID) {
	for _, g := range r.Groups {
		if len(g.Nodes) == size {
			out = append(out, g.Nodes)
		}
	}
	return out
}

// Goal: that any number of groups may move is no reason to move them: what is
// wanted is reached with as few as it takes.
// Method: the smallest case, where node 0 is lost and 8 to 10 are free; then
// single faults and repairs on a line of 2,400 nodes with 96 spares, K = 1.
func TestAnyMovesStopAtTheTarget(t *testing.T) {
	running := runningGroups([][]proto.NodeID{{0, 1}, {2, 3}, {4, 5}, {6, 7}})
	r := Mend{Order: Order{Nodes: 11, K: 1}, Sizes: []Demand{{2, 4}}, Usable: but(0), Free: but(0), Moves: Any}.Replace(running)
	if whole(r, 2) != 4 || len(r.Touched) != 1 {
		t.Errorf("%+v: want four groups, three of them as they are", r)
	}

	const nodes, size = 2400, 16
	rng := rand.New(rand.NewPCG(1, 2))
	out := make([]bool, nodes)
	well := func(n proto.NodeID) bool { return !out[n] }
	tr := NewTracker(Mend{Order: Order{Nodes: nodes, K: 1}, Sizes: []Demand{{size, (nodes - 96) / size}}, Usable: well, Free: well, Spread: true, Moves: Any})
	next, touched, worst, events := proto.RingID(1), 0, 0, 0
	step := func(ids []proto.RingID) int {
		r := tr.Look(ids, false)
		n := len(r.Gone)
		for i := range r.Groups {
			if n++; r.Groups[i].ID == 0 {
				r.Groups[i].ID = next
				next++
			}
		}
		tr.Carry(r)
		return n
	}
	step(nil)
	for down := 0; events < 400; events++ {
		n := proto.NodeID(rng.IntN(nodes))
		if back := slices.Index(out, true); down >= 8 {
			n = proto.NodeID(back)
		}
		down--
		if out[n] = !out[n]; out[n] {
			down += 2
		}
		tr.Refresh(n)
		moved := step(tr.Concerned(n))
		touched, worst = touched+moved, max(worst, moved)
		if w := wholeIn(tr); w != (nodes-96)/size {
			most := len(Place(Problem{Order: tr.Order, Size: size, Usable: well, Want: -1}))
			if w != min(most, (nodes-96)/size) {
				t.Fatalf("%d whole groups, want %d", w, most)
			}
		}
	}
	t.Logf("%.2f groups touched an event, at most %d", float64(touched)/float64(events), worst)
	if 2*touched > 3*events || worst > 60 {
		t.Errorf("%d groups touched in %d events, at most %d", touched, events, worst)
	}
}
