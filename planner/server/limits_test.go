package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"ringlight/proto"
	"ringlight/proto/limit"
	"ringlight/proto/mqtt"
)

// Half a CONNECT holds no place that another needs.
// More of them than there are places, and then a client.
func TestHalfConnectsMakeRoom(t *testing.T) {
	b := &Broker{}
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.addr = in.Addr().String()
	if err := b.serve(limit.Listen(in, limit.Connections{Max: 20, First: time.Hour, Write: writePatience}, nil), nil, nil, limit.Logger(nil)); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for range 50 {
		c, err := net.Dial("tcp", b.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte{0x10, 0x20, 0x00, 0x04})
	}
	l, err := mqtt.Dial(mqtt.Config{Broker: "mqtt://" + b.addr, ClientID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if p := <-l.Recv(); p.Kind != proto.LinkUp {
		t.Errorf("%v %s", p.Kind, p.Payload)
	}
}

// A will is held to what a message is held to, and nothing of a stranger's is
// kept without end.
// Wills with long topics and delays; retained messages beyond the bound.
func TestBrokerBoundsWhatIsKept(t *testing.T) {
	h := startBroker(t, "127.0.0.1:0").limits
	client := func(topic string) *mochi.Client {
		cl := h.broker.server.NewClient(nil, "", "one", false)
		cl.Properties.Will = mochi.Will{Flag: 1, TopicName: topic, Retain: true, WillDelayInterval: 1 << 31, Payload: make([]byte, 60_000)}
		return cl
	}
	if err := h.OnConnect(client(strings.Repeat("a/", 2000)), packets.Packet{}); err == nil {
		t.Error("a will with a topic of 2000 levels")
	}
	cl := client("t/will")
	if err := h.OnConnect(cl, packets.Packet{}); err != nil || cl.Properties.Will.WillDelayInterval != 0 {
		t.Error("a will that is kept for ever", err)
	}
	kept := 0
	for i := range 2 * maxRetainedBytes / 60_000 {
		pk, err := h.OnPublish(cl, packets.Packet{FixedHeader: packets.FixedHeader{Retain: true}, TopicName: fmt.Sprint("t/", i), Payload: make([]byte, 60_000),
			Properties: packets.Properties{User: make([]packets.UserProperty, 10)}})
		if err != nil || len(pk.Properties.User) != 0 {
			t.Fatal(err, "properties that nobody pays for")
		}
		if pk.FixedHeader.Retain {
			kept++
		}
	}
	if kept != maxRetainedBytes/60_000 {
		t.Errorf("%d messages of 60,000 bytes kept", kept)
	}
	if h.retain(cl, "t/new", 60_000) || !h.retain(cl, "t/0", 60_000) || !h.retain(cl, "t/1", 0) || !h.retain(cl, "t/new", 60_000) {
		t.Error("what is kept is not counted rightly")
	}
	many := retained{sizes: map[string]int{}}
	for i := range 2 * maxRetained {
		many.room(fmt.Sprint(i), 1)
	}
	if n := len(many.sizes); n != maxRetained {
		t.Errorf("%d topics", n)
	}
	if will, _ := h.OnWill(cl, cl.Properties.Will); will.Retain {
		t.Error("a will is kept without room")
	}
}

// Who makes the broker work waits for it: the share of a client is spent by
// what a packet costs. An acknowledgement that is waited for costs nothing.
func TestPacketsCostWhatTheyMakeTheBrokerDo(t *testing.T) {
	h := startBroker(t, "127.0.0.1:0").limits
	cl := h.broker.server.NewClient(nil, "", "one", false)
	h.OnSessionEstablish(cl, packets.Packet{})
	for i := range 6400 {
		h.broker.server.Topics.Retained.Add(fmt.Sprint(i), packets.Packet{})
	}
	spent := func(do func()) int {
		a := h.of(cl)
		a.packets = limit.Bucket{}
		do()
		n := 0
		for now := time.Now(); n <= packetRate.Burst && a.packets.Take(now, packetRate, 1); n++ {
		}
		return packetRate.Burst - n
	}
	cl.State.Inflight.Set(packets.Packet{PacketID: 7})
	for _, c := range []struct {
		what     string
		pk       packets.Packet
		from, to int // a millisecond may have passed
	}{
		{"publish", packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Publish}}, 0, 1},
		{"earned ack", packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Puback}, PacketID: 7}, 0, 0},
		{"plain filter", packets.Packet{Filters: packets.Subscriptions{{Filter: "t/x"}}}, 0, 0},
		{"wildcards", packets.Packet{Filters: packets.Subscriptions{{Filter: "#"}, {Filter: "+/x"}}}, 150, 202},
	} {
		got := spent(func() {
			if c.pk.Filters != nil {
				h.OnSubscribe(cl, c.pk)
			} else {
				h.OnPacketRead(cl, c.pk)
			}
		})
		if got < c.from || got > c.to {
			t.Errorf("%s costs %d packets", c.what, got)
		}
	}
}

