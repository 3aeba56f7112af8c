package member

import (
	"fmt"
	"slices"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// ForgetEvents is what its events leave of the store when the device is gone.
func (d *Device) ForgetEvents() journal.Record {
	return journal.Record{Key: journal.NumberedKey(journal.PrefixSeen, uint64(d.ID))}
}

// restarted notices that a device's numbers begin anew, and says so: it is another
// board, its journal is lost, or is an older one as a whole, which the device
// itself cannot tell.
func (t *Table) restarted(d *Device, session proto.Session, lastEvent uint64) {
	if session != d.Events.Session && lastEvent < d.Events.Last {
		t.j.Note(journal.Warn, "a device's numbers went back", journal.Note{Rule: "journal", Node: int64(d.ID), Ring: d.ring(),
			Text: fmt.Sprintf("its last event was %d and is %d: its journal was lost, or an older one put in its place; its light is believed", d.Events.Last, lastEvent)})
		t.setEvents(d, journal.Cursor{})
	}
}

// rewound notices that the numbers of a life's events were false: it says in what is
// younger than a question that it gave out fewer than we took.
func (t *Table) rewound(d *Device, m *proto.Reported) {
	switch {
	case m.Session != d.Events.Session || m.LastEvent >= d.Events.Last:
		if d.fewerAt != 0 {
			d.own().fewerAt = 0
		}
		return
	case d.fewerAt == 0: // the event may have overtaken the report
		d.own().fewerAt = max(1, t.j.Now)
	}
	if t.j.Now < d.fewerAt+strangerLate || !d.answersNow(m, d.fewerAt) {
		t.askNow(d)
		return
	}
	d.own().fewerAt = 0
	t.j.Note(journal.Warn, "a device's numbers went back", journal.Note{Rule: "journal", Node: int64(d.ID), Ring: d.ring(),
		Text: fmt.Sprintf("event %d came, and it says that its last was %d: somebody else spoke for it", d.Events.Last, m.LastEvent)})
	t.setEvents(d, journal.Cursor{Last: m.LastEvent, Session: m.Session})
}

func (t *Table) setEvents(d *Device, e journal.Cursor) {
	if len(d.ahead) > 0 {
		d.own().ahead = nil
		t.holding--
	}
	d.Events = e
}

// Event takes an event once and in order. One that is ahead waits for those
// before it; a former one is only acknowledged again.
func (t *Table) Event(d *Device, m *proto.Event) {
	c := &d.Events
	t.Spoke(d, m.Session)
	if d.state == Disputed || !t.Numbers.believe(d, claim{"seq", c.Last, m.Seq}, claim{"bypass_seq", d.bypass(m.Session), m.BypassSeq}) {
		return
	}
	if len(d.ahead) > 0 {
		d.own().eventAt = t.j.Now
	}
	if c.Session != 0 && c.Session != m.Session && m.Seq < c.Last && d.Online() && m.Session == d.Session && d.ReportOf() == d.Session {
		t.restarted(d, d.ReportOf(), d.Report.LastEvent())
	}
	switch {
	case m.Seq <= c.Last:
		t.j.AckLater(d.ID, c)
	case m.Seq == c.Last+1:
		t.take(d, m)
	default:
		t.hold(d, m)
	}
}

// take takes an event, which is the next, and those that waited for it.
func (t *Table) take(d *Device, m *proto.Event) {
	for ; m != nil; m = t.next(d) {
		t.j.Take(d.ID, &d.Events, m, d.age(m, t.j.Now))
		t.Courses.event(d, m, t.j.Now)
		t.owner.Told(d, m)
	}
}

func (t *Table) hold(d *Device, m *proto.Event) {
	at, found := slices.BinarySearchFunc(d.ahead, m.Seq, func(e *proto.Event, seq uint64) int { return int(int64(e.Seq - seq)) })
	if found || len(d.ahead) >= maxAhead {
		return // it comes again
	}
	x := d.own()
	if len(x.ahead) == 0 {
		x.gapSince = t.j.Now
		t.holding++
	}
	x.ahead = slices.Insert(x.ahead, at, m)
	t.gapAt = min(t.gapAt, x.gapSince+gapPatience)
}

// next is the event that waited for the one just taken; nil: none did.
func (t *Table) next(d *Device) *proto.Event {
	for len(d.ahead) > 0 && d.ahead[0].Seq <= d.Events.Last+1 {
		m, x := d.ahead[0], d.own()
		if x.ahead = slices.Delete(x.ahead, 0, 1); len(d.ahead) == 0 {
			t.holding--
		}
		if m.Seq == d.Events.Last+1 {
			return m
		}
	}
	return nil
}

// unsaid drops events that are waited for in vain: the device reports that it
// has not given their numbers out, and no former life gave out more. It tells whether
// none is left.
func (t *Table) unsaid(d *Device) bool {
	if d.ReportOf() == d.Session {
		x, last := d.own(), d.Report.LastEvent()
		x.ahead = slices.DeleteFunc(x.ahead, func(e *proto.Event) bool { return e.Seq > last })
	}
	if len(d.ahead) > 0 {
		return false
	}
	t.holding--
	return true
}

// CheckGaps gives up events that did not come in several re-sends.
func (t *Table) CheckGaps() {
	if !t.j.LinkUp || t.j.Now < t.gapAt {
		return
	}
	t.gapAt = journal.Never
	for i := 0; i < len(t.Devices) && t.holding > 0; i++ {
		d := &t.Devices[i]
		c := &d.Events
		if len(d.ahead) == 0 {
			continue
		}
		switch {
		case !d.Online(): // it sends all of them again when it is back
			d.own().ahead = nil
			t.holding--
			continue
		case t.j.Now < d.gapSince+gapPatience:
			t.gapAt = min(t.gapAt, d.gapSince+gapPatience)
			continue
		case t.unsaid(d):
			continue
		case max(d.signs.last, d.ReportAt, d.eventAt) <= d.gapSince: // it may be gone, and nobody have told
			if d.asks.at == journal.Never {
				t.Doubt(d)
			}
			t.gapAt = min(t.gapAt, t.j.Now+askFirst)
			continue
		}
		// What a device that we know nothing of told before went to another
		// planner; what it had not delivered yet has been sent again by now.
		if c.Last != 0 || c.Session != 0 {
			t.gaps += d.ahead[0].Seq - c.Last - 1
			d.own().lostAt = t.j.Now
			t.j.Note(journal.Error, "events are missing", journal.Note{Rule: "gap", Node: int64(d.ID), Ring: d.ring(),
				Text: fmt.Sprintf("events %d to %d did not come in %d s", c.Last+1, d.ahead[0].Seq-1, int(gapPatience.Seconds()))})
		}
		c.Last = d.ahead[0].Seq - 1
		d.own().gapSince = t.j.Now
		t.take(d, t.next(d))
		if len(d.ahead) > 0 {
			t.gapAt = min(t.gapAt, t.j.Now+gapPatience)
		}
	}
}
