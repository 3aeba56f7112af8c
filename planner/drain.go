package planner

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/ring"
	"ringlight/proto"
)

// Taking a node out with as little dark as there can be: a generation forms
// its ring without it, a spare in its place; when the ring has light on every
// link, and not before, the node itself is drained. What goes wrong on the
// way stops it, and the node stays what it then is: a spare.

const (
	// qualifyWait is how long a changed ring may take to have light on every
	// link. chosen: a node's asks for a planned candidate end after 350 ms, a
	// report is coalesced over 200 ms, and a lost one is sent again after 2 s.
	qualifyWait = 5 * time.Second
	// commitSpread stands for the time between the first and the last member
	// that hears a decision, in estimates. chosen: seen with 64 agents.
	commitSpread = 10 * time.Millisecond
	// maxStage is how many running rings are told again by one generation.
	// chosen: one in twenty of the rings of 10,000 nodes.
	maxStage = 32
	// stagePoll is how often a stage that has no light yet is looked at.
	stagePoll = 100 * time.Millisecond
)

// draining is one drain under way.
type draining struct {
	node     proto.NodeID
	ring     proto.RingID // that it leaves, 0 = none
	client   string
	corr     proto.Corr
	cost     proto.Cost
	ttl      time.Duration
	sent     bool
	again    time.Duration // when the agent is told again, Never: not told yet
	deadline time.Duration
	qualify  time.Duration // by when the ring must have light, Never: not committed yet
}

// drainNode begins a drain, or says why not. It reports whether the answer
// comes later.
func (p *Planner) drainNode(client string, q *proto.OpRequest, n *nodeView, r *proto.OpReply) bool {
	cost := p.costWithout(n)
	refuse := func(code proto.Code, limit, format string, args ...any) bool {
		r.Refuse(&proto.Error{Code: code, Field: "node", Limit: limit, Reason: fmt.Sprintf(format, args...)})
		return false
	}
	v := p.ring(n.ring)
	switch {
	case q.DryRun:
		r.Cost = &cost
		return false
	case n.said.out && n.said.mode == proto.ModeDrained:
		return refuse(proto.Duplicate, "a node in service", "node %d is drained already", n.id)
	case !n.online || n.session == 0 || n.report == nil:
		return refuse(proto.NotFound, "a node whose agent is online", "the agent of node %d is offline", n.id)
	case slices.ContainsFunc(p.drains, func(d draining) bool { return d.client == client && d.corr == q.Corr }):
		return true // asked again: the answer is under way
	case n.leaving:
		return refuse(proto.Busy, "", "node %d is being drained", n.id)
	case p.state == fenced || p.state == raising || p.state == gathering:
		return refuse(proto.Busy, "", "the planner is %s", p.state)
	case len(p.drains) >= maxAsks:
		return refuse(proto.Busy, fmt.Sprintf("%d at a time", maxAsks), "too many nodes are being drained")
	}
	if v != nil {
		for _, id := range v.nodes {
			if m := &p.nodes[id]; m.usable() && !m.ready() {
				return refuse(proto.Busy, "a ring that can be changed", "ring %d cannot be changed: node %d: %s", v.id, id, m.whyNot())
			}
		}
	}
	wait := time.Duration(q.TTLMillis) * time.Millisecond
	p.drains = append(p.drains, draining{node: n.id, ring: n.ring, client: client, corr: q.Corr, cost: cost, ttl: wait, deadline: p.now + wait, qualify: Never, again: Never})
	p.keepDrain(&p.drains[len(p.drains)-1])
	n.leaving = true
	p.note(Info, "drain begins", note{Rule: "drain", Node: int64(n.id), Ring: n.ring, Cause: proto.CauseOperator,
		Text: fmt.Sprintf("%d rings and %d links touched, %d GPUs fewer", len(cost.Rings), cost.Links, cost.GPUs)})
	p.stirNode(n)
	p.replan(0)
	return true
}

// checkDrains moves every drain on.
func (p *Planner) checkDrains() {
	if p.state == gathering || p.state == fenced || p.state == raising {
		return // who has not been heard yet is neither offline nor drained
	}
	for i := 0; i < len(p.drains); {
		if r, done := p.runDrain(&p.drains[i]); done {
			d := &p.drains[i]
			p.nodes[d.node].leaving = false
			r.Corr = d.corr
			p.dropDrain(d)
			p.reply(d.client, r)
			p.stirNode(&p.nodes[d.node])
			p.drains = slices.Delete(p.drains, i, i+1)
			p.replan(debounce)
			continue
		}
		i++
	}
}

