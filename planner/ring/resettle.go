package ring

import (
	"slices"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Any lets as many whole groups move aside for one as it takes.
const Any = -1

// MovesOf is how many whole groups a fabric lets move aside for one.
func MovesOf(m fabric.Moves) int {
	switch m {
	case fabric.MoveNone:
		return 0
	case fabric.MoveAny:
		return Any
	}
	return maxWindow
}

// window is how many neighbouring groups may be laid anew together.
func (m Mend) window() int {
	if m.Moves < 0 {
		return maxWindow
	}
	return min(m.Moves, maxWindow)
}

// resettle lays all groups anew where that makes more of them whole: as many
// as there can be, and of the whole ones as many as can stay exactly as they
// are (Rearrange). What a short group loses by it, its other nodes keep. It
// reports whether no more can be whole than then are, or are wanted.
func (m Mend) resettle(r *Result, before []Group, taken []bool) bool {
	if len(m.Sizes) != 1 {
		panic("ring: any number of moves with groups of several sizes")
	}
	size, frozen, whole := m.Sizes[0].Size, 0, 0
	running := make([][]proto.NodeID, len(r.Groups)) // frozen ones are not looked at
	mine := make([]bool, m.Nodes)
	for i, g := range r.Groups {
		if g.Frozen {
			frozen++
			continue
		}
		running[i] = before[i].Nodes
		for _, n := range g.Nodes {
			mine[n] = true
		}
		if g.whole() && !m.torn(g.Nodes) {
			whole++
		}
	}
	want := m.Sizes[0].Want - frozen
	if want <= whole || frozen == len(r.Groups) {
		return false // nothing is missing, or nobody is there who could move
	}
	best := Rearrange(Problem{Order: m.Order, Size: size, Broken: m.Broken,
		Usable: func(n proto.NodeID) bool {
			return mine[n] && m.Usable(n) || !taken[n] && m.Free(n)
		}}, running)
	if len(best) <= whole {
		return true
	}
	same := Same(running, best)
	if drop := len(best) - want; drop > 0 {
		best, same = m.shed(running, best, same, drop)
	}
	m.rename(r, best, same)
	for i := range r.Groups {
		if g := &r.Groups[i]; !g.Frozen {
			for _, n := range g.Nodes {
				taken[n] = false
			}
		}
	}
	for _, nodes := range best {
		for _, n := range nodes {
			taken[n] = true
		}
	}
	placed := make([]bool, len(best))
	for i := range r.Groups {
		g := &r.Groups[i]
		switch {
		case g.Frozen:
		case same[i] >= 0:
			g.Nodes, placed[same[i]] = best[same[i]], true
		default:
			g.Nodes = slices.DeleteFunc(slices.Clone(g.Nodes), func(n proto.NodeID) bool { return taken[n] })
		}
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		if g.Frozen || same[i] >= 0 || len(g.Nodes) == 0 {
			continue
		}
		g.Nodes = m.mend(*g, taken)
		for _, n := range g.Nodes {
			taken[n] = true
		}
	}
	for j, nodes := range best {
		if !placed[j] {
			r.Groups = append(r.Groups, Group{Nodes: nodes, Size: size})
		}
	}
	return true
}

// rename lets running groups that have no place become those that none has
// become: a group that goes elsewhere is still the same.
func (m Mend) rename(r *Result, best [][]proto.NodeID, same []int) {
	taken := make([]bool, len(best))
	for _, j := range same {
		if j >= 0 {
			taken[j] = true
		}
	}
	j := 0
	for i := range same {
		for j < len(best) && taken[j] {
			j++
		}
		if j < len(best) && same[i] < 0 && !r.Groups[i].Frozen && len(r.Groups[i].Nodes) > 0 {
			same[i], taken[j] = j, true
		}
	}
}

// shed drops groups that are more than wanted: those that no running group
// has become, then those that keep the fewest nodes of one.
func (m Mend) shed(running, best [][]proto.NodeID, same []int, drop int) ([][]proto.NodeID, []int) {
	kept := make([]int, len(best))
	for i, j := range same {
		if j >= 0 {
			kept[j] = 1 + common(running[i], best[j])
		}
	}
	order := make([]int, len(best))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int { return kept[a] - kept[b] })
	gone := make([]bool, len(best))
	for _, j := range order[:drop] {
		gone[j] = true
	}
	var out [][]proto.NodeID
	at := make([]int, len(best))
	for j, g := range best {
		at[j] = -1
		if !gone[j] {
			at[j] = len(out)
			out = append(out, g)
		}
	}
	for i, j := range same {
		if j >= 0 {
			same[i] = at[j]
		}
	}
	return out, same
}
