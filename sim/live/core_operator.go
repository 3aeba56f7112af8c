package live

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// operator asks the planner over the broker, as ocsctl does, and hears what
// switches report on the way.
type operator struct {
	link   *mqtt.Link
	topics proto.Topics
	name   string
	corr   uint64
	heard  func(*proto.Reported)
}

// answerLimit is how long an answer may take; chosen: as ocsctl waits.
const answerLimit = 10 * time.Second

func newOperator(ctx context.Context, to mqtt.Config, fabric string, heard func(*proto.Reported)) (*operator, error) {
	o := &operator{topics: proto.Topics{Fabric: fabric}, name: "core-operator", heard: heard}
	to.ClientID, to.Ordered = o.name, true
	to.Subscriptions = []string{o.topics.Reply(o.name), o.topics.EveryNode(proto.TopicReported)}
	var err error
	if o.link, err = mqtt.Dial(to); err != nil {
		return nil, err
	}
	_, err = o.until(ctx, func(p proto.Packet) bool { return p.Kind == proto.LinkUp })
	return o, err
}

// until takes packets until one will do.
func (o *operator) until(ctx context.Context, will func(proto.Packet) bool) (proto.Packet, error) {
	timeout := time.NewTimer(answerLimit)
	defer timeout.Stop()
	for {
		select {
		case p := <-o.link.Recv():
			o.hear(p)
			if will(p) {
				return p, nil
			}
		case <-timeout.C:
			return proto.Packet{}, fmt.Errorf("live: the planner did not answer within %v", answerLimit)
		case <-ctx.Done():
			return proto.Packet{}, ctx.Err()
		}
	}
}

func (o *operator) hear(p proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	if p.Kind != proto.Publish || err != nil || topic.Kind != proto.TopicReported {
		return
	}
	m := new(proto.Reported)
	if _, err := proto.Decode(p.Payload, m); err == nil {
		o.heard(m)
	}
}

// listen hears reports for some time.
func (o *operator) listen(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case p := <-o.link.Recv():
			o.hear(p)
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (o *operator) ask(ctx context.Context, q proto.OpRequest) (*proto.OpReply, error) {
	o.corr++
	q.Version, q.TTLMillis, q.Bundle = proto.Version, uint32(answerLimit.Milliseconds()), -1
	binary.BigEndian.PutUint64(q.Corr[8:], o.corr)
	payload, err := proto.Encode(&q)
	if err != nil {
		return nil, err
	}
	if err := o.link.Send(proto.Packet{Kind: proto.Publish, Topic: o.topics.Request(o.name), Payload: payload, QoS: proto.TopicRequest.QoS()}); err != nil {
		return nil, err
	}
	r := new(proto.OpReply)
	_, err = o.until(ctx, func(p proto.Packet) bool {
		if p.Kind != proto.Publish || p.Topic != o.topics.Reply(o.name) {
			return false
		}
		*r = proto.OpReply{}
		_, err := proto.Decode(p.Payload, r)
		return err == nil && r.Corr == q.Corr
	})
	if err != nil {
		return nil, err
	}
	if r.Code != proto.OK {
		return nil, &proto.Error{Code: r.Code, Field: r.Field, Limit: r.Limit, Reason: r.Reason}
	}
	return r, nil
}

// circuits asks for all circuits that are wanted, page by page.
func (o *operator) circuits(ctx context.Context) ([]proto.CircuitStatus, error) {
	var out []proto.CircuitStatus
	for page := uint64(0); ; {
		r, err := o.ask(ctx, proto.OpRequest{Noun: proto.NounCircuits, Page: page})
		if err != nil {
			return nil, err
		}
		out = append(out, r.Circuits...)
		if r.Next <= page {
			return out, nil
		}
		page = r.Next
	}
}
