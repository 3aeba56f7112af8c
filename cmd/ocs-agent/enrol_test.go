package main

import (
	"context"
	"slices"
	"testing"

	"ringlight/proto"
)

// noted is a link that notes what it is given.
type noted struct {
	sent []proto.Packet
	recv chan proto.Packet
}

func (n *noted) Send(p proto.Packet) error { n.sent = append(n.sent, p); return nil }
func (n *noted) Recv() <-chan proto.Packet { return n.recv }
func (n *noted) Close()                    {}

// Goal: an agent that enrols while it runs hears its planner: what it subscribed to before
// it had a link is asked for on that. Method: subscriptions come and go first, then a link.
func TestWhoEnrolsHearsThePlanner(t *testing.T) {
	e := newEnrolling(func() {})
	for _, p := range []proto.Packet{{Kind: proto.Subscribe, Topic: "a"}, {Kind: proto.Subscribe, Topic: "b"}, {Kind: proto.Unsubscribe, Topic: "a"}} {
		if err := e.Send(p); err != nil {
			t.Errorf("%v %s: %v", p.Kind, p.Topic, err)
		}
	}
	if e.Send(proto.Packet{Kind: proto.Publish, Topic: "lost"}) == nil {
		t.Error("a publication is taken without a link")
	}
	link := &noted{recv: make(chan proto.Packet, 1)}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() { defer close(over); e.serve(ctx, link) }()
	link.recv <- proto.Packet{Kind: proto.LinkUp}
	if p := <-e.Recv(); p.Kind != proto.LinkUp {
		t.Errorf("the first word is %v", p.Kind)
	}
	if err := e.Send(proto.Packet{Kind: proto.Subscribe, Topic: "c"}); err != nil {
		t.Error(err)
	}
	stop()
	<-over
	var asked []string
	for _, p := range link.sent {
		asked = append(asked, p.Kind.String()+" "+p.Topic)
	}
	if want := []string{"subscribe a", "subscribe b", "unsubscribe a", "subscribe c"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}
