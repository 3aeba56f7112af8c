package mqtt

import (
	"testing"

	"ringlight/proto"
)

func packet(topic string) proto.Packet {
	return proto.Packet{Topic: topic, Payload: []byte("12345678")}
}

func drain(q *queue) (topics string) {
	for {
		p, ok := q.take()
		if !ok {
			return topics
		}
		if p.Kind != proto.Publish {
			topics += p.Kind.String() + " "
			continue
		}
		topics += p.Topic + " "
	}
}

// Faults go before commands and commands before telemetry, each in order.
func TestQueueOrder(t *testing.T) {
	q := newQueue(10)
	for _, topic := range []string{"1/health", "1/ack", "1/event", "2/health", "1/desired", "2/event"} {
		if !q.put(packet(topic)) {
			t.Fatal(topic)
		}
	}
	q.put(proto.Packet{Kind: proto.LinkDown})
	if got := drain(q); got != "link_down 1/event 2/event 1/ack 1/desired 1/health 2/health " {
		t.Error(got)
	}
}

// A full queue gives up its oldest telemetry, then refuses; the link's own
// words always find room.
func TestQueueIsBounded(t *testing.T) {
	q := newQueue(3)
	for _, topic := range []string{"1/health", "2/health", "1/ack", "3/health", "2/ack"} {
		if !q.put(packet(topic)) {
			t.Errorf("%s was refused", topic)
		}
	}
	if !q.put(packet("1/event")) {
		t.Error("an event was refused while there was telemetry")
	}
	if q.put(packet("2/event")) || q.put(packet("4/health")) {
		t.Error("a fourth packet was taken")
	}
	if !q.put(proto.Packet{Kind: proto.LinkUp}) {
		t.Error("the link's word was refused")
	}
	if got := q.drops(); got != [numClasses]uint64{classFault: 1, classTelemetry: 4} {
		t.Errorf("dropped %v", got)
	}
	if got := drain(q); got != "link_up 1/event 1/ack 2/ack " {
		t.Error(got)
	}
}

func TestQueueIsBoundedInBytes(t *testing.T) {
	q := newQueue(1 << 20)
	big := proto.Packet{Topic: "1/ack", Payload: make([]byte, queueBytes/2-packetBytes-len("1/ack"))}
	//lint:ignore SA4000 each call puts one more
	if !q.put(big) || !q.put(big) || q.put(big) {
		t.Error("the bound on bytes does not hold")
	}
	q.take()
	if !q.put(big) {
		t.Error("what was taken still counts")
	}
}

func TestQueueHoldsPublicationsBack(t *testing.T) {
	q := newQueue(10)
	q.hold(true)
	q.put(packet("1/event"))
	q.put(proto.Packet{Kind: proto.LinkUp})
	if got := drain(q); got != "link_up " {
		t.Error(got)
	}
	q.hold(false)
	q.put(packet("1/ack"))
	q.flush()
	if got := drain(q); got != "" || q.count != 0 || q.bytes != 0 {
		t.Error("flush leaves something behind:", got)
	}
}
