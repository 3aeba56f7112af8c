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

// maxVisits is how many sets of leaves one decision looks at; chosen: ten times
// what any job needed on 64 leaves and 32 spines that jobs came to and left, and
// about 2 ms where links are torn at random. What was found by then is taken.
const maxVisits = 1000

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
	commons []uint64 // by depth: spines that all chosen leaves reach
	order   []int32  // by depth: leaves that may follow
	reach   []uint64
	many    []uint64
}

func (s *State) biclique(need int) (Placement, bool) {
	b := s.bicliques()
	for _, shape := range s.core.shapes(need * s.core.GPUsPerServer) {
		if b.search(shape); b.best >= 0 {
			break
		}
	}
	s.steps = b.visits
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
	b.spines = byLeast(Identity[int32](spines), func(m int32) int32 { return links[m] })
	for _, m := range b.spines {
		b.price = append(b.price, links[m])
	}
	for n, idle := range s.idle {
		if idle > 0 {
			b.leaves = append(b.leaves, int32(n))
		}
	}
	b.leaves = byLeast(b.leaves, func(n int32) int32 { return s.idle[n] })
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

func (b *bicliques) of(i int32) []uint64 {
	return b.free[int(i)*b.words : (int(i)+1)*b.words]
}

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
	b.commons = zeroedSet(b.commons, (want.l+1)*b.words)
	b.order = slices.Grow(b.order[:0], (want.l+1)*len(b.leaves))[:(want.l+1)*len(b.leaves)]
	for at := range b.spines {
		b.commons[at/64] |= 1 << (at % 64)
	}
	all := b.order[:0]
	for i := range b.leaves {
		if b.gpus*int(b.idle[i]) >= want.s {
			all = append(all, int32(i))
		}
	}
	b.visit(all, 0)
}

func zeroedSet(set []uint64, n int) []uint64 {
	set = slices.Grow(set[:0], n)[:n]
	clear(set)
	return set
}

// visit chooses one leaf more of some. Leaves go by idle servers, so the next
// ones are the cheapest that can follow, and spines in common only get fewer
// and dearer.
func (b *bicliques) visit(some []int32, cost int) {
	depth, s := len(b.chosen), b.shape.s
	common := b.commons[depth*b.words : (depth+1)*b.words]
	left := b.shape.l - depth
	if left == 0 {
		if all := cost + b.cheapest(common, s); b.best < 0 || all < b.best {
			b.best, b.found = all, b.shape
			b.at = append(b.at[:0], b.chosen...)
			b.on = append(b.on[:0], common...)
		}
		return
	}
	if b.visits++; b.visits > maxVisits {
		return
	}
	mine := b.order[depth*len(b.leaves) : depth*len(b.leaves) : (depth+1)*len(b.leaves)]
	if some = b.narrow(append(mine, some...), common, left); some == nil {
		return
	}
	next := b.commons[(depth+1)*b.words : (depth+2)*b.words]
	spines := b.cheapest(common, s)
	for c := 0; c+left <= len(some); c++ {
		ahead := 0
		for _, i := range some[c : c+left] {
			ahead += b.gpus * int(b.idle[i])
		}
		if b.best >= 0 && cost+spines+ahead >= b.best {
			return
		}
		if b.refused(some[:c], some[c], common) {
			continue
		}
		for at, w := range b.of(some[c]) {
			next[at] = common[at] & w
		}
		b.chosen = append(b.chosen, some[c])
		b.visit(some[c+1:], cost+b.gpus*int(b.idle[some[c]]))
		b.chosen = b.chosen[:depth]
	}
}

// narrow leaves of the spines those that so many leaves reach, and of the
// leaves those that reach enough such spines; nil: too few.
func (b *bicliques) narrow(some []int32, common []uint64, left int) []int32 {
	for {
		reach, many, kept := zeroedSet(b.reach, b.words), zeroedSet(b.many, b.words*(left+1)), some[:0]
		for _, i := range some {
			n := 0
			for at, w := range b.of(i) {
				reach[at] = common[at] & w
				n += bits.OnesCount64(reach[at])
			}
			if n < b.shape.s {
				continue
			}
			kept = append(kept, i)
			// many[k] is the spines that more than k leaves reach
			for at, w := range reach {
				for k := 0; k < left && w != 0; k++ {
					m := &many[k*b.words+at]
					*m, w = *m|w, *m&w
				}
			}
		}
		b.reach, b.many = reach, many
		spines := many[(left-1)*b.words : left*b.words]
		if len(kept) < left || count(spines) < b.shape.s {
			return nil
		}
		done := len(kept) == len(some) && slices.Equal(spines, common)
		some = kept
		if copy(common, spines); done {
			return some
		}
	}
}

// refused says that a leaf is not better than one that was not chosen: what it
// could give was looked at.
func (b *bicliques) refused(before []int32, i int32, common []uint64) bool {
	for _, other := range before {
		more := false
		for at, w := range b.of(i) {
			more = more || w&common[at]&^b.of(other)[at] != 0
		}
		if !more {
			return true
		}
	}
	return false
}

// virtualClos makes the placement of the best biclique.
func (s *State) virtualClos(b *bicliques) Placement {
	want := b.found
	p := Placement{Stage: 2, L: want.l, S: want.s, Map: Identity[int](want.s), Cost: b.best}
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
