package fleet

import (
	"ringlight/proto"
)

// Operators talk to the planner as ocsctl does, and are not heard while the
// broker is away. What they are answered is counted and thrown away: a request
// that cannot be carried out is not.

// operatorTTL is how long an operator waits. chosen: a drain takes a second.
const operatorTTL = 10_000 // milliseconds

// operatorID stands for whoever typed a request.
const operatorID = -3

func (in *injector) operate(f *Fault) {
	r := in.Run
	if !r.net.up {
		return
	}
	r.asked++
	q := proto.OpRequest{Corr: corrOf(r.asked), Node: f.Node, Bundle: -1}
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
	case JobsApply:
		q.Noun = proto.NounApply
		var err error
		if q.Jobs, err = parseJobs(f.Jobs); err != nil {
			panic("fleet: a checked fault has bad jobs: " + err.Error())
		}
		r.audit.circuits.lists[q.Corr], in.listed = q.Jobs, f.Jobs
	case RolloutRun:
		q.Noun, q.Software = proto.NounRollout, f.Software
	case RolloutStop:
		q.Noun = proto.NounRolloutStop
	}
	in.ask(q)
}

// ask puts a question to the planner, if there is a broker.
func (in *injector) ask(q proto.OpRequest) {
	r := in.Run
	if !r.net.up {
		return
	}
	q.Version, q.TTLMillis = proto.Version, operatorTTL
	payload, err := proto.Encode(&q)
	if err != nil {
		panic("fleet: an operator's request does not encode: " + err.Error())
	}
	p := proto.Packet{Kind: proto.Publish, Topic: proto.Topics{Fabric: r.cfg.Fabric.Name}.Request("script"), Payload: payload, QoS: proto.TopicRequest.QoS()}
	r.tracer.packet(operatorID, p)
	r.net.publish(operatorID, p)
}
