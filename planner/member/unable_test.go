package member

import (
	"testing"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// present makes device 0 of a world one that reports.
func present(w *world) *Device {
	d := &w.t.Devices[0]
	w.t.Presence(d, &proto.Presence{Version: 1, Session: 7, Online: true})
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 1}, false)
	return d
}

// Goal: a device that says that it cannot write its journal takes no part before any
// plan asks it to, and does again when it says no more.
func TestWhoCannotWriteTakesNoPart(t *testing.T) {
	w := newWorld()
	d := present(w)
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2, Alarms: []proto.Alarm{{Kind: proto.EvJournal, Severity: proto.SeverityCritical, Text: "no space left"}}}, false)
	if d.Ready() || d.WhyNot() != "its agent cannot write its journal" {
		t.Fatalf("ready %t: %q", d.Ready(), d.WhyNot())
	}
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 3}, false)
	if !d.Ready() || d.WhyNot() != "" {
		t.Errorf("ready %t: %q", d.Ready(), d.WhyNot())
	}
}

// Goal: who stops its telemetry though the broker has it online is silent, is asked
// until it speaks, and is there again with its first word.
func TestWhoSaysNothingIsSilent(t *testing.T) {
	w := newWorld()
	d := present(w)
	for i := range uint64(3) {
		for range 2 { // a broker may hand it over twice
			w.t.Health(d, &proto.Health{Version: 1, Session: 7, Seq: i, Reported: 1})
		}
		w.j.Now += 10 * time.Second
	}
	if w.t.Hush(0); !d.Ready() {
		t.Fatal(d.WhyNot())
	}
	w.j.Now += silentAfter
	if w.t.Hush(0); d.Ready() || d.Answers() || d.WhyNot() != "its agent says nothing any more" || d.AskAt() != w.j.Now+askFirst {
		t.Fatalf("%s, asked at %v: %q", d.state, d.AskAt(), d.WhyNot())
	}
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2}, false)
	if !d.Ready() {
		t.Errorf("%s: %q", d.state, d.WhyNot())
	}
}

// Goal: telemetry that comes seldom, and twice by the broker, makes nobody silent; who
// answers is there without any. Method: two rounds of 16 min with the second handed over
// twice; then none, and a report.
func TestSeldomIsNotSilent(t *testing.T) {
	w := newWorld()
	d := present(w)
	for _, seq := range []uint64{1, 2, 2} {
		w.t.Health(d, &proto.Health{Version: 1, Session: 7, Seq: seq, Reported: 1})
		if seq == 1 {
			w.j.Now += 16 * time.Minute
		}
	}
	w.j.Now += 16 * time.Minute
	if w.t.Hush(0); !d.Ready() {
		t.Fatalf("after one round: %s", d.WhyNot())
	}
	w.j.Now += time.Hour
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2}, false)
	if w.t.Hush(0); !d.Ready() {
		t.Errorf("it has just reported: %s", d.WhyNot())
	}
	w.j.Now += time.Hour
	if w.t.Hush(0); d.Ready() {
		t.Error("it says nothing any more, and is not silent")
	}
}

// Goal: a device whose birth was lost after the broker had it dead is back with the first
// thing that it says, and the answer to one question. Method: dead, asked in vain, then
// the acknowledgement and the report that follow a birth, without the birth.
func TestLostBirthIsAskedFor(t *testing.T) {
	w := newWorld()
	d := present(w)
	w.t.Presence(d, &proto.Presence{Version: 1, Session: 7})
	w.j.Now += 10 * time.Minute
	w.t.Ask(true)
	w.t.Ack(d, &proto.Ack{Version: 1, Session: 7})
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2}, false)
	if d.Online() || d.AskAt() > w.j.Now+strangerLate {
		t.Fatalf("online %t, asked at %v, now is %v", d.Online(), d.AskAt(), w.j.Now)
	}
	w.t.Presence(d, &proto.Presence{Version: 1, Session: 7, Online: true})
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 3}, false)
	if !d.Ready() {
		t.Errorf("%s: %q", d.state, d.WhyNot())
	}
}

// Goal: who does not answer a prepare is asked again with its first word, but who does so
// again and again is waited out.
func TestSilenceAgainAndAgainIsWaitedOut(t *testing.T) {
	w := newWorld()
	d := present(w)
	for i := range 3 {
		w.t.Silence(d, journal.Never)
		w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: uint64(i + 2)}, false)
		if out := d.Refusal.Code == proto.Expired; out != (i == 2) || out == d.Ready() {
			t.Errorf("silent %d times: refusal %+v, ready %t", i+1, d.Refusal, d.Ready())
		}
	}
}

