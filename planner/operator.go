package planner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/planner/core"
	"ringlight/planner/job"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// Answers to operators. The planner alone answers, and alone commands agents.

const (
	askTimeout = 3 * time.Second
	maxAsks    = 64 // operator requests waiting for an agent; chosen: people are few
)

// ask is a request that waits for an agent.
type ask struct {
	client   string
	request  proto.OpRequest
	node     proto.NodeID
	corr     proto.Corr
	deadline time.Duration
	events   []proto.Event // pages so far
}

func (p *Planner) onRequest(client string, pk *proto.Packet) {
	if p.state == standby || p.state == following || p.beat == 0 {
		p.answerIdle(client, pk.Payload)
		return
	}
	answer(p, client, pk)
}

func answer(p *Planner, client string, pk *proto.Packet) {
	var q proto.OpRequest
	unknown, err := proto.Decode(pk.Payload, &q)
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
	if pk.Denied != "" {
		deny(p, client, &q, pk)
		return
	}
	if pk.By != "" {
		q.Author = pk.By // what the seal says, not the client
	}
	p.j.Asked = q.Corr
	defer func() { p.j.Asked = proto.Corr{} }()
	r := proto.OpReply{Corr: q.Corr}
	if acts(&q) {
		if p.acts.again(p.j, client, &q) {
			return
		}
		if err := p.acts.enter(p.j, client, &q, pk, p.beat); err != nil {
			p.refuse(-1, err)
			refused(p, client, &q, pk, err)
			r.Refuse(err)
			p.reply(client, &r)
			return
		}
	}
	switch q.Noun {
	case proto.NounClear:
		p.clear(&q, &r)
	case proto.NounFabric:
		s := p.fabricStatus()
		r.Fabric = &s
	case proto.NounStatus:
		p.glances.ask(p, client, q.Corr)
		return
	case proto.NounAlarms:
		p.alarms.page(&q, &r)
	case proto.NounAck:
		p.alarms.acknowledge(&q, &r)
	case proto.NounTrace:
		t := p.rings.Table()
		if q.Node.IsSwitch() && p.core != nil {
			t = p.core.Table()
		}
		t.Trace(&q, &r)
	case proto.NounNodes:
		if q.Page >= uint64(proto.FirstSwitch) {
			p.onCircuits(&q, &r)
		} else {
			p.rings.Answer(&q, &r)
		}
	case proto.NounRings, proto.NounRing:
		p.rings.Answer(&q, &r)
	case proto.NounDescription:
		p.edits.describe(&q, &r)
	case proto.NounOffer:
		p.edits.offer(&q, &r)
	case proto.NounEdit:
		if p.edits.begin(client, &q, &r) {
			return
		}
	case proto.NounRollout, proto.NounRolloutStop, proto.NounRolloutStatus:
		nodesOf{p}.answer(&q, &r)
	case proto.NounSubmit:
		r.Refuse(p.jobs.Put(q.Name, string(q.Text)))
	case proto.NounRelease:
		r.Refuse(p.jobs.Drop(q.Name))
	case proto.NounAudit:
		auditPage(p, &q, &r)
	case proto.NounEvents:
		p.j.EventsPage(&q, &r)
	case proto.NounNode, proto.NounWhy, proto.NounHostFault, proto.NounHostOK, proto.NounDrain, proto.NounUndrain, proto.NounRequest:
		if d := p.askedNode(&q, &r); d != nil && p.onNode(client, &q, d, &r) {
			return
		}
	default:
		p.onCircuits(&q, &r)
	}
	p.reply(client, &r)
}

// answerIdle is the word of a planner that is not in service: one that is
// answers by itself, and only when none was heard for a period do we say so.
func (p *Planner) answerIdle(client string, payload []byte) {
	var q proto.OpRequest
	last := p.linkSince
	if r := p.others.latest(); r != nil {
		last = max(last, r.last)
	}
	if p.j.Now < last+BeatPeriod+slack {
		return
	}
	if _, err := proto.Decode(payload, &q); err != nil {
		return // it comes again, or its sender has to look
	}
	r := proto.OpReply{Corr: q.Corr}
	if q.Noun == proto.NounFabric {
		s := p.fabricStatus()
		r.Fabric = &s
	} else {
		r.Refuse(&proto.Error{Code: proto.Busy, Field: proto.FieldPlanner, Limit: "one in service", Reason: proto.Clip(p.idle())})
	}
	p.reply(client, &r)
}

