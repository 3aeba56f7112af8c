package isolate

import (
	"slices"

	"ringlight/mzi/detmath"
)

// optics.go is stages 2 and 3 with optics: which leaves hold how many virtual
// leaves, which spines how many virtual spines, and then a weave of circuits
// ([VCLOS] A.3 without its ILP, and with any number of virtual leaves on a
// leaf and any s that T divides).

// maxSteps bounds the work of one decision; a step is a circuit tried or a
// way looked at. chosen: about 10 ms; one decision in a hundred on 2,048 GPUs
// takes more than a tenth of it.
const maxSteps = 100_000

// optical is one decision.
type optical struct {
	*State
	need int    // servers
	w    weaver // has the steps, of all that was tried
	fill filler
}

// overOptics tries two leaves joined directly, then one spine, then several.
func (s *State) overOptics(need int) (Placement, bool) {
	if p, ok := s.direct(need); ok {
		return p, true
	}
	o := &optical{State: s, need: need}
	if p, ok := o.oneSpine(); ok {
		p.Stage = 2
		return p, true
	}
	p, ok := o.severalSpines()
	p.Stage, s.steps = 3, o.w.steps
	return p, ok
}

// share is how many virtual leaves or spines one leaf or spine holds.
type share struct{ at, of int }

// leafOrders are the orders in which leaves are filled: fewest idle servers,
// most idle servers, most free ports first.
func (o *optical) leafOrders() [][]int32 {
	var leaves []int32
	for n, idle := range o.idle {
		if idle > 0 && o.leaf.row[n] > 0 {
			leaves = append(leaves, int32(n))
		}
	}
	few, many := byLeast(leaves, func(n int32) int32 { return o.idle[n] }), byLeast(leaves, func(n int32) int32 { return -o.idle[n] })
	return [][]int32{few, many, byLeast(leaves, func(n int32) int32 { return -o.leaf.row[n] })}
}

// spineOrders are the orders in which spines are filled: the fullest and the
// emptiest first.
func (o *optical) spineOrders() [][]int32 {
	spines := Identity[int32](o.core.Spines())
	return [][]int32{byLeast(spines, func(m int32) int32 { return o.spine.row[m] }), byLeast(spines, func(m int32) int32 { return -o.spine.row[m] })}
}

// leavesAt is how many virtual leaves of s GPUs a leaf has room for.
func (o *optical) leavesAt(n, s int) int {
	return min(int(o.idle[n])*o.core.GPUsPerServer, int(o.leaf.row[n])) / s
}

// dealSpines gives virtual spines to spines in order, filled one after the
// other or all by turns.
func (o *optical) dealSpines(want shape, order []int32, byTurns bool) []share {
	of := make([]int, len(order))
	for left := want.s; left > 0; {
		before := left
		for i, m := range order {
			take := min(int(o.spine.row[m])/want.l-of[i], left)
			if byTurns {
				take = min(take, 1)
			}
			of[i] += take
			left -= take
		}
		if left == before {
			return nil
		}
	}
	var out []share
	for i, m := range order {
		if of[i] > 0 {
			out = append(out, share{int(m), of[i]})
		}
	}
	return out
}

// oneSpine is a Clos over the fullest spine that will do, of which much is
// tried: the next one may be one that no job has.
func (o *optical) oneSpine() (Placement, bool) {
	t := o.core.GPUsPerServer
	want := shape{o.need, t}
	orders := o.leafOrders()
	r := detmath.Random(1)
	order := slices.Clone(orders[0])
	for _, m := range o.spineOrders()[0] {
		if int(o.spine.row[m]) < o.need*t {
			continue
		}
		for try := range len(orders) + triesByChance {
			leaves := order
			if try < len(orders) {
				leaves = orders[try]
			} else {
				shuffle(&r, order)
			}
			if p, ok := o.weave(want, leaves, []share{{int(m), t}}); ok {
				return p, true
			}
		}
	}
	return Placement{}, false
}

