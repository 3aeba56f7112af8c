package ring

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"ringlight/proto"
)

// fitsCounts finds by exhaustion whether so many lines of each size fit.
func fitsCounts(all [][]uint32, free uint32, counts []int, memo map[string]bool) bool {
	if slices.Max(counts) == 0 {
		return true
	}
	if free == 0 {
		return false
	}
	key := fmt.Sprint(free, counts)
	if b, ok := memo[key]; ok {
		return b
	}
	low := free & -free
	ok := fitsCounts(all, free&^low, counts, memo)
	for s := 0; s < len(all) && !ok; s++ {
		if counts[s] == 0 {
			continue
		}
		counts[s]--
		for _, l := range all[s] {
			if l&low != 0 && l&^free == 0 && fitsCounts(all, free&^l, counts, memo) {
				ok = true
				break
			}
		}
		counts[s]++
	}
	memo[key] = ok
	return ok
}

// Each demand gets as many groups as fit beside those before it.
// Samples of fault patterns on 9 nodes, line and ring, against exhaustion of
// all lines of all sizes.
func TestPlaceSizesIsMaximal(t *testing.T) {
	const nodes = 9
	for _, o := range []Order{{Nodes: nodes, K: 1}, {Nodes: nodes, K: 2}, {Nodes: nodes, K: 2, Wrap: true}, {Nodes: nodes, K: 3, Wrap: true}} {
		for _, demands := range [][]Demand{{{4, 1}, {2, 2}, {1, -1}}, {{1, 3}, {4, -1}, {2, -1}}, {{2, 1}, {6, -1}, {2, -1}}, {{3, -1}}} {
			all := make([][]uint32, len(demands))
			for i, d := range demands {
				all[i] = lines(o, d.Size)
			}
			for mask := uint32(1); mask < 1<<nodes; mask += 7 {
				placed, err := PlaceSizes(Problem{Order: o, Usable: usable(mask)}, demands)
				if err != nil {
					t.Fatal(err)
				}
				var together [][]proto.NodeID
				counts := make([]int, len(demands))
				for i, groups := range placed {
					for _, g := range groups {
						if len(g) != demands[i].Size || o.Check(g) != nil {
							t.Fatalf("%+v mask %b: group %v for %+v", o, mask, g, demands[i])
						}
						together = append(together, g)
					}
					counts[i] = len(groups)
				}
				if n := sum(together); n != bits.OnesCount32(maskOf(slices.Concat(together...))) || maskOf(slices.Concat(together...))&^mask != 0 {
					t.Fatalf("%+v mask %b: %v overlap or are faulty", o, mask, together)
				}
				for i, d := range demands {
					more := append(slices.Clone(counts[:i+1]), make([]int, len(demands)-i-1)...)
					if more[i]++; (d.Want < 0 || more[i] <= d.Want) && fitsCounts(all, mask, more, map[string]bool{}) {
						t.Fatalf("%+v mask %b: %v for %+v, but %v fit", o, mask, placed, demands, more)
					}
				}
			}
		}
	}
}

func sum(groups [][]proto.NodeID) int {
	n := 0
	for _, g := range groups {
		n += len(g)
	}
	return n
}

// With the bundle constraint groups are sound, and each node that must end
// one costs at most one.
func TestPlaceSizesRespectsTheBundle(t *testing.T) {
	for _, wrap := range []bool{false, true} {
		o := Order{Nodes: 13, K: 3, Wrap: wrap, Shared: true}
		for mask := uint32(0); mask < 1<<13; mask += 3 {
			p := Problem{Order: o, Size: 3, Usable: usable(mask), Want: -1}
			placed, err := PlaceSizes(p, []Demand{{3, -1}})
			if err != nil {
				t.Fatal(err)
			}
			checkGroups(t, o, 3, p.Usable, placed[0])
			pinned := 0
			for _, r := range Explain(p, nil) {
				pinned += len(r.Pinned)
			}
			if most := len(Place(p)); len(placed[0]) < most-pinned || len(placed[0]) > most {
				t.Fatalf("mask %b: %d groups, want %d less at most %d", mask, len(placed[0]), most, pinned)
			}
		}
	}
	for _, bad := range [][]Demand{{{3, 1}, {2, 1}}, {{0, 1}}} {
		if _, err := PlaceSizes(Problem{Order: Order{Nodes: 4, K: 1}, Usable: all}, bad); err == nil {
			t.Errorf("%v: accepted", bad)
		}
	}
}
