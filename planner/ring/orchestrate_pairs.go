package ring

import (
	"cmp"
	"slices"
)

// With two nodes under a ToR an inner set is a pair of groups, and a rank of it
// costs nothing where both have their node under the same ToR: they meet there.
// What minimises cross-ToR flows is the most meetings of so many groups. A
// program goes along the ToRs, both sub-lines in step: of each it knows how far
// its open group is, and whether that has its partner. Groups have a worth in
// meetings; the worth at which there are enough of them is searched for.

// half is how far one sub-line is: how many ranks the open group has (0: no group
// is open), how many places were passed since its last node, and whether the hop
// to that node had the full length of K, which matters where fibres share a bundle.
type half struct {
	rank, gap uint8
	long      bool
}

// step is the half after a place that is taken for the group, or passed.
func (h half) step(take bool, j *Job) (next half, closes, ok bool) {
	switch {
	case !take && h.rank == 0:
		return h, false, true
	case !take:
		h.gap++
		return h, false, int(h.gap) < j.K
	}
	long := h.rank > 0 && int(h.gap)+1 == j.K
	if long && h.long && j.Shared {
		return h, false, false
	}
	if int(h.rank)+1 == j.Size {
		return half{}, true, true
	}
	return half{rank: h.rank + 1, long: long && j.Shared}, false, true
}

// both is the position in both sub-lines, and which open group has its partner.
type both struct {
	halves  [2]half
	partner uint8
}

// Bits of partner.
const (
	firstHas  = 1 << 0
	secondHas = 1 << 1
	eachOther = 1 << 2
)

// move is one way through one ToR.
type move struct {
	from, to uint16
	groups   uint8 // that end here
	meets    uint8 // 1: the ranks taken here meet
	take     uint8 // which sub-lines take their node
}

// step is where a move leads; ok: there is such a move.
func (b both) step(take [2]bool, meet bool, j *Job) (next both, mv move, ok bool) {
	if meet && (!take[0] || !take[1] || b.halves[0].rank != b.halves[1].rank || b.partner != 0 && b.partner&eachOther == 0) {
		return both{}, move{}, false
	}
	next.partner = b.partner
	if meet {
		next.partner = firstHas | secondHas | eachOther
		mv.meets = 1
	}
	for i := range take {
		var closes bool
		if next.halves[i], closes, ok = b.halves[i].step(take[i], j); !ok {
			return both{}, move{}, false
		}
		if take[i] {
			mv.take |= 1 << i
		}
		if closes {
			mv.groups++
			next.partner &^= 1<<i | eachOther // the other keeps that it has had one
		}
	}
	return next, mv, true
}

// maxPairMoves bounds the moves of one way through all domains, of which some
// twenty are looked for. chosen: seconds, and some hundred megabytes.
const maxPairMoves = 64 << 20

// pairProgram is the program of a job: its states and, by which sub-lines have a
// usable node under a ToR, its moves.
type pairProgram struct {
	states int
	moves  [4][]move
}

// newPairProgram finds the states that can be reached. nil: there are too many.
func newPairProgram(j *Job) *pairProgram {
	p := &pairProgram{}
	known := map[both]uint16{{}: 0}
	list := []both{{}}
	for at := 0; at < len(list); at++ {
		for taken := range 8 {
			take := [2]bool{taken&1 != 0, taken&2 != 0}
			next, mv, ok := list[at].step(take, taken&4 != 0, j)
			if !ok {
				continue
			}
			id, seen := known[next]
			if !seen {
				if len(list) > 1<<16-1 {
					return nil
				}
				id = uint16(len(list))
				known[next] = id
				list = append(list, next)
			}
			mv.from, mv.to = uint16(at), id
			for usable := range p.moves {
				if taken&3&^usable == 0 {
					p.moves[usable] = append(p.moves[usable], mv)
				}
			}
		}
	}
	p.states = len(list)
	if len(p.moves[3]) > 1<<16 {
		return nil
	}
	return p
}

// rate is the worth of a group in meetings: a fraction.
type rate struct{ num, den int64 }

// of is what groups and meetings are worth.
func (w rate) of(groups, meets int) int64 { return int64(groups)*w.num + int64(meets)*w.den }

// mostWorth is more than all meetings that one group may cost.
var mostWorth = rate{1 << 20, 1}

// never is the key of a state that cannot be reached, and keyShift leaves room
// for a number of groups below a score.
const (
	never    = -1 << 62
	keyShift = 20
)

