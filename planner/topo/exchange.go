package topo

import (
	"cmp"
	"slices"
)

// All-to-all by Binary Exchange ([IHBD] sec 7): in step i server n exchanges with n xor
// 2^i what is to go to servers whose bit i is not its own, so that log p steps of half of
// all blocks do what p-1 neighbours in a row do one behind the other. Unlike [IHBD] a step
// may be of several bits: where no fibre is long enough for one, it is passed on over those
// that there are, and then all longer ones at once fill links that one alone leaves idle.

// Fibre joins two servers over a port at each end. A port has several fibres and light on
// one of them at a time.
type Fibre struct{ A, B, PortA, PortB, Hops int }

// Setting is the fibres that have light in a step, and what the fullest of their links,
// of both directions, carries then.
type Setting struct {
	Fibres  []Fibre
	Fullest int64
	ways    *Routes
}

// Path is the servers on the way of a demand.
func (s *Setting) Path(from, to int) []int { return s.ways.Path(from, to) }

// Links are both directions of the fibres.
func (s *Setting) Links() []Link { return linksOf(s.Fibres) }

func linksOf(fibres []Fibre) (out []Link) {
	for _, x := range fibres {
		out = append(out, Link{A: x.A, B: x.B, Count: 1}, Link{A: x.B, B: x.A, Count: 1})
	}
	slices.SortFunc(out, func(a, b Link) int { return cmp.Or(a.A-b.A, a.B-b.B) })
	return out
}

// Set chooses fibres for demands: those that would carry most if all had light, or before
// them all of one length, whichever leaves the fullest link emptiest; nil: some servers
// are not reached by any.
func Set(servers int, fibres []Fibre, demands []Demand) (best *Setting) {
	links := linksOf(fibres)
	_, load, _ := forward(servers, links, demands)
	carried, lengths := map[[2]int]int64{}, []int{0}
	for k, l := range links {
		carried[[2]int{min(l.A, l.B), max(l.A, l.B)}] += load[k]
	}
	for _, x := range fibres {
		if !slices.Contains(lengths, x.Hops) {
			lengths = append(lengths, x.Hops)
		}
	}
	for _, first := range lengths {
		order, taken := slices.Clone(fibres), map[int]bool{}
		slices.SortStableFunc(order, func(a, b Fibre) int {
			if (a.Hops == first) != (b.Hops == first) {
				return map[bool]int{true: -1, false: 1}[a.Hops == first]
			}
			return cmp.Compare(carried[[2]int{min(b.A, b.B), max(b.A, b.B)}], carried[[2]int{min(a.A, a.B), max(a.A, a.B)}])
		})
		s := &Setting{}
		for _, x := range order {
			if !taken[x.PortA] && !taken[x.PortB] {
				s.Fibres = append(s.Fibres, x)
				taken[x.PortA], taken[x.PortB] = true, true
			}
		}
		if s.Fullest, _, s.ways = forward(servers, s.Links(), demands); s.Fullest >= 0 && (best == nil || s.Fullest < best.Fullest) {
			best = s
		}
	}
	return best
}

// ExchangeStep is what servers, a power of two, exchange over bits from to before to of
// their numbers; bytes go from each server to each other in all steps together.
func ExchangeStep(servers, from, to int, bytes int64) (out []Demand) {
	for n := range servers {
		for x := 1; x < 1<<(to-from); x++ {
			out = append(out, Demand{n, n ^ x<<from, bytes * int64(servers>>(to-from))})
		}
	}
	return out
}

// Cuts are all ways to cut a number of bits into steps: where each ends.
func Cuts(bits int) (out [][]int) {
	for mask := range 1 << (bits - 1) {
		var ends []int
		for b := 1; b <= bits; b++ {
			if b == bits || mask>>(b-1)&1 == 1 {
				ends = append(ends, b)
			}
		}
		out = append(out, ends)
	}
	return out
}
