package member

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ringlight/planner/audit"
	"ringlight/planner/journal"
	"ringlight/proto"
	"ringlight/proto/metric"
)

// Phase is where a Txn stands.
//
//	RESTING ──a──► PREPARING ──c──► DECIDING
//	   ▲ ▲             │                │
//	   │ └──────b──────┘                │
//	   └───────────────d────────────────┘
//
//	a  the desired states of a generation are out
//	b  refused, timed out or a participant gone: presumed abort
//	c  every participant has prepared: the decision goes to the store
//	d  the decision is on disk: commit, wherever the link stands
type Phase uint8

const (
	Resting Phase = iota
	Preparing
	Deciding
)

var phaseNames = [...]string{"resting", "preparing", "deciding"}

func (p Phase) String() string { return phaseNames[p] }

var phaseEdges = [...]uint8{
	Resting:   1 << Preparing,
	Preparing: 1<<Resting | 1<<Deciding,
	Deciding:  1 << Resting,
}

func (x *Txn) become(p Phase) {
	if phaseEdges[x.phase]&(1<<p) == 0 {
		panic("member: transaction: illegal edge " + x.phase.String() + " to " + p.String())
	}
	x.phase = p
}

// Txn is a generation on its way to its devices: every one of them prepares,
// the decision goes to the store, then it is published. Until it is in the
// store it is presumed aborted, and nothing anywhere depends on it.
type Txn struct {
	Decided
	Parts []Part // in order of devices

	t      *Table
	Took   metric.Tally // seconds from the first prepare to the decision on disk
	Aborts uint64       // generations given up

	phase    Phase
	began    time.Duration
	waiting  int // parts that have not prepared and are not absent
	deadline time.Duration
	resendAt time.Duration
	backoff  time.Duration
	persist  uint64
}

// Part is one device's share. An absent one is told when it comes back; nobody
// waits for it.
type Part struct {
	Device   *Device
	Payload  []byte
	Bypass   uint64 // that it quotes
	Prepared bool
	Absent   bool
	Optional bool // the others need not wait for it long
	Idle     bool // it is only told that nothing is wanted of it
}

// Verdict is what an answer to a prepare comes to.
type Verdict uint8

const (
	Ignored  Verdict = iota // not of this generation, or said before
	Lost                    // the committed share will not do any more, however often it is sent
	Refused                 // it will not take this generation
	Prepared                // it has; others have not
	Complete                // everybody has
)

// NewTxn makes a transaction that rests.
func NewTxn(t *Table) Txn { return Txn{t: t, Took: metric.NewTally(commitBounds)} }

// commitBounds are in microseconds. chosen: from an idle cell to PrepareTimeout.
var commitBounds = []int64{2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000}

// Phase tells where it stands.
func (x *Txn) Phase() Phase { return x.phase }

// Prepare sends the desired states of a generation, which are in order of
// devices. Of those that absent names nobody expects an answer. text says what it
// is for, asked since when a plan was wanted.
func (x *Txn) Prepare(gen proto.Generation, text string, asked time.Duration, desired []proto.Desired, absent func(*Device) bool) {
	x.become(Preparing)
	for i := range desired {
		desired[i].Life, desired[i].Layout = x.t.j.Life, x.t.j.Layout
	}
	plan, err := proto.PlanDigest(desired)
	if err != nil {
		panic("planner: own plan is refused: " + err.Error())
	}
	x.Decided, x.Parts, x.waiting = Decided{x.t.j.Term, gen, plan}, nil, 0
	for i := range desired {
		m := &desired[i]
		m.Plan = plan
		payload, err := proto.Encode(m)
		if err != nil {
			panic("planner: own desired state is refused: " + err.Error())
		}
		part := Part{Device: x.t.Find(m.Node), Payload: payload, Bypass: m.BypassSeq}
		part.Absent = absent(part.Device)
		if !part.Absent {
			x.waiting++
		}
		x.Parts = append(x.Parts, part)
	}
	x.began = x.t.j.Now
	x.t.Courses.begin(gen, text, asked, x.began)
	x.deadline, x.resendAt, x.backoff = x.t.j.Now+PrepareTimeout, x.t.j.Now, prepareAgain
}

// Began is when its devices were first asked.
func (x *Txn) Began() time.Duration { return x.began }

// Complete: nobody is waited for.
func (x *Txn) Complete() bool { return x.waiting == 0 }

// Part finds a device's share, nil when it has none.
func (x *Txn) Part(d *Device) *Part {
	at, ok := slices.BinarySearchFunc(x.Parts, d.ID, func(p Part, id proto.NodeID) int { return cmp.Compare(p.Device.ID, id) })
	if x.phase != Preparing || !ok || x.Parts[at].Device != d {
		return nil
	}
	return &x.Parts[at]
}