// best goes along a domain and finds the groups and meetings of the best way at a
// worth; of equal ones that with the most groups, or with the fewest. trail, where
// wanted, gets the move into each state at each ToR.
func (p *pairProgram) best(d *domain, w rate, fewest bool, trail []uint16) (groups, meets int) {
	sign := int64(1)
	if fewest {
		sign = -1
	}
	var gain [3][2]int64
	for g := range gain {
		for m := range gain[g] {
			gain[g][m] = w.of(g, m)<<keyShift + sign*int64(g)
		}
	}
	key, next := make([]int64, p.states), make([]int64, p.states)
	for i := range key {
		key[i] = never
	}
	key[0] = 0
	for t := range d.tors {
		for i := range next {
			next[i] = never
		}
		moves := p.moves[p.usable(d, t)]
		for k := range moves {
			mv := &moves[k]
			v := key[mv.from]
			if v == never {
				continue
			}
			if v += gain[mv.groups][mv.meets]; v > next[mv.to] {
				next[mv.to] = v
				if trail != nil {
					trail[t*p.states+int(mv.to)] = uint16(k)
				}
			}
		}
		key, next = next, key
	}
	count := sign * (key[0] << (64 - keyShift) >> (64 - keyShift))
	score := (key[0] - sign*count) >> keyShift
	return int(count), int((score - count*w.num) / w.den)
}

func (p *pairProgram) usable(d *domain, tor int) (mask int) {
	for i := range d.subs {
		if d.subs[i].ok[tor] {
			mask |= 1 << i
		}
	}
	return mask
}

// pair is two groups that meet, or one by itself.
type pair struct {
	groups []placed
	meets  int
}

// pairs are the groups of a way through a domain.
func (j *Job) pairs(d *domain, way []move) (out []pair) {
	var open [2]*placed
	var of [2]int // its pair in out; -1: none yet
	for t, mv := range way {
		for i := range open {
			if mv.take>>i&1 == 0 {
				continue
			}
			if open[i] == nil {
				open[i], of[i] = &placed{at: make([]int32, 0, j.Size)}, -1
			}
			open[i].at = append(open[i].at, d.base[i]+int32(t))
		}
		if mv.meets != 0 {
			if of[0] < 0 {
				of[0], of[1] = len(out), len(out)
				out = append(out, pair{})
			}
			out[of[0]].meets++
		}
		for i := range open {
			if open[i] == nil || len(open[i].at) < j.Size {
				continue
			}
			if of[i] < 0 {
				of[i] = len(out)
				out = append(out, pair{})
			}
			out[of[i]].groups = append(out[of[i]].groups, *open[i])
			open[i] = nil
		}
	}
	return out
}

// pairUp places a job with two nodes under a ToR, within its domains, with the
// fewest cross-ToR flows; least: no placement within domains has fewer, and what
// was found seldom more. nil: not so many groups fit, or the program would be too
// large.
//
// Of the placements that are best at some worth of a group, two with more groups
// and with fewer than are wanted come nearer to each other until none is better
// at the worth at which they are equal. So is every mixture of them.
func (j *Job) pairUp(domains []domain, want int) (groups []placed, least int) {
	p := newPairProgram(j)
	if p == nil || len(p.moves[3])*len(j.racks.Domain) > maxPairMoves {
		return nil, 0
	}
	at := func(w rate) (g, m int) {
		for i := range domains {
			dg, dm := p.best(&domains[i], w, false, nil)
			g, m = g+dg, m+dm
		}
		return g, m
	}
	highG, highM := at(mostWorth)
	if highG < want {
		return nil, 0
	}
	lowG, lowM := 0, 0
	w := mostWorth
	score := w.of(highG, highM) // of the best at w
	for highG > want && lowG < want {
		w = rate{int64(lowM - highM), int64(highG - lowG)}
		g, m := at(w)
		if score = w.of(g, m); score == w.of(lowG, lowM) {
			break
		}
		if g >= want {
			highG, highM = g, m
		} else {
			lowG, lowM = g, m
		}
	}
	ways, total := make([][]move, len(domains)), 0
	var list []detour
	for i := range domains {
		ways[i] = p.way(&domains[i], w, true)
		for _, mv := range ways[i] {
			total += int(mv.groups)
		}
		list = append(list, p.detours(&domains[i], ways[i], p.way(&domains[i], w, false))...)
	}
	swap(list, want-total)
	var all []pair
	for i := range domains {
		all = append(all, j.pairs(&domains[i], ways[i])...)
	}
	// No placement of want groups scores more at that worth.
	meets := int((score - int64(want)*w.num) / w.den)
	return j.choose(all, want), max(0, 2*(j.Size*(want/2)-meets))
}

// choose takes the wanted groups from pairs, those that meet most first; groups
// by themselves come last.
func (j *Job) choose(list []pair, want int) (out []placed) {
	slices.SortStableFunc(list, func(a, b pair) int {
		return cmp.Or(cmp.Compare(len(b.groups), len(a.groups)), cmp.Compare(b.meets, a.meets))
	})
	var alone []placed
	for _, x := range list {
		if len(x.groups) == 2 && len(out)+2 <= want {
			aligned := x.meets == j.Size
			x.groups[0].aligned, x.groups[1].aligned = aligned, aligned
			out = append(out, x.groups...)
			continue
		}
		alone = append(alone, x.groups...)
	}
	return append(out, alone[:want-len(out)]...)
}
