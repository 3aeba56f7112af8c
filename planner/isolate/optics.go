package isolate

import "slices"

// optics.go is stages 2 and 3 with optics: which leaves hold how many virtual
// leaves, which spines how many virtual spines, and then a weave of circuits
// ([VCLOS] A.3 without its ILP, and with any number of virtual leaves on a
// leaf and any s that T divides).

// overOptics tries two leaves joined directly, then one spine, then several.
func (s *State) overOptics(need int) (Placement, bool) {
	if p, ok := s.direct(need); ok {
		return p, true
	}
	o := s.newOptical(need)
	if p, ok := o.oneSpine(); ok {
		return p, true
	}
	for _, shape := range s.core.shapes(need * s.core.GPUsPerServer) {
		for _, leaves := range o.leafOrders() {
			at := o.dealLeaves(shape, leaves)
			if at == nil {
				continue
			}
			for way := range 4 {
				on := o.dealSpines(shape, way&1 != 0, way&2 != 0)
				if on == nil {
					continue
				}
				if p, ok := o.weave(shape, at, on); ok {
					p.Stage = 3
					return p, true
				}
			}
		}
	}
	return Placement{}, false
}

type optical struct {
	*State
	need int // servers
}

func (s *State) newOptical(need int) *optical { return &optical{s, need} }

// share is how many virtual leaves or spines one leaf or spine holds.
type share struct{ at, of int }

// leafOrders are the orders in which leaves are tried: fewest idle servers,
// most idle servers, most free ports first.
func (o *optical) leafOrders() [][]int32 {
	var leaves []int32
	for n, idle := range o.idle {
		if idle > 0 {
			leaves = append(leaves, int32(n))
		}
	}
	few, many, ports := leaves, slices.Clone(leaves), slices.Clone(leaves)
	byLeast(few, func(n int32) int32 { return o.idle[n] })
	byLeast(many, func(n int32) int32 { return -o.idle[n] })
	byLeast(ports, func(n int32) int32 { return -o.leaf.row[n] })
	return [][]int32{few, many, ports}
}

// dealLeaves fills leaves in order; nil: there is not room enough.
func (o *optical) dealLeaves(want shape, order []int32) []share {
	var out []share
	left := want.l
	for _, n := range order {
		most := min(int(o.idle[n])*o.core.GPUsPerServer, int(o.leaf.row[n])) / want.s
		if take := min(most, left); take > 0 {
			out = append(out, share{int(n), take})
			left -= take
		}
	}
	if left > 0 {
		return nil
	}
	return out
}

// dealSpines gives virtual spines to spines, the emptiest or the fullest
// first, filled one after the other or all by turns.
func (o *optical) dealSpines(want shape, fullest, packed bool) []share {
	order := make([]int32, o.core.Spines())
	for m := range order {
		order[m] = int32(m)
	}
	sign := int32(-1)
	if fullest {
		sign = 1
	}
	byLeast(order, func(m int32) int32 { return sign * o.spine.row[m] })
	of := make([]int, len(order))
	left := want.s
	for left > 0 {
		before := left
		for i, m := range order {
			most := int(o.spine.row[m])/want.l - of[i]
			take := min(most, left)
			if !packed {
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

// oneSpine is a Clos over the fullest spine that has ports for all GPUs.
func (o *optical) oneSpine() (Placement, bool) {
	t := o.core.GPUsPerServer
	want := shape{o.need, t}
	spine := -1
	for m, free := range o.spine.row {
		if int(free) >= o.need*t && (spine < 0 || free < o.spine.row[spine]) {
			spine = m
		}
	}
	if spine < 0 {
		return Placement{}, false
	}
	for _, leaves := range o.leafOrders() {
		if at := o.dealLeaves(want, leaves); at != nil {
			if p, ok := o.weave(want, at, []share{{spine, t}}); ok {
				p.Stage = 2
				return p, true
			}
		}
	}
	return Placement{}, false
}

// weave finds the circuits for shares of leaves and spines.
func (o *optical) weave(want shape, at, on []share) (Placement, bool) {
	colours := o.leaf.columns
	var a, b, pairs []int32
	for _, n := range at {
		a = append(a, o.leaf.free[n.at*colours:(n.at+1)*colours]...)
		for _, m := range on {
			pairs = append(pairs, int32(n.of*m.of))
		}
	}
	for _, m := range on {
		b = append(b, o.spine.free[m.at*colours:(m.at+1)*colours]...)
	}
	w := newWeaver(colours, a, b, pairs)
	if !w.run() {
		return Placement{}, false
	}
	return o.placement(want, at, on, w), true
}

// placement gives every pair of a virtual leaf and a virtual spine one of the
// circuits between their leaf and spine.
func (o *optical) placement(want shape, at, on []share, w *weaver) Placement {
	p := Placement{L: want.l, S: want.s, Map: identity(want.s)}
	colours := make([][]int, len(at)*len(on)) // of a pair: the switches of its circuits
	for e, k := range w.colour {
		pair := int(w.leaf[e])*len(on) + int(w.spine[e])
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
					wishes = append(wishes, wish{colours[pair][0], n.at, End{Spine: true, Number: m.at}})
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
