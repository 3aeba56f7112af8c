package member

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// What a table hears: births, death notes, reports and answers.

func (t *Table) hear(was bool, d *Device) {
	if !was && d.Heard() {
		t.heard++
		t.heardAt = t.j.Now
	}
}

// Live notes that a device speaks now. What a broker kept does not show that: a broker
// that died may have kept the birth of who died meanwhile.
func (d *Device) Live(t *Table) { d.call = t.calls }

// Echo: a birth that the broker kept is of a life that has reported, and says nothing of
// now. A device that is held to be gone is asked.
func (d *Device) Echo(t *Table, s proto.Session) bool {
	known := d.Heard() && d.state != Disputed && d.Session == s && d.Known && d.ReportOf() == s
	if known && d.state == Offline {
		t.ask(d, s, 0, timesGone)
	}
	return known
}

// Presence takes a birth or a death note. A death note of another session is
// of a former life.
func (t *Table) Presence(d *Device, m *proto.Presence) {
	if d.state == Disputed {
		if m.Online {
			t.claims(d, m)
		}
		return
	}
	if m.Online && !t.Numbers.believe(d, t.Numbers.standing("", m.SeenTerm, m.Term, m.Generation)...) {
		return
	}
	before, heard := d.Standing(), d.Heard()
	if !m.Online {
		if d.Online() && m.Session != d.Session {
			return
		}
		d.lives(m.Session)
		if d.last != m.Why {
			d.own().last = m.Why
		}
		if d.state == Unheard {
			d.become(Offline)
		} else if d.Online() {
			why := cmp.Or(m.Why, "the broker reported it disconnected")
			if m.Why == "" && t.j.Stood != 0 && t.j.Now < t.j.Stood+standstillEcho {
				why += ", when this planner had stood still"
			}
			t.gone(d, why)
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
			t.dispute(d, before, other, m)
			return
		}
		if d.doubt != nil && t.j.Now <= d.returnedAt+returnsWithin {
			t.spoken(d, m.Session)
		}
		if len(d.ahead) > 0 {
			d.own().gapSince = t.j.Now // what is missing is sent again from now on
		}
		t.Resend(d)
		t.ask(d, d.Session, reportWait, always) // its report may be lost, and nothing is known of its light without
	}
	t.hear(heard, d)
	t.Numbers.voiced(d, voice{m.SeenTerm, 0, d.voice.gen, d.voice.of, max(1, t.j.Now)})
	t.owner.News(News{Kind: Birth, Device: d, Before: before, Again: again})
	t.takeEarly(d)
}

// standstillEcho is for how long after a standstill of the planner what the broker says is
// of that time. chosen: longer than what had come meanwhile takes to be read.
const standstillEcho = 3 * time.Second

// gone notes that nobody speaks for a device any more; its light is another
// matter. It is asked all the same: a death note may be forged, and a broker may have
// lost the birth of an agent that never knew it to be away.
func (t *Table) gone(d *Device, why string) {
	before, next := d.Standing(), Offline
	if d.state == Announced && d.call < t.calls {
		next = Unheard
	}
	d.become(next)
	x := d.own()
	x.GoneAt, x.deafWhen = t.j.Now, max(t.upAt, t.j.Stood) > d.signs.last
	t.ask(d, d.Session, askFirst, timesGone)
	t.owner.News(News{Kind: Gone, Device: d, Before: before, Why: why})
}

// takeEarly takes a report that came before its birth.
func (t *Table) takeEarly(d *Device) bool {
	early := d.early
	if early == nil || early.Session != d.Session {
		return false
	}
	d.own().early = nil
	t.Reported(d, early, d.truly)
	return true
}

// Reported takes a report. One of a former life is dropped, one that is ahead
// of its birth is kept for it. In a dispute the incumbent's counts. sealed: by a key
// that is believed.
func (t *Table) Reported(d *Device, m *proto.Reported, sealed bool) {
	disputed := d.state == Disputed
	if disputed && m.Session != d.doubt.incumbent.session || !t.Numbers.believe(d, t.Numbers.inReport(d, m)...) {
		return
	}
	t.Numbers.voiced(d, voice{m.SeenTerm, m.SeenLife, t.Numbers.ungiven(m), t.j.Term, max(1, t.j.Now)})
	if m.Session != d.Session && !disputed {
		d.own().early, d.own().truly = m, sealed
		t.Spoke(d, m.Session)
		return
	}
	first := d.ReportOf() != m.Session
	if !first && m.Seq < d.Report.Seq() && (sealed && d.sealed && t.replayed(d, m) || !(sealed && d.sealed) && t.overtaken(d, m.Seq)) {
		return
	}
	d.sealed = sealed
	if d.lowerAt != 0 {
		d.own().lowerAt = 0
	}
	d.answered()
	before, heard := d.Standing(), d.Heard()
	t.restarted(d, m.Session, m.LastEvent)
	t.rewound(d, m)
	d.timed = d.timed && !first
	news := first || m.Seq > d.Report.Seq() // else the broker kept it
	t.Keep(d, m)
	d.full = slices.ContainsFunc(m.Alarms, func(a proto.Alarm) bool { return a.Kind == proto.EvJournal })
	d.ReportAt = t.j.Now
	t.Courses.told(d, before.Pending, t.j.Now)
	if d.state == Offline && news {
		t.Spoke(d, m.Session)
	}
	if d.Online() && d.state != Present && !disputed {
		d.become(Present)
	}
	t.hear(heard, d)
	if d.trailed > 0 && (d.At(*d.Want.Decided) || d.Report.Gen == d.Refusal.Gen) {
		if d.own().trailed = 0; d.Trails() {
			d.Refused(Refusal{}) // it follows, late
		}
	}
	switch pending := d.Pending(); {
	case before.Pending && !pending:
		d.resendAt = journal.Never
	case pending && !before.Pending:
		t.Resend(d) // it had told what its disk did not have when it was killed, and no sweep may be due
	case pending:
		t.queue(d)
	}
	t.owner.News(News{Kind: Reported, Device: d, Before: before, First: first})
	eased(d, t)
}

// replayed: a sealed report is older than the last one. A broker may have kept it; or
// a holder of the device's key gave the last one a false number. The device is asked, and
// what answers a question that is younger than the last report is believed, whatever its
// number: then that was not its own, or it lied, which is named.
func (t *Table) replayed(d *Device, m *proto.Reported) bool {
	if d.answersNow(m, d.ReportAt) {
		d.own().wrong = wrong{"not believed", fmt.Sprintf("report %d answered a question after report %d had come: one of them is false", m.Seq, d.Report.Seq()), t.j.Now}
		return false
	}
	t.askNow(d)
	return true
}

// askNow asks a device of whose word there is a doubt, not too soon after it was asked.
func (t *Table) askNow(d *Device) {
	if d.asks.at == journal.Never {
		t.ask(d, d.Session, max(time.Millisecond, d.asks.last+strangerLate-t.j.Now), 1)
	}
}

// overtaken: a report without a seal is older than the last one. When such ones go on
// coming, and rise, it is the last one whose number was false.
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
	if !t.Numbers.believe(d, t.Numbers.inAck(d, m)...) {
		return
	}
	t.Numbers.voiced(d, voice{m.CurrentTerm, 0, d.voice.gen, d.voice.of, max(1, t.j.Now)})
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
			Text: m.Words()})
	}
}
