package core

import (
	"cmp"
	"slices"

	"ringlight/planner/wiring"
	"ringlight/proto"
)

// Between pods: from jobs to maps. A link that is there and still wanted stays; a new one
// takes ports that are free. Only where those do not do, links of jobs that
// stay are moved, in stages: a few in chains, and where these do not do, all of
// a group by the search of planner/wiring; where one piece of that would move
// more of a leaf than the core allows, the group has what chains found, and the
// new links that find no port are missing.

// lot is what a job wants between two pods in one group.
type lot struct {
	job  proto.JobID
	i, j int32 // i <= j
	n    int
}

// groupPlan is one group on its way from what it carries to what it should.
type groupPlan struct {
	stay     []crossMap // of what it carries: the links that are still wanted
	wanted   []crossMap
	pinned   []crossMap // wanted, if no more moves than for single links
	missing  int        // links that pinned has not
	shifts   bool       // pinned moves some link that stays
	searched bool       // wanted is not pinned, but what a search found
}

func (c interleaved) at(from standing) designer {
	c.from = from
	return c
}

func (c interleaved) start(jobs []*job) { c.admit(jobs) }

// design: servers become free only with a new list, so only then are jobs
// admitted.
func (c interleaved) design(jobs []*job, list bool) design {
	r := reseating{&c, jobs}
	r.reseat()
	if list {
		c.admit(jobs)
	}
	c.number(jobs)
	return r.rejoin(c.plan(copyJobs(jobs)))
}

// plan finds the links of jobs that have their servers.
func (c interleaved) plan(jobs []*job) design {
	d := design{jobs: jobs}
	c.assign(d.jobs)
	groups := make([]groupPlan, c.fab.Groups())
	missing := slices.ContainsFunc(d.jobs, (*job).lacks)
	for h := range groups {
		groups[h] = c.planGroup(h, c.lots(h, d.jobs))
		missing = missing || groups[h].missing > 0
	}
	t := c.staging(d.jobs, groups)
	if missing {
		t.chain(d.jobs)
	}
	for h := range groups {
		c.searchGroup(h, &groups[h], d.jobs)
	}
	d.maps, d.stages, d.change.Worst, d.change.WorstOf = t.stages()
	t.account(&d)
	c.lay(d.jobs, d.maps)
	return d
}

// lots are what all jobs want in a group, in order of jobs and pods.
func (c *interleaved) lots(h int, jobs []*job) []lot {
	var out []lot
	add := func(id proto.JobID, i, j int32, n int) {
		i, j = min(i, j), max(i, j)
		at, found := slices.BinarySearchFunc(out, lot{id, i, j, 0}, byLot)
		if found {
			out[at].n += n
			return
		}
		out = slices.Insert(out, at, lot{id, i, j, n})
	}
	for _, j := range jobs {
		for _, x := range j.paths {
			if x.Spine == h {
				add(j.spec.Job, c.sched.PodOf[x.A], c.sched.PodOf[x.B], x.Count)
			}
		}
	}
	c.eachFound(h*c.layout.groupMaps(), (h+1)*c.layout.groupMaps(), jobs, func(_ int, id proto.JobID, i, j int32) { add(id, i, j, 1) })
	return out
}

func byLot(a, b lot) int {
	return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.i, b.i), cmp.Compare(a.j, b.j))
}

// take counts a link off its lot; false: no more of it is wanted.
func take(lots []lot, id proto.JobID, i, j int32) bool {
	at, found := slices.BinarySearchFunc(lots, lot{id, min(i, j), max(i, j), 0}, byLot)
	if !found || lots[at].n == 0 {
		return false
	}
	lots[at].n--
	return true
}

// planGroup finds what of a group stays, and free ports for what comes.
func (c *interleaved) planGroup(h int, lots []lot) groupPlan {
	first := h * c.layout.groupMaps()
	now := c.from.maps[first : first+c.layout.groupMaps()]
	left := slices.Clone(lots)
	g := groupPlan{stay: make([]crossMap, len(now)), pinned: make([]crossMap, len(now))}
	for k, d := range now {
		able := c.from.able[first+k]
		g.stay[k] = newMap(c.fab.Pods)
		c.layout.links(first+k, d, func(i, j int32, id proto.JobID) {
			if way := c.layout.slots(first+k, i, j); !(able && c.from.failed(way)) && c.from.out.hits(way...) == "" && take(left, id, i, j) {
				c.layout.put(g.stay[k], i, j, id)
			}
		})
		g.pinned[k] = g.stay[k].clone()
		if !able { // what ends here ends when it can be told
			g.pinned[k] = d.clone()
		}
	}
	g.missing = c.insert(first, now, g.pinned, left)
	return g
}

// moves: some link that stays is not where it is.
func (g *groupPlan) moves() bool { return g.shifts || g.searched }

// pin goes back from what a search found; false: nothing was searched.
func (g *groupPlan) pin() bool {
	searched := g.searched
	if searched {
		g.wanted, g.searched = g.pinned, false
	}
	return searched
}

