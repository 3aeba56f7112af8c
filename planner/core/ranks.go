package core

import (
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/isolate"
	"ringlight/planner/sched"
	"ringlight/planner/topo"
	"ringlight/proto"
)

// Place is the GPU of one rank: its server, counted through all leaves, and its
// number there.
type Place struct{ Server, GPU int }

// Ranks is what a job runs on, in the order of its ranks: tensor parallel domains
// one after the other, those of a stage of the pipeline replica by replica.
type Ranks struct {
	TP, Stages int
	Places     []Place
	// Between pods: how replicas exchange what they have, the pod of each domain,
	// and how many GPUs of a domain one server has.
	Collective proto.Collective
	PodOf      []int32
	Rails      int
	Rings      []topo.Ring // of servers joined directly, in the order of Servers
	Servers    []int
}

// ranksOf is a job's; no places: it waits, or nobody knows where it is.
func ranksOf(fab *fabric.Core, d designer, j *job) Ranks {
	r := Ranks{TP: j.placed.TP, Stages: j.placed.PP, Places: d.places(j), Collective: j.spec.Collective, Rails: min(j.placed.TP, fab.GPUsPerServer)}
	switch {
	case len(r.Places) == 0:
		return Ranks{}
	case j.shard != nil:
		r.Rings, r.Servers = append([]topo.Ring{}, j.shard.Rings...), j.shard.Servers
	case j.own == nil:
		for d := range len(r.Places) / r.TP {
			r.PodOf = append(r.PodOf, int32(r.Places[d*r.TP].Server/fab.LeafServers()/fab.LeavesPerPod))
		}
	}
	return r
}

// Group is ranks that do a collective with each other: each sends to the next, the
// last to the first.
type Group struct {
	Stage, Position int // of the pipeline, and in the tensor parallel domain
	Ranks           []int
}

// Groups are the rings of a job's replicas. Between pods they go out through the
// pods and back ([LUMOS] eq. 42), those of odd rails the other way round (eq. 43).
func (r Ranks) Groups() (out []Group) {
	dp := len(r.Places) / (r.TP * r.Stages)
	for stage := range r.Stages {
		ring := isolate.Identity[int](dp)
		if r.PodOf != nil {
			ring = sched.RingOrder(r.PodOf[stage*dp:][:dp])
		}
		for t := range r.TP {
			g := Group{Stage: stage, Position: t}
			for _, n := range ring {
				g.Ranks = append(g.Ranks, (stage*dp+n)*r.TP+t)
			}
			if r.PodOf != nil && t%r.Rails%2 == 1 {
				slices.Reverse(g.Ranks)
			}
			out = append(out, g)
		}
	}
	return out
}

// Phases are the phases of a collective between pods, in order: which rank of a
// stage sends to which. An all-to-all has all pairs, others only those that cross
// pods. nil: nothing is planned by phases, as for a ring.
func (r Ranks) Phases(stage int) (out [][][2]int) {
	if r.PodOf == nil || r.Collective == proto.CollectiveRing {
		return nil
	}
	dp := len(r.PodOf) / r.Stages
	pods, first := r.PodOf[stage*dp:][:dp], stage*dp*r.TP
	if r.Collective == proto.CollectiveAllToAll {
		var of []int32
		for _, p := range pods {
			of = append(of, slices.Repeat([]int32{p}, r.TP)...)
		}
		for _, step := range sched.AllToAllSteps(of) {
			var sends [][2]int
			for from, to := range step {
				sends = append(sends, [2]int{first + from, first + to})
			}
			out = append(out, sends)
		}
		return out
	}
	for _, phase := range sched.Collective(r.Collective).Phases(pods, r.TP) {
		var sends [][2]int
		for _, s := range phase {
			sends = append(sends, [2]int{first + s.From*r.TP + s.GPU, first + s.To*r.TP + s.GPU})
		}
		out = append(out, sends)
	}
	return out
}

// seatsOf is what places come to, server by server. A job of more than fit a
// message has none.
func seatsOf(fab *fabric.Core, places []Place) (out []proto.Seat) {
	const most = 4096 // of JobStatus.Seats
	last := -1
	for _, p := range places {
		if p.Server != last {
			leaf, server := 0, p.Server
			if n := fab.LeafServers(); n > 0 {
				leaf, server = p.Server/n, p.Server%n
			}
			out, last = append(out, proto.Seat{Leaf: uint16(leaf), Server: uint16(server)}), p.Server
		}
		out[len(out)-1].GPUs++
	}
	if len(out) > most {
		return nil
	}
	return out
}

// number chooses which servers of a leaf a job gets that was granted some there:
// the lowest that are free. A job keeps them.
func (c *interleaved) number(jobs []*job) {
	taken := map[Place]bool{}           // of a leaf; GPU: the server's number in it
	for s := range c.from.out.servers { // any order: a set
		taken[Place{s / c.fab.ServersPerLeaf, s % c.fab.ServersPerLeaf}] = true
	}
	for _, j := range jobs {
		if len(j.servers) > 0 {
			j.eachLeaf(c.fab, func(n, leaf int) { taken[Place{leaf, j.servers[n]}] = true })
		}
	}
	for _, j := range jobs {
		if len(j.servers) > 0 {
			continue
		}
		var own []int
		j.eachLeaf(c.fab, func(_, leaf int) {
			for s := range c.fab.ServersPerLeaf {
				if at := (Place{leaf, s}); !taken[at] {
					taken[at] = true
					own = append(own, s)
					return
				}
			}
		})
		j.servers = own
	}
}

