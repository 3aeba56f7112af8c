package mqtt

import (
	"fmt"
	"slices"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/packets"

	"ringlight/proto"
	"ringlight/sim/freeport"
)

// denying is a broker hook that forbids some topics to everybody.
type denying struct {
	mochi.HookBase
	topics []string
	gone   chan string // client ids whose connection ended
}

func (h *denying) ID() string { return "denying" }

func (h *denying) Provides(b byte) bool {
	return b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck || b == mochi.OnDisconnect
}

func (h *denying) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }

func (h *denying) OnACLCheck(_ *mochi.Client, topic string, _ bool) bool {
	return !slices.Contains(h.topics, topic)
}

func (h *denying) OnDisconnect(cl *mochi.Client, _ error, _ bool) { h.gone <- cl.ID }

func denyingBroker(t *testing.T, topics ...string) (*embedded, *denying) {
	h := &denying{topics: topics, gone: make(chan string, 1000)}
	b := &embedded{address: freeport.Address(), hooks: []mochi.Hook{h}}
	b.start(t)
	return b, h
}

// A refused subscription is no error to the library. It must be told by name,
// and the link must not call itself up without it.
func TestRefusedSubscription(t *testing.T) {
	b, _ := denyingBroker(t, "t/no")
	l := dial(t, Config{Broker: b.url(), ClientID: "one", Subscriptions: []string{"t/yes", "t/no"}})
	for range 2 { // it keeps trying: the broker's lists may be mended
		if p := wantKind(t, l, proto.Refused); p.Topic != "t/no" {
			t.Errorf("refused %q", p.Topic)
		}
	}
	if l.Up() || l.Stats().Connects != 0 {
		t.Error("up without its subscriptions")
	}
}

// One that was asked for later is told too, but does not take the link down,
// now or at the next connection.
func TestRefusedLaterSubscription(t *testing.T) {
	b, h := denyingBroker(t, "t/no")
	l := up(t, Config{Broker: b.url(), ClientID: "one", Subscriptions: []string{"t/yes"}})
	l.Send(proto.Packet{Kind: proto.Subscribe, Topic: "t/no"})
	if p := wantKind(t, l, proto.Refused); p.Topic != "t/no" {
		t.Errorf("refused %q", p.Topic)
	}
	echo(t, l, "t/yes")
	if len(h.gone) != 0 {
		t.Error("the connection ended")
	}
	b.kill(t)
	wantKind(t, l, proto.LinkDown)
	b.start(t)
	wantKind(t, l, proto.LinkUp)
}

// misnumbering is a broker hook by which the first asks of each topic have a number that
// the broker says is in use.
type misnumbering struct {
	denying
	asked map[string]int
}

func (h *misnumbering) Provides(b byte) bool {
	return b == mochi.OnSubscribe || b == mochi.OnConnectAuthenticate || b == mochi.OnACLCheck
}

func (h *misnumbering) OnSubscribe(cl *mochi.Client, pk packets.Packet) packets.Packet {
	if h.asked[pk.Filters[0].Filter]++; h.asked[pk.Filters[0].Filter] < 3 {
		cl.State.Inflight.Set(packets.Packet{PacketID: pk.PacketID})
	}
	return pk
}

// A subscription that the broker has not taken, since it takes the number of a message
// of its own for ours, is asked for until it has, at the start and later.
func TestSubscriptionIsAskedForAgain(t *testing.T) {
	b := &embedded{address: freeport.Address(), hooks: []mochi.Hook{&misnumbering{asked: map[string]int{}}}}
	b.start(t)
	l := up(t, Config{Broker: b.url(), ClientID: "one", Subscriptions: []string{"t/first"}})
	echo(t, l, "t/first")
	l.Send(proto.Packet{Kind: proto.Subscribe, Topic: "t/later"})
	for {
		send(t, l, "t/later", "x", false)
		select {
		case p := <-l.Recv():
			if p.Topic == "t/later" {
				return
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// This broker throws out whoever publishes where he may not. The message must
// not be sent again by the link, or it would be thrown out for ever.
func TestPoisonMessageIsSentOnce(t *testing.T) {
	b, h := denyingBroker(t, "t/no")
	l := up(t, Config{Broker: b.url(), ClientID: "one", Subscriptions: []string{"t/yes"}})
	send(t, l, "t/no", "poison", false)
	wantKind(t, l, proto.LinkDown)
	wantKind(t, l, proto.LinkUp)
	for range 20 {
		echo(t, l, "t/yes")
	}
	if n := len(h.gone); n != 1 {
		t.Errorf("thrown out %d times", n)
	}
}

// Whoever sends poison at every LinkUp is slowed down to the longest pause.
func TestQuickLossesSlowDown(t *testing.T) {
	b, _ := denyingBroker(t, "t/no")
	l := dial(t, Config{Broker: b.url(), ClientID: "one", MinReconnect: time.Millisecond, MaxReconnect: time.Hour, Seed: 3})
	var last, longest time.Duration
	start := time.Now()
	for range 9 {
		wantKind(t, l, proto.LinkUp)
		now := time.Since(start)
		longest, last = max(longest, now-last), now
		send(t, l, "t/no", "poison", false)
		wantKind(t, l, proto.LinkDown)
	}
	if longest < 16*time.Millisecond { // of 1, 2, 4 ... 256 ms, each jittered
		t.Errorf("the longest pause was %v", longest)
	}
}

// losing is a broker that never answers a publication on the topic "lost".
type losing struct{ auth.AllowHook }

func (h *losing) Provides(b byte) bool { return b == mochi.OnPublish || h.AllowHook.Provides(b) }

func (h *losing) OnPublish(_ *mochi.Client, p packets.Packet) (packets.Packet, error) {
	if p.TopicName == "lost" {
		return p, packets.ErrRejectPacket
	}
	return p, nil
}

// Goal: an acknowledgement that never comes does not end what a link can say: when as many
// wait behind it as may, and it is too old, the link connects anew and says the rest.
// Method: a broker that gives none to one publication, and twice as many behind it.
func TestALostAcknowledgementMutesNobody(t *testing.T) {
	defer func(d time.Duration) { ackTimeout = d }(ackTimeout)
	ackTimeout = 100 * time.Millisecond
	b := &embedded{address: freeport.Address(), hooks: []mochi.Hook{new(losing)}}
	b.start(t)
	l := up(t, Config{Broker: b.url(), ClientID: "one", Subscriptions: []string{"last"}})
	for range 2 { // once for each connection
		send(t, l, "lost", "", false)
		for i := range 2 * inflight {
			send(t, l, fmt.Sprint("x/", i), "", false)
		}
		wantKind(t, l, proto.LinkDown)
		wantKind(t, l, proto.LinkUp)
	}
	echo(t, l, "last")
}
