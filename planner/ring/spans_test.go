package ring

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// powers is an order whose fibres lead to n +- 2^i.
func powers(nodes, count int, wrap bool) Order {
	f, err := fabric.New(fabric.Params{Name: "p", Nodes: max(nodes, 17), GPUsPerNode: 4, TP: 8, Spans: fabric.Powers(count)})
	if err != nil {
		panic(err)
	}
	o := OrderOf(f)
	o.Nodes, o.Wrap = nodes, wrap
	return o
}

// behind is the most lines that lie one behind the other within mask, by trying all.
func behind(nodes int, all []uint32, mask uint32) int {
	most := make([]int, nodes+1) // from a place on
	for at := nodes - 1; at >= 0; at-- {
		most[at] = most[at+1]
		for _, l := range all {
			if l&^mask == 0 && bits.TrailingZeros32(l) == at {
				most[at] = max(most[at], 1+most[bits.Len32(l)])
			}
		}
	}
	return most[0]
}

// With fibres to n +- 2^i no placement of groups one behind the other has more than Place
// finds, and none of all has more than fibres of every length would give; what stepping
// over one another would add is counted.
// Every fault pattern on up to 11 nodes and every third on 12 and 13, K 4 and 8, against
// exhaustion; circles turned.
func TestPlaceOverPowersIsMaximal(t *testing.T) {
	most := 13
	if testing.Short() {
		most = 10
	}
	patterns, stepping, skipped := 0, 0, 0
	for nodes := 9; nodes <= most; nodes++ {
		for _, o := range []Order{powers(nodes, 3, false), powers(nodes, 3, true), powers(nodes, 4, false)} {
			for size := 2; size <= 4; size++ {
				all, best := lines(o, size), packing(o, size)
				line := o
				line.Wrap = false
				var straight [][]uint32 // by cut: lines that do not pass it, turned so that it is 0
				for cut := range nodes {
					var s []uint32
					for _, l := range all {
						turned := (l>>cut | l<<(nodes-cut)) & (1<<nodes - 1)
						if isLine(line, turned) {
							s = append(s, turned)
						}
					}
					if straight = append(straight, s); !o.Wrap {
						break
					}
				}
				for mask := uint32(0); mask < 1<<nodes; mask += 1 + 2*uint32(nodes/12) {
					p := Problem{Order: o, Size: size, Usable: usable(mask), Want: -1}
					groups := Place(p)
					checkGroups(t, o, size, p.Usable, groups)
					want := 0
					for cut, s := range straight {
						want = max(want, behind(nodes, s, (mask>>cut|mask<<(nodes-cut))&(1<<nodes-1)))
					}
					if len(groups) != want {
						t.Fatalf("%+v size %d mask %b: %v, want %d groups", o, size, mask, groups, want)
					}
					patterns++
					if int(best[mask]) > want {
						stepping++
					}
					for _, g := range groups {
						if o.Ahead(g[0], g[size-1]) >= size && slices.ContainsFunc(g, func(n proto.NodeID) bool { return mask>>((int(n)+1)%nodes)&1 == 0 }) {
							skipped++
							break
						}
					}
				}
			}
		}
	}
	if skipped == 0 || stepping == 0 || stepping > patterns/10 {
		t.Errorf("%d patterns: a fault passed in %d, more by stepping over one another in %d", patterns, skipped, stepping)
	}
}

// Groups that are mended over such fibres are lines of them, and as many are whole as
// a placement from nothing has.
// Random walks on lines and circles of 64 nodes.
func TestMendsOverPowers(t *testing.T) {
	states, short, seeds := 0, 0, uint64(80)
	if testing.Short() {
		seeds = 24
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 9))
		o := powers(64, 3+int(seed%2), seed%4 > 1)
		down := make([]bool, o.Nodes)
		well := func(n proto.NodeID) bool { return !down[n] }
		const size = 8
		moves := Any
		if seed%8 > 3 {
			moves = MovesOf(fabric.MoveFew)
		}
		tr := NewTracker(Mend{Order: o, Sizes: []Demand{{size, o.Nodes / size}}, Usable: well, Free: well, Moves: moves})
		next := proto.RingID(1)
		carry := func(ids ...proto.RingID) {
			r := tr.Look(ids, false)
			for i := range r.Groups {
				if g := &r.Groups[i]; g.ID == 0 {
					g.ID = next
					next++
				}
			}
			tr.Carry(r)
		}
		carry()
		out := 0
		for range 60 {
			n := proto.NodeID(rng.IntN(o.Nodes))
			if !down[n] && out == 6 {
				continue
			}
			if down[n] = !down[n]; down[n] {
				out++
			} else {
				out--
			}
			tr.Refresh(n)
			carry(tr.Concerned(n)...)
			whole := 0
			var used [64]bool
			for id := range next {
				nodes := tr.Members(id)
				if len(nodes) == 0 {
					continue
				}
				if err := o.Check(nodes); err != nil {
					t.Fatalf("%+v: %v: %v", o, nodes, err)
				}
				for _, n := range nodes {
					if used[n] || down[n] {
						t.Fatalf("%v: node %d is out or in two groups", nodes, n)
					}
					used[n] = true
				}
				if len(nodes) == size {
					whole++
				}
			}
			if states++; whole < len(Place(Problem{Order: o, Size: size, Usable: well, Want: -1})) {
				short++
				t.Logf("K%d wrap %v moves %d out %d whole %d most %d: full look idle %d", o.K, o.Wrap, moves, out, whole, len(Place(Problem{Order: o, Size: size, Usable: well, Want: -1})), tr.idle.all())
			}
		}
	}
	if short > 0 || states < 12*int(seeds) {
		t.Errorf("%d of %d states have fewer whole groups than a placement from nothing", short, states)
	}
}

// The placement on a large circle is found from one cut where no fibre passes a place, and
// else from as many as there is time for. Looks at nodes are counted: they were 1,000 times
// all nodes, over a minute.
func TestPlaceOverPowersIsBounded(t *testing.T) {
	for _, c := range []struct{ size, out, cuts, want int }{{256, 9, 1, 25}, {256, 3, 19, 38}, {64, 9, 1, 128}} {
		looks, o := 0, powers(10_000, 4, true)
		groups := Place(Problem{Order: o, Size: c.size, Want: -1, Usable: func(n proto.NodeID) bool { looks++; return int(n)%390 >= c.out }})
		if len(groups) < c.want || looks > (c.cuts+3)*o.Nodes {
			t.Errorf("%+v: %d groups after %d looks at %d nodes", c, len(groups), looks, o.Nodes)
		}
		for _, g := range groups {
			if err := o.Check(g); err != nil {
				t.Error(err)
			}
		}
	}
}
