package fleet

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

// coreCheck reads the light of the mirrors and what is said about it, and
// changes nothing. What it holds to:
//
//  1. A circuit that a switch has told as tuned has light, and keeps it until
//     the planner has published a commit without it, whoever dies meanwhile.
//  2. A switch applies nothing that was not committed, and never goes back.
//  3. When all is quiet, light passes in every switch exactly where the last
//     commit for it says - no switch of a stage has the old circuits and
//     another the new - and a link has both its ways.
type coreCheck struct {
	r        *CoreRun
	topics   proto.Topics
	guarded  [][]proto.Circuit                          // by switch
	desired  []map[proto.Generation][]proto.Circuit     // by switch: what the planner asked
	last     []proto.Generation                         // by switch: highest commit for it
	reported []proto.Generation                         // by switch: highest told as applied
	commits  map[proto.RingID]map[proto.Generation]bool // by group
}

func newCoreCheck(r *CoreRun, n int) coreCheck {
	c := coreCheck{r: r, topics: proto.Topics{Fabric: r.cfg.Fabric.Name}, guarded: make([][]proto.Circuit, n), last: make([]proto.Generation, n),
		reported: make([]proto.Generation, n), commits: map[proto.RingID]map[proto.Generation]bool{}}
	for range n {
		c.desired = append(c.desired, map[proto.Generation][]proto.Circuit{})
	}
	return c
}

// planned looks at what the planner publishes.
func (c *coreCheck) planned(p proto.Packet) {
	t, err := proto.ParseTopic(p.Topic)
	if err != nil {
		return
	}
	switch t.Kind {
	case proto.TopicReply:
		c.replied(p)
	case proto.TopicDesired:
		var d proto.Desired
		if _, err := proto.Decode(p.Payload, &d); err == nil {
			c.desired[d.Node-proto.FirstSwitch][d.Generation] = d.Circuits
		}
	case proto.TopicDecision:
		var d proto.Decision
		if _, err := proto.Decode(p.Payload, &d); err == nil && d.Verdict == proto.Commit {
			c.committed(t.Ring, d.Generation)
		}
	}
}

// committed lets go of the circuits that a generation does without.
func (c *coreCheck) committed(group proto.RingID, g proto.Generation) {
	if c.commits[group] == nil {
		c.commits[group] = map[proto.Generation]bool{}
	}
	first := !c.commits[group][g]
	c.commits[group][g] = true
	var stage []int
	for s := range c.guarded {
		want, part := c.desired[s][g]
		if !part || c.r.core.GroupID(s/c.r.core.SpinePorts) != group {
			continue
		}
		stage = append(stage, s)
		c.last[s] = max(c.last[s], g)
		if g < c.last[s] {
			continue // told again
		}
		c.guarded[s] = slices.DeleteFunc(c.guarded[s], func(x proto.Circuit) bool {
			return !slices.ContainsFunc(want, func(w proto.Circuit) bool { return w.A == x.A && w.B == x.B })
		})
	}
	if first {
		c.r.committed(stage)
	}
}

// dark forgets a switch that loses its power.
func (c *coreCheck) dark(s int) { c.guarded[s] = nil }

// replied looks at what the planner answers an operator.
func (c *coreCheck) replied(p proto.Packet) {
	var m proto.OpReply
	if _, err := proto.Decode(p.Payload, &m); err != nil {
		c.r.violate(-1, "well formed", err.Error())
	} else if m.Code != proto.OK && m.Code != proto.Busy {
		c.r.violate(-1, "jobs taken", fmt.Sprintf("%v %s %s", m.Code, m.Field, m.Reason))
	}
}

// said looks at what a switch's agent says.
func (c *coreCheck) said(s int, p proto.Packet) {
	t, err := proto.ParseTopic(p.Topic)
	if err != nil || p.Kind != proto.Publish || t.Kind != proto.TopicReported {
		return
	}
	var m proto.Reported
	if _, err := proto.Decode(p.Payload, &m); err != nil {
		c.r.violate(s, "well formed", err.Error())
		return
	}
	if g := m.Generation; g != 0 {
		if !c.commits[c.r.core.GroupID(s/c.r.core.SpinePorts)][g] {
			c.r.violate(s, "nothing uncommitted", fmt.Sprintf("applied generation %d, which nobody committed", g))
		}
		if g < c.reported[s] {
			c.r.violate(s, "never back", fmt.Sprintf("generation %d after %d", g, c.reported[s]))
		}
		c.reported[s] = max(c.reported[s], g)
	}
	c.r.res.Dark = max(c.r.res.Dark, time.Duration(m.DarkMicros)*time.Microsecond)
	for _, x := range m.Circuits {
		if x.State != proto.Tuned {
			continue
		}
		if !c.r.mirrors.Passes(c.r.world, s, x.A, x.B) {
			c.r.violate(s, "truth is light", fmt.Sprintf("%d to %d of job %d is told as tuned and passes no light", x.A, x.B, x.Job))
			continue
		}
		want, told := c.desired[s][c.last[s]]
		stays := !told || slices.ContainsFunc(want, func(w proto.Circuit) bool { return w.A == x.A && w.B == x.B })
		if g := (proto.Circuit{A: x.A, B: x.B, Job: x.Job}); stays && !slices.ContainsFunc(c.guarded[s], func(o proto.Circuit) bool { return o.A == x.A && o.B == x.B }) {
			c.guarded[s] = append(c.guarded[s], g)
		}
	}
}

// look looks at the circuits of a switch on which something has happened:
// mirrors move only after a write, and are looked at while they do.
func (c *coreCheck) look(s int) {
	c.r.res.Guarded += len(c.guarded[s])
	c.guarded[s] = slices.DeleteFunc(c.guarded[s], func(x proto.Circuit) bool {
		if c.r.mirrors.Passes(c.r.world, s, x.A, x.B) {
			return false
		}
		c.r.violate(s, "no other job dark", fmt.Sprintf("%d to %d of job %d lost its light, and no commit was without it", x.A, x.B, x.Job))
		return true
	})
}

// end looks at everything when all is quiet.
func (c *coreCheck) end() {
	core := c.r.core
	for s := range c.guarded {
		if c.last[s] == 0 {
			continue // mirrors at rest may pass light by chance; no plan has parked them
		}
		lit := c.r.mirrors.Lit(c.r.world, s)
		want := c.desired[s][c.last[s]]
		if len(lit) != len(want) {
			c.r.violate(s, "old or new", fmt.Sprintf("light passes %d times, generation %d has %d circuits", len(lit), c.last[s], len(want)))
		}
		for _, x := range want {
			if !c.r.mirrors.Passes(c.r.world, s, x.A, x.B) {
				c.r.violate(s, "old or new", fmt.Sprintf("%d to %d of job %d of generation %d passes no light", x.A, x.B, x.Job, c.last[s]))
			}
		}
		if c.reported[s] != c.last[s] {
			c.r.violate(s, "old or new", fmt.Sprintf("applied generation %d, committed %d", c.reported[s], c.last[s]))
		}
		// The other way of a link is in the pair's other switch, or in the
		// same one.
		other := s
		if core.Wiring == fabric.Interleaved {
			other = s ^ 1
		}
		for _, x := range lit {
			if !c.r.mirrors.Passes(c.r.world, other, x.B, x.A) {
				c.r.violate(s, "both ways", fmt.Sprintf("light passes from pod %d to pod %d, and not back through switch %d", x.A, x.B, other))
			}
		}
	}
	c.r.trace(fmt.Sprintf("%v quiet: %+v", c.r.now, c.r.status()))
}
