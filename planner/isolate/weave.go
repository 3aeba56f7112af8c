package isolate

import "ringlight/mzi/detmath"

// weave.go finds the optical switch of every circuit between some leaves and
// spines: an edge colouring of a bipartite multigraph in which colour k may be
// at leaf n as often as the leaf has free ports at switch k, and at spine m
// likewise. Only free ports exist here. It goes by ejection chains, as
// wiring.Rewire does: a circuit takes the cheapest switch, pushing out at most
// one other at each end, which then looks for another place and may not come
// back for a few steps.

// The weaver's constants, chosen by runs of random jobs on the default core
// and on 64 leaves, 32 spines and 32 switches.
const (
	stepsAnEdge = 4 // of a weave, and extraSteps; most need little more than one
	extraSteps  = 200
	pushPrice   = 1000 // what pushing one circuit out costs
	portPrice   = 16   // what one free port more at a switch is worth
	chancePrice = 8    // below what is drawn on top
	holdFirst   = 3    // steps for which a circuit that was pushed out stays away
	holdSpan    = 8
)

// weaver is one colouring after the other in the same memory.
type weaver struct {
	colours      int
	a, b         []int32 // free ports by leaf or spine and colour, of the chosen
	pairs        []int32 // edges by leaf and spine
	leaf, spine  []int32 // of an edge
	colour       []int32 // -1: missing
	first        []int32 // edge by leaf and colour, then by spine and colour; -1: none
	next         []int32 // edge with the same leaf and colour as this one, then spine and colour
	held         []int32 // colour that an edge may not have
	until        []int32 // this step
	missing      []int32
	sumA, sumB   []int32 // of colours
	edges, steps int
	rng          detmath.Random
}

// reset takes free ports by leaf and colour and by spine and colour, and how
// many circuits each pair wants. The caller has filled them.
func (w *weaver) reset(colours int) {
	w.colours, w.rng, w.edges = colours, 1, 0
	spines := len(w.b) / colours
	w.leaf, w.spine = w.leaf[:0], w.spine[:0]
	for pair, n := range w.pairs {
		for range n {
			w.leaf = append(w.leaf, int32(pair/spines))
			w.spine = append(w.spine, int32(pair%spines))
		}
	}
	w.edges = len(w.leaf)
	w.missing, w.colour = w.missing[:0], w.colour[:0]
	w.held, w.until = w.held[:0], w.until[:0]
	for e := range w.edges {
		w.missing = append(w.missing, int32(w.edges-1-e))
		w.colour = append(w.colour, -1)
		w.held, w.until = append(w.held, -1), append(w.until, 0)
	}
	w.next = append(append(w.next[:0], w.held...), w.held...)
	w.first = w.first[:0]
	for range len(w.a) + len(w.b) {
		w.first = append(w.first, -1)
	}
}

// common is how many ports two lists have in common.
func common(x, y []int32) (n int) {
	for k := range x {
		n += int(min(x[k], y[k]))
	}
	return n
}

// deficit is how many circuits all, a leaf, a spine or a pair alone have more than
// ports at switches where the other side has some.
func (w *weaver) deficit() int {
	leaves, spines := len(w.a)/w.colours, len(w.b)/w.colours
	w.sumA, w.sumB = append(w.sumA[:0], w.a[:w.colours]...), append(w.sumB[:0], w.b[:w.colours]...)
	for i, n := range w.a[w.colours:] {
		w.sumA[i%w.colours] += n
	}
	for i, n := range w.b[w.colours:] {
		w.sumB[i%w.colours] += n
	}
	less := max(0, w.edges-common(w.sumA, w.sumB))
	at := func(x []int32, n int) []int32 { return x[n*w.colours : (n+1)*w.colours] }
	for n := range leaves {
		want := 0
		for m := range spines {
			pair := int(w.pairs[n*spines+m])
			less = max(less, pair-common(at(w.a, n), at(w.b, m)))
			want += pair
		}
		less = max(less, want-common(at(w.a, n), w.sumB))
	}
	for m := range spines {
		want := 0
		for n := range leaves {
			want += int(w.pairs[n*spines+m])
		}
		less = max(less, want-common(at(w.b, m), w.sumA))
	}
	return less
}

