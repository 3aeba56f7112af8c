package core

import (
	"fmt"
	"slices"
	"strings"

	"ringlight/proto"
)

// A job of several phases has both fibres of its servers: over one it sends, the other is
// joined for the phase to come. It turns to that with a flip of transceivers, and mirrors
// then join the fibres that it left for the one after. Its servers, and its ranks, stay.

// lights are the parts of a shard: what it sends over, and what stands by for its next
// phase.
func (s *shard) lights() func(func(*shard) bool) {
	return func(yield func(*shard) bool) {
		if s == nil || !yield(s) || !s.Active || len(s.Phases) == 0 {
			return
		}
		ahead := *s
		ahead.Active, ahead.wires, ahead.Path = false, s.Phases[s.Ahead], slices.Clone(s.Path)
		for r := range ahead.Path {
			ahead.Path[r] = 1 - ahead.Path[r]
		}
		yield(&ahead)
	}
}

// turned is a shard in another of its phases; that after it is then ahead.
func (s shard) turned(to int) *shard {
	s.Ahead = to
	for x := range s.lights() {
		if !x.Active {
			x.Active, x.Phase, x.Ahead = true, to, (to+1)%len(s.Phases)
			return x
		}
	}
	return &s
}

// enterPhase has a job go to the phase that is named.
func enterPhase(j *job, c *Circuits, q *proto.OpRequest, r *proto.OpReply) {
	names := j.spec.PhaseNames()
	to := slices.Index(names, q.Name)
	switch {
	case to < 0 && len(names) == 0:
		r.Refuse(&proto.Error{Code: proto.Invalid, Field: "phase", Limit: "a job that was asked for with phases", Reason: fmt.Sprintf("job %d has none", q.Job)})
		return
	case to < 0:
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "phase", Limit: strings.Join(names, ", "), Reason: fmt.Sprintf("%.80q", q.Name)})
		return
	case j.shard == nil || !j.shard.Active:
		r.Refuse(&proto.Error{Code: proto.Conflict, Field: "phase", Limit: "a job that runs", Reason: fmt.Sprintf("job %d does not yet", q.Job)})
		return
	}
	if j.shard.Phase == to {
		r.Change = nothing()
		return
	}
	next := j.shard.turned(to)
	if turning(j, c.Evidence.layout, c.Evidence.maps) {
		next.Path = j.shard.Path // it has yet to flip to these
	}
	list := copyJobs(c.jobs.all)
	(&jobList{all: list}).find(q.Job).shard = next
	takeJobs(c, list, q, r)
}

// hold leaves all of a job as it is while it is to go to another phase and something of it
// cannot be told: who flips alone is dark. One that has other servers meanwhile is not held
// where its former ones are another's.
func (c *direct) hold(turn []*job, to []crossMap) {
	for _, j := range turn {
		if j.why = c.silent(j.shard); j.why == "" {
			continue
		}
		held := cloneMaps(to[:c.fab.Degree])
		for layer, m := range held {
			for _, x := range j.shard.Servers {
				for path := range 2 {
					port := c.fab.Port(x, path)
					m.to[port], m.job[port] = c.from.maps[layer].to[port], c.from.maps[layer].job[port]
				}
			}
		}
		if slices.ContainsFunc(held, clashes) {
			continue
		}
		copy(to, held)
		for _, x := range j.shard.Servers {
			at := c.fab.ServerSwitch(x)
			to[at] = c.from.maps[at].clone()
		}
	}
}

// clashes: two circuits of a map end at one port.
func clashes(m crossMap) bool {
	in := make([]bool, len(m.to))
	return slices.ContainsFunc(m.to, func(b int32) bool {
		twice := b >= 0 && in[b]
		if b >= 0 {
			in[b] = true
		}
		return twice
	})
}

// silent names what of a job that runs cannot be told and is not out; "": nothing.
func (c *direct) silent(s *shard) string {
	for layer := range s.Layers {
		if !c.from.able[layer] && !c.isOut(layer) {
			return fmt.Sprintf("the switch of layer %d cannot be told", layer)
		}
	}
	for _, x := range s.Servers {
		if s.Active && !c.from.able[c.fab.ServerSwitch(x)] && !c.from.out.of(x) {
			return fmt.Sprintf("server %d cannot be told", x)
		}
	}
	return ""
}

// beforehand is what mirrors are to carry before transceivers flip: what a job's next phase
// wants of the fibres that it does not use yet, where another one was ahead.
func (c *direct) beforehand(turn []*job, to []crossMap) []crossMap {
	out := cloneMaps(c.from.maps)
	for _, j := range turn {
		for rank := range j.shard.Servers {
			for face := range c.fab.Degree {
				port := c.end(j.shard, rank)
				if end := c.layout.pathSlot(face, port); c.from.maps[end.sw].to[face] == int32(end.b) {
					continue // it sends there
				}
				far := to[face].to[port]
				c.layout.drop(out[face], port)
				if was := slices.Index(out[face].to, far); far >= 0 && was >= 0 {
					c.layout.drop(out[face], int32(was))
				}
				if far >= 0 {
					c.layout.put(out[face], port, far, to[face].job[port])
				}
			}
		}
	}
	return out
}

// onOther: an interface of a job still uses the fibre that its phase does not want.
func onOther(j *job, c layout, maps []crossMap, rank, face int) bool {
	m := maps[c.fab.ServerSwitch(j.shard.Servers[rank])]
	return m.job[face] == j.spec.Job && m.to[face] == int32(c.fab.PathPort(face, 1-int(j.shard.Path[rank])))
}

// turning: a job's interfaces are yet to flip to its phase.
func turning(j *job, c layout, maps []crossMap) bool {
	if j.shard == nil || len(j.shard.Phases) == 0 {
		return false
	}
	for rank := range j.shard.Servers {
		for face := range c.fab.Degree {
			if onOther(j, c, maps, rank, face) {
				return true
			}
		}
	}
	return false
}

// sendsBeside: a link is on fibres of a job that sends over its others.
func sendsBeside(link []slot, maps []crossMap, id proto.JobID) bool {
	if len(link) < 3 {
		return false // no servers joined directly
	}
	m, at := maps[link[1].sw], link[1].a
	return m.job[at] == id && m.to[at] >= 0 && m.to[at] != int32(link[1].b)
}
