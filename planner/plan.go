package planner

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/planner/fabric"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// proposal is a placement that differs from the committed one.
type proposal struct {
	rings []*ringView    // touched, with their new members; id 0 never
	gone  []proto.RingID // without a member left
	idle  []proto.NodeID // to be told that they are in no ring
	stage []proto.RingID // of rings, those that are only told again
	next  proto.RingID   // ring numbers given out so far
}

func (q *proposal) empty() bool { return len(q.rings) == 0 && len(q.gone) == 0 && len(q.idle) == 0 }

// plan compares what should be with what is committed, and starts a
// generation when they differ.
func (p *Planner) plan() {
	if q := p.look(); q != nil {
		p.prepare(q)
	}
}

// look finds what is to be changed, nil when that is nothing.
func (p *Planner) look() *proposal {
	p.dirty, p.planAt = false, Never
	if len(p.nodes) == 0 {
		return nil // circuits only
	}
	rings := p.concerned()
	for _, r := range rings {
		p.concludeDead(r)
		p.dueSplit(r)
		if r.splitAt != 0 {
			p.replan(max(r.splitAt+splitWait, r.renewAt) - p.now)
		}
	}
	p.retryRefused()
	q := p.choose(rings)
	for _, r := range rings {
		if r.waits() {
			p.stir(r)
		}
	}
	return q
}

// choose mends what is hurt first, and alone: few nodes to ask, and none that
// has light elsewhere. What could be better placed waits until that is over.
func (p *Planner) choose(rings []*ringView) *proposal {
	if len(p.rings) > 0 {
		if q := p.propose(rings, true); !q.empty() {
			p.betterAt, p.wantBetter = max(p.betterAt, p.now+betterWait), true
			return q
		}
		if !p.wantBetter {
			return nil
		}
		if p.now < p.betterAt {
			p.lookAt = p.betterAt
			return nil
		}
	}
	p.wantBetter = false
	if q := p.propose(p.rings, false); !q.empty() {
		p.wantBetter = true
		return q
	}
	return nil
}

// retryRefused asks nodes again that refused some time ago.
func (p *Planner) retryRefused() {
	p.refusing = slices.DeleteFunc(p.refusing, func(id proto.NodeID) bool {
		n := &p.nodes[id]
		switch {
		case n.refusal.code == proto.OK:
			return true
		case p.now >= n.refusal.until:
			n.refusal = refusal{}
			p.stirNode(n)
			p.replan(0)
			return true
		}
		p.replan(n.refusal.until - p.now)
		return false
	})
}

// propose mends the committed rings. A ring stays exactly as it is while one
// of its members cannot be told anything, or while its bypass is not yet
// reported. near: no ring goes elsewhere, and none is formed.
func (p *Planner) propose(rings []*ringView, near bool) *proposal {
	running := p.running(rings)
	for _, r := range rings {
		if wait := r.hurtAt + settleWait - p.now; r.hurtAt != 0 && wait > 0 {
			p.replan(wait)
		}
	}
	m := p.mending()
	if m.Near = near; near {
		m.Taken = p.taken
	}
	res, ok := p.first(m)
	if !ok {
		res = m.Replace(running)
	}
	q := &proposal{next: p.nextRing, gone: res.Gone}
	p.take(q, &res)
	p.renewals(q, rings, running)
	slices.SortFunc(q.rings, func(a, b *ringView) int { return cmp.Compare(a.id, b.id) })
	q.idle = p.toTell(q)
	return q
}

// mending is the placement's task as things stand.
func (p *Planner) mending() ring.Mend {
	m := ring.Mend{
		Order: p.order, Sizes: ring.DemandsOf(p.fab), Moves: ring.MovesOf(p.fab.Moves), Spread: p.fab.SpareLayout == fabric.Beside,
		Usable: func(id proto.NodeID) bool { return p.nodes[id].usable() && !p.nodes[id].leaving },
		Free: func(id proto.NodeID) bool {
			return p.nodes[id].ready() && p.nodes[id].usable() && !p.nodes[id].leaving
		},
	}
	if p.cutAt != Never {
		m.Broken = p.broken
	}
	return m
}