// onNode answers about one node, or carries it out. It reports whether the
// answer comes later.
func (p *Planner) onNode(client string, q *proto.OpRequest, d *member.Device, r *proto.OpReply) bool {
	switch q.Noun {
	case proto.NounNode:
		if d.ID.IsSwitch() {
			s := d.Status()
			if d.Report != nil {
				s.Reported = d.Whole()
			}
			r.Nodes = []proto.NodeStatus{s}
		} else {
			p.rings.Answer(q, r)
		}
	case proto.NounWhy:
		if p.askAgent(client, q, d, r, proto.Command{Verb: proto.VerbEvents}) {
			return true
		}
		p.whyPage(q, r, nil)
	case proto.NounHostFault:
		return p.askAgent(client, q, d, r, proto.Command{Verb: proto.VerbHostFault})
	case proto.NounHostOK:
		return p.askAgent(client, q, d, r, proto.Command{Verb: proto.VerbHostOK})
	case proto.NounDrain:
		return p.rings.Drain(client, q, r)
	case proto.NounUndrain:
		c := p.rings.Undrain(q, r)
		return c != nil && p.askAgent(client, q, d, r, *c)
	case proto.NounRequest:
		c := p.rings.Request(q, r)
		if c == nil || !p.askAgent(client, q, d, r, *c) {
			return false
		}
		p.j.Note(Info, "operator's request", journal.Note{Rule: "request", Node: int64(d.ID), Ring: d.Group, Cause: proto.CauseOperator,
			Text: fmt.Sprintf("%s of the %s side", q.Request, q.Side)})
		return true
	}
	return false
}

// onCircuits answers about jobs and circuits.
func (p *Planner) onCircuits(q *proto.OpRequest, r *proto.OpReply) {
	switch {
	case !core.Answers(q.Noun) && q.Noun != proto.NounNodes:
		r.Refuse(&proto.Error{Code: proto.Unsupported, Field: "noun", Reason: fmt.Sprintf("noun %d is not known here", q.Noun)})
	case p.core == nil:
		r.Refuse(&proto.Error{Code: proto.Unsupported, Field: "fabric", Limit: "a fabric with a core", Reason: "this one has no optical switches between pods"})
	case q.Noun == proto.NounNodes:
		p.core.Table().StatusPage(q, r)
	default:
		p.core.Answer(q, r)
	}
}

// askedNode finds the node of a request, or refuses it.
func (p *Planner) askedNode(q *proto.OpRequest, r *proto.OpReply) *member.Device {
	d := p.rings.Table().Find(q.Node)
	if (q.Noun == proto.NounWhy || q.Noun == proto.NounNode) && q.Node.IsSwitch() && p.core != nil {
		if d = p.core.Table().Find(q.Node); d == nil {
			r.Refuse(&proto.Error{Code: proto.NotFound, Field: "switch", Limit: fmt.Sprintf("0 to %d", p.fab.Core.Switches()-1), Reason: fmt.Sprintf("no switch %d", q.Node-proto.FirstSwitch)})
		}
		return d
	}
	switch {
	case d == nil:
		limit := "there are no nodes"
		if p.fab.Nodes > 0 {
			limit = fmt.Sprintf("0 to %d", p.fab.Nodes-1)
		}
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "node", Limit: limit, Reason: fmt.Sprintf("no node %d", q.Node)})
	case int(q.Bundle) >= p.fab.Bundles:
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "bundle", Limit: fmt.Sprintf("0 to %d", p.fab.Bundles-1), Reason: fmt.Sprintf("no bundle %d", q.Bundle)})
		d = nil
	}
	return d
}

// askAgent forwards a request; false: it cannot, and r says why.
func (p *Planner) askAgent(client string, q *proto.OpRequest, d *member.Device, r *proto.OpReply, c proto.Command) bool {
	switch {
	case !d.Online():
		r.Refuse(&proto.Error{Code: proto.Expired, Field: "node", Reason: fmt.Sprintf("the agent of node %d is offline", d.ID)})
	case p.state == listening || p.state == raising:
		r.Refuse(&proto.Error{Code: proto.Busy, Reason: "the planner is listening for another one"})
	case len(p.asks) >= maxAsks:
		r.Refuse(&proto.Error{Code: proto.Busy, Limit: fmt.Sprintf("%d at a time", maxAsks), Reason: "too many requests wait for agents"})
	default:
		wait := min(askTimeout, time.Duration(q.TTLMillis)*time.Millisecond)
		p.asks = append(p.asks, ask{client: client, request: *q, node: d.ID, corr: p.j.Command(d.ID, d.Session, c), deadline: p.j.Now + wait})
		return true
	}
	if q.Noun == proto.NounWhy {
		*r = proto.OpReply{Corr: q.Corr} // the planner's own half is still an answer
	}
	return false
}

