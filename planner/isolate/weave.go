package isolate

import "ringlight/mzi/detmath"

// weave.go finds the optical switch of every circuit between some leaves and
// spines: an edge colouring of a bipartite multigraph in which colour k may be
// at leaf n as often as the leaf has free ports at switch k, and at spine m
// likewise. Only free ports exist here. It goes by ejection chains, as
// wiring.Rewire does: a circuit takes the cheapest switch, pushing out at most
// one other at each end, which then looks for another place and may not come
// back for a few steps.

// The weaver's constants, chosen by runs of random jobs on the default core.
const (
	stepsAnEdge = 12 // of a weave, and extraSteps
	extraSteps  = 400
	pushPrice   = 1000 // what pushing one circuit out costs
	holdFirst   = 3    // steps for which a circuit that was pushed out stays away
	holdSpan    = 8
	portPrice   = 16 // what a free port less at a switch costs
	chancePrice = 8  // below what is drawn on top
)

type weaver struct {
	colours  int
	a, b     []int32 // free ports by leaf or spine and colour, of the chosen
	leaf     []int32 // of an edge
	spine    []int32
	colour   []int32 // -1: missing
	on       [][]int32
	held     []int32 // of an edge and colour: not before this step
	missing  []int32
	steps    int
	rng      detmath.Random
	lastStep int
}

// newWeaver takes free ports by leaf and colour and by spine and colour, and
// how many circuits each pair wants.
func newWeaver(colours int, a, b []int32, want []int32) *weaver {
	w := &weaver{colours: colours, a: append([]int32(nil), a...), b: append([]int32(nil), b...), rng: 1}
	spines := len(b) / colours
	w.on = make([][]int32, len(a)+len(b))
	for pair, n := range want {
		for range n {
			w.leaf = append(w.leaf, int32(pair/spines))
			w.spine = append(w.spine, int32(pair%spines))
			w.colour = append(w.colour, -1)
		}
	}
	w.held = make([]int32, len(w.leaf)*colours)
	for e := range w.leaf {
		w.missing = append(w.missing, int32(len(w.leaf)-1-e))
	}
	w.lastStep = stepsAnEdge*len(w.leaf) + extraSteps
	return w
}

// run colours all edges, or says that it could not.
func (w *weaver) run() bool {
	for len(w.missing) > 0 {
		if w.steps++; w.steps > w.lastStep {
			return false
		}
		at := len(w.missing) - 1
		if w.steps%4 == 0 {
			at = w.rng.Below(len(w.missing))
		}
		e := w.missing[at]
		w.missing[at] = w.missing[len(w.missing)-1]
		w.missing = w.missing[:len(w.missing)-1]
		if !w.insert(e) {
			w.missing = append(w.missing, e)
			w.missing[0], w.missing[len(w.missing)-1] = w.missing[len(w.missing)-1], w.missing[0]
		}
	}
	return true
}

func (w *weaver) insert(e int32) bool {
	n, m := int(w.leaf[e])*w.colours, int(w.spine[e])*w.colours
	best, at := int32(1<<30), -1
	for k := range w.colours {
		a, b := w.a[n+k], w.b[m+k]
		cost := -portPrice*(a+b) + int32(w.rng.Below(chancePrice))
		if a == 0 {
			if len(w.on[n+k]) == 0 {
				continue
			}
			cost += pushPrice
		}
		if b == 0 {
			if len(w.on[len(w.a)+m+k]) == 0 {
				continue
			}
			cost += pushPrice
		}
		if cost < best && (a > 0 && b > 0 || int(w.held[int(e)*w.colours+k]) <= w.steps) {
			best, at = cost, k
		}
	}
	if at < 0 {
		return false
	}
	if w.a[n+at] == 0 {
		w.push(w.on[n+at])
	}
	if w.b[m+at] == 0 {
		w.push(w.on[len(w.a)+m+at])
	}
	w.put(e, int32(at))
	return true
}

func (w *weaver) push(among []int32) {
	e := among[w.rng.Below(len(among))]
	k := w.colour[e]
	w.drop(e)
	w.held[int(e)*w.colours+int(k)] = int32(w.steps + holdFirst + w.rng.Below(holdSpan))
	w.missing = append(w.missing, e)
}

func (w *weaver) put(e, k int32) {
	n, m := w.ends(e, k)
	w.colour[e] = k
	w.a[n]--
	w.b[m]--
	w.on[n] = append(w.on[n], e)
	w.on[len(w.a)+m] = append(w.on[len(w.a)+m], e)
}

func (w *weaver) drop(e int32) {
	n, m := w.ends(e, w.colour[e])
	w.colour[e] = -1
	w.a[n]++
	w.b[m]++
	for _, at := range [...]int{n, len(w.a) + m} {
		list := w.on[at]
		for i, other := range list {
			if other == e {
				list[i] = list[len(list)-1]
				w.on[at] = list[:len(list)-1]
				break
			}
		}
	}
}

func (w *weaver) ends(e, k int32) (n, m int) {
	return int(w.leaf[e])*w.colours + int(k), int(w.spine[e])*w.colours + int(k)
}
