package ring

import (
	"math/bits"
	"testing"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// A fabric whose fibres are no default wiring: half of the nodes have a
// bundle more and use it for +K, so that only the others are constrained.
// Every fault pattern against an exhaustive packing of all lines, line and
// ring.
func TestPlaceFollowsTheFibres(t *testing.T) {
	const nodes = 11
	for _, topology := range []fabric.Topology{fabric.Line, fabric.Ring} {
		f, err := fabric.New(fabric.Params{Name: "f", Nodes: nodes, GPUsPerNode: 4, K: 3, TP: 12, Topology: topology})
		if err != nil {
			t.Fatal(err)
		}
		f.Bundles = 4
		f.Fibres = f.AllFibres()
		for i := range f.Fibres {
			x := &f.Fibres[i]
			for _, end := range []*fabric.Port{&x.A, &x.B} {
				if end.Bundle == 2 && end.Path == proto.External2 && end.Node%2 == 1 {
					end.Bundle = 3
				}
			}
		}
		g, err := fabric.Parse(f.Encode())
		if err != nil {
			t.Fatal(err)
		}
		p := ProblemOf(g, nil)
		if p.Size, p.Want = g.GroupNodes(), -1; p.Shares == nil || p.Size != 3 {
			t.Fatalf("%+v", p)
		}
		best := packingWhere(p)
		differs := 0
		for mask := range uint32(1) << nodes {
			p.Usable = usable(mask)
			groups := Place(p)
			if len(groups) != int(best[mask]) {
				t.Fatalf("%s mask %b: %v, want %d groups", topology, mask, groups, best[mask])
			}
			for _, group := range groups {
				if !fits(p, group) {
					t.Fatalf("%s mask %b: %v", topology, mask, group)
				}
			}
			q := p
			if q.Shares = nil; len(Place(q)) != len(groups) {
				differs++
			}
		}
		if differs == 0 {
			t.Errorf("%s: the bundles made no difference: the case is not covered", topology)
		}
	}
}

// fits is the definition of a group: hops up to K, and no bundle twice.
func fits(p Problem, group []proto.NodeID) bool {
	o := p.Order
	o.Shared = false
	if o.Check(group) != nil {
		return false
	}
	for i := 1; i+1 < len(group); i++ {
		if p.Ahead(group[i-1], group[i]) == p.K && p.Ahead(group[i], group[i+1]) == p.K && p.Shares(group[i]) {
			return false
		}
	}
	return true
}

// packingWhere is packing for groups that fit.
func packingWhere(p Problem) []uint8 {
	byLowest := make([][]uint32, p.Nodes)
	for mask := uint32(1); mask < 1<<p.Nodes; mask++ {
		if bits.OnesCount32(mask) != p.Size {
			continue
		}
		nodes := members(mask)
		for turn := range nodes {
			if turn > 0 && !p.Wrap {
				break
			}
			if fits(p, append(append([]proto.NodeID{}, nodes[turn:]...), nodes[:turn]...)) {
				byLowest[nodes[0]] = append(byLowest[nodes[0]], mask)
				break
			}
		}
	}
	best := make([]uint8, 1<<p.Nodes)
	for mask := uint32(1); mask < 1<<p.Nodes; mask++ {
		b := best[mask&(mask-1)]
		for _, l := range byLowest[bits.TrailingZeros32(mask)] {
			if l&^mask == 0 {
				b = max(b, 1+best[mask&^l])
			}
		}
		best[mask] = b
	}
	return best
}
