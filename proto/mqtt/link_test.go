package mqtt

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/sim/freeport"
)

const patience = 20 * time.Second // for a loaded machine; nothing here needs it

func dial(t *testing.T, cfg Config) *Link {
	t.Helper()
	if cfg.MinReconnect == 0 {
		cfg.MinReconnect, cfg.MaxReconnect = 10*time.Millisecond, 200*time.Millisecond
	}
	if cfg.Seed == 0 {
		cfg.Seed = 1
	}
	l, err := Dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func up(t *testing.T, cfg Config) *Link {
	t.Helper()
	l := dial(t, cfg)
	wantKind(t, l, proto.LinkUp)
	return l
}

func next(t *testing.T, l *Link) proto.Packet {
	t.Helper()
	select {
	case p, ok := <-l.Recv():
		if !ok {
			t.Fatal("the link is closed")
		}
		return p
	case <-time.After(patience):
		t.Fatalf("nothing came; link up %v, %v, %+v", l.Up(), l.Err(), l.Stats())
	}
	panic("unreachable")
}

func wantKind(t *testing.T, l *Link, kind proto.PacketKind) proto.Packet {
	t.Helper()
	p := next(t, l)
	if p.Kind != kind {
		t.Fatalf("got %v %s %q, want %v", p.Kind, p.Topic, p.Payload, kind)
	}
	return p
}

func wantMessage(t *testing.T, l *Link, topic, payload string) proto.Packet {
	t.Helper()
	p := wantKind(t, l, proto.Publish)
	if p.Topic != topic || string(p.Payload) != payload {
		t.Fatalf("got %s %q, want %s %q", p.Topic, p.Payload, topic, payload)
	}
	return p
}

func send(t *testing.T, l *Link, topic, payload string, retain bool) {
	t.Helper()
	if err := l.Send(proto.Packet{Topic: topic, Payload: []byte(payload), QoS: 1, Retain: retain}); err != nil {
		t.Fatal(err)
	}
}

// echo waits until a message sent now has come back, so that everything sent
// before it went through the broker.
func echo(t *testing.T, l *Link, topic string) {
	t.Helper()
	send(t, l, topic, "echo", false)
	wantMessage(t, l, topic, "echo")
}

// Messages arrive, retained ones after LinkUp and marked as such.
func TestMessagesArrive(t *testing.T) {
	onEveryBroker(t, func(t *testing.T, b testBroker) {
		one := up(t, Config{Broker: b.url(), ClientID: "one", Subscriptions: []string{"t/+/ack", "t/one"}, Ordered: true})
		send(t, one, "t/kept", "retained", true)
		echo(t, one, "t/one")
		two := up(t, Config{Broker: b.url(), ClientID: "two", Subscriptions: []string{"t/kept"}})
		if p := wantMessage(t, two, "t/kept", "retained"); !p.Retain {
			t.Error("a retained message does not say so")
		}
		for i := range 300 {
			send(t, two, fmt.Sprintf("t/%d/ack", i), "ok", false)
		}
		for i := range 300 {
			if p := wantMessage(t, one, fmt.Sprintf("t/%d/ack", i), "ok"); p.Retain || p.QoS != 1 {
				t.Errorf("%+v", p)
			}
		}
	})
}

// Goal: with nothing left at the broker, all goes and comes at QoS 0 and is not kept, the
// will neither, also for those who ask for it. Method: an ordinary link beside it.
func TestUncached(t *testing.T) {
	onEveryBroker(t, func(t *testing.T, b testBroker) {
		ordinary := up(t, Config{Broker: b.url(), ClientID: "ordinary", Subscriptions: []string{"t/kept", "t/will"}})
		l := up(t, Config{Broker: b.url(), ClientID: "one", Subscriptions: []string{"t/one"}, Uncached: true,
			Will: &proto.Packet{Topic: "t/will", Payload: []byte("gone"), QoS: 1, Retain: true}})
		send(t, l, "t/kept", "word", true)
		if p := wantMessage(t, ordinary, "t/kept", "word"); p.QoS != 0 {
			t.Errorf("%+v", p)
		}
		l.Send(proto.Packet{Kind: proto.Subscribe, Topic: "t/two"})
		echo(t, l, "t/one")
		for _, topic := range []string{"t/one", "t/two"} {
			send(t, ordinary, topic, "answer", false)
			if p := wantMessage(t, l, topic, "answer"); p.QoS != 0 {
				t.Errorf("%s: %+v", topic, p)
			}
		}
		l.Abandon()
		if p := wantMessage(t, ordinary, "t/will", "gone"); p.QoS != 0 {
			t.Errorf("%+v", p)
		}
		late := up(t, Config{Broker: b.url(), ClientID: "late", Subscriptions: []string{"t/kept", "t/will", "t/late"}, Ordered: true})
		send(t, late, "t/late", "nothing before", false)
		wantMessage(t, late, "t/late", "nothing before") // fails on any other
	})
}

// Whoever reads LinkUp may send: nothing lies between.
func TestLinkUpIsTheTimeToSend(t *testing.T) {
	b := &embedded{address: freeport.Address()}
	b.start(t)
	for i := range 300 {
		l := up(t, Config{Broker: b.url(), ClientID: "one", Seed: uint64(i + 1)})
		send(t, l, "t/one", "first", false)
		l.Close()
	}
}

func TestSubscriptionsChange(t *testing.T) {
	onEveryBroker(t, func(t *testing.T, b testBroker) {
		l := up(t, Config{Broker: b.url(), ClientID: "one", Subscriptions: []string{"t/one"}, Ordered: true})
		for range 2 { // twice the same is once
			if err := l.Send(proto.Packet{Kind: proto.Subscribe, Topic: "t/ring"}); err != nil {
				t.Fatal(err)
			}
		}
		send(t, l, "t/ring", "1", false)
		wantMessage(t, l, "t/ring", "1")
		if err := l.Send(proto.Packet{Kind: proto.Unsubscribe, Topic: "t/ring"}); err != nil {
			t.Fatal(err)
		}
		send(t, l, "t/ring", "2", false)
		echo(t, l, "t/one")
		if err := l.Send(proto.Packet{Kind: proto.Subscribe}); err == nil {
			t.Error("a subscription to nothing was taken")
		}
		if err := l.Send(proto.Packet{Kind: proto.LinkUp}); err == nil {
			t.Error("LinkUp was sent")
		}
	})
}

// The broker dies and returns on its port: the link says so, comes back by
// itself, and all subscriptions hold, also those asked for while it was down.
func TestBrokerRestart(t *testing.T) {
	onEveryBroker(t, func(t *testing.T, b testBroker) {
		l := up(t, Config{Broker: b.url(), ClientID: "one", Subscriptions: []string{"t/a"}, Ordered: true})
		l.Send(proto.Packet{Kind: proto.Subscribe, Topic: "t/b"})
		echo(t, l, "t/b")
		b.kill(t)
		if p := wantKind(t, l, proto.LinkDown); len(p.Payload) == 0 {
			t.Error("no reason")
		}
		if err := l.Send(proto.Packet{Topic: "t/a"}); !errors.Is(err, ErrDown) || l.Up() {
			t.Errorf("send while down: %v, up %v", err, l.Up())
		}
		l.Send(proto.Packet{Kind: proto.Subscribe, Topic: "t/c"})
		l.Send(proto.Packet{Kind: proto.Unsubscribe, Topic: "t/b"})
		b.start(t)
		wantKind(t, l, proto.LinkUp)
		send(t, l, "t/b", "no more", false)
		for _, topic := range []string{"t/a", "t/c"} {
			echo(t, l, topic)
		}
		if s := l.Stats(); s.Connects != 2 || s.Losses != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// A topic is left just when the connection is lost, and wanted again before there is
// another: what was not said to the former broker must not be said to the next.
func TestChangeOfALostSessionIsNotMadeUpFor(t *testing.T) {
	onEveryBroker(t, func(t *testing.T, b testBroker) {
		l := up(t, Config{Broker: b.url(), ClientID: "one", Subscriptions: []string{"t/one", "t/ring"}, Ordered: true})
		echo(t, l, "t/one")
		l.mu.Lock() // the link cannot note the loss yet
		b.kill(t)
		for len(l.out.ready) == 0 { // who would have said it is gone
			<-time.After(time.Millisecond)
		}
		l.unwant("t/ring")
		l.out.put(proto.Packet{Kind: proto.Unsubscribe, Topic: "t/ring"})
		l.mu.Unlock()
		wantKind(t, l, proto.LinkDown)
		l.Send(proto.Packet{Kind: proto.Subscribe, Topic: "t/ring"})
		b.start(t)
		wantKind(t, l, proto.LinkUp)
		send(t, l, "t/ring", "decision", false)
		send(t, l, "t/one", "later", false)
		wantMessage(t, l, "t/ring", "decision")
	})
}

// A loss of power fires the will. Who is closed says the same itself before the goodbye,
// and who makes the connection anew says nothing.
func TestWill(t *testing.T) {
	onEveryBroker(t, func(t *testing.T, b testBroker) {
		watch := up(t, Config{Broker: b.url(), ClientID: "watch", Subscriptions: []string{"t/presence"}, Ordered: true})
		will := func(s string) *proto.Packet {
			return &proto.Packet{Topic: "t/presence", Payload: []byte(s), QoS: 1, Retain: true}
		}
		echo(t, watch, "t/presence") // what is kept for it has come
		up(t, Config{Broker: b.url(), ClientID: "one", Will: will("one left")}).Close()
		wantMessage(t, watch, "t/presence", "one left")
		up(t, Config{Broker: b.url(), ClientID: "said", Will: will("said died"), Last: func() []byte { return []byte("why it left") }}).Close()
		wantMessage(t, watch, "t/presence", "why it left")
		l := up(t, Config{Broker: b.url(), ClientID: "two", Will: will("two died")})
		l.Again()
		wantKind(t, l, proto.LinkDown)
		wantKind(t, l, proto.LinkUp)
		echo(t, watch, "t/presence")
		l.Abandon()
		wantMessage(t, watch, "t/presence", "two died")
		if err := l.Send(proto.Packet{Topic: "t/x"}); !errors.Is(err, ErrClosed) {
			t.Errorf("send on a dead link: %v", err)
		}
		if _, ok := <-l.Recv(); ok {
			t.Error("the channel of a dead link is open")
		}
		late := up(t, Config{Broker: b.url(), ClientID: "late", Subscriptions: []string{"t/presence"}})
		wantMessage(t, late, "t/presence", "two died")
	})
}

// A reader that does not read costs telemetry, and the link stays up.
func TestSlowReaderLosesTelemetryFirst(t *testing.T) {
	onEveryBroker(t, func(t *testing.T, b testBroker) {
		slow := up(t, Config{Broker: b.url(), ClientID: "slow", Subscriptions: []string{"n/+/health", "n/+/event", "n/+/ack"}, Ordered: true, Queue: 100})
		fast := up(t, Config{Broker: b.url(), ClientID: "fast", Subscriptions: []string{"n/9/ack"}})
		for i := range 500 {
			send(t, fast, "n/1/health", "h", false)
			if i%10 == 0 {
				send(t, fast, "n/1/event", fmt.Sprint(i/10), false)
			}
		}
		echo(t, fast, "n/9/ack") // the slow one is served too by now, or very soon
		wait := time.After(patience)
		for slow.Stats().Received < 551 {
			select {
			case <-wait:
				t.Fatalf("%+v", slow.Stats())
			case <-time.After(time.Millisecond):
			}
		}
		if s := slow.Stats(); s.DroppedTelemetry < 400 || s.Dropped != 0 || !slow.Up() {
			t.Errorf("%+v", s)
		}
		// What stood at the channel already comes first; then events.
		seen := 0
		for seen < 50 {
			p := wantKind(t, slow, proto.Publish)
			if strings.HasSuffix(p.Topic, "/event") {
				if string(p.Payload) != fmt.Sprint(seen) {
					t.Fatalf("event %q, want %d", p.Payload, seen)
				}
				seen++
			} else if seen > 1 {
				t.Fatalf("%s before event %d", p.Topic, seen)
			}
		}
	})
}

// Nobody listens on the port: the link keeps trying and says why.
func TestNoBroker(t *testing.T) {
	l := dial(t, Config{Broker: "mqtt://" + freeport.Address(), ClientID: "one"})
	wait := time.After(patience)
	for l.Stats().Attempts < 3 {
		select {
		case <-wait:
			t.Fatalf("%+v", l.Stats())
		case <-time.After(time.Millisecond):
		}
	}
	if err := l.Err(); err == nil || !strings.Contains(err.Error(), "refused") || l.Up() {
		t.Errorf("%v, up %v", err, l.Up())
	}
	l.Close()
	l.Close() // again is nothing
}

// Goal: of a list of brokers a fleet uses all, goes to the next when one is gone, and
// comes back to what is left of them. Method: 32 links with a list of two brokers and an
// address where none is; one of them ends.
func TestLinksAreSpreadOverBrokers(t *testing.T) {
	a, b := &embedded{address: freeport.Address()}, &embedded{address: freeport.Address()}
	a.start(t)
	b.start(t)
	list := a.url() + ",mqtt://127.0.0.1:1," + b.url()
	var links []*Link
	for i := range 32 {
		links = append(links, dial(t, Config{Broker: list, ClientID: fmt.Sprint("c", i), Subscriptions: []string{"x"}, Seed: uint64(i) + 1}))
	}
	for _, l := range links {
		wantKind(t, l, proto.LinkUp)
	}
	first := map[*Link]bool{}
	for i, l := range links {
		if _, there := a.server.Clients.Get(fmt.Sprint("c", i)); there {
			first[l] = true
		}
	}
	if len(first) < 4 || len(first) > 28 {
		t.Errorf("%d of 32 links are with the first broker", len(first))
	}
	a.kill(t)
	for l := range first { // any order
		wantKind(t, l, proto.LinkDown)
		wantKind(t, l, proto.LinkUp)
	}
}

// Goal: a try that costs the broker nothing is told from one that it had to think about:
// only the latter is followed by long pauses.
// Method: nobody listens; a broker that answers each code; one that hangs up.
func TestWhatARefusalCosts(t *testing.T) {
	answer := func(said ...byte) string {
		n, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		go func() {
			c, err := n.Accept()
			if err != nil {
				return
			}
			c.Read(make([]byte, 512))
			c.Write(said)
			c.Close()
		}()
		return n.Addr().String()
	}
	for name, c := range map[string]struct {
		address string
		refused bool
	}{ // any order
		"nobody":       {freeport.Address(), true},
		"unavailable":  {answer(0x20, 2, 0, 3), true},
		"bad password": {answer(0x20, 2, 0, 4), false},
		"not allowed":  {answer(0x20, 2, 0, 5), false},
		"hangs up":     {answer(), false},
	} {
		cfg := Config{Broker: "mqtt://" + c.address, ClientID: "one"}
		l := &Link{cfg: cfg.withDefaults(), brokers: []endpoint{{address: c.address}}, in: newQueue(1), out: newQueue(1), ctx: t.Context()}
		if lived, refused := l.oneSession(); lived != 0 || refused != c.refused {
			t.Errorf("%s: lived %v, refused %v: %v", name, lived, refused, l.Err())
		}
	}
}
