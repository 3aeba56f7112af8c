package main

import (
	"context"
	"log/slog"
	"sync"

	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/mqtt"
)

// enrolling is the agent's link before there is one: an agent with a token protects its
// light from the first moment on, and is heard when it has its certificate.
type enrolling struct {
	recv chan proto.Packet
	done chan struct{}
	stop context.CancelFunc

	mu     sync.Mutex
	link   guard.Wire     // nil: not yet
	wanted []proto.Packet // subscriptions until then, which a link keeps whether it is up or not
}

func newEnrolling(stop context.CancelFunc) *enrolling {
	return &enrolling{recv: make(chan proto.Packet), done: make(chan struct{}), stop: stop}
}

func (e *enrolling) Recv() <-chan proto.Packet { return e.recv }

func (e *enrolling) Send(p proto.Packet) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.link != nil:
		return e.link.Send(p)
	case p.Kind == proto.Publish:
		return mqtt.ErrDown
	}
	e.wanted = append(e.wanted, p)
	return nil
}

// serve goes on as a link, until ctx or that has ended.
func (e *enrolling) serve(ctx context.Context, link guard.Wire) {
	e.mu.Lock()
	for _, p := range e.wanted {
		_ = link.Send(p) // of a link that was just made
	}
	e.link, e.wanted = link, nil
	e.mu.Unlock()
	for {
		select {
		case p, ok := <-link.Recv():
			if !ok {
				return
			}
			select {
			case e.recv <- p:
			case <-ctx.Done():
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (e *enrolling) Close() {
	e.stop()
	<-e.done
}

// enrol asks for a certificate, and goes on as the link that it opens.
func (c *Config) enrol(ctx context.Context, node proto.NodeID, id *guard.Identity, log *slog.Logger, dial func() (closer, error)) (*enrolling, error) {
	holder := proto.Topics{Fabric: c.Fabric}.NodeHolder(node)
	holder.Kind = proto.HolderEnrol
	to := mqtt.Config{Broker: c.Broker, ClientID: holder.EnrolClient(), Subscriptions: id.Enrolling(), Insecure: c.Insecure, Uncached: c.Cache == "off", Ordered: true, Queue: linkQueue, Intake: mqtt.DefaultIntake}
	if guard.Encrypted(c.Broker) {
		to.CAFile, to.CertFile, to.KeyFile = c.Token, c.Token, c.Token
	}
	asks, err := mqtt.Dial(to)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	e := newEnrolling(stop)
	log.Info("no certificate yet: asking with the token", "token", c.Token, "broker", c.Broker)
	go func() {
		defer close(e.done)
		err := id.Enrol(ctx, c.Token, mqtt.WatchLink(asks, mqtt.Watch{Log: log, Broker: c.Broker, Without: "the agent is given no certificate"}))
		asks.Close()
		var link closer
		if err == nil {
			link, err = dial()
		}
		if err != nil {
			if ctx.Err() == nil {
				log.Error("the agent has no certificate, and goes on without a planner", "reason", err)
			}
			return
		}
		defer link.Close()
		e.serve(ctx, link)
	}()
	return e, nil
}

// closer is a link that ends.
type closer interface {
	guard.Wire
	Close()
}
