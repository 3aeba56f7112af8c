package live

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/sim/step"
)

// BrokerFinding is one thing that is asked of a broker.
type BrokerFinding struct {
	Ask    string `json:"ask"`
	Needed bool   `json:"needed"` // nothing works without it; else Without says what it costs
	Has    bool   `json:"has"`
	Saw    string `json:"saw"`
	Lack   string `json:"without"` // what is so without it
	TookMS int64  `json:"took_ms"`
}

// brokerPatience is how long a broker may take for one thing. chosen: a cluster that
// chooses a leader takes half of it.
const brokerPatience = 15 * time.Second

// brokerCheck tries a broker, or a cluster of them: the publisher is on the first of the
// list, who listens on the last.
type brokerCheck struct {
	ctx         context.Context
	first, last mqtt.Config
	topics      proto.Topics
	run         string // number of this run, so that messages left by another do not count
	names       int
}

// CheckBroker asks of a broker what agents and planners need of it, each with
// connections of its own.
func CheckBroker(ctx context.Context, cfg mqtt.Config, fabric string) []BrokerFinding {
	list := strings.Split(cfg.Broker, ",")
	c := &brokerCheck{ctx: ctx, first: cfg, last: cfg, topics: proto.Topics{Fabric: fabric}, run: fmt.Sprintf("check-%x", time.Now().UnixNano()&0xffffff)}
	c.first.Broker, c.last.Broker = list[0], list[len(list)-1]
	var out []BrokerFinding
	for _, x := range []struct {
		ask    string
		needed bool
		lack   string
		try    func() string
	}{
		{"wildcard subscriptions are granted", true, "the planner hears nobody", c.subscriptions},
		{"1,000 messages at QoS 1, each once, in order", true, "acknowledgements and events are lost", c.order},
		{"a message of 64 KiB", true, "the reports of large nodes are lost", c.large},
		{"retained, given to who comes later, deleted", false, "use -cache off; a planner that starts waits for the nodes' next words", c.retained},
		{"a will, when a client is gone without a word", false, "a dead node is noticed by its silence, after 35 s", c.will},
		{"a second client of one name takes over", false, "an agent that comes back waits until the broker forgets its old connection", c.takeover},
		{"nothing is kept for a client that is away", false, "commands come late, and are refused by their age", c.nothingKept},
	} {
		began := time.Now()
		saw := ""
		err := step.Attempt(func() { saw = x.try() })
		f := BrokerFinding{Ask: x.ask, Needed: x.needed, Has: err == nil, Saw: saw, Lack: x.lack, TookMS: time.Since(began).Milliseconds()}
		if err != nil {
			f.Saw = err.Error()
		}
		out = append(out, f)
		if x.needed && err != nil && len(out) == 1 {
			break // the rest would say the same
		}
	}
	return out
}

// dial connects with a name of its own and waits until it is up.
func (c *brokerCheck) dial(at mqtt.Config, name string, will *proto.Packet, subs ...string) *mqtt.Link {
	at.ClientID, at.Will, at.Subscriptions, at.Ordered = name, will, subs, true
	at.MinReconnect, at.MaxReconnect = 50*time.Millisecond, time.Second
	l := step.Got(mqtt.Dial(at))
	if err := step.Attempt(func() { c.next(l, func(p *proto.Packet) bool { return p.Kind == proto.LinkUp }) }); err != nil {
		l.Abandon()
		step.Fail("not connected with every subscription: %w (%v)", err, l.Err())
	}
	return l
}

// name is of a client that nobody else has.
func (c *brokerCheck) name() string {
	c.names++
	return fmt.Sprintf("%s-%d", c.run, c.names)
}

// next is the first packet of a kind that is looked for.
func (c *brokerCheck) next(l *mqtt.Link, is func(*proto.Packet) bool) (p proto.Packet) {
	end := time.NewTimer(brokerPatience)
	defer end.Stop()
	for {
		select {
		case p = <-l.Recv():
			if is(&p) {
				return p
			}
		case <-end.C:
			step.Fail("nothing within %v", brokerPatience)
		case <-c.ctx.Done():
			step.Must(c.ctx.Err())
		}
	}
}

func published(p *proto.Packet) bool { return p.Kind == proto.Publish }