// take turns the groups that a placement touched into rings.
func (p *Planner) take(q *proposal, res *ring.Result) {
	for _, at := range res.Touched {
		g := res.Groups[at]
		if g.ID != 0 && len(g.Nodes) < p.fab.GroupNodes() && p.fab.OnLoss == fabric.Dissolve {
			q.gone = append(q.gone, g.ID) // its nodes are told that they are spares
			continue
		}
		if g.ID == 0 {
			g.ID = q.next
			q.next++
		}
		q.rings = append(q.rings, &ringView{id: g.ID, nodes: g.Nodes})
	}
}

// renewals adds rings that are to be told again, some at a time: what is
// wrong with a plan shows on the first ones, and the rest comes when those
// have light. A split ring that is formed anew waits for nobody.
func (p *Planner) renewals(q *proposal, rings []*ringView, running []ring.Group) {
	told := func(r *ringView) bool { return r.renew && r.renewed == 0 }
	clear := slices.ContainsFunc(rings, told) && p.stageClear()
	for i, r := range rings {
		if told(r) && (!clear || len(q.stage) == maxStage) {
			continue
		}
		if r.renew && !running[i].Frozen && !slices.ContainsFunc(q.rings, func(x *ringView) bool { return x.id == r.id }) && !slices.Contains(q.gone, r.id) {
			q.rings = append(q.rings, &ringView{id: r.id, nodes: slices.Clone(r.nodes)})
			if told(r) {
				q.stage = append(q.stage, r.id)
			}
		}
	}
}

// frozen: some member that light says is well cannot be told anything.
func (p *Planner) frozen(r *ringView) bool {
	for _, id := range r.nodes {
		if n := &p.nodes[id]; n.usable() && !n.ready() {
			return true
		}
	}
	return p.settling(r)
}

// toTell lists the nodes that a proposal leaves without a ring, or that were
// never told where they stand, and that can be told.
func (p *Planner) toTell(q *proposal) []proto.NodeID {
	placed := map[proto.NodeID]bool{}
	for _, r := range q.rings {
		for _, n := range r.nodes {
			placed[n] = true
		}
	}
	var idle []proto.NodeID
	tell := func(id proto.NodeID) {
		if n := &p.nodes[id]; !placed[id] && n.ready() && n.usable() {
			idle = append(idle, id)
		}
	}
	for _, id := range p.untold() {
		tell(id)
	}
	leave := func(id proto.RingID) {
		if r := p.ring(id); r != nil {
			for _, n := range r.nodes {
				tell(n)
			}
		}
	}
	for _, id := range q.gone {
		leave(id)
	}
	for _, r := range q.rings {
		leave(r.id)
	}
	slices.Sort(idle)
	return slices.Compact(idle)
}

