package core

import (
	"slices"

	"ringlight/planner/sched"
	"ringlight/planner/wiring"
	"ringlight/proto"
)

// Which way links go: every granted link of a job gets a spine.

// deal gives every granted link a spine. Links that have one keep it; where
// the rest finds no room beside them, it goes without.
func (c *interleaved) deal(jobs []*job) {
	old := c.spreadOf(jobs)
	var running []sched.Placed
	adopted := false
	for _, j := range jobs {
		if len(j.placed.Shares) > 0 {
			running = append(running, j.placed)
		}
		adopted = adopted || j.found
	}
	need, err := c.sched.Need(running)
	if err == nil && !adopted {
		if next, err := c.sched.Respread(need, old); err == nil && c.dealt(jobs, old, next) {
			return
		}
	}
	c.dealGreedy(jobs, old)
}

// spreadOf is the spread of the jobs' paths.
func (c *interleaved) spreadOf(jobs []*job) wiring.Spread {
	s := wiring.Spread{Leaves: c.sched.Leaves, Spine: make([]wiring.Topology, c.fab.SpinesPerPod)}
	for h := range s.Spine {
		s.Spine[h].Pods = c.fab.Leaves()
	}
	for _, j := range jobs {
		for _, x := range j.paths {
			one := wiring.Topology{Pods: c.fab.Leaves(), Links: []wiring.Link{{I: int32(x.A), J: int32(x.B), Count: int32(x.Count)}}}
			s.Spine[x.Spine] = wiring.Merge(s.Spine[x.Spine], one)
		}
	}
	return s
}

// dealt takes a spread that leaves every path where it was, and gives what is
// new to the jobs that lack it. It reports false, and does nothing, where the
// spread moves a path.
func (c *interleaved) dealt(jobs []*job, old, next wiring.Spread) bool {
	var fresh []path
	for h := range next.Spine {
		was := map[[2]int32]int32{}
		for _, l := range old.Spine[h].Links {
			was[[2]int32{l.I, l.J}] = l.Count
		}
		kept := 0
		for _, l := range next.Spine[h].Links {
			before := was[[2]int32{l.I, l.J}]
			if before > 0 {
				kept++
			}
			if l.Count < before {
				return false
			}
			if n := int(l.Count - before); n > 0 {
				fresh = append(fresh, path{h, int(l.I), int(l.J), n})
			}
		}
		if kept < len(was) {
			return false
		}
	}
	for _, j := range jobs {
		for n, w := range j.placed.Wants {
			lack := j.placed.Links[n] - j.between(w.A, w.B)
			for f := range fresh {
				if x := &fresh[f]; x.A == w.A && x.B == w.B && lack > 0 {
					take := min(lack, x.Count)
					j.add(path{x.Spine, x.A, x.B, take})
					x.Count -= take
					lack -= take
				}
			}
		}
	}
	return true
}

// dealGreedy gives each link the spine where its leaves have fewest, moving
// nothing.
func (c *interleaved) dealGreedy(jobs []*job, old wiring.Spread) {
	spines := c.fab.SpinesPerPod
	leaf, pod := make([]int, c.fab.Leaves()*spines), make([]int, c.fab.Pods*spines)
	for h, t := range old.Spine {
		for _, l := range t.Links {
			for _, end := range [2]int32{l.I, l.J} {
				leaf[int(end)*spines+h] += int(l.Count)
				pod[int(c.sched.PodOf[end])*spines+h] += int(l.Count)
			}
		}
	}
	c.eachFound(jobs, func(h int, i, j int32) {
		pod[int(i)*spines+h]++
		pod[int(j)*spines+h]++
	})
	for _, j := range jobs {
		for n, w := range j.placed.Wants {
			for lack := j.placed.Links[n] - j.between(w.A, w.B); lack > 0; lack-- {
				best := -1
				p, q := int(c.sched.PodOf[w.A]), int(c.sched.PodOf[w.B])
				for h := range spines {
					a, b := leaf[w.A*spines+h], leaf[w.B*spines+h]
					if a < 2 && b < 2 && pod[p*spines+h] < c.fab.SpinePorts && pod[q*spines+h] < c.fab.SpinePorts &&
						(best < 0 || a+b < leaf[w.A*spines+best]+leaf[w.B*spines+best]) {
						best = h
					}
				}
				if best < 0 {
					break
				}
				j.add(path{best, w.A, w.B, 1})
				leaf[w.A*spines+best]++
				leaf[w.B*spines+best]++
				pod[p*spines+best]++
				pod[q*spines+best]++
			}
		}
	}
}

// eachFound calls f for every link of a job that is known by its circuits.
func (c *interleaved) eachFound(jobs []*job, f func(h int, i, j int32)) {
	for at, d := range c.maps {
		c.links(at, d, func(i, j int32, id proto.JobID) {
			if slices.ContainsFunc(jobs, func(x *job) bool { return x.found && x.spec.Job == id }) {
				f(c.groupOf(at), i, j)
			}
		})
	}
}
