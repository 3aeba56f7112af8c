package fleet

import (
	"fmt"
	"slices"

	"ringlight/ocs/circuit"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// circuits holds the circuit switches to this:
//
//  1. A circuit that a switch has told as tuned has light, and keeps it until
//     the planner has published a commit without it, whoever dies meanwhile.
//  2. A switch applies nothing that was not committed, and never goes back.
//  3. A job of a leaf-spine or direct core whose circuits all had light keeps
//     every one of them until a list without it, but where it may pause.
//  4. When all is quiet, light passes in every switch exactly where the last
//     commit for it says - no switch of a stage has the old circuits and
//     another the new - and a link has both its ways. Of servers that are
//     joined directly each interface listens to whom the layers' circuits say.
type circuits struct {
	r         *Run
	core      *fabric.Core
	guarded   [][]proto.Circuit                          // by switch
	desired   []map[proto.Generation][]proto.Circuit     // by switch: what the planner asked
	last      []proto.Generation                         // by switch: highest commit for it
	reported  []proto.Generation                         // by switch: highest told as applied since it has power
	commits   map[proto.RingID]map[proto.Generation]bool // by group
	lists     map[proto.Corr][]proto.JobSpec             // job lists that were asked for
	alone     map[proto.JobID]bool                       // jobs that nothing may touch, by whether all their circuits had light
	phased    map[proto.JobID]bool                       // those of several phases or measured, whose transceivers flip and whose other fibres are joined anew
	measuring proto.Corr                                 // that what a job was measured to send was told with
	told      *proto.ChangeStatus                        // what is answered to that; nil: nothing yet
	shines    *shines                                    // of servers that are joined directly; nil: there are none
	off       map[int]bool                               // switches without power, that are out
	gone      map[string]bool                            // devices and fibres without light
	still     bool                                       // the core is edited, and nothing of a job may move for it
}

func newCircuits(r *Run) *circuits {
	c := &circuits{r: r, core: r.cfg.Fabric.Core, commits: map[proto.RingID]map[proto.Generation]bool{}, lists: map[proto.Corr][]proto.JobSpec{}, alone: map[proto.JobID]bool{}, off: map[int]bool{}, gone: map[string]bool{}}
	for range r.switches {
		c.grow()
	}
	if d := c.core.Direct; d != nil {
		c.shines = newShines(r, d)
	}
	return c
}

// grow makes place for one more switch.
func (c *circuits) grow() {
	c.guarded, c.last, c.reported = append(c.guarded, nil), append(c.last, 0), append(c.reported, 0)
	c.desired = append(c.desired, map[proto.Generation][]proto.Circuit{})
	if x := c.shines; x != nil {
		x.seen, x.faces = append(x.seen, 0), append(x.faces, make([]shine, x.direct.Degree))
	}
}

func (c *circuits) check() check {
	return check{planned: c.planned, said: c.said, stands: c.stand}
}

// number is that of a switch; false: it is a node. A run of nodes alone has no circuits.
func (*circuits) number(st *station) (s int, ok bool) {
	return int(st.id) - int(proto.FirstSwitch), st.id.IsSwitch()
}

func (c *circuits) violate(s int, invariant, text string) {
	c.r.audit.violate(proto.FirstSwitch+proto.NodeID(s), invariant, text)
}

func (c *circuits) passes(s int, a, b uint16) bool { return c.r.mirrors.Passes(c.r.world, s, a, b) }

// group is that of a switch, or was.
func (c *circuits) group(s int) proto.RingID {
	if c.core.Alone() {
		return c.core.GroupID(0)
	}
	return c.core.GroupID(s / c.core.GroupSwitches())
}

// has tells whether a circuit is among those wanted.
func has(list []proto.Circuit, x *proto.Circuit) bool {
	return slices.ContainsFunc(list, func(w proto.Circuit) bool { return w.A == x.A && w.B == x.B })
}

// planned looks at what a planner publishes.
func (c *circuits) planned(_ *process, t proto.Topic, p proto.Packet) {
	switch t.Kind {
	case proto.TopicReply:
		c.replied(p)
	case proto.TopicDesired:
		var d proto.Desired
		if !t.Node.IsSwitch() {
			return
		}
		if _, err := proto.Decode(p.Payload, &d); err == nil {
			c.desired[d.Node-proto.FirstSwitch][d.Generation] = d.Circuits
		}
	case proto.TopicDecision:
		var d proto.Decision
		if t.Ring < proto.FirstGroup {
			return
		}
		if _, err := proto.Decode(p.Payload, &d); err == nil && d.Verdict == proto.Commit {
			c.committed(t.Ring, d.Generation)
		}
	}
}

// committed lets go of the circuits that a generation does without.
func (c *circuits) committed(group proto.RingID, g proto.Generation) {
	if c.commits[group] == nil {
		c.commits[group] = map[proto.Generation]bool{}
	}
	first := !c.commits[group][g]
	c.commits[group][g] = true
	var stage []proto.NodeID
	for s := range c.guarded {
		want, part := c.desired[s][g]
		if !part || c.group(s) != group {
			continue
		}
		stage = append(stage, proto.FirstSwitch+proto.NodeID(s))
		was := c.desired[s][c.last[s]]
		if g > c.last[s] {
			c.aim(s, was, want)
		}
		c.last[s] = max(c.last[s], g)
		if g < c.last[s] {
			continue // told again
		}
		c.guarded[s] = slices.DeleteFunc(c.guarded[s], func(x proto.Circuit) bool {
			if gone := !has(want, &x); !gone {
				return false
			}
			if at := slices.IndexFunc(was, func(w proto.Circuit) bool { return w.A == x.A && w.B == x.B }); at >= 0 {
				x.Job = was[at].Job // it may have had another's before
			}
			if c.still && x.Job != 0 {
				c.violate(s, "growth moves nothing", fmt.Sprintf("generation %d is without %d to %d of job %d", g, x.A, x.B, x.Job))
			}
			if c.alone[x.Job] && !c.turns(s, &x) {
				c.violate(s, "jobs stay where they are", fmt.Sprintf("generation %d is without %d to %d of job %d, which runs", g, x.A, x.B, x.Job))
			}
			return true
		})
	}
	if first {
		c.r.inject.committed(stage)
	}
}

// darken forgets a switch that loses its power.
func (c *circuits) darken(st *station) {
	if s, ok := c.number(st); ok {
		c.guarded[s], c.reported[s] = nil, 0
	}
}

// replied looks at what a planner answers to a job list.
func (c *circuits) replied(p proto.Packet) {
	var m proto.OpReply
	if _, err := proto.Decode(p.Payload, &m); err != nil {
		c.r.audit.violate(0, "protocol", "the planner's reply does not decode: "+err.Error())
	} else if m.Corr == c.measuring && m.Code == proto.OK {
		c.told = m.Change
	} else if list, asked := c.lists[m.Corr]; asked && m.Code == proto.OK {
		c.taken(list)
	} else if asked && m.Code != proto.Busy {
		c.r.audit.violate(0, "jobs taken", fmt.Sprintf("%v %s %s", m.Code, m.Field, m.Reason))
	}
}

// taken lets go of the jobs that a list is without.
func (c *circuits) taken(list []proto.JobSpec) {
	if !c.core.Alone() {
		return // between pods links move
	}
	was, phased := c.alone, c.phased
	c.alone, c.phased = map[proto.JobID]bool{}, map[proto.JobID]bool{}
	for i := range list {
		c.phased[list[i].Job] = len(list[i].Phases) > 0 || phased[list[i].Job]
		if s := &list[i]; s.MayPauseMillis == 0 {
			c.alone[s.Job] = was[s.Job]
		}
	}
	if d := c.core.Direct; d != nil {
		for s := d.Degree; s < len(c.guarded); s++ {
			c.guarded[s] = slices.DeleteFunc(c.guarded[s], func(x proto.Circuit) bool { return c.ended(s, x.Job) })
		}
	}
}

// ended: a server has this circuit for a job that runs no more; who sends may
// have gone elsewhere.
func (c *circuits) ended(s int, id proto.JobID) bool {
	_, server := c.core.ServerOf(s)
	_, runs := c.alone[id]
	return server && !runs
}

// said looks at what a switch's agent says.
func (c *circuits) said(st *station, t proto.Topic, p proto.Packet) {
	s, ok := c.number(st)
	var m proto.Reported
	if !ok || t.Kind != proto.TopicReported || !c.r.audit.decode(st, p, &m) {
		return
	}
	if g := m.Generation; g != 0 {
		if !c.commits[c.group(s)][g] {
			c.violate(s, "nothing uncommitted", fmt.Sprintf("applied generation %d, which nobody committed", g))
		}
		if g < c.reported[s] {
			c.violate(s, "never back", fmt.Sprintf("generation %d after %d", g, c.reported[s]))
		}
		c.reported[s] = max(c.reported[s], g)
	}
	c.r.atCore.DarkMicros = max(c.r.atCore.DarkMicros, int64(m.DarkMicros))
	c.shines.tuned(s, m.Generation, m.DarkMicros)
	want, told := c.desired[s][c.last[s]]
	for i := range m.Circuits {
		switch x := &m.Circuits[i]; {
		case x.State != proto.Tuned:
		case !c.passes(s, x.A, x.B) && !c.shines.justWent(s, x.A, x.B):
			c.violate(s, "truth is light", fmt.Sprintf("%d to %d of job %d is told as tuned and passes no light", x.A, x.B, x.Job))
		default:
			g := proto.Circuit{A: x.A, B: x.B, Job: x.Job}
			if stays := !told || has(want, &g); stays && !has(c.guarded[s], &g) && !c.ended(s, x.Job) && c.passes(s, x.A, x.B) {
				c.guarded[s] = append(c.guarded[s], g)
			}
		}
	}
}

// look looks at the circuits of a switch on which something has happened:
// mirrors move only after a write, and are looked at while they do.
func (c *circuits) look(st *station) {
	s, ok := c.number(st)
	if !ok {
		return
	}
	c.shines.look(s)
	c.r.atCore.Looks += len(c.guarded[s])
	c.guarded[s] = slices.DeleteFunc(c.guarded[s], func(x proto.Circuit) bool {
		if c.passes(s, x.A, x.B) {
			return false
		}
		if whole, listed := c.alone[x.Job]; c.unfinished(s, &x) || c.unfed(s, &x) || c.strange(s, &x) || c.r.atCore.Failed > 0 && c.core.Direct != nil && listed && !whole {
			return true
		}
		c.violate(s, "no other job dark", fmt.Sprintf("%d to %d of job %d lost its light, and no commit was without it", x.A, x.B, x.Job))
		return true
	})
}

// stand looks at everything when all is quiet.
func (c *circuits) stand() {
	for s := range c.guarded {
		want := c.sent(s, c.desired[s][c.last[s]])
		if c.last[s] == 0 || c.off[s] || len(want) == 0 && c.reported[s] == 0 {
			continue // mirrors at rest may pass light by chance; no plan has parked them
		}
		// Mirrors that begin anew align when light comes: of what is gone they may yet.
		lit := slices.DeleteFunc(c.r.mirrors.Lit(c.r.world, s), func(x circuit.Pair) bool { return c.isGone(s, int(x.A)) })
		want = slices.DeleteFunc(slices.Clone(want), func(x proto.Circuit) bool { return c.isGone(s, int(x.A)) })
		if len(lit) != len(want) {
			c.violate(s, "old or new", fmt.Sprintf("light passes %d times, generation %d has %d circuits", len(lit), c.last[s], len(want)))
		}
		for _, x := range want {
			if !c.passes(s, x.A, x.B) {
				c.violate(s, "old or new", fmt.Sprintf("%d to %d of job %d of generation %d passes no light", x.A, x.B, x.Job, c.last[s]))
			}
		}
		if c.reported[s] != c.last[s] {
			c.violate(s, "old or new", fmt.Sprintf("applied generation %d, committed %d", c.reported[s], c.last[s]))
		}
		// The other way of a link is in the pair's other switch, or in the
		// same one.
		other := s
		switch {
		case c.core.Paired():
			other = s ^ 1
		case c.core.Direct != nil:
			lit = nil // each circuit is one way
		}
		for _, x := range lit {
			if !c.off[other] && !c.passes(other, x.B, x.A) && !c.isGone(other, int(x.B)) {
				c.violate(s, "both ways", fmt.Sprintf("light passes from port %d to port %d, and not back through switch %d", x.A, x.B, other))
			}
		}
	}
	for s := range c.guarded {
		for _, x := range c.guarded[s] {
			if _, listed := c.alone[x.Job]; listed {
				c.alone[x.Job] = true
			}
		}
	}
	if c.shines != nil {
		c.heardAsPlanned()
	}
	c.judgeParts()
	c.r.tracer.linef("quiet: %+v", c.r.coreStatus())
}