// places: servers of a pod hold the domains in the order of their leaves.
func (c interleaved) places(j *job) (out []Place) {
	n := 0
	for _, s := range j.placed.Shares {
		n += s.Servers
	}
	if n == 0 || len(j.servers) != n {
		return nil
	}
	seats, err := c.sched.Seats(j.placed.Job, j.placed.Shares)
	if err != nil {
		return nil
	}
	for stage := range j.placed.PP {
		for replica := range j.placed.DP {
			for _, part := range seats {
				s := part[stage][replica]
				for g := range min(j.placed.TP, c.fab.GPUsPerServer) {
					out = append(out, Place{s.Leaf*c.fab.ServersPerLeaf + j.servers[s.Server], s.GPU + g})
				}
			}
		}
	}
	return out
}

// checkServers keeps damaged records from giving two jobs of pods the same.
func (l *jobList) checkServers() error {
	taken := map[Place]bool{}
	for _, j := range l.all {
		n, wrong := 0, error(nil)
		j.eachLeaf(l.fab, func(i, leaf int) {
			if i < len(j.servers) {
				n++
				at := Place{leaf, j.servers[i]}
				if at.GPU < 0 || at.GPU >= l.fab.ServersPerLeaf || taken[at] {
					wrong = fmt.Errorf("%s: server %d of leaf %d is another's, or none", jobKey(j.spec.Job), at.GPU, leaf)
				}
				taken[at] = true
			}
		})
		if wrong != nil {
			return wrong
		}
		if n != len(j.servers) {
			return fmt.Errorf("%s: %d servers for shares of %d", jobKey(j.spec.Job), len(j.servers), n)
		}
	}
	return nil
}

// number gives jobs that share a server their GPUs of it, the lowest that are
// free. They keep them.
func (c *isolated) number(jobs []*job) {
	part := func(j *job) bool {
		return j.own != nil && len(j.own.Servers) == 1 && j.own.Servers[0].GPUs < c.fab.GPUsPerServer
	}
	taken := map[Place]bool{}
	for _, j := range jobs {
		if part(j) {
			for _, g := range j.own.Which {
				taken[Place{c.server(j, 0), g}] = true
			}
		}
	}
	for _, j := range jobs {
		if !part(j) || len(j.own.Which) > 0 {
			continue
		}
		own := *j.own
		for g := 0; g < c.fab.GPUsPerServer && len(own.Which) < own.Servers[0].GPUs; g++ {
			if at := (Place{c.server(j, 0), g}); !taken[at] {
				taken[at] = true
				own.Which = append(own.Which, g)
			}
		}
		j.own = &own
	}
}

// server is the number of the n-th of a job's servers, through all leaves.
func (c *isolated) server(j *job, n int) int {
	return j.own.Servers[n].Leaf*c.fab.LeafServers() + j.own.Servers[n].Server
}

func (c isolated) places(j *job) (out []Place) {
	if j.own == nil {
		return nil
	}
	for r := range j.own.GPUs {
		n, g := r/c.fab.GPUsPerServer, r%c.fab.GPUsPerServer
		if len(j.own.Which) > 0 {
			n, g = 0, j.own.Which[r]
		}
		out = append(out, Place{c.server(j, n), g})
	}
	return out
}

// checkGPUs keeps damaged records from giving two jobs the same GPU of a server, or
// one that it does not have.
func (l *jobList) checkGPUs() error {
	taken := map[Place]bool{}
	for _, j := range l.all {
		if j.own == nil || len(j.own.Which) == 0 {
			continue
		}
		w := j.own.Servers[0]
		if len(j.own.Servers) != 1 || len(j.own.Which) != w.GPUs || w.GPUs < j.own.GPUs {
			return fmt.Errorf("%s: GPUs %v of %d servers", jobKey(j.spec.Job), j.own.Which, len(j.own.Servers))
		}
		for _, g := range j.own.Which {
			at := Place{w.Leaf*l.fab.LeafServers() + w.Server, g}
			if g < 0 || g >= l.fab.GPUsPerServer || taken[at] {
				return fmt.Errorf("%s: GPU %d of server %d is another's, or none", jobKey(j.spec.Job), g, at.Server)
			}
			taken[at] = true
		}
	}
	return nil
}

func (c direct) places(j *job) (out []Place) {
	if j.shard == nil {
		return nil
	}
	for r := range min(j.placed.GPUs(), len(j.shard.Servers)*c.fab.GPUsPerServer) {
		out = append(out, Place{j.shard.Servers[r/c.fab.GPUsPerServer], r % c.fab.GPUsPerServer})
	}
	return slices.Clip(out)
}
