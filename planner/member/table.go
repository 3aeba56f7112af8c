package member

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Root is what a table needs of the planner above it.
type Root interface {
	// SawTerm hears of a term that somebody knows, and of the life of the planner
	// that it was heard from, 0 where that is not said.
	SawTerm(t proto.Term, life uint64)
	// Answer takes a device's answer to a command.
	Answer(d *Device, m *proto.Ack)
}

// Owner draws the conclusions: the planner of the rings, or of the circuits.
type Owner interface {
	// News follows up on one word of a device.
	News(n News)
	// Resendable reports whether what is wanted of a device may be sent again
	// as it is; else the owner tells it anew.
	Resendable(d *Device) bool
	// Generation is the highest that it gave out or heard of, 0: none.
	Generation() proto.Generation
}

// Kind says what a News tells.
type Kind uint8

const (
	Birth    Kind = iota // a birth; Again: of the life that was online anyway
	Gone                 // nobody speaks for it any more; Why
	Away                 // a death note of one that was no longer online, or that came after Gone
	Reported             // Device.Report is new; First: of this life
	Spoke                // an answer: Ack; Broke: it ends a silence
	Told                 // an event, the next in order
	Weighed              // its word is not believed any more, or again
)

// News is one word of a device, which the table has taken already.
type News struct {
	Kind   Kind
	Device *Device
	Before Standing
	Again  bool
	First  bool
	Broke  bool
	Why    string
	Ack    *proto.Ack
	Event  *proto.Event
}

// Table is all nodes, or all switches. It hears them, calls them after the
// broker was away, and sends again what they have not taken.
type Table struct {
	Devices []Device

	j     *journal.Journal
	root  Root
	owner Owner

	heard   int
	heardAt time.Duration // when one was heard for the first time, the last time
	calls   uint64        // roll calls so far
	callAt  time.Duration // when those that missed it are taken for offline
	sweepAt time.Duration
	pending []*Device     // all that are, and some that were
	unknown bool          // which are is not known: all are looked at
	askAt   time.Duration // when Ask wants to be called
	holding int           // devices that wait for a missing event
	gapAt   time.Duration
	gaps    uint64 // events given up
	courses courses
	refused uint64 // messages whose numbers are not believed
	alike   alike
	blank   *setback // of all devices that had none
}

// NewTable makes a table of n devices, the first of which has the number first.
func NewTable(first proto.NodeID, n int, j *journal.Journal, root Root, owner Owner) *Table {
	t := &Table{Devices: make([]Device, n), j: j, root: root, owner: owner, unknown: true, callAt: journal.Never, sweepAt: journal.Never, gapAt: journal.Never, askAt: journal.Never, blank: noSetback(), alike: alike{last: undecided}}
	for i := range t.Devices {
		t.Devices[i].init(first+proto.NodeID(i), t.blank)
	}
	return t
}

// Resize makes a table of nodes one of n: new ones are unheard, those above are
// forgotten. Devices move; whoever points to one has to look it up again.
func (t *Table) Resize(n int) {
	was := t.Devices
	t.Devices = make([]Device, n)
	copy(t.Devices, was)
	t.heard, t.holding, t.pending, t.unknown = 0, 0, nil, true
	for i := range t.Devices {
		d := &t.Devices[i]
		if i >= len(was) {
			d.init(proto.NodeID(i), t.blank)
		}
		d.queued = false
		if d.Heard() {
			t.heard++
		}
		if len(d.ahead) > 0 {
			t.holding++
		}
	}
	t.j.Repoint(func(c *journal.Cursor) *journal.Cursor {
		switch {
		case c.Node.IsSwitch():
			return c
		case int(c.Node) >= n:
			return nil
		}
		return &t.Devices[c.Node].Events.Cursor
	})
}

// Find finds a device; a topic may name one that does not exist.
func (t *Table) Find(id proto.NodeID) *Device {
	if len(t.Devices) == 0 || id < t.Devices[0].ID || int(id-t.Devices[0].ID) >= len(t.Devices) {
		return nil
	}
	return &t.Devices[id-t.Devices[0].ID]
}

// Heard is how many devices have spoken, and when the last of them first did.
func (t *Table) Heard() (int, time.Duration) { return t.heard, t.heardAt }

// Gaps is the number of events given up.
func (t *Table) Gaps() uint64 { return t.gaps }

// Quiet: no event is waited for.
func (t *Table) Quiet() bool { return t.holding == 0 }

// Next is when Roll or CheckGaps want to be called.
func (t *Table) Next() time.Duration {
	if !t.j.LinkUp {
		return t.gapAt
	}
	return min(t.gapAt, t.callAt, t.askAt)
}

// NextSweep is when Sweep wants to be called.
func (t *Table) NextSweep() time.Duration { return t.sweepAt }

