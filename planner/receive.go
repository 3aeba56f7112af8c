package planner

import (
	"errors"
	"fmt"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// inbox reads what comes in, and counts what shows nowhere else.
type inbox struct {
	j       *journal.Journal
	refused uint64 // messages that were not acceptable
	unknown uint64 // keys skipped
	shed    uint64 // messages that the link did not deliver
}

// addressed says what a packet is about, if it is for this planner: what is not
// acceptable changes nothing and is counted.
func (p *Planner) addressed(pk *proto.Packet) (topic proto.Topic, ours bool) {
	if pk.Kind == proto.Shed {
		p.inbox.shed += pk.ShedCount()
		return topic, false
	}
	if pk.Kind != proto.Publish || len(pk.Payload) == 0 {
		return topic, false // an empty retained message is a deleted one
	}
	topic, err := proto.ParseTopic(pk.Topic)
	if err != nil {
		p.inbox.refuse(-1, err)
		return topic, false
	}
	return topic, topic.Fabric == p.Fabric.Name
}

// reachable refuses a planner's term that is too far above ours to be gone on
// from.
func (p *inbox) reachable(t proto.Term) bool {
	limit := p.j.Term + proto.MaxTermJump
	if p.j.Term == 0 {
		limit = proto.MaxFirst
	}
	if t <= limit {
		return true
	}
	p.refuse(-1, &proto.Error{Code: proto.Invalid, Field: "term", Limit: fmt.Sprintf("at most %d", limit), Reason: fmt.Sprintf("term %d of another planner; if that is so, start with -term-above %d", t, t)})
	return false
}

var (
	errNode   = errors.New("the message names another node than its topic")
	errNoNode = errors.New("the fabric has no such node")
)

// receive hands on what a node or a switch says, another planner, or who asks.
func (p *Planner) receive(topic proto.Topic, pk *proto.Packet) {
	payload := pk.Payload
	switch topic.Kind {
	case proto.TopicPlanner:
		var m proto.PlannerState
		if p.inbox.decode(-1, payload, &m) && p.inbox.reachable(m.Term) {
			p.onPlanner(&m, pk.Retain)
		}
		return
	case proto.TopicRequest:
		p.onRequest(topic.Client, pk)
		return
	}
	t, d := p.find(topic.Node)
	if d == nil {
		p.inbox.refuse(-1, errNoNode)
		p.edits.stranger(topic, payload)
		return
	}
	if d.Ignored { // quarantined: nothing that it says counts, but whom to ask when that ends
		p.inbox.refused++
		m := new(proto.Presence)
		if topic.Kind == proto.TopicPresence && p.inbox.decode(int64(d.ID), payload, m) && m.Online && m.Session != 0 {
			d.Session = m.Session
		}
		return
	}
	if !pk.Retain {
		d.Live(t)
	}
	switch topic.Kind {
	case proto.TopicPresence:
		if m := new(proto.Presence); p.inbox.takes(d, payload, m, &m.Node) && !(pk.Retain && m.Online && d.Echo(t, m.Session)) {
			t.Presence(d, m)
		}
	case proto.TopicReported:
		if m := new(proto.Reported); p.inbox.takes(d, payload, m, &m.Node) && !(pk.Retain && !d.Answers() && m.Seq <= d.Report.Seq() && d.Echo(t, m.Session)) {
			t.Reported(d, m, pk.By != "")
			if m.AsksRestart && !d.ID.IsSwitch() {
				p.Rollout.Asked(d.ID)
			}
		}
	case proto.TopicEvent:
		if m := new(proto.Event); p.inbox.takes(d, payload, m, &m.Node) {
			t.Event(d, m)
		}
	case proto.TopicAck:
		if m := new(proto.Ack); p.inbox.takes(d, payload, m, &m.Node) {
			t.Ack(d, m)
		}
	case proto.TopicHealth:
		if m := new(proto.Health); p.inbox.takes(d, payload, m, &m.Node) {
			t.Health(d, m)
			if !d.ID.IsSwitch() {
				p.Rings.Agenda.Health(m)
				if d.ReportOf() == m.Session && d.Session == m.Session && p.state == serving {
					if due := p.wear.Take(p.j.Now, p.j.Wall, m, d.Report.Bundles); due.Key != "" {
						p.j.Persist(due)
					}
				}
			}
		}
	}
}

func (p *inbox) decode(node int64, payload []byte, m any) bool {
	unknown, err := proto.Decode(payload, m)
	p.unknown += uint64(unknown)
	if err != nil {
		p.refuse(node, err)
	}
	return err == nil
}

// takes reads what a device says of itself, which names the node that it is of.
func (p *inbox) takes(d *member.Device, payload []byte, m any, of *proto.NodeID) bool {
	read := p.decode(int64(d.ID), payload, m)
	if read && *of != d.ID {
		p.refuse(int64(d.ID), errNode)
	}
	return read && *of == d.ID
}

// refuse counts a message that is not acceptable. It is logged, not kept: a
// flood of them must not push the events out.
func (p *inbox) refuse(node int64, err error) {
	p.refused++
	p.j.Line(Line{Level: Warn, Message: "message refused", Rule: "protocol", Node: node, Text: proto.Clip(err.Error())})
}
