package fleet

import (
	"fmt"

	"ringlight/agent"
	"ringlight/proto"
)

// Operators talk to the planner as ocsctl does, and are not heard while the
// broker is away. What they are answered is counted and thrown away: a request
// that cannot be carried out is not.

// operatorTTL is how long an operator waits. chosen: a drain takes a second.
const operatorTTL = 10_000 // milliseconds

// operatorID stands for whoever typed a request.
const operatorID = -3

func (r *Run) operate(f *Fault) {
	if !r.net.up {
		return
	}
	r.asked++
	q := proto.OpRequest{Version: proto.Version, Corr: proto.Corr(proto.DigestOf(fmt.Append(nil, r.asked))), TTLMillis: operatorTTL, Node: f.Node, Bundle: -1}
	switch f.Verb {
	case Drain:
		q.Noun = proto.NounDrain
	case Undrain:
		q.Noun = proto.NounUndrain
	case Switch:
		q.Noun, q.Side, q.Request = proto.NounRequest, f.Side, f.Ask
		if peer := proto.NodeID(f.Peer); f.Peer >= 0 {
			q.Peer = &peer
		}
	}
	payload, err := proto.Encode(&q)
	if err != nil {
		panic("fleet: an operator's request does not encode: " + err.Error())
	}
	p := proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: r.cfg.Fabric.Name}.Request("script"), Payload: payload, QoS: proto.TopicRequest.QoS()}
	r.tracePacket(operatorID, p)
	r.net.publish(operatorID, p)
}

// calibrate is what ocs-agent calibrate asks.
func (r *Run) calibrate(f *Fault) error {
	st := r.stations[f.Node]
	if st.agent == nil || f.Count >= r.cfg.Fabric.Bundles {
		return nil
	}
	r.touch(st)
	st.asked++
	st.agent.Deliver(st.clock.local(r.now), agent.Input{Kind: agent.InAsk, Ask: agent.Ask{ID: st.asked, Verb: agent.AskCalibrate, Bundle: proto.BundleID(f.Count)}})
	return r.poll(st, false)
}

// tied tells whether an operator's request holds a side of a node where it is,
// with light or without: what is open there is open by order.
func (a *audit) tied(st *station) bool {
	if st.agent == nil {
		return false
	}
	a.sides = st.agent.Machine().Sides(a.sides[:0])
	for _, s := range a.sides {
		if s.Request >= proto.ForcedSwitch {
			return true
		}
	}
	return false
}
