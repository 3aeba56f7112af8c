package planner

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/planner/hbd"
	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/planner/rollout"
	"ringlight/proto"
)

// Alarms are what is not as it should be: what devices say of themselves, what
// keeps a device out of plans, rings that are not in service. An alarm stands
// until it is over; who knows of it may say so, and that holds as long, over
// restarts too. What is raised anew is unknown again.

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
	session proto.Session // of the agent that raised it; 0: the planner did
	raised  uint64        // when, by that agent's clock
	look    uint64        // it stood at
}

// alarmBook is what stands, and what is acknowledged.
type alarmBook struct {
	root     above
	j        *journal.Journal
	rings    *hbd.Rings
	tables   []*member.Table
	roll     *rollout.Rollout
	standing map[string]*alarm
	acks     map[string]ack
	outside  []proto.AlarmStatus
	over     []string // acknowledgements of what is over
	look     uint64
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
// between.
func (b *alarmBook) stands(s proto.AlarmStatus, session proto.Session, raised uint64) {
	for base, n := s.ID, 2; b.standing[s.ID] != nil && b.standing[s.ID].look == b.look; n++ {
		s.ID = fmt.Sprintf("%s-%d", base, n) // two of a kind in one place
	}
	switch a := b.standing[s.ID]; {
	case a == nil:
		if known, is := b.acks[s.ID]; is {
			s.SinceMillis = min(s.SinceMillis, known.Since) // a former life of the planner knew it
		}
	case a.session == session && a.raised != raised:
		b.forget(s.ID)
	default:
		s.SinceMillis = a.SinceMillis
	}
	if known, is := b.acks[s.ID]; is {
		s.AckAuthor, s.AckReason, s.AckMillis = known.Author, known.Reason, known.Millis
	}
	b.standing[s.ID] = &alarm{s, session, raised, b.look}
}

// update finds what stands now, and forgets what is over.
func (b *alarmBook) update() {
	if b.root.Listening() {
		return // what is heard so far is not all
	}
	b.look++
	for _, t := range b.tables {
		for i := range t.Devices {
			b.device(&t.Devices[i])
		}
	}
	b.rings.RingTroubles(func(id proto.RingID, s proto.RingState, since uint64) {
		severity := proto.SeverityWarning
		if s == proto.RingDown {
			severity = proto.SeverityCritical
		}
		b.stands(proto.AlarmStatus{ID: fmt.Sprintf("ring-%d/%s", id, s), SinceMillis: cmp.Or(since, b.j.Wall), Severity: severity, Ring: id,
			What: fmt.Sprintf("ring %d is %s", id, s)}, 0, 0)
	})
	b.rings.HeldFibres(func(fibre string, x, y proto.NodeID, since uint64, left time.Duration) {
		b.stands(proto.AlarmStatus{ID: "fibre-" + fibre, SinceMillis: cmp.Or(since, b.j.Wall), Severity: proto.SeverityWarning, Node: &x,
			What: fmt.Sprintf("fibre %s is held to be cut", fibre),
			Why: fmt.Sprintf("light was lost at both ends, nodes %d and %d, which are well; next try at %s; 'ocsctl link clear %s' tries it now",
				x, y, time.UnixMilli(int64(b.j.Wall)).Add(left).UTC().Format(time.TimeOnly), fibre)}, 0, 0)
	})
	b.rollout(b.roll)
	for _, s := range b.outside {
		s.SinceMillis = b.j.Wall
		b.stands(s, 0, 0)
	}
	b.audit()
	for id, a := range b.standing { // any order: each by itself
		if a.look != b.look {
			delete(b.standing, id)
		}
	}
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
	for _, t := range b.tables {
		if d := t.Find(*id); d != nil {
			return d.Report != nil
		}
	}
	return true
}

// device finds what stands of one device.
func (b *alarmBook) device(d *member.Device) {
	t := b.tables[0]
	if d.ID.IsSwitch() {
		t = b.tables[1]
	}
	claims := t.Numbers.Claims(d)
	what, why := d.Trouble()
	if !d.ID.IsSwitch() {
		what, why = b.rings.Trouble(d.ID)
	}
	if what == "" {
		what, why = d.Lately(b.j.Now)
	}
	if what == "" && claims == "" && (d.Report == nil || d.Report.Alarms() == 0) {
		return
	}
	place := fmt.Sprint(d.ID)
	if d.ID.IsSwitch() {
		place = fmt.Sprintf("switch-%d", d.ID-proto.FirstSwitch)
	}
	s := proto.AlarmStatus{SinceMillis: b.j.Wall, Severity: proto.SeverityWarning, Node: &d.ID, Ring: d.Group}
	if d.ID.IsSwitch() {
		s.Ring = 0
	}
	if what != "" {
		if s.ID, s.What, s.Why = place+"/"+strings.ReplaceAll(what, " ", "-"), what, why; !d.Online() && d.GoneAt > 0 {
			s.SinceMillis = b.ago(b.j.Now - d.GoneAt)
		}
		if slices.Contains([]string{"dead", "isolated", "disputed", "not believed"}, what) {
			s.Severity = proto.SeverityCritical
		}
		b.stands(s, 0, 0)
	}
	if claims != "" {
		c := s
		c.ID, c.What, c.Why, c.Severity = place+"/claim", "claims a number that the planner did not give", claims, proto.SeverityCritical
		b.stands(c, 0, 0)
	}
	if d.Report == nil || d.Report.Alarms() == 0 {
		return
	}
	said := d.Whole()
	for i := range said.Alarms {
		a := &said.Alarms[i]
		at := fmt.Sprintf("%s/%d", place, a.Bundle)
		if d.ID.IsSwitch() {
			at = fmt.Sprintf("%s/%d", place, a.PortA)
		}
		s.ID, s.Severity, s.What, s.Why = at+"/"+a.Kind.Slug(), a.Severity, a.Kind.Words(), a.Text
		s.SinceMillis = b.ago(b.j.Now - d.ReportAt + max(0, d.Report.Uptime()-time.Duration(a.SinceMicros)*time.Microsecond))
		b.stands(s, d.Report.Session, a.SinceMicros)
	}
}

// ago is the wall clock's time so long ago.
func (b *alarmBook) ago(d time.Duration) uint64 {
	return b.j.Wall - min(b.j.Wall, uint64(max(0, d).Milliseconds()))
}

// list is what stands: the worst first, then the oldest.
func (b *alarmBook) list() []proto.AlarmStatus {
	b.update()
	out := make([]proto.AlarmStatus, 0, len(b.standing))
	for _, a := range b.standing { // any order: sorted below
		out = append(out, a.AlarmStatus)
	}
	slices.SortFunc(out, func(a, b proto.AlarmStatus) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.SinceMillis, b.SinceMillis), strings.Compare(a.ID, b.ID))
	})
	return out
}

// page pages by place in the list: what comes and goes between two pages
// moves others, which a person sees at the next look.
func (b *alarmBook) page(q *proto.OpRequest, r *proto.OpReply) {
	all := b.list()
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