// run colours all edges but so many, or says that it could not.
func (w *weaver) run(spare int) bool {
	for last := w.steps + stepsAnEdge*w.edges + extraSteps; len(w.missing) > spare; {
		if w.steps++; w.steps > last {
			return false
		}
		end := len(w.missing) - 1
		at := end
		if w.steps%4 == 0 {
			at = w.rng.Below(end + 1)
		}
		e := w.missing[at]
		w.missing[at] = w.missing[end]
		w.missing = w.missing[:end]
		if !w.insert(e) { // another first
			w.missing = append(w.missing, e)
			w.missing[0], w.missing[end] = e, w.missing[0]
		}
	}
	return true
}

// insert gives an edge the cheapest colour; false: it may have none now.
func (w *weaver) insert(e int32) bool {
	n, m := w.ends(e, 0)
	a, b := w.a[n:n+w.colours], w.b[m:m+w.colours]
	mineA := w.first[n : n+w.colours]
	mineB := w.first[len(w.a)+m : len(w.a)+m+w.colours]
	best, at := int32(1<<30), -1
	held := int32(-1)
	if int(w.until[e]) > w.steps {
		held = w.held[e]
	}
	chance := uint64(0)
	for k := range a {
		if k&15 == 0 {
			chance = w.rng.Next()
		}
		cost := -portPrice*(a[k]+b[k]) + int32(chance%chancePrice)
		chance >>= 4
		if a[k] == 0 {
			if cost += pushPrice; mineA[k] < 0 {
				continue
			}
		}
		if b[k] == 0 {
			if cost += pushPrice; mineB[k] < 0 {
				continue
			}
		}
		if cost < best && (int32(k) != held || cost < pushPrice/2) {
			best, at = cost, k
		}
	}
	if at < 0 {
		return false
	}
	if a[at] == 0 {
		w.push(mineA[at], 0)
	}
	if b[at] == 0 {
		w.push(mineB[at], w.edges)
	}
	w.put(e, int32(at))
	return true
}

// push takes one edge of a list out.
func (w *weaver) push(e int32, side int) {
	for w.next[side+int(e)] >= 0 && w.rng.Below(2) == 0 {
		e = w.next[side+int(e)]
	}
	w.held[e], w.until[e] = w.colour[e], int32(w.steps+holdFirst+w.rng.Below(holdSpan))
	w.drop(e)
	w.missing = append(w.missing, e)
}

func (w *weaver) put(e, k int32) {
	n, m := w.ends(e, k)
	w.colour[e] = k
	w.a[n]--
	w.b[m]--
	w.next[e], w.first[n] = w.first[n], e
	w.next[w.edges+int(e)], w.first[len(w.a)+m] = w.first[len(w.a)+m], e
}

func (w *weaver) drop(e int32) {
	n, m := w.ends(e, w.colour[e])
	w.colour[e] = -1
	w.a[n]++
	w.b[m]++
	w.unlink(&w.first[n], 0, e)
	w.unlink(&w.first[len(w.a)+m], w.edges, e)
}

func (w *weaver) unlink(at *int32, side int, e int32) {
	for *at != e {
		at = &w.next[side+int(*at)]
	}
	*at = w.next[side+int(e)]
}

// ends are where an edge of a colour counts.
func (w *weaver) ends(e, k int32) (n, m int) {
	return int(w.leaf[e])*w.colours + int(k), int(w.spine[e])*w.colours + int(k)
}

// exact colours all edges but so many by trying everything, within so many steps.
// Edges of one pair take their colours in order, those without one last.
func (w *weaver) exact(steps, spare int) (found, complete bool) {
	last := w.steps + steps
	var try func(e int) bool
	try = func(e int) bool {
		if e == w.edges {
			return true
		}
		from := int32(0)
		if e > 0 && w.leaf[e] == w.leaf[e-1] && w.spine[e] == w.spine[e-1] {
			from = w.colour[e-1]
		}
		for k := from; k < int32(w.colours) && w.steps <= last; k++ {
			n, m := w.ends(int32(e), k)
			if w.a[n] == 0 || w.b[m] == 0 {
				continue
			}
			w.steps++
			w.a[n]--
			w.b[m]--
			if w.colour[e] = k; try(e + 1) {
				return true
			}
			w.a[n]++
			w.b[m]++
		}
		if spare == 0 || w.steps > last {
			return false
		}
		spare--
		w.colour[e] = int32(w.colours)
		if try(e + 1) {
			return true
		}
		spare++
		return false
	}
	found = try(0)
	return found, found || w.steps <= last
}
