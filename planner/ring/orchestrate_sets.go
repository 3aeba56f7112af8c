package ring

import (
	"cmp"
	"slices"

	"ringlight/proto"
)

// finish picks the wanted groups, in order of their inner sets. Groups on the same ToRs, rank by rank, on all sub-lines are a set without a
// cross-ToR flow; the rest is joined so that as many ranks as it can meet.
func (j Job) finish(groups []placed, most int) Orchestration {
	tuples, rest := j.align(groups)
	sets := j.Want / j.PerToR
	chosen := make([]placed, 0, j.Want)
	for _, t := range tuples[:min(sets, len(tuples))] {
		for _, i := range t {
			chosen = append(chosen, groups[i])
		}
	}
	left := rest
	if len(tuples) > sets {
		left = tuples[sets]
	} else {
		left = j.chain(groups, rest)
	}
	for _, i := range left[:j.Want-len(chosen)] {
		chosen = append(chosen, groups[i])
	}
	return j.count(chosen, most)
}

// count makes sets of the groups as they come and counts flows.
func (j Job) count(groups []placed, most int) Orchestration {
	o := Orchestration{Most: most, Least: -1, Groups: make([][]proto.NodeID, len(groups)), Aligned: make([]bool, len(groups))}
	for i := range groups {
		g := &groups[i]
		nodes := make([]proto.NodeID, len(g.at))
		for r, at := range g.at {
			nodes[r] = j.Node(int(at))
		}
		o.Groups[i], o.Aligned[i] = nodes, g.aligned
		if !g.aligned {
			o.Unaligned++
		}
		if j.piece(int(g.at[0])) != j.piece(int(g.at[len(g.at)-1])) {
			o.Crossing++
		}
	}
	for s := range len(groups) / j.PerToR {
		set := make([]int, j.PerToR)
		for i := range set {
			set[i] = s*j.PerToR + i
		}
		o.Sets = append(o.Sets, set)
		cross, inner := j.Flows(o.Groups[s*j.PerToR : (s+1)*j.PerToR])
		o.CrossToR += cross
		o.Inner += inner
	}
	return o
}

// Flows counts the inner flows of one set, each from a node to the node of
// the same rank of the next group round the set, and those between ToRs.
func (j Job) Flows(set [][]proto.NodeID) (cross, inner int) {
	for i, g := range set {
		next := set[(i+1)%len(set)]
		for r := range g {
			if j.ToR(g[r]) != j.ToR(next[r]) {
				cross++
			}
		}
		inner += len(g)
	}
	return cross, inner
}

// tor is the ToR of a group's rank.
func (j Job) tor(g *placed, rank int) int { return int(g.at[rank]) % j.ToRs() }

// align finds the whole sets of groups on the same ToRs and marks them.
func (j Job) align(groups []placed) (tuples [][]int, rest []int) {
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	byToRs := func(a, b int) int {
		for r := range j.Size {
			if c := cmp.Compare(j.tor(&groups[a], r), j.tor(&groups[b], r)); c != 0 {
				return c
			}
		}
		return 0
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(byToRs(a, b), cmp.Compare(groups[a].at[0], groups[b].at[0]))
	})
	for i := 0; i < len(order); {
		n := i + 1
		for n < len(order) && byToRs(order[i], order[n]) == 0 {
			n++
		}
		if n-i == j.PerToR {
			tuples = append(tuples, order[i:n:n])
			for _, g := range order[i:n] {
				groups[g].aligned = true
			}
		} else {
			rest = append(rest, order[i:n]...)
		}
		i = n
	}
	return tuples, rest
}

// meeting is how many ranks of two groups are under the same ToR.
type meeting struct{ a, b, ranks int }

// chain orders groups so that those whose ranks meet are next to each other:
// the pairs with the most ranks in common first, chains of at most PerToR.
func (j Job) chain(groups []placed, rest []int) []int {
	c := chains{limit: j.PerToR, next: make(map[int][]int, len(rest)), name: make(map[int]int, len(rest)), length: make(map[int]int, len(rest))}
	for _, m := range j.meetings(groups, rest) {
		c.join(m.a, m.b)
	}
	var out []int
	seen := make(map[int]bool, len(rest))
	for length := j.PerToR; length > 0; length-- {
		for _, g := range rest {
			if seen[g] || len(c.next[g]) > 1 || c.size(g) != length {
				continue
			}
			for at := g; ; {
				seen[at] = true
				out = append(out, at)
				i := slices.IndexFunc(c.next[at], func(n int) bool { return !seen[n] })
				if i < 0 {
					break
				}
				at = c.next[at][i]
			}
		}
	}
	return out
}

// meetings lists the pairs that meet at all, most ranks first.
func (j Job) meetings(groups []placed, rest []int) []meeting {
	type place struct{ tor, rank, group int }
	places := make([]place, 0, len(rest)*j.Size)
	for i, g := range rest {
		for r := range j.Size {
			places = append(places, place{j.tor(&groups[g], r), r, i})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.tor, b.tor), cmp.Compare(a.rank, b.rank), cmp.Compare(a.group, b.group))
	})
	var all []meeting
	for i := range places {
		for k := i + 1; k < len(places) && places[k].tor == places[i].tor && places[k].rank == places[i].rank; k++ {
			all = append(all, meeting{rest[places[i].group], rest[places[k].group], 1})
		}
	}
	slices.SortFunc(all, func(x, y meeting) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	sum := all[:0]
	for _, m := range all {
		if n := len(sum); n > 0 && sum[n-1].a == m.a && sum[n-1].b == m.b {
			sum[n-1].ranks++
			continue
		}
		sum = append(sum, m)
	}
	slices.SortStableFunc(sum, func(x, y meeting) int { return cmp.Compare(y.ranks, x.ranks) })
	return sum
}

// chains are paths over groups, none longer than limit.
type chains struct {
	limit  int
	next   map[int][]int // a group's neighbours
	name   map[int]int   // a chain's end to its other end
	length map[int]int   // by end
}

func (c *chains) other(g int) int {
	if o, ok := c.name[g]; ok {
		return o
	}
	return g
}

func (c *chains) size(g int) int { return max(1, c.length[g]) }

// join links two groups when both are ends of different chains that fit.
func (c *chains) join(a, b int) {
	if len(c.next[a]) > 1 || len(c.next[b]) > 1 || c.other(a) == b || c.size(a)+c.size(b) > c.limit {
		return
	}
	from, to, size := c.other(a), c.other(b), c.size(a)+c.size(b)
	c.next[a], c.next[b] = append(c.next[a], b), append(c.next[b], a)
	c.name[from], c.name[to] = to, from
	c.length[from], c.length[to] = size, size
}
