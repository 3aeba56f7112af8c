package planner

import (
	"errors"

	"ringlight/proto"
)

// receive decodes a packet and hands it on. What is not acceptable changes
// nothing and is counted.
func (p *Planner) receive(pk proto.Packet) {
	if pk.Kind != proto.Publish || len(pk.Payload) == 0 {
		return // an empty retained message is a deleted one
	}
	topic, err := proto.ParseTopic(pk.Topic)
	if err != nil {
		p.refuse(-1, err)
		return
	}
	if topic.Fabric != p.fab.Name {
		return
	}
	switch topic.Kind {
	case proto.TopicPlanner:
		var m proto.PlannerState
		if p.decode(-1, pk.Payload, &m) {
			p.onPlanner(&m, pk.Retain)
		}
	case proto.TopicRequest:
		p.onRequest(topic.Client, pk.Payload)
	default:
		if topic.Node.IsSwitch() {
			p.receiveSwitch(topic, pk.Payload)
			return
		}
		p.receiveNode(topic, pk.Payload)
	}
}

var (
	errNode   = errors.New("the message names another node than its topic")
	errNoNode = errors.New("the fabric has no such node")
)

func (p *Planner) receiveNode(topic proto.Topic, payload []byte) {
	id := int64(topic.Node)
	n := p.node(topic.Node)
	if n == nil {
		p.refuse(-1, errNoNode)
		return
	}
	switch topic.Kind {
	case proto.TopicPresence:
		m := new(proto.Presence)
		if p.decode(id, payload, m) && p.same(n, m.Node) {
			n.missed = false
			p.onPresence(n, m)
		}
	case proto.TopicReported:
		m := new(proto.Reported)
		if p.decode(id, payload, m) && p.same(n, m.Node) {
			p.onReported(n, m)
		}
	case proto.TopicEvent:
		m := new(proto.Event)
		if p.decode(id, payload, m) && p.same(n, m.Node) {
			p.onEvent(n, m)
		}
	case proto.TopicAck:
		m := new(proto.Ack)
		if p.decode(id, payload, m) && p.same(n, m.Node) {
			p.onAck(n, m)
		}
	}
}

func (p *Planner) decode(node int64, payload []byte, m any) bool {
	unknown, err := proto.Decode(payload, m)
	p.counts.unknown += uint64(unknown)
	if err != nil {
		p.refuse(node, err)
	}
	return err == nil
}

func (p *Planner) same(n *nodeView, said proto.NodeID) bool {
	if said != n.id {
		p.refuse(int64(n.id), errNode)
	}
	return said == n.id
}

// refuse counts a message that is not acceptable. It is logged, not kept: a
// flood of them must not push the events out.
func (p *Planner) refuse(node int64, err error) {
	p.counts.refused++
	p.line(Warn, "message refused", "protocol", node, 0, 0, proto.Clip(err.Error()))
}

// Refused is the number of messages that were not acceptable, UnknownKeys
// that of keys skipped in those that were.
func (p *Planner) Refused() uint64 { return p.counts.refused }

// UnknownKeys see Refused.
func (p *Planner) UnknownKeys() uint64 { return p.counts.unknown }
