package planner

import (
	"fmt"
	"strings"
	"time"

	"ringlight/planner/core"
	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// Answers to operators. The planner alone answers, and alone commands agents.

func (p *Planner) onRequest(client string, pk *proto.Packet) {
	if p.state == standby || p.state == following || p.pulse.beat == 0 {
		p.answerIdle(client, pk.Payload)
		return
	}
	answer(p, client, pk)
}

func answer(p *Planner, client string, pk *proto.Packet) {
	var q proto.OpRequest
	unknown, err := proto.Decode(pk.Payload, &q)
	p.inbox.unknown += uint64(unknown)
	if err != nil {
		p.inbox.refuse(-1, err)
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
		if err := p.acts.enter(p.j, client, &q, pk, p.pulse.beat); err != nil {
			p.inbox.refuse(-1, err)
			p.refusals.enter(p.j, client, &q, pk, err)
			r.Refuse(err)
			p.reply(client, &r)
			return
		}
	}
	switch q.Noun {
	case proto.NounClear, proto.NounClearFibre:
		p.clear(&q, &r)
	case proto.NounFabric:
		r.Fabric = new(p.fabricStatus())
	case proto.NounStatus:
		p.statusAsks.ask(p, client, q.Corr)
		return
	case proto.NounAlarms:
		p.Alarms.page(&q, &r)
	case proto.NounAck:
		p.Alarms.acknowledge(&q, &r)
	case proto.NounTrace:
		t := p.Rings.Table
		if q.Node.IsSwitch() && p.Core != nil {
			t = p.Core.Table
		}
		t.Courses.Trace(&q, &r)
	case proto.NounNodes:
		if q.Page >= uint64(proto.FirstSwitch) {
			p.onCircuits(&q, &r)
		} else {
			p.Rings.Placed.Answer(&q, &r)
		}
	case proto.NounRings, proto.NounRing, proto.NounLinks:
		p.Rings.Evidence.Asked(&q, &r)
		p.edits.links(&r)
	case proto.NounQualify:
		p.edits.qualify(&q, &r)
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
	case proto.NounSubmit, proto.NounRelease, proto.NounRouted, proto.NounResumed:
		r.Refuse(p.Jobs.Asked(&q))
	case proto.NounAudit:
		p.j.AuditPage(&q, &r)
	case proto.NounEvents:
		p.j.EventsPage(&q, &r)
	case proto.NounNode, proto.NounWhy, proto.NounHostFault, proto.NounHostOK, proto.NounDrain, proto.NounUndrain, proto.NounRequest, proto.NounQuarantine, proto.NounLift, proto.NounBins, proto.NounConnect:
		if d := p.askedNode(&q, &r); d != nil && p.onNode(client, &q, d, &r) {
			return
		}
	default:
		p.onCircuits(&q, &r)
	}
	p.reply(client, &r)
}

// answerIdle answers for a planner that is not in service: one that is
// answers by itself, and only when none was heard for a period do we say so.
func (p *Planner) answerIdle(client string, payload []byte) {
	var q proto.OpRequest
	last := p.pulse.linkSince
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
		r.Fabric = new(p.fabricStatus())
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
			if d.Known {
				s.Reported = d.Whole()
			}
			r.Nodes = []proto.NodeStatus{s}
		} else {
			p.Rings.Placed.Answer(q, r)
		}
	case proto.NounWhy:
		if p.asks.begin(client, q, d, r, proto.Command{Verb: proto.VerbEvents}) {
			return true
		}
		p.whyPage(q, r, nil)
	case proto.NounBins:
		return p.asks.begin(client, q, d, r, proto.Command{Verb: proto.VerbBins, Next: uint32(q.Page), Bins: q.Bins})
	case proto.NounConnect:
		return p.asks.begin(client, q, d, r, proto.Command{Verb: proto.VerbConnect, Connect: q.Names, Disconnect: q.Gone})
	case proto.NounHostFault:
		return p.asks.begin(client, q, d, r, proto.Command{Verb: proto.VerbHostFault})
	case proto.NounHostOK:
		return p.asks.begin(client, q, d, r, proto.Command{Verb: proto.VerbHostOK})
	case proto.NounDrain:
		return p.Rings.Drain(client, q, r)
	case proto.NounQuarantine:
		hbd.Quarantine(p.Rings, q, r)
	case proto.NounLift:
		hbd.Lift(p.Rings, q, r)
	case proto.NounUndrain:
		c := p.Rings.Undrain(q, r)
		return c != nil && p.asks.begin(client, q, d, r, *c)
	case proto.NounRequest:
		c := p.Rings.Request(q, r)
		if c == nil || !p.asks.begin(client, q, d, r, *c) {
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
	case q.Noun == proto.NounFlip && len(q.Rings) > 0:
		hbd.Exchange(q, r, p.Rings)
	case !core.Answers(q.Noun) && q.Noun != proto.NounNodes:
		r.Refuse(&proto.Error{Code: proto.Unsupported, Field: "noun", Reason: fmt.Sprintf("noun %d is not known here", q.Noun)})
	case p.Core == nil:
		r.Refuse(&proto.Error{Code: proto.Unsupported, Field: "fabric", Limit: "a fabric with a core", Reason: "this one has no optical switches between pods"})
	case q.Noun == proto.NounNodes:
		p.Core.Table.StatusPage(q, r)
	case q.Noun == proto.NounTables && q.Name == proto.TablesAsRoutes:
		p.Jobs.RoutesPage(q, r)
	default:
		p.Core.Answer(q, r)
	}
}

