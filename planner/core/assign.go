package core

import (
	"slices"

	"ringlight/planner/sched"
	"ringlight/planner/wiring"
	"ringlight/proto"
)

// Which way links go: every granted link of a job gets a spine.

// assign gives granted links a spine. Links that have one keep it; the rest goes
// where its leaves have fewest, and where there is no room beside the others,
// it goes without: see chain.
func (c *interleaved) assign(jobs []*job) {
	c.anchor(jobs)
	c.from.out.yield(jobs)
	var running []sched.Placed
	old := wiring.Spread{Leaves: c.sched.Leaves, Spine: make([]wiring.Topology, c.fab.SpinesPerPod)}
	links := make([][]wiring.Link, c.fab.SpinesPerPod)
	for _, j := range jobs {
		if len(j.placed.Shares) > 0 {
			running = append(running, j.placed)
		}
		for _, x := range j.paths {
			links[x.Spine] = append(links[x.Spine], wiring.Link{I: int32(x.A), J: int32(x.B), Count: int32(x.Count)})
		}
	}
	need, err := c.sched.Need(running)
	for h := range old.Spine {
		if err == nil {
			old.Spine[h], err = wiring.Sum(c.fab.Leaves(), links[h])
		}
	}
	if err != nil {
		return // a store of another core: what has a spine keeps it
	}
	others := c.from.out.ofPods()
	c.eachFound(0, len(c.from.maps), jobs, func(h int, _ proto.JobID, i, j int32) {
		others[int(i)*c.fab.SpinesPerPod+h]++
		others[int(j)*c.fab.SpinesPerPod+h]++
	})
	if next, err := c.sched.Beside(need, old, others, c.from.out.ofLeaves()); err == nil {
		c.share(jobs, old, next)
	}
}

// anchor has paths follow light: one that was to move, and is still lit where
// it was, is there; what was to come in its place has no spine again.
func (c *interleaved) anchor(jobs []*job) {
	dark := map[sameLinks]int{} // links of a job between two pods on a spine that have no circuit; below 0: circuits without a path
	for _, j := range jobs {
		for _, x := range j.paths {
			dark[c.podLinks(j.spec.Job, x)] += x.Count
		}
	}
	for at, d := range c.from.maps {
		c.layout.links(at, d, func(i, j int32, id proto.JobID) {
			dark[sameLinks{id, int32(c.layout.groupOf(at)), min(i, j), max(i, j), true}]--
		})
	}
	load := map[[2]int]int{} // of a leaf and spine where a path came back
	for _, j := range jobs {
		for _, x := range slices.Clone(j.paths) {
			k := c.podLinks(j.spec.Job, x)
			for h := 0; h < c.fab.SpinesPerPod && dark[k] > 0; h++ {
				if there := k.on(h); dark[there] < 0 {
					dark[k]--
					dark[there]++
					j.drop(path{x.Spine, x.A, x.B, 1})
					j.add(path{h, x.A, x.B, 1})
					load[[2]int{x.A, h}], load[[2]int{x.B, h}] = 0, 0
					if x.Count--; x.Count == 0 {
						break
					}
				}
			}
		}
	}
	if len(load) == 0 {
		return
	}
	ends := func(x path) [2][2]int { return [2][2]int{{x.A, x.Spine}, {x.B, x.Spine}} }
	for _, j := range jobs {
		for _, x := range j.paths {
			for _, e := range ends(x) {
				load[e] += x.Count
			}
		}
	}
	for _, j := range jobs {
		for _, x := range slices.Clone(j.paths) {
			for n := x.Count; n > 0 && dark[c.podLinks(j.spec.Job, x)] > 0 && max(load[ends(x)[0]], load[ends(x)[1]]) > leafLoad; n-- {
				dark[c.podLinks(j.spec.Job, x)]--
				j.drop(path{x.Spine, x.A, x.B, 1})
				for _, e := range ends(x) {
					load[e]--
				}
			}
		}
	}
}

// podLinks are the links between the pods of a path on its spine.
func (c *interleaved) podLinks(id proto.JobID, x path) sameLinks {
	p, q := c.sched.PodOf[x.A], c.sched.PodOf[x.B]
	return sameLinks{id, int32(x.Spine), min(p, q), max(p, q), true}
}

// on are the same links on another spine.
func (k sameLinks) on(spine int) sameLinks {
	k.spine = int32(spine)
	return k
}

// share gives jobs what a spread has beyond an old one.
func (c *interleaved) share(jobs []*job, old, next wiring.Spread) {
	type pair struct{ a, b int }
	fresh := map[pair][]path{}
	for h := range next.Spine {
		was := map[pair]int{}
		for _, l := range old.Spine[h].Links {
			was[pair{int(l.I), int(l.J)}] = int(l.Count)
		}
		for _, l := range next.Spine[h].Links {
			k := pair{int(l.I), int(l.J)}
			if n := int(l.Count) - was[k]; n > 0 {
				fresh[k] = append(fresh[k], path{h, k.a, k.b, n})
			}
		}
	}
	for _, j := range jobs {
		for n, w := range j.placed.Wants {
			left := fresh[pair{w.A, w.B}]
			if len(left) == 0 {
				continue
			}
			lack := j.placed.Links[n] - j.between(w.A, w.B)
			for f := range left {
				if take := min(lack, left[f].Count); take > 0 {
					j.add(path{left[f].Spine, w.A, w.B, take})
					left[f].Count -= take
					lack -= take
				}
			}
		}
	}
}

// eachFound calls f for every link of a job that is known by its circuits, in some maps.
func (c *interleaved) eachFound(from, to int, jobs []*job, f func(h int, id proto.JobID, i, j int32)) {
	if !slices.ContainsFunc(jobs, func(x *job) bool { return x.found }) {
		return
	}
	for at := from; at < to; at++ {
		c.layout.links(at, c.from.maps[at], func(i, j int32, id proto.JobID) {
			if slices.ContainsFunc(jobs, func(x *job) bool { return x.found && x.spec.Job == id }) {
				f(c.layout.groupOf(at), id, i, j)
			}
		})
	}
}
