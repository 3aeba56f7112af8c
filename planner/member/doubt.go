package member

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// doubt is what is known of a number that may be two agents'. Births alone are
// unverified: whoever reaches the broker can say them. A life that is there answers
// a command, whichever life that is for, and quotes its correlation; one that is
// only spoken of does not.
type doubt struct {
	asked     [4]proto.Corr // of the last commands
	askedAt   time.Duration
	askedOf   proto.Session // whose birth answers the last one, 0: it did
	askAt     time.Duration // of the next one, Never: none
	wait      time.Duration // after that
	alive     [2]proto.Session
	aliveAt   time.Duration     // when the first of them last answered
	spokenAt  time.Duration     // when another than that was last said to be born
	incumbent life              // the one that counts: it answered first, or returned first
	since     time.Duration     // when another than before was born
	proven    bool              // two are there: both answered, or returned in turn
	born      [2]proto.Presence // the last birth, and the last of another life
}

// who is a life, with where it runs if it said so.
func (x *doubt) who(s proto.Session) string {
	name := fmt.Sprintf("session %016x", uint64(s))
	for _, b := range x.born {
		if b.Session == s && b.Host != "" {
			name += " on " + proto.Clip(b.Host)
		}
	}
	return name
}

// alone: one life has answered since anything was said of another, and no other
// ever did.
func (x *doubt) alone() bool { return x.alive[0] != 0 && x.alive[1] == 0 && x.aliveAt > x.spokenAt }

// spoken hears of a birth while a number is in doubt: whoever was born is asked.
func (t *Table) spoken(d *Device, s proto.Session) {
	x := d.doubt
	if s != x.alive[0] {
		x.spokenAt = t.j.Now
	}
	if !x.alone() && x.alive[1] == 0 {
		x.askAt, x.wait = max(t.j.Now, x.askedAt+askAnswer), askFirst
		t.askAt = min(t.askAt, x.askAt)
	}
}

// weigh asks which sessions answer, ends a quarantine that is over, and says when it
// wants to be called again.
func (t *Table) weigh(d *Device) time.Duration {
	x, ends := d.doubt, journal.Never
	if x == nil {
		return journal.Never
	}
	if d.state == Disputed {
		ends = x.since + quarantine
		switch {
		case x.alone():
			ends = min(ends, x.spokenAt+unverified)
		case !x.proven:
			ends = x.since + unverified
		}
		if t.j.Now >= ends {
			why := fmt.Sprintf("one agent alone for %v", ends-x.since)
			if x.alone() {
				d.lives(x.alive[0])
				why = "one agent answers, the other was only spoken of"
			}
			t.settle(d, why)
			return journal.Never
		}
	}
	if t.j.Now >= x.askAt {
		copy(x.asked[1:], x.asked[:])
		x.asked[0] = t.j.Command(d.ID, d.Session, proto.Command{Verb: proto.VerbReannounce})
		x.askedAt, x.askedOf, x.askAt = t.j.Now, d.Session, t.j.Now+x.wait
		x.wait = min(2*x.wait, resendLast)
		if d.state != Disputed {
			x.askAt = journal.Never
		}
	}
	return min(ends, x.askAt)
}

// answers hears whether an answer shows a life that is there. In a dispute the
// only one that is counts, whoever was there first by what was said.
func (t *Table) answers(d *Device, m *proto.Ack) {
	x := d.doubt
	if x == nil || m.Phase != proto.PhaseCommand || m.Session == 0 || m.Corr == (proto.Corr{}) || !slices.Contains(x.asked[:], m.Corr) {
		return
	}
	switch {
	case x.alive[0] == 0:
		x.alive[0], x.aliveAt = m.Session, t.j.Now
		if d.state == Disputed {
			t.count(d, m.Session)
		}
	case x.alive[0] == m.Session:
		x.aliveAt = t.j.Now
	default:
		x.alive[1] = m.Session
		t.prove(d, m.Session)
	}
	if x.alone() || x.alive[1] != 0 {
		x.askAt = journal.Never
	}
	t.askAt = t.j.Now
}

// count makes a life the one whose word on its light counts in a dispute.
func (t *Table) count(d *Device, s proto.Session) {
	x := d.doubt
	if d.Session != s { // it has refused a command for another life: it is to announce itself
		d.lives(s)
		t.j.Command(d.ID, s, proto.Command{Verb: proto.VerbReannounce})
	}
	if x.incumbent.session == s {
		return
	}
	before := d.Standing()
	x.incumbent = d.life(s)
	t.believed(d, before)
}

