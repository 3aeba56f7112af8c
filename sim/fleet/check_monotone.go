package fleet

import (
	"fmt"

	"ringlight/proto"
)

// Invariant 5, monotone: generation and term never go back - not what a node
// reports in one life, not what it has acknowledged as committed over all its
// lives, not what the planner plans.

// said looks at a packet that a node sends.
func (a *audit) said(st *station, p proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil {
		a.violate(st.id, "protocol", "speaks on topic "+p.Topic)
		return
	}
	switch topic.Kind {
	case proto.TopicReported:
		var m proto.Reported
		if !a.decode(st, p, &m) {
			return
		}
		w := &st.watch
		now := [3]uint64{uint64(m.Term), uint64(m.Generation), uint64(m.SeenTerm)}
		if m.Session != w.session {
			w.session, w.reported = m.Session, [3]uint64{}
		}
		if before(now, w.reported) || now[2] < w.reported[2] {
			a.violate(st.id, "monotone", fmt.Sprintf("reports term %d, generation %d, seen %d after %v", now[0], now[1], now[2], w.reported))
		}
		if before(now, [3]uint64{w.applied[0], w.applied[1]}) {
			a.violate(st.id, "monotone", fmt.Sprintf("reports term %d generation %d after it acknowledged %v as committed", now[0], now[1], w.applied))
		}
		w.reported = now
	case proto.TopicAck:
		var m proto.Ack
		if a.decode(st, p, &m) && m.Phase == proto.PhaseCommit && m.Code == proto.OK {
			if now := [2]uint64{uint64(m.Term), uint64(m.Generation)}; before([3]uint64{st.watch.applied[0], st.watch.applied[1]}, [3]uint64{now[0], now[1]}) {
				st.watch.applied = now
			}
		}
	case proto.TopicEvent:
		var m proto.Event
		if a.decode(st, p, &m) && st.watch.events.say(&m) {
			a.violate(st.id, "nothing lost", fmt.Sprintf("event %d has been another one", m.Seq))
		}
	}
}

func (a *audit) decode(st *station, p proto.Packet, m any) bool {
	_, err := proto.Decode(p.Payload, m)
	if err != nil {
		a.violate(st.id, "protocol", "says what does not decode: "+err.Error())
	}
	return err == nil
}

// before compares term and generation.
func before(a, b [3]uint64) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// planned looks at a packet that the planner sends.
func (a *audit) planned(b *process, p proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	if err != nil || topic.Kind != proto.TopicDecision {
		return
	}
	var m proto.Decision
	if _, err := proto.Decode(p.Payload, &m); err != nil {
		a.violate(0, "protocol", "the planner's decision does not decode: "+err.Error())
		return
	}
	if m.Term < b.term {
		a.violate(0, "monotone", fmt.Sprintf("the planner decides in term %d after term %d", m.Term, b.term))
	}
	b.term = max(b.term, m.Term)
	a.r.measure.decided(b, &m)
}
