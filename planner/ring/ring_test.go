package ring

import (
	"fmt"
	"slices"
	"testing"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

func all(proto.NodeID) bool { return true }

func but(faulty ...proto.NodeID) func(proto.NodeID) bool {
	return func(n proto.NodeID) bool { return !slices.Contains(faulty, n) }
}

// The default fabric with eight spares is seven rings with a spare beside
// each and one over.
func TestSparesStandBesideTheRings(t *testing.T) {
	groups := Place(Problem{Order: Order{Nodes: 64, K: 2}, Size: 8, Usable: all, Want: 7, Spread: true})
	if len(groups) != 7 {
		t.Fatalf("%d groups, want 7", len(groups))
	}
	for i, g := range groups {
		if want := proto.NodeID(9 * i); g[0] != want || g[7] != want+7 {
			t.Errorf("group %d: %v, want %d to %d", i, g, want, want+7)
		}
	}
}

// A component that passes the last index is not torn.
// Ring of 12, K = 2, nodes 3 and 4 faulty: 10 nodes from 5 round to 2.
func TestComponentPassesTheSeam(t *testing.T) {
	groups := Place(Problem{Order: Order{Nodes: 12, K: 2, Wrap: true}, Size: 5, Usable: but(3, 4), Want: -1})
	if got := fmt.Sprint(groups); got != "[[5 6 7 8 9] [10 11 0 1 2]]" {
		t.Errorf("groups %s", got)
	}
}

// With K = 3 a node between two double faults needs -3 and +3 on one bundle;
// the placement ends a group there.
func TestOddKNeverUsesOneBundleTwice(t *testing.T) {
	f, err := fabric.New(fabric.Params{Name: "f", Nodes: 16, GPUsPerNode: 4, K: 3, TP: 24})
	if err != nil {
		t.Fatal(err)
	}
	o := OrderOf(f)
	if !o.Shared {
		t.Fatal("K = 3 shares a bundle")
	}
	p := Problem{Order: o, Size: 6, Usable: but(4, 5, 7, 8), Want: -1}
	if got := fmt.Sprint(Place(p)); got != "[[6 9 10 11 12 13]]" {
		t.Errorf("groups %s", got)
	}
	if got := LostToWiring(p); got != 1 {
		t.Errorf("lost to wiring %d, want 1", got)
	}
}

// One loss, one spare: the spare on the ring's right joins it, nothing else
// moves. The demo's case.
func TestSpareJoinsTheRingBesideIt(t *testing.T) {
	o := Order{Nodes: 64, K: 2}
	running := runningGroups(Place(Problem{Order: o, Size: 8, Usable: all, Want: 7, Spread: true}))
	m := Mend{Order: o, Sizes: []Demand{{8, 7}}, Usable: but(20), Free: but(20), Spread: true, Moves: maxMoves}
	r := m.Replace(running)
	if fmt.Sprint(r.Touched) != "[2]" {
		t.Errorf("touched %v", r.Touched)
	}
	if got := fmt.Sprint(r.Groups[2].Nodes); got != "[18 19 21 22 23 24 25 26]" {
		t.Errorf("ring %s", got)
	}
}

// Spares that no fibre joins to the ring stay spares, as long as they do not
// make a whole ring by themselves.
func TestSpareOutOfReachStays(t *testing.T) {
	o := Order{Nodes: 8, K: 2}
	running := []Group{{ID: 1, Nodes: []proto.NodeID{0, 1, 2, 3}}}
	m := Mend{Order: o, Sizes: []Demand{{4, 1}}, Usable: but(2, 3, 4), Free: but(2, 3, 4), Moves: maxMoves}
	r := m.Replace(running)
	if got := fmt.Sprint(r.Groups[0].Nodes); got != "[0 1]" {
		t.Errorf("got %s", got)
	}
}

// A frozen group keeps even its faulty members.
func TestFrozenGroupStays(t *testing.T) {
	m := Mend{Order: Order{Nodes: 10, K: 2}, Sizes: []Demand{{4, 1}}, Usable: but(2), Free: but(2), Moves: maxMoves}
	r := m.Replace([]Group{{ID: 1, Nodes: []proto.NodeID{0, 1, 2, 3}, Frozen: true}})
	if len(r.Touched) != 0 || fmt.Sprint(r.Groups[0].Nodes) != "[0 1 2 3]" {
		t.Errorf("got %+v", r)
	}
}

// What one group had to give up another may take, and a group without a
// member is gone.
func TestPiecesAreReused(t *testing.T) {
	o := Order{Nodes: 12, K: 1}
	running := []Group{{ID: 1, Nodes: []proto.NodeID{0, 1, 2, 3, 4}}, {ID: 2, Nodes: []proto.NodeID{5, 6, 7, 8, 9}}, {ID: 3, Nodes: []proto.NodeID{11}}}
	m := Mend{Order: o, Sizes: []Demand{{5, 3}}, Usable: but(3, 8, 9, 11), Free: but(3, 8, 9, 11), Moves: maxMoves}
	r := m.Replace(running)
	if got := fmt.Sprint(r.Groups[0].Nodes, r.Groups[1].Nodes, r.Gone); got != "[0 1 2] [4 5 6 7] [3]" {
		t.Errorf("got %s", got)
	}
}

// With more wanted than runs, free nodes form new groups.
func TestNewGroupsUpToWhatIsWanted(t *testing.T) {
	m := Mend{Order: Order{Nodes: 12, K: 2}, Sizes: []Demand{{4, 2}}, Usable: all, Free: all, Moves: maxMoves}
	r := m.Replace([]Group{{ID: 4, Nodes: []proto.NodeID{4, 5, 6, 7}}})
	if len(r.Groups) != 2 || r.Groups[1].ID != 0 || fmt.Sprint(r.Groups[1].Nodes) != "[0 1 2 3]" || fmt.Sprint(r.Touched) != "[1]" {
		t.Errorf("got %+v", r)
	}
}

func runningGroups(groups [][]proto.NodeID) []Group {
	out := make([]Group, len(groups))
	for i, g := range groups {
		out[i] = Group{ID: proto.RingID(i + 1), Nodes: g}
	}
	return out
}

func BenchmarkPlace(b *testing.B) {
	p := Problem{Order: Order{Nodes: 250_000, K: 3, Shared: true}, Size: 16, Want: -1,
		Usable: func(n proto.NodeID) bool { return n%41 != 0 }}
	for b.Loop() {
		Place(p)
	}
}

func BenchmarkReplaceOneFault(b *testing.B) {
	o := Order{Nodes: 250_000, K: 3, Shared: true}
	running := runningGroups(Place(Problem{Order: o, Size: 16, Usable: all, Want: 15_000, Spread: true}))
	m := Mend{Order: o, Sizes: []Demand{{16, 15_000}}, Usable: but(100_000), Free: but(100_000), Moves: maxMoves}
	for b.Loop() {
		m.Replace(running)
	}
}

// A cut fibre costs one of its two nodes, not the ring.
func TestBrokenLinkIsSteppedOver(t *testing.T) {
	broken := func(a, b proto.NodeID) bool { return min(a, b) == 2 && max(a, b) == 3 }
	m := Mend{Order: Order{Nodes: 8, K: 2}, Sizes: []Demand{{6, 1}}, Usable: all, Free: all, Broken: broken, Moves: maxMoves}
	r := m.Replace([]Group{{ID: 1, Nodes: []proto.NodeID{0, 1, 2, 3, 4, 5}}})
	if got := fmt.Sprint(r.Groups[0].Nodes); got != "[0 1 3 4 5 6]" && got != "[0 1 2 4 5 6]" {
		t.Errorf("got %s", got)
	}
	groups := Place(Problem{Order: m.Order, Size: 3, Usable: all, Want: -1, Broken: broken})
	if got := fmt.Sprint(groups); got != "[[0 1 2] [3 4 5]]" {
		t.Errorf("groups %s", got)
	}
}
