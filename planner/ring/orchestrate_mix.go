package ring

import "slices"

// way is the moves of the best way through a domain, ToR by ToR.
func (p *pairProgram) way(d *domain, w rate, fewest bool) []move {
	trail := make([]uint16, d.tors*p.states)
	p.best(d, w, fewest, trail)
	way := make([]move, d.tors)
	for t, at := d.tors-1, 0; t >= 0; t-- {
		way[t] = p.moves[p.usable(d, t)][trail[t*p.states+at]]
		at = int(way[t].from)
	}
	return way
}

// detour is a part of two ways through a domain at whose ends no group is open
// on either: one may go there as on the other, or by what lies between them.
type detour struct {
	d       *domain
	first   int    // ToR
	way     []move // of the way with fewer groups in all
	other   []move
	options []option
}

// option is a way to go, by how many groups it has more than the first.
type option struct {
	more, meets int
	way         []move
}

// optionOf is a way beside one with so many groups.
func optionOf(way []move, groups int) option {
	o := option{more: -groups, way: way}
	for _, mv := range way {
		o.more += int(mv.groups)
		o.meets += int(mv.meets)
	}
	return o
}

// detours cuts two ways where both may be left.
func (p *pairProgram) detours(d *domain, way, other []move) (out []detour) {
	for t, first := 0, 0; t < len(way); t++ {
		if way[t].to != 0 || other[t].to != 0 {
			continue
		}
		x := detour{d: d, first: first, way: way[first : t+1], other: other[first : t+1]}
		first = t + 1
		none := optionOf(x.way, 0)
		all := optionOf(x.other, none.more)
		if all.more == 0 {
			continue
		}
		x.options = []option{{meets: none.meets, way: x.way}}
		if all.more > 1 {
			x.options = append(x.options, p.between(&x, none.more, all.more)...)
		}
		x.options = append(x.options, all)
		out = append(out, x)
	}
	return out
}

// windowSlack is how far a way between two others may have more groups than both,
// or fewer, on its way; maxBetween bounds its table. chosen.
const (
	windowSlack = 2
	maxBetween  = 32 << 20
)

// between finds the best ways through a detour's ToRs with fewer groups more than
// the other way has.
func (p *pairProgram) between(x *detour, groups, more int) (out []option) {
	// low and high bound the groups before each ToR.
	low, high := make([]int, len(x.way)+1), make([]int, len(x.way)+1)
	width := 0
	for t, a, b := 0, 0, 0; t < len(x.way); t++ {
		a, b = a+int(x.way[t].groups), b+int(x.other[t].groups)
		low[t+1], high[t+1] = min(a, b)-windowSlack, max(a, b)+windowSlack
		width = max(width, high[t+1]-low[t+1]+1)
	}
	if len(x.way)*p.states*width > maxBetween {
		return nil
	}
	meets, next := slices.Repeat([]int32{-1}, p.states*width), make([]int32, p.states*width)
	trail := make([]uint16, len(x.way)*p.states*width)
	meets[0] = 0
	for t := range x.way {
		for i := range next {
			next[i] = -1
		}
		moves := p.moves[p.usable(x.d, x.first+t)]
		for k := range moves {
			mv := &moves[k]
			for n := low[t]; n <= high[t]; n++ {
				m, to := meets[int(mv.from)*width+n-low[t]], n+int(mv.groups)
				if m < 0 || to < low[t+1] || to > high[t+1] {
					continue
				}
				if at := int(mv.to)*width + to - low[t+1]; m+int32(mv.meets) > next[at] {
					next[at], trail[(t*p.states+int(mv.to))*width+to-low[t+1]] = m+int32(mv.meets), uint16(k)
				}
			}
		}
		meets, next = next, meets
	}
	end := len(x.way)
	for extra := 1; extra < more; extra++ {
		if meets[groups+extra-low[end]] < 0 {
			continue
		}
		way := make([]move, end)
		for t, at, n := end-1, 0, groups+extra; t >= 0; t-- {
			way[t] = p.moves[p.usable(x.d, x.first+t)][trail[(t*p.states+at)*width+n-low[t+1]]]
			at, n = int(way[t].from), n-int(way[t].groups)
		}
		out = append(out, optionOf(way, groups))
	}
	return out
}

// swap has detours take options so that there are need groups more, with the most
// meetings; or as few above as can be.
func swap(list []detour, need int) {
	span := 0
	for i := range list {
		last := list[i].options[len(list[i].options)-1].more
		span += max(last, -last)
	}
	// meets by how many groups more, moved up by span; -1: not to be had.
	meets, next := slices.Repeat([]int{-1}, 2*span+1), make([]int, 2*span+1)
	meets[span] = 0
	chosen := make([][]int8, len(list))
	for i := range list {
		chosen[i] = make([]int8, 2*span+1)
		for n := range next {
			next[n] = -1
			for k, o := range list[i].options[:min(len(list[i].options), 127)] {
				if from := n - o.more; from >= 0 && from < len(meets) && meets[from] >= 0 && meets[from]+o.meets > next[n] {
					next[n], chosen[i][n] = meets[from]+o.meets, int8(k)
				}
			}
		}
		meets, next = next, meets
	}
	n := span + need
	for n < len(meets)-1 && meets[n] < 0 {
		n++
	}
	if meets[n] < 0 {
		return
	}
	for i := len(list) - 1; i >= 0; i-- {
		o := list[i].options[chosen[i][n]]
		copy(list[i].way, o.way)
		n -= o.more
	}
}