// desired writes what each touched node is to do, in order of nodes.
func (p *Planner) desired(q *proposal, gen proto.Generation) []proto.Desired {
	var out []proto.Desired
	policy := proto.PolicyBypass
	if p.fab.Policy == fabric.Hold {
		policy = proto.PolicyHold
	}
	for _, r := range q.rings {
		env := p.envelope(r.nodes)
		for at, id := range r.nodes {
			out = append(out, proto.Desired{
				Version: proto.Version, Node: id, Term: p.term, Generation: gen, Decisions: []proto.RingID{r.id},
				BypassSeq: p.nodes[id].bypass,
				Rings: []proto.RingAssignment{{
					Ring: r.id, Generation: gen, Position: uint16(at), Size: uint16(len(r.nodes)), Policy: policy, Envelope: env,
					HoldOffMicros: uint32(p.fab.HoldOffUS), WaitToRestoreMillis: uint32(p.fab.WaitToRestoreMS),
					Left: p.candidates(r.nodes, at, -1), Right: p.candidates(r.nodes, at, +1),
				}},
			})
		}
	}
	for _, id := range q.idle {
		out = append(out, proto.Desired{
			Version: proto.Version, Node: id, Term: p.term, Generation: gen, Decisions: []proto.RingID{0},
			BypassSeq: p.nodes[id].bypass,
		})
	}
	slices.SortFunc(out, func(a, b proto.Desired) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// candidates is one side's protection list: the ring's members within K hops
// on that side, nearest first.
func (p *Planner) candidates(nodes []proto.NodeID, at, step int) []proto.Candidate {
	var out []proto.Candidate
	p.within(nodes, at, step, func(peer int) {
		link, ok := p.fab.Link(nodes[at], nodes[peer])
		if !ok {
			panic(fmt.Sprintf("planner: nodes %d and %d are within K hops and have no fibre", nodes[at], nodes[peer]))
		}
		if p.broken(nodes[at], nodes[peer]) {
			return
		}
		others := 0
		p.within(nodes, peer, -step, func(back int) {
			if back != at {
				others++
			}
		})
		out = append(out, proto.Candidate{Bundle: link.Local.Bundle, Path: link.Local.Path, Peer: nodes[peer], Others: others > 0, Crossed: link.Crossed})
	})
	return out
}

// within calls f for the members up to K hops on one side of a member,
// nearest first.
func (p *Planner) within(nodes []proto.NodeID, at, step int, f func(peer int)) {
	hops := 0
	for peer := at + step; peer >= 0 && peer < len(nodes); peer += step {
		if step > 0 {
			hops += p.order.Ahead(nodes[peer-1], nodes[peer])
		} else {
			hops += p.order.Ahead(nodes[peer], nodes[peer+1])
		}
		if hops > p.fab.K {
			return
		}
		f(peer)
	}
}

// defaultEnvelope stands in for a node that has not measured its own.
// docs/board.md's default board: D 150, d 40, S 250, s 75, W 500 us.
var defaultEnvelope = proto.Envelope{DetectMaxMicros: 150, DetectMinMicros: 40, SwitchMaxMicros: 250, SwitchMinMicros: 75, SkewMicros: 500}

// envelope is the envelope over a ring's members: the differences D-d and S-s
// lie between the two ends of a link.
func (p *Planner) envelope(nodes []proto.NodeID) proto.Envelope {
	var env proto.Envelope
	for i, id := range nodes {
		n := &p.nodes[id]
		own := n.report.Measured
		if own == (proto.Envelope{}) {
			own = n.born.Measured
		}
		if own == (proto.Envelope{}) {
			own = defaultEnvelope
		}
		if i == 0 {
			env = own
			continue
		}
		env.DetectMaxMicros = max(env.DetectMaxMicros, own.DetectMaxMicros)
		env.DetectMinMicros = min(env.DetectMinMicros, own.DetectMinMicros)
		env.SwitchMaxMicros = max(env.SwitchMaxMicros, own.SwitchMaxMicros)
		env.SwitchMinMicros = min(env.SwitchMinMicros, own.SwitchMinMicros)
		env.SkewMicros = max(env.SkewMicros, own.SkewMicros)
	}
	return env
}

// maxNamed is how many new rings are named one by one. chosen: a line that
// one can read.
const maxNamed = 4

// explain says in one line what a proposal changes.
func (p *Planner) explain(q *proposal) string {
	text, formed := "", 0
	for _, r := range q.rings {
		if p.ring(r.id) == nil {
			formed++
		}
	}
	if formed > maxNamed {
		text = fmt.Sprintf("%d rings formed of %d nodes each; ", formed, p.fab.GroupNodes())
	}
	for _, r := range q.rings {
		old := p.ring(r.id)
		if old == nil {
			if formed > maxNamed {
				continue
			}
			text += fmt.Sprintf("ring %d formed of %d nodes; ", r.id, len(r.nodes))
			continue
		}
		named := false
		for _, n := range old.nodes {
			if !slices.Contains(r.nodes, n) {
				text += fmt.Sprintf("node %d leaves ring %d; ", n, r.id)
				named = true
			}
		}
		for _, n := range r.nodes {
			if !slices.Contains(old.nodes, n) {
				text += fmt.Sprintf("node %d joins ring %d; ", n, r.id)
				named = true
			}
		}
		if !named {
			text += fmt.Sprintf("ring %d told again; ", r.id)
		}
	}
	for _, id := range q.gone {
		text += fmt.Sprintf("ring %d has no node left; ", id)
	}
	if len(q.idle) > 0 {
		text += fmt.Sprintf("%d nodes spare; ", len(q.idle))
	}
	return proto.Clip(text[:max(0, len(text)-2)])
}
