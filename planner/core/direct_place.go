package core

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/planner/topo"
	"ringlight/proto"
)

// Which servers a job gets, and when one that stands by starts.

// floor is the owner of each server.
type floor struct {
	active, look []*job // by server
	closed       []bool // by server: nobody can be given it
}

func (f *floor) idle(server int) bool {
	return f.active[server] == nil && f.look[server] == nil && !f.closed[server]
}

// floor is the owner of each server. Servers of jobs that are known by their circuits only,
// and those that cannot be told, are given to nobody.
func (c *direct) floor(jobs []*job) *floor {
	n := c.fab.Direct.Servers
	f := &floor{make([]*job, n), make([]*job, n), make([]bool, n)}
	found := map[proto.JobID]bool{}
	for _, j := range jobs {
		found[j.spec.Job] = j.found
		if j.shard != nil {
			f.take(j)
		}
	}
	for s := range n {
		f.closed[s] = !c.from.able[c.fab.ServerSwitch(s)] || c.from.out.of(s)
	}
	for at, m := range c.from.maps {
		server, ok := c.fab.ServerOf(at)
		for i, to := range m.to {
			if to < 0 || !found[m.job[i]] {
				continue
			}
			if !ok {
				server, _ = c.fab.PortEnd(i)
			}
			f.closed[server] = true
		}
	}
	return f
}

func (f *floor) take(j *job) {
	for _, s := range j.shard.Servers {
		switch {
		case !j.shard.Active:
			f.look[s] = j
		case len(j.shard.Phases) > 0:
			f.active[s], f.look[s] = j, j
		default:
			if f.active[s] = j; f.look[s] == j {
				f.look[s] = nil
			}
		}
	}
}

// isOff: a server is out as a whole.
func (c *direct) isOff(server int) bool {
	return c.from.out.of(server) && !ofGPU(c.from.out.servers[server])
}

// isOut: nothing goes over a switch.
func (c *direct) isOut(s int) bool {
	_, is := c.from.out.why[fmt.Sprintf("switch%d", s)]
	return is
}

// place lets jobs that stand by start when nobody has their servers any more,
// and then those that wait, in the order in which they came: one that finds too
// few servers keeps those behind it waiting, but who is next to a job.
func (c *direct) place(jobs []*job) {
	f := c.floor(jobs)
	c.mend(f, jobs)
	for _, j := range byCame(jobs) {
		if !j.standsBy() || slices.ContainsFunc(j.shard.Servers, func(s int) bool { return f.active[s] != nil }) {
			continue
		}
		next := *j.shard
		next.Active, next.SinceMS = true, c.from.nowMS
		if j.why = c.silent(&next); j.why == "" {
			j.shard = &next
			f.take(j)
		}
	}
	var head *job
	for _, j := range byCame(jobs) {
		if j.runs() {
			j.turn.waiting = proto.WaitUnknown
			if !j.standsBy() {
				j.why = ""
			}
			continue
		}
		before := (&jobList{all: jobs}).find(j.spec.Next)
		if before != nil && !(before.shard != nil && before.shard.Active) {
			j.turn.waiting, j.why = proto.WaitTurn, fmt.Sprintf("turn: next to job %d, which does not run", j.spec.Next)
			continue
		}
		if before == nil && head != nil && j.spec.On == nil {
			j.turn.waiting, j.why = proto.WaitTurn, fmt.Sprintf("turn: job %d is first", head.spec.Job)
			continue
		}
		if c.seat(f, j, before); j.shard == nil && before == nil && j.spec.On == nil {
			head = j
		}
	}
}

// wires finds links for traffic.
func (c direct) wires(traffic *proto.JobTopology, servers int) (w wires) {
	t, err := topo.Find(c.request(traffic, servers))
	if err != nil {
		panic("core: invariant: a list is checked: " + err.Error())
	}
	for _, l := range t.Layers {
		w.Layers = append(w.Layers, l.To)
	}
	w.Rings = t.Rings
	return w
}

// seat finds servers for a job: those of the job before it, then idle ones.
func (c *direct) seat(f *floor, j, before *job) {
	need := c.servers(j)
	s := &shard{Active: before == nil, SinceMS: c.from.nowMS}
	add := func(server int) {
		path := uint8(0)
		if of := f.active[server]; of != nil {
			path = 1 - of.shard.Path[slices.Index(of.shard.Servers, server)]
		}
		s.Servers, s.Path = append(s.Servers, server), append(s.Path, path)
	}
	if before != nil {
		for _, x := range before.shard.Servers {
			if f.look[x] == nil && len(s.Servers) < need {
				add(x)
			}
		}
	}
	idle, out := 0, c.from.out.only(&j.spec, len(f.active))
	for x := range f.active {
		if !f.idle(x) || out.of(x) {
			continue
		}
		if idle++; len(s.Servers) < need {
			add(x)
		}
	}
	if len(s.Servers) < need {
		j.turn.waiting, j.why = proto.WaitGPU, fmt.Sprintf("gpu: wants %d servers, %d are free for it", need, len(s.Servers))
		return
	}
	for _, p := range j.spec.Phases {
		s.Phases = append(s.Phases, c.wires(&p.Topology, need))
	}
	if len(s.Phases) > 0 {
		s.wires, s.Ahead = s.Phases[0], 1
	} else if need > 1 {
		s.wires = c.wires(j.spec.Topology, need)
	}
	s = c.mended(f, j, s)
	if dark := c.dark(s); len(dark) > 0 {
		a, b := s.Servers[dark[0][0]], s.Servers[dark[0][1]]
		j.turn.waiting, j.why = proto.WaitNetwork, fmt.Sprintf("network: servers %d and %d, and %d pairs more, have had no light or are out, and no others can be joined for it%s", a, b, len(dark)-1, c.from.out.named())
		return
	}
	if why := c.silent(s); why != "" {
		j.turn.waiting, j.why = proto.WaitNetwork, "network: "+why
		return
	}
	j.shard, j.why, j.turn.waiting = s, "", proto.WaitUnknown
	f.take(j)
}

// byCame are jobs in the order in which they came.
func byCame(jobs []*job) []*job {
	out := slices.Clone(jobs)
	slices.SortFunc(out, func(a, b *job) int { return cmp.Compare(a.turn.Came, b.turn.Came) })
	return out
}
