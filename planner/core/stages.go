package core

import (
	"slices"

	"ringlight/planner/wiring"
	"ringlight/proto"
)

// staging divides what groups have to do.
type staging struct {
	core   *interleaved
	groups []groupPlan
	ends   [][]leafPair // by map and sending pod: the path that a staying link carries
	lit    []int        // of a leaf: how many links it has so
}

// stages cuts what the groups have to do into stages, and says which share
// of a leaf's links moves at most at once. A group in which one move alone
// would take too much goes back to pinned.
func (t *staging) stages() (end []crossMap, stages [][]mapSet, worst, worstOf uint32) {
	moves := t.moves()
	changes := make([]wiring.Change, len(moves))
	for n, m := range moves {
		changes[n] = m.Change
	}
	order, err := wiring.Stages(changes, t.lit, t.core.fab.IotaMille)
	if err != nil {
		panic("planner: invariant: every move alone is within the bound: " + err.Error())
	}
	moved, of := wiring.Worst(changes, t.lit, order)
	end = t.core.filled(t.groups)
	cur := t.base(end)
	last := t.core.from.maps
	for at, stage := range order {
		for _, n := range stage {
			for _, p := range moves[n].pieces {
				t.apply(cur, &p)
			}
		}
		if at == len(order)-1 {
			cur = end
		}
		if sets := changedMaps(last, cur); len(sets) > 0 {
			stages = append(stages, sets)
			last = cloneMaps(cur)
		}
	}
	if sets := changedMaps(last, end); len(sets) > 0 {
		stages = append(stages, sets)
	}
	return end, stages, uint32(moved), uint32(of)
}

// leafPair is the two leaves of the path that a link carries; nobody's where
// ok is not set.
type leafPair struct {
	a, b int
	ok   bool
}

// staging finds which path each staying link carries. A job's links between the same
// pods over the same spine serve its paths in order.
func (c *interleaved) staging(jobs []*job, groups []groupPlan) *staging {
	t := &staging{core: c, groups: groups, lit: make([]int, c.fab.Leaves())}
	left := map[proto.JobID][]path{}
	for _, j := range jobs {
		left[j.spec.Job] = slices.Clone(j.paths)
	}
	for h := range groups {
		for k, d := range groups[h].stay {
			of := make([]leafPair, c.fab.Pods)
			c.layout.links(h*c.layout.groupMaps()+k, d, func(i, j int32, id proto.JobID) {
				for n := range left[id] {
					x := &left[id][n]
					p, q := c.sched.PodOf[x.A], c.sched.PodOf[x.B]
					if x.Spine == h && x.Count > 0 && min(p, q) == min(i, j) && max(p, q) == max(i, j) {
						x.Count--
						of[i] = leafPair{x.A, x.B, true}
						t.lit[x.A]++
						t.lit[x.B]++
						return
					}
				}
			})
			t.ends = append(t.ends, of)
		}
	}
	return t
}

// move is what has to be done in one stage: pieces, and with one that takes a
// link away those that give the link its new place, so that no link is dark
// from one stage to another.
type move struct {
	pieces []wiring.Piece
	wiring.Change
}

// moves are what the groups that move links have to do, divided. Where that is
// too much, groups that were searched have what is pinned.
func (t *staging) moves() []move {
	if t.core.layout.uniform() {
		return nil
	}
	for {
		moves, undone := t.bundle(t.pieces()), false
		var over []move
		for n := range moves {
			m := &moves[n]
			for _, p := range m.pieces {
				for _, s := range p.Steps {
					if e := t.ends[p.Group*t.core.layout.groupMaps()+p.Even][s.In]; !s.Create && e.ok {
						m.Moved = append(m.Moved, wiring.LeafLinks{Leaf: e.a, Links: 1}, wiring.LeafLinks{Leaf: e.b, Links: 1})
					}
				}
			}
			m.Change = wiring.Together([]wiring.Change{m.Change})
			if t.tooMuch(m) {
				over = append(over, *m)
			}
		}
		for _, m := range over {
			for _, p := range m.pieces {
				undone = t.groups[p.Group].pin() || undone
			}
		}
		for h := range t.groups { // what is pinned is too much beside what was searched, not by itself
			undone = len(over) > 0 && !undone && t.groups[h].pin() || undone
		}
		if !undone {
			return moves
		}
	}
}

// tooMuch: a move alone takes more of some leaf than may be dark at once.
func (t *staging) tooMuch(m *move) bool {
	return slices.ContainsFunc(m.Moved, func(x wiring.LeafLinks) bool { return x.Links*1000 > t.lit[x.Leaf]*t.core.fab.IotaMille })
}

// pieces are the parts of a switch's change that share no port.
func (t *staging) pieces() []wiring.Piece {
	old, wanted := make([]wiring.Half, len(t.groups)), make([]wiring.Half, len(t.groups))
	for h, g := range t.groups {
		old[h] = t.core.halfOf(g.stay)
		wanted[h] = old[h]
		if g.moves() {
			wanted[h] = t.core.halfOf(g.wanted)
		}
	}
	pieces, err := wiring.Pieces(old, wanted)
	if err != nil {
		panic("planner: invariant: halves of one size: " + err.Error())
	}
	for h, g := range t.groups { // a circuit that passes to another job, whose own one is elsewhere
		for k, d := range g.stay {
			for i, j := range d.to {
				if w := g.wanted[k]; g.moves() && j >= 0 && w.to[i] == j && w.job[i] != d.job[i] {
					pieces = append(pieces, wiring.Piece{Group: h, Even: k, Steps: []wiring.Step{{In: i, Out: int(j)}, {In: i, Out: int(j), Create: true}}})
				}
			}
		}
	}
	return pieces
}

