package topo

import "slices"

const (
	// rounds is how often each server's ways are laid anew; chosen: the fullest
	// link stays as it is after about half as many.
	rounds = 12
	// routeWork bounds the arcs that are looked at, but for two rounds; chosen:
	// half a second, of which 2,000 servers that all send take as much.
	routeWork = 1 << 26
	// weighings of a round; chosen: as often as there are servers in the
	// paper's clusters.
	weighings = 128
	// steep is how many times the weight of a link doubles until it is the
	// fullest.
	steep = 16
)

// Routes is the ways of traffic that has no links of its own, by table: a tree
// of fewest hops for each server that sends.
type Routes struct {
	g    *graph
	via  [][]int32 // by sender and server: the arc it is come to by; nil: sends nothing
	tail []int32   // where each arc begins
}

// Path is the servers from one to another, both with it; nil where no traffic
// was asked for.
func (r *Routes) Path(from, to int) []int {
	if r.via[from] == nil || r.via[from][to] < 0 {
		return nil
	}
	path := []int{to}
	for to != from {
		to = int(r.tail[r.via[from][to]])
		path = append([]int{to}, path...)
	}
	return path
}

// router lays trees and knows what they carry.
type router struct {
	*Routes
	asked  [][]Demand // by sender
	load   []int64    // bytes on each arc
	weight []int64    // of each arc
	hops   []int32
	cost   []int64
	order  []int32
	bytes  []int64
}

// route gives each demand a way of fewest hops and levels what links carry, a
// server's ways at a time, against weights that double as a link fills: the
// multiplicative weights of Garg and Koenemann ("Faster and simpler algorithms
// for multicommodity flow", 1998) without splitting a demand.
func (g *graph) route(demands []Demand) *Routes {
	r := &router{Routes: &Routes{g: g, via: make([][]int32, g.n), tail: make([]int32, len(g.to))}, load: make([]int64, len(g.to)),
		asked: make([][]Demand, g.n), weight: make([]int64, len(g.to)),
		hops: make([]int32, g.n), cost: make([]int64, g.n), bytes: make([]int64, g.n)}
	for s := range g.n {
		for k := g.first[s]; k < g.first[s+1]; k++ {
			r.tail[k] = int32(s)
		}
	}
	senders := 0
	for _, d := range demands {
		if r.asked[d.From] == nil {
			senders++
		}
		r.asked[d.From] = append(r.asked[d.From], d)
	}
	least, turn := int64(-1), 0
	best := slices.Clone(r.via)
	for round := range max(2, min(rounds, routeWork/(max(1, senders)*max(1, len(g.to))))) {
		for s := range g.n {
			if r.asked[s] == nil {
				continue
			}
			if round > 0 {
				r.carry(s, -1)
			}
			if turn++; turn%max(1, senders/weighings) == 0 || turn == 1 {
				r.weigh()
			}
			r.tree(s)
			r.carry(s, 1)
		}
		if full := g.fullest(r.load); least < 0 || full < least {
			least = full
			copy(best, r.via) // a tree is replaced, never changed
		}
	}
	r.via = best
	return r.Routes
}

// fullest is the most that one link carries.
func (g *graph) fullest(load []int64) int64 {
	most := int64(0)
	for k, l := range load {
		most = max(most, (l+g.wide[k]-1)/g.wide[k])
	}
	return most
}

// put adds demands to what arcs carry, and gives the bytes times hops.
func (r *Routes) put(demands []Demand, load []int64) int64 {
	sum := int64(0)
	for _, d := range demands {
		for v := int32(d.To); v != int32(d.From); {
			k := r.via[d.From][v]
			load[k] += d.Bytes
			sum += d.Bytes
			v = r.tail[k]
		}
	}
	return sum
}

// weigh prices the arcs: 1 where nothing is carried, doubled with each
// sixteenth part of the fullest, in 1024ths.
func (r *router) weigh() {
	full := max(1, r.g.fullest(r.load))
	for k, l := range r.load {
		x := l / r.g.wide[k] * steep
		whole := x / full
		part := (x - whole*full) / max(1, full>>10)
		r.weight[k] = (1024 + min(1024, part)) << whole
	}
}

