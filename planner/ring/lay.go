package ring

import (
	"slices"

	"ringlight/proto"
)

// layAnew lays moved groups and so many more on the idle nodes of a stretch and
// their own, so that the most nodes stay in their group.
func (t *Tracker) layAnew(from, length int, moved []int32, more int) {
	moves := setOf(moved)
	var nodes []proto.NodeID
	for i := range length {
		if at := t.at(from + i); t.idle.has(at) || moves[t.owner[at]] {
			nodes = append(nodes, proto.NodeID(at))
		}
	}
	spans := t.spans(nodes, t.Sizes[0].Size)
	if t.Lacks != 0 && len(spans) < len(moved)+more { // some stay idle between others
		p := Problem{Order: t.Order, Size: t.Sizes[0].Size, Broken: t.Broken, Usable: func(n proto.NodeID) bool { return slices.Contains(nodes, n) }}
		spans = p.skip(t.at(from))
	}
	if drop := len(spans) - len(moved) - more; drop > 0 { // more fit than are of use: those go that nobody has a node in
		order := make([]int, len(spans))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return most(spans[a], t.owner) - most(spans[b], t.owner) })
		for _, i := range order[:drop] {
			spans[i] = nil
		}
		spans = slices.DeleteFunc(spans, func(s []proto.NodeID) bool { return s == nil })
	}
	t.relay(t.name(spans, moved, more), spans)
}

func setOf(groups []int32) map[int32]bool {
	out := make(map[int32]bool, len(groups))
	for _, g := range groups {
		out[g] = true
	}
	return out
}

// spans lays as many groups as fit on a row of nodes, and among such ways one
// in which the most nodes stay beside others of their group.
func (t *Tracker) spans(nodes []proto.NodeID, size int) [][]proto.NodeID {
	type best struct {
		groups, stay int
		here         bool // a group begins here
	}
	table := make([]best, len(nodes)+1)
	for i := len(nodes) - 1; i >= 0; i-- {
		table[i] = best{table[i+1].groups, table[i+1].stay, false}
		if i+size > len(nodes) || !t.lines(nodes[i:i+size]) {
			continue
		}
		w := best{table[i+size].groups + 1, table[i+size].stay + most(nodes[i:i+size], t.owner), true}
		if w.groups > table[i].groups || w.groups == table[i].groups && w.stay > table[i].stay {
			table[i] = w
		}
	}
	var out [][]proto.NodeID
	for i := 0; i < len(nodes); i++ {
		if table[i].here {
			out = append(out, slices.Clone(nodes[i:i+size]))
			i += size - 1
		}
	}
	return out
}

// most is the largest number of nodes that come from one running group.
func most(nodes []proto.NodeID, owner []int32) int {
	best, n := 0, 0
	for i, node := range nodes {
		if owner[node] == 0 {
			n = 0
			continue
		}
		if i == 0 || owner[nodes[i-1]] != owner[node] {
			n = 0
		}
		n++
		best = max(best, n)
	}
	return best
}

// name says which group lies on each span: all that moved do, then short ones
// or new ones, each where it has the most nodes.
func (t *Tracker) name(spans [][]proto.NodeID, moved []int32, more int) []int32 {
	type pair struct {
		group       int32
		span, nodes int
	}
	var pairs []pair
	for i, span := range spans {
		for k, n := range span {
			own := t.owner[n]
			if own == 0 || slices.ContainsFunc(span[:k], func(n proto.NodeID) bool { return t.owner[n] == own }) {
				continue
			}
			pairs = append(pairs, pair{own, i, t.staying(span, own)})
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return b.nodes - a.nodes })
	out := make([]int32, len(spans))
	moves, named := setOf(moved), map[int32]bool{}
	for _, p := range pairs {
		if out[p.span] != 0 || named[p.group] || !moves[p.group] && more == 0 {
			continue
		}
		if !moves[p.group] {
			more--
		}
		out[p.span], named[p.group] = p.group, true
	}
	left := slices.DeleteFunc(slices.Clone(moved), func(g int32) bool { return named[g] })
	absent := t.absent(0)
	for i := range out {
		switch {
		case out[i] != 0:
			continue
		case len(left) > 0:
			out[i], left = left[0], left[1:]
			continue
		case absent <= 0:
			out[i] = t.shortest(0, nil, named)
			named[out[i]] = true
		}
		if out[i] == 0 {
			out[i] = t.open(Group{Size: t.Sizes[0].Size})
			absent--
		}
	}
	return out
}
