package planner

import (
	"slices"

	"ringlight/planner/wiring"
	"ringlight/proto"
)

// stagesOf cuts what the groups have to do into stages, and says which share
// of a leaf's links moves at most at once. A group in which one piece alone
// would move too much goes back to pinned.
func (c *circuits) stagesOf(jobs []*job, groups []groupPlan) (end []deck, stages [][]deckSet, worst, worstOf uint32) {
	ends, links := c.carried(jobs, groups)
	pieces := c.pieces(ends, links, groups)
	changes := make([]wiring.Change, len(pieces))
	for n, p := range pieces {
		changes[n] = p.Change
	}
	order, err := wiring.Stages(changes, links, c.core.IotaMille)
	if err != nil {
		panic("planner: invariant: every piece alone is within the bound: " + err.Error())
	}
	moved, of := wiring.Worst(changes, links, order)
	end = c.filled(groups)
	cur := c.base(groups, end)
	last := c.decks
	for at, stage := range order {
		for _, n := range stage {
			c.apply(cur, groups, &pieces[n])
		}
		if at == len(order)-1 {
			cur = end
		}
		if sets := changedDecks(last, cur); len(sets) > 0 {
			stages = append(stages, sets)
			last = cloneDecks(cur)
		}
	}
	if sets := changedDecks(last, end); len(sets) > 0 {
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

// carried says which path each staying link carries, by deck and sending pod,
// and how many links each leaf has so. A job's links between the same pods over
// the same spine serve its paths in order.
func (c *circuits) carried(jobs []*job, groups []groupPlan) (ends [][]leafPair, links []int) {
	links = make([]int, c.core.Leaves())
	left := map[proto.JobID][]path{}
	for _, j := range jobs {
		left[j.spec.Job] = slices.Clone(j.paths)
	}
	for h := range groups {
		for _, d := range groups[h].stay {
			of := make([]leafPair, c.core.Pods)
			c.links(d, func(i, j int32, id proto.JobID) {
				for n := range left[id] {
					x := &left[id][n]
					p, q := c.sched.PodOf[x.A], c.sched.PodOf[x.B]
					if x.Spine == h && x.Count > 0 && min(p, q) == min(i, j) && max(p, q) == max(i, j) {
						x.Count--
						of[i] = leafPair{x.A, x.B, true}
						links[x.A]++
						links[x.B]++
						return
					}
				}
			})
			ends = append(ends, of)
		}
	}
	return ends, links
}

// pieces are what the groups that move links have to do, divided.
func (c *circuits) pieces(ends [][]leafPair, links []int, groups []groupPlan) []wiring.Piece {
	if c.uniform() {
		return nil
	}
	nobody := c.spreadOf(nil) // paths are counted here, by their jobs
	for {
		old, wanted := make([]wiring.Half, len(groups)), make([]wiring.Half, len(groups))
		for h, g := range groups {
			old[h] = c.halfOf(g.stay)
			wanted[h] = old[h]
			if g.moves {
				wanted[h] = c.halfOf(g.wanted)
			}
		}
		pieces, err := nobody.Pieces(old, wanted)
		if err != nil {
			panic("planner: invariant: halves of one size: " + err.Error())
		}
		tooMuch := false
		for n := range pieces {
			p := &pieces[n]
			var moved wiring.Change
			for _, s := range p.Steps {
				if e := ends[p.Group*c.groupDecks()+p.Even][s.In]; !s.Create && e.ok {
					moved.Moved = append(moved.Moved, wiring.LeafLinks{Leaf: e.a, Links: 1}, wiring.LeafLinks{Leaf: e.b, Links: 1})
				}
			}
			p.Change = wiring.Together([]wiring.Change{moved})
			for _, m := range p.Moved {
				if m.Links*1000 > links[m.Leaf]*c.core.IotaMille {
					groups[p.Group].wanted, groups[p.Group].moves = groups[p.Group].pinned, false
					tooMuch = true
				}
			}
		}
		if !tooMuch {
			return pieces
		}
	}
}

// base is what decks hold when all that moves nothing is done: links of jobs
// that ended are gone, new ones of groups that move nothing are there, and
// links that only change their job have done so.
func (c *circuits) base(groups []groupPlan, end []deck) []deck {
	out := cloneDecks(c.decks)
	for h, g := range groups {
		for k := range g.wanted {
			at := h*c.groupDecks() + k
			if !g.moves {
				out[at] = end[at].clone()
				continue
			}
			for i, j := range c.decks[at].to {
				switch {
				case j < 0 || g.stay[k].to[i] == j:
				case g.wanted[k].to[i] == j:
					out[at].job[i] = g.wanted[k].job[i]
				case end[at].to[i] == j: // a backup that is in nobody's way
				default:
					c.drop(out[at], int32(i))
				}
			}
		}
	}
	return out
}

// apply does a piece to the decks.
func (c *circuits) apply(decks []deck, groups []groupPlan, p *wiring.Piece) {
	d := decks[p.Group*c.groupDecks()+p.Even]
	for _, s := range p.Steps {
		if !s.Create {
			c.drop(d, int32(s.In))
		}
	}
	for _, s := range p.Steps {
		if s.Create {
			c.put(d, int32(s.In), int32(s.Out), groups[p.Group].wanted[p.Even].job[s.In])
		}
	}
}

// account fills in the figures of a design.
func (c *circuits) account(d *design, groups []groupPlan) {
	s := &d.change
	s.Stages = uint32(len(d.stages))
	for at := range d.decks {
		made, gone := c.difference(c.decks[at], d.decks[at])
		s.Created += uint32(made)
		s.Removed += uint32(gone)
	}
	for _, g := range groups {
		for k := range g.stay {
			c.links(g.stay[k], func(i, j int32, _ proto.JobID) {
				if g.wanted[k].to[i] == j {
					s.Kept++
				} else {
					s.Moved++
				}
			})
		}
	}
	if s.Moved > 0 {
		s.DarkMicros = c.dark
	}
	there := made(d.decks, c)
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