// A subscriber that does not read is thrown out before it costs more than its
// queue, and others get everything.
// Forty megabytes to a reader and to a client that only subscribes.
func TestBrokerThrowsOutWhoDoesNotRead(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0")
	slow, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	slow.(*net.TCPConn).SetReadBuffer(4096)
	slow.Write([]byte{0x10, 15, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, 3, 's', 'l', 'o'})
	slow.Write([]byte{0x82, 8, 0, 1, 0, 3, 't', '/', '#', 0})
	if _, err := io.ReadFull(slow, make([]byte, 9)); err != nil { // CONNACK, SUBACK
		t.Fatal(err)
	}
	link := func(id string, subs ...string) *mqtt.Link {
		l, err := mqtt.Dial(mqtt.Config{Broker: b.URL(), ClientID: id, Subscriptions: subs, Ordered: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(l.Close)
		if p := <-l.Recv(); p.Kind != proto.LinkUp {
			t.Fatal(p.Kind)
		}
		return l
	}
	reader, writer := link("reader", "t/#"), link("writer")
	const messages = 700
	worst := int64(0)
	for i := range messages {
		if err := writer.Send(proto.Packet{Topic: "t/x", Payload: make([]byte, 60_000), QoS: 1}); err != nil {
			t.Fatal(i, err)
		}
		if p := <-reader.Recv(); p.Kind != proto.Publish || len(p.Payload) != 60_000 {
			t.Fatalf("message %d: %v of %d bytes", i, p.Kind, len(p.Payload))
		}
		worst = max(worst, b.limits.queued.Load())
	}
	if worst > maxQueuedBytes+1<<20 {
		t.Errorf("%d bytes were queued for one client", worst)
	}
	if n, err := io.Copy(io.Discard, slow); n > messages*60_000/2 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the slow client got %d bytes and then %v", n, err)
	}
}

// A topic that costs the broker more than a message is worth is refused.
func TestBrokerRefusesEndlessTopics(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0")
	h := b.limits
	for topic, want := range map[string]bool{
		"ocs/v1/f1/node/7/reported":                         true,
		string(bytes.Repeat([]byte{'x'}, maxTopicLength)):   true,
		string(bytes.Repeat([]byte{'x'}, maxTopicLength+1)): false,
		string(bytes.Repeat([]byte("x/"), maxTopicLevels)):  false,
	} {
		if got := h.OnACLCheck(b.server.NewClient(nil, "", "one", false), topic, true); got != want {
			t.Errorf("%.40s: %v", topic, got)
		}
	}
}

// Goal: whoever comes back under its name before the broker has done with its
// last connection is served like any other.
// Method: a subscriber leaves thousands of messages unacknowledged and comes
// back at once, again and again; a message must reach it each time.
func TestBrokerServesWhoComesBackAtOnce(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0")
	writer, err := mqtt.Dial(mqtt.Config{Broker: b.URL(), ClientID: "writer", Queue: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if p := <-writer.Recv(); p.Kind != proto.LinkUp {
		t.Fatal(p.Kind)
	}
	say := func(topic string) {
		if err := writer.Send(proto.Packet{Topic: topic, Payload: []byte("x"), QoS: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 10 {
		c, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		c.Write([]byte{0x10, 15, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, 3, 'o', 'n', 'e'})
		c.Write([]byte{0x82, 8, 0, 1, 0, 3, 't', '/', '#', 1})
		next := func(want byte) { // skips messages of the round before, which may come ahead of SUBACK
			for {
				head := make([]byte, 2)
				if _, err := io.ReadFull(c, head); err != nil {
					t.Fatalf("round %d: waits for %x: %v", round, want, err)
				}
				if _, err := io.ReadFull(c, make([]byte, head[1])); err != nil {
					t.Fatal(err)
				}
				if head[0] == want {
					return
				}
			}
		}
		next(0x20) // CONNACK
		next(0x90) // SUBACK
		for range 2000 {
			say("t/x")
		}
		next(0x32)
		if round%2 == 1 {
			c.Close() // else it is taken over
		}
	}
}

// Goal: however many messages a client left unacknowledged for a while, it is
// brought the next ones.
// Method: rounds of more messages than may wait, acknowledged only when all that
// come have come; each has to bring every one of them.
func TestBrokerBringsWhatComesAfterABacklog(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0")
	c, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte{0x10, 15, 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60, 0, 3, 'o', 'n', 'e'})
	c.Write([]byte{0x82, 8, 0, 1, 0, 3, 't', '/', '#', 1})
	if _, err := io.ReadFull(c, make([]byte, 9)); err != nil { // CONNACK, SUBACK
		t.Fatal(err)
	}
	writer, err := mqtt.Dial(mqtt.Config{Broker: b.URL(), ClientID: "writer", Queue: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if p := <-writer.Recv(); p.Kind != proto.LinkUp {
		t.Fatal(p.Kind)
	}
	for round := range 2 {
		const messages = 9000
		var acks []byte
		for range messages {
			if err := writer.Send(proto.Packet{Topic: "t/x", Payload: []byte("x"), QoS: 1}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range messages {
			p := make([]byte, 10)
			c.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.ReadFull(c, p); err != nil || p[0] != 0x32 {
				t.Fatalf("round %d: message %d: %x, %v", round, i, p, err)
			}
			acks = append(acks, 0x40, 2, p[7], p[8])
		}
		c.Write(acks)
	}
}

// Goal: a client's own numbers are not the broker's (MQTT 3.1.1 sec 2.3.1): a change of
// subscriptions is taken while a message with the same number waits for the client.
// Method: one that has not acknowledged a kept message asks with that number.
func TestClientsNumbersAreTheirOwn(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0")
	b.server.Topics.RetainMessage(packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Publish, Qos: 1, Retain: true}, TopicName: "t/kept", Payload: []byte("x"), Created: time.Now().Unix()})
	c, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	ask := func(want string, raw ...byte) {
		t.Helper()
		c.Write(raw)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Fatalf("asked %x: %x %v, want %x", raw, got, err, want)
		}
	}
	subscribe := func(number byte, topic string) []byte {
		return append([]byte{0x82, byte(5 + len(topic)), 0, number, 0, byte(len(topic))}, append([]byte(topic), 1)...)
	}
	ask("\x20\x02\x00\x00", append([]byte{0x10, 15, 0, 4}, "MQTT\x04\x02\x00\x3c\x00\x03one"...)...)
	ask("\x90\x03\x00\x05\x01\x33\x0b\x00\x06t/kept\x00\x01x", subscribe(5, "t/kept")...)
	ask("\x90\x03\x00\x01\x01", subscribe(1, "t/other")...)
	ask("\xb0\x02\x00\x01", append([]byte{0xa2, 11, 0, 1, 0, 7}, "t/other"...)...)
	if n := len(b.server.Topics.Subscribers("t/other").Subscriptions); n != 0 {
		t.Errorf("%d subscriptions after they were ended", n)
	}
}
