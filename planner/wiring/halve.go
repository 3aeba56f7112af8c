package wiring

import (
	"cmp"
	"slices"
)

// halveRounds bounds how often a halving is improved. chosen: the second
// gains a circuit or two in a hundred, the search makes up for further ones.
const halveRounds = 2

// Halves says whether a group is searched in parts.
func (g Group) Halves() bool { return g.Old.Switches > MaxBlock }

// blocks cuts a group into pieces that are searched as one, in order of
// switches. Pieces of one size are cut side by side.
func (g Group) blocks(sideBySide func(n int, do func(int))) []Group {
	parts := []Group{g}
	for {
		var cut []int
		for n, part := range parts {
			if part.Halves() {
				cut = append(cut, n)
			}
		}
		if len(cut) == 0 {
			return parts
		}
		halves := make([][]Group, len(parts))
		for n, part := range parts {
			halves[n] = []Group{part}
		}
		sideBySide(len(cut), func(n int) {
			a, b := parts[cut[n]].halve()
			halves[cut[n]] = []Group{a, b}
		})
		parts = slices.Concat(halves...)
	}
}

// halve assigns the links of a group to the two halves of its even switches so
// that as many as can be go where their pair had circuits, by min-cost flow.
//
// The pods' degrees make this a problem on an undirected graph, which a flow
// does not solve; so links are first given ways by Euler walks, and the flow
// shares out circuits per sender and receiver. The ways serve for that alone:
// each half is free to choose them anew. What would like to go to a half is
// walked by itself, so that it comes to as much out as in at every pod and
// the ways forbid none of it. The next flow starts from ways with which the
// present division is allowed, so it can only be better.
func (g Group) halve() (a, b Group) {
	switches := [2]int{g.Old.Switches / 2, g.Old.Switches - g.Old.Switches/2}
	cut := switches[0] * g.Pods
	old := [2]Half{
		{g.Pods, switches[0], g.Old.To[:cut:cut]},
		{g.Pods, switches[1], g.Old.To[cut:]},
	}
	h := &halving{group: g, switches: switches, best: -1}
	for side := range old {
		h.had[side] = h.count(old[side].Links())
	}
	assign := h.wishes()
	for range halveRounds {
		next, value := h.assign(assign)
		if value <= h.best {
			break
		}
		h.best, h.links = value, next[0]
		assign = next
	}
	parts := h.parts([][]int32{h.links, h.rest(h.links)})
	return Group{parts[0], old[0]}, Group{parts[1], old[1]}
}

type halving struct {
	group    Group
	switches [2]int
	had      [2][]int32 // circuits of each link's pair in each half
	links    []int32    // of each link: circuits for the first half
	best     int
}

// count gives the circuits of other links for each link of the group.
func (h *halving) count(links []Link) []int32 {
	out := make([]int32, len(h.group.Links))
	n := 0
	for i, l := range h.group.Links {
		for n < len(links) && byPair(links[n], l) < 0 {
			n++
		}
		if n < len(links) && byPair(links[n], l) == 0 {
			out[i] = links[n].circuits()
		}
	}
	return out
}

// wishes assigns every link to a half where its pair had a circuit, as far as
// there were; the last share are those with no such wish.
func (h *halving) wishes() [][]int32 {
	share := [][]int32{make([]int32, len(h.group.Links)), make([]int32, len(h.group.Links)), make([]int32, len(h.group.Links))}
	for n, l := range h.group.Links {
		all := l.circuits()
		share[0][n] = min(h.had[0][n], max(all-h.had[1][n], (all+1)/2))
		share[1][n] = min(h.had[1][n], all-share[0][n])
		share[2][n] = all - share[0][n] - share[1][n]
	}
	return share
}

