package planner

import (
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// Answers to operators. The planner alone answers, and alone commands agents.

// ask is a request that waits for an agent.
type ask struct {
	client   string
	request  proto.OpRequest
	node     proto.NodeID
	corr     proto.Corr
	deadline time.Duration
	events   []proto.Event // pages so far
}

func (p *Planner) onRequest(client string, payload []byte) {
	var q proto.OpRequest
	unknown, err := proto.Decode(payload, &q)
	p.counts.unknown += uint64(unknown)
	if err != nil {
		p.refuse(-1, err)
		if q.Corr == (proto.Corr{}) {
			return // whom it is for is not known
		}
		r := proto.OpReply{Corr: q.Corr}
		r.Refuse(err)
		p.reply(client, &r)
		return
	}
	r := proto.OpReply{Corr: q.Corr}
	switch q.Noun {
	case proto.NounFabric:
		s := p.fabricStatus()
		r.Fabric = &s
	case proto.NounNodes:
		p.nodesPage(&q, &r)
	case proto.NounNode:
		if n := p.askedNode(&q, &r); n != nil {
			s := p.nodeStatus(n)
			s.Reported = n.report
			r.Nodes = []proto.NodeStatus{s}
		}
	case proto.NounRings:
		p.ringsPage(&q, &r)
	case proto.NounRing:
		v := p.ring(q.Ring)
		if v == nil {
			r.Refuse(&proto.Error{Code: proto.NotFound, Field: "ring", Limit: p.ringLimit(), Reason: fmt.Sprintf("no ring %d", q.Ring)})
			break
		}
		r.Rings = []proto.RingStatus{p.status(v)}
	case proto.NounEvents:
		p.eventsPage(&q, &r)
	case proto.NounWhy:
		if n := p.askedNode(&q, &r); n != nil && p.askAgent(client, &q, n, &r, proto.Command{Verb: proto.VerbEvents}) {
			return
		}
		p.whyPage(&q, &r, nil)
	case proto.NounHostFault, proto.NounHostOK:
		verb := proto.VerbHostFault
		if q.Noun == proto.NounHostOK {
			verb = proto.VerbHostOK
		}
		if n := p.askedNode(&q, &r); n != nil && p.askAgent(client, &q, n, &r, proto.Command{Verb: verb}) {
			return
		}
	case proto.NounDrain:
		if n := p.askedNode(&q, &r); n != nil && p.drainNode(client, &q, n, &r) {
			return
		}
	case proto.NounUndrain:
		if n := p.askedNode(&q, &r); n != nil && p.undrainNode(client, &q, n, &r) {
			return
		}
	case proto.NounRequest:
		if n := p.askedNode(&q, &r); n != nil && p.requestSide(client, &q, n, &r) {
			return
		}
	default:
		if p.onCircuitRequest(&q, &r) {
			break
		}
		r.Refuse(&proto.Error{Code: proto.Unsupported, Field: "noun", Reason: fmt.Sprintf("noun %d is not known here", q.Noun)})
	}
	p.reply(client, &r)
}

func (p *Planner) ringLimit() string {
	if len(p.rings) == 0 {
		return "there are no rings"
	}
	return fmt.Sprintf("%d to %d", p.rings[0].id, p.rings[len(p.rings)-1].id)
}

func (p *Planner) nodeLimit() string {
	if len(p.nodes) == 0 {
		return "there are no nodes"
	}
	return fmt.Sprintf("0 to %d", len(p.nodes)-1)
}

// askedNode finds the node of a request, or refuses it.
func (p *Planner) askedNode(q *proto.OpRequest, r *proto.OpReply) *nodeView {
	n := p.node(q.Node)
	switch {
	case n == nil:
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "node", Limit: p.nodeLimit(), Reason: fmt.Sprintf("no node %d", q.Node)})
	case int(q.Bundle) >= p.fab.Bundles:
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "bundle", Limit: fmt.Sprintf("0 to %d", p.fab.Bundles-1), Reason: fmt.Sprintf("no bundle %d", q.Bundle)})
		n = nil
	}
	return n
}

