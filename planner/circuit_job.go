package planner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"ringlight/planner/sched"
	"ringlight/planner/wiring"
	"ringlight/proto"
)

// job is one job: what was asked for, where it is, and which way its links go.
type job struct {
	spec   proto.JobSpec
	placed sched.Placed // no shares: it waits
	paths  []path       // by spine and leaves
	found  bool         // known by its circuits only
	why    string       // why it waits
}

// path is a number of links between two leaves over one spine of their pods.
type path struct {
	Spine, A, B, Count int
}

func (j *job) runs() bool { return len(j.placed.Shares) > 0 || j.found }

func (j *job) asked() int {
	n := 0
	for _, w := range j.placed.Wants {
		n += w.Links()
	}
	return n
}

func (j *job) granted() int {
	n := 0
	for _, l := range j.placed.Links {
		n += l
	}
	return n
}

// job finds a job by its id.
func (c *circuits) job(id proto.JobID) *job {
	at, ok := slices.BinarySearchFunc(c.jobs, id, func(j *job, id proto.JobID) int { return cmp.Compare(j.spec.Job, id) })
	if !ok {
		return nil
	}
	return c.jobs[at]
}

// domains are a job's, the replicas counted from its servers where they are
// not given.
func (c *circuits) domains(s *proto.JobSpec) sched.Job {
	j := sched.Job{TP: int(s.TP), EP: int(s.EP), PP: int(s.PP), DP: int(s.DP)}
	if s.DP == 0 && s.TP > 0 && s.PP > 0 {
		j.DP = int(s.Servers) * c.core.GPUsPerServer / (int(s.TP) * int(s.PP))
	}
	return j
}

// checkJobs says what is wrong with a job list, if anything.
func (c *circuits) checkJobs(list []proto.JobSpec) *proto.Error {
	seen := map[proto.JobID]int{}
	for i := range list {
		s := &list[i]
		bad := func(field, limit, format string, args ...any) *proto.Error {
			return &proto.Error{Code: proto.Invalid, Field: fmt.Sprintf("jobs[%d].%s", i, field), Limit: limit, Reason: fmt.Sprintf(format, args...)}
		}
		if before, twice := seen[s.Job]; twice {
			return bad("id", "each id once", "jobs[%d] is job %d too", before, s.Job)
		}
		seen[s.Job] = i
		if s.Job == 0 {
			return bad("id", "1 and up", "0 stands for no job")
		}
		for _, p := range s.Pods {
			if int(p) >= c.core.Pods {
				return bad("pods", fmt.Sprintf("pods 0 to %d", c.core.Pods-1), "there is no pod %d", p)
			}
		}
		if s.DP == 0 && s.Servers == 0 {
			return bad("servers", "servers, or dp", "neither is given")
		}
		all := c.core.Leaves() * c.core.ServersPerLeaf
		if int(s.Servers) > all {
			return bad("servers", fmt.Sprintf("at most the %d there are", all), "%d", s.Servers)
		}
		j := c.domains(s)
		if err := j.Validate(); err != nil {
			var e *wiring.Error
			errors.As(err, &e)
			return bad(e.Field, e.Limit, "%s", e.Reason)
		}
		if gps := c.core.GPUsPerServer; gps%j.TP != 0 && j.TP%gps != 0 {
			return bad("tp", fmt.Sprintf("a divisor or a multiple of the %d GPUs of a server", gps), "%d", j.TP)
		}
		need := (j.GPUs() + c.core.GPUsPerServer - 1) / c.core.GPUsPerServer
		if need > all {
			return bad("dp", fmt.Sprintf("at most the %d servers there are", all), "tp %d, pp %d, dp %d take %d servers", j.TP, j.PP, j.DP, need)
		}
		if s.Servers != 0 && s.Servers != uint32(need) {
			return bad("servers", fmt.Sprintf("%d, what tp %d, pp %d, dp %d take", need, j.TP, j.PP, j.DP), "%d", s.Servers)
		}
	}
	return nil
}

// checkStored keeps a damaged record from becoming a broken index later.
func (c *circuits) checkStored(j *job) error {
	leaf := func(n int) bool { return n >= 0 && n < c.core.Leaves() }
	for _, s := range j.placed.Shares {
		if s.Pod < 0 || s.Pod >= c.core.Pods || s.Leaf < 0 || s.Leaf >= c.core.LeavesPerPod || s.Servers < 1 {
			return fmt.Errorf("no such leaf: %+v", s)
		}
	}
	if len(j.placed.Wants) != len(j.placed.Links) {
		return fmt.Errorf("%d wants, %d answers", len(j.placed.Wants), len(j.placed.Links))
	}
	for _, w := range j.placed.Wants {
		if !leaf(w.A) || !leaf(w.B) {
			return fmt.Errorf("no such leaf: %+v", w)
		}
	}
	for _, x := range j.paths {
		if !leaf(x.A) || !leaf(x.B) || x.Spine < 0 || x.Spine >= c.core.SpinesPerPod || x.Count < 1 {
			return fmt.Errorf("no such path: %+v", x)
		}
	}
	return nil
}

