package ring

import (
	"slices"

	"ringlight/proto"
)

// Group is one running ring.
type Group struct {
	ID     proto.RingID
	Nodes  []proto.NodeID // left to right
	Size   int            // nodes that it is to have; 0: as the last of Mend.Sizes
	Frozen bool           // must stay exactly as it is
}

// whole: it has all its nodes.
func (g Group) whole() bool { return len(g.Nodes) == g.Size }

// Mend is one re-placement.
type Mend struct {
	Order
	Sizes  []Demand                // groups wanted in all, running ones included
	Usable func(proto.NodeID) bool // a member that is not usable is lost
	Free   func(proto.NodeID) bool // a node in no group that may join one
	Spread bool
	Broken func(a, b proto.NodeID) bool // links that hold no group together; nil: none

	// Moves is how many whole groups may move aside to make one more whole:
	// none, a few (at most 8 help), or, where all groups are of one size, Any.
	Moves int

	// Near leaves every group where it is: short ones keep what they can and
	// take free nodes within their reach, and no group is made.
	Near bool

	// Taken, with Near, says by node which are in a group, so that only the
	// groups that are concerned need be given. It is put back as it was.
	Taken []bool
}

// Result of a re-placement.
type Result struct {
	Groups  []Group // running ones in their order, then new ones with ID 0
	Touched []int   // indices into Groups that differ from before or are new
	Gone    []proto.RingID
	Joined  []proto.NodeID // nodes that joined a running group, from another one too
	Freed   []proto.NodeID // usable members that lost their group
}

// Replace mends running groups. A group with every member usable and no place
// to fill is not touched. A group that lost members keeps as many of the rest
// as can stay one line, then takes free nodes that reach it by fibre, up to
// its size; the groups that lack fewest come first, so that most become whole.
// One that stays short is made whole with its neighbours' help where that can
// be (regroup.go). New groups come from what is still free, up to what Sizes
// wants.
func (m Mend) Replace(running []Group) Result {
	var r Result
	taken := m.Taken
	if taken == nil {
		taken = make([]bool, m.Nodes)
	}
	lost := make([]int, len(running)) // members not usable any more
	for i, g := range running {
		for _, n := range g.Nodes {
			taken[n] = true
			if !g.Frozen && !m.Usable(n) {
				lost[i]++
			}
		}
		g.Nodes = slices.Clone(g.Nodes)
		if g.Size == 0 {
			g.Size = m.Sizes[len(m.Sizes)-1].Size
		}
		r.Groups = append(r.Groups, g)
	}
	m.mendAll(&r, taken, lost)
	if !m.Near {
		if m.Moves >= 0 || !m.resettle(&r, running, taken) {
			m.regroup(&r, taken)
			m.addGroups(&r, taken)
		}
	}
	r.Groups = slices.DeleteFunc(r.Groups, func(g Group) bool {
		if len(g.Nodes) == 0 {
			r.Gone = append(r.Gone, g.ID)
		}
		return len(g.Nodes) == 0
	})
	m.account(&r, running, taken)
	if m.Taken != nil {
		for _, g := range r.Groups {
			for _, n := range g.Nodes {
				taken[n] = false
			}
		}
		for _, g := range running {
			for _, n := range g.Nodes {
				taken[n] = true
			}
		}
	}
	return r
}

// mendAll brings every group that is short as near to Size as it gets. A
// second round lets a group take what another had to give up in the first.
func (m Mend) mendAll(r *Result, taken []bool, lost []int) {
	var short []int
	for i, g := range r.Groups {
		if !g.Frozen && (lost[i] > 0 || len(g.Nodes) < g.Size || m.torn(g.Nodes)) {
			short = append(short, i)
		}
	}
	lacks := func(i int) int { return r.Groups[i].Size - len(r.Groups[i].Nodes) + lost[i] }
	slices.SortStableFunc(short, func(a, b int) int { return lacks(a) - lacks(b) })
	for round := 0; round < 2; round++ {
		freed := false
		for _, i := range short {
			g := &r.Groups[i]
			if len(g.Nodes) == 0 {
				continue
			}
			line := m.mend(*g, taken)
			for _, n := range g.Nodes {
				if !slices.Contains(line, n) {
					taken[n] = false
					freed = freed || m.Usable(n)
				}
			}
			for _, n := range line {
				taken[n] = true
			}
			g.Nodes = line
		}
		if !freed {
			return
		}
	}
}

// account says what has become of the running groups.
func (m Mend) account(r *Result, running []Group, taken []bool) {
	at := 0
	for _, was := range running {
		var nodes []proto.NodeID
		if at < len(r.Groups) && r.Groups[at].ID == was.ID {
			nodes = r.Groups[at].Nodes
			if !slices.Equal(nodes, was.Nodes) {
				r.Touched = append(r.Touched, at)
			}
			at++
		}
		for _, n := range nodes {
			if !slices.Contains(was.Nodes, n) {
				r.Joined = append(r.Joined, n)
			}
		}
		for _, n := range was.Nodes {
			if !taken[n] && m.Usable(n) {
				r.Freed = append(r.Freed, n)
			}
		}
	}
	for ; at < len(r.Groups); at++ {
		r.Touched = append(r.Touched, at) // new
	}
}

// torn reports whether a group hangs on a broken link.
func (m Mend) torn(nodes []proto.NodeID) bool {
	for i := 1; m.Broken != nil && i < len(nodes); i++ {
		if m.Broken(nodes[i-1], nodes[i]) {
			return true
		}
	}
	return false
}

// addGroups brings the number of groups up to what Sizes wants: from free
// nodes alone, then with the help of groups beside them.
func (m Mend) addGroups(r *Result, taken []bool) {
	missing, some := m.missing(r)
	if !some {
		return
	}
	fresh := PlaceSizes(Problem{Order: m.Order, Spread: m.Spread, Broken: m.Broken,
		Usable: func(n proto.NodeID) bool { return !taken[n] && m.Free(n) }}, missing)
	for i, groups := range fresh {
		for _, nodes := range groups {
			r.Groups = append(r.Groups, Group{Nodes: nodes, Size: missing[i].Size})
			for _, n := range nodes {
				taken[n] = true
			}
			missing[i].Want--
		}
	}
	for _, d := range missing {
		for whole := 1; d.Want > 0 && whole <= m.window(); {
			nodes := m.extend(r, Group{Size: d.Size}, whole, taken)
			if nodes == nil {
				whole++
				continue
			}
			r.Groups = append(r.Groups, Group{Nodes: nodes, Size: d.Size})
			d.Want--
		}
	}
}

// missing is how many groups of each size are wanted and not there.
func (m Mend) missing(r *Result) (missing []Demand, some bool) {
	missing = slices.Clone(m.Sizes)
	for i := range missing {
		for _, g := range r.Groups {
			if len(g.Nodes) > 0 && g.Size == missing[i].Size {
				missing[i].Want--
			}
		}
		missing[i].Want = max(0, missing[i].Want)
		some = some || missing[i].Want > 0
	}
	return missing, some
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
func (m Mend) mend(g Group, taken []bool) []proto.NodeID {
	places := m.places(g, taken)
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
			if m.Broken != nil && m.Broken(places[j].node, p.node) {
				continue
			}
			gap := p.at - places[j].at
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
func (m Mend) places(g Group, taken []bool) []place {
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
		case !member && !taken[n] && m.Free(n):
			out = append(out, place{at, n, false})
		}
	}
	return out
}