// Goal: a device whose telemetry names another report than the one held, and goes on so,
// is asked for it; not where the next brings it, or names a newer one.
func TestLostReportIsAskedFor(t *testing.T) {
	for _, how := range []string{"lost", "brought", "newer"} {
		w := newWorld()
		d := present(w)
		for i := range uint64(4) {
			named := uint64(2)
			if how == "newer" {
				named += i
			}
			w.t.Health(d, &proto.Health{Version: 1, Session: 7, Reported: named})
			if how == "brought" {
				w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2}, false)
			}
			w.j.Now += strangerLate / 2
		}
		if asked := d.AskAt() != journal.Never; asked != (how == "lost") {
			t.Errorf("%s: asked at %v", how, d.AskAt())
		}
	}
}

// Goal: what operators see of a device, before and after it reports.
func TestStatusOfADevice(t *testing.T) {
	w := newWorld()
	if s := w.t.Devices[1].Status(); s.Online || s.Usable || s.Mode != 0 || s.Reason == "" {
		t.Errorf("%+v", s)
	}
	d := present(w)
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2, Mode: proto.ModeService, Term: 3, Generation: 9}, false)
	if s := d.Status(); !s.Online || !s.Usable || s.Mode != proto.ModeService || s.Generation != 9 || s.Reason != "" {
		t.Errorf("%+v", s)
	}
}

// Goal: a generation is complete without those that it leaves out, and its course tells
// who prepared, and when.
func TestGenerationWithoutOne(t *testing.T) {
	w := newWorld()
	for i := range w.t.Devices {
		d := &w.t.Devices[i]
		w.t.Presence(d, &proto.Presence{Version: 1, Node: d.ID, Session: 7, Online: true})
		w.t.Reported(d, &proto.Reported{Version: 1, Node: d.ID, Session: 7, Seq: 1}, false)
	}
	w.do([]string{"prepare", "101"})
	w.j.Now = time.Second
	w.do([]string{"ack", "0", "7", "prepare"})
	if w.x.Complete() {
		t.Fatal("complete without device 1")
	}
	w.x.Unanswered(w.x.LeaveOut)
	if !w.x.Complete() {
		t.Error("device 1 is waited for")
	}
	r := &proto.OpReply{}
	w.t.Courses.Trace(&proto.OpRequest{Generation: 101}, r)
	if last := r.Trace[len(r.Trace)-1]; len(r.Trace) != 3 || last.Stage != proto.TracePrepared || *last.Node != 0 || last.AtMicros != 1e6 {
		t.Errorf("%+v", r)
	}
}

// Goal: an agent whose birth was lost is asked who it is, though with its own events it
// sends one again that the life before it had left.
func TestLostBirthIsAskedForBesideOldEvents(t *testing.T) {
	w := newWorld()
	d := present(w)
	w.t.Presence(d, &proto.Presence{Version: 1, Session: 7})
	d.unasked()
	for _, after := range []time.Duration{0, 2 * time.Second, 4 * time.Second} {
		w.j.Now += after
		w.t.Event(d, &proto.Event{Version: 1, Session: 7, Seq: 3})
		w.t.Event(d, &proto.Event{Version: 1, Session: 8, Seq: 4})
	}
	if d.AskAt() != w.j.Now || d.asks.session != 8 {
		t.Errorf("asked at %v, session %d", d.AskAt(), d.asks.session)
	}
}

// Goal: an event that a device had not delivered when it lost its power comes when it is
// back, however long it was away; none counts as missing.
func TestEventsOfWhoWasAwayAreNotMissing(t *testing.T) {
	w := newWorld()
	d := present(w)
	event := func(session proto.Session, seq uint64) {
		w.t.Event(d, &proto.Event{Version: 1, Session: session, Seq: seq})
	}
	event(7, 1)
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2, LastEvent: 3}, false)
	event(7, 3)
	w.j.Now += 20 * time.Second
	w.t.Presence(d, &proto.Presence{Version: 1, Session: 7})
	for range 10 {
		w.j.Now += gapPatience
		w.t.CheckGaps()
	}
	w.t.Presence(d, &proto.Presence{Version: 1, Session: 8, Online: true})
	event(7, 2)
	event(7, 3)
	event(8, 4)
	if d.Events.Last != 4 || w.t.Gaps() != 0 || !w.t.Quiet() {
		t.Errorf("told up to %d, %d missing, quiet %v", d.Events.Last, w.t.Gaps(), w.t.Quiet())
	}
}