// severalSpines tries the few ways that mostly do in every shape, and then
// orders of chance: first with as few spines as will do, as one that no job
// has is all that the largest jobs can use, then with many. At last all ways
// that there are.
func (o *optical) severalSpines() (Placement, bool) {
	shapes := o.core.shapes(o.need * o.core.GPUsPerServer)
	leaves, spines := o.leafOrders(), o.spineOrders()
	r := detmath.Random(1)
	order, by := slices.Clone(leaves[0]), slices.Clone(spines[0])
	for _, byTurns := range []bool{false, true} {
		for _, want := range shapes {
			for _, spines := range spines {
				on := o.dealSpines(want, spines, byTurns)
				for _, leaves := range leaves {
					if p, ok := o.weave(want, leaves, on); ok {
						return p, true
					}
				}
			}
		}
		for try := range triesByChance {
			for _, want := range shapes {
				shuffle(&r, order)
				if try > 0 {
					shuffle(&r, by)
				}
				if p, ok := o.weave(want, order, o.dealSpines(want, by, byTurns)); ok {
					return p, true
				}
			}
		}
	}
	return o.everyWay(shapes)
}

func shuffle(r *detmath.Random, list []int32) {
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// triesByChance of each spine or shape; chosen: more of them find hardly more.
const triesByChance = 10

// weave finds leaves in this order and the circuits to these spines.
func (o *optical) weave(want shape, leaves []int32, on []share) (Placement, bool) {
	if on == nil || o.w.steps > maxSteps {
		return Placement{}, false
	}
	at := o.dealLeaves(want, leaves, on)
	if at == nil || !o.lay(at, on) || !o.w.run(0) {
		return Placement{}, false
	}
	return o.placement(want, at, on), true
}

// lay sets out the colouring of the circuits between shares; false: there is
// none at first sight.
func (o *optical) lay(at, on []share) bool {
	var leaves []int
	var fars []End
	o.w.pairs = o.w.pairs[:0]
	for _, n := range at {
		leaves = append(leaves, n.at)
		for _, m := range on {
			o.w.pairs = append(o.w.pairs, int32(n.of*m.of))
		}
	}
	for _, m := range on {
		fars = append(fars, End{Spine: true, Number: m.at})
	}
	o.layOut(leaves, fars)
	return o.w.deficit() == 0
}

// layOut does, for pairs of leaves and spines, or leaves, that are counted.
func (o *optical) layOut(leaves []int, fars []End) {
	colours, w := o.leaf.columns, &o.w
	w.a, w.b = w.a[:0], w.b[:0]
	for _, n := range leaves {
		w.a = append(w.a, o.leaf.free[n*colours:(n+1)*colours]...)
	}
	for _, e := range fars {
		w.b = append(w.b, o.side(e).free[e.Number*colours:(e.Number+1)*colours]...)
	}
	w.reset(colours)
	w.steps += 1 + len(w.pairs)*colours/64 + w.edges/8 // what this costs
}

// placement gives every pair of a virtual leaf and a virtual spine one of the
// circuits between their leaf and spine.
func (o *optical) placement(want shape, at, on []share) Placement {
	p := Placement{L: want.l, S: want.s, Map: Identity[int](want.s)}
	colours := make([][]int, len(at)*len(on)) // of a pair: the switches of its circuits
	for e, k := range o.w.colour {
		pair := int(o.w.leaf[e])*len(on) + int(o.w.spine[e])
		colours[pair] = append(colours[pair], int(k))
	}
	var wishes []wish
	for i, n := range at {
		p.Servers = o.idleServers(p.Servers, n.at, n.of*want.s/o.core.GPUsPerServer)
		p.Cost += n.of * o.core.GPUsPerServer * int(o.idle[n.at])
		for range n.of {
			for j, m := range on {
				pair := i*len(on) + j
				for range m.of {
					wishes = append(wishes, wish{at: colours[pair][0], leaf: n.at, b: End{Spine: true, Number: m.at}})
					colours[pair] = colours[pair][1:]
				}
			}
		}
	}
	for _, m := range on {
		p.Cost += m.of * int(o.spine.row[m.at])
	}
	p.Circuits = o.ports(wishes)
	for n, c := range p.Circuits {
		p.Links = append(p.Links, Link{c.A.Number, c.B.Number, n})
	}
	return p
}
