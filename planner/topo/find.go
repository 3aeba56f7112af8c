package topo

import (
	"cmp"
	"slices"
)

// Find gives the topology of a request ([TOPO] Alg. 1). By random rings it
// also tries to give rings every interface, as their links are short ways for
// everything, and takes what keeps the fullest links shorter in time.
func Find(r Request) (*Topology, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	reduce := r.reduce()
	best := r.find(reduce)
	if r.method() == Random && reduce < r.Degree {
		if t := r.find(r.Degree); t.FullestReduce+t.FullestSend < best.FullestReduce+best.FullestSend {
			best = t
		}
	}
	return best, nil
}

// find gives the topology with so many interfaces for AllReduce.
func (r *Request) find(reduce int) *Topology {
	b := newBuild(r, reduce)
	b.groups()
	b.matchings()
	if b.apart() || len(r.AllReduce) == 0 && reduce == r.Degree {
		b = newBuild(r, reduce)
		b.backbone()
		b.groups()
		b.matchings()
	}
	return b.topology()
}

// reduce is d_A: the interfaces for AllReduce, by its share of the traffic.
func (r *Request) reduce() int {
	reduced, sent := r.totals()
	if reduced == 0 {
		return 1
	}
	return max(1, share(r.Degree, reduced, reduced+sent))
}

// share is d*part/whole rounded up.
func share(d int, part, whole int64) int { return int((int64(d)*part + whole - 1) / whole) }

// build is a topology under way: which layers of which servers are taken.
type build struct {
	r      *Request
	reduce int // layers that rings may take
	width  int // layers of a ring
	layers []Layer
	rings  []Ring
	jumps  []int
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
	for i, order := range b.orders(members, len(free)) {
		ring := Ring{Group: k, Order: make([]int, len(order)), Layers: free[i]}
		for j, m := range order {
			ring.Order[j] = members[m]
		}
		b.lay(ring)
	}
}