func (p *Planner) runDrain(d *draining) (*proto.OpReply, bool) {
	n := &p.nodes[d.node]
	stop := func(code proto.Code, why string) (*proto.OpReply, bool) {
		p.note(Warn, "drain stopped", note{Rule: "drain_stop", Node: int64(n.id), Ring: d.ring, Cause: proto.CauseOperator, Text: why})
		r := &proto.OpReply{}
		r.Refuse(&proto.Error{Code: code, Field: "node", Reason: why})
		return r, true
	}
	switch {
	case n.said.out && n.said.mode == proto.ModeDrained:
		p.note(Info, "node is drained", note{Rule: "drain", Node: int64(n.id), Ring: d.ring, Cause: proto.CauseOperator, Text: "its ring has light without it"})
		return &proto.OpReply{Cost: &d.cost}, true
	case !n.usable():
		return stop(proto.HardwareFailed, n.reason)
	case !n.online:
		return stop(proto.NotFound, "the agent went offline")
	case p.now >= d.deadline:
		return stop(proto.Expired, "not done in time")
	case d.sent && p.now < d.again:
		return nil, false
	case d.sent:
		p.tellDrain(d, n)
		return nil, false
	case n.ring != 0 || n.unassigned || n.pending() || p.state != idle:
		return nil, false
	}
	if v := p.ring(d.ring); v != nil && !p.hasLight(v) {
		if d.qualify == Never {
			d.qualify = p.now + qualifyWait
		}
		if p.now >= d.qualify {
			return stop(proto.HardwareFailed, fmt.Sprintf("ring %d has light on %d of %d links %v after the switch", v.id, p.linksConfirmed(v), len(v.nodes)-1, qualifyWait))
		}
		return nil, false
	}
	d.sent = true
	p.tellDrain(d, n)
	return nil, false
}

// tellDrain takes the node out; the word may be lost, and is given again.
func (p *Planner) tellDrain(d *draining, n *nodeView) {
	d.qualify, d.again = Never, p.now+resendFirst
	if p.linkUp {
		p.command(n, proto.Command{Verb: proto.VerbDrain})
	}
}

// nextDrain is when a drain needs a look without news.
func (p *Planner) nextDrain() time.Duration {
	next := Never
	if p.state == gathering || p.state == fenced || p.state == raising {
		return next
	}
	for i := range p.drains {
		next = min(next, p.drains[i].deadline, p.drains[i].again)
		if q := p.drains[i].qualify; q > p.now { // else something else is waited for
			next = min(next, q)
		}
	}
	return next
}

// hasLight: every member has been told and every link is confirmed.
func (p *Planner) hasLight(r *ringView) bool { return p.linksConfirmed(r) == len(r.nodes)-1 }

// mayUndrain says why a node must not be let in again, nil when it may: in
// its own loopback it must show light on every bundle.
func (n *nodeView) mayUndrain() *proto.Error {
	switch {
	case n.report == nil || n.report.Mode != proto.ModeDrained:
		return &proto.Error{Code: proto.Invalid, Field: "node", Limit: "a drained node", Reason: fmt.Sprintf("node %d is not drained", n.id)}
	}
	for i := range n.report.Bundles {
		if b := &n.report.Bundles[i]; b.State == proto.Failed || b.Path == proto.Loopback && b.State != proto.Tuned {
			return &proto.Error{Code: proto.HardwareFailed, Field: "bundle", Limit: "light on every bundle",
				Reason: fmt.Sprintf("bundle %d of node %d is on %s, %s", b.Bundle, n.id, b.Path, b.State)}
		}
	}
	return nil
}

// undrainNode lets a drained node in again, or says why not; the placement
// then gives it a ring that lacks a node.
func (p *Planner) undrainNode(client string, q *proto.OpRequest, n *nodeView, r *proto.OpReply) bool {
	if err := n.mayUndrain(); err != nil {
		r.Refuse(err)
		return false
	}
	if q.DryRun {
		cost := p.costWith(n)
		r.Cost = &cost
		return false
	}
	return p.askAgent(client, q, n, r, proto.Command{Verb: proto.VerbUndrain})
}

// costWithout is what it costs to take a node out; costWith what it would
// change to let it in.
func (p *Planner) costWithout(n *nodeView) proto.Cost {
	return p.cost(func(id proto.NodeID) bool { return p.nodes[id].usable() && !p.nodes[id].leaving && id != n.id },
		func(id proto.NodeID) bool {
			return p.nodes[id].ready() && p.nodes[id].usable() && !p.nodes[id].leaving && id != n.id
		})
}

