package wiring

import (
	"cmp"
	"fmt"
	"slices"
)

// LeafLinks is a number of links of one leaf.
type LeafLinks struct{ Leaf, Links int }

// Change is a part of a reconfiguration that is made at once, such as some
// Pieces, and the links it moves at each leaf.
type Change struct {
	Moved []LeafLinks
}

// Stages assigns changes to as few stages as it finds, so that in none more
// than iotaMille thousandths of a leaf's links move. links is what each leaf
// has in use. A stage lists changes by index.
//
// Unlike [LUMOS] eq. 46, whose fraction has a count of groups above and of
// links below, the bound is on links moved of links there are. As in [LUMOS]
// A.8.3 the search begins with two stages; changes are placed first fit, those
// with the largest share of some leaf first. Each change alone must be within
// the bound, else more stages could not help.
func Stages(changes []Change, links []int, iotaMille int) ([][]int, error) {
	if iotaMille < 1 || iotaMille > 1000 {
		return nil, wrong("iota", "a share above 0 and up to 1", "%d thousandths", iotaMille)
	}
	order := make([]int, len(changes))
	worst := make([]int, len(changes)) // the largest share of a leaf, in millionths
	for n, c := range changes {
		order[n] = n
		for _, m := range c.Moved {
			if m.Links > 0 && !within(m.Links, links[m.Leaf], iotaMille) {
				return nil, wrong("iota", fmt.Sprintf("at least %d/%d", m.Links, links[m.Leaf]),
					"change %d alone moves %d of leaf %d's %d links", n, m.Links, m.Leaf, links[m.Leaf])
			}
			if m.Links > 0 {
				worst[n] = max(worst[n], m.Links*1_000_000/links[m.Leaf])
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(worst[b], worst[a]) })
	for count := max(min(2, len(changes)), fewest(changes, links, iotaMille)); ; count++ {
		if stages, ok := firstFit(changes, order, links, iotaMille, count); ok {
			return stages, nil
		}
	}
}

// fewest is how many stages the leaf with most to move needs at least; to
// begin there finds the same as to begin at two.
func fewest(changes []Change, links []int, iotaMille int) int {
	sum := make([]int, len(links))
	for _, c := range changes {
		for _, m := range c.Moved {
			sum[m.Leaf] += m.Links
		}
	}
	most := 0
	for leaf, n := range sum {
		if at := links[leaf] * iotaMille / 1000; at > 0 {
			most = max(most, (n+at-1)/at)
		}
	}
	return most
}

func within(moved, links, iotaMille int) bool { return moved*1000 <= links*iotaMille }

func firstFit(changes []Change, order, links []int, iotaMille, count int) ([][]int, bool) {
	stages := make([][]int, count)
	moved := make([][]int, count)
	for s := range moved {
		moved[s] = make([]int, len(links))
	}
	for _, n := range order {
		fits := func(s int) bool {
			return !slices.ContainsFunc(changes[n].Moved, func(m LeafLinks) bool {
				return m.Links > 0 && !within(moved[s][m.Leaf]+m.Links, links[m.Leaf], iotaMille)
			})
		}
		s := 0
		for s < count && !fits(s) {
			s++
		}
		if s == count {
			return nil, false
		}
		for _, m := range changes[n].Moved {
			moved[s][m.Leaf] += m.Links
		}
		stages[s] = append(stages[s], n)
	}
	return stages, true
}

// Worst is the largest moved share of a leaf over all stages, as links moved
// of links there are.
func Worst(changes []Change, links []int, stages [][]int) (moved, of int) {
	of = 1
	for _, stage := range stages {
		sum := make([]int, len(links))
		for _, n := range stage {
			for _, m := range changes[n].Moved {
				sum[m.Leaf] += m.Links
			}
		}
		for leaf, n := range sum {
			if n*of > moved*links[leaf] {
				moved, of = n, links[leaf]
			}
		}
	}
	return moved, of
}

// Together is several changes made as one, such as all of a group.
func Together(changes []Change) Change {
	var all []LeafLinks
	for _, c := range changes {
		all = append(all, c.Moved...)
	}
	slices.SortFunc(all, func(a, b LeafLinks) int { return cmp.Compare(a.Leaf, b.Leaf) })
	var out Change
	for _, m := range all {
		if last := len(out.Moved) - 1; last >= 0 && out.Moved[last].Leaf == m.Leaf {
			out.Moved[last].Links += m.Links
		} else if m.Links > 0 {
			out.Moved = append(out.Moved, m)
		}
	}
	return out
}
