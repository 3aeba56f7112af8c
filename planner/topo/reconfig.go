package topo

import (
	"cmp"
	"slices"
)

// Reconfigure gives the links for what is still to be sent, one way each, as a
// network that is reconfigured while a job runs does ([TOPO] Alg. 5): the pair
// with most unsent gets a link and counts half afterwards, until nobody has an
// interface left; then two links at a time exchange their ends until all servers
// hang together. Every server sends and hears over all its interfaces.
func Reconfigure(servers, degree int, unsent []Demand) []Link {
	f := &reconfig{out: slices.Repeat([]int{degree}, servers), in: slices.Repeat([]int{degree}, servers)}
	most := slices.Clone(unsent)
	slices.SortFunc(most, byUnsent)
	for len(most) > 0 {
		d := most[0]
		if most = most[1:]; f.out[d.From] == 0 || f.in[d.To] == 0 {
			continue
		}
		f.join(d.From, d.To, d.Bytes)
		d.Bytes /= 2
		at, _ := slices.BinarySearchFunc(most, d, byUnsent)
		most = slices.Insert(most, at, d)
	}
	// What asks for nothing more has no order in the paper; chosen: the next
	// servers in turn.
	for range degree {
		for s := range servers {
			for k := 1; k < servers && f.out[s] > 0; k++ {
				if to := (s + k) % servers; f.in[to] > 0 {
					f.join(s, to, 0)
					break
				}
			}
		}
	}
	f.fill()
	f.connect(servers)
	return f.links()
}

// fill gives a server that is left alone with its interfaces a place in links of
// others, those of least worth first.
func (f *reconfig) fill() {
	slices.SortStableFunc(f.arcs, func(a, b Demand) int { return cmp.Compare(a.Bytes, b.Bytes) })
	for s := range f.out {
		for k := 0; k < len(f.arcs) && f.out[s] > 0 && f.in[s] > 0; k++ {
			if a := f.arcs[k]; a.From != s && a.To != s {
				f.arcs[k].To = s
				f.in[s]--
				f.out[s]--
				f.arcs = append(f.arcs, Demand{s, a.To, a.Bytes})
			}
		}
	}
}

// reconfig is a topology under way.
type reconfig struct {
	out, in []int    // interfaces left
	arcs    []Demand // links one by one, with what their pair had unsent
}

func (f *reconfig) join(from, to int, worth int64) {
	f.out[from]--
	f.in[to]--
	f.arcs = append(f.arcs, Demand{from, to, worth})
}

// connect exchanges the ends of the two links of least worth of two parts until
// there is one. Each arc lies on a cycle, so that no part falls apart by it.
func (f *reconfig) connect(servers int) {
	for {
		p := newParts(servers)
		for _, a := range f.arcs {
			p.join(a.From, a.To)
		}
		other := slices.IndexFunc(f.arcs, func(a Demand) bool { return p.of(a.From) != p.of(f.arcs[0].From) })
		if other < 0 {
			return
		}
		a, b := &f.arcs[0], &f.arcs[other]
		a.To, b.To = b.To, a.To
	}
}

// links counts those that are parallel.
func (f *reconfig) links() []Link {
	slices.SortFunc(f.arcs, func(a, b Demand) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	var out []Link
	for _, a := range f.arcs {
		if n := len(out); n > 0 && out[n-1].A == a.From && out[n-1].B == a.To {
			out[n-1].Count++
			continue
		}
		out = append(out, Link{a.From, a.To, 1})
	}
	return out
}

// byUnsent: the largest first.
func byUnsent(a, b Demand) int {
	return cmp.Or(-cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
}

// Forward is what the fullest of such links carries of demands whose servers pass
// on for each other, each over fewest hops; -1: some cannot be reached.
func Forward(servers int, links []Link, demands []Demand) int64 {
	fullest, _, _ := forward(servers, links, demands)
	return fullest
}

// forward has what each of the links carries too, and the ways.
func forward(servers int, links []Link, demands []Demand) (fullest int64, load []int64, ways *Routes) {
	g := &graph{n: servers, first: make([]int32, servers+1)}
	for s, k := 0, 0; s < servers; s++ {
		for ; k < len(links) && links[k].A == s; k++ {
			g.to, g.wide = append(g.to, int32(links[k].B)), append(g.wide, int64(links[k].Count))
		}
		g.first[s+1] = int32(len(g.to))
	}
	load = make([]int64, len(g.to))
	ways = g.route(demands)
	for _, d := range demands {
		if ways.via[d.From][d.To] < 0 {
			return -1, load, ways
		}
	}
	ways.put(demands, load)
	return g.fullest(load), load, ways
}
