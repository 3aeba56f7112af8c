package core

import (
	"cmp"
	"maps"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Between pods: over which links of leaves and which circuits the flows of a job go.

// way is one link between two leaves of a job, both ways: over a spine, by which of
// each leaf's links to it, and between pods by a circuit. As long as its path and its
// circuit stay, it does.
type way struct {
	Spine, A, B int // leaves, A < B
	UpA, UpB    int // of the leaf's links to the spine: which
	Map         int // of the circuit; -1: there is none
	From        int // pod that sends through the even switch of the map
}

// uplink is one link of a leaf to a spine.
type uplink struct{ leaf, spine, nth int }

// ups counts who uses which: a way between pods, which has no choice of its spine,
// counts as much as any number of those within.
type ups struct {
	spines, tau int
	n           []int
}

const crossing, noWay = 1 << 16, 1 << 30

func (u ups) at(leaf, spine, nth int) *int { return &u.n[(leaf*u.spines+spine)*u.tau+nth] }

func (u ups) take(w *way, n int) {
	*u.at(w.A, w.Spine, w.UpA) += n
	*u.at(w.B, w.Spine, w.UpB) += n
}

// least is which link of a leaf to a spine has fewest ways.
func (u ups) least(leaf, spine int) (nth, n int) {
	n = *u.at(leaf, spine, 0)
	for t := 1; t < u.tau; t++ {
		if x := *u.at(leaf, spine, t); x < n {
			nth, n = t, x
		}
	}
	return nth, n
}

// emptiest is the spine to which two leaves have the links that fewest use.
func (u ups) emptiest(a, b int) (spine int) {
	best := -1
	for h := range u.spines {
		_, x := u.least(a, h)
		_, y := u.least(b, h)
		if n := max(x, y)*4 + x + y; best < 0 || n < best {
			best, spine = n, h
		}
	}
	return spine
}

// lay gives every path of jobs its links and its circuit, and flows within a pod a
// way over the links that are left. What is there and still right stays.
func (c *interleaved) lay(jobs []*job, maps []crossMap) {
	used, lit := ups{c.fab.SpinesPerPod, c.fab.LeafLinks, make([]int, c.fab.Leaves()*c.fab.SpinesPerPod*c.fab.LeafLinks)}, c.circuitsByPods(maps)
	for x := range c.from.out.links { // any order: a set
		*used.at(x.Leaf, x.Spine, x.Nth) = noWay
	}
	missing := make([][]path, len(jobs))
	for i, j := range jobs {
		missing[i] = c.keepWays(j, lit, used)
		for n := range j.ways {
			used.take(&j.ways[n], c.weight(&j.ways[n]))
		}
	}
	for i, j := range jobs {
		add := func(spine, a, b int) bool {
			w := way{Spine: spine, A: a, B: b, Map: -1}
			w.UpA, _ = used.least(a, spine)
			w.UpB, _ = used.least(b, spine)
			if used.gone(&w) {
				return false // no link leads there
			}
			used.take(&w, c.weight(&w))
			j.ways = append(j.ways, w)
			return true
		}
		for _, x := range missing[i] {
			for range x.Count {
				add(x.Spine, x.A, x.B)
			}
		}
		if !j.laid {
			j.laid = len(j.servers) > 0
			for _, p := range j.unlaid(c.withinPods(j)) {
				j.laid = add(used.emptiest(p.a, p.b), p.a, p.b) && j.laid
			}
		}
	}
	c.giveWay(jobs, used)
	for _, j := range jobs {
		for n := range j.ways {
			w := &j.ways[n]
			if k := c.podsOf(j, w); w.Map < 0 && c.sched.PodOf[w.A] != c.sched.PodOf[w.B] && len(lit[k]) > 0 {
				w.Map, w.From = lit[k][0][0], lit[k][0][1]
				lit[k] = lit[k][1:]
			}
		}
	}
}

// gone: a link of a way is out.
func (u ups) gone(w *way) bool {
	return max(*u.at(w.A, w.Spine, w.UpA), *u.at(w.B, w.Spine, w.UpB)) >= noWay
}

func (c *interleaved) weight(w *way) int {
	if c.sched.PodOf[w.A] != c.sched.PodOf[w.B] {
		return crossing
	}
	return 1
}

// giveWay moves ways within pods off links that others use too, where there are
// links that nobody uses: a path between pods has no choice of its spine, they have.
func (c *interleaved) giveWay(jobs []*job, used ups) {
	for _, j := range jobs {
		for n := range j.ways {
			w := &j.ways[n]
			if c.sched.PodOf[w.A] != c.sched.PodOf[w.B] || max(*used.at(w.A, w.Spine, w.UpA), *used.at(w.B, w.Spine, w.UpB)) < 2 {
				continue
			}
			h := used.emptiest(w.A, w.B)
			a, x := used.least(w.A, h)
			b, y := used.least(w.B, h)
			if x+y == 0 {
				used.take(w, -1)
				w.Spine, w.UpA, w.UpB = h, a, b
				used.take(w, 1)
			}
		}
	}
}

func (c *interleaved) podsOf(j *job, w *way) sameLinks {
	return c.podLinks(j.spec.Job, path{w.Spine, w.A, w.B, 1})
}

// circuitsByPods are the circuits of jobs by spine and pods: map and sending pod.
func (c *interleaved) circuitsByPods(maps []crossMap) map[sameLinks][][2]int {
	out := map[sameLinks][][2]int{}
	for at, d := range maps {
		c.layout.links(at, d, func(i, j int32, id proto.JobID) {
			if c.from.failed(c.layout.slots(at, i, j)) {
				return
			}
			k := sameLinks{id, int32(c.layout.groupOf(at)), min(i, j), max(i, j), true}
			out[k] = append(out[k], [2]int{at, int(i)})
		})
	}
	return out
}

// keepWays drops the ways of a job whose paths are gone, and circuits that are; those
// that stay are taken out of what is lit. It gives the paths that have no way.
func (c *interleaved) keepWays(j *job, lit map[sameLinks][][2]int, used ups) (missing []path) {
	if len(j.paths)+len(j.ways) == 0 {
		return nil
	}
	left := map[[3]int]int{}
	for _, x := range j.paths {
		left[[3]int{x.Spine, min(x.A, x.B), max(x.A, x.B)}] += x.Count
	}
	j.ways = slices.DeleteFunc(slices.Clone(j.ways), func(w way) bool {
		if within := c.sched.PodOf[w.A] == c.sched.PodOf[w.B]; within || used.gone(&w) {
			j.laid = j.laid && !(within && used.gone(&w))
			return used.gone(&w)
		}
		k := [3]int{w.Spine, w.A, w.B}
		left[k]--
		return left[k] < 0
	})
	for n := range j.ways {
		w := &j.ways[n]
		k := c.podsOf(j, w)
		if at := slices.Index(lit[k], [2]int{w.Map, w.From}); at >= 0 {
			lit[k] = slices.Delete(slices.Clone(lit[k]), at, at+1)
		} else {
			w.Map, w.From = -1, 0
		}
	}
	for _, x := range j.paths {
		k := [3]int{x.Spine, min(x.A, x.B), max(x.A, x.B)}
		if n := left[k]; n > 0 {
			missing = append(missing, path{x.Spine, k[1], k[2], n})
			left[k] = 0
		}
	}
	return missing
}

// leaves are two of one pod between which a job's flows go.
type leaves struct{ a, b int }

// withinPods are the ways that a job needs between leaves of the same pod: of each
// pair as many as any phase has flows one way.
func (c *interleaved) withinPods(j *job) (out []leaves) {
	most := map[leaves]int{}
	ranks := ranksOf(c.fab, *c, j)
	for _, phase := range ranks.flows() {
		count := map[leaves]int{}
		for _, f := range phase {
			a, b := ranks.Places[f[0]].Server/c.fab.ServersPerLeaf, ranks.Places[f[1]].Server/c.fab.ServersPerLeaf
			if a == b || c.sched.PodOf[a] != c.sched.PodOf[b] {
				continue
			}
			count[leaves{a, b}]++
			k := leaves{min(a, b), max(a, b)}
			most[k] = max(most[k], count[leaves{a, b}])
		}
	}
	for k, n := range most { // any order: sorted below
		out = append(out, slices.Repeat([]leaves{k}, n)...)
	}
	slices.SortFunc(out, func(x, y leaves) int { return cmp.Or(x.a-y.a, x.b-y.b) })
	return out
}

// unlaid are the pairs of leaves of a pod between which a job needs more ways than it has.
func (j *job) unlaid(within []leaves) []leaves {
	has := map[leaves]int{}
	for _, w := range j.ways {
		has[leaves{w.A, w.B}]++
	}
	return slices.DeleteFunc(within, func(p leaves) bool {
		has[p]--
		return has[p] >= 0
	})
}

// lost: circuits that are not there, and ways between leaves of a pod.
func (c interleaved) lost(j *job) (links int, part string) {
	if links = j.granted() - c.from.out.made(c.from.maps)[j.spec.Job]; !j.laid {
		links += len(j.unlaid(c.withinPods(j)))
	}
	if links <= 0 || j.found {
		return 0, ""
	}
	for _, key := range slices.Sorted(maps.Keys(c.from.out.why)) {
		p, _ := c.fab.Part(key)
		for _, s := range j.placed.Shares {
			if slices.ContainsFunc(p.Ports, func(x fabric.SwitchPort) bool { return x.Port == s.Pod }) ||
				slices.ContainsFunc(p.Links, func(x fabric.LeafLink) bool { return x.Leaf == s.Pod*c.fab.LeavesPerPod+s.Leaf }) {
				return links, key
			}
		}
	}
	return links, ""
}

// flows are what ranks send at the same time, phase by phase, but for an all-to-all:
// rings of one stage after the other, or the phases of another collective, then what
// pipelines pass on and what comes back.
func (r Ranks) flows() (out [][][2]int) {
	for stage := range r.Stages {
		if r.Collective == proto.CollectiveAllToAll && r.PodOf != nil {
			continue
		}
		if phases := r.Phases(stage); phases != nil {
			out = append(out, phases...)
			continue
		}
		var ring [][2]int
		for _, g := range r.Groups() {
			for n, from := range g.Ranks {
				if to := g.Ranks[(n+1)%len(g.Ranks)]; g.Stage == stage && to != from {
					ring = append(ring, [2]int{from, to})
				}
			}
		}
		out = append(out, ring)
	}
	if r.Stages < 2 {
		return out
	}
	var on, back [][2]int
	for next := len(r.Places) / r.Stages; next < len(r.Places); next++ {
		from := next - len(r.Places)/r.Stages
		on, back = append(on, [2]int{from, next}), append(back, [2]int{next, from})
	}
	return append(out, on, back)
}
