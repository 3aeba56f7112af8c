package ring

import (
	"slices"
	"testing"

	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// mixedRacks are ToRs of these numbers of nodes, which must fall, deployed so that
// sub-lines run side by side.
func mixedRacks(domain int, sizes ...int) *Racks {
	r := &Racks{Domain: make([]int32, len(sizes))}
	for line := range sizes[0] {
		for tor, size := range sizes {
			if r.Domain[tor] = int32(tor / domain); line < size {
				r.ToR = append(r.ToR, int32(tor))
			}
		}
	}
	return r
}

// A group that goes over other ToRs since it lost a node takes the one beside it
// along, where that is allowed and there is a node; without racks nobody moves.
// Two sub-lines of ten ToRs, groups of four with one idle node each behind them.
func TestWhoMeetsGoesAlong(t *testing.T) {
	for _, tc := range []struct {
		name         string
		racks        bool
		moves        int
		owner, other string
		along        bool
		want         bool
	}{
		{name: "stock", racks: true, moves: 8, want: true},
		{name: "no racks", moves: 8},
		{name: "no moves", racks: true},
		{name: "a job that asked for it", racks: true, moves: 8, owner: "a", other: "a", along: true, want: true},
		{name: "a job that did not", racks: true, moves: 8, owner: "a", other: "a"},
		{name: "of two jobs", racks: true, moves: 8, owner: "a", other: "b", along: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			down := map[proto.NodeID]bool{}
			well := func(n proto.NodeID) bool { return !down[n] }
			m := Mend{Order: Order{Nodes: 20, K: 2}, Sizes: []Demand{{Size: 4, Want: 4}}, Moves: tc.moves, Usable: well, Free: well,
				Along: func(proto.RingID) bool { return tc.along }}
			if tc.racks {
				m.Racks = mixedRacks(10, slices.Repeat([]int{2}, 10)...)
			}
			tr := NewTracker(m, Group{ID: 1, Nodes: []proto.NodeID{0, 1, 2, 3}, Owner: tc.owner}, Group{ID: 2, Nodes: []proto.NodeID{10, 11, 12, 13}, Owner: tc.other},
				Group{ID: 3, Nodes: []proto.NodeID{5, 6, 7, 8}}, Group{ID: 4, Nodes: []proto.NodeID{15, 16, 17, 18}})
			down[1] = true
			tr.Refresh(1)
			near := tr.Look([]proto.RingID{1}, true)
			if near.Along != 0 || len(near.Groups) != 1 {
				t.Fatalf("a near look moves %d along: %v", near.Along, near.Groups)
			}
			tr.Carry(near)
			tr.Carry(tr.Look(nil, false))
			want := []proto.NodeID{10, 11, 12, 13}
			if tc.want {
				want = []proto.NodeID{10, 12, 13, 14}
			}
			if !slices.Equal(tr.Members(1), []proto.NodeID{0, 2, 3, 4}) || !slices.Equal(tr.Members(2), want) {
				t.Errorf("rings are on %v and %v, want the second on %v", tr.Members(1), tr.Members(2), want)
			}
			if r := tr.Look(nil, false); len(r.Groups) != 0 {
				t.Errorf("and once more: %v", r.Groups)
			}
		})
	}
}

// Whatever goes in and out, groups that go along stay sound and share no node, no
// fewer are whole than without ToRs, and at rest nobody moves.
func TestGoingAlongKeepsGroupsSound(t *testing.T) {
	for seed := range uint64(8) {
		r := detmath.Random(seed)
		racks := mixedRacks(8, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2)
		nodes := len(racks.ToR)
		down := make([]bool, nodes)
		well := func(n proto.NodeID) bool { return !down[n] }
		m := Mend{Order: Order{Nodes: nodes, K: 3, Shared: seed%2 == 0}, Sizes: []Demand{{Size: 4, Want: 14}}, Moves: maxMoves, Usable: well, Free: well, Racks: racks}
		tr := NewTracker(m)
		next, whole := proto.RingID(1), 0
		for range 60 {
			n := proto.NodeID(r.Next() % uint64(nodes))
			down[n] = !down[n]
			tr.Refresh(n)
			ids := tr.Concerned(n)
			for looks := 0; ; looks++ {
				res := tr.Look(ids, false)
				if len(res.Groups) == 0 && len(res.Gone) == 0 {
					break
				}
				if looks == 100 {
					t.Fatalf("seed %d: no rest", seed)
				}
				for i := range res.Groups {
					if res.Groups[i].ID == 0 {
						res.Groups[i].ID = next
						next++
					}
				}
				tr.Carry(res)
			}
			used := map[proto.NodeID]bool{}
			whole = 0
			for id := range next {
				at, ok := tr.slotOf[id]
				if !ok {
					continue
				}
				s := &tr.slots[at]
				if s.whole() {
					whole++
				}
				if err := m.Check(s.Nodes); err != nil {
					t.Fatalf("seed %d: %v: %v", seed, s.Nodes, err)
				}
				for _, n := range s.Nodes {
					if used[n] || down[n] {
						t.Fatalf("seed %d: node %d is used twice or out", seed, n)
					}
					used[n] = true
				}
			}
		}
		if most := len(Place(Problem{Order: m.Order, Size: 4, Want: 14, Usable: well})); whole < most-1 {
			t.Errorf("seed %d: %d groups whole, %d fit", seed, whole, most)
		}
	}
}

