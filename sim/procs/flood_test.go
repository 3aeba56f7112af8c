package procs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/sim/hostile"
)

// speaker publishes and throws away what comes.
func speaker(ctx context.Context, broker, id string) (say func(topic string, payload []byte) bool, done func(), err error) {
	l, err := mqtt.Dial(mqtt.Config{Broker: broker, ClientID: id, Ordered: true, Queue: 1 << 16, MinReconnect: 50 * time.Millisecond, MaxReconnect: time.Second})
	if err != nil {
		return nil, nil, err
	}
	go func() {
		for range l.Recv() {
		}
	}()
	return func(topic string, payload []byte) bool {
		for ctx.Err() == nil { // it waits while the link's queue is full
			err := l.Send(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload})
			if err == nil || errors.Is(err, mqtt.ErrClosed) {
				return err == nil
			}
			time.Sleep(5 * time.Millisecond)
		}
		return false
	}, func() { l.Close() }, nil
}

// wellFormed is a message of a topic that nothing is wrong with but what it says.
func wellFormed(topic string) []byte {
	t, err := proto.ParseTopic(topic)
	if err != nil {
		return nil
	}
	switch t.Kind {
	case proto.TopicDesired:
		return hostile.Encode(&proto.Desired{Version: proto.Version, Node: t.Node, Term: 1, Generation: 1, Decisions: []proto.RingID{1}})
	case proto.TopicCommand:
		return hostile.Encode(&proto.Command{Version: proto.Version, Node: t.Node, Term: 1, Session: 1, TTLMillis: 1000, Corr: proto.Corr{7}, Verb: proto.VerbReannounce})
	case proto.TopicReported:
		return hostile.Encode(&proto.Reported{Version: proto.Version, Node: t.Node, Session: 1, Seq: 1})
	case proto.TopicEvent:
		return hostile.Encode(&proto.Event{Version: proto.Version, Node: t.Node, Session: 1, Seq: 1, Kind: proto.EvAlarm, Count: 1, Measured: proto.NoPower, Expected: proto.NoPower})
	}
	return hostile.Encode(&proto.OpRequest{Version: proto.Version, Corr: proto.Corr{7}, TTLMillis: 1000, Noun: proto.NounFabric, Bundle: -1})
}

// flood sends 10,000 messages a second to topics in turn until ctx ends: half of
// them are no message at all, every hundredth is of 60,000 bytes, the others are
// well formed.
func flood(ctx context.Context, broker string, topics ...string) (sent int, err error) {
	const speakers, each = 10, 1000 // messages a second
	var count atomic.Int64
	var all sync.WaitGroup
	long := bytes.Repeat([]byte{0xa0}, 60_000)
	for k := range speakers {
		say, done, err := speaker(ctx, broker, fmt.Sprintf("flood-%d-%d", time.Now().UnixNano(), k))
		if err != nil {
			all.Wait()
			return int(count.Load()), err
		}
		all.Go(func() {
			defer done()
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ctx.Err() == nil; <-tick.C {
				for range each / 100 {
					topic, payload := topics[(k+i)%len(topics)], long[:64]
					switch i++; {
					case i%100 == 0:
						payload = long
					case i/len(topics)%2 == 0:
						payload = wellFormed(topic)
					}
					if say(topic, payload) {
						count.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	return int(count.Load()), nil
}
