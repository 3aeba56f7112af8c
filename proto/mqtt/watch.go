package mqtt

import (
	"log/slog"
	"time"

	"ringlight/proto"
)

// linkPatience is how long a link without a broker logs nothing about it.
// chosen: below the 5 s after which silence is a defect.
const linkPatience = 4 * time.Second

// Watch says what keeps a link from its broker: soon, and again when that
// changes, and not at every try.
type Watch struct {
	Log    *slog.Logger
	Broker string
	Why    func() error // why the link was last down or could not be made
	// Without says what is not done without a subscription.
	Without string
	up      bool
	since   time.Duration // when it was last up, or the start
	said    string
	denied  map[string]bool // topics whose refusal was said
}

// Up: the link is connected with every subscription granted.
func (w *Watch) Up() bool { return w.up }

// Next is when Look wants to be called, on the clock of since.
func (w *Watch) Next(now time.Duration) time.Duration {
	if w.up {
		return now + time.Hour
	}
	return now + time.Second
}

// Look reads why there is no link.
func (w *Watch) Look(now time.Duration) {
	if w.up || len(w.denied) > 0 {
		return
	}
	why := ""
	if err := w.Why(); err != nil {
		why = err.Error()
	}
	if why == "" && now >= w.since+linkPatience {
		why = "no answer yet"
	}
	if why != "" && why != w.said {
		w.said = why
		w.Log.Warn("no connection to the broker", "broker", w.Broker, "reason", why)
	}
}

// Packet takes a notice of the link.
func (w *Watch) Packet(p *proto.Packet, now time.Duration) {
	switch p.Kind {
	case proto.LinkUp:
		w.up, w.said, w.denied = true, "", nil
		w.Log.Info("broker connected", "broker", w.Broker)
	case proto.LinkDown:
		w.up, w.since, w.said = false, now, string(p.Payload)
		w.Log.Warn("broker lost", "broker", w.Broker, "reason", w.said)
	case proto.Refused:
		if w.denied[p.Topic] {
			return
		}
		if w.denied == nil {
			w.denied = map[string]bool{}
		}
		w.denied[p.Topic] = true
		w.Log.Error("the broker denies a subscription, and without it "+w.Without, "broker", w.Broker, "topic", p.Topic, "reason", string(p.Payload))
	}
}

// Watched is a link whose words about itself are logged, for an owner that steps on another
// clock.
type Watched struct {
	*Link
	recv chan proto.Packet
}

// WatchLink logs what a link says of itself, until it is closed.
func WatchLink(l *Link, w Watch) *Watched {
	out := &Watched{l, make(chan proto.Packet)}
	w.Why = l.Err
	began := time.Now()
	go func() {
		defer close(out.recv)
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case p, ok := <-l.Recv():
				if !ok {
					return
				}
				w.Packet(&p, time.Since(began))
				select {
				case out.recv <- p:
				case <-l.ctx.Done():
					return
				}
			case <-timer.C:
				w.Look(time.Since(began))
			}
			now := time.Since(began)
			timer.Reset(w.Next(now) - now)
		}
	}()
	return out
}

// Recv gives what arrives.
func (w *Watched) Recv() <-chan proto.Packet { return w.recv }