func (p *Planner) costWith(n *nodeView) proto.Cost {
	return p.cost(func(id proto.NodeID) bool { return p.nodes[id].usable() && !p.nodes[id].leaving },
		func(id proto.NodeID) bool {
			return id == n.id || p.nodes[id].ready() && p.nodes[id].usable() && !p.nodes[id].leaving
		})
}

// cost compares the rings as they are with those that plans would make of
// them: one for the rings that are concerned, then one that places better, as
// far as whole rings may move.
func (p *Planner) cost(usable, free func(proto.NodeID) bool) proto.Cost {
	running := p.running(p.rings)
	m := p.mending()
	m.Usable, m.Free = usable, free
	c := proto.Cost{Rings: []proto.RingID{}}
	after := map[proto.RingID][]proto.NodeID{}
	for _, near := range [2]bool{true, false} {
		m.Near = near
		res := m.Replace(running)
		for _, at := range res.Touched {
			if g := res.Groups[at]; g.ID != 0 {
				after[g.ID] = g.Nodes
			}
		}
		for _, id := range res.Gone {
			after[id] = nil
		}
		if len(res.Touched)+len(res.Gone) > 0 {
			c.Stages++
		}
		running = slices.DeleteFunc(res.Groups, func(g ring.Group) bool { return g.ID == 0 })
	}
	for _, r := range p.rings {
		nodes, touched := after[r.id]
		if !touched {
			continue
		}
		c.Rings = append(c.Rings, r.id)
		if s := p.stateOf(r); s == proto.RingInService || s == proto.RingDegraded {
			c.Jobs++
		}
		c.Links += uint32(differing(r.nodes, nodes) + differing(nodes, r.nodes))
		if len(nodes) < len(r.nodes) {
			c.GPUs += uint32((len(r.nodes) - len(nodes)) * p.fab.GPUsPerNode)
		}
		for _, id := range nodes {
			if !slices.Contains(r.nodes, id) && len(c.Joins) < proto.MaxArray {
				c.Joins = append(c.Joins, id)
			}
		}
		if told := slices.IndexFunc(r.nodes, func(id proto.NodeID) bool { return p.nodes[id].report == nil }); told < 0 {
			e := p.envelope(r.nodes)
			c.DarkMicros = max(c.DarkMicros, uint64(e.SwitchMaxMicros)+2*uint64(e.DetectMaxMicros)+uint64(commitSpread.Microseconds()))
		}
	}
	c.Rings = c.Rings[:min(len(c.Rings), proto.MaxArray)]
	return c
}

// differing counts the links of a that b has not.
func differing(a, b []proto.NodeID) (count int) {
	for i := 1; i < len(a); i++ {
		at := slices.Index(b, a[i-1])
		if at < 0 || at+1 == len(b) || b[at+1] != a[i] {
			count++
		}
	}
	return count
}

// running are committed rings as a placement sees them.
func (p *Planner) running(rings []*ringView) []ring.Group {
	out := make([]ring.Group, len(rings))
	for i, r := range rings {
		out[i] = ring.Group{ID: r.id, Nodes: r.nodes, Frozen: p.frozen(r)}
	}
	return out
}

// stageClear reports whether the rings told again last have light, so that
// the next ones may be told. A stage that gets none stops the rest.
func (p *Planner) stageClear() bool {
	for _, id := range p.stage {
		r := p.ring(id)
		if r == nil || p.hasLight(r) || !p.allReady(r) {
			continue // gone, well, or hurt since: that is another matter
		}
		if p.now < p.stageAt+qualifyWait {
			p.replan(stagePoll)
			return false
		}
		if !p.stageStopped {
			p.stageStopped = true
			p.note(Error, "roll-out stopped", note{Rule: "stop", Node: -1, Ring: id, Gen: r.gen,
				Text: fmt.Sprintf("ring %d has light on %d of %d links %v after it was told; the others are told in %v", id, p.linksConfirmed(r), len(r.nodes)-1, qualifyWait, renewLast)})
		}
		if p.now < p.stageAt+renewLast {
			p.replan(p.stageAt + renewLast - p.now)
			return false
		}
	}
	p.stage, p.stageStopped = nil, false
	return true
}

// allReady: every member is usable and can be told.
func (p *Planner) allReady(r *ringView) bool {
	for _, id := range r.nodes {
		if n := &p.nodes[id]; !n.usable() || !n.ready() {
			return false
		}
	}
	return true
}
