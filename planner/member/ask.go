package member

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// What the planner holds of a device may be wrong: a death note that was
// forged, a birth of long ago, an answer that was lost. So whoever is silent,
// gone, or contradicted is asked to announce itself, less and less often; a
// device that is well says so, and the view heals by its own word.

// asking is a device that is asked to announce itself.
type asking struct {
	session proto.Session // who is asked
	at      time.Duration // when next, Never: not
	wait    time.Duration // after that
	left    int           // so many times
	last    time.Duration // when it was
	corr    proto.Corr    // of that question
}

// stranger is a life that speaks and is not the one that we know.
type stranger struct {
	session proto.Session
	since   time.Duration
}

func (t *Table) ask(d *Device, s proto.Session, after time.Duration, times int) {
	if s == 0 {
		return
	}
	x := &d.own().asks
	x.session, x.at, x.wait, x.left = s, t.j.Now+after, max(after, askFirst), times
	t.askAt = min(t.askAt, x.at)
}

// Ask asks those that are due, and ends quarantines that are over. Without
// leave it waits.
func (t *Table) Ask(may bool) {
	if !t.j.LinkUp || t.j.Now < t.askAt {
		return
	}
	if !may {
		t.askAt = t.j.Now + sweepPeriod
		return
	}
	t.askAt = journal.Never
	for i := range t.Devices {
		d := &t.Devices[i]
		t.askAt = min(t.askAt, t.weigh(d))
		x := &d.asks
		if x.at <= t.j.Now {
			x.corr = t.j.Command(d.ID, x.session, proto.Command{Verb: proto.VerbReannounce})
			x.last, x.at = t.j.Now, t.j.Now+x.wait
			if x.wait = min(2*x.wait, resendLast); x.left > always/2 {
				x.wait = min(x.wait, askAlways)
			}
			switch x.left--; {
			case x.left <= 0 && !d.Online(): // its next birth may be lost, and it may have little to say
				x.left, x.at = 1, t.j.Now+askGone
			case x.left <= 0:
				x.at = journal.Never
			}
		}
		t.askAt = min(t.askAt, x.at)
	}
}

// answered: it has spoken, and need not be asked.
func (d *Device) answered() {
	if d.Online() {
		d.unasked()
	}
}

func (d *Device) unasked() {
	if d.asks.at != journal.Never {
		d.own().asks.at = journal.Never
	}
}

// AskAt is when the device is asked to announce itself, Never when it is not.
func (d *Device) AskAt() time.Duration { return d.asks.at }

// Doubt asks a device until it answers: it is held to be gone, though it is online.
func (t *Table) Doubt(d *Device) { t.ask(d, d.Session, askFirst, always) }

// answersNow: a report is younger than the last question, and that than a doubt.
func (d *Device) answersNow(m *proto.Reported, doubt time.Duration) bool {
	return m.Answers != nil && *m.Answers == d.asks.corr && d.asks.last > doubt
}

// Quotes: an answer is one to the last question, and so was sent after it.
func (d *Device) Quotes(m *proto.Ack) bool { return m.Corr != (proto.Corr{}) && m.Corr == d.asks.corr }

// tried: it refused, did not answer or did not follow the last time that something was
// wanted of it.
func (d *Device) tried() bool { return d.Refusals > 0 || d.silences > 0 || d.trailed > 0 }

// Silences is how many prepares in a row it did not answer.
func (d *Device) Silences() int { return d.silences }

// Trails: it has prepared a plan that was committed, and is not where that has it.
func (d *Device) Trails() bool { return d.Refusal.Code == proto.Expired && d.Refusal.Gen != 0 }

// trail leaves a device out that has prepared what is wanted of it, was told the
// decision a while ago, and does not report that it is there: whatever it said, its
// light need not be where the plan has it.
func (n *Numbers) trail(d *Device) {
	t, before, x := n.t, d.Standing(), d.own()
	d.took = false
	x.trailed++
	x.wrong = wrong{tookNoPlan, fmt.Sprintf("prepared generation %d and does not follow it", d.Want.Gen), t.j.Now}
	x.Refusal = Refusal{Code: proto.Expired, Gen: d.Want.Gen, Reason: x.wrong.why, Until: t.j.Now + Backoff(x.trailed+trailLeast)}
	t.j.Note(journal.Warn, "a device does not follow", journal.Note{Rule: "trails", Node: int64(d.ID), Ring: d.ring(), Gen: d.Want.Gen, Text: x.wrong.why})
	t.owner.News(News{Kind: Weighed, Device: d, Before: before})
}

// Silence leaves a device out that did not answer: until it speaks, for which
// it is asked, or at the latest for a time. One that does so again and again is
// waited out besides: it speaks and does not answer.
func (t *Table) Silence(d *Device, until time.Duration) {
	if d.state != Present {
		return // in a new life it has not been asked
	}
	d.become(Silent)
	x := d.own()
	x.silentUntil, x.hushed = until, false
	if x.silences++; x.silences > 1 {
		x.wrong = wrong{tookNoPlan, fmt.Sprintf("did not answer %d prepares", x.silences), t.j.Now}
	}
	if x.silences > 2 {
		x.Refusal = Refusal{Code: proto.Expired, Reason: fmt.Sprintf("did not answer %d prepares", x.silences), Until: t.j.Now + Backoff(x.silences)}
	}
	t.ask(d, d.Session, min(Backoff(x.silences), resendLast), always)
}

