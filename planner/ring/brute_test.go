package ring

import (
	"math/bits"
	"slices"
	"testing"

	"ringlight/proto"
)

// lines lists every set of size nodes that some order-kept line joins, as bit
// masks, straight from the definition.
func lines(o Order, size int) []uint32 {
	var out []uint32
	for mask := uint32(1); mask < 1<<o.Nodes; mask++ {
		if bits.OnesCount32(mask) == size && isLine(o, mask) {
			out = append(out, mask)
		}
	}
	return out
}

func members(mask uint32) []proto.NodeID {
	var out []proto.NodeID
	for ; mask != 0; mask &= mask - 1 {
		out = append(out, proto.NodeID(bits.TrailingZeros32(mask)))
	}
	return out
}

// isLine tries every node as the left end.
func isLine(o Order, mask uint32) bool {
	nodes := members(mask)
	turns := 1
	if o.Wrap {
		turns = len(nodes)
	}
	for t := range turns {
		if o.Check(append(slices.Clone(nodes[t:]), nodes[:t]...)) == nil {
			return true
		}
	}
	return false
}

// packing[mask] is the largest number of disjoint lines within mask.
func packing(o Order, size int) []uint8 {
	byLowest := make([][]uint32, o.Nodes)
	for _, l := range lines(o, size) {
		low := bits.TrailingZeros32(l)
		byLowest[low] = append(byLowest[low], l)
	}
	best := make([]uint8, 1<<o.Nodes)
	for mask := uint32(1); mask < 1<<o.Nodes; mask++ {
		low := bits.TrailingZeros32(mask)
		b := best[mask&(mask-1)]
		for _, l := range byLowest[low] {
			if l&^mask == 0 {
				b = max(b, 1+best[mask&^l])
			}
		}
		best[mask] = b
	}
	return best
}

func usable(mask uint32) func(proto.NodeID) bool {
	return func(n proto.NodeID) bool { return mask>>n&1 == 1 }
}

func orders(nodes int) []Order {
	var out []Order
	for k := 1; k <= 4; k++ {
		for _, wrap := range []bool{false, true} {
			out = append(out, Order{nodes, k, wrap, false, 0})
			if k%2 == 1 && k >= 3 {
				out = append(out, Order{nodes, k, wrap, true, 0})
			}
		}
	}
	return out
}

func checkGroups(t *testing.T, o Order, size int, ok func(proto.NodeID) bool, groups [][]proto.NodeID) {
	t.Helper()
	seen := map[proto.NodeID]bool{}
	for _, g := range groups {
		if len(g) != size {
			t.Fatalf("%+v: group %v has %d nodes, want %d", o, g, len(g), size)
		}
		if err := o.Check(g); err != nil {
			t.Fatalf("%+v: group %v: %v", o, g, err)
		}
		for _, n := range g {
			if seen[n] || !ok(n) {
				t.Fatalf("%+v: group %v: node %d is taken or faulty", o, g, n)
			}
			seen[n] = true
		}
	}
}

// No placement holds more groups than Place finds.
// Every fault pattern on 1 to 13 nodes against an exhaustive packing of all
// order-kept lines, those that skip healthy nodes or interleave included;
// rings so small that K hops reach round them too.
func TestPlaceIsMaximal(t *testing.T) {
	most := 13
	if testing.Short() {
		most = 9
	}
	lost := 0
	for nodes := 1; nodes <= most; nodes++ {
		for _, o := range orders(nodes) {
			for size := 1; size <= 5; size++ {
				best := packing(o, size)
				for mask := uint32(0); mask < 1<<nodes; mask++ {
					p := Problem{Order: o, Size: size, Usable: usable(mask), Want: -1, Spread: mask&1 == 0}
					groups := Place(p)
					checkGroups(t, o, size, p.Usable, groups)
					if len(groups) != int(best[mask]) {
						t.Fatalf("%+v size %d mask %b: %d groups %v, want %d", o, size, mask, len(groups), groups, best[mask])
					}
					if o.Shared {
						lost += LostToWiring(p)
					}
				}
			}
		}
	}
	if lost == 0 {
		t.Error("the shared bundle never cost a group: the case is not covered")
	}
}

// The shared bundle costs exactly what the exhaustive packings differ by.
// K = 3, every fault pattern on 11 nodes.
func TestLostToWiring(t *testing.T) {
	for _, wrap := range []bool{false, true} {
		o := Order{Nodes: 11, K: 3, Wrap: wrap, Shared: true}
		free := o
		free.Shared = false
		with, without := packing(o, 3), packing(free, 3)
		for mask := range uint32(1) << o.Nodes {
			p := Problem{Order: o, Size: 3, Usable: usable(mask)}
			if got, want := LostToWiring(p), int(without[mask])-int(with[mask]); got != want {
				t.Fatalf("wrap %v mask %b: lost %d, want %d", wrap, mask, got, want)
			}
		}
	}
}

// bestMend is the best line for one group by trying every set of nodes.
func bestMend(o Order, size int, group, free uint32) (kept, nodes int) {
	for mask := group | free; mask != 0; mask = (mask - 1) & (group | free) {
		k := bits.OnesCount32(mask & group)
		if n := bits.OnesCount32(mask); n <= size && k > 0 && (k > kept || k == kept && n > nodes) && isLine(o, mask) {
			kept, nodes = k, n
		}
	}
	return kept, nodes
}