// bundle joins pieces that take links of a job away with those that make links
// of the same job between the same pods: of their group, and where that takes
// more away than it makes, of groups that make more.
func (t *staging) bundle(pieces []wiring.Piece) []move {
	type key struct {
		group int // -1: any
		job   proto.JobID
		i, j  int
	}
	of := func(p *wiring.Piece, s wiring.Step) key {
		d := t.groups[p.Group].stay[p.Even]
		if s.Create {
			d = t.groups[p.Group].wanted[p.Even]
		}
		return key{p.Group, d.job[s.In], min(s.In, s.Out), max(s.In, s.Out)}
	}
	more := map[key]int{} // links made than taken away
	for n := range pieces {
		for _, s := range pieces[n].Steps {
			if k := of(&pieces[n], s); s.Create {
				more[k]++
			} else {
				more[k]--
			}
		}
	}
	root := make([]int, len(pieces))
	find := func(n int) int {
		for root[n] != n {
			n = root[n]
		}
		return n
	}
	taken := map[key]int{} // piece that takes one away, the first of them
	for _, create := range []bool{false, true} {
		for n := range pieces {
			if !create {
				root[n] = n
			}
			for _, s := range pieces[n].Steps {
				if s.Create != create {
					continue
				}
				k := of(&pieces[n], s)
				keys := []key{k}
				if more[k] != 0 && more[k] > 0 == create {
					keys = append(keys, key{-1, k.job, k.i, k.j})
				}
				for _, k := range keys {
					if m, known := taken[k]; known {
						a, b := find(n), find(m)
						root[max(a, b)] = min(a, b)
					} else if !create {
						taken[k] = n
					}
				}
			}
		}
	}
	var out []move
	at := make([]int, len(pieces))
	for n := range pieces {
		r := find(n)
		if r == n {
			at[n] = len(out)
			out = append(out, move{})
		}
		m := &out[at[r]]
		m.pieces = append(m.pieces, pieces[n])
	}
	return out
}

// base is what maps hold when all that moves nothing is done: links of jobs
// that ended are gone, new ones of groups that move nothing are there, and
// links that only change their job have done so.
func (t *staging) base(end []crossMap) []crossMap {
	out := cloneMaps(t.core.from.maps)
	for h, g := range t.groups {
		for k := range g.wanted {
			at := h*t.core.layout.groupMaps() + k
			if !g.moves() {
				out[at] = end[at].clone()
				continue
			}
			for i, j := range t.core.from.maps[at].to {
				switch {
				case j < 0 || g.stay[k].to[i] == j:
				case g.wanted[k].to[i] == j:
					out[at].job[i] = g.wanted[k].job[i]
				case end[at].to[i] == j: // a backup that is in nobody's way
				default:
					t.core.layout.drop(out[at], int32(i))
				}
			}
		}
	}
	return out
}

// apply does a piece to the maps.
func (t *staging) apply(maps []crossMap, p *wiring.Piece) {
	d := maps[p.Group*t.core.layout.groupMaps()+p.Even]
	for _, s := range p.Steps {
		if !s.Create {
			t.core.layout.drop(d, int32(s.In))
		}
	}
	for _, s := range p.Steps {
		if s.Create {
			t.core.layout.put(d, int32(s.In), int32(s.Out), t.groups[p.Group].wanted[p.Even].job[s.In])
		}
	}
}

// account fills in the figures of a design.
func (t *staging) account(d *design) {
	s := &d.change
	s.Stages = uint32(len(d.stages))
	for at := range d.maps {
		made, gone := t.core.layout.difference(t.core.from.maps[at], d.maps[at])
		s.Created += uint32(made)
		s.Removed += uint32(gone)
	}
	for h, g := range t.groups {
		for k := range g.stay {
			t.core.layout.links(h*t.core.layout.groupMaps()+k, g.stay[k], func(i, j int32, _ proto.JobID) {
				if g.wanted[k].to[i] == j {
					s.Kept++
				} else {
					s.Moved++
				}
			})
		}
	}
	if s.Moved > 0 {
		s.DarkMicros = t.core.from.dark
	}
	d.accountJobs(&t.core.from.out)
}

// accountJobs fills in what becomes of jobs and their links.
func (d *design) accountJobs(gone *out) {
	s := &d.change
	there := gone.made(d.maps)
	for _, j := range d.jobs {
		switch {
		case j.found:
			s.Placed++
			s.Asked += uint32(there[j.spec.Job])
			s.Granted += uint32(there[j.spec.Job])
		case j.runs():
			s.Placed++
			s.Asked += uint32(j.asked())
			s.Granted += uint32(j.granted())
		default:
			s.Waiting = append(s.Waiting, j.spec.Job)
		}
		s.Realised += uint32(there[j.spec.Job])
	}
	slices.Sort(s.Waiting)
}
