package agent

import (
	"slices"
	"time"

	"ringlight/proto"
)

// Limits of the event queue.
const (
	// maxEvents is how many events wait one by one; beyond it, those of one
	// (bundle, kind) merge. chosen: it bounds the memory
	// of a node whose planner is away, and nothing goes uncounted.
	maxEvents = 1024
	// window is how many events are sent ahead of their acknowledgement.
	// chosen: a broker's usual in-flight limit is 20 to 100.
	window = 64
	// maxRecent is how many of its last events an agent keeps for whoever
	// asks why, acknowledged or not.
	maxRecent = 256
	// eventPage is how many events go into one answer: they must fit under
	// proto.MaxPayload with every text at its longest.
	eventPage = 48
)

// Times of re-sending; chosen: 2 s as the planner's, doubling so that a
// node without a planner is quiet.
const (
	resendFirst = 2 * time.Second
	resendLast  = 16 * time.Second
)

// outbox holds events from their note to their acknowledgement.
type outbox struct {
	node     proto.NodeID
	session  proto.Session
	queue    []proto.Event // Seq acked+1 .. last without a gap
	acked    uint64
	last     uint64
	reserved uint64 // handed to the journal as "may have been sent"; above it events may still merge
	durable  uint64 // on disk as reserved: may be sent
	sent     uint64 // sent since the last rewind

	resendAt time.Duration
	backoff  time.Duration

	changed []uint64 // Seq of events that the journal does not have as they are, rising
	recent  []proto.Event
	newest  int // index in recent of the next to overwrite once full
}

func newOutbox(cfg *Config, j *Journal) outbox {
	o := outbox{node: cfg.Node, session: cfg.Session, acked: j.Acked, last: j.Last, resendAt: Never, backoff: resendFirst}
	o.queue = append(o.queue, j.Events...)
	// What was known to be unsent before may have been sent by that life's
	// last breath; it is on disk, so its number is good.
	o.reserved, o.durable = j.Reserved, j.Reserved
	o.sent = o.acked
	o.recent = append(o.recent, j.Events[max(0, len(j.Events)-maxRecent):]...)
	return o
}

// add signs and numbers an event, or merges it into an unsent one when the queue is
// full.
func (o *outbox) add(e proto.Event) {
	e.Version, e.Node, e.Session, e.Count = proto.Version, o.node, o.session, 1
	e.FirstMicros = e.AtMicros
	if len(o.queue) >= maxEvents {
		for i := len(o.queue) - 1; i >= 0 && o.queue[i].Seq > o.reserved; i-- {
			q := &o.queue[i]
			if q.Bundle == e.Bundle && q.Kind == e.Kind {
				e.Seq, e.FirstMicros, e.Count = q.Seq, q.FirstMicros, q.Count+1
				*q = e
				o.note(e.Seq)
				o.remember(e)
				return
			}
		}
	}
	o.last++
	e.Seq = o.last
	o.queue = append(o.queue, e)
	o.note(e.Seq)
	o.remember(e)
}

// note keeps them in order: nearly always the newest is the last.
func (o *outbox) note(seq uint64) {
	if slices.Contains(o.changed, seq) {
		return
	}
	o.changed = append(o.changed, seq)
	for i := len(o.changed) - 1; i > 0 && o.changed[i] < o.changed[i-1]; i-- {
		o.changed[i], o.changed[i-1] = o.changed[i-1], o.changed[i]
	}
}

func (o *outbox) remember(e proto.Event) {
	if len(o.recent) < maxRecent {
		o.recent = append(o.recent, e)
		return
	}
	o.recent[o.newest] = e
	o.newest = (o.newest + 1) % maxRecent
}

// page gives the recent events from number skip on, oldest first, and the
// number of the next page, 0 when there is none.
func (o *outbox) page(skip uint32) (events []proto.Event, next uint32) {
	n := len(o.recent)
	for i := int(min(skip, uint32(n))); i < n && len(events) < eventPage; i++ {
		events = append(events, o.recent[(o.newest+i)%n])
	}
	if end := int(skip) + len(events); end < n {
		next = uint32(end)
	}
	return events, next
}

// at returns the queued event with a number.
func (o *outbox) at(seq uint64) *proto.Event {
	if seq <= o.acked || seq > o.last {
		return nil
	}
	return &o.queue[seq-o.acked-1]
}

// reserve extends what may be sent by as much as the window allows and
// reports whether the journal must hear of it.
func (o *outbox) reserve() bool {
	if upTo := min(o.last, o.acked+window); upTo > o.reserved {
		o.reserved = upTo
		return true
	}
	return false
}

// ack forgets everything up to seq.
func (o *outbox) ack(seq uint64) bool {
	if seq <= o.acked || seq > o.last {
		return false
	}
	o.queue = append(o.queue[:0], o.queue[seq-o.acked:]...)
	o.acked = seq
	o.sent = max(o.sent, seq)
	o.reserved = max(o.reserved, seq)
	o.durable = max(o.durable, seq)
	o.backoff = resendFirst
	return true
}

// rewind sends again from the first unacknowledged event on.
func (o *outbox) rewind() { o.sent = o.acked }

// next is the event to be sent now, nil when none may be.
func (o *outbox) next() *proto.Event {
	if o.sent >= min(o.durable, o.acked+window) {
		return nil
	}
	return o.at(o.sent + 1)
}
