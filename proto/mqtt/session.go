package mqtt

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"

	"ringlight/proto"
)

// Result codes of a subscription that is not granted; the library's token has no error
// then. Brokers there are that take the number of a message of theirs for one of ours,
// say so, and forget the subscription: it is asked for again, so often at most.
const (
	refusedGrant = 0x80 // MQTT 3.1.1 sec 3.9.3, and all above but one
	numberInUse  = 0x91 // MQTT 5 sec 2.4
	grantTries   = 16   // chosen: messages that wait for us are acknowledged in milliseconds
)

// session is one connection from the first byte to its end.
type session struct {
	link   *Link
	broker endpoint
	client paho.Client
	lost   chan struct{}
	once   sync.Once
	reason string
	again  atomic.Bool   // it ends with a goodbye
	wrote  chan struct{} // closed when nothing more is written
	nobody atomic.Bool   // listened at the broker's address

	mu      sync.Mutex
	conn    net.Conn
	dropped bool
}

// oneSession connects, serves and returns how long it was up, and, where it never was,
// whether it was refused at no cost to the broker.
func (l *Link) oneSession() (lived time.Duration, refused bool) {
	s := &session{link: l, broker: l.brokers[l.try], lost: make(chan struct{}), wrote: make(chan struct{})}
	o := s.options()
	user, password, err := l.cfg.login(s.broker.user)
	s.client = paho.NewClient(o.SetUsername(user).SetPassword(password))
	if err == nil {
		err = s.connect()
	}
	if err != nil {
		l.failed(err)
		s.drop(true) // nobody was told that we are here: no will
		l.in.hold(false)
		return 0, s.nobody.Load() || errors.Is(err, packets.ErrorRefusedServerUnavailable)
	}
	since := time.Now()
	l.connects.Add(1)
	l.up.Store(true) // before LinkUp can be read: its reader sends at once
	l.in.put(proto.Packet{Kind: proto.LinkUp})
	l.in.hold(false)
	go s.write()
	select {
	case <-s.lost:
	case <-l.ctx.Done():
		s.finish("closed")
	}
	l.up.Store(false)
	l.setCurrent(nil)
	l.out.flush()
	l.losses.Add(1)
	l.in.put(proto.Packet{Kind: proto.LinkDown, Payload: []byte(s.reason)})
	lived = time.Since(since)
	l.failed(errors.New(s.reason))
	l.mu.Lock()
	leaves := l.ctx.Err() != nil && !l.abandon
	l.mu.Unlock()
	if leaves && l.cfg.Will != nil {
		s.leave()
	}
	s.drop(leaves || s.again.Load())
	return lived, false
}

// leave publishes what the broker would publish for a lost client: a goodbye takes the will back.
// Nothing that was said before comes after it.
func (s *session) leave() {
	select {
	case <-s.wrote:
	case <-time.After(goodbyeTime):
		return // the broker takes nothing more
	}
	w := *s.link.cfg.Will
	if last := s.link.cfg.Last; last != nil {
		w.Payload = last()
	}
	s.link.seal(&w)
	qos, retain := s.link.cfg.care(&w)
	s.client.Publish(w.Topic, qos, retain, w.Payload).WaitTimeout(goodbyeTime)
}

func (l *Link) setCurrent(s *session) {
	l.mu.Lock()
	l.current = s
	l.mu.Unlock()
}

func (s *session) options() *paho.ClientOptions {
	l := s.link
	o := paho.NewClientOptions().
		AddBroker("tcp://" + s.broker.address).
		SetClientID(l.cfg.ClientID).
		SetProtocolVersion(4).
		SetCleanSession(true). // no queue of stale commands at the broker
		SetOrderMatters(l.cfg.Ordered).
		SetAutoReconnect(false).
		SetConnectRetry(false).
		SetResumeSubs(false).
		SetKeepAlive(l.cfg.KeepAlive).
		SetPingTimeout(pingTimeout).
		SetConnectTimeout(connectTimeout).
		SetWriteTimeout(writeTimeout).
		SetStore(paho.NewMemoryStore()).
		SetCustomOpenConnectionFn(s.open).
		SetDefaultPublishHandler(s.received).
		SetConnectionLostHandler(func(_ paho.Client, err error) { s.finish(err.Error()) })
	if l.cfg.Will != nil {
		w := *l.cfg.Will
		l.seal(&w)
		qos, retain := l.cfg.care(&w)
		o.SetBinaryWill(w.Topic, w.Payload, qos, retain)
	}
	return o
}

