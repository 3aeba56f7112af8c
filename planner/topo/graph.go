package topo

import (
	"math/bits"
	"slices"
)

// graph is which server receives from which: the arcs of server s are those from first[s] to
// before first[s+1], each to another server, wide where links are parallel.
type graph struct {
	n     int
	first []int32
	to    []int32
	wide  []int64
}

func newGraph(n int, layers []Layer) *graph {
	g := &graph{n: n, first: make([]int32, n+1)}
	var heard []int
	for s := range n {
		heard = heard[:0]
		for _, l := range layers {
			if l.To[s] >= 0 {
				heard = append(heard, l.To[s])
			}
		}
		slices.Sort(heard)
		for i, t := range heard {
			if i > 0 && t == heard[i-1] {
				g.wide[len(g.wide)-1]++
				continue
			}
			g.to, g.wide = append(g.to, int32(t)), append(g.wide, 1)
		}
		g.first[s+1] = int32(len(g.to))
	}
	return g
}

// reach counts hops between all pairs at once: a row of bits a server, which
// grows by the rows of those it is heard by at one hop less.
type reach struct {
	n, words  int
	now, next []uint64
}

func newReach(n int) *reach {
	w := (n + 63) / 64
	return &reach{n, w, make([]uint64, n*w), make([]uint64, n*w)}
}

// hops counts over arcs given as a row of so many for each server; unreached
// pairs count as at a distance of n. The work done is in words.
func (r *reach) hops(arcs []int32, degree int) (h Hops, work int) {
	clear(r.now)
	for s := range r.n {
		r.now[s*r.words+s/64] |= 1 << (s % 64)
	}
	h.Pairs = int64(r.n) * int64(r.n-1)
	seen := int64(r.n)
	for seen < h.Pairs+int64(r.n) {
		count := int64(0)
		for s := range r.n {
			row := r.next[s*r.words : (s+1)*r.words]
			copy(row, r.now[s*r.words:])
			for _, t := range arcs[s*degree : (s+1)*degree] {
				from := r.now[int(t)*r.words : int(t+1)*r.words]
				for w, b := range from {
					row[w] |= b
				}
			}
			for _, b := range row {
				count += int64(bits.OnesCount64(b))
			}
		}
		work += r.n * (degree + 1) * r.words
		if count == seen {
			h.Sum += (h.Pairs + int64(r.n) - seen) * int64(r.n)
			h.Max = r.n
			return h, work
		}
		h.Max++
		h.Sum += (count - seen) * int64(h.Max)
		seen = count
		r.now, r.next = r.next, r.now
	}
	return h, work
}

// flat is the graph's arcs as rows of one length, filled with the server itself.
func (g *graph) flat() (arcs []int32, degree int) {
	for s := range g.n {
		degree = max(degree, int(g.first[s+1]-g.first[s]))
	}
	arcs = make([]int32, g.n*degree)
	for s := range g.n {
		row := arcs[s*degree : (s+1)*degree]
		for i := copy(row, g.to[g.first[s]:g.first[s+1]]); i < degree; i++ {
			row[i] = int32(s)
		}
	}
	return arcs, degree
}
