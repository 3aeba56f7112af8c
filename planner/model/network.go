package model

import (
	"slices"

	"ringlight/planner/topo"
)

// unitLoad is one byte on a link; rings spread theirs.
const unitLoad = 1 << 12

// Network is what carries a job, as loads of its links in unitLoad a byte.
type Network interface {
	Links() int
	// Ring adds a byte from each to the next, the last to the first.
	Ring(order []int, load []int64)
	// Send adds a byte.
	Send(from, to int, load []int64)
}

// Switch is a network that is never short but at the servers: full bisection.
type Switch struct{ Servers int }

// Links are those to the switch, then those from it.
func (s Switch) Links() int { return 2 * s.Servers }

// Ring loads each member's two links.
func (s Switch) Ring(order []int, load []int64) {
	for i, from := range order {
		s.Send(from, order[(i+1)%len(order)], load)
	}
}

// Send loads the sender's and the receiver's link.
func (s Switch) Send(from, to int, load []int64) {
	load[from] += unitLoad
	load[s.Servers+to] += unitLoad
}

// direct is a topology, with a way between any two servers.
type direct struct {
	t     *topo.Topology
	ways  *topo.Routes
	index []int32 // of each pair of servers: which link, or -1
	wide  []int64
	rings map[int][]int // by group's first server: rings
}

// newDirect lays ways for every pair on a topology.
func newDirect(t *topo.Topology) *direct {
	d := &direct{t: t, ways: t.Ways(), index: slices.Repeat([]int32{-1}, t.Servers*t.Servers), rings: map[int][]int{}}
	add := func(a, b, n int) {
		d.index[a*t.Servers+b] = int32(len(d.wide))
		d.wide = append(d.wide, int64(n))
	}
	for _, l := range t.Links() {
		if add(l.A, l.B, l.Count); t.Bidirectional {
			add(l.B, l.A, l.Count)
		}
	}
	for i, r := range t.Rings {
		first := slices.Min(r.Order)
		d.rings[first] = append(d.rings[first], i)
	}
	return d
}

// Links counts each direction.
func (d *direct) Links() int { return len(d.wide) }

func (d *direct) add(from, to int, units int64, load []int64) {
	k := d.index[from*d.t.Servers+to]
	load[k] += (units + d.wide[k] - 1) / d.wide[k]
}

// Ring spreads over the rings of the same servers. A group without rings
// spreads over its members' links, as AllReduce may take any order and the next
// topology will give it rings ([TOPO] sec 4.3, mutability).
func (d *direct) Ring(order []int, load []int64) {
	var own []int
	members := slices.Sorted(slices.Values(order))
	for _, r := range d.rings[members[0]] {
		if ring := d.t.Rings[r].Order; len(ring) == len(order) && slices.Equal(slices.Sorted(slices.Values(ring)), members) {
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		n := d.t.Servers
		for _, from := range order {
			links := int64(0)
			for to := range n {
				if k := d.index[from*n+to]; k >= 0 {
					links += d.wide[k]
				}
			}
			for to := range n {
				if k := d.index[from*n+to]; k >= 0 {
					load[k] += (unitLoad + links - 1) / links
				}
			}
		}
		return
	}
	ways := int64(len(own))
	if d.t.Bidirectional {
		ways *= 2
	}
	for _, r := range own {
		ring := d.t.Rings[r].Order
		for i, from := range ring {
			to := ring[(i+1)%len(ring)]
			if d.add(from, to, (unitLoad+ways-1)/ways, load); d.t.Bidirectional {
				d.add(to, from, (unitLoad+ways-1)/ways, load)
			}
		}
	}
}

// Send loads the links of the way.
func (d *direct) Send(from, to int, load []int64) {
	d.ways.Walk(from, to, func(a, b int) { d.add(a, b, unitLoad, load) })
}