// Goal: no event counts as missing for a time in which the planner itself was cut off,
// and one that does not come after it does.
func TestNoEventIsMissingWhileThePlannerIsCutOff(t *testing.T) {
	w := newWorld()
	d := present(w)
	event := func(seq uint64) { w.t.Event(d, &proto.Event{Version: 1, Session: 7, Seq: seq}) }
	event(1)
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2, LastEvent: 3}, false)
	event(3)
	w.j.LinkUp = false
	if w.t.Next() != journal.Never {
		t.Error("something is due without a broker")
	}
	w.j.Now += 2 * gapPatience
	w.t.CheckGaps()
	w.j.LinkUp = true
	w.t.LinkUp()
	w.j.Now++
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 3, LastEvent: 3}, false)
	w.j.Now += gapPatience - 2
	w.t.gapAt = w.j.Now // for another device's sake
	w.t.CheckGaps()
	if d.Events.Last != 1 || w.t.Gaps() != 0 {
		t.Errorf("told up to %d, %d missing", d.Events.Last, w.t.Gaps())
	}
	w.j.Now++
	if w.t.Next() > w.j.Now {
		t.Error("nobody looks for it")
	}
	w.t.CheckGaps()
	if d.Events.Last != 3 || w.t.Gaps() != 1 {
		t.Errorf("told up to %d, %d missing", d.Events.Last, w.t.Gaps())
	}
}

// Goal: an event far ahead of what its device says that it gave out, with the session of
// another life, is not waited for again and again.
func TestAnEventThatNobodyGaveOutIsNotWaitedFor(t *testing.T) {
	w := newWorld()
	d := present(w)
	w.t.Event(d, &proto.Event{Version: 1, Session: 7, Seq: 1})
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2, LastEvent: 1}, false)
	w.t.Event(d, &proto.Event{Version: 1, Session: 6, Seq: 1000})
	w.j.Now += gapPatience
	w.t.CheckGaps()
	if d.Events.Last != 1 || w.t.Gaps() != 0 || !w.t.Quiet() {
		t.Errorf("told up to %d, %d missing, quiet %v", d.Events.Last, w.t.Gaps(), w.t.Quiet())
	}
}

// Goal: who is gone is asked to announce itself for ever: the birth with which it came
// back may be lost, and it may say little.
func TestWhoIsGoneIsAskedForEver(t *testing.T) {
	w := newWorld()
	d := present(w)
	w.t.Presence(d, &proto.Presence{Version: 1, Session: 7})
	last, n := w.j.Now, 0
	for end := w.j.Now + time.Hour; w.j.Now < end; {
		w.j.Now = max(w.j.Now+time.Millisecond, w.t.Next())
		if w.t.Ask(true); d.asks.last > last {
			if last, n = d.asks.last, n+1; n > 3 && d.AskAt() != last+askGone {
				t.Fatalf("asked at %v, next at %v", last, d.AskAt())
			}
		}
	}
	if n < 50 {
		t.Errorf("asked %d times in an hour", n)
	}
	w.t.Presence(d, &proto.Presence{Version: 1, Session: 7, Online: true})
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2}, false)
	if d.AskAt() != journal.Never {
		t.Error("who speaks is asked")
	}
}

// Goal: whoever refused, did not answer or did not follow what was last wanted of it is
// known for it until it takes something: nothing is planned with it before it was told.
func TestWhoTookNothingWasTried(t *testing.T) {
	for name, do := range map[string]func(*world, *Device){ // any order: each by itself
		"refused":         func(w *world, d *Device) { d.Refuse(&proto.Ack{Code: proto.Invalid}, w.j.Now) },
		"did not answer":  func(w *world, d *Device) { w.t.Silence(d, w.j.Now+time.Minute) },
		"does not follow": func(w *world, d *Device) { w.t.Numbers.trail(d) },
	} {
		w := newWorld()
		d := present(w)
		if d.Standing().Tried {
			t.Fatal("nothing was wanted of it")
		}
		if do(w, d); !d.Standing().Tried {
			t.Errorf("%s, and that is forgotten", name)
		}
	}
}

