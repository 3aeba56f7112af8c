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

// brokerCheck tries a broker, or a cluster of them: who speaks is on the first of the
// list, who listens on the last.
type brokerCheck struct {
	ctx         context.Context
	first, last mqtt.Config
	topics      proto.Topics
	run         string // of this run: so that nothing left by another one counts
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
		try    func() (string, error)
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
		saw, err := x.try()
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
func (c *brokerCheck) dial(at mqtt.Config, name string, will *proto.Packet, subs ...string) (*mqtt.Link, error) {
	at.ClientID, at.Will, at.Subscriptions, at.Ordered = name, will, subs, true
	at.MinReconnect, at.MaxReconnect = 50*time.Millisecond, time.Second
	l, err := mqtt.Dial(at)
	if err != nil {
		return nil, err
	}
	if _, err := c.next(l, func(p *proto.Packet) bool { return p.Kind == proto.LinkUp }); err != nil {
		l.Abandon()
		return nil, fmt.Errorf("not connected with every subscription: %w (%v)", err, l.Err())
	}
	return l, nil
}

// name is of a client that nobody else has.
func (c *brokerCheck) name() string {
	c.names++
	return fmt.Sprintf("%s-%d", c.run, c.names)
}

// next is the first packet of a kind that is looked for.
func (c *brokerCheck) next(l *mqtt.Link, is func(*proto.Packet) bool) (proto.Packet, error) {
	end := time.NewTimer(brokerPatience)
	defer end.Stop()
	for {
		select {
		case p := <-l.Recv():
			if is(&p) {
				return p, nil
			}
		case <-end.C:
			return proto.Packet{}, fmt.Errorf("nothing within %v", brokerPatience)
		case <-c.ctx.Done():
			return proto.Packet{}, c.ctx.Err()
		}
	}
}

func published(p *proto.Packet) bool { return p.Kind == proto.Publish }

// pair is one who speaks and one who listens to a topic.
func (c *brokerCheck) pair(topic string) (from, to *mqtt.Link, end func(), err error) {
	if to, err = c.dial(c.last, c.name(), nil, topic); err != nil {
		return nil, nil, nil, err
	}
	if from, err = c.dial(c.first, c.name(), nil); err != nil {
		to.Abandon()
		return nil, nil, nil, err
	}
	return from, to, func() { from.Close(); to.Close() }, nil
}

func (c *brokerCheck) subscriptions() (string, error) {
	l, err := c.dial(c.first, c.name(), nil, c.topics.EveryNode(proto.TopicAck), c.topics.EveryNode(proto.TopicPresence), c.topics.EveryDecision(), c.topics.EveryRequest(), c.topics.Planner())
	if err != nil {
		return "", err
	}
	l.Close()
	return "5 granted", nil
}

func (c *brokerCheck) order() (string, error) {
	const count = 1000
	topic := c.topics.Reply(c.run)
	from, to, end, err := c.pair(topic)
	if err != nil {
		return "", err
	}
	defer end()
	for i := range count {
		if err := from.Send(proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Payload: binary.BigEndian.AppendUint32(nil, uint32(i))}); err != nil {
			return "", err
		}
	}
	for i := range count {
		p, err := c.next(to, published)
		if err != nil {
			return "", fmt.Errorf("%d of %d came: %w", i, count, err)
		}
		if n := binary.BigEndian.Uint32(p.Payload); n != uint32(i) {
			return "", fmt.Errorf("message %d came in place of %d", n, i)
		}
	}
	return "all", nil
}

func (c *brokerCheck) large() (string, error) {
	topic := c.topics.Reply(c.run)
	from, to, end, err := c.pair(topic)
	if err != nil {
		return "", err
	}
	defer end()
	sent := bytes.Repeat([]byte{0xa5}, proto.MaxPayload)
	if err := from.Send(proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Payload: sent}); err != nil {
		return "", err
	}
	p, err := c.next(to, published)
	if err == nil && !bytes.Equal(p.Payload, sent) {
		err = fmt.Errorf("%d bytes came, others than were sent", len(p.Payload))
	}
	return "whole", err
}

func (c *brokerCheck) retained() (string, error) {
	topic := c.topics.Reply(c.run + "-kept")
	from, to, end, err := c.pair(topic)
	if err != nil {
		return "", err
	}
	defer end()
	keep := proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Retain: true, Payload: []byte("kept")}
	if err := from.Send(keep); err != nil {
		return "", err
	}
	if _, err := c.next(to, published); err != nil { // it is with the broker
		return "", err
	}
	late, err := c.dial(c.last, c.name(), nil, topic)
	if err != nil {
		return "", err
	}
	defer late.Close()
	if p, err := c.next(late, published); err != nil || !p.Retain {
		return "", fmt.Errorf("who came later was not given it as retained: %v", err)
	}
	keep.Payload = nil
	if err := from.Send(keep); err != nil {
		return "", err
	}
	if _, err := c.next(to, func(p *proto.Packet) bool { return published(p) && len(p.Payload) == 0 }); err != nil {
		return "", fmt.Errorf("the deletion was not heard: %w", err)
	}
	return "given with its mark, deleted", nil
}

func (c *brokerCheck) will() (string, error) {
	topic := c.topics.Reply(c.run + "-will")
	to, err := c.dial(c.last, c.name(), nil, topic)
	if err != nil {
		return "", err
	}
	defer to.Close()
	gone, err := c.dial(c.first, c.name(), &proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Payload: []byte("gone")})
	if err != nil {
		return "", err
	}
	began := time.Now()
	gone.Abandon()
	if _, err := c.next(to, published); err != nil {
		return "", err
	}
	return fmt.Sprintf("after %d ms", time.Since(began).Milliseconds()), nil
}

func (c *brokerCheck) takeover() (string, error) {
	name := c.name()
	old, err := c.dial(c.first, name, nil)
	if err != nil {
		return "", err
	}
	defer old.Abandon()
	began := time.Now()
	second, err := c.dial(c.last, name, nil)
	if err != nil {
		return "", fmt.Errorf("the second one: %w", err)
	}
	took := time.Since(began)
	defer second.Abandon()
	if _, err := c.next(old, func(p *proto.Packet) bool { return p.Kind == proto.LinkDown }); err != nil {
		return "", fmt.Errorf("the first one stays: %w", err)
	}
	return fmt.Sprintf("after %d ms", took.Milliseconds()), nil
}

func (c *brokerCheck) nothingKept() (string, error) {
	topic, name := c.topics.Reply(c.run+"-away"), c.name()
	away, err := c.dial(c.last, name, nil, topic)
	if err != nil {
		return "", err
	}
	away.Abandon()
	from, to, end, err := c.pair(topic)
	if err != nil {
		return "", err
	}
	defer end()
	for _, word := range []string{"late", "now"} {
		if word == "now" {
			if away, err = c.dial(c.last, name, nil, topic); err != nil {
				return "", err
			}
			defer away.Close()
		}
		if err := from.Send(proto.Packet{Kind: proto.Publish, Topic: topic, QoS: 1, Payload: []byte(word)}); err != nil {
			return "", err
		}
		if _, err := c.next(to, published); err != nil {
			return "", err
		}
	}
	if p, err := c.next(away, published); err != nil || string(p.Payload) != "now" {
		return "", fmt.Errorf("%q came to one that had been away: %v", p.Payload, err)
	}
	return "nothing", nil
}
