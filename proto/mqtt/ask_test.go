package mqtt

import (
	"context"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/sim/freeport"
)

// Goal: the word of a planner that is not in service ends no question: it is told,
// the one in service may answer yet, and it is the refusal when nobody does.
// Method: a client on a real link answers as a planner that stands by, then, or
// never, as one in service.
func TestAskBehindAStandby(t *testing.T) {
	for _, serves := range []bool{true, false} {
		b := &embedded{address: freeport.Address()}
		b.start(t)
		topics := proto.Topics{Fabric: "f"}
		planner := dial(t, Config{Broker: b.url(), ClientID: "planner", Ordered: true, Subscriptions: []string{topics.EveryRequest()}})
		wantKind(t, planner, proto.LinkUp)
		a := &Asker{Link: dial(t, Config{Broker: b.url(), ClientID: "ctl", Ordered: true, Subscriptions: []string{topics.Reply("ctl")}}), Topics: topics, Name: "ctl", Wait: time.Second}
		told := ""
		a.Waits = func(why string) { told = why }
		go func() {
			p, ok := <-planner.Recv()
			var q proto.OpRequest
			if _, err := proto.Decode(p.Payload, &q); !ok || err != nil {
				t.Error(ok, err)
				return
			}
			say := func(r proto.OpReply) {
				r.Version, r.Corr = proto.Version, q.Corr
				payload, err := proto.Encode(&r)
				if err == nil {
					err = planner.Send(proto.Packet{Kind: proto.Publish, Topic: topics.Reply("ctl"), Payload: payload, QoS: 1})
				}
				if err != nil {
					t.Error(err)
				}
			}
			say(proto.OpReply{Code: proto.Busy, Field: proto.FieldPlanner, Reason: "standing by"})
			if serves {
				say(proto.OpReply{Fabric: &proto.FabricStatus{Name: "f"}})
			}
		}()
		ctx := context.Background()
		if err := a.Connect(ctx); err != nil {
			t.Fatal(err)
		}
		r, err := a.Ask(ctx, proto.OpRequest{Noun: proto.NounFabric})
		if told != "standing by" || serves && (err != nil || r.Fabric == nil) || !serves && (err == nil || proto.AsError(err).Code != proto.Busy) {
			t.Errorf("served %v: told %q, %+v, %v", serves, told, r, err)
		}
	}
}