// askAgent forwards a request; false: it cannot, and r says why.
func (p *Planner) askAgent(client string, q *proto.OpRequest, n *nodeView, r *proto.OpReply, c proto.Command) bool {
	switch {
	case !n.online || n.session == 0:
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "node", Reason: fmt.Sprintf("the agent of node %d is offline", n.id)})
	case p.state == fenced || p.state == raising:
		r.Refuse(&proto.Error{Code: proto.Busy, Reason: "the planner is listening for another one"})
	case len(p.asks) >= maxAsks:
		r.Refuse(&proto.Error{Code: proto.Busy, Limit: fmt.Sprintf("%d at a time", maxAsks), Reason: "too many requests wait for agents"})
	default:
		wait := min(askTimeout, time.Duration(q.TTLMillis)*time.Millisecond)
		p.asks = append(p.asks, ask{client: client, request: *q, node: n.id, corr: p.command(n, c), deadline: p.now + wait})
		return true
	}
	if q.Noun == proto.NounWhy {
		*r = proto.OpReply{Corr: q.Corr} // the planner's own half is still an answer
	}
	return false
}

// onAnswer takes an agent's answer to a command of ours.
func (p *Planner) onAnswer(n *nodeView, m *proto.Ack) {
	at := slices.IndexFunc(p.asks, func(a ask) bool { return a.node == n.id && a.corr == m.Corr })
	if at < 0 {
		return
	}
	a := &p.asks[at]
	if a.request.Noun == proto.NounWhy && m.Code == proto.OK {
		a.events = append(a.events, m.Events...)
		if m.Next != 0 && len(m.Events) > 0 && len(a.events) < proto.MaxPage {
			a.corr = p.command(n, proto.Command{Verb: proto.VerbEvents, Next: m.Next})
			return
		}
	}
	r := proto.OpReply{Corr: a.request.Corr}
	if a.request.Noun == proto.NounWhy {
		p.whyPage(&a.request, &r, a.events)
	} else {
		r.Code, r.Field, r.Limit, r.Reason = m.Code, m.Field, m.Limit, m.Reason
	}
	p.reply(a.client, &r)
	p.asks = slices.Delete(p.asks, at, at+1)
}

// checkAsks answers for agents that did not.
func (p *Planner) checkAsks() {
	for i := 0; i < len(p.asks); {
		a := &p.asks[i]
		if p.now < a.deadline {
			i++
			continue
		}
		r := proto.OpReply{Corr: a.request.Corr}
		if a.request.Noun == proto.NounWhy {
			p.whyPage(&a.request, &r, a.events)
		} else {
			r.Refuse(&proto.Error{Code: proto.Expired, Field: "node", Reason: fmt.Sprintf("the agent of node %d did not answer", a.node)})
		}
		p.reply(a.client, &r)
		p.asks = slices.Delete(p.asks, i, i+1)
	}
}

// reply sends an answer, with fewer items when a page is too large.
func (p *Planner) reply(client string, r *proto.OpReply) {
	r.Version = proto.Version
	for {
		payload, err := proto.Encode(r)
		if err == nil {
			p.sendRaw(p.topics.Reply(client), proto.TopicReply, payload)
			return
		}
		if proto.AsError(err).Code != proto.TooLarge || !halve(r) && !p.halveCircuits(r) {
			corr := r.Corr
			*r = proto.OpReply{Version: proto.Version, Corr: corr}
			r.Refuse(err)
		}
	}
}

// halve drops the second half of a page and makes Next point to it.
func halve(r *proto.OpReply) bool {
	switch {
	case len(r.Rings) > 1:
		r.Next = uint64(r.Rings[len(r.Rings)/2].Ring)
		r.Rings = r.Rings[:len(r.Rings)/2]
	case len(r.Nodes) > 1:
		r.Next = uint64(r.Nodes[len(r.Nodes)/2].Node)
		r.Nodes = r.Nodes[:len(r.Nodes)/2]
	case len(r.Events) > 1:
		r.Next = r.Events[len(r.Events)/2].Seq
		r.Events = r.Events[:len(r.Events)/2]
	case len(r.Why) > 1:
		r.Why = r.Why[len(r.Why)-len(r.Why)/2:] // the latest are nearest to the answer
	default:
		return false
	}
	return true
}

