package isolate

// direct.go is the first half of stage 2 with optics: two leaves joined
// without a spine ([VCLOS] sec 7.2).

// direct looks for two leaves that hold the job and have the switches in
// common for a circuit for each GPU of the smaller part; of those, for the two
// with fewest idle servers, and the smallest smaller part.
func (s *State) direct(need int) (Placement, bool) {
	if !s.core.Optics.AnyToAny {
		return Placement{}, false
	}
	t, columns := s.core.GPUsPerServer, s.leaf.columns
	best, small, large, part := 0, -1, -1, 0
	for a, idleA := range s.idle {
		for b := a + 1; b < len(s.idle); b++ {
			idleB := s.idle[b]
			if int(idleA+idleB) < need {
				continue
			}
			x, from, to := need-int(idleB), a, b
			if y := need - int(idleA); y < x {
				x, from, to = y, b, a
			}
			x = max(x, 1)
			cost := t*int(idleA+idleB) + t*x
			if small >= 0 && cost >= best {
				continue
			}
			joint := int32(0)
			for k := range columns {
				joint += min(s.leaf.free[a*columns+k], s.leaf.free[b*columns+k])
			}
			if int(joint) >= t*x {
				best, small, large, part = cost, from, to, x
			}
		}
	}
	if small < 0 {
		return Placement{}, false
	}
	p := Placement{Stage: 2, L: 2, Map: Identity[int](t * part), Cost: best - t*part}
	p.Servers = s.idleServers(s.idleServers(nil, small, part), large, need-part)
	want := make([]wish, 0, t*part)
	for _, k := range s.between() {
		for range min(s.leaf.free[small*columns+k], s.leaf.free[large*columns+k]) {
			if len(want) < t*part {
				want = append(want, wish{at: k, leaf: small, b: End{Number: large}})
			}
		}
	}
	p.Circuits = s.ports(want)
	return p, true
}

// between gives the switches, those first at which leaves have most free ports:
// a later job over whole spines has the same number of circuits at every switch.
func (s *State) between() []int {
	columns := s.leaf.columns
	free := make([]int32, columns)
	for cell, n := range s.leaf.free {
		free[cell%columns] += n
	}
	return byLeast(Identity[int](columns), func(k int) int32 { return -free[k] })
}

// wish is a circuit whose ports are not chosen yet: B.Port is not used. One that is
// lost may have ports that are out, at any switch.
type wish struct {
	at   int // switch
	leaf int
	b    End
	lost bool
}

// ports chooses free ports for circuits: those that are lit that way already,
// else dark ones, else whatever is free; nil: one that is lost finds none.
func (s *State) ports(want []wish) []Circuit {
	out := make([]Circuit, len(want))
	mine := map[int32]bool{}
	free := func(w wish, p *pool, from int32, row int, visit func(u int32, nth int) bool) {
		cell := row*p.columns + w.at
		for u := p.start[cell]; u < p.start[cell+1]; u++ {
			if (!p.taken[u] || w.lost && p.out[u]) && !mine[from+u] && visit(from+u, int(u-p.start[cell])) {
				return
			}
		}
	}
	leaves := int32(len(s.leaf.taken))
	far := func(w wish) (*pool, int32) {
		if w.b.Spine {
			return &s.spine, leaves
		}
		return &s.leaf, 0
	}
	found := make([]bool, len(want))
	pick := func(w wish, p *pool, from int32, row int) (best int32, port int) {
		best = -1
		free(w, p, from, row, func(u int32, nth int) bool {
			if best < 0 || s.lit[u] < 0 && s.lit[best] >= 0 || w.lost && p.out[u-from] && !p.out[best-from] {
				best, port = u, nth
			}
			return false
		})
		return best, port
	}
	for _, lost := range [...]bool{false, true} {
		for n, w := range want {
			if w.at < 0 || w.lost != lost {
				continue
			}
			pool, from := far(w)
			free(w, &s.leaf, 0, w.leaf, func(u int32, nth int) bool {
				free(w, pool, from, w.b.Number, func(v int32, other int) bool {
					if s.lit[u] == v {
						out[n] = Circuit{w.at, End{Number: w.leaf, Port: nth}, End{w.b.Spine, w.b.Number, other}}
						found[n], mine[u], mine[v] = true, true, true
					}
					return found[n]
				})
				return found[n]
			})
		}
		for n, w := range want {
			pool, from := far(w)
			for at := 0; !found[n] && w.lost == lost && at < s.leaf.columns; at++ {
				if w.lost {
					w.at = at
				}
				a, nth := pick(w, &s.leaf, 0, w.leaf)
				b, other := pick(w, pool, from, w.b.Number)
				if found[n] = a >= 0 && b >= 0; found[n] {
					mine[a], mine[b] = true, true
					out[n] = Circuit{w.at, End{Number: w.leaf, Port: nth}, End{w.b.Spine, w.b.Number, other}}
				}
			}
			if w.lost && lost && !found[n] {
				return nil
			}
		}
	}
	return out
}