// life is a former session with what is remembered of it.
func (d *Device) life(s proto.Session) life {
	for i := range d.former {
		if d.former[i].session == s {
			return d.former[i]
		}
	}
	return life{session: s}
}

// believed takes the incumbent's report again for the device's.
func (t *Table) believed(d *Device, before Standing) {
	n := News{Kind: Weighed, Device: d, Before: before}
	if l := &d.doubt.incumbent; l.report != (Report{}) {
		t.setEvents(d, l.events)
		d.timed = d.timed && d.ReportOf() == l.session
		l.report.become(d, l.session)
		d.ReportAt = t.j.Now
		d.own().whole = l.whole
		n.Kind, n.First = Reported, true
	}
	t.owner.News(n)
}

// returned counts births of lives that others had followed already, without
// being asked: two agents have one number, and throw each other off the broker. The
// first may be an old message that came late; from it on the number is held.
func (t *Table) returned(d *Device, s proto.Session) bool {
	if s == d.Session {
		return false // it lost its connection, and nobody else was there
	}
	for i := range d.former {
		if d.former[i].session != s || s == d.asks.session && t.j.Now < d.asks.last+askAnswer {
			continue
		}
		x := d.own()
		if t.j.Now > x.returnedAt+returnsWithin {
			x.returns = 0
		}
		if x.returns == 0 || x.doubt == nil {
			x.doubt = &doubt{askAt: journal.Never, askedAt: -askAnswer, spokenAt: -1, incumbent: x.former[i]}
		}
		x.returnedAt = t.j.Now
		x.returns++
		return true
	}
	return false
}

// dispute takes no more orders from a number that two agents may claim, and gives
// it none. What is there stays as it is: the one that was there first goes on
// telling of its light, and the other's word in between is forgotten. A former life
// that is back once and not again was only spoken of, unless both answer.
func (t *Table) dispute(d *Device, before Standing, other proto.Session, m *proto.Presence) {
	d.become(Disputed)
	x := d.own()
	x.doubt.born[0] = *m
	x.asks.at, x.doubt.since = journal.Never, t.j.Now
	x.claim = fmt.Sprintf("a former life is back: %s after %s; it is asked whether both are there", x.doubt.who(d.Session), x.doubt.who(other))
	if x.returns >= returnsDisputed {
		t.prove(d, other)
	}
	t.spoken(d, d.Session)
	t.believed(d, before)
}

// prove names two agents, once.
func (t *Table) prove(d *Device, other proto.Session) {
	x := d.own()
	if x.doubt.proven || d.state != Disputed {
		return
	}
	x.doubt.proven = true
	x.claim = fmt.Sprintf("two agents claim this number: %s and %s; stop one of them; then 'ocsctl clear %d', or %d minutes, end it",
		x.doubt.who(min(other, d.Session)), x.doubt.who(max(other, d.Session)), d.ID, quarantine/time.Minute)
	t.j.Note(journal.Error, "two agents with one number", journal.Note{Rule: "duplicate", Node: int64(d.ID), Ring: d.ring(),
		Text: d.claim + fmt.Sprintf("; nothing is planned for it until it is cleared, one is alone for %v, or only one answers for %v", quarantine, unverified)})
}

// claims hears one of the two.
func (t *Table) claims(d *Device, m *proto.Presence) {
	x, s := d.doubt, m.Session
	if x.born[0].Session != s {
		x.born[1] = x.born[0]
	}
	x.born[0] = *m
	asked := s == x.askedOf && t.j.Now < x.askedAt+askAnswer
	if asked {
		x.askedOf = 0
	}
	if other := d.Session; other != s {
		d.lives(s)
		x.since = t.j.Now
		if !asked && (s == x.incumbent.session || slices.ContainsFunc(d.former, func(l life) bool { return l.session == s })) {
			d.own().returns++
			d.returnedAt = t.j.Now
			t.prove(d, other)
		}
	}
	t.spoken(d, s)
}

// settle ends a quarantine: whoever is there is asked to announce itself. Of what was
// not proven the returns stay, so that two that take long turns are found too.
func (t *Table) settle(d *Device, why string) {
	before := d.Standing()
	d.become(Offline)
	x := d.own()
	if x.doubt.proven {
		x.former, x.returns = nil, 0
		t.j.Note(journal.Info, "quarantine is over", journal.Note{Rule: "duplicate", Node: int64(d.ID), Ring: d.ring(), Text: why})
	}
	x.GoneAt, x.doubt = t.j.Now, nil
	t.ask(d, d.Session, 0, timesGone)
	t.owner.News(News{Kind: Weighed, Device: d, Before: before})
}