// assign solves one flow: of the circuits on every arc, how many go to the
// first half. The ways come from the call before.
func (h *halving) assign(before [][]int32) (assign [][]int32, value int) {
	pods := h.group.Pods
	shares, ways := orientShares(h.parts(before))
	f := newFlow(2*pods+2, 3*len(ways.Arcs)+6*pods+1)
	source, sink := 2*pods, 2*pods+1
	rows, cols := ways.Sums()
	for i := range pods {
		h.portArcs(f, source, i, rows[i])
		h.portArcs(f, pods+i, sink, cols[i])
	}
	f.arc(sink, source, 0, unbounded, 0)
	at := h.index()
	had := h.hadOnArcs(shares, ways, at)
	first := f.arcs()
	for n, a := range ways.Arcs {
		// Up to low every circuit more in the first half is one kept more;
		// from high on, one less.
		low, high := min(had[0][n], a.Count-had[1][n]), max(had[0][n], a.Count-had[1][n])
		from, to := int(a.From), pods+int(a.To)
		f.arc(from, to, 0, int(low), -keptCost)
		f.arc(from, to, 0, int(high-low), 0)
		f.arc(from, to, 0, int(a.Count-high), keptCost)
	}
	if !f.solve() {
		panic("wiring: invariant: half of everything is a division in fractions, so one in integers exists")
	}
	links := make([]int32, len(h.group.Links))
	for n, a := range ways.Arcs {
		for segment := range 3 {
			links[at(a)] += int32(f.on(first + 3*n + segment))
		}
	}
	for n, l := range h.group.Links {
		value += int(min(links[n], h.had[0][n]) + min(l.circuits()-links[n], h.had[1][n]))
	}
	return [][]int32{links, h.rest(links)}, value
}

// keptCost is what a circuit kept is worth against a port more or less than
// an even share. chosen: beyond what two ports can make up for.
const keptCost = 4

// portArcs bounds what goes to the first half at one pod's side, and would
// have it close to an even share, so that idle ports stay in both halves.
func (h *halving) portArcs(f *flow, from, to, circuits int) {
	least, most := max(0, circuits-h.switches[1]), min(circuits, h.switches[0])
	share := circuits * h.switches[0]
	all := h.switches[0] + h.switches[1]
	low, high := share/all, (share+all-1)/all
	f.arc(from, to, least, low, -1)
	f.arc(from, to, 0, high-low, 0)
	f.arc(from, to, 0, most-high, 1)
}

// hadOnArcs spreads what each pair had in each half over its one or two arcs:
// first where that half's share goes, then wherever there are circuits.
func (h *halving) hadOnArcs(shares []Demand, ways Demand, at func(Arc) int) (had [2][]int32) {
	for side := range had {
		had[side] = make([]int32, len(ways.Arcs))
		left := append([]int32(nil), h.had[side]...)
		n := 0
		for _, a := range shares[side].Arcs {
			for byEnds(ways.Arcs[n], a) < 0 {
				n++
			}
			link := at(a)
			had[side][n] = min(left[link], a.Count)
			left[link] -= had[side][n]
		}
		for n, a := range ways.Arcs {
			link := at(a)
			more := min(left[link], a.Count-had[side][n])
			had[side][n] += more
			left[link] -= more
		}
	}
	return had
}

// orientShares gives ways to the links of several topologies so that each is
// balanced at every pod, and so are all together.
func orientShares(parts []Topology) (shares []Demand, all Demand) {
	o := newOrienter(parts, nil)
	o.walk()
	for n, t := range parts {
		shares = append(shares, o.demand(n, t))
		if n == 0 {
			all = shares[0]
		} else {
			all = together(all, shares[n])
		}
	}
	return shares, all
}

// index finds an arc's link.
func (h *halving) index() func(a Arc) int {
	pods := h.group.Pods
	start := make([]int32, pods+1)
	for _, l := range h.group.Links {
		start[l.I+1]++
	}
	for i := range pods {
		start[i+1] += start[i]
	}
	return func(a Arc) int {
		i, j := min(a.From, a.To), max(a.From, a.To)
		low, high := int(start[i]), int(start[i+1])
		for low < high {
			if mid := (low + high) / 2; h.group.Links[mid].J < j {
				low = mid + 1
			} else {
				high = mid
			}
		}
		return low
	}
}

// rest is what a share of the circuits leaves.
func (h *halving) rest(share []int32) []int32 {
	out := make([]int32, len(share))
	for n, l := range h.group.Links {
		out[n] = l.circuits() - share[n]
	}
	return out
}

// parts are the topologies of shares.
func (h *halving) parts(shares [][]int32) []Topology {
	parts := make([]Topology, len(shares))
	for side, share := range shares {
		parts[side].Pods = h.group.Pods
		for n, l := range h.group.Links {
			if circuits := share[n]; circuits > 0 {
				if l.I == l.J {
					circuits *= 2
				}
				parts[side].Links = append(parts[side].Links, Link{l.I, l.J, circuits})
			}
		}
	}
	return parts
}

// together adds two demands.
func together(a, b Demand) Demand {
	return Demand{a.Rows, a.Cols, merged(a.Arcs, b.Arcs, byEnds, func(to *Arc, x Arc) { to.Count += x.Count })}
}

func byEnds(a, b Arc) int {
	if a.From != b.From {
		return cmp.Compare(a.From, b.From)
	}
	return cmp.Compare(a.To, b.To)
}
