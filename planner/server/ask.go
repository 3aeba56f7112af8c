package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"ringlight/planner"
	"ringlight/proto"
)

// askPatience is longer than the planner waits for an agent. chosen.
const askPatience = 5 * time.Second

// Ask asks the planner what an operator would ask over the broker, and in the
// same words; the broker need not be there. An act has its author's name, as
// the connection that it came over tells it.
func (s *server) Ask(ctx context.Context, q proto.OpRequest) (*proto.OpReply, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	q.Version, q.TTLMillis = proto.Version, uint32(askPatience.Milliseconds())
	_, _ = rand.Read(q.Corr[:]) // never fails
	payload, err := proto.Encode(&q)
	if err != nil {
		return nil, err
	}
	answer := make(chan *proto.OpReply, 1)
	if err := s.Read(ctx, func(*planner.Planner) {
		s.asked[q.Corr] = answer
		s.host.Ask(proto.Packet{Kind: proto.Publish, Topic: s.topics.Request(s.asker), Payload: payload})
		s.host.Step()
	}); err != nil {
		return nil, err
	}
	defer func() { _ = s.Read(context.WithoutCancel(ctx), func(*planner.Planner) { delete(s.asked, q.Corr) }) }()
	select {
	case r := <-answer:
		if r.Code != proto.OK {
			return nil, &proto.Error{Code: r.Code, Field: r.Field, Limit: r.Limit, Reason: r.Reason}
		}
		return r, nil
	case <-ctx.Done():
		return nil, &proto.Error{Code: proto.Expired, Field: proto.FieldPlanner, Reason: fmt.Sprintf("no answer within %v: %v", askPatience, ctx.Err())}
	case <-s.ended:
		return nil, errEnded
	}
}

// answered takes what the planner says to Ask, and reports whether it was that.
func (s *server) answered(p *proto.Packet) bool {
	if s.asker == "" || p.Topic != s.topics.Reply(s.asker) {
		return false
	}
	var r proto.OpReply
	if _, err := proto.Decode(p.Payload, &r); err == nil {
		if to := s.asked[r.Corr]; to != nil {
			delete(s.asked, r.Corr)
			to <- &r
		}
	}
	return true
}