// orders are rings over members, by their place, as the request's method has them.
func (b *build) orders(members []int, rings int) [][]int {
	n := len(members)
	if b.r.method() == Random {
		return randomRings(n, rings, b.r.Bidirectional, b.r.Seed)
	}
	jumps := selectPermutations(n, rings, totientPerms(n, b.r.Bidirectional))
	if n == b.r.Servers && slices.IsSorted(members) {
		b.jumps = append(b.jumps, jumps...)
	}
	var out [][]int
	for _, p := range jumps {
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

// matchings joins servers that send each other most, layer by layer; a pair
// that has links wants half as much for each ([TOPO] Alg. 1, line 17). Servers
// that no group put on a layer of rings are joined there too.
func (b *build) matchings() {
	n := b.r.Servers
	wants := map[[2]int]int64{}
	for _, d := range b.r.MP {
		wants[[2]int{min(d.From, d.To), max(d.From, d.To)}] += d.Bytes
	}
	if len(wants) == 0 {
		return
	}
	pairs := make([]pair, 0, len(wants))
	for p, worth := range wants { // any order: sorted below
		pairs = append(pairs, pair{p[0], p[1], worth << spare})
	}
	slices.SortFunc(pairs, func(p, q pair) int { return cmp.Or(p.a-q.a, p.b-q.b) })
	for i, p := range pairs {
		pairs[i].worth >>= min(spare, b.joined(p.a, p.b))
	}
	for i := range b.layers {
		to := b.layers[(b.reduce+i)%len(b.layers)].To // those without rings first
		var open []pair
		var at []int
		for k, p := range pairs {
			if to[p.a] < 0 && to[p.b] < 0 && p.worth > 0 {
				open, at = append(open, p), append(at, k)
			}
		}
		if len(open) == 0 {
			continue
		}
		mate := match(n, heaviest(n, open))
		for k, p := range open {
			if mate[p.a] == p.b {
				to[p.a], to[p.b] = p.b, p.a
				pairs[at[k]].worth /= 2
			}
		}
	}
}

// spare is bits below one byte, so that halves of small demands still differ.
const spare = 6

// joined is how many links there are from a to b.
func (b *build) joined(s, t int) int {
	n := 0
	for _, l := range b.layers {
		if l.To[s] == t {
			n++
		}
	}
	return n
}

// manyPairs is how many pairs are matched exactly; chosen: all of 432 servers,
// a tenth of a second. Beyond, each server keeps its heaviest.
const manyPairs = 1 << 17

func heaviest(n int, pairs []pair) []pair {
	if len(pairs) <= manyPairs {
		return pairs
	}
	by := slices.Clone(pairs)
	slices.SortStableFunc(by, func(p, q pair) int { return cmp.Compare(q.worth, p.worth) })
	kept, count := by[:0], make([]int, n)
	for _, p := range by {
		if most := 2 * manyPairs / n; count[p.a] < most || count[p.b] < most {
			kept = append(kept, p)
			count[p.a]++
			count[p.b]++
		}
	}
	return kept
}

// apart says whether some servers cannot be reached.
func (b *build) apart() bool {
	p := newParts(b.r.Servers)
	for _, l := range b.layers {
		for s, t := range l.To {
			if t >= 0 {
				p.join(s, t)
			}
		}
	}
	for s := range b.r.Servers {
		if p.of(s) != p.of(0) {
			return true
		}
	}
	return false
}

// backbone lays rings that hold all servers together, for jobs whose groups do
// not: one, or by random rings without any group all that the degree has.
// Members of a group are neighbours on it.
func (b *build) backbone() {
	var order []int
	seen := make([]bool, b.r.Servers)
	add := func(s int) {
		if !seen[s] {
			seen[s] = true
			order = append(order, s)
		}
	}
	for _, g := range b.r.AllReduce {
		for _, s := range g.Servers {
			add(s)
		}
	}
	for s := range b.r.Servers {
		add(s)
	}
	rings := 1
	if len(b.r.AllReduce) == 0 && b.r.method() == Random {
		rings = b.r.Degree / b.width
	}
	b.reduce = min(b.r.Degree, max(b.reduce, rings*b.width)+b.width)
	if rings > 1 {
		b.group(-1, order, rings)
		return
	}
	b.lay(Ring{Group: -1, Order: order, Layers: []int{0, b.width - 1}[:b.width]})
}

func (b *build) topology() *Topology {
	r := b.r
	t := &Topology{Servers: r.Servers, Bidirectional: r.Bidirectional, Method: r.method(), Reduce: b.reduce, Rings: b.rings, Jumps: b.jumps, Layers: b.layers}
	g := newGraph(t.Servers, t.Layers)
	arcs, degree := g.flat()
	t.Hops, _ = newReach(t.Servers).hops(arcs, degree)
	reduced, waiting, own := b.reduced(g)
	t.Routes = g.route(append(slices.Clone(r.MP), waiting...))
	sent := make([]int64, len(g.to))
	t.Carried = t.Routes.put(r.MP, sent) + t.Routes.put(waiting, reduced)
	a, s := r.totals()
	t.Asked = a + s
	for _, d := range waiting {
		a -= d.Bytes
	}
	t.Carried += max(0, a) // over direct links, each byte once
	t.FullestReduce, t.FullestSend = max(own, g.fullest(reduced)), g.fullest(sent)
	for k := range reduced {
		reduced[k] += sent[k]
	}
	t.Fullest = max(own, g.fullest(reduced))
	return t
}

// reduced is what groups with rings put on each arc, and what the others send
// from each member to the next, as over links that a ring has lost, which has to be
// routed. own is the most on a ring's own link: it does not use others of the same pair.
func (b *build) reduced(g *graph) (load []int64, waiting []Demand, own int64) {
	load = make([]int64, len(g.to))
	add := func(s, t int, bytes int64) {
		k := g.first[s]
		for k < g.first[s+1] && g.to[k] != int32(t) {
			k++
		}
		if k == g.first[s+1] { // a ring has lost that link
			waiting = append(waiting, Demand{s, t, bytes})
			return
		}
		load[k] += bytes
	}
	direct := make([]int, len(b.r.AllReduce))
	for _, ring := range b.rings {
		if ring.Group >= 0 {
			direct[ring.Group]++
		}
	}
	for _, ring := range b.rings {
		if ring.Group < 0 {
			continue
		}
		n := len(ring.Order)
		parts := int64(n * direct[ring.Group] * b.width) // a bidirectional ring runs both ways
		bytes := (b.r.AllReduce[ring.Group].Bytes + parts - 1) / parts
		own = max(own, bytes)
		for i, s := range ring.Order {
			next := ring.Order[(i+1)%n]
			if add(s, next, bytes); b.width == 2 {
				add(next, s, bytes)
			}
		}
	}
	for k, group := range b.r.AllReduce {
		if direct[k] > 0 {
			continue
		}
		n := len(group.Servers)
		for i, s := range group.Servers {
			waiting = append(waiting, Demand{s, group.Servers[(i+1)%n], (group.Bytes + int64(n) - 1) / int64(n)})
		}
	}
	return load, waiting, own
}
