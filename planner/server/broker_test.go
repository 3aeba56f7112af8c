package server

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// The defaults that lose messages must not come back: retained ones after a
// day, QoS 1 ones of a slow reader, anything by an endless packet.
func TestBrokerSettings(t *testing.T) {
	o := brokerOptions(slog.New(slog.DiscardHandler))
	c := o.Capabilities
	if c.MaximumMessageExpiryInterval != 0 {
		t.Errorf("retained messages expire after %d s", c.MaximumMessageExpiryInterval)
	}
	if c.MaximumClientWritesPending < 1024 {
		t.Errorf("%d pending writes", c.MaximumClientWritesPending)
	}
	if c.MaximumPacketSize < proto.MaxPayload || c.MaximumPacketSize > proto.MaxPayload+1024 {
		t.Errorf("packets of %d bytes", c.MaximumPacketSize)
	}
	if o.InlineClient {
		t.Error("somebody speaks to the broker past TCP")
	}
}

func TestBrokerStaysOnLoopback(t *testing.T) {
	for _, listen := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:1883", "nowhere"} {
		if b, err := StartBroker(listen, nil); err == nil || proto.AsError(err).Field != "listen" {
			t.Errorf("%s: %v", listen, err)
			if err == nil {
				b.Close()
			}
		}
	}
	b, err := StartBrokerWith(BrokerConfig{Listen: "0.0.0.0:0", Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	l, err := mqtt.Dial(mqtt.Config{Broker: b.URL(), ClientID: "one"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if p := <-l.Recv(); p.Kind != proto.LinkUp {
		t.Errorf("%v", p.Kind)
	}
}

// The longest message goes through with its topic; a longer packet throws its
// sender out and nobody else.
func TestBrokerBoundsPackets(t *testing.T) {
	b := startBroker(t, "127.0.0.1:0")
	link := func(id string, subs ...string) *mqtt.Link {
		l, err := mqtt.Dial(mqtt.Config{Broker: b.URL(), ClientID: id, Subscriptions: subs, Ordered: true, MinReconnect: time.Millisecond, MaxReconnect: time.Millisecond})
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
	topic := "t/" + fmt.Sprint(time.Now().Year())
	for _, size := range []int{proto.MaxPayload, proto.MaxPayload + 2048, 1} {
		if err := writer.Send(proto.Packet{Topic: topic, Payload: make([]byte, size), QoS: 1}); err != nil {
			t.Fatal(err)
		}
		if size > proto.MaxPayload {
			if p := <-writer.Recv(); p.Kind != proto.LinkDown {
				t.Fatalf("%v after %d bytes", p.Kind, size)
			}
			if p := <-writer.Recv(); p.Kind != proto.LinkUp {
				t.Fatal(p.Kind)
			}
			continue
		}
		if p := <-reader.Recv(); p.Kind != proto.Publish || len(p.Payload) != size {
			t.Fatalf("%v of %d bytes, want %d", p.Kind, len(p.Payload), size)
		}
	}
}