// Goal: a device of whose word there is a doubt again and again is asked now and then only,
// and believed when it answers a question younger than the last false report.
func TestADoubtAsksNowAndThen(t *testing.T) {
	w := newWorld()
	d := present(w)
	w.j.Now += time.Minute
	for seq := range uint64(3) {
		report := func(seq uint64, answers *proto.Corr) {
			w.j.Now += time.Millisecond
			w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: seq, Answers: answers}, true)
		}
		report(1000+seq, nil) // false
		report(2+seq, nil)    // true, and nobody can tell
		if want := max(w.j.Now+time.Millisecond, d.asks.last+strangerLate); d.AskAt() != want {
			t.Fatalf("asked at %v, want %v", d.AskAt(), want)
		}
		w.j.Now = d.AskAt()
		w.t.Ask(true)
		corr := d.asks.corr
		if report(2+seq, &corr); d.Report.Seq() != 2+seq {
			t.Fatalf("report %d is held", d.Report.Seq())
		}
	}
}

// Goal: a refusal is an alarm for a while after a device takes plans again, not as long as
// one after which it took none.
func TestARefusalIsSoonForgivenWhoTakesPlans(t *testing.T) {
	for _, taken := range []bool{true, false} {
		w := newWorld()
		d := present(w)
		for range MaxRecounts + 1 {
			d.Refuse(&proto.Ack{Code: proto.Conflict}, w.j.Now)
		}
		if taken {
			d.Refused(Refusal{})
			d.Refusing(0)
		}
		for _, at := range []time.Duration{refusalStands, refusalStands + 1, claimStands, claimStands + 1} {
			stands := at <= refusalStands || !taken && at <= claimStands
			if what, why := d.Lately(w.j.Now + at); (what == tookNoPlan) != stands {
				t.Errorf("taken %t, %v after it: %q, %q", taken, at, what, why)
			}
		}
	}
}

// Goal: a device that says that it holds what it was never given is named with that, as one
// that took no plan.
func TestWhoStrayedIsNamed(t *testing.T) {
	w := newWorld()
	d := present(w)
	d.Want = Target{Decided: &Decided{Term: 3, Gen: 5}}
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2, Term: 3, Generation: 9}, false)
	if !d.Beyond() {
		t.Fatalf("%+v is not beyond %+v", d.Report.Decided, d.Want.Decided)
	}
	d.Strayed(w.j.Now)
	if what, why := d.Lately(w.j.Now + claimStands); what != tookNoPlan || why != "says that it has generation 9 of term 3, which it was not given" {
		t.Errorf("%q, %q", what, why)
	}
}

// Goal: a generation's course has when a device confirmed it, once: not with what it
// reports before, nor with what it reports later.
func TestConfirmedOnce(t *testing.T) {
	w := newWorld()
	d := present(w)
	w.x.Prepare(9, "", 0, []proto.Desired{{Version: 1, Node: 0, Term: 3, Generation: 9, Decisions: []proto.RingID{0}}}, func(*Device) bool { return false })
	w.x.Decide(nil)
	w.x.Commit()
	for seq, want := range []int{0, 1, 1} {
		m := &proto.Reported{Version: 1, Session: 7, Seq: uint64(seq) + 2}
		if want > 0 {
			m.Term, m.Generation, m.Plan = w.x.Term, w.x.Gen, w.x.Plan
		}
		w.t.Reported(d, m, false)
		r, n := proto.OpReply{}, 0
		w.t.Courses.Trace(&proto.OpRequest{Generation: 9}, &r)
		for _, x := range r.Trace {
			if x.Stage == proto.TraceConfirmed {
				n++
			}
		}
		if n != want {
			t.Errorf("after report %d it has confirmed %d times, want %d", m.Seq, n, want)
		}
	}
}

// Goal: the report of an agent that has ended, which the broker keeps and gives again
// with each new connection, is no sign of a lost message; one that it says itself is.
// Method: its goodbye, the kept report three times, and then a later one twice.
func TestAKeptReportIsNoLoss(t *testing.T) {
	w := newWorld()
	d := present(w)
	w.t.Presence(d, &proto.Presence{Node: d.ID, Session: d.Session})
	for i := range 5 {
		w.j.Now += 2 * strangerLate
		m := proto.Reported{Node: d.ID, Session: d.Session, Seq: d.Report.Seq()}
		if i >= 3 {
			m.Seq++
		}
		w.t.Reported(d, &m, false)
		if ids, _ := Lossy(w.t); (len(ids) == 1) != (i == 4) {
			t.Errorf("report %d: lost messages of %v", i, ids)
		}
	}
}
