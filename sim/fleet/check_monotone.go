package fleet

import (
	"fmt"

	"ringlight/proto"
)

// Invariant 5, monotone: generation and term never go back - not what a node
// reports in one life, not what it has acknowledged as committed over all its
// lives, not what the planner plans.

// monotone looks at what a device says.
func (a *audit) monotone(st *station, topic proto.Topic, p proto.Packet) {
	switch topic.Kind {
	case proto.TopicReported:
		var m proto.Reported
		if !a.decode(st, p, &m) {
			return
		}
		if st.id.IsSwitch() && m.Generation == 0 {
			return // it has lost its power, and waits to be told again
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
	}
}

// before compares term and generation.
func before(a, b [3]uint64) bool { return a[0] < b[0] || a[0] == b[0] && a[1] < b[1] }

// terms looks at what a planner decides.
func (a *audit) terms(b *process, topic proto.Topic, p proto.Packet) {
	if topic.Kind != proto.TopicDecision {
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

// gaveWay is told of a planner that does, which none does alone.
func (a *audit) gaveWay(reason string) {
	if a.r.planners[1].life == 0 {
		a.violate(0, "one planner", "it gave way to nobody: "+reason)
	}
}
