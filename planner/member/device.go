package member

import (
	"fmt"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Decided is a decision as it stands on a topic.
type Decided struct {
	Term proto.Term
	Gen  proto.Generation
	Plan proto.Digest
}

// undecided is what a device wants of which nothing was decided.
var undecided = new(Decided)

// Target is what a generation wants of one device: the very bytes that it
// prepared, since it compares their digest. They are absent where the target
// was adopted. Many have the same decision.
type Target struct {
	*Decided
	Payload string
}

// Refusal is a device's no to a plan. It holds until what it was about
// changes, and is asked again at Until at the latest.
type Refusal struct {
	Code      proto.Code // OK: none
	Gen       proto.Generation
	Reason    string
	Until     time.Duration
	BypassSeq uint64       // that the refused plan quoted
	Calibs    proto.Digest // of the report when it refused
	LastEvent uint64       // of the report when it refused
}

// birth is what is kept of a birth message.
type birth struct {
	Measured proto.Envelope // over a node's own bundles
	Ports    uint16         // of each side of a switch
	Software string
	Features proto.Features
}

// Device is all that is common to nodes and switches. There may be a million: what
// most of them do not have is in a setback, and what says the same twice is not kept.
type Device struct {
	ID    proto.NodeID
	Group proto.RingID // on whose topic its decisions stand; a node's is its ring, 0 = none

	call uint32 // the last roll call that it answered

	state State
	// Unassigned: what was committed for it is void, or there never was
	// anything. It is told when it can be.
	Unassigned bool
	queued     bool  // is on the table's list of those that may be pending
	resent     uint8 // how often what is wanted of it was sent again, resentMost at most
	timed      bool  // offset is known, of the session of its report
	Ignored    bool  // nothing that it says counts
	full       bool  // it says that it cannot write its journal, so it prepares nothing
	sealed     bool  // its report bears a seal that was believed: the number is its own
	took       bool  // it has prepared what is wanted of it, and was told the decision
	Known      bool  // it has reported
	Notable    bool  // its report raises an alarm, or has less light than is expected

	Session  proto.Session
	Birth    *birth // the last one; many are alike
	Report   Report // the last one, of the last session that sent any
	ReportAt time.Duration
	signs    signs
	offset   time.Duration // of the planner's clock to its own

	Want     Target // what was committed for it
	resendAt time.Duration

	*setback // read at will; own gives the one to write

	Events journal.Cursor // how far its events have come: each is taken once and in order
}

func (d *Device) init(id proto.NodeID, blank *setback) {
	d.ID, d.resendAt, d.setback, d.Want.Decided, d.Report.Decided, d.Birth = id, journal.Never, blank, undecided, undecided, unborn
}

// Refused sets what it refused, none when it no longer counts.
func (d *Device) Refused(r Refusal) {
	if d.Refusal != r {
		d.own().Refusal = r
	}
}

// Refusing sets how many times in a row it refused.
func (d *Device) Refusing(times int) {
	if d.Refusals != times {
		d.own().Refusals = times
	}
}

// Standing is what a plan depends on; a change asks for a new look.
type Standing struct{ Ready, Unassigned, Pending, Tried bool }

// Standing tells how it stands now.
func (d *Device) Standing() Standing {
	return Standing{d.Ready(), d.Unassigned, d.Pending(), d.tried()}
}

// Heard: it has spoken for itself since the planner started.
func (d *Device) Heard() bool { return d.state != Unheard && d.state != Announced }

// Online: somebody speaks for it.
func (d *Device) Online() bool { return d.state != Unheard && d.state != Offline && !d.Ignored }

// Ready: it can take part in a generation.
func (d *Device) Ready() bool {
	return d.state == Present && !d.Ignored && !d.full && d.Refusal.Code == proto.OK && d.odd == ""
}

// contradicts says in what a device's report shows that the store it was
// restored from is not the latest, "" when in nothing: it holds a generation
// above the last one given out, or another plan of the one that it was given.
func (d *Device) contradicts(last proto.Generation) string {
	m := &d.Report
	switch {
	case m.Gen == 0 || d.Want.Gen == 0:
		return "" // the store never knew it
	case m.Gen > last:
		return fmt.Sprintf("%s holds generation %d, the store's last is %d", d.name(), m.Gen, last)
	case m.Gen == d.Want.Gen && m.Term == d.Want.Term && m.Plan != d.Want.Plan:
		return fmt.Sprintf("%s holds another plan of generation %d than the store", d.name(), m.Gen)
	}
	return ""
}

// name is the device in a sentence.
func (d *Device) name() string {
	if d.ID.IsSwitch() {
		return fmt.Sprintf("switch %d", d.ID-proto.FirstSwitch)
	}
	return fmt.Sprintf("node %d", d.ID)
}

// Forget drops what was committed for it, and what that leaves of the store.
func (d *Device) Forget() journal.Record {
	d.Want, d.Unassigned, d.resendAt = Target{Decided: undecided}, false, journal.Never
	d.Refused(Refusal{})
	return journal.Record{Key: recordKey(d.ID)}
}

// Pending reports whether it is not yet where a generation wants it.
func (d *Device) Pending() bool {
	return d.Want.Gen > 0 && !d.Unassigned && !d.At(*d.Want.Decided)
}

// Beyond reports whether it has applied something that is not wanted of it and
// that nothing wanted so far comes after: another planner's plan, or a forged one.
// It takes only what is newer.
func (d *Device) Beyond() bool {
	m := &d.Report
	return d.Known && !d.At(*d.Want.Decided) && (m.Term > d.Want.Term || m.Term == d.Want.Term && m.Gen >= d.Want.Gen)
}

// Outdated: what is wanted of it is of another term, adopted without its bytes, or before what it
// has: it is not sent again, and a new generation tells it.
func (d *Device) Outdated(t proto.Term) bool {
	return d.Want.Term != t || d.Want.Payload == "" || d.Beyond()
}

// Strayed names a device that is Beyond.
func (d *Device) Strayed(now time.Duration) {
	d.own().wrong = wrong{tookNoPlan, fmt.Sprintf("says that it has generation %d of term %d, which it was not given", d.Report.Gen, d.Report.Term), now}
}

// At reports whether it has applied a decision.
func (d *Device) At(x Decided) bool {
	return d.Known && *d.Report.Decided == x
}

// WhyNot says why it cannot take part in a generation, "" when it can.
func (d *Device) WhyNot() string {
	switch {
	case d.Ignored:
		return "nothing that it says counts"
	case d.state == Disputed:
		return d.claim
	case d.odd != "":
		return d.odd
	case !d.Heard():
		return "never heard since the planner started"
	case d.state == Offline:
		return "its agent is not at the broker" + d.went()
	case d.state == Born:
		return "no report since its birth"
	case d.Refusal.Code != proto.OK:
		if d.Refusal.Code == proto.Expired {
			return d.Refusal.Reason
		}
		return "refused a plan: " + d.Refusal.Reason
	case d.state == Silent && d.hushed:
		return "its agent says nothing any more"
	case d.state == Silent:
		return "did not answer a prepare"
	case d.full:
		return "its agent cannot write its journal"
	}
	return ""
}

const (
	// goneSlack is by how much telemetry may be late while an agent is well. chosen: a busy host.
	goneSlack = 2 * time.Second
	// brokerPatience is after how much silence brokers lose an agent at the earliest.
	// chosen: below one and a half of its keep-alive, 15 s.
	brokerPatience = 20 * time.Second
)

// went says how it ended, where that is known: by its own word, or by whether it spoke
// until the broker lost it. A host without power or network is lost after some silence.
func (d *Device) went() string {
	switch quiet := d.GoneAt - d.signs.last; {
	case d.last != "":
		return "; its last word was: " + d.last
	case d.signs.gap == 0 || quiet < 0 || d.deafWhen || d.signs.gap+goneSlack >= brokerPatience:
		return ""
	case quiet > d.signs.gap+goneSlack:
		return fmt.Sprintf("; it had said nothing for %v: it hangs, or power or network are gone", quiet.Round(time.Second))
	}
	return "; its connection was closed while it spoke: its process ended"
}

// Status is a switch as operators see it; of a node package hbd knows more.
func (d *Device) Status() proto.NodeStatus {
	return proto.NodeStatus{Node: d.ID, Online: d.Online(), Usable: d.Ready(), Want: d.Want.Gen, Reason: d.WhyNot(), Features: d.Birth.Features,
		Mode: d.Report.Mode(), Generation: d.Report.Gen}
}

// StatusPage lists the devices, as nodes are listed: Page is the first number
// wanted.
func (t *Table) StatusPage(q *proto.OpRequest, r *proto.OpReply) {
	id := func(i int) uint64 { return uint64(t.Devices[i].ID) }
	r.Nodes, r.Next = proto.PageOf(len(t.Devices), q.Page, id, func(i int) proto.NodeStatus { return t.Devices[i].Status() })
}

// Answers: its agent speaks, and answers what it is asked.
func (d *Device) Answers() bool { return d.Online() && d.state != Silent }

// Trouble is a short word for what keeps it out though time may not mend that,
// "" when nothing does, and the reason.
func (d *Device) Trouble() (what, why string) {
	switch {
	case d.state == Disputed:
		what = "disputed"
	case d.odd != "":
		what = "not believed"
	case !d.Online():
		what = "offline"
	case d.Trails():
		what = "does not follow"
	case d.state == Silent, d.Refusal.Code == proto.Expired:
		what = "silent"
	case d.Refusal.Code != proto.OK:
		what = "refused a plan"
	default:
		return "", ""
	}
	return what, d.WhyNot()
}

// Lately is a short word for what was wrong with it a moment ago, "" when nothing was,
// and what it did: a fault between two good reports is seen, too. One that has taken
// since what is wanted of it is named a shorter time.
func (d *Device) Lately(now time.Duration) (what, why string) {
	stands := claimStands
	if d.wrong.what == tookNoPlan && !d.tried() && d.At(*d.Want.Decided) {
		stands = refusalStands
	}
	if d.wrong.what == "" || now > d.wrong.at+stands {
		return "", ""
	}
	return d.wrong.what, d.wrong.why
}

// Refuse leaves it out for some time, longer each time in a row.
func (d *Device) Refuse(m *proto.Ack, now time.Duration) {
	x := d.own()
	x.Refusals++
	if m.Code != proto.Conflict || x.Refusals > MaxRecounts { // else it has moved since, and the plan is made again
		x.wrong = wrong{tookNoPlan, proto.Clip(fmt.Sprintf("refused %s in a row, the last: %s", proto.Count(x.Refusals, "plan"), m.Words())), now}
	}
	x.Refusal = Refusal{Code: m.Code, Gen: m.Generation, Reason: m.Words(), Until: now + Backoff(d.Refusals)}
}

// RetryAt is when it is to be asked again, Never when nothing keeps it out that
// time mends.
func (d *Device) RetryAt() time.Duration {
	at := journal.Never
	if d.Refusal.Code != proto.OK {
		at = d.Refusal.Until
	}
	if d.state == Silent {
		at = min(at, d.silentUntil)
	}
	return at
}

// Retry lets it take part again when the time for that has come.
func (d *Device) Retry(now time.Duration) bool {
	refused, silent := d.Refusal.Code != proto.OK && now >= d.Refusal.Until, d.state == Silent && now >= d.silentUntil
	if refused {
		d.Refused(Refusal{})
	}
	if silent {
		d.become(Present)
	}
	return refused || silent
}

// Adopt takes what a device reports as what is wanted of it.
func (d *Device) Adopt() {
	d.Want = Target{Decided: d.Report.Decided}
}

// ResendAt is when what is wanted of it is sent again, Never when it is not.
func (d *Device) ResendAt() time.Duration { return d.resendAt }

// lives makes a session the device's present life.
func (d *Device) lives(s proto.Session) {
	if of := d.ReportOf(); d.Session != s {
		d.Session, d.signs = s, signs{}
		d.reportIs(of)
	}
}

// born begins a new life.
func (d *Device) born(m *proto.Presence, b *birth) {
	if d.Session != 0 && d.Session != m.Session {
		d.followed()
	}
	d.lives(m.Session)
	if d.last != "" {
		d.own().last = ""
	}
	d.Birth = b
	d.Refused(Refusal{})
	d.unasked()
	next := Born
	if !d.Heard() {
		next = Announced
	}
	if d.state != next {
		d.become(next)
	}
	if d.ReportOf() == d.Session {
		d.become(Present)
	}
}

// ring is the ring that a note about it names.
func (d *Device) ring() proto.RingID {
	if d.ID.IsSwitch() {
		return 0
	}
	return d.Group
}
