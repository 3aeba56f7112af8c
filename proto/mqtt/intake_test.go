package mqtt

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/limit"
)

// intakeLink is a link without a broker.
func intakeLink() *Link {
	c := Config{Intake: DefaultIntake}
	cfg := c.withDefaults()
	return &Link{cfg: cfg, in: newQueue(cfg.Queue), intake: intake{sources: limit.Sources{Rate: cfg.Intake, Max: intakeTopics}}}
}

// message is one of a topic that its reader takes, with so many bytes in a key
// that it skips.
func message(t testing.TB, topic string, bytes int) []byte {
	t.Helper()
	k, err := proto.ParseTopic(topic)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Encode(map[proto.TopicKind]any{
		proto.TopicReported: &proto.Reported{Version: proto.Version, Node: k.Node, Session: 1, Seq: 1},
		proto.TopicAck:      &proto.Ack{Version: proto.Version, Node: k.Node, Session: 1, Phase: proto.PhaseProtocol, Code: proto.Malformed},
		proto.TopicEvent:    &proto.Event{Version: proto.Version, Node: k.Node, Session: 1, Seq: 1, Kind: proto.EvStarted, Count: 1},
		proto.TopicRequest:  &proto.OpRequest{Version: proto.Version, Corr: proto.Corr{1}, TTLMillis: 1, Noun: proto.NounFabric, Bundle: -1},
		proto.TopicDesired:  &proto.Desired{Version: proto.Version, Node: k.Node, Term: 1, Generation: 1, Decisions: []proto.RingID{1}},
	}[k.Kind])
	if err != nil {
		t.Fatal(err)
	}
	if bytes > 0 {
		raw[0]++ // one pair more
		raw = append(raw, 0x19, 0x03, 0xe7, 0x59, byte(bytes>>8), byte(bytes))
		raw = append(raw, make([]byte, bytes)...)
	}
	return raw
}

// A flood on one topic reaches nobody, and keeps nobody else's message out.
// More than the queue holds on two topics of a node, then one message each of
// others; before, the queue was full and they were lost.
func TestFloodStaysOnItsTopic(t *testing.T) {
	l := intakeLink()
	l.intake.sources.Rate.Interval = time.Hour // the burst alone, however slow the machine
	topics := proto.Topics{Fabric: "f1"}
	say := func(topic string, size int) {
		l.arrived(proto.Packet{Topic: topic, Payload: message(t, topic, size)})
	}
	const flood = 2 * DefaultQueue
	for range flood {
		say(topics.Reported(0), 0)
		say(topics.Event(1), 60_000)
		l.arrived(proto.Packet{Topic: "no/topic/of/ours", Payload: []byte{0}})
	}
	say(topics.Ack(0), 0)
	say(topics.Reported(1), 0)
	say(topics.Request("watch"), 60_000)
	l.arrived(proto.Packet{Topic: topics.Request("watch"), Payload: make([]byte, proto.MaxPayload+1)})
	got, told := map[string]int{}, uint64(0)
	taken := func() {
		for p, ok := l.in.take(); ok; p, ok = l.in.take() {
			if got[p.Topic]++; p.Kind == proto.Shed {
				told += p.ShedCount()
			}
		}
	}
	taken()
	for _, topic := range []string{topics.Ack(0), topics.Reported(1), topics.Request("watch")} {
		if got[topic] != 1 {
			t.Errorf("%s: %d delivered", topic, got[topic])
		}
	}
	// What the flood took meanwhile is its share, in messages or in bytes.
	const most = 1024
	if DefaultIntake.Burst != most {
		t.Fatalf("a burst of %d", DefaultIntake.Burst)
	}
	if n := got[topics.Reported(0)]; n < DefaultIntake.Burst || n > most {
		t.Errorf("%d of the flood delivered", n)
	}
	if n := got[topics.Event(1)]; n > most/(1+60_000/intakeBytes) {
		t.Errorf("%d long messages of the flood delivered", n)
	}
	n := l.intake.total.Load()
	if n < 3*flood-3*uint64(most) {
		t.Errorf("%d shed", n)
	}
	for late := time.Now().Add(patience); told < n && time.Now().Before(late); taken() {
		<-time.After(time.Millisecond) // a slow machine tells of them in several parts
	}
	if told != n {
		t.Errorf("%d shed, %d told of", n, told)
	}
}

