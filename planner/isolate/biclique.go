package isolate

import (
	"math/bits"
	"slices"
)

// biclique.go is stage 2 without optics: of all virtual Clos that there are
// free links for, those of fewest leaves, and of these one of least cost, exactly
// ([VCLOS] Algorithm 3 and A.2 without its ILP). Cost does not choose the number
// of leaves: it would take many leaves and few spines, after which no large job
// finds spines in common.

// maxVisits is how many leaves one decision tries; chosen: far more than any
// core of 64 leaves and 32 spines needed in a million decisions, and 20 ms.
// What was found by then is taken.
const maxVisits = 200_000

type bicliques struct {
	spines  []int32  // by free links, fewest first
	price   []int32  // of them: their free links
	leaves  []int32  // those that could be chosen, by idle servers, fewest first
	idle    []int32  // of them
	free    []uint64 // of them: the spines they reach, as bits in the order of spines
	words   int
	gpus    int // of a server
	visits  int
	shape   shape
	best    int // cost; -1: none yet
	found   shape
	at      []int32  // the leaves of the best
	on      []uint64 // and their spines in common
	chosen  []int32
	commons []uint64 // by depth
}

func (s *State) biclique(need int) (Placement, bool) {
	b := s.bicliques()
	for _, shape := range s.core.shapes(need * s.core.GPUsPerServer) {
		if b.search(shape); b.best >= 0 {
			break
		}
	}
	if b.best < 0 {
		return Placement{}, false
	}
	return s.virtualClos(b), true
}

func (s *State) bicliques() *bicliques {
	spines := s.core.Spines()
	b := &bicliques{words: (spines + 63) / 64, gpus: s.core.GPUsPerServer, best: -1}
	links := make([]int32, spines)
	for cell, n := range s.links.free {
		links[cell%spines] += n
	}
	for m := range spines {
		b.spines = append(b.spines, int32(m))
	}
	byLeast(b.spines, func(m int32) int32 { return links[m] })
	for _, m := range b.spines {
		b.price = append(b.price, links[m])
	}
	for n, idle := range s.idle {
		if idle > 0 {
			b.leaves = append(b.leaves, int32(n))
		}
	}
	byLeast(b.leaves, func(n int32) int32 { return s.idle[n] })
	b.free = make([]uint64, len(b.leaves)*b.words)
	for i, n := range b.leaves {
		b.idle = append(b.idle, s.idle[n])
		for at, m := range b.spines {
			if s.links.free[int(n)*spines+int(m)] > 0 {
				b.free[i*b.words+at/64] |= 1 << (at % 64)
			}
		}
	}
	return b
}

func (b *bicliques) of(i int) []uint64 { return b.free[i*b.words : (i+1)*b.words] }

func count(set []uint64) int {
	n := 0
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}

// cheapest is the price of the first spines of a set.
func (b *bicliques) cheapest(set []uint64, spines int) int {
	sum := 0
	for at, w := range set {
		for ; w != 0 && spines > 0; w &= w - 1 {
			sum += int(b.price[at*64+bits.TrailingZeros64(w)])
			spines--
		}
	}
	return sum
}

// search looks for what is cheaper than the best so far in one shape.
func (b *bicliques) search(want shape) {
	b.shape = want
	b.chosen = b.chosen[:0]
	b.commons = slices.Grow(b.commons[:0], (want.l+1)*b.words)[:(want.l+1)*b.words]
	clear(b.commons[:b.words])
	for at := range b.spines {
		b.commons[at/64] |= 1 << (at % 64)
	}
	b.visit(0, 0)
}

// visit chooses one leaf more, from the i-th on. Leaves go by idle servers, so
// the next ones are the cheapest that can follow, and spines in common only
// get fewer and dearer.
func (b *bicliques) visit(i, cost int) {
	depth, s := len(b.chosen), b.shape.s
	common := b.commons[depth*b.words : (depth+1)*b.words]
	if depth == b.shape.l {
		if all := cost + b.cheapest(common, s); b.best < 0 || all < b.best {
			b.best, b.found = all, b.shape
			b.at = append(b.at[:0], b.chosen...)
			b.on = append(b.on[:0], common...)
		}
		return
	}
	next := b.commons[(depth+1)*b.words : (depth+2)*b.words]
	left := b.shape.l - depth
	for ; i+left <= len(b.leaves); i++ {
		if b.best >= 0 && cost+b.cheapest(common, s)+b.gpus*int(b.idle[i])*left >= b.best {
			return
		}
		if b.gpus*int(b.idle[i]) < s || b.likeRefused(i, depth) {
			continue
		}
		if b.visits++; b.visits > maxVisits {
			return
		}
		for at, w := range b.of(i) {
			next[at] = common[at] & w
		}
		if count(next) < s {
			continue
		}
		b.chosen = append(b.chosen, int32(i))
		b.visit(i+1, cost+b.gpus*int(b.idle[i]))
		b.chosen = b.chosen[:depth]
	}
}

// likeRefused says that leaf i is as the one before it, which was not chosen:
// what it could give was looked at.
func (b *bicliques) likeRefused(i, depth int) bool {
	if i == 0 || b.idle[i] != b.idle[i-1] || depth > 0 && int(b.chosen[depth-1]) == i-1 {
		return false
	}
	return slices.Equal(b.of(i), b.of(i-1))
}

// virtualClos makes the placement of the best biclique.
func (s *State) virtualClos(b *bicliques) Placement {
	want := b.found
	p := Placement{Stage: 2, L: want.l, S: want.s, Map: identity(want.s), Cost: b.best}
	var on []int
	for at, w := range b.on {
		for ; w != 0 && len(on) < want.s; w &= w - 1 {
			on = append(on, int(b.spines[at*64+bits.TrailingZeros64(w)]))
		}
	}
	slices.Sort(on)
	var leaves []int
	for _, i := range b.at {
		leaves = append(leaves, int(b.leaves[i]))
	}
	slices.Sort(leaves)
	for _, n := range leaves {
		p.Servers = s.idleServers(p.Servers, n, want.s/s.core.GPUsPerServer)
		for _, m := range on {
			nth := 0
			for s.links.taken[s.links.unit(n, m, nth)] {
				nth++
			}
			p.Links = append(p.Links, Link{n, m, nth})
		}
	}
	return p
}