// onAnswer takes an agent's answer to a command of ours.
func (p *Planner) onAnswer(d *member.Device, m *proto.Ack) {
	if p.edits.answer(d, m) || p.rollout.Answer(d.ID, m) {
		return
	}
	at := slices.IndexFunc(p.asks, func(a ask) bool { return a.node == d.ID && a.corr == m.Corr })
	if at < 0 {
		return
	}
	a := &p.asks[at]
	if a.request.Noun == proto.NounWhy && m.Code == proto.OK {
		a.events = append(a.events, m.Events...)
		if m.Next != 0 && len(m.Events) > 0 && len(a.events) < proto.MaxPage {
			a.corr = p.j.Command(d.ID, d.Session, proto.Command{Verb: proto.VerbEvents, Next: m.Next})
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
		if p.j.Now < a.deadline {
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

// whyPage answers why a node or bundle is as it is: what is true now, with
// measurements, and what led to it, from the journal and from the agent's own
// last events where it still has some that did not come here.
func (p *Planner) whyPage(q *proto.OpRequest, r *proto.OpReply, own []proto.Event) {
	if r.Code != proto.OK {
		return
	}
	var lines, facts []proto.WhyLine
	if q.Node.IsSwitch() {
		subject := journal.Subject{Node: q.Node, Gen: p.core.Table().Find(q.Node).Want.Gen}
		lines, facts = p.j.History(subject, q.Bundle, own), core.Facts(p.core, q.Node, q.Bundle)
	} else {
		lines, facts = p.j.History(p.rings.Subject(q.Node), q.Bundle, own), p.rings.Facts(q.Node, q.Bundle)
	}
	if room := proto.MaxPage - len(facts); len(lines) > room {
		lines = lines[len(lines)-room:]
	}
	r.Why = append(lines, facts...)
}

// reply sends an answer, with fewer items when a page is too large.
func (p *Planner) reply(client string, r *proto.OpReply) {
	r.Version = proto.Version
	for {
		payload, err := proto.Encode(r)
		if err == nil {
			if a := p.acts.find(client, r.Corr); a != nil {
				a.answer = payload
				p.j.Persist(p.j.Audit(answered(a, r))...)
			}
			p.j.SendRaw(p.j.Topics.Reply(client), proto.TopicReply, payload)
			return
		}
		if proto.AsError(err).Code != proto.TooLarge || !halve(r) && !core.Halve(r) {
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

func (p *Planner) fabricStatus() proto.FabricStatus {
	o := p.Overview()
	return proto.FabricStatus{Name: p.fab.Name, Term: o.Term, Generation: o.Generation, Nodes: uint32(p.fab.Nodes),
		GPUsPerNode: uint32(p.fab.GPUsPerNode), K: uint32(p.fab.K), TP: uint32(p.fab.TP), Online: uint32(o.Online), Pending: uint32(o.Pending),
		EventsSeen: o.EventsSeen, EventGaps: o.EventGaps, LinksTotal: uint32(o.LinksTotal), LinksConfirmed: uint32(o.LinksConfirmed),
		Refused: o.Refused, UnknownKeys: o.UnknownKeys, Shed: o.Shed, Waiting: p.waits(), Planner: p.j.Planner, Life: p.j.Life, Others: proto.Clip(p.aboutOthers())}
}

// aboutOthers says what is known of other planners, and who was replaced.
func (p *Planner) aboutOthers() string {
	s := p.others.about(p.j.Now)
	if p.replaced != "" {
		s = strings.TrimSuffix("replaced "+p.replaced+"; "+s, "; ")
	}
	return s
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
	Refused        uint64 // messages that were not acceptable
	UnknownKeys    uint64 // skipped in those that were
	Shed           uint64 // messages that the link let nobody read: too long, or too many
}

// Overview tells where the planner stands.
func (p *Planner) Overview() Overview {
	h := p.rings.Totals()
	o := Overview{Term: p.j.Term, Generation: h.Generation, Rings: h.Rings, InService: h.InService, Degraded: h.Degraded, Spares: h.Spares,
		Online: h.Online, Pending: h.Pending, LinksTotal: h.LinksTotal, LinksConfirmed: h.LinksConfirmed, EventsSeen: p.j.Seen(),
		Refused: p.counts.refused, UnknownKeys: p.counts.unknown, Shed: p.counts.shed}
	o.Quiet = p.j.LinkUp && p.rings.Quiet() && o.Pending == 0 && p.j.Quiet() && (p.core == nil || p.core.Quiet())
	for _, t := range p.tables() {
		o.EventGaps += t.Gaps()
		o.Refused += t.Refused()
		o.Quiet = o.Quiet && t.Quiet()
	}
	return o
}

// Touched gives the members of a ring, and whether it was in service until the
// last generation gave it others.
func (p *Planner) Touched(id proto.RingID) (nodes []proto.NodeID, moved bool) {
	return p.rings.Touched(id)
}

// Rings are the planner's rings, by id.
func (p *Planner) Rings() []proto.RingStatus { return p.rings.Statuses() }

// CoreStatus tells where the circuits stand. Without a core it is empty.
func (p *Planner) CoreStatus() proto.CoreStatus {
	if p.core == nil {
		return proto.CoreStatus{}
	}
	return p.core.Status()
}

// Change is what the job list taken last came to. Without a core it is empty.
func (p *Planner) Change() proto.ChangeStatus {
	if p.core == nil {
		return proto.ChangeStatus{}
	}
	return p.core.Change()
}

// JobsOf are those that asked for rings.
func JobsOf(p *Planner) *job.Table { return p.jobs }