// pair is one who speaks and one who listens to a topic.
func (c *brokerCheck) pair(topic string) (from, to *mqtt.Link, end func()) {
	to = c.dial(c.last, c.name(), nil, topic)
	if err := step.Attempt(func() { from = c.dial(c.first, c.name(), nil) }); err != nil {
		to.Abandon()
		step.Must(err)
	}
	return from, to, func() { from.Close(); to.Close() }
}

func (c *brokerCheck) subscriptions() string {
	l := c.dial(c.first, c.name(), nil, c.topics.EveryNode(proto.TopicAck), c.topics.EveryNode(proto.TopicPresence), c.topics.EveryDecision(), c.topics.EveryRequest(), c.topics.Planner())
	l.Close()
	return "5 granted"
}

func (c *brokerCheck) order() string {
	const count = 1000
	topic := c.topics.Reply(c.run)
	from, to, end := c.pair(topic)
	defer end()
	for i := range count {
		step.Must(from.Send(proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Payload: binary.BigEndian.AppendUint32(nil, uint32(i))}))
	}
	for i := range count {
		var p proto.Packet
		step.Within(fmt.Sprintf("%d of %d came", i, count), func() { p = c.next(to, published) })
		if n := binary.BigEndian.Uint32(p.Payload); n != uint32(i) {
			step.Fail("message %d came in place of %d", n, i)
		}
	}
	return "all"
}

func (c *brokerCheck) large() string {
	topic := c.topics.Reply(c.run)
	from, to, end := c.pair(topic)
	defer end()
	sent := bytes.Repeat([]byte{0xa5}, proto.MaxPayload)
	step.Must(from.Send(proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Payload: sent}))
	if p := c.next(to, published); !bytes.Equal(p.Payload, sent) {
		step.Fail("%d bytes came, others than were sent", len(p.Payload))
	}
	return "whole"
}

func (c *brokerCheck) retained() string {
	topic := c.topics.Reply(c.run + "-kept")
	from, to, end := c.pair(topic)
	defer end()
	keep := proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Retain: true, Payload: []byte("kept")}
	step.Must(from.Send(keep))
	c.next(to, published) // it is with the broker
	late := c.dial(c.last, c.name(), nil, topic)
	defer late.Close()
	step.Within("who came later was not given it as retained", func() {
		if p := c.next(late, published); !p.Retain {
			step.Fail("it came without the mark")
		}
	})
	keep.Payload = nil
	step.Must(from.Send(keep))
	step.Within("the deletion was not heard", func() {
		c.next(to, func(p *proto.Packet) bool { return published(p) && len(p.Payload) == 0 })
	})
	return "given with its mark, deleted"
}

func (c *brokerCheck) will() string {
	topic := c.topics.Reply(c.run + "-will")
	to := c.dial(c.last, c.name(), nil, topic)
	defer to.Close()
	gone := c.dial(c.first, c.name(), &proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Payload: []byte("gone")})
	began := time.Now()
	gone.Abandon()
	c.next(to, published)
	return fmt.Sprintf("after %d ms", time.Since(began).Milliseconds())
}

func (c *brokerCheck) takeover() string {
	name := c.name()
	old := c.dial(c.first, name, nil)
	defer old.Abandon()
	began := time.Now()
	var second *mqtt.Link
	step.Within("the second one", func() { second = c.dial(c.last, name, nil) })
	took := time.Since(began)
	defer second.Abandon()
	step.Within("the first one stays", func() {
		c.next(old, func(p *proto.Packet) bool { return p.Kind == proto.LinkDown })
	})
	return fmt.Sprintf("after %d ms", took.Milliseconds())
}

func (c *brokerCheck) nothingKept() string {
	topic, name := c.topics.Reply(c.run+"-away"), c.name()
	away := c.dial(c.last, name, nil, topic)
	away.Abandon()
	from, to, end := c.pair(topic)
	defer end()
	for _, word := range []string{"late", "now"} {
		if word == "now" {
			away = c.dial(c.last, name, nil, topic)
			defer away.Close()
		}
		step.Must(from.Send(proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Payload: []byte(word)}))
		c.next(to, published)
	}
	if p := c.next(away, published); string(p.Payload) != "now" {
		step.Fail("%q came to one that had been away", p.Payload)
	}
	return "nothing"
}
