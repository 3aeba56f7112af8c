package ring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ringlight/proto"
)

// checkIndex compares an index with one that is made anew of the same groups.
func checkIndex(t *testing.T, tr *Tracker, seen string) {
	t.Helper()
	var groups []Group
	for i := range tr.slots {
		if s := &tr.slots[i]; len(s.Nodes) > 0 {
			if want := tr.slotOf[s.ID]; want != int32(i) {
				t.Fatalf("%s: group %d is in slot %d, not %d", seen, s.ID, want, i)
			}
			groups = append(groups, s.Group)
		}
	}
	fresh := NewTracker(tr.Mend, groups...)
	for _, x := range []struct {
		name string
		a, b *nodeSet
	}{{"well", &tr.well, &fresh.well}, {"idle", &tr.idle, &fresh.idle}, {"head", &tr.head, &fresh.head}, {"tail", &tr.tail, &fresh.tail}, {"gap", &tr.gap, &fresh.gap}} {
		for i := range tr.Nodes {
			if x.a.has(i) != x.b.has(i) {
				t.Fatalf("%+v %s: %s of node %d is %v; groups %+v", tr.Order, seen, x.name, i, x.a.has(i), tr.slots)
			}
		}
	}
	if fmt.Sprint(tr.tally, tr.over, len(tr.short), len(tr.frozen)) != fmt.Sprint(fresh.tally, fresh.over, len(fresh.short), len(fresh.frozen)) {
		t.Fatalf("%s: counts %+v %d, want %+v %d", seen, tr.tally, tr.over, fresh.tally, fresh.over)
	}
	tr.rows.update()
	fresh.rows.update()
	for s := range tr.Sizes {
		if !slices.Equal(tr.rows.least[s], fresh.rows.least[s]) && len(tr.rows.bad[s]) == 0 {
			t.Fatalf("%+v %s: rows of %d: %v, want %v", tr.Order, seen, tr.Sizes[s].Size, tr.rows.least[s], fresh.rows.least[s])
		}
	}
	for i := range tr.owner {
		if own := tr.owner[i]; own != 0 && !slices.Contains(tr.slots[own].Nodes, proto.NodeID(i)) {
			t.Fatalf("%s: node %d is not in its group", seen, i)
		}
	}
}

// Goal: an index that was kept through faults, repairs and looks is the one
// that would be made anew, and a look leaves it as it was.
// Method: random walks on small lines and rings, K from 1 to 4, one size and
// several, looks carried out or not.
func TestIndexStaysTrue(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, nodes := range []int{10, 40, 200} {
		for _, o := range orders(nodes) {
			for _, sizes := range [][]Demand{{{Size: 3, Want: nodes / 3}}, {{Size: 8, Want: nodes / 20}, {Size: 4, Want: nodes / 8}}} {
				out := make([]bool, nodes)
				well := func(n proto.NodeID) bool { return !out[n] }
				tr := NewTracker(Mend{Order: o, Sizes: sizes, Usable: well, Free: well, Spread: true, Moves: maxMoves - rng.IntN(2)*(maxMoves+1)})
				next := proto.RingID(1)
				for step := range 40 {
					seen := fmt.Sprintf("%+v step %d", sizes, step)
					r := tr.Look(shortIDs(tr), step%3 == 1)
					checkIndex(t, tr, seen+" after the look")
					if step%4 != 3 {
						for _, g := range r.Gone {
							tr.Drop(g)
						}
						for _, at := range r.Touched { // all leave before any enters
							if g := r.Groups[at]; g.ID != 0 {
								tr.Put(Group{ID: g.ID, Size: g.Size})
							}
						}
						for _, at := range r.Touched {
							g := r.Groups[at]
							if g.ID == 0 {
								g.ID = next
								next++
							}
							tr.Put(g)
						}
						checkIndex(t, tr, seen+" carried out")
					}
					n := rng.IntN(nodes)
					out[n] = !out[n] && rng.IntN(4) > 0
					tr.Refresh(proto.NodeID(n))
				}
			}
		}
	}
}

// shortIDs lists the groups that lack a node.
func shortIDs(tr *Tracker) (ids []proto.RingID) {
	for at := range tr.short { // any order: sorted below
		ids = append(ids, tr.slots[at].ID)
	}
	slices.Sort(ids)
	return ids
}

// Goal: the index forgets the idle nodes that a new group takes, also where it
// reaches over the end of a block and leaves no idle node in one: looking for
// the group after it went by what had been there, and ended the planner.
// Method: one group runs, two more are wanted; sixteen nodes on both sides of
// node 64 are idle.
func TestNewGroupOverTheEndOfABlock(t *testing.T) {
	well := func(n proto.NodeID) bool { return n >= 56 && n < 72 || n >= 100 && n < 116 }
	g := Group{ID: 1, Size: 16}
	for n := proto.NodeID(100); n < 116; n++ {
		g.Nodes = append(g.Nodes, n)
	}
	tr := NewTracker(Mend{Order: Order{Nodes: 192, K: 3, Shared: true}, Sizes: []Demand{{16, 3}}, Moves: maxMoves, Usable: well, Free: well}, g)
	r := tr.Look(nil, false)
	if len(r.Groups) != 1 || len(r.Touched) != 1 || len(r.Groups[0].Nodes) != 16 {
		t.Errorf("%+v, want one group more", r)
	}
}

// wholeIn counts the groups that have all their nodes, of those of the first demand.
func wholeIn(tr *Tracker) (n int) {
	for i := range tr.slots {
		s := &tr.slots[i]
		if is := s.standing; tr.demand(s.Size) == 0 && (is == kept || is == stands || is == still && s.whole()) {
			n++
		}
	}
	return n
}