// What is no message at all costs not even those who share its topic, and what is
// answered of it is little. Garbage beyond any share on the topic of a plan, then
// the plan; before, the share was used up and the plan shed.
func TestGarbageCostsNobody(t *testing.T) {
	l := intakeLink()
	l.intake.sources.Rate.Interval = time.Hour
	topic := proto.Topics{Fabric: "f1"}.Desired(7)
	plan := message(t, topic, 0)
	for n := range 10 * DefaultIntake.Burst {
		l.arrived(proto.Packet{Topic: topic, Payload: [][]byte{bytes.Repeat([]byte{0xa0}, 64), plan[:len(plan)-1], nil, message(t, proto.Topics{Fabric: "f1"}.Event(7), 0)}[n%4]})
	}
	garbage := l.in.count
	for range DefaultIntake.Burst + 1 {
		l.arrived(proto.Packet{Topic: topic, Payload: plan})
	}
	if garbage < allWrong.Burst || garbage > 2*allWrong.Burst || l.in.count != garbage+DefaultIntake.Burst {
		t.Errorf("%d of the garbage delivered, and %d plans of %d", garbage, l.in.count-garbage, DefaultIntake.Burst)
	}
}

// Names that cost nothing do not buy the planner's time.
// As many operators as messages.
func TestOperatorsShareTheirIntake(t *testing.T) {
	l := intakeLink()
	ask := message(t, proto.Topics{Fabric: "f1"}.Request("op"), 0)
	for i := range 3 * allRequests.Burst {
		l.arrived(proto.Packet{Topic: proto.Topics{Fabric: "f1"}.Request(fmt.Sprint("op-", i)), Payload: ask})
	}
	if n := l.in.count; n < allRequests.Burst || n > 2*allRequests.Burst {
		t.Errorf("%d of %d requests delivered", n, 3*allRequests.Burst)
	}
}

// Whoever reads a link is told what he was not given.
// A burst through a broker; the delivered and the shed are all.
func TestLinkTellsWhatItSheds(t *testing.T) {
	onEveryBroker(t, func(t *testing.T, b testBroker) {
		topic := proto.Topics{Fabric: "f1"}.Event(7)
		l := up(t, Config{Broker: b.url(), ClientID: "reader", Subscriptions: []string{topic}, Intake: limit.Rate{Interval: time.Hour, Burst: 10}, Ordered: true})
		w := up(t, Config{Broker: b.url(), ClientID: "writer"})
		for range 100 {
			send(t, w, topic, string(message(t, topic, 0)), false)
		}
		late := time.After(patience)
		got, told := 0, uint64(0)
		for told < 90 {
			select {
			case p := <-l.Recv():
				if p.Kind == proto.Publish {
					got++
				} else if p.Kind == proto.Shed {
					told += p.ShedCount()
				}
			case <-late:
				t.Fatalf("%d delivered, %d told of, %+v", got, told, l.Stats())
			}
		}
		if got != 10 || told != 90 || l.Stats().Shed != 90 {
			t.Errorf("%d delivered, %d told of, %+v", got, told, l.Stats())
		}
	})
}

// BenchmarkIntakeUnderFlood is what one unwanted message costs a link, long
// ones too: the light path shares the processor with it.
func BenchmarkIntakeUnderFlood(b *testing.B) {
	topic := proto.Topics{Fabric: "f1"}.Desired(63)
	for name, payload := range map[string][]byte{"short": make([]byte, 64), "long": bytes.Repeat([]byte{0xa0}, 60_000), "plan": message(b, topic, 0), "long plan": message(b, topic, 60_000)} {
		b.Run(name, func(b *testing.B) {
			l := intakeLink()
			b.ReportAllocs()
			for b.Loop() {
				l.arrived(proto.Packet{Topic: topic, Payload: payload})
			}
		})
	}
}
