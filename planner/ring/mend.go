package ring

import "ringlight/proto"

// torn reports whether a group hangs on a broken link.
func (m Mend) torn(nodes []proto.NodeID) bool {
	for i := 1; m.Broken != nil && i < len(nodes); i++ {
		if m.Broken(nodes[i-1], nodes[i]) {
			return true
		}
	}
	return false
}

// place is one node that a mended group may hold, at its position relative to
// the group's first member.
type place struct {
	at     int
	node   proto.NodeID
	member bool
}

// score orders lines: most members kept, then most nodes, then the shortest
// line, then new nodes to the right, where a spread placement puts a group's
// own spare.
type score struct{ kept, nodes, span, right int }

func (s score) less(t score) bool {
	if s.kept != t.kept {
		return s.kept < t.kept
	}
	if s.nodes != t.nodes {
		return s.nodes < t.nodes
	}
	if s.span != t.span {
		return s.span > t.span
	}
	return s.right < t.right
}

// cell is the best line that ends at a place with so many nodes and with its
// last gap being K or not.
type cell struct {
	score
	from     int  // place before, -1: the line starts here
	fromWide bool // which of that place's two cells
	valid    bool
}

// mend finds the best line of usable members and free nodes within reach: a
// dynamic program over place, number of nodes and whether the last gap was K.
func (m Mend) mend(g Group, owner []int32) []proto.NodeID {
	places := m.places(g, owner)
	if len(places) == 0 {
		return nil
	}
	cells := make([]cell, len(places)*g.Size*2)
	at := func(place, count, wide int) *cell { return &cells[(place*g.Size+count-1)*2+wide] }
	best, bestAt, bestCount := cell{}, -1, 0
	bestWide := 0
	for i, p := range places {
		own := score{nodes: 1, right: p.at}
		if p.member {
			own.kept, own.right = 1, 0
		}
		*at(i, 1, 0) = cell{score: own, from: -1, valid: true}
		for j := i - 1; j >= 0 && p.at-places[j].at <= m.K; j-- {
			gap := p.at - places[j].at
			if !m.Spans(gap) || m.Broken != nil && m.Broken(places[j].node, p.node) {
				continue
			}
			wide := 0
			if gap == m.K {
				wide = 1
			}
			for count := 1; count < g.Size; count++ {
				for before := range 2 {
					from := at(j, count, before)
					if !from.valid || m.Shared && before == 1 && wide == 1 {
						continue
					}
					s := score{from.kept + own.kept, from.nodes + 1, from.span + gap, from.right + own.right}
					if to := at(i, count+1, wide); !to.valid || to.less(s) {
						*to = cell{s, j, before == 1, true}
					}
				}
			}
		}
		for count := 1; count <= g.Size; count++ {
			for wide := range 2 {
				if c := at(i, count, wide); c.valid && c.kept > 0 && (bestAt < 0 || best.less(c.score)) {
					best, bestAt, bestCount, bestWide = *c, i, count, wide
				}
			}
		}
	}
	if bestAt < 0 {
		return nil
	}
	line := make([]proto.NodeID, bestCount)
	for i, count, wide := bestAt, bestCount, bestWide; count > 0; count-- {
		c := at(i, count, wide)
		line[count-1] = places[i].node
		i, wide = c.from, 0
		if c.fromWide {
			wide = 1
		}
	}
	return line
}

// places lists what a group may hold: its usable members, and free nodes
// between them and within reach of its ends, in HBD order.
func (m Mend) places(g Group, owner []int32) []place {
	span, members := 0, map[proto.NodeID]bool{}
	for i, n := range g.Nodes {
		if i > 0 {
			span += m.Ahead(g.Nodes[i-1], n)
		}
		members[n] = m.Usable(n)
	}
	reach := m.K * g.Size // no line of Size nodes goes further beyond an end
	left, right := reach, reach
	if m.Wrap {
		// Never see a node twice: the window is at most once round.
		room := m.Nodes - 1 - span
		left, right = min(left, room/2), min(right, room-room/2)
	}
	var out []place
	first := int(g.Nodes[0])
	for at := -left; at <= span+right; at++ {
		pos := first + at
		if m.Wrap {
			pos = ((pos % m.Nodes) + m.Nodes) % m.Nodes
		}
		if pos < 0 || pos >= m.Nodes {
			continue
		}
		n := proto.NodeID(pos)
		usable, member := members[n]
		switch {
		case member && usable:
			out = append(out, place{at, n, true})
		case !member && owner[n] == 0 && (m.Free(n) && (m.Bar == nil || !m.Bar(n, g.ID)) || m.Own != nil && m.Own(n, g.ID)):
			out = append(out, place{at, n, false})
		}
	}
	return out
}