// Spoke hears that a life of a device says something. One that is not known to
// be the present one is asked who it is, unless it was only late. What a new life sends
// again of the one before it does not speak for that one. A device that speaks on after the broker
// had it dead was late, or its new birth was lost: it is asked a moment later.
func (t *Table) Spoke(d *Device, s proto.Session) {
	x := &d.stranger
	switch {
	case s == d.Session && d.Online() || d.state == Disputed:
		return
	case s == d.Session && x.session != s && x.session != 0 && t.j.Now < x.since+strangerForgotten:
	case x.session != s || d.Online() && t.j.Now > x.since+strangerForgotten:
		d.own().stranger = stranger{s, t.j.Now}
		if s == d.Session {
			t.ask(d, s, strangerLate, timesGone)
		}
	case t.j.Now >= x.since+strangerLate:
		x := d.own()
		if x.stranger.since = t.j.Now; d.Session == 0 || s == d.Session { // else of a former life
			x.lostAt = t.j.Now
		}
		t.ask(d, s, 0, 1)
	}
}

// Health hears which report was the device's last. When another one is held, and
// still is with later telemetry, that was lost or the held one is not its own.
func (t *Table) Health(d *Device, m *proto.Health) {
	t.Spoke(d, m.Session)
	if m.Session == d.Session {
		d.signs.beat(m.Seq, t.j.Now)
		beLate(d, time.Duration(m.LateMillis)*time.Millisecond)
		eased(d, t)
	}
	switch {
	case m.Session != d.Session || !d.Online() || d.state == Disputed || m.Reported == 0:
	case d.ReportOf() == m.Session && d.Report.Seq() == m.Reported:
		if d.missed != 0 {
			d.own().missed = 0
		}
	case d.missed != m.Reported:
		x := d.own()
		x.missed, x.missedAt = m.Reported, t.j.Now
	case t.j.Now >= d.missedAt+strangerLate:
		x := d.own()
		x.missedAt, x.lostAt = t.j.Now, t.j.Now
		t.ask(d, d.Session, 0, 1)
	}
}

// lateLeast is by how much an agent's work begins too late at least to be told, lateTimes
// in a row. chosen: a tenth of a processor in slices of 3 ms makes 27; an agent that shares
// a machine is as late once or twice, and not three times, which it tells.
const (
	lateLeast = 25 * time.Millisecond
	lateTimes = 2
)

// beLate takes by how much a device says that its work began too late.
func beLate(d *Device, by time.Duration) {
	switch {
	case by >= lateLeast:
		x := d.own()
		x.late, x.lates = by, x.lates+1
	case d.lates > 0:
		d.own().lates = 0
	}
}

// Late is by how much its work begins too late again and again, 0: it does not.
func (d *Device) Late() time.Duration {
	if d.lates < lateTimes || !d.Answers() {
		return 0
	}
	return d.late
}

// lossStands is how long a lost message counts. chosen: a broker that loses some is
// found by six rounds of telemetry.
const lossStands = time.Minute

// Lossy are the devices of which a later message told lately that one before it was
// lost or is late, and when the first of them did.
func Lossy(t *Table) (ids []proto.NodeID, first time.Duration) {
	first = t.j.Now
	for i := range t.Devices {
		if d := &t.Devices[i]; d.lostAt != 0 && t.j.Now < d.lostAt+lossStands {
			ids, first = append(ids, d.ID), min(first, d.lostAt)
		}
	}
	return ids, first
}

// life is one life of a device: what it said last, and how far its events came.
type life struct {
	session proto.Session
	report  Report // a blank one: it never reported
	whole   *proto.Reported
	events  journal.Cursor
}

// maxFormer is how many of them are remembered. chosen: two agents with one
// number are two, and each may start again once.
const maxFormer = 4

// followed remembers the present life: another one takes its place.
func (d *Device) followed() {
	l, x := life{session: d.Session}, d.lived()
	at := slices.IndexFunc(d.former, func(o life) bool { return o.session == d.Session })
	switch {
	case at >= 0:
		l = d.former[at]
	case len(d.former) < maxFormer:
		x.former, at = append(x.former, life{}), len(x.former)
	default:
		at = maxFormer - 1
	}
	if d.ReportOf() == d.Session {
		l.report, l.whole, l.events = d.Report, d.whole, d.Events
	}
	copy(d.former[1:at+1], d.former[:at])
	d.former[0] = l
}

// Clear forgets what keeps a device out - a quarantine, a refusal, numbers that
// were not believed, an answer that did not come - and asks it to announce
// itself. It says what that was, "" when nothing did.
func (t *Table) Clear(d *Device) (was string) {
	was = d.WhyNot()
	if d.state == Disputed {
		t.settle(d, "cleared by an operator")
		return was
	}
	before := d.Standing()
	x := d.own()
	x.Refusal, x.Refusals, x.silences, x.odd = Refusal{}, 0, 0, ""
	if d.state == Silent {
		d.become(Present)
	}
	t.ask(d, d.Session, 0, timesGone)
	t.owner.News(News{Kind: Weighed, Device: d, Before: before})
	return was
}
