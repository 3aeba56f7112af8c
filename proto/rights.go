package proto

import (
	"slices"
	"strings"
)

// Rights on a broker, by name: what begins with a holder's own name, and what the
// whole fabric shares. The one table that brokers are configured from.

// right is what a kind of holder may do on a kind of topic.
type right struct {
	kind             HolderKind
	topic            TopicKind
	publish, receive bool
}

var rights = [...]right{
	{HolderNode, TopicDesired, false, true},
	{HolderNode, TopicCommand, false, true},
	{HolderNode, TopicAck, true, false},
	{HolderNode, TopicReported, true, false},
	{HolderNode, TopicPresence, true, false},
	{HolderNode, TopicHealth, true, false},
	{HolderNode, TopicEvent, true, false},
	{HolderNode, TopicPlanner, false, true},
	{HolderNode, TopicDecision, false, true},
	{HolderNode, TopicTrust, false, true},

	{HolderNode, TopicCSR, true, false},
	{HolderNode, TopicCRT, false, true},

	{HolderEnrol, TopicEnrolCSR, true, false},
	{HolderEnrol, TopicEnrolCRT, false, true},
	{HolderEnrol, TopicTrust, false, true},

	{HolderPlanner, TopicDesired, true, false},
	{HolderPlanner, TopicCommand, true, false},
	{HolderPlanner, TopicAck, false, true},
	{HolderPlanner, TopicReported, false, true},
	{HolderPlanner, TopicPresence, false, true},
	{HolderPlanner, TopicHealth, false, true},
	{HolderPlanner, TopicEvent, false, true},
	{HolderPlanner, TopicPlanner, true, true},
	{HolderPlanner, TopicDecision, true, false},
	{HolderPlanner, TopicTrust, true, false},
	{HolderPlanner, TopicRequest, false, true},
	{HolderPlanner, TopicReply, true, false},
	{HolderPlanner, TopicCSR, false, true},
	{HolderPlanner, TopicCRT, true, true}, // of a copy
	{HolderPlanner, TopicEnrolCSR, false, true},
	{HolderPlanner, TopicEnrolCRT, true, false},

	{HolderOperator, TopicRequest, true, false},
	{HolderOperator, TopicReply, false, true},
	{HolderOperator, TopicPlanner, false, true},
	{HolderOperator, TopicPresence, false, true},
	{HolderOperator, TopicEvent, false, true},
}

// Grant is a filter that a holder may publish on or subscribe to.
type Grant struct {
	Filter           string
	Publish, Receive bool
	Own              bool // it begins with the holder's name, below ocs/v1/
}

// Grants are all that a holder may do.
type Grants []Grant

// Grants are made anew at each call.
func (h Holder) Grants() (list Grants) {
	t := Topics{Fabric: h.Fabric}
	for _, r := range rights {
		if r.kind != h.Kind {
			continue
		}
		g := Grant{Publish: r.publish, Receive: r.receive}
		switch {
		case h.Kind == HolderNode && r.topic.ofNode():
			g.Filter, g.Own = t.node(h.Node, r.topic), true
		case h.Kind == HolderEnrol && r.topic.ofEnrolment():
			g.Filter, g.Own = t.Enrol(h.Node, r.topic), true
		case r.topic.ofEnrolment():
			g.Filter = t.EveryEnrolment(r.topic)
		case r.topic.ofNode():
			g.Filter = t.EveryNode(r.topic)
		case r.topic == TopicPlanner:
			g.Filter = t.Planner()
		case r.topic == TopicDecision:
			g.Filter = t.EveryDecision()
		case r.topic == TopicTrust:
			g.Filter = t.Trust()
		default:
			who := "+"
			if h.Kind == HolderOperator {
				who, g.Own = h.ID, true
			}
			if g.Filter = t.Request(who); r.topic == TopicReply {
				g.Filter = t.Reply(who)
			}
		}
		list = append(list, g)
	}
	return list
}

// Allow reports whether a holder may publish on a topic, or subscribe to a filter or
// receive from a topic.
func (list Grants) Allow(publish bool, filter string) bool {
	return slices.ContainsFunc(list, func(g Grant) bool {
		return (publish && g.Publish || !publish && g.Receive) && covers(g.Filter, filter)
	})
}

// covers reports whether all topics of a filter are in another.
func covers(grant, filter string) bool {
	for {
		a, restA, moreA := strings.Cut(grant, "/")
		b, restB, moreB := strings.Cut(filter, "/")
		if b == "#" || a != b && a != "+" || moreA != moreB {
			return false
		}
		if !moreA {
			return true
		}
		grant, filter = restA, restB
	}
}

// OwnsClient reports whether a holder may connect under a client id: a node under
// its one, so that nobody throws another off the broker; planners and operators
// under as many as they like that begin with their name.
func (h Holder) OwnsClient(id string) bool {
	switch h.Kind {
	case HolderNode:
		return id == Topics{Fabric: h.Fabric}.NodeClient(h.Node)
	case HolderEnrol:
		return id == h.EnrolClient()
	case HolderPlanner:
		return strings.HasPrefix(id, h.Fabric+"-planner-")
	}
	return strings.HasPrefix(id, h.OperatorClient(""))
}

// EnrolClient is the client id of the holder of a token: the name in its certificate, which
// some brokers make it anyway.
func (h Holder) EnrolClient() string { return h.String() }

// OperatorClient is a client id of an operator.
func (h Holder) OperatorClient(one string) string { return h.Fabric + "-op-" + h.ID + "-" + one }