// searchGroup decides on the maps of a group. Where links still have no ports,
// all of it is searched.
func (c *interleaved) searchGroup(h int, g *groupPlan, jobs []*job) {
	g.wanted = g.pinned
	first := h * c.layout.groupMaps()
	if g.missing == 0 || c.layout.uniform() || c.anyBad(h) || slices.Contains(c.from.able[first:first+c.layout.groupMaps()], false) {
		return
	}
	lots := c.lots(h, jobs)
	if c.anyFound(lots) {
		return
	}
	if wanted, ok := c.rewire(h, c.from.maps[first:first+c.layout.groupMaps()], g.stay, lots); ok {
		g.wanted, g.searched = wanted, true
	}
}

// anyBad: some circuit of a group did not come up. The search knows of no
// place to avoid and would choose it again.
func (c *interleaved) anyBad(h int) bool {
	for s := range c.from.bad { // any order: whether there is one
		if s.sw/c.fab.SpinePorts == h {
			return true
		}
	}
	for p := range c.from.out.ports { // any order: whether there is one
		if p.Switch/c.fab.SpinePorts == h {
			return true
		}
	}
	return false
}

// anyFound: a link whose leaves nobody knows must not be moved.
func (c *interleaved) anyFound(lots []lot) bool {
	return slices.ContainsFunc(lots, func(l lot) bool { j := c.from.known.find(l.job); return j != nil && j.found })
}

// insert puts the links that are left into free ports, where the same link was
// if it can, and returns how many found none.
func (c *interleaved) insert(first int, now, maps []crossMap, left []lot) int {
	missing := 0
	for n := range left {
		l := &left[n]
		for ; l.n > 0; l.n-- {
			if !c.insertOne(first, now, maps, *l) {
				missing += l.n
				break
			}
		}
	}
	return missing
}

func (c *interleaved) insertOne(first int, now, maps []crossMap, l lot) bool {
	ways := [][2]int32{{l.i, l.j}, {l.j, l.i}}
	if c.layout.uniform() {
		ways = ways[:1]
	}
	// The same link of a job that ends; any free port; the place that failed.
	for try := range 3 {
		for k := range maps {
			for _, w := range ways {
				way := c.layout.slots(first+k, w[0], w[1])
				same, bad := now[k].to[w[0]] == w[1], c.from.failed(way)
				fits := try == 0 && same && !bad || try == 1 && !bad || try == 2 && same && c.from.out.hits(way...) == ""
				if fits && c.from.able[first+k] && c.layout.free(maps[k], w[0], w[1]) {
					c.layout.put(maps[k], w[0], w[1], l.job)
					return true
				}
			}
		}
	}
	return false
}

// rewire searches maps that have all links, with as few moved as it can.
func (c *interleaved) rewire(h int, now, stay []crossMap, lots []lot) ([]crossMap, bool) {
	top := wiring.Topology{Pods: c.fab.Pods}
	for _, l := range lots {
		top = wiring.Merge(top, wiring.Topology{Pods: c.fab.Pods, Links: []wiring.Link{{I: l.i, J: l.j, Count: int32(l.n)}}})
	}
	half, err := wiring.Rewire(wiring.Group{Topology: top, Old: c.halfOf(stay)}, wiring.Seed(searchSeed, h), searchSteps*top.Circuits())
	if err != nil {
		return nil, false // more than the ports of a pod: what fits is pinned
	}
	out := make([]crossMap, len(stay))
	for k := range out {
		out[k] = newMap(c.fab.Pods)
		copy(out[k].to, half.Row(k))
	}
	c.settle(now, stay, out)
	left := slices.Clone(lots)
	for k := range out {
		for i, j := range out[k].to {
			if j >= 0 && stay[k].to[i] == j && take(left, stay[k].job[i], int32(i), j) {
				out[k].job[i] = stay[k].job[i]
			}
		}
	}
	for k := range out {
		for i, j := range out[k].to {
			if j >= 0 && out[k].job[i] == 0 {
				at := slices.IndexFunc(left, func(l lot) bool { return l.n > 0 && l.i == min(int32(i), j) && l.j == max(int32(i), j) })
				if at < 0 {
					panic("planner: invariant: a rewiring has the links that were asked for")
				}
				left[at].n--
				out[k].job[i] = left[at].job
			}
		}
	}
	return out, true
}

func (c *interleaved) halfOf(maps []crossMap) wiring.Half {
	h := wiring.NewHalf(c.fab.Pods, len(maps))
	for k, d := range maps {
		copy(h.Row(k), d.to)
	}
	return h
}

// settle puts links back where they were, when the ports there are free in the
// new maps after all: first those that stay, then those of jobs that end, so
// that a new link moves no mirror.
func (c *interleaved) settle(now, stay, out []crossMap) {
	for _, old := range [2][]crossMap{stay, now} {
		for k, d := range old {
			for i, j := range d.to {
				if j < 0 || out[k].to[i] == j || !c.layout.free(out[k], int32(i), j) {
					continue
				}
				if k2, i2, ok := moveable(now, stay, out, int32(i), j); ok {
					out[k2].to[i2] = -1
					out[k].to[i] = j
				}
			}
		}
	}
}

// moveable finds a new link of the same pods in a place where none was.
func moveable(now, stay, out []crossMap, i, j int32) (k int, from int32, ok bool) {
	for k := range out {
		for _, w := range [2][2]int32{{i, j}, {j, i}} {
			if out[k].to[w[0]] == w[1] && stay[k].to[w[0]] != w[1] && now[k].to[w[0]] != w[1] {
				return k, w[0], true
			}
		}
	}
	return 0, 0, false
}
