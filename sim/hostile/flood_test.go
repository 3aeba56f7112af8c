package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// speaker publishes and throws away what comes.
type speaker struct {
	*mqtt.Link
	sent int
}

func speak(broker, id string) (*speaker, error) {
	l, err := dial(broker, id)
	if err != nil {
		return nil, err
	}
	go func() {
		for range l.Recv() {
		}
	}()
	return &speaker{Link: l}, nil
}

func dial(broker, id string, subs ...string) (*mqtt.Link, error) {
	l, err := mqtt.Dial(mqtt.Config{Broker: broker, ClientID: id, Subscriptions: subs, Ordered: true, Queue: 1 << 16,
		MinReconnect: 50 * time.Millisecond, MaxReconnect: time.Second})
	if err != nil {
		return nil, err
	}
	for deadline := time.After(20 * time.Second); ; {
		select {
		case p := <-l.Recv():
			if p.Kind == proto.LinkUp {
				return l, nil
			}
		case <-deadline:
			l.Close()
			return nil, fmt.Errorf("hostile: the broker lets nobody in: %w", l.Err())
		}
	}
}

// say publishes; it waits while the link's queue is full.
func (w *speaker) say(ctx context.Context, topic string, payload []byte, qos byte, retain bool) {
	for ctx.Err() == nil {
		err := w.Send(proto.Packet{Kind: proto.Publish, Topic: topic, Payload: payload, QoS: qos, Retain: retain})
		if err == nil {
			w.sent++
			return
		}
		if errors.Is(err, mqtt.ErrClosed) {
			return
		}
		pause(ctx, 5*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// raw encodes a message and lets the bytes of one number be replaced by any:
// the codec itself refuses what is out of range.
func raw(msg any) []byte {
	b, err := proto.Encode(msg)
	if err != nil {
		panic("hostile: " + err.Error())
	}
	return b
}

// wellFormed is a message of a topic that nothing is wrong with but what it says.
func wellFormed(topic string) []byte {
	t, err := proto.ParseTopic(topic)
	if err != nil {
		return nil
	}
	switch t.Kind {
	case proto.TopicDesired:
		return raw(&proto.Desired{Version: proto.Version, Node: t.Node, Term: 1, Generation: 1, Decisions: []proto.RingID{1}})
	case proto.TopicCommand:
		return raw(&proto.Command{Version: proto.Version, Node: t.Node, Term: 1, Session: 1, TTLMillis: 1000, Corr: proto.Corr{7}, Verb: proto.VerbReannounce})
	case proto.TopicReported:
		return raw(&proto.Reported{Version: proto.Version, Node: t.Node, Session: 1, Seq: 1})
	case proto.TopicEvent:
		return raw(&proto.Event{Version: proto.Version, Node: t.Node, Session: 1, Seq: 1, Kind: proto.EvAlarm, Count: 1, Measured: proto.NoPower, Expected: proto.NoPower})
	}
	return raw(&proto.OpRequest{Version: proto.Version, Corr: proto.Corr{7}, TTLMillis: 1000, Noun: proto.NounFabric, Bundle: -1})
}

// Flood sends 10,000 messages a second to topics in turn until ctx ends: half of
// them are no message at all, every hundredth is of 60,000 bytes, the others are
// well formed.
func Flood(ctx context.Context, broker string, topics ...string) (sent int, err error) {
	const speakers, each = 10, 1000 // messages a second
	var mu sync.Mutex
	var all sync.WaitGroup
	defer all.Wait()
	long := bytes.Repeat([]byte{0xa0}, 60_000)
	formed := map[string][]byte{}
	for _, t := range topics {
		formed[t] = wellFormed(t)
	}
	for k := range speakers {
		w, err := speak(broker, fmt.Sprintf("flood-%d-%d", time.Now().UnixNano(), k))
		if err != nil {
			return sent, err
		}
		all.Go(func() {
			defer w.Close()
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ctx.Err() == nil; <-tick.C {
				for range each / 100 {
					topic, payload := topics[(k+i)%len(topics)], long[:64]
					switch i++; {
					case i%100 == 0:
						payload = long
					case i/len(topics)%2 == 0:
						payload = formed[topic]
					}
					w.say(ctx, topic, payload, 0, false)
				}
			}
			mu.Lock()
			sent += w.sent
			mu.Unlock()
		})
	}
	all.Wait()
	return sent, nil
}