// tree lays the ways from s: in breadth, and of the ways with as few hops the
// one of least weight.
func (r *router) tree(s int) {
	via := make([]int32, r.g.n)
	for v := range via {
		via[v], r.hops[v] = -1, -1
	}
	r.hops[s], r.cost[s] = 0, 0
	r.order = append(r.order[:0], int32(s))
	for i := 0; i < len(r.order); i++ {
		u := r.order[i]
		for k := r.g.first[u]; k < r.g.first[u+1]; k++ {
			v := r.g.to[k]
			cost := r.cost[u] + r.weight[k]
			switch {
			case r.hops[v] < 0:
				r.hops[v] = r.hops[u] + 1
				r.order = append(r.order, v)
			case r.hops[v] != r.hops[u]+1 || cost >= r.cost[v]:
				continue
			}
			r.cost[v], via[v] = cost, k
		}
	}
	r.via[s] = via
}

// carry puts what s sends on its tree, or takes it off.
func (r *router) carry(s int, sign int64) {
	clear(r.bytes)
	for _, d := range r.asked[s] {
		r.bytes[d.To] += d.Bytes
	}
	via := r.via[s]
	// Farthest first: by the order of a walk in breadth, which is the same for
	// every tree of s as the hops are.
	if sign < 0 {
		r.walk(s)
	}
	for i := len(r.order) - 1; i > 0; i-- {
		v := r.order[i]
		if b := r.bytes[v]; b > 0 {
			r.load[via[v]] += sign * b
			r.bytes[r.tail[via[v]]] += b
		}
	}
}

// walk puts the servers into order by hops from s.
func (r *router) walk(s int) {
	for v := range r.hops {
		r.hops[v] = -1
	}
	r.hops[s] = 0
	r.order = append(r.order[:0], int32(s))
	for i := 0; i < len(r.order); i++ {
		u := r.order[i]
		for k := r.g.first[u]; k < r.g.first[u+1]; k++ {
			if v := r.g.to[k]; r.hops[v] < 0 {
				r.hops[v] = r.hops[u] + 1
				r.order = append(r.order, v)
			}
		}
	}
}

// Ways lays a way between any two servers, level for even traffic.
func (t *Topology) Ways() *Routes {
	return newGraph(t.Servers, t.Layers).route(AllToAll(t.Servers, 1))
}

// AllToAll is as much from each of so many servers to each other.
func AllToAll(servers int, bytes int64) (all []Demand) {
	for a := range servers {
		for b := range servers {
			if a != b {
				all = append(all, Demand{a, b, bytes})
			}
		}
	}
	return all
}

// Over is the request's traffic on layers and rings that are there, whatever they were
// found for: a group reduces over rings of just its servers, or else as any traffic.
func (r *Request) Over(layers []Layer, rings []Ring) *Topology {
	b := newBuild(r, 0)
	b.layers = layers
	for _, ring := range rings {
		members := slices.Sorted(slices.Values(ring.Order))
		ring.Group = slices.IndexFunc(r.AllReduce, func(g Group) bool { return slices.Equal(slices.Sorted(slices.Values(g.Servers)), members) })
		b.rings = append(b.rings, ring)
	}
	return b.topology()
}

// RoutesOver are the ways of a request's traffic over layers and rings that are there,
// and between servers that send nothing by it ways that are level; asked is what of it
// has no links of its own.
func (r *Request) RoutesOver(layers []Layer, rings []Ring) (out *Routes, asked []Demand) {
	b := &build{r: r, width: 1, layers: layers, rings: rings}
	if r.Bidirectional {
		b.width = 2
	}
	g := newGraph(r.Servers, layers)
	_, waiting, _ := b.reduced(g)
	asked = append(slices.Clone(r.MP), waiting...)
	out = g.route(asked)
	ways := (&Topology{Servers: r.Servers, Layers: layers}).Ways()
	for s, tree := range out.via {
		if tree == nil {
			out.via[s] = ways.via[s]
		}
	}
	return out, asked
}

// Walk calls f with the links of a way, the last first.
func (r *Routes) Walk(from, to int, f func(a, b int)) {
	for to != from {
		k := r.via[from][to]
		f(int(r.tail[k]), to)
		to = int(r.tail[k])
	}
}

// LeastSent is what the emptiest link carries of demands that were asked for.
func (t *Topology) LeastSent(demands []Demand) int64 {
	load := make([]int64, len(t.Routes.g.to))
	t.Routes.put(demands, load)
	least := int64(MaxBytes)
	for k, l := range load {
		least = min(least, l/t.Routes.g.wide[k])
	}
	return least
}