// LinkUp: the time without a broker does not count, and nothing sent in it
// arrived.
func (x *Txn) LinkUp() {
	if x.phase == Preparing {
		x.deadline, x.resendAt = x.t.j.Now+PrepareTimeout, x.t.j.Now
		x.Resend()
	}
}

// Late: not every device answered in time.
func (x *Txn) Late() bool { return x.t.j.Now >= x.deadline }

// Resend sends what was not answered, when that is due.
func (x *Txn) Resend() {
	if x.t.j.Now < x.resendAt {
		return
	}
	for i := range x.Parts {
		if part := &x.Parts[i]; !part.Prepared {
			if d := part.Device; !part.Absent && x.t.j.Now >= x.began+slowAnswer {
				d.own().wrong = wrong{tookNoPlan, fmt.Sprintf("has not answered to generation %d", x.Gen), x.t.j.Now}
			}
			x.t.j.SendRaw(x.t.j.Topics.Desired(part.Device.ID), proto.TopicDesired, part.Payload)
		}
	}
	x.resendAt = x.t.j.Now + x.backoff
	x.backoff = min(2*x.backoff, time.Second)
}

// Unanswered calls f for every device that is waited for.
func (x *Txn) Unanswered(f func(*Part)) {
	for i := range x.Parts {
		if part := &x.Parts[i]; !part.Prepared && !part.Absent {
			f(part)
		}
	}
}

// Waits names the devices whose answers it waits for, "" when none.
func (x *Txn) Waits() string {
	if x.phase != Preparing {
		return ""
	}
	text := ""
	x.Unanswered(func(part *Part) { text += fmt.Sprintf(" %d", part.Device.ID) })
	return proto.Clip(fmt.Sprintf("generation %d waits until these have prepared:%s", x.Gen, text))
}

// LeaveOut no longer waits for a device.
func (x *Txn) LeaveOut(part *Part) {
	part.Absent = true
	x.waiting--
}

// Answer takes an answer to a prepare.
func (x *Txn) Answer(d *Device, m *proto.Ack) Verdict {
	good := m.Code == proto.OK || m.Code == proto.Duplicate
	of := Decided{m.Term, m.Generation, m.Plan}
	if of == *d.Want.Decided && d.Pending() && !good {
		return Lost // it had staged that, and has moved since
	}
	part := x.Part(d)
	switch {
	case part == nil || of != x.Decided || part.Prepared:
		return Ignored
	case !good:
		return Refused
	}
	part.Prepared = true
	x.t.Courses.mark(x.Gen, d, proto.TracePrepared, x.t.j.Now)
	if !part.Idle {
		d.Refusing(0)
		if d.silences > 0 {
			d.own().silences = 0
		}
	}
	if part.Absent {
		return Prepared // it came back in time: nobody waits for it all the same
	}
	if x.waiting--; x.waiting > 0 {
		return Prepared
	}
	return Complete
}

// Drop forgets the generation; what devices hold staged has no effect, and the
// word that frees it need not arrive.
func (x *Txn) Drop() {
	x.become(Resting)
	x.Parts = nil
	x.Aborts++
}

// Decide puts the decision into the store; only then it is one.
func (x *Txn) Decide(records []journal.Record) {
	x.become(Deciding)
	text := ""
	if c := x.t.Courses.find(x.Gen); c != nil {
		c.decided, text = x.t.j.Now, c.Text
	}
	noun := "node"
	if len(x.Parts) > 0 && x.Parts[0].Device.ID.IsSwitch() {
		noun = "switch"
	}
	what := fmt.Sprintf("generation %d for %s", x.Gen, proto.Count(len(x.Parts), noun))
	x.persist = x.t.j.Persist(append(records, x.t.j.Audit(audit.Record{Kind: audit.Decision, What: what, Why: text, Generation: uint64(x.Gen)})...)...)
}

// Persisted: the decision is on disk.
func (x *Txn) Persisted(id uint64) bool { return x.phase == Deciding && id == x.persist }

// Commit makes the generation what is wanted of its devices.
func (x *Txn) Commit() {
	x.become(Resting)
	now := x.t.j.Now
	if c := x.t.Courses.find(x.Gen); c != nil {
		c.stored = now
	}
	x.Took.Observe((now - x.began).Microseconds())
	x.t.Numbers.Decided = x.Gen
	decided := x.Decided
	for i := range x.Parts {
		d := x.Parts[i].Device
		d.Want = Target{&decided, string(x.Parts[i].Payload)}
		d.Unassigned, d.took = false, x.Parts[i].Prepared
		if d.resendAt, d.resent = now+ResendFirst, 0; d.took {
			d.resendAt = now + trailWait
		}
		x.t.queue(d)
	}
	x.t.sweepAt = now + sweepPeriod
}

// Next is when it wants a look.
func (x *Txn) Next() time.Duration {
	if x.phase != Preparing {
		return journal.Never
	}
	return min(x.deadline, x.resendAt)
}
