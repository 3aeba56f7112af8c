package mqtt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"ringlight/proto"
	"ringlight/proto/cert"
	"ringlight/proto/limit"
)

var (
	// ErrDown: the link is down and stores nothing; LinkUp is the time to
	// send again.
	ErrDown = errors.New("mqtt: link is down")
	// errFull: the queue is full of packets no less urgent.
	errFull = errors.New("mqtt: queue is full")
	// ErrClosed: Close or Abandon was called.
	ErrClosed = errors.New("mqtt: link is closed")
)

// Stats counts since Dial.
type Stats struct {
	Connects         uint64 // connections with every subscription granted
	Losses           uint64 // of such connections
	Attempts         uint64 // tries to connect
	Sent             uint64 // publications handed to the library
	Received         uint64 // publications
	DroppedTelemetry uint64 // either way
	Dropped          uint64 // other publications, either way; both ends send them again
	Shed             uint64 // publications received and not delivered: beyond Config.Intake, or no room
}

// Guard stands at a link. Both are called from any goroutine.
type Guard interface {
	// Open says whether a publication may be read, and notes by whom it is.
	Open(p *proto.Packet) proto.Passage
	// Seal seals a publication, if it is one that is to be sealed.
	Seal(p *proto.Packet)
}

// Link is a connection to a broker that renews itself.
type Link struct {
	cfg     Config
	brokers []endpoint
	try     int // which of them; moved by keepConnected alone
	in, out *queue
	intake  intake
	recv    chan proto.Packet
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex
	current *session
	subs    []string // wanted, in the order of asking
	abandon bool
	why     error

	up                                    atomic.Bool
	connects, losses, attempts, sent, got atomic.Uint64
}

// Dial checks the configuration and returns a link that connects by itself,
// now and whenever it is lost. It does not wait.
func Dial(cfg Config) (*Link, error) {
	brokers, err := cfg.endpoints()
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	l := &Link{cfg: cfg, brokers: brokers, in: newQueue(cfg.Queue), out: newQueue(cfg.Queue),
		intake: intake{sources: limit.Sources{Rate: cfg.Intake, Max: intakeTopics}}, recv: make(chan proto.Packet), ctx: ctx, cancel: cancel}
	for _, topic := range cfg.Subscriptions {
		l.want(topic)
	}
	l.done.Add(2)
	go l.keepConnected()
	go l.deliver()
	return l, nil
}

// Recv gives what arrives, the link's own words included: LinkUp and LinkDown
// in turn, Refused for a subscription, Shed for what was not delivered. Payload
// of LinkDown and Refused is the reason as text. It is closed after Close or Abandon.
func (l *Link) Recv() <-chan proto.Packet { return l.recv }

// Up reports whether the link is connected with every subscription granted.
func (l *Link) Up() bool { return l.up.Load() }

// Err is why the link was last down or could not be made, nil before that.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

// plain is an error in words for a person, without what libraries put before it.
type plain struct{ error }

func (e plain) Error() string {
	text := strings.TrimPrefix(e.error.Error(), "network Error : ")
	at, why, dialled := strings.Cut(strings.TrimPrefix(text, "dial tcp "), ": ")
	switch {
	case errors.Is(e.error, packets.ErrorRefusedNotAuthorised), errors.Is(e.error, packets.ErrorRefusedBadUsernameOrPassword), errors.Is(e.error, packets.ErrorRefusedIDRejected):
		return "the broker refuses us: " + text
	case !dialled || !strings.HasPrefix(text, "dial tcp"):
		return text
	case strings.HasSuffix(why, "connection refused"):
		return "nothing listens at " + at + " (connection refused)"
	case strings.HasPrefix(why, "lookup "):
		return strings.TrimPrefix(why, "lookup ")
	default:
		return at + ": " + why
	}
}

func (e plain) Unwrap() error { return e.error }

func (l *Link) failed(err error) {
	var why error = plain{cert.Explain(err, l.cfg.CertFile, l.cfg.CAFile)}
	if l.cfg.CertFile != "" && errors.Is(err, packets.ErrorRefusedNotAuthorised) {
		why = fmt.Errorf("%w: the broker does not know this name and key (NATS never knows a token), or the key was revoked, or is by an issuer that was stolen: then, where the root is, type ocsctl pki token", why)
	}
	l.mu.Lock()
	l.why = why
	l.mu.Unlock()
}

