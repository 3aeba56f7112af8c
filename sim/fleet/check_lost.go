package fleet

import (
	"fmt"
	"slices"

	"ringlight/proto"
)

// Invariant 7, nothing lost: every event of every journal reaches the planner,
// and no number is ever used for two of them. Numbers are compared at both
// ends: what the journal gave out and what the planner was handed.

// delivery is what the planner was handed of a node's events.
type delivery struct {
	said  uint64 // highest sent
	last  []saidEvent
	upTo  uint64 // everything up to here was handed over
	ahead []uint64
}

func (d *delivery) hand(seq uint64) {
	if seq <= d.upTo {
		return
	}
	d.ahead = append(d.ahead, seq)
	for again := true; again; {
		again = false
		n := 0
		for _, s := range d.ahead {
			switch {
			case s == d.upTo+1:
				d.upTo, again = s, true
			case s > d.upTo:
				d.ahead[n] = s
				n++
			}
		}
		d.ahead = d.ahead[:n]
	}
}

// saidEvent is what a number stood for when it was sent. The last ones are
// kept, by number.
type saidEvent struct {
	seq, at uint64
	kind    proto.EventKind
}

// keptSaid is an agent's window: what may be sent again. chosen.
const keptSaid = 64

// say notes an event that a node sends, and reports whether its number stood
// for another one before.
func (d *delivery) say(m *proto.Event) (twice bool) {
	d.said = max(d.said, m.Seq)
	if d.last == nil {
		d.last = make([]saidEvent, keptSaid)
	}
	now := saidEvent{m.Seq, m.AtMicros, m.Kind}
	was := &d.last[m.Seq%keptSaid]
	twice = was.seq == m.Seq && *was != now
	*was = now
	return twice
}

// numbered looks at an event that a device says.
func (a *audit) numbered(st *station, topic proto.Topic, p proto.Packet) {
	var m proto.Event
	if topic.Kind == proto.TopicEvent && a.decode(st, p, &m) && st.watch.events.say(&m) {
		a.violate(st.id, "nothing lost", fmt.Sprintf("event %d has been another one", m.Seq))
	}
}

// handed looks at an event that a planner is handed.
func (a *audit) handed(topic proto.Topic, p proto.Packet) {
	var m proto.Event
	if topic.Kind != proto.TopicEvent {
		return
	}
	if _, err := proto.Decode(p.Payload, &m); err != nil {
		return
	}
	if st := a.r.station(topic.Node); st != nil && m.Node == topic.Node {
		st.watch.events.hand(m.Seq)
	}
}

// missing is how many events of a device's journal the planner was never handed.
// Those of one that is off are in its journal, not lost.
func (a *audit) missing(st *station) uint64 {
	if st.dark || st.host == nil {
		return 0
	}
	last := max(st.disk.Journal.Last, st.disk.Journal.Acked)
	return last - min(last, st.watch.events.upTo)
}

// allDelivered: every journal's events have arrived and are acknowledged.
func (a *audit) allDelivered() bool {
	return !slices.ContainsFunc(a.r.planned(), func(st *station) bool {
		return a.missing(st) > 0 || st.host != nil && len(st.disk.Journal.Events) > 0
	})
}

func (a *audit) lost() (n uint64) {
	for _, st := range a.r.planned() {
		n += a.missing(st)
	}
	return n
}

func (a *audit) delivered() {
	for _, st := range a.r.planned() {
		if n := a.missing(st); n > 0 {
			a.violate(st.id, "nothing lost", fmt.Sprintf("%d of %d events never reached the planner", n, st.disk.Journal.Last))
		}
		if st.disk.Journal.Acked > st.watch.events.upTo {
			a.violate(st.id, "nothing lost", fmt.Sprintf("event %d is acknowledged, the planner was handed %d", st.disk.Journal.Acked, st.watch.events.upTo))
		}
	}
}
