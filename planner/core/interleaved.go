package core

import (
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/sched"
	"ringlight/planner/wiring"
	"ringlight/proto"
)

// Between pods: which servers a job gets.

// interleaved designs pods whose spines hang on groups of switches, under
// interleaved wiring and uniform one.
type interleaved struct {
	fab    *fabric.Core
	layout layout
	sched  sched.Core
	from   standing
}

func newInterleaved(fab *fabric.Core) interleaved {
	c := interleaved{fab: fab, layout: layout{fab}}
	c.sched.Leaves = wiring.Leaves{Pods: fab.Pods, Spines: fab.SpinesPerPod, Tau: fab.LeafLinks}
	c.sched.GPUsPerServer = fab.GPUsPerServer
	for p := range fab.Pods {
		for range fab.LeavesPerPod {
			c.sched.PodOf = append(c.sched.PodOf, int32(p))
			c.sched.Servers = append(c.sched.Servers, fab.ServersPerLeaf)
		}
	}
	return c
}

func (c interleaved) check(s *proto.JobSpec, bad wrongJob) *proto.Error {
	for _, p := range s.Pods {
		if int(p) >= c.fab.Pods {
			return bad("pods", fmt.Sprintf("pods 0 to %d", c.fab.Pods-1), "there is no pod %d", p)
		}
	}
	for _, f := range []struct {
		field string
		n     uint64
	}{{"duration_ms", s.DurationMillis}, {"deadline_ms", s.DeadlineMillis}, {"may_pause_ms", s.MayPauseMillis}} {
		if f.n > 0 {
			return bad(f.field, "a leaf-spine core", "%d, and this one has pods", f.n)
		}
	}
	if err := notDirect(s, bad); err != nil {
		return err
	}
	if gps, tp := c.fab.GPUsPerServer, int(s.TP); gps%tp != 0 && tp%gps != 0 {
		return bad("tp", fmt.Sprintf("a divisor or a multiple of the %d GPUs of a server", gps), "%d", tp)
	}
	if s.On != nil {
		c.from.out = c.from.out.only(s, c.fab.Servers())
		if _, err := c.within(nil, s.Pods, nil).Admit(nil, (&jobList{fab: c.fab}).domains(s)); err != nil {
			return bad("nodes", "servers that hold its domains, and leaves that carry its links", "%v", err)
		}
	}
	return nil
}

// admit finds servers for the jobs that have none, in order of their ids; those first
// that name them.
func (c *interleaved) admit(jobs []*job) {
	running, held, inTurn := beside(jobs, nil), c.held(jobs, nil), slices.Clone(jobs)
	slices.SortStableFunc(inTurn, func(a, b *job) int { return min(1, len(b.spec.On)) - min(1, len(a.spec.On)) })
	for _, k := range inTurn {
		if k.runs() {
			continue
		}
		as := *c
		as.from.out = c.from.out.only(&k.spec, c.fab.Servers())
		placed, err := as.within(running, k.spec.Pods, held).Admit(running, k.placed.Job)
		if err != nil {
			k.why = err.Error()
			continue
		}
		k.placed, k.why = placed, ""
		for _, s := range k.spec.On {
			k.servers, held[int(s)] = append(k.servers, int(s)%c.fab.ServersPerLeaf), true
		}
		running = append(running, placed)
	}
}

// within is the core as a job sees it that may be in some pods only: elsewhere
// no server is idle, as those that are out are nowhere, where nobody holds them.
func (c *interleaved) within(running []sched.Placed, pods []uint16, held map[int]bool) sched.Core {
	if len(pods)+len(c.from.out.servers)+len(c.from.out.links) == 0 {
		return c.sched
	}
	s := c.sched
	s.Servers = slices.Clone(c.sched.Servers)
	s.Gone = make([]int, c.fab.Leaves())
	for x := range c.from.out.links { // any order: counted
		s.Gone[x.Leaf]++
	}
	for server := range c.from.out.servers { // any order: counted
		if !held[server] {
			s.Servers[server/c.fab.ServersPerLeaf]--
		}
	}
	if len(pods) == 0 {
		return s
	}
	for leaf, p := range s.PodOf {
		if !slices.Contains(pods, uint16(p)) {
			s.Servers[leaf] = 0
		}
	}
	for _, r := range running {
		for _, x := range r.Shares {
			if !slices.Contains(pods, uint16(x.Pod)) {
				s.Servers[x.Pod*c.fab.LeavesPerPod+x.Leaf] += x.Servers
			}
		}
	}
	return s
}

// describe adds the leaves of a job's domains in the order of its ranks. A job
// of more than fit a message has none.
func (c interleaved) describe(j *job, s *proto.JobStatus) {
	const most = 4096 // of JobStatus.Domains
	if len(j.placed.Shares) == 0 || j.placed.PP*j.placed.DP > most {
		return
	}
	elements, err := c.sched.Elements(j.placed.Job, j.placed.Shares)
	if err != nil {
		return
	}
	for _, row := range elements[0] {
		for _, leaf := range row {
			s.Domains = append(s.Domains, uint16(leaf))
		}
	}
	s.Stages = uint32(j.placed.PP)
}