// askedNode finds the node of a request, or refuses it.
func (p *Planner) askedNode(q *proto.OpRequest, r *proto.OpReply) *member.Device {
	if q.Name != "" && (q.Noun == proto.NounDrain || q.Noun == proto.NounUndrain) {
		askedServers(p, q, r)
		return nil
	}
	d := p.Rings.Table.Find(q.Node)
	if (q.Noun == proto.NounWhy || q.Noun == proto.NounNode || q.Noun == proto.NounBins || q.Noun == proto.NounConnect) && q.Node.IsSwitch() && p.Core != nil {
		if d = p.Core.Table.Find(q.Node); d == nil {
			r.Refuse(&proto.Error{Code: proto.NotFound, Field: "switch", Limit: fmt.Sprintf("0 to %d", p.Fabric.Core.Switches()-1), Reason: fmt.Sprintf("no switch %d", q.Node-proto.FirstSwitch)})
		}
		return d
	}
	switch {
	case q.Noun == proto.NounConnect:
		r.Refuse(&proto.Error{Code: proto.Invalid, Field: "node", Limit: "an optical switch of the core", Reason: fmt.Sprintf("%d is none", q.Node)})
		d = nil
	case d == nil:
		limit := "there are no nodes"
		if p.Fabric.Nodes > 0 {
			limit = fmt.Sprintf("0 to %d", p.Fabric.Nodes-1)
		}
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "node", Limit: limit, Reason: fmt.Sprintf("no node %d", q.Node)})
	case int(q.Bundle) >= p.Fabric.Bundles:
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "bundle", Limit: fmt.Sprintf("0 to %d", p.Fabric.Bundles-1), Reason: fmt.Sprintf("no bundle %d", q.Bundle)})
		d = nil
	}
	return d
}

// askedServers takes servers of the core out, or lets them in.
func askedServers(p *Planner, q *proto.OpRequest, r *proto.OpReply) {
	part, ok := p.Fabric.FindPart(q.Name)
	if !ok {
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "server", Limit: fabric.PartNames, Reason: fmt.Sprintf("the core has no %.80q", q.Name)})
		return
	}
	p.Core.TakeOut(part, q, r)
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
		subject := journal.Subject{Node: q.Node, Gen: p.Core.Table.Find(q.Node).Want.Gen}
		lines, facts = p.j.History(subject, q.Bundle, own), p.Core.Facts(q.Node, q.Bundle)
	} else {
		lines, facts = p.j.History(p.Rings.Placed.Subject(q.Node), q.Bundle, own), p.Rings.Agenda.Facts(q.Node, q.Bundle)
	}
	if room := proto.MaxPage - len(facts) - maxAbout; len(lines) > room {
		lines = lines[len(lines)-room:]
	}
	r.Why = append(lines, append(p.Alarms.about(q.Node), facts...)...)
}

// reply sends an answer, with fewer items when a page is too large.
func (p *Planner) reply(client string, r *proto.OpReply) {
	r.Version = proto.Version
	for {
		payload, err := proto.Encode(r)
		if err == nil {
			if d := p.acts.answered(p.j.Now, client, r.Corr, payload); d != nil {
				p.j.Persist(p.j.Audit(d.answered(r))...)
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
	return proto.FabricStatus{Name: p.Fabric.Name, Term: o.Term, Generation: o.Generation, Nodes: uint32(p.Fabric.Nodes),
		GPUsPerNode: uint32(p.Fabric.GPUsPerNode), K: uint32(p.Fabric.K), TP: uint32(p.Fabric.TP), Online: uint32(o.Online), Pending: uint32(o.Pending),
		EventsSeen: o.EventsSeen, EventGaps: o.EventGaps, LinksTotal: uint32(o.LinksTotal), LinksConfirmed: uint32(o.LinksConfirmed),
		Refused: o.Refused, UnknownKeys: o.UnknownKeys, Shed: o.Shed, Waiting: p.waits(), Planner: p.j.Planner, Life: p.j.Life, Others: proto.Clip(p.aboutOthers()), Features: p.pulse.features}
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
	hbd.Totals
	Term        proto.Term
	Quiet       bool          // nothing planned, prepared, persisted or waited for
	Asking      bool          // of a device an answer is waited for
	Writing     bool          // what is decided is on its way to the disk
	Wait        time.Duration // until it looks again by itself
	EventsSeen  uint64
	EventGaps   uint64
	Refused     uint64 // messages that were not acceptable
	UnknownKeys uint64 // skipped in those that were
	Shed        uint64 // messages that the link let nobody read: too long, or too many
}

// Overview tells where the planner stands.
func (p *Planner) Overview() Overview {
	o := Overview{Totals: p.Rings.Placed.Totals(), Term: p.j.Term, EventsSeen: p.j.Seen(),
		Refused: p.inbox.refused, UnknownKeys: p.inbox.unknown, Shed: p.inbox.shed}
	o.Asking, o.Writing, o.Wait = o.Pending > 0 || hbd.Asking(p.Rings), !p.j.Written(), p.Next()-p.j.Now
	o.Quiet = p.j.LinkUp && p.Rings.Quiet() && o.Pending == 0 && p.j.Quiet() && (p.Core == nil || p.Core.Quiet())
	for _, t := range p.tables() {
		o.EventGaps += t.Gaps()
		o.Refused += t.Numbers.Refused()
		o.Quiet = o.Quiet && t.Quiet()
	}
	return o
}