// Unable lists the devices that are there and take no part, and why.
func (t *Table) Unable() (out []string) {
	for i := range t.Devices {
		d := &t.Devices[i]
		if why := d.WhyNot(); why != "" && d.Online() {
			what, id := "node", d.ID
			if d.ID.IsSwitch() {
				what, id = "switch", d.ID-proto.FirstSwitch
			}
			out = append(out, fmt.Sprintf("%s %d: %s", what, id, why))
		}
	}
	return out
}

// LinkUp calls the devices after the broker was away: death notes of that time
// are lost with it, and who does not come back is gone. Nothing sent without a
// broker arrived.
func (t *Table) LinkUp() {
	t.calls++
	t.callAt = journal.Never
	for i := range t.Devices {
		d := &t.Devices[i]
		if d.Online() {
			t.callAt = t.j.Now + rollPatience
		}
		if d.Pending() {
			t.Resend(d)
		}
	}
}

// Roll takes those for offline that have not been heard of.
func (t *Table) Roll() {
	if !t.j.LinkUp || t.j.Now < t.callAt {
		return
	}
	t.callAt = journal.Never
	for i := range t.Devices {
		if d := &t.Devices[i]; d.Online() && d.call < t.calls {
			t.gone(d, "it did not come back with the broker")
		}
	}
}

// Resend sends what is wanted of a device again with the next sweep.
func (t *Table) Resend(d *Device) {
	d.resendAt, d.backoff = t.j.Now, ResendFirst
	t.sweepAt = t.j.Now
	t.queue(d)
}

// queue notes that a device may be pending.
func (t *Table) queue(d *Device) {
	if !d.queued {
		d.queued = true
		t.pending = append(t.pending, d)
	}
}

// SweepNow looks for what is to be sent again at once.
func (t *Table) SweepNow() { t.sweepAt, t.unknown = t.j.Now, true }

// Sweep sends again what devices have not reported: their desired state and
// the decision, which the members of a ring share. Without leave it waits.
func (t *Table) Sweep(may bool) {
	if !t.j.LinkUp || t.j.Now < t.sweepAt {
		return
	}
	t.sweepAt = journal.Never
	if !may {
		t.sweepAt = t.j.Now + sweepPeriod
		return
	}
	if t.unknown {
		t.unknown = false
		for i := range t.Devices {
			if t.Devices[i].Pending() {
				t.queue(&t.Devices[i])
			}
		}
	}
	t.pending = slices.DeleteFunc(t.pending, func(d *Device) bool {
		d.queued = d.Pending()
		return !d.queued
	})
	slices.SortFunc(t.pending, func(a, b *Device) int { return int(a.ID) - int(b.ID) })
	var told []*Device // one for each decision
	for _, d := range t.pending {
		if !d.Pending() || !d.Online() || d.state == Disputed || !t.owner.Resendable(d) {
			continue
		}
		if d.resendAt <= t.j.Now {
			t.j.SendRaw(t.j.Topics.Desired(d.ID), proto.TopicDesired, d.Want.Payload)
			d.resendAt = t.j.Now + d.backoff
			d.backoff = min(2*d.backoff, resendLast)
			if d.ID.IsSwitch() {
				t.SendDecision(d.Group, *d.Want.Decided) // a group's switches are told at different times
			} else if !slices.ContainsFunc(told, func(x *Device) bool { return x.Group == d.Group && *x.Want.Decided == *d.Want.Decided }) {
				told = append(told, d)
			}
		}
		t.sweepAt = t.j.Now + sweepPeriod
	}
	for _, d := range told {
		t.SendDecision(d.Group, *d.Want.Decided)
	}
}

// SendDecision publishes a decision. Without a link the sweep after the next
// LinkUp does.
func (t *Table) SendDecision(group proto.RingID, x Decided) {
	if !t.j.LinkUp {
		return
	}
	t.j.Send(t.j.Topics.Decision(group), proto.TopicDecision, &proto.Decision{
		Version: proto.Version, Ring: group, Term: x.Term, Generation: x.Gen, Plan: x.Plan, Verdict: proto.Commit,
	})
}

func (t *Table) hear(was bool, d *Device) {
	if !was && d.Heard() {
		t.heard++
		t.heardAt = t.j.Now
	}
}

// Presence takes a birth or a death note. A death note of another session is
// of a former life.
func (t *Table) Presence(d *Device, m *proto.Presence) {
	d.call = t.calls
	if d.state == Disputed {
		if m.Online {
			t.claims(d, m.Session)
		}
		return
	}
	if m.Online && !t.believe(d, t.standing("", m.SeenTerm, m.Term, m.Generation)...) {
		return
	}
	before, heard := d.Standing(), d.Heard()
	if !m.Online {
		if d.Online() && m.Session != d.Session {
			return
		}
		d.Session = m.Session
		if d.state == Unheard {
			d.become(Offline)
		} else if d.Online() {
			t.gone(d, "the broker reported it disconnected")
			t.ask(d, d.Session, askFirst, timesGone)
		}
		t.hear(heard, d)
		if !t.takeEarly(d) {
			t.owner.News(News{Kind: Away, Device: d, Before: before})
		}
		return
	}
	again := d.Online() && m.Session == d.Session
	if again {
		d.Birth = t.alike.birth(m)
		d.answered()
	} else {
		disputed, other := t.returned(d, m.Session), d.Session
		d.born(m, t.alike.birth(m))
		if disputed {
			t.dispute(d, before, other)
			return
		}
		if d.doubt != nil && t.j.Now <= d.returnedAt+returnsWithin {
			t.spoken(d, m.Session)
		}
		t.Resend(d)
	}
	t.hear(heard, d)
	t.root.SawTerm(m.SeenTerm, 0)
	t.owner.News(News{Kind: Birth, Device: d, Before: before, Again: again})
	t.takeEarly(d)
}

