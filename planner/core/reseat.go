package core

import (
	"slices"

	"ringlight/planner/sched"
	"ringlight/proto"
)

// Between pods: which servers a job has in place of those that are out.

// reseating finds other servers between pods for jobs that have to leave some.
type reseating struct {
	c    *interleaved
	jobs []*job
}

// reseat takes jobs off servers that are out: onto others, those of the same leaf first,
// or where there are too few as a whole.
func (r reseating) reseat() {
	c := r.c
	for _, j := range r.jobs {
		r, lost := r.as(&j.spec), false
		if j.eachServer(c.fab, func(_, server int) { lost = lost || c.from.out.of(server) }); lost {
			j.strayed = r.exchange(j, r.c.from.out.of, true) || r.anew(j) || r.exchange(j, r.c.from.out.of, false) || j.strayed
		}
	}
}

// as is the core as a job sees it: what it does not ask for is out.
func (r reseating) as(s *proto.JobSpec) reseating {
	c := *r.c
	c.from.out = c.from.out.only(s, c.fab.Servers())
	return reseating{&c, r.jobs}
}

// rejoin looks for other servers of jobs that had to leave some and lack links since: of
// their other pods, or anew. It gives the design of which jobs lack fewer.
func (r reseating) rejoin(d design) design {
	for n := range r.jobs {
		for _, elsewhere := range [...]func(r reseating, j *job) bool{reseating.gather, reseating.anew} {
			lacks := d.change.Granted - d.change.Realised
			try := reseating{r.c, copyJobs(r.jobs)}
			if !r.jobs[n].strayed || !d.jobs[n].lacks() || !elsewhere(try.as(&r.jobs[n].spec), try.jobs[n]) {
				continue
			}
			if x := r.c.plan(copyJobs(try.jobs)); x.change.Granted-x.change.Realised < lacks {
				d, r = x, try
			}
		}
	}
	return d
}

// gather takes a job off the pod that has fewest servers of it.
func (r reseating) gather(j *job) bool {
	c := r.c
	of := make([]int, c.fab.Pods)
	pod := func(server int) int { return server / c.fab.ServersPerLeaf / c.fab.LeavesPerPod }
	j.eachServer(c.fab, func(_, server int) { of[pod(server)]++ })
	least := -1
	for p, n := range of {
		if n > 0 && (least < 0 || n < of[least]) {
			least = p
		}
	}
	return r.exchange(j, func(server int) bool { return pod(server) == least || of[pod(server)] == 0 || c.from.out.of(server) }, true)
}

// anew places a job as if it came.
func (r reseating) anew(j *job) bool {
	c, jobs := r.c, r.jobs
	others := beside(jobs, j)
	placed, err := c.within(others, j.spec.Pods, c.held(jobs, j)).Admit(others, j.placed.Job)
	if err == nil {
		j.placed, j.servers, j.paths, j.ways, j.laid = placed, nil, nil, nil, false
		c.number(jobs)
	}
	return err == nil
}

// beside are the other jobs that have servers.
func beside(jobs []*job, j *job) (others []sched.Placed) {
	for _, x := range jobs {
		if x != j && len(x.placed.Shares) > 0 {
			others = append(others, x.placed)
		}
	}
	return others
}

// exchange gives a job idle servers in place of those that it leaves, of all or of some,
// of the same leaf first, of its pod where domains are of several servers, if there is
// room for its links; what it has between its other leaves stays.
func (r reseating) exchange(j *job, leaves func(server int) bool, all bool) bool {
	c, jobs := r.c, r.jobs
	held, others := c.held(jobs, nil), beside(jobs, j)
	pod := func(server int) int { return server / c.fab.ServersPerLeaf / c.fab.LeavesPerPod }
	bound := max(j.placed.TP, j.placed.EP) > c.fab.GPUsPerServer
	leaf := func(server int) int { return server / c.fab.ServersPerLeaf }
	var own []int
	left, came := 0, 0
	j.eachServer(c.fab, func(_, server int) {
		if leaves(server) {
			best, least := server, 3
			for y := range c.fab.Servers() {
				far := 2
				if leaf(y) == leaf(server) {
					far = 0
				} else if pod(y) == pod(server) {
					far = 1
				}
				if !held[y] && !leaves(y) && far < least && (far < 2 || !bound) {
					best, least = y, far
				}
			}
			if left++; best != server {
				came++
			}
			server, held[best] = best, true
		}
		own = append(own, server)
	})
	if came == 0 || all && came < left {
		return false
	}
	slices.SortStableFunc(own, func(a, b int) int { return leaf(a) - leaf(b) })
	next := sched.Placed{Job: j.placed.Job}
	for n, server := range own {
		at := sched.Share{Pod: pod(server), Leaf: server / c.fab.ServersPerLeaf % c.fab.LeavesPerPod}
		if last := len(next.Shares) - 1; last < 0 || at.Pod != next.Shares[last].Pod || at.Leaf != next.Shares[last].Leaf {
			next.Shares = append(next.Shares, at)
		}
		next.Shares[len(next.Shares)-1].Servers++
		own[n] = server % c.fab.ServersPerLeaf
	}
	if slices.Equal(next.Shares, j.placed.Shares) {
		j.servers = own
		return true
	}
	wants, err := c.sched.Wants(next.Job, next.Shares)
	if err != nil {
		return false
	}
	need, err := c.sched.Need(others)
	if err != nil {
		return false
	}
	used := need.Ports()
	for x := range c.from.out.links { // any order: counted
		used[x.Leaf]++
	}
	if next.Links, err = sched.Fit(wants, used, c.sched.Ports()); err != nil {
		return false
	}
	next.Wants = wants
	j.placed, j.servers, j.laid = next, own, false
	for _, x := range slices.Clone(j.paths) {
		granted := 0
		for n, w := range wants {
			if w.A == x.A && w.B == x.B {
				granted = next.Links[n]
			}
		}
		if over := min(x.Count, j.between(x.A, x.B)-granted); over > 0 {
			j.drop(path{x.Spine, x.A, x.B, over})
		}
	}
	j.ways = slices.DeleteFunc(slices.Clone(j.ways), func(w way) bool { return c.sched.PodOf[w.A] == c.sched.PodOf[w.B] })
	return true
}