// After a re-placement as many groups are whole as can be, and of the sound
// groups as few were touched as that takes. A group that stays short keeps the
// most members that any line could keep, and among those has the most nodes.
// Every fault pattern on a spread placement of 10 nodes against exhaustion.
func TestReplaceIsMinimal(t *testing.T) {
	const nodes = 10
	cases, interleaved := 0, 0
	for _, o := range orders(nodes) {
		for _, size := range []int{2, 3, 4} {
			all := Place(Problem{Order: o, Size: size, Usable: usable(1<<nodes - 1), Want: nodes/size - 1 + nodes%size/2, Spread: true})
			running, used := []Group{}, uint32(0)
			for i, g := range all {
				running = append(running, Group{ID: proto.RingID(i + 1), Nodes: g})
				used |= maskOf(g)
			}
			best := packing(o, size)
			for mask := uint32(0); mask < 1<<nodes; mask++ {
				cases++
				interleaved += checkMend(t, o, size, maxMoves, running, used, mask, best)
				if size == 3 {
					cases++
					interleaved += checkMend(t, o, size, Any, running, used, mask, best)
				}
			}
		}
	}
	t.Logf("in %d of %d cases two interleaved lines would leave more groups alone", interleaved, cases)
	if interleaved*200 > cases {
		t.Error("more than 0.5 %")
	}
}

// mostWhole is the most groups that can be whole when the sound groups named
// by keep stay as they are.
func mostWhole(running []Group, keep, mask uint32, best []uint8) int {
	whole, rest := 0, mask
	for i, g := range running {
		if keep>>i&1 == 1 {
			whole++
			rest &^= maskOf(g.Nodes)
		}
	}
	return min(len(running), whole+int(best[rest]))
}

func maskOf(g []proto.NodeID) (mask uint32) {
	for _, n := range g {
		mask |= 1 << n
	}
	return mask
}

func checkMend(t *testing.T, o Order, size, moves int, running []Group, used, mask uint32, best []uint8) (interleaved int) {
	t.Helper()
	free := mask &^ used
	m := Mend{Order: o, Sizes: []Demand{{size, len(running)}}, Usable: usable(mask), Free: usable(mask), Spread: true, Moves: moves}
	r := m.Replace(running)
	seen, whole := uint32(0), 0
	for _, g := range r.Groups {
		if err := o.Check(g.Nodes); err != nil {
			t.Fatalf("%+v size %d mask %b: group %v: %v", o, size, mask, g.Nodes, err)
		}
		if got := maskOf(g.Nodes); got&seen != 0 || got&^mask != 0 || len(g.Nodes) > size {
			t.Fatalf("%+v size %d mask %b: group %v overlaps, is faulty or too long", o, size, mask, g.Nodes)
		}
		seen |= maskOf(g.Nodes)
		if len(g.Nodes) == size {
			whole++
		}
	}
	sound, kept := uint32(0), uint32(0)
	for i, g := range running {
		if maskOf(g.Nodes)&^mask != 0 {
			continue
		}
		sound |= 1 << i
		if at := slices.IndexFunc(r.Groups, func(x Group) bool { return x.ID == g.ID }); at >= 0 && slices.Equal(r.Groups[at].Nodes, g.Nodes) && !slices.Contains(r.Touched, at) {
			kept |= 1 << i
		}
	}
	if !o.Wrap || moves == Any { // on a ring no window passes the seam, so the rest is not promised
		if want := mostWhole(running, 0, mask, best); whole != want {
			t.Fatalf("%+v size %d mask %b: %d whole groups, want %d: %+v", o, size, mask, whole, want, r)
		}
		for s := sound; s != 0; s = (s - 1) & sound {
			if bits.OnesCount32(s) > bits.OnesCount32(kept) && mostWhole(running, s, mask, best) >= whole {
				if o.K > 2 {
					interleaved++ // two lines that step over each other, which no window lays
					break
				}
				t.Fatalf("%+v size %d mask %b: kept %b of the sound groups, %b could stay: %+v", o, size, mask, kept, s, r)
			}
		}
	}
	checkShort(t, m, running, r, free, mask)
	return interleaved
}

// checkShort looks at the only group that a pattern hurts, when it stays short.
func checkShort(t *testing.T, m Mend, running []Group, r Result, free, mask uint32) {
	t.Helper()
	hurt := slices.IndexFunc(running, func(g Group) bool { return maskOf(g.Nodes)&^mask != 0 })
	for i, g := range running {
		if i != hurt && maskOf(g.Nodes)&^mask != 0 {
			return // several compete for the free nodes; only what is above is promised
		}
	}
	if hurt < 0 {
		return
	}
	before := maskOf(running[hurt].Nodes)
	at := slices.IndexFunc(r.Groups, func(x Group) bool { return x.ID == running[hurt].ID })
	if at >= 0 && len(r.Groups[at].Nodes) == m.Sizes[0].Size {
		return
	}
	kept, n := bestMend(m.Order, m.Sizes[0].Size, before&mask, free)
	gotKept, gotNodes := 0, 0
	if at >= 0 {
		now := maskOf(r.Groups[at].Nodes)
		gotKept, gotNodes = bits.OnesCount32(now&before), bits.OnesCount32(now)
	}
	if gotKept != kept || gotNodes != n {
		t.Fatalf("%+v size %d mask %b: group %v became %+v (%d kept of %d nodes), want %d of %d", m.Order, m.Sizes[0].Size, mask, running[hurt].Nodes, r, gotKept, gotNodes, kept, n)
	}
}