// gone notes that nobody speaks for a device any more; its light is another
// matter.
func (t *Table) gone(d *Device, why string) {
	before, next := d.Standing(), Offline
	if d.state == Announced && d.call < t.calls {
		next = Unheard
	}
	d.become(next)
	d.own().GoneAt = t.j.Now
	t.owner.News(News{Kind: Gone, Device: d, Before: before, Why: why})
}

// takeEarly takes a report that came before its birth.
func (t *Table) takeEarly(d *Device) bool {
	early := d.early
	if early == nil || early.Session != d.Session {
		return false
	}
	d.own().early = nil
	t.Reported(d, early)
	return true
}

// Reported takes a report. One of a former life is dropped, one that is ahead
// of its birth is kept for it. In a dispute the incumbent's counts.
func (t *Table) Reported(d *Device, m *proto.Reported) {
	disputed := d.state == Disputed
	if disputed && m.Session != d.doubt.incumbent.session || !t.believe(d, t.inReport(d, m)...) {
		return
	}
	t.root.SawTerm(m.SeenTerm, m.SeenLife)
	if m.Session != d.Session && !disputed {
		d.own().early = m
		t.Spoke(d, m.Session)
		return
	}
	first := d.Report == nil || d.Report.Session != m.Session
	if !first && m.Seq < d.Report.Seq && t.overtaken(d, m.Seq) {
		return
	}
	if d.lowerAt != 0 {
		d.own().lowerAt = 0
	}
	d.answered()
	before, heard := d.Standing(), d.Heard()
	t.restarted(d, m.Session, m.LastEvent)
	d.Report, d.ReportAt = t.Keep(d, m), t.j.Now
	t.told(d, before.Pending)
	if d.Online() && d.state != Present && !disputed {
		d.become(Present)
	}
	t.hear(heard, d)
	if before.Pending && !d.Pending() {
		d.resendAt = journal.Never
	} else if d.Pending() {
		t.queue(d)
	}
	t.owner.News(News{Kind: Reported, Device: d, Before: before, First: first})
}

// overtaken: a report is older than the last one. When such ones go on coming,
// and rise, it is the last one whose number was false.
func (t *Table) overtaken(d *Device, seq uint64) bool {
	if d.lowerAt == 0 || seq <= d.lower {
		x := d.own()
		x.lower, x.lowerAt = seq, max(1, t.j.Now)
	}
	return t.j.Now < d.lowerAt+strangerLate
}

// Ack takes a device's answer.
func (t *Table) Ack(d *Device, m *proto.Ack) {
	t.answers(d, m)
	if d.state == Disputed || d.Online() && m.Session != d.Session {
		t.Spoke(d, m.Session)
		return // of a former life
	}
	if !t.believe(d, t.inAck(d, m)...) {
		return
	}
	t.root.SawTerm(m.CurrentTerm, 0)
	n := News{Kind: Spoke, Device: d, Before: d.Standing(), Ack: m, Broke: d.state == Silent}
	if n.Broke {
		d.answered()
		d.become(Present)
	}
	t.owner.News(n)
	switch m.Phase {
	case proto.PhaseCommit:
		if m.Code == proto.NotStaged && d.Pending() {
			t.Resend(d)
		}
	case proto.PhaseCommand:
		t.root.Answer(d, m)
	case proto.PhaseProtocol:
		what := "agent"
		if d.ID.IsSwitch() {
			what = "switch"
		}
		// Logged, not kept: a flood of them must not push the events out.
		t.j.Line(journal.Line{Level: journal.Warn, Message: what + " refused a message", Rule: "protocol", Node: int64(d.ID), Ring: d.ring(), Generation: m.Generation,
			Text: proto.Clip(fmt.Sprintf("%s %s (limit %s): %s", m.Code, m.Field, m.Limit, m.Reason))})
	}
}

// Contradicted reports whether the devices show that the store they were
// restored from is not the latest - an older copy, or another planner was here -
// and says in what; last is the last generation that it decided. What runs is
// right then, and is adopted as it is.
func (t *Table) Contradicted(last proto.Generation) bool {
	for i := range t.Devices {
		if why := t.Devices[i].contradicts(last); why != "" {
			t.j.Note(journal.Warn, "the store does not know what runs; it counts as lost", journal.Note{Rule: "adopt", Node: int64(t.Devices[i].ID), Text: why})
			return true
		}
	}
	return false
}
