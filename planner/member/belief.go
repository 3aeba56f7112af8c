package member

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// A number is believed from whoever issued it. Terms and generations are the
// planner's own: its store knows them, and a device only echoes. One that names a
// higher term, or a generation that was never given, moves nothing and stops
// nothing; it is an alarm with its name. More than half of all that are there say
// the truth: another planner was here (Voices), or our store is an older copy
// (Contradicted).
//
// What a device counts itself only ever grows, so a number that is false would
// stay. Hence a message with one far above what is known is not believed, whatever
// else it says, and its device takes no part until it says something better.

// Numbers are what is known of a table's generations, and what is believed of the numbers
// that its devices say.
type Numbers struct {
	Gen     proto.Generation // the highest that was given out or heard of
	Decided proto.Generation // the last that the store knows of
	Fresh   bool             // the store held none, and nothing has been adopted yet

	t       *Table
	refused uint64 // messages whose numbers are not believed
}

// voice is what a device knows of numbers that are not this planner's.
type voice struct {
	term proto.Term
	life uint64           // that the term was heard from, 0 where it does not say
	gen  proto.Generation // that was never given, 0: none
	of   proto.Term       // that gen is of: ours then
	at   time.Duration    // when it said so
}

// voiced takes what a device knows of other numbers.
func (n *Numbers) voiced(d *Device, v voice) {
	switch {
	case n.speaks(v) || v.gen != 0:
		d.own().voice = v
		n.t.root.Voiced()
	case d.voice != (voice{}):
		d.own().voice = voice{}
	}
}

// claim notes what one device alone says of the planner's numbers.
func (n *Numbers) claim(d *Device, what string) {
	if n.Claims(d) == "" {
		n.t.j.Note(journal.Error, "a device claims a number that the planner did not give", journal.Note{Rule: "claim", Node: int64(d.ID), Ring: d.ring(), Text: what})
	}
	x := d.own()
	x.claims, x.claimAt = what, max(1, n.t.j.Now)
}

// Claims says what the device alone says of the planner's numbers, "" when nothing.
func (n *Numbers) Claims(d *Device) string {
	if d.claims == "" || n.t.j.Now > d.claimAt+claimStands {
		return ""
	}
	return d.claims + fmt.Sprintf("; nothing follows from it. If a planner is gone that told it alone, 'ocsctl clear %d' goes on from there; if it lies, 'ocsctl quarantine %d' leaves it out", d.ID, d.ID)
}

// speaks: it says that there is another planner.
func (n *Numbers) speaks(v voice) bool {
	return v.term > n.t.j.Term || v.term == n.t.j.Term && v.life != 0 && v.life != n.t.j.Life
}

// Voices appends the terms that devices know above ours or from another life, and
// says how many devices are there, or were in this planner's life: one that is alone
// for a moment is no majority.
func (n *Numbers) Voices(all []proto.Term) (terms []proto.Term, there int) {
	for i := range n.t.Devices {
		d := &n.t.Devices[i]
		if !d.Online() && !d.Known {
			continue
		}
		there++
		if d.Online() && n.speaks(d.voice) {
			all = append(all, d.voice.term)
		}
	}
	return all, there
}

// Knows is the term above ours that a device alone knows, 0: none.
func (n *Numbers) Knows(d *Device) proto.Term {
	if !n.speaks(d.voice) {
		return 0
	}
	return d.voice.term
}

// Alone notes those of whose other planner no majority knows.
func (n *Numbers) Alone() {
	for i := range n.t.Devices {
		switch d := &n.t.Devices[i]; {
		case n.t.j.Now > d.voice.at+claimStands:
		case n.speaks(d.voice):
			n.claim(d, fmt.Sprintf("it says that there is a planner of term %d; ours is %d, and most devices know of no other", d.voice.term, n.t.j.Term))
		case d.voice.of == n.t.j.Term && d.voice.gen > n.Gen:
			n.claim(d, fmt.Sprintf("it says that it holds generation %d of term %d; the last that was given is %d", d.voice.gen, n.t.j.Term, n.Gen))
		}
	}
}

// ungiven is the generation of our term that a report names and that was never
// given, 0: none.
func (n *Numbers) ungiven(m *proto.Reported) (g proto.Generation) {
	if m.Term == n.t.j.Term {
		g = m.Generation
	}
	if m.StagedTerm == n.t.j.Term {
		g = max(g, m.StagedGeneration)
	}
	if g <= n.Gen {
		return 0
	}
	return g
}

// Behind finds a device that takes no plan of our term and will take one of a higher, and tells
// why: it carries one of ours which was never given, and its word bears no seal - whoever reaches
// the broker may have told it so; it takes only what is newer, and of sealed devices none can have
// been told so. Or it had its term from another planner that was heard to have it, as spoke
// says of a life, before that one gave way.
func (n *Numbers) Behind(spoke func(t proto.Term, life uint64) bool) (t proto.Term, why string) {
	for i := range n.t.Devices {
		switch d, v := &n.t.Devices[i], n.t.Devices[i].voice; {
		case !d.Online():
		case v.of == n.t.j.Term && v.gen > n.Gen && !d.sealed && d.Report.Gen == v.gen && d.Report.Term == v.of:
			return v.of, fmt.Sprintf("node %d carries a plan that was never given", d.ID)
		case n.speaks(v) && v.life != 0 && spoke(v.term, v.life):
			return v.term, fmt.Sprintf("node %d has term %d from another planner, which gave way", d.ID, v.term)
		}
	}
	return 0, ""
}

