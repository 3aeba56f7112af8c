package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ringlight/planner/health"
	"ringlight/proto"
)

// What stands where no planner answers: what the agents said last, which the
// broker keeps, and the planner's last sign of life.

const (
	// keptQuiet ends the listening for what the broker keeps; chosen: it sends it
	// all at once. keptLimit does where agents speak all the time.
	keptQuiet = 300 * time.Millisecond
	keptLimit = 3 * time.Second
)

// unanswered: nobody is in service who could answer.
func unanswered(err error) bool {
	var refused *proto.Error
	return errors.As(err, &refused) && (refused.Code == proto.Expired && refused.Field == "fabric" || refused.Code == proto.Busy && refused.Field == proto.FieldPlanner)
}

// kept is what a broker keeps of a fabric.
type kept struct {
	planner  proto.PlannerState
	presence map[proto.NodeID]*proto.Presence
	reported map[proto.NodeID]*proto.Reported
}

// askBroker gathers it.
func askBroker(ctx context.Context, cl *client) (*kept, error) {
	k := &kept{presence: map[proto.NodeID]*proto.Presence{}, reported: map[proto.NodeID]*proto.Reported{}}
	for _, topic := range []string{cl.Topics.Planner(), cl.Topics.EveryNode(proto.TopicPresence), cl.Topics.EveryNode(proto.TopicReported)} {
		if err := cl.Link.Send(proto.Packet{Kind: proto.Subscribe, Topic: topic, QoS: 1}); err != nil {
			return nil, err
		}
	}
	quiet, limit := time.NewTimer(keptQuiet), time.After(keptLimit)
	defer quiet.Stop()
	for {
		select {
		case p := <-cl.Link.Recv():
			quiet.Reset(keptQuiet)
			k.take(cl.Topics.Fabric, p)
		case <-quiet.C:
			return k, nil
		case <-limit:
			return k, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (k *kept) take(fabric string, p proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	if p.Kind != proto.Publish || err != nil || topic.Fabric != fabric || len(p.Payload) == 0 {
		return
	}
	switch topic.Kind {
	case proto.TopicPlanner:
		if m := (proto.PlannerState{}); decoded(p, &m) && !m.Standby {
			k.planner = m
		}
	case proto.TopicPresence:
		if m := new(proto.Presence); decoded(p, m) && m.Node == topic.Node {
			k.presence[m.Node] = m
		}
	case proto.TopicReported:
		if m := new(proto.Reported); decoded(p, m) && m.Node == topic.Node {
			k.reported[m.Node] = m
		}
	}
}

func decoded(p proto.Packet, m any) bool {
	_, err := proto.Decode(p.Payload, m)
	proto.Printable(m)
	return err == nil
}

// missing is what only a planner knows.
var missing = []string{"nodes that no agent speaks for", "spares", "acknowledgements", "what breaks next"}

// status is as much of a planner's answer as agents give: devices by what they
// said last, rings as they applied them, links by the light of both ends.
func (k *kept) status() (*proto.Status, []proto.AlarmStatus) {
	s := &proto.Status{Term: k.planner.Term, Planner: proto.PlannerCopy{Planner: k.planner.Planner, Life: k.planner.Life, Host: k.planner.Host}}
	x := health.Facts{Idle: k.lastWord(), Remedy: "start it, or look at its log: systemctl status ocs-planner", Nodes: len(k.presence)}
	rings := map[proto.RingID]*ringKept{}
	for _, id := range slices.Sorted(maps.Keys(k.presence)) {
		m, r := k.presence[id], k.reported[id]
		if id >= proto.FirstSwitch {
			s.Switches++
			s.SwitchesOn += one(m.Online)
		} else {
			s.Nodes.Total++
			s.Nodes.Online += one(m.Online)
			s.Nodes.Silent += one(!m.Online)
		}
		d := health.Device{ID: id}
		if m.Online {
			x.Heard++
		} else {
			d.What, d.Why, d.Quiet = "offline", "its agent is offline", true
			x.Devices = append(x.Devices, d)
		}
		if r == nil || !m.Online { // what it said before it went says nothing of now
			continue
		}
		s.Generation = max(s.Generation, r.Generation)
		s.Nodes.Isolated += one(r.Mode == proto.ModeIsolated)
		s.Nodes.HostDown += one(r.Mode == proto.ModeHostDown)
		for _, a := range r.Alarms {
			d.Said = append(d.Said, health.Said{Kind: a.Kind, Severity: a.Severity, At: fmt.Sprint(a.Bundle), Text: a.Text})
		}
		x.Devices = append(x.Devices, d)
		for i := range r.Rings {
			k.count(s, rings, r, &r.Rings[i])
		}
	}
	for _, x := range rings { // any order: counted
		s.Rings.Total++
		whole := x.there == x.size && x.lit == x.links
		s.Rings.InService += one(whole)
		s.Rings.Degraded += one(!whole)
	}
	after := map[string][]proto.AlarmStatus{}
	for _, a := range health.Of(&x) {
		after[a.Under] = append(after[a.Under], a)
	}
	return s, health.InOrder(after)
}

// ringKept is what the members of a ring say of it.
type ringKept struct{ size, there, links, lit int }

func (k *kept) count(s *proto.Status, rings map[proto.RingID]*ringKept, r *proto.Reported, a *proto.RingAssignment) {
	x := rings[a.Ring]
	if x == nil {
		x = &ringKept{size: int(a.Size)}
		rings[a.Ring] = x
	}
	x.there++
	if len(a.Right) == 0 {
		return
	}
	x.links++
	s.Links++
	to, ok := peer(r, proto.Right)
	if back, found := peer(k.reported[to], proto.Left); ok && found && back == r.Node {
		x.lit++
		s.Confirmed++
	}
}

// peer is whom a side of a node has light of.
func peer(r *proto.Reported, side proto.Side) (proto.NodeID, bool) {
	if r == nil {
		return 0, false
	}
	for _, d := range r.Sides {
		if d.Side == side && d.Current >= 0 {
			return d.Peer, true
		}
	}
	return 0, false
}

func one(yes bool) uint32 {
	if yes {
		return 1
	}
	return 0
}

// lastWord is how the planner was last heard.
func (k *kept) lastWord() string {
	p := k.planner
	last := proto.PlannerCopy{Planner: p.Planner, Life: p.Life, Host: p.Host}
	switch {
	case p.Planner == 0:
		return "none answers, and none has ever spoken here"
	case p.Online:
		return fmt.Sprintf("none answers; the broker keeps a sign of %s of term %d", last, p.Term)
	}
	return fmt.Sprintf("none answers; %s is gone", last)
}
