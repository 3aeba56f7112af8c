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
	sets, left := [][]int{}, j.Want
	take := func(set []int) {
		if large := slices.IndexFunc(sets, func(s []int) bool { return len(s) > 2 }); j.PerToR == 0 && left == 1 && len(set) > 1 && large >= 0 {
			sets[large] = sets[large][1:] // two sets of two, and nobody by himself
			left++
		}
		if set = set[:min(len(set), left)]; len(set) > 0 {
			sets = append(sets, set)
			left -= len(set)
		}
	}
	if whole := j.Want / max(1, j.PerToR); j.PerToR > 0 && len(tuples) > whole {
		rest, tuples = tuples[whole], tuples[:whole]
	}
	for _, t := range tuples {
		take(t)
	}
	for _, t := range j.chain(groups, rest) {
		take(t)
	}
	chosen, sizes := make([]placed, 0, j.Want), make([]int, len(sets))
	for i, set := range sets {
		sizes[i] = len(set)
		for _, g := range set {
			chosen = append(chosen, groups[g])
		}
	}
	return j.count(chosen, sizes, most)
}

// Judge joins groups that stand to sets, as finish does, and counts their flows.
func (j Job) Judge(groups [][]proto.NodeID) Orchestration {
	j.Want = len(groups)
	j = j.laid()
	return j.finish(j.spansOf(groups), len(groups))
}

// count makes sets of the groups as they come, of so many each, or where as many
// nodes are under every ToR of that many, and counts flows.
func (j Job) count(groups []placed, sizes []int, most int) Orchestration {
	o := Orchestration{Most: most, Least: -1, Groups: make([][]proto.NodeID, len(groups)), Aligned: make([]bool, len(groups))}
	for i := range groups {
		g := &groups[i]
		nodes := make([]proto.NodeID, len(g.at))
		for r, at := range g.at {
			nodes[r] = j.name(int(at))
		}
		o.Groups[i], o.Aligned[i] = nodes, g.aligned
		if !g.aligned {
			o.Unaligned++
		}
		if j.piece[g.at[0]] != j.piece[g.at[len(g.at)-1]] {
			o.Crossing++
		}
	}
	if j.PerToR > 0 {
		sizes = slices.Repeat([]int{j.PerToR}, len(groups)/j.PerToR)
	}
	from := 0
	for _, size := range sizes {
		set := make([]int, size)
		for i := range set {
			set[i] = from + i
		}
		cross := j.flows(groups[from : from+size])
		o.Inner += size * j.Size
		o.CrossToR += cross
		if from += size; size > 1 || j.PerToR == 1 {
			o.Sets = append(o.Sets, set)
		}
	}
	return o
}

// flows counts the inner flows of one set between ToRs, each from a node to the node
// of the same rank of the next group round the set. A group by itself has its
// partner anywhere, unless that is how many nodes a ToR has.
func (j Job) flows(set []placed) (cross int) {
	for i := range set {
		next := &set[(i+1)%len(set)]
		for r := range set[i].at {
			if j.tor(&set[i], r) != j.tor(next, r) || len(set) == 1 && j.PerToR != 1 {
				cross++
			}
		}
	}
	return cross
}

// least is so many cross-ToR flows that no placement has fewer. Where sets are of
// as many groups as a ToR has nodes, those of one rank stay under one ToR only where
// none is out there; else so many ToRs as their nodes are under are left at least. A
// node under a ToR with h well ones costs at least 1/h then, and so many nodes
// must be such as do not fit under whole ToRs. Where ToRs differ, a set may be of
// any two groups, and only nodes that are alone under their ToR must cross.
func (j Job) least(ok []bool) int {
	well := make([]int, len(j.racks.Domain))
	for at, tor := range j.racks.ToR {
		if ok[at] {
			well[tor]++
		}
	}
	over, enough := j.Want*j.Size, 2
	if j.PerToR > 0 {
		over, enough = j.Want/j.PerToR*j.PerToR*j.Size, j.PerToR
	}
	left := make([]int, enough) // nodes under ToRs with fewer well ones, by how many
	for _, n := range well {
		if n >= enough {
			over -= n
		} else {
			left[n] += n
		}
	}
	const unit = 1 << 20
	sum := 0
	for n := enough - 1; n > 0 && over > 0; n-- {
		used := min(over, left[n])
		over -= used
		sum += used * unit / n
	}
	return (sum + unit - 1) / unit
}

// tor is the ToR of a group's rank.
func (j Job) tor(g *placed, rank int) int32 { return j.racks.ToR[g.at[rank]] }

// align finds the whole sets of groups on the same ToRs and marks them.
func (j Job) align(groups []placed) (tuples [][]int, rest []int) {
	under := make([]int, len(j.racks.Domain))
	for _, tor := range j.racks.ToR {
		under[tor]++
	}
	whole := func(g *placed) int { // so many groups can be on its ToRs
		least := len(j.racks.ToR)
		for r := range j.Size {
			least = min(least, under[j.tor(g, r)])
		}
		return least
	}
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
		if all := whole(&groups[order[i]]); n-i == all && (all > 1 || j.PerToR == 1) {
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

// chain joins groups to sets, so that those whose ranks meet are next to each
// other: the pairs with the most ranks in common first, chains of at most as many
// as a ToR has nodes; the longest first.
func (j Job) chain(groups []placed, rest []int) (out [][]int) {
	c := chains{limit: 1, next: make(map[int][]int, len(rest)), name: make(map[int]int, len(rest)), length: make(map[int]int, len(rest))}
	for _, at := range j.racks.members() {
		c.limit = max(c.limit, len(at))
	}
	for _, m := range j.meetings(groups, rest) {
		c.join(m.a, m.b)
	}
	seen := make(map[int]bool, len(rest))
	for length := c.limit; length > 0; length-- {
		for _, g := range rest {
			if seen[g] || len(c.next[g]) > 1 || c.size(g) != length {
				continue
			}
			var set []int
			for at := g; ; {
				seen[at] = true
				set = append(set, at)
				i := slices.IndexFunc(c.next[at], func(n int) bool { return !seen[n] })
				if i < 0 {
					break
				}
				at = c.next[at][i]
			}
			out = append(out, set)
		}
	}
	return out
}

// meetings lists the pairs that meet at all, most ranks first.
func (j Job) meetings(groups []placed, rest []int) []meeting {
	type place struct {
		tor         int32
		rank, group int
	}
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