// Contradicted reports whether the devices show that the store they were
// restored from is not the latest - an older copy, or another planner was here -
// and says in what. What runs is
// right then, and is adopted as it is. One device alone shows nothing: a decision
// that the store does not know is held by two at least, where there are two.
func (n *Numbers) Contradicted() bool {
	if n.Fresh {
		return false
	}
	var who []*Device
	for i := range n.t.Devices {
		d := &n.t.Devices[i]
		why := d.contradicts(n.Decided)
		if why == "" {
			continue
		}
		if len(n.t.Devices) > 1 && !slices.ContainsFunc(who, func(o *Device) bool { return *o.Report.Decided == *d.Report.Decided }) {
			who = append(who, d)
			continue
		}
		n.t.j.Note(journal.Warn, "the store does not know what runs; it counts as lost", journal.Note{Rule: "adopt", Node: int64(d.ID), Text: why})
		n.t.j.Persist(n.t.j.Elsewhere("what runs is adopted", why)...)
		return true
	}
	for _, d := range who {
		n.claim(d, d.contradicts(n.Decided))
	}
	return false
}

// Find goes on from the highest generation that two devices know, or the only one that
// was heard: what a former planner gave and our store may not know. It keeps numbers
// apart for people; plans are told apart by their term too.
func (n *Numbers) Find() {
	var first, second proto.Generation
	heard := 0
	for i := range n.t.Devices {
		d := &n.t.Devices[i]
		if !d.Known {
			continue
		}
		heard++
		g := max(d.Report.Gen, d.Scalars().StagedGeneration)
		first, second = max(first, g), max(second, min(first, g))
	}
	if heard == 1 {
		second = first
	}
	n.Gen = max(n.Gen, second)
}

// Stored takes a generation that the store knows of.
func (n *Numbers) Stored(g proto.Generation) { n.Gen, n.Decided = max(n.Gen, g), max(n.Decided, g) }

// RestoreHead takes the last generation from the store: it is not fresh.
func (n *Numbers) RestoreHead(key string, g proto.Generation) error {
	if err := journal.CheckCount("generation", uint64(g)); err != nil {
		return fmt.Errorf("store: %s: %w", key, err)
	}
	n.Stored(g)
	n.Fresh = false
	return nil
}

// claim is a number that a device says, and the one that is known.
type claim struct {
	field       string
	known, said uint64
}

// standing are the terms and the generation of a device. A device that knows no
// generation has lost its store, or has a new one, and knows no term either,
// unless it was told to begin above a far one.
func (n *Numbers) standing(prefix string, seen, term proto.Term, gen proto.Generation) []claim {
	known, ours := uint64(n.Gen), uint64(0)
	if known > 0 || n.t.j.Term > proto.MaxFirst-proto.MaxJump {
		ours = uint64(n.t.j.Term)
	}
	return []claim{{prefix + "seen_term", ours, uint64(seen)}, {prefix + "term", ours, uint64(term)}, {prefix + "generation", known, uint64(gen)}}
}

func (n *Numbers) inReport(d *Device, m *proto.Reported) []claim {
	out := append(n.standing("", m.SeenTerm, m.Term, m.Generation), n.standing("staged_", 0, m.StagedTerm, m.StagedGeneration)...)
	out = append(out, claim{"bypass_seq", d.bypass(m.Session), m.BypassSeq}, claim{"last_event", d.Events.Last, m.LastEvent})
	if d.ReportOf() == m.Session {
		out = append(out, claim{"seq", d.Report.Seq(), m.Seq})
	}
	return out
}

func (n *Numbers) inAck(d *Device, m *proto.Ack) []claim {
	return append(n.standing("current_", 0, m.CurrentTerm, m.CurrentGeneration), claim{"bypass_seq", d.bypass(m.Session), m.BypassSeq})
}

// bypass is the bypass count that a life of the device reported.
func (d *Device) bypass(s proto.Session) uint64 {
	if d.ReportOf() != s {
		return 0
	}
	return d.Report.BypassSeq()
}

// believe refuses a message of which a number is too far from what is known,
// and names the device.
func (n *Numbers) believe(d *Device, claims ...claim) bool {
	before, odd := d.Standing(), ""
	for _, c := range claims {
		if limit := proto.Highest(c.known); c.said > limit {
			odd = fmt.Sprintf("not believed: %s %d (limit %d); its next good word or 'ocsctl clear %d' ends this", c.field, c.said, limit, d.ID)
			if strings.HasSuffix(c.field, "term") {
				odd += fmt.Sprintf(", or if that is so, a planner started with -term-above %d", c.said)
			}
			break
		}
	}
	if odd != "" {
		n.refused++
		d.own().wrong = wrong{"not believed", odd, n.t.j.Now}
	}
	if d.odd != odd {
		x := d.own()
		x.odd = odd
		if odd != "" && (d.oddAt == 0 || n.t.j.Now >= d.oddAt+sayAgain) {
			x.oddAt = max(1, n.t.j.Now)
			n.t.j.Note(journal.Error, "a device's numbers are not believed", journal.Note{Rule: "belief", Node: int64(d.ID), Ring: d.ring(), Text: odd})
		}
		if odd != "" {
			n.t.ask(d, d.Session, askFirst, timesGone) // it may not have said so itself
		}
		n.t.owner.News(News{Kind: Weighed, Device: d, Before: before})
	}
	return odd == ""
}

// Refused is the number of messages that were not believed.
func (n *Numbers) Refused() uint64 { return n.refused }
