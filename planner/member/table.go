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
	// Voiced is called when a device names a term that is not ours, or another
	// planner's life in our term; see Voices.
	Voiced()
	// Answer takes a device's answer to a command.
	Answer(d *Device, m *proto.Ack)
}

// Owner draws the conclusions: the planner of the rings, or of the circuits.
type Owner interface {
	// News follows up on one word of a device.
	News(n News)
	// Told draws from the next event of a device, in order.
	Told(d *Device, m *proto.Event)
	// Resendable reports whether what is wanted of a device may be sent again
	// as it is; else the owner tells it anew.
	Resendable(d *Device) bool
}

// Kind says what a News tells.
type Kind uint8

const (
	Birth    Kind = iota // a birth; Again: of the life that was online anyway
	Gone                 // nobody speaks for it any more; Why
	Away                 // a death note of one that was no longer online, or that came after Gone
	Reported             // Device.Report is new; First: of this life
	Spoke                // an answer: Ack; Broke: it ends a silence
	Weighed              // its reports are not believed any more, or again
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
}

// Table is all nodes, or all switches. It hears them, calls them after the
// broker was away, and sends again what they have not taken.
type Table struct {
	Devices []Device
	Numbers Numbers

	first proto.NodeID
	j     *journal.Journal
	root  Root
	owner Owner

	heard   int
	heardAt time.Duration // when one was heard for the first time, the last time
	calls   uint32        // roll calls so far
	upAt    time.Duration // when the broker was last reached anew
	callAt  time.Duration // when those that missed it are taken for offline
	sweepAt time.Duration
	pending []*Device     // all that are, and some that were
	unknown bool          // which are is not known: all are looked at
	askAt   time.Duration // when Ask wants to be called
	holding int           // devices that wait for a missing event
	gapAt   time.Duration
	gaps    uint64  // events given up
	Courses Courses // of the last generations
	alike   alike
	blank   *setback // shared by all devices that had no setback
}

// NewTable makes a table of n devices, the first of which has the number first.
func NewTable(first proto.NodeID, n int, j *journal.Journal, root Root, owner Owner) *Table {
	t := &Table{Devices: make([]Device, n), first: first, j: j, root: root, owner: owner, unknown: true, callAt: journal.Never, sweepAt: journal.Never, gapAt: journal.Never, askAt: journal.Never, blank: noSetback(), alike: alike{last: undecided}}
	t.Numbers.t, t.Numbers.Fresh = t, true
	for i := range t.Devices {
		t.Devices[i].init(first+proto.NodeID(i), t.blank)
	}
	return t
}

// Resize makes a table one of n devices: new ones are unheard, those above are
// forgotten. Devices move; whoever points to one has to look it up again.
func (t *Table) Resize(n int) {
	was := t.Devices
	t.Devices = make([]Device, n)
	copy(t.Devices, was)
	t.heard, t.holding, t.pending, t.unknown = 0, 0, nil, true
	for i := range t.Devices {
		d := &t.Devices[i]
		if i >= len(was) {
			d.init(t.first+proto.NodeID(i), t.blank)
		}
		d.queued = false
		if d.Heard() {
			t.heard++
		}
		if len(d.ahead) > 0 {
			t.holding++
		}
	}
	t.j.Repoint(func(id proto.NodeID, c *journal.Cursor) *journal.Cursor {
		switch d := t.Find(id); {
		case d != nil:
			return &d.Events
		case id.IsSwitch() == t.first.IsSwitch():
			return nil
		}
		return c
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
		return journal.Never
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
// are lost with it, and a device that does not come back is gone. Nothing sent without a
// broker arrived.
func (t *Table) LinkUp() {
	t.calls++
	t.callAt, t.upAt = journal.Never, t.j.Now
	for i := range t.Devices {
		d := &t.Devices[i]
		if d.Online() {
			t.callAt = t.j.Now + rollPatience/2
		}
		if d.Pending() {
			t.Resend(d)
		}
		if len(d.ahead) > 0 { // what is missing is sent again from now on
			d.own().gapSince = t.j.Now
		}
	}
}

// Roll asks those that have not been heard of, and takes them for offline in the end.
func (t *Table) Roll() {
	if !t.j.LinkUp || t.j.Now < t.callAt {
		return
	}
	t.callAt = journal.Never
	for i := range t.Devices {
		switch d := &t.Devices[i]; {
		case !d.Online() || d.call == t.calls:
		case t.j.Now < t.upAt+rollPatience:
			t.callAt = t.upAt + rollPatience
			t.askNow(d)
		default:
			t.gone(d, "it did not come back with the broker")
		}
	}
}

// Resend sends what is wanted of a device again with the next sweep.
func (t *Table) Resend(d *Device) {
	d.resendAt, d.resent, d.took = t.j.Now, 0, false
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
	if len(t.pending) < cap(t.pending)/4 {
		t.pending = slices.Clone(t.pending) // it was long once
	}
	slices.SortFunc(t.pending, func(a, b *Device) int { return int(a.ID) - int(b.ID) })
	var told []*Device // one for each decision
	for _, d := range t.pending {
		if !d.Pending() || !d.Online() || d.state == Disputed || !t.owner.Resendable(d) {
			continue
		}
		if d.resendAt <= t.j.Now {
			wait := min(ResendFirst<<d.resent, resendLast)
			switch {
			case d.took && d.resent < trailAsks: // the decision may be lost, or its report
				t.askNow(d)
				wait = trailWait
			case d.took:
				t.Numbers.trail(d)
				d.resent, wait = 0, ResendFirst
			case d.resent > 0:
				d.own().wrong = wrong{tookNoPlan, fmt.Sprintf("does not report generation %d, which it was sent again", d.Want.Gen), t.j.Now}
			}
			t.j.SendRaw(t.j.Topics.Desired(d.ID), proto.TopicDesired, []byte(d.Want.Payload))
			d.resendAt = t.j.Now + wait
			d.resent = min(d.resent+1, resentMost)
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