// Pages start at an id, so that what comes and goes between two requests
// neither repeats nor hides an item.

func (p *Planner) nodesPage(q *proto.OpRequest, r *proto.OpReply) {
	for i := min(q.Page, uint64(len(p.nodes))); i < uint64(len(p.nodes)); i++ {
		if len(r.Nodes) == proto.MaxPage {
			r.Next = i
			return
		}
		r.Nodes = append(r.Nodes, p.nodeStatus(&p.nodes[i]))
	}
}

func (p *Planner) ringsPage(q *proto.OpRequest, r *proto.OpReply) {
	for _, v := range p.rings {
		if uint64(v.id) < q.Page {
			continue
		}
		if len(r.Rings) == proto.MaxPage {
			r.Next = uint64(v.id)
			return
		}
		r.Rings = append(r.Rings, p.status(v))
	}
}

func (p *Planner) nodeStatus(n *nodeView) proto.NodeStatus {
	s := proto.NodeStatus{Node: n.id, Online: n.online, Ring: n.ring, Want: n.want.gen, Reason: n.whyNot()}
	s.Usable = n.usable() && n.ready()
	if n.report != nil {
		s.Mode, s.Generation = n.report.Mode, n.report.Generation
	}
	if n.said.out {
		s.Mode = n.said.mode
	}
	return s
}

// eventsPage pages by the planner's numbers; Page is the first one wanted.
func (p *Planner) eventsPage(q *proto.OpRequest, r *proto.OpReply) {
	for i := range p.log.entries {
		e := p.log.at(i)
		if e.seq < q.Page || e.event == nil {
			continue
		}
		if len(r.Events) == proto.MaxPage {
			r.Next = e.seq
			return
		}
		r.Events = append(r.Events, proto.LoggedEvent{Seq: e.seq, AtMillis: e.millis, Event: *e.event})
	}
}

func (p *Planner) fabricStatus() proto.FabricStatus {
	o := p.Overview()
	return proto.FabricStatus{Name: p.fab.Name, Term: o.Term, Generation: o.Generation, Nodes: uint32(p.fab.Nodes),
		GPUsPerNode: uint32(p.fab.GPUsPerNode), K: uint32(p.fab.K), TP: uint32(p.fab.TP), Online: uint32(o.Online), Pending: uint32(o.Pending),
		EventsSeen: o.EventsSeen, EventGaps: o.EventGaps, LinksTotal: uint32(o.LinksTotal), LinksConfirmed: uint32(o.LinksConfirmed)}
}

// Overview is what a shell shows or waits for.
type Overview struct {
	Term           proto.Term
	Generation     proto.Generation // committed last
	Rings          int
	InService      int
	Degraded       int
	Spares         int // usable nodes in no ring
	Online         int
	Pending        int  // nodes online and not yet where they should be
	Quiet          bool // nothing planned, prepared, persisted or waited for
	LinksTotal     int
	LinksConfirmed int
	EventsSeen     uint64
	EventGaps      uint64
}

// Overview tells where the planner stands.
func (p *Planner) Overview() Overview {
	o := Overview{Term: p.term, Rings: len(p.rings), EventsSeen: p.log.seen, EventGaps: p.log.gaps}
	for _, r := range p.rings {
		o.Generation = max(o.Generation, r.gen)
		o.LinksTotal += len(r.nodes) - 1
		o.LinksConfirmed += p.linksConfirmed(r)
		switch p.stateOf(r) {
		case proto.RingInService:
			o.InService++
		case proto.RingDegraded:
			o.Degraded++
		}
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		if n.online {
			o.Online++
			if n.usable() && (n.pending() || n.unassigned) {
				o.Pending++
			}
		}
		if n.ring == 0 && n.ready() && n.usable() {
			o.Spares++
		}
		o.Generation = max(o.Generation, n.want.gen)
	}
	o.Quiet = p.circuitsQuiet() && p.state == idle && p.lookAt == Never && p.linkUp && !p.dirty && !p.wantBetter && o.Pending == 0 && p.log.flying == 0 && p.log.behind == 0 && len(p.log.touched) == 0 && p.log.holding == 0
	return o
}
