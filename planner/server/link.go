package server

import (
	"log/slog"
	"time"

	"ringlight/proto"
)

// linkPatience is how long a planner without a broker says nothing about it.
// chosen: below the 5 s after which silence is a defect.
const linkPatience = 4 * time.Second

// linkWatch says what keeps the planner from its broker: soon, and again when
// that changes, and not at every try.
type linkWatch struct {
	log    *slog.Logger
	broker string
	err    func() error // why the link was last down or could not be made
	up     bool
	since  time.Duration // when it was last up, or the start
	said   string
	denied map[string]bool // topics whose refusal was said
}

// next is when look wants to be called, on the clock of since.
func (w *linkWatch) next(now time.Duration) time.Duration {
	if w.up {
		return now + time.Hour
	}
	return now + time.Second
}

// look reads why there is no link.
func (w *linkWatch) look(now time.Duration) {
	if w.up || len(w.denied) > 0 {
		return
	}
	why := ""
	if err := w.err(); err != nil {
		why = err.Error()
	}
	if why == "" && now >= w.since+linkPatience {
		why = "no answer yet"
	}
	if why != "" && why != w.said {
		w.said = why
		w.log.Warn("no connection to the broker", "broker", w.broker, "reason", why)
	}
}

// packet takes a word of the link.
func (w *linkWatch) packet(p *proto.Packet, now time.Duration) {
	switch p.Kind {
	case proto.LinkUp:
		w.up, w.said, w.denied = true, "", nil
		w.log.Info("broker connected", "broker", w.broker)
	case proto.LinkDown:
		w.up, w.since, w.said = false, now, string(p.Payload)
		w.log.Warn("broker lost", "broker", w.broker, "reason", w.said)
	case proto.Refused:
		if w.denied[p.Topic] {
			return
		}
		if w.denied == nil {
			w.denied = map[string]bool{}
		}
		w.denied[p.Topic] = true
		w.log.Error("the broker denies a subscription, and without it nothing is planned", "broker", w.broker, "topic", p.Topic, "reason", string(p.Payload))
	}
}
