package live

import (
	"context"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// operator asks the planner over the broker, as ocsctl does, and hears what
// switches report on the way.
type operator struct{ mqtt.Asker }

// answerLimit is how long an answer may take; chosen: as ocsctl waits.
const answerLimit = 10 * time.Second

func newOperator(ctx context.Context, to mqtt.Config, fabric string, heard func(*proto.Reported)) (*operator, error) {
	o := &operator{mqtt.Asker{Topics: proto.Topics{Fabric: fabric}, Name: "core-operator", Wait: answerLimit}}
	o.Heard = func(p proto.Packet) {
		topic, err := proto.ParseTopic(p.Topic)
		if p.Kind != proto.Publish || err != nil || topic.Kind != proto.TopicReported {
			return
		}
		m := new(proto.Reported)
		if _, err := proto.Decode(p.Payload, m); err == nil {
			heard(m)
		}
	}
	to.ClientID, to.Ordered = o.Name, true
	to.Subscriptions = []string{o.Topics.Reply(o.Name), o.Topics.EveryNode(proto.TopicReported)}
	var err error
	if o.Link, err = mqtt.Dial(to); err != nil {
		return nil, err
	}
	return o, o.Connect(ctx)
}

// circuits asks for all circuits that are wanted.
func (o *operator) circuits(ctx context.Context) (out []proto.CircuitStatus, err error) {
	err = o.Pages(ctx, proto.OpRequest{Noun: proto.NounCircuits}, func(r *proto.OpReply) { out = append(out, r.Circuits...) })
	return out, err
}
