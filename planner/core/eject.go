package core

import (
	"cmp"
	"math"
	"slices"
)

// ejectSteps bounds how often links are put somewhere for one that chains do
// not light, allSteps for all of a change. chosen: in 34 cores of 128 pods and
// 4,114 changes none needed a tenth of either; half a second where there is no
// way.
const ejectSteps, allSteps = 2_000, 20_000

// eject brings a link to a circuit where no chain does: it goes where least is
// in its way, what was there goes on in the same manner, and so on until all
// have a circuit. A link that often put others out is put out last, so they do
// not go in circles.
func (s *chains) eject(e int32) bool {
	moves, turns := len(s.log), make([]int, len(s.links))
	s.dark = false
	s.move(e, nowhere)
	last := min(s.steps+ejectSteps, allSteps)
	for out := []int32{e}; len(out) > 0; s.steps++ {
		e, out = out[len(out)-1], out[:len(out)-1]
		to, others, ok := s.leastInTheWay(e, turns)
		if !ok || s.steps >= last {
			return s.back(moves)
		}
		if len(others) > 0 {
			turns[e]++
		}
		for _, f := range others {
			s.move(f, nowhere)
		}
		out = append(out, others...)
		s.move(e, to)
	}
	return true
}

// leastInTheWay is where a link goes, and what must go from there.
func (s *chains) leastInTheWay(e int32, turns []int) (best site, others []int32, ok bool) {
	l, least := &s.links[e], math.MaxInt
	s.sites(e, -1, s.steps, func(path site) bool {
		s.sites(e, path.spine, s.steps, func(at site) bool {
			if out, cost := s.inTheWay(l, at, turns); cost < least {
				best, others, least = at, out, cost
			}
			return least > 0
		})
		return least > 0
	})
	return best, others, least < math.MaxInt
}

// inTheWay are the links that must go for one to have a circuit, and how much
// is against it: more where light goes out, and all where it must not.
func (s *chains) inTheWay(l *link, at site, turns []int) (out []int32, cost int) {
	price := func(f int32) int {
		switch {
		case !s.mayMove(f):
			return math.MaxInt
		case s.isLit(f):
			return 3 + turns[f]
		}
		return 1 + turns[f]
	}
	add := func(f int32) bool {
		if f == nobodys || slices.Contains(out, f) {
			return true
		}
		n := price(f)
		if n < math.MaxInt {
			out, cost = append(out, f), cost+n
		}
		return n < math.MaxInt
	}
	for side, leaf := range l.leaf {
		if !add(s.ports[s.port(l, at, side)]) {
			return nil, math.MaxInt
		}
		there, full := s.has(s.of(leaf, at.spine), false)
		if full && len(there) == 0 {
			return nil, math.MaxInt // there is no link
		}
		if full && !slices.ContainsFunc(there, func(f int32) bool { return slices.Contains(out, f) }) &&
			!add(slices.MinFunc(there, func(a, b int32) int { return cmp.Compare(price(a), price(b)) })) {
			return nil, math.MaxInt
		}
	}
	for _, f := range out { // each may go; all of a leaf's together?
		for _, leaf := range s.links[f].leaf {
			n := 0
			for _, g := range out {
				if s.isLit(g) && slices.Contains(s.links[g].leaf[:], leaf) {
					n++
				}
			}
			if n > max(s.spare[leaf], 0) {
				return nil, math.MaxInt
			}
		}
	}
	return out, cost
}