// Send takes a publication or a change of subscriptions and never blocks. A
// publication that is taken may still be lost with the connection.
func (l *Link) Send(p proto.Packet) error {
	if l.ctx.Err() != nil {
		return ErrClosed
	}
	switch p.Kind {
	case proto.Subscribe, proto.Unsubscribe:
		return l.resubscribe(p)
	case proto.Publish:
	default:
		return proto.Wrong("kind", "publish, subscribe or unsubscribe", "%v", p.Kind)
	}
	if !l.up.Load() {
		return ErrDown
	}
	if !l.out.put(p) {
		return errFull
	}
	return nil
}

// Again makes the connection anew, with a goodbye: the will does not fire.
func (l *Link) Again() {
	l.mu.Lock()
	s := l.current
	l.mu.Unlock()
	if s != nil {
		s.again.Store(true)
		s.finish("made anew")
	}
}

// Close says what the will says, and goodbye to the broker.
func (l *Link) Close() { l.end(false) }

// Abandon drops the connection without DISCONNECT, so that the will fires: what a
// loss of power looks like.
func (l *Link) Abandon() { l.end(true) }

func (l *Link) end(abandon bool) {
	l.mu.Lock()
	if l.ctx.Err() == nil {
		l.abandon = abandon
	}
	l.mu.Unlock()
	l.up.Store(false)
	l.cancel()
	l.done.Wait()
}

func (l *Link) Stats() Stats {
	s := Stats{Connects: l.connects.Load(), Losses: l.losses.Load(), Attempts: l.attempts.Load(),
		Sent: l.sent.Load(), Received: l.got.Load(), Shed: l.intake.total.Load()}
	for _, q := range []*queue{l.in, l.out} {
		d := q.drops()
		s.DroppedTelemetry += d[classTelemetry]
		s.Dropped += d[classFault] + d[classCommand]
	}
	return s
}

func (l *Link) seal(p *proto.Packet) {
	if l.cfg.Guard != nil {
		l.cfg.Guard.Seal(p)
	}
}

// want adds a topic to the wanted subscriptions, reporting whether it is new.
func (l *Link) want(topic string) bool {
	known := slices.Contains(l.subs, topic)
	if !known {
		l.subs = append(l.subs, topic)
	}
	return !known
}

func (l *Link) unwant(topic string) bool {
	for i, have := range l.subs {
		if have == topic {
			l.subs = append(l.subs[:i:i], l.subs[i+1:]...)
			return true
		}
	}
	return false
}

func (l *Link) resubscribe(p proto.Packet) error {
	if p.Topic == "" {
		return proto.Wrong("topic", "not empty", "empty")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := false
	if p.Kind == proto.Subscribe {
		changed = l.want(p.Topic)
	} else {
		changed = l.unwant(p.Topic)
	}
	if changed && l.current != nil {
		l.out.put(p) // goes before what is sent after it
	}
	return nil
}

// deliver moves packets from the queue to the reader, at the reader's pace.
func (l *Link) deliver() {
	defer l.done.Done()
	defer close(l.recv)
	for {
		p, ok := l.in.take()
		if !ok {
			select {
			case <-l.in.ready:
				continue
			case <-l.ctx.Done():
				return
			}
		}
		select {
		case l.recv <- p:
		case <-l.ctx.Done():
			return
		}
	}
}

// keepConnected makes one session after the other. A quick loss counts as a
// failure, so that a broker which throws us out for what we send is not
// stormed; each session starts with an empty store, so that it is not sent the
// same again. Where nobody listens, or the broker says that it is not there yet, a try
// costs it next to nothing, and the next one comes soon. Of several brokers a link
// begins with any one, so that a fleet is spread over them, and goes to the next at
// each try.
func (l *Link) keepConnected() {
	defer l.done.Done()
	jitter := rand.New(rand.NewPCG(cmp.Or(l.cfg.Seed, rand.Uint64()), 0x6f6373))
	refusals, failures := 0, 0
	for l.try = jitter.IntN(len(l.brokers)); l.ctx.Err() == nil; l.try = (l.try + 1) % len(l.brokers) {
		l.attempts.Add(1)
		lived, refused := l.oneSession()
		tries, longest := &failures, l.cfg.MaxReconnect
		if refused {
			tries, longest = &refusals, min(longest, refusedMaxReconnect)
		}
		if *tries++; lived >= quickLoss {
			refusals, failures = 0, 0
		}
		if !l.pause(jitter, *tries, longest) {
			return
		}
	}
}

// pause waits a random part of a time that doubles with every try, up to the longest.
func (l *Link) pause(jitter *rand.Rand, tries int, longest time.Duration) bool {
	longest = min(longest, l.cfg.MinReconnect<<min(max(tries-1, 0), maxDoubling))
	select {
	case <-time.After(time.Duration(jitter.Int64N(int64(longest) + 1))):
		return true
	case <-l.ctx.Done():
		return false
	}
}