// open dials by itself to have the connection in hand: Abandon closes it.
func (s *session) open(*url.URL, paho.ClientOptions) (net.Conn, error) {
	l := s.link
	ctx, cancel := context.WithTimeout(l.ctx, connectTimeout)
	defer cancel()
	d := net.Dialer{}
	conn, err := d.DialContext(ctx, "tcp", s.broker.address)
	if err != nil {
		s.nobody.Store(true)
		return nil, err
	}
	if s.broker.tls != nil {
		t := tls.Client(conn, s.broker.tls.Clone())
		if err := t.HandshakeContext(ctx); err != nil {
			conn.Close()
			return nil, err
		}
		conn = t
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped { // while we dialled
		conn.Close()
		return nil, ErrClosed
	}
	s.conn = conn
	return conn, nil
}

func (s *session) finish(reason string) {
	s.once.Do(func() {
		s.reason = reason
		close(s.lost)
	})
}

// connect ends with every wanted subscription granted, those asked for in the
// meantime included.
func (s *session) connect() error {
	if err := s.wait(s.client.Connect(), connectTimeout); err != nil {
		return err
	}
	s.link.in.hold(true) // retained messages may come before the last subscription is granted
	granted := map[string]bool{}
	for tries := 0; tries < grantTries; {
		missing := map[string]byte{}
		s.link.mu.Lock()
		for _, topic := range s.link.subs {
			if !granted[topic] {
				missing[topic] = s.link.cfg.subscribed()
			}
		}
		if len(missing) == 0 {
			s.link.current = s // from here on changes go through the queue
			s.link.mu.Unlock()
			return nil
		}
		s.link.mu.Unlock()
		token := s.client.SubscribeMultiple(missing, nil)
		if err := s.wait(token, grantTimeout); err != nil {
			return err
		}
		refused, again := s.refusals(token)
		if refused > 0 {
			return fmt.Errorf("mqtt: %d subscriptions refused", refused)
		}
		if again {
			tries++
			continue
		}
		for topic := range missing { // any order: it fills a map
			granted[topic] = true
		}
	}
	return errNumbers
}

var errNumbers = errors.New("mqtt: the broker takes no subscription: it says that their numbers are in use")

// refusals tells the reader of each refused topic and returns their number, and whether
// they are to be asked for again.
func (s *session) refusals(token paho.Token) (n int, again bool) {
	sub, ok := token.(*paho.SubscribeToken)
	if !ok {
		return 0, false
	}
	for topic, code := range sub.Result() { // any order: each is a fact of its own
		switch {
		case code == numberInUse:
			again = true
		case code >= refusedGrant:
			n++
			s.link.in.put(proto.Packet{Kind: proto.Refused, Topic: topic, Payload: []byte("subscription refused by the broker")})
		}
	}
	return n, again
}

func (s *session) wait(token paho.Token, limit time.Duration) error {
	select {
	case <-token.Done():
		return token.Error()
	case <-s.lost:
		return ErrDown
	case <-s.link.ctx.Done():
		return ErrClosed
	case <-time.After(limit):
		return fmt.Errorf("mqtt: no answer within %v", limit)
	}
}

// received is the library's handler: it hands over and returns.
func (s *session) received(_ paho.Client, m paho.Message) {
	s.link.got.Add(1)
	s.link.arrived(proto.Packet{Kind: proto.Publish, Topic: m.Topic(), Payload: m.Payload(), QoS: m.Qos(), Retain: m.Retained()})
}

// ackTimeout is how long the oldest publication may be without an answer while inflight
// wait behind it. chosen: a broker that is slow answers in turn. Shorter in a test.
var ackTimeout = 30 * time.Second

// write hands the queue to the library, at most inflight unacknowledged. What
// the broker acknowledged proves nothing about the receiver.
func (s *session) write() {
	defer close(s.wrote)
	defer s.link.out.wake() // the next session's writer may need the token we took
	var pending []paho.Token
	for {
		select {
		case <-s.lost:
			return
		default:
		}
		p, ok := s.link.out.take()
		if !ok {
			select {
			case <-s.link.out.ready:
				continue
			case <-s.lost:
				return
			}
		}
		if p.Kind != proto.Publish {
			s.changeSubscription(p)
			continue
		}
		s.link.seal(&p)
		qos, retain := s.link.cfg.care(&p)
		token := s.client.Publish(p.Topic, qos, retain, p.Payload)
		s.link.sent.Add(1)
		if qos == 0 {
			continue
		}
		if pending = append(pending, token); len(pending) < inflight {
			continue
		}
		select {
		case <-pending[0].Done():
			pending = append(pending[:0], pending[1:]...)
		case <-s.lost:
			return
		case <-time.After(ackTimeout):
			s.finish(fmt.Sprintf("publish: no acknowledgement within %v", ackTimeout)) // else nothing is written any more
			return
		}
	}
}

func (s *session) changeSubscription(p proto.Packet) {
	if p.Kind == proto.Unsubscribe {
		s.client.Unsubscribe(p.Topic)
		return
	}
	token := s.client.Subscribe(p.Topic, s.link.cfg.subscribed(), nil)
	go func() {
		for range grantTries {
			if err := s.wait(token, grantTimeout); err != nil {
				s.finish("subscribe " + p.Topic + ": " + err.Error())
				return
			}
			refused, again := s.refusals(token)
			if refused > 0 {
				// The next session must not be refused for it again.
				s.link.mu.Lock()
				s.link.unwant(p.Topic)
				s.link.mu.Unlock()
			}
			if !again {
				return
			}
			token = s.client.Subscribe(p.Topic, s.link.cfg.subscribed(), nil)
		}
		s.finish(errNumbers.Error())
	}()
}

// drop ends the connection, with or without DISCONNECT to the broker: without
// one the will fires.
func (s *session) drop(goodbye bool) {
	if goodbye && s.client.IsConnectionOpen() {
		s.client.Disconnect(uint(goodbyeTime.Milliseconds()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped = true
	if s.conn != nil {
		s.conn.Close()
	}
}
