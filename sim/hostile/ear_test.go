package hostile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// maxGenuine bounds what is kept of each kind of message. chosen.
const maxGenuine = 4096

// genuine is a message as it was said.
type genuine struct {
	packet proto.Packet // the payload as it came
	at     time.Time
}

// ear keeps all that is said, as whoever holds the broker does.
type ear struct {
	mu     sync.Mutex
	random *detmath.Random
	since  time.Time
	heard  map[proto.TopicKind][]genuine
	// Of the switches told lately, by node.
	reacted map[proto.NodeID]time.Duration
}

// listen keeps what is said from now on.
func (e *ear) listen(ctx context.Context, s *stranger) error {
	l, err := dial(s.cfg.Broker, fmt.Sprintf("ear-%d", s.random.Next()>>32), "ocs/v1/"+s.cfg.Fabric+"/#")
	if err != nil {
		return err
	}
	go func() {
		defer l.Close()
		for {
			select {
			case <-ctx.Done():
				return
			case p := <-l.Recv():
				t, err := proto.ParseTopic(p.Topic)
				if p.Kind != proto.Publish || err != nil || len(p.Payload) == 0 {
					continue
				}
				if t.Kind == proto.TopicEvent {
					e.react(p.Payload)
				}
				if p.Sealed != nil {
					p.Payload = p.Sealed
				}
				e.keep(t.Kind, genuine{proto.Packet{Topic: p.Topic, Payload: p.Payload}, time.Now()})
			}
		}
	}()
	return nil
}

func (e *ear) keep(k proto.TopicKind, g genuine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if list := e.heard[k]; len(list) < maxGenuine {
		e.heard[k] = append(list, g)
	} else {
		list[e.random.Below(maxGenuine)] = g
	}
}

// react notes how long an agent took to answer a loss of light, by its own ledger; of
// several switches to the end of it, the longest.
func (e *ear) react(payload []byte) {
	var ev proto.Event
	if _, err := proto.Decode(payload, &ev); err != nil || ev.Kind != proto.EvSwitched || ev.Ledger == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reacted != nil {
		e.reacted[ev.Node] = max(e.reacted[ev.Node], time.Duration(ev.Ledger.DecideMicros)*time.Microsecond)
	}
}

// reactions are those of nodes since it was last called.
func (e *ear) reactions(of []proto.NodeID) (out []time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, n := range of {
		if took, told := e.reacted[n]; told {
			out = append(out, took)
		}
	}
	e.reacted = map[proto.NodeID]time.Duration{}
	return out
}

// one is any message of a kind that was said so long ago.
func (e *ear) one(k proto.TopicKind, draw *detmath.Random, old time.Duration) (proto.Packet, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.heard[k]
	for range 8 {
		if len(list) == 0 {
			break
		}
		if g := list[draw.Below(len(list))]; time.Since(g.at) >= old {
			return g.packet, true
		}
	}
	return proto.Packet{}, false
}

// missing are the kinds of which none was heard.
func (e *ear) missing() (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, k := range kinds {
		if len(e.heard[k.topic]) == 0 {
			out = append(out, k.path)
		}
	}
	return out
}

// sample is some of what was heard, of every kind.
func (e *ear) sample(draw *detmath.Random) (out []proto.Packet) {
	for _, k := range kinds {
		for range 16 {
			if p, ok := e.one(k.topic, draw, 0); ok {
				out = append(out, p)
			}
		}
	}
	return out
}
