package topo

import "slices"

// Find gives the topology of a request ([TOPO] Alg. 1).
func Find(r Request) (*Topology, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	b := newBuild(&r, r.reduce())
	b.groups()
	t := b.topology()
	return t, nil
}

// reduce is d_A: the interfaces for AllReduce, by its share of the traffic.
func (r *Request) reduce() int {
	reduced, sent := r.totals()
	if reduced == 0 {
		return 1
	}
	return max(1, share(r.Degree, reduced, reduced+sent))
}

// share is d*part/whole rounded up, for sums below 2^57.
func share(d int, part, whole int64) int {
	for whole >= 1<<48 {
		part, whole = part>>1, whole>>1
	}
	return int((int64(d)*part + whole - 1) / whole)
}

// build is a topology under way: which layers of which servers are taken.
type build struct {
	r      *Request
	reduce int // layers that rings may take
	width  int // layers of a ring
	layers []Layer
	rings  []Ring
}

func newBuild(r *Request, reduce int) *build {
	b := &build{r: r, width: 1, reduce: reduce}
	if r.Bidirectional {
		b.width, b.reduce = 2, (reduce+1)/2*2
	}
	b.layers = make([]Layer, r.Degree)
	for i := range b.layers {
		b.layers[i] = Layer{To: slices.Repeat([]int{-1}, r.Servers)}
	}
	return b
}

// groups gives each group its share of the layers, in the order of the request
// and while there are any: those at which all its members are free.
func (b *build) groups() {
	// A server in several groups divides its interfaces by their bytes; groups
	// that share no server use the same layers.
	bytes := make([]int64, b.r.Servers)
	for _, g := range b.r.AllReduce {
		for _, s := range g.Servers {
			bytes[s] += g.Bytes
		}
	}
	for k, g := range b.r.AllReduce {
		most := int64(0)
		for _, s := range g.Servers {
			most = max(most, bytes[s])
		}
		rings := (share(b.reduce, g.Bytes, most) + b.width - 1) / b.width
		b.group(k, g.Servers, rings)
	}
}

// group lays so many rings over the members, as far as layers are free.
func (b *build) group(k int, members []int, rings int) {
	var free [][]int
	for first := 0; first < b.reduce && len(free) < rings; first += b.width {
		if !slices.ContainsFunc(members, func(s int) bool { return b.layers[first].To[s] >= 0 }) {
			free = append(free, []int{first, first + b.width - 1}[:b.width])
		}
	}
	if len(free) == 0 {
		return
	}
	for i, order := range b.orders(len(members), len(free)) {
		ring := Ring{Group: k, Order: make([]int, len(order)), Layers: free[i]}
		for j, m := range order {
			ring.Order[j] = members[m]
		}
		b.lay(ring)
	}
}

// orders are rings over n members by the request's method.
func (b *build) orders(n, rings int) [][]int {
	if b.r.method() == Random {
		return randomRings(n, rings, b.r.Bidirectional, b.r.Seed)
	}
	var out [][]int
	for _, p := range SelectPermutations(n, rings, TotientPerms(n, b.r.Bidirectional)) {
		order := make([]int, n)
		for j := range order {
			order[j] = j * p % n
		}
		out = append(out, order)
	}
	return out
}

// lay puts a ring onto its layers.
func (b *build) lay(ring Ring) {
	n := len(ring.Order)
	for i, s := range ring.Order {
		next := ring.Order[(i+1)%n]
		switch {
		case b.width == 1:
			b.layers[ring.Layers[0]].To[s] = next
		case n%2 == 0: // two matchings, link by link in turn
			l := b.layers[ring.Layers[i%2]]
			l.To[s], l.To[next] = next, s
		default: // forward, and backward
			b.layers[ring.Layers[0]].To[s] = next
			b.layers[ring.Layers[1]].To[next] = s
		}
	}
	b.rings = append(b.rings, ring)
}

func (b *build) topology() *Topology {
	t := &Topology{Servers: b.r.Servers, Bidirectional: b.r.Bidirectional, Method: b.r.method(), Reduce: b.reduce, Rings: b.rings, Layers: b.layers}
	g := newGraph(t.Servers, t.Layers)
	arcs, degree := g.flat()
	t.Hops, _ = newReach(t.Servers).hops(arcs, degree)
	return t
}
