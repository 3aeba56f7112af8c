package ring

import (
	"slices"

	"ringlight/proto"
)

// skipping places groups where fibres lack some of the spans below K, as with those to
// n +- 2^i ([IHBD] sec 7): usable nodes that follow one another may then have no fibre,
// and a line that leaves one of them idle goes on. The groups lie one behind the other, of
// which no more fit; groups that step over one another are not looked for.
func (p Problem) skipping() (best [][]proto.NodeID) {
	cuts, usable, row, first := 1, 0, 0, -1
	for n := range p.Nodes {
		if p.Usable(proto.NodeID(n)) {
			usable, row = usable+1, 0
		} else if row++; row == p.K && p.Wrap {
			first = n // no fibre passes it
		}
	}
	if p.Wrap && first < 0 { // whatever passes a place has its end within so many
		cuts = min(p.Nodes, (p.Size-1)*p.K+1, max(1, skipSteps/(p.Nodes*p.Size)))
	}
	for cut := range cuts {
		if len(best) == usable/p.Size {
			break
		}
		if groups := p.skip((max(0, first) + cut) % p.Nodes); len(groups) > len(best) {
			best = groups
		}
	}
	return best
}

// skipSteps bounds the places times nodes of a group, from all cuts of a circle. chosen:
// a second or two; from any one cut no more than one group is lacking.
const skipSteps = 50_000_000

// skip takes the group that ends first, again and again, from a place on that none passes.
func (p Problem) skip(cut int) (out [][]proto.NodeID) {
	const none, first = -1, 0
	at := func(i int) proto.NodeID { return proto.NodeID((cut + i) % p.Nodes) }
	// came is the hops to the node before, by place, number of nodes and whether they are K.
	came := make([]int8, p.Nodes*p.Size*2)
	cell := func(i, nodes, wide int) *int8 { return &came[(i*p.Size+nodes-1)*2+wide] }
	start := 0
	for i := range p.Nodes {
		for c := range p.Size * 2 {
			came[i*p.Size*2+c] = none
		}
		if !p.Usable(at(i)) {
			continue
		}
		*cell(i, 1, 0) = first
		for hops := 1; hops <= min(p.K, i-start); hops++ {
			j := i - hops
			if !p.Spans(hops) || p.Broken != nil && p.Broken(at(j), at(i)) {
				continue
			}
			wide := 0
			if hops == p.K {
				wide = 1
			}
			for nodes := 1; nodes < p.Size; nodes++ {
				for before := range 2 {
					pinned := before+wide == 2 && p.pinched(p.K, hops) && (p.Shares == nil || p.Shares(at(j)))
					if *cell(j, nodes, before) != none && !pinned && *cell(i, nodes+1, wide) == none {
						*cell(i, nodes+1, wide) = int8(hops)
					}
				}
			}
		}
		if group := p.lineTo(i, at, cell); group != nil {
			out, start = append(out, group), i+1
		}
	}
	return out
}

// lineTo is a whole line that ends at a place, if one does.
func (p Problem) lineTo(i int, at func(int) proto.NodeID, cell func(i, nodes, wide int) *int8) (group []proto.NodeID) {
	wide := slices.IndexFunc([]int8{*cell(i, p.Size, 0), *cell(i, p.Size, 1)}, func(hops int8) bool { return hops >= 0 })
	if wide < 0 {
		return nil
	}
	for nodes := p.Size; ; nodes-- {
		group = append(group, at(i))
		hops := int(*cell(i, nodes, wide))
		if nodes == 1 {
			slices.Reverse(group)
			return group
		}
		i -= hops
		was := wide
		for wide = 0; *cell(i, nodes-1, wide) < 0 || was+wide == 2 && p.pinched(p.K, p.K) && (p.Shares == nil || p.Shares(at(i))); wide++ {
		}
	}
}