// Sub-lines end where a rack has fewer nodes than the one before: three zones, with
// four, three and two nodes side by side; domains cut them further.
func TestZonesOfMixedRacks(t *testing.T) {
	r := mixedRacks(2, 4, 4, 3, 3, 3, 2)
	var got []int
	for _, z := range r.zones(true) {
		got = append(got, len(z.tors), len(z.base))
	}
	if want := []int{2, 4, 3, 3, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("zones %v, want %v", got, want)
	}
	if n := len(r.zones(false)); n != 4 {
		t.Errorf("%d zones within domains, want 4", n)
	}
	// Racks in any order of sizes, and one node after the other under the same ToR.
	odd := &Racks{ToR: []int32{0, 0, 1, 2, 2, 2, 1}, Domain: make([]int32, 3)}
	at := 0
	for _, z := range odd.zones(true) {
		at += len(z.tors) * len(z.base)
	}
	if at != len(odd.ToR) {
		t.Errorf("zones hold %d of %d nodes", at, len(odd.ToR))
	}
}

// In racks of mixed sizes the placement is sound, its flows are what its sets say, and
// no method, ours least of all, goes under the bound; without faults and with room
// there are none.
func TestOrchestrateInMixedRacks(t *testing.T) {
	sizes := append(append(slices.Repeat([]int{4}, 40), slices.Repeat([]int{3}, 40)...), slices.Repeat([]int{2}, 40)...)
	for seed := range uint64(12) {
		racks := mixedRacks(40, sizes...)
		nodes := len(racks.ToR)
		faulty := draw(nodes, 60_000*(seed%3), seed)
		j := Job{Deployment: Deployment{Nodes: nodes}, Racks: racks, K: int(2 + seed%2), Shared: seed%2 == 1, Size: 4, Want: 70,
			Faulty: func(n proto.NodeID) bool { return faulty[n] }}
		o := Orchestrate(j)
		if !o.OK() || len(o.Groups) != j.Want || o.Inner != j.Want*j.Size {
			t.Fatalf("seed %d: %d groups, %d flows", seed, len(o.Groups), o.Inner)
		}
		used, cross, alone := map[proto.NodeID]bool{}, 0, len(o.Groups)
		for _, g := range o.Groups {
			if err := j.order().Check(g); err != nil {
				t.Fatal(err)
			}
			for _, n := range g {
				if used[n] || faulty[n] {
					t.Fatalf("seed %d: node %d is used twice or out", seed, n)
				}
				used[n] = true
			}
		}
		for _, set := range o.Sets {
			alone -= len(set)
			for i, g := range set {
				for r, n := range o.Groups[g] {
					if racks.ToR[n] != racks.ToR[o.Groups[set[(i+1)%len(set)]][r]] {
						cross++
					}
				}
			}
		}
		if cross += alone * j.Size; cross != o.CrossToR || o.Least > cross || seed%3 == 0 && cross != 0 {
			t.Errorf("seed %d: %d flows cross, said is %d, bound %d", seed, cross, o.CrossToR, o.Least)
		}
		blind := j.Judge(Place(Problem{Order: j.order(), Size: 4, Want: 70, Usable: func(n proto.NodeID) bool { return !faulty[n] }}))
		if o.Least > blind.CrossToR || o.CrossToR > blind.CrossToR {
			t.Errorf("seed %d: %d flows, bound %d, blind %d", seed, o.CrossToR, o.Least, blind.CrossToR)
		}
	}
}
