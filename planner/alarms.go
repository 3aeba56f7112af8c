package planner

import (
	"encoding/json"
	"fmt"
	"slices"

	"ringlight/planner/health"
	"ringlight/planner/journal"
	"ringlight/proto"
)

// Alarms are what the checks of package health find. An alarm stands until it is over;
// an operator can acknowledge it, and that holds as long, over restarts too. What is raised
// anew is unknown again.

const (
	prefixAck = "ack/" // of the store: the acknowledgement of an alarm, by its id
	// maxAcks bounds what people may leave in the store. chosen: more than a cell
	// has alarms on its worst day.
	maxAcks = 4096
)

// ack is an acknowledgement as the store keeps it.
type ack struct {
	Node   *proto.NodeID `json:"node,omitempty"` // whose alarm it is
	Author string        `json:"author"`
	Reason string        `json:"reason"`
	Millis uint64        `json:"at_ms"`
	Since  uint64        `json:"since_ms"`
}

// alarm is one that stands.
type alarm struct {
	proto.AlarmStatus
	by
	look uint64 // it stood at
}

// by is who raised an alarm.
type by struct {
	session proto.Session // of the agent; 0: the planner
	raised  uint64        // when, by that agent's clock
}

// alarmBook is the standing alarms and those acknowledged.
type alarmBook struct {
	root     above
	j        *journal.Journal
	standing map[string]*alarm
	acks     map[string]ack
	outside  []proto.AlarmStatus
	over     []string // acknowledgements of what is over
	look     uint64
	judged   bool          // all, once
	raised   map[string]by // alarms of devices' own, at the last look
}

// restore takes an acknowledgement from the store.
func (b *alarmBook) restore(id string, raw []byte) error {
	var a ack
	err := json.Unmarshal(raw, &a)
	b.acks[id] = a
	return err
}

func (b *alarmBook) forget(id string) {
	if _, known := b.acks[id]; known {
		delete(b.acks, id)
		b.over = append(b.over, id)
	}
}

// stands notes an alarm. One of an agent that began at another time was over in
// between. What is new since all were judged for the first time is of now, where nobody
// knows better.
func (b *alarmBook) stands(s proto.AlarmStatus, by by) {
	for base, n := s.ID, 2; b.standing[s.ID] != nil && b.standing[s.ID].look == b.look; n++ {
		s.ID = fmt.Sprintf("%s-%d", base, n) // two of a kind in one place
	}
	switch a := b.standing[s.ID]; {
	case a == nil:
		known, is := b.acks[s.ID]
		switch {
		case is && known.Since != 0 && (s.SinceMillis == 0 || known.Since < s.SinceMillis):
			s.SinceMillis = known.Since // a former life of the planner knew it
		case s.SinceMillis == 0 && b.judged:
			s.SinceMillis = b.j.Wall
		}
	case a.session == by.session && a.raised != by.raised:
		b.forget(s.ID)
	case s.SinceMillis == 0 || a.SinceMillis != 0 && a.SinceMillis < s.SinceMillis:
		s.SinceMillis = a.SinceMillis
	}
	if known, is := b.acks[s.ID]; is {
		s.AckAuthor, s.AckReason, s.AckMillis = known.Author, known.Reason, known.Millis
	}
	b.standing[s.ID] = &alarm{s, by, b.look}
}

// update finds what stands now, and forgets what is over. Before all have been heard
// only what is the planner's own is judged.
func (b *alarmBook) update() {
	b.look++
	x := b.facts()
	for _, a := range health.Of(&x) {
		b.stands(a, b.raised[a.ID])
	}
	listening := b.root.Listening()
	for id, a := range b.standing { // any order: each by itself
		if a.look != b.look && !(listening && a.Check != "planner" && a.Check != "broker" && a.Check != "nodes") {
			delete(b.standing, id)
		}
	}
	if listening {
		return // what is heard so far is not all
	}
	b.judged = true
	for id, a := range b.acks { // any order: what is over is sorted
		if b.standing[id] == nil && b.knows(a.Node) {
			b.forget(id)
		}
	}
}

// store takes the acknowledgements of what is over out of the store. Only within a
// step: who looks on between two of them asks for nothing to be stored.
func (b *alarmBook) store() {
	if len(b.over) == 0 {
		return
	}
	slices.Sort(b.over)
	var records []Record
	for _, id := range b.over {
		records = append(records, Record{Key: prefixAck + id})
	}
	b.over = nil
	b.j.Persist(records...)
}

// knows: it was heard what a device has to say, so that an alarm that it does
// not raise is over.
func (b *alarmBook) knows(id *proto.NodeID) bool {
	if id == nil {
		return true
	}
	_, d := b.root.p.find(*id)
	return d == nil || d.Known
}

// List is what is not as it should be: the worst first, then the oldest, and under
// each what follows from it.
func (b *alarmBook) List() []proto.AlarmStatus {
	b.update()
	after := map[string][]proto.AlarmStatus{}
	for _, a := range b.standing { // any order: sorted below
		if b.standing[a.Under] == nil {
			a.Under = "" // that is over already
		}
		after[a.Under] = append(after[a.Under], a.AlarmStatus)
	}
	return health.InOrder(after)
}

// page pages by place in the list: what comes and goes between two pages
// moves others, which a person sees at the next look.
func (b *alarmBook) page(q *proto.OpRequest, r *proto.OpReply) {
	all := b.List()
	b.store()
	all = all[min(q.Page, uint64(len(all))):]
	if len(all) > alarmPage {
		all, r.Next = all[:alarmPage], q.Page+alarmPage
	}
	r.Alarms = all
}

// alarmPage bounds the alarms of an answer. chosen: with two long texts each
// they fit a message.
const alarmPage = 48

// acknowledge notes that an alarm is known.
func (b *alarmBook) acknowledge(q *proto.OpRequest, r *proto.OpReply) {
	b.update()
	b.store()
	a := b.standing[q.Alarm]
	switch {
	case a == nil:
		r.Refuse(&proto.Error{Code: proto.NotFound, Field: "alarm", Limit: "one that stands: ocsctl alarm list", Reason: fmt.Sprintf("no alarm %q", proto.Clip(q.Alarm))})
		return
	case q.Author == "" || q.Reason == "":
		r.Refuse(&proto.Error{Code: proto.Invalid, Field: "reason", Limit: "an author and a reason", Reason: "one of them is empty"})
		return
	case len(b.acks) >= maxAcks && a.AckMillis == 0:
		r.Refuse(&proto.Error{Code: proto.Busy, Field: "alarm", Limit: fmt.Sprintf("%d acknowledged", maxAcks), Reason: "no more fit into the store"})
		return
	}
	known := ack{Node: a.Node, Author: q.Author, Reason: q.Reason, Millis: b.j.Wall, Since: a.SinceMillis}
	b.acks[a.ID] = known
	a.AckAuthor, a.AckReason, a.AckMillis = known.Author, known.Reason, known.Millis
	b.j.Persist(journal.Encode(prefixAck+a.ID, known))
	about := journal.Note{Rule: "alarm", Node: -1, Ring: a.Ring, Cause: proto.CauseOperator, Text: fmt.Sprintf("%s acknowledged by %s: %s", a.ID, known.Author, known.Reason)}
	if a.Node != nil {
		about.Node = int64(*a.Node)
	}
	b.j.Note(Info, "alarm acknowledged", about)
	r.Alarms = []proto.AlarmStatus{a.AlarmStatus}
}