// list makes jobs of a list that was checked: those with the same words as
// before stay where they are.
func (c *circuits) list(specs []proto.JobSpec) []*job {
	var out []*job
	for i := range specs {
		s := specs[i]
		if old := c.job(s.Job); old != nil && !old.found && sameSpec(&old.spec, &s) {
			out = append(out, old)
			continue
		}
		s.Pods = slices.Clone(s.Pods)
		out = append(out, &job{spec: s, placed: sched.Placed{Job: c.domains(&s)}})
	}
	slices.SortFunc(out, func(a, b *job) int { return cmp.Compare(a.spec.Job, b.spec.Job) })
	return out
}

func sameSpec(a, b *proto.JobSpec) bool {
	x, y := *a, *b
	x.Pods, y.Pods = nil, nil
	return slices.Equal(a.Pods, b.Pods) && x.Job == y.Job && x.TP == y.TP && x.EP == y.EP && x.PP == y.PP && x.DP == y.DP && x.Servers == y.Servers
}

// copyJobs are jobs that may be changed.
func copyJobs(jobs []*job) []*job {
	out := make([]*job, len(jobs))
	for n, j := range jobs {
		k := *j
		k.paths = slices.Clone(j.paths)
		out[n] = &k
	}
	return out
}

// admit finds servers for the jobs that have none, in order of their ids.
func (c *circuits) admit(jobs []*job) []*job {
	out := copyJobs(jobs)
	var running []sched.Placed
	for _, j := range out {
		if len(j.placed.Shares) > 0 {
			running = append(running, j.placed)
		}
	}
	for _, k := range out {
		if k.runs() {
			continue
		}
		placed, err := c.within(running, k.spec.Pods).Admit(running, k.placed.Job)
		if err != nil {
			k.why = err.Error()
			continue
		}
		k.placed, k.why = placed, ""
		running = append(running, placed)
	}
	return out
}

// within is the core as a job sees it that may be in some pods only: elsewhere
// no server is idle.
func (c *circuits) within(running []sched.Placed, pods []uint16) sched.Core {
	if len(pods) == 0 {
		return c.sched
	}
	s := c.sched
	s.Servers = make([]int, len(c.sched.Servers))
	for leaf, p := range s.PodOf {
		if slices.Contains(pods, uint16(p)) {
			s.Servers[leaf] = c.sched.Servers[leaf]
		}
	}
	for _, r := range running {
		for _, x := range r.Shares {
			if !slices.Contains(pods, uint16(x.Pod)) {
				s.Servers[x.Pod*c.core.LeavesPerPod+x.Leaf] += x.Servers
			}
		}
	}
	return s
}

// deal gives every granted link a spine. Links that have one keep it; where
// the rest finds no room beside them, it goes without.
func (c *circuits) deal(jobs []*job) {
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
func (c *circuits) spreadOf(jobs []*job) wiring.Spread {
	s := wiring.Spread{Leaves: c.sched.Leaves, Spine: make([]wiring.Topology, c.core.SpinesPerPod)}
	for h := range s.Spine {
		s.Spine[h].Pods = c.core.Leaves()
	}
	for _, j := range jobs {
		for _, x := range j.paths {
			one := wiring.Topology{Pods: c.core.Leaves(), Links: []wiring.Link{{I: int32(x.A), J: int32(x.B), Count: int32(x.Count)}}}
			s.Spine[x.Spine] = wiring.Merge(s.Spine[x.Spine], one)
		}
	}
	return s
}

// dealt takes a spread that leaves every path where it was, and gives what is
// new to the jobs that lack it. It reports false, and does nothing, where the
// spread moves a path.
func (c *circuits) dealt(jobs []*job, old, next wiring.Spread) bool {
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

// between counts a job's links between two leaves.
func (j *job) between(a, b int) int {
	n := 0
	for _, x := range j.paths {
		if x.A == a && x.B == b {
			n += x.Count
		}
	}
	return n
}

func (j *job) add(x path) {
	for n := range j.paths {
		if p := &j.paths[n]; p.Spine == x.Spine && p.A == x.A && p.B == x.B {
			p.Count += x.Count
			return
		}
	}
	j.paths = append(j.paths, x)
	slices.SortFunc(j.paths, func(a, b path) int {
		return cmp.Or(cmp.Compare(a.Spine, b.Spine), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
}

// dealGreedy gives each link the spine where its leaves have fewest, moving
// nothing.
func (c *circuits) dealGreedy(jobs []*job, old wiring.Spread) {
	spines := c.core.SpinesPerPod
	leaf, pod := make([]int, c.core.Leaves()*spines), make([]int, c.core.Pods*spines)
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
					if a < 2 && b < 2 && pod[p*spines+h] < c.core.SpinePorts && pod[q*spines+h] < c.core.SpinePorts &&
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
func (c *circuits) eachFound(jobs []*job, f func(h int, i, j int32)) {
	for at, d := range c.decks {
		c.links(d, func(i, j int32, id proto.JobID) {
			if slices.ContainsFunc(jobs, func(x *job) bool { return x.found && x.spec.Job == id }) {
				f(c.groupOf(at), i, j)
			}
		})
	}
}
