package member

import (
	"fmt"
	"strings"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Numbers only ever grow, so one that is false would stay: the planner goes on
// from the highest term and generation that anybody knows. Hence a message
// with a number far above what is known is not believed, whatever else it
// says, and its device takes no part until it says something better.

// claim is a number that a device says, and the one that is known.
type claim struct {
	field       string
	known, said uint64
}

// standing are the terms and the generation of a device. Who knows no
// generation has lost its store, or has a new one, and knows no term either,
// unless it was told to begin above a far one.
func (t *Table) standing(prefix string, seen, term proto.Term, gen proto.Generation) []claim {
	known, ours := uint64(t.owner.Generation()), uint64(0)
	if known > 0 || t.j.Term > proto.MaxFirst-proto.MaxJump {
		ours = uint64(t.j.Term)
	}
	return []claim{{prefix + "seen_term", ours, uint64(seen)}, {prefix + "term", ours, uint64(term)}, {prefix + "generation", known, uint64(gen)}}
}

func (t *Table) inReport(d *Device, m *proto.Reported) []claim {
	out := append(t.standing("", m.SeenTerm, m.Term, m.Generation), t.standing("staged_", 0, m.StagedTerm, m.StagedGeneration)...)
	out = append(out, claim{"bypass_seq", d.bypass(m.Session), m.BypassSeq}, claim{"last_event", d.Events.Last, m.LastEvent})
	if d.Report != nil && d.Report.Session == m.Session {
		out = append(out, claim{"seq", d.Report.Seq(), m.Seq})
	}
	return out
}

func (t *Table) inAck(d *Device, m *proto.Ack) []claim {
	return append(t.standing("current_", 0, m.CurrentTerm, m.CurrentGeneration), claim{"bypass_seq", d.bypass(m.Session), m.BypassSeq})
}

// bypass is the bypass count that a life of the device reported.
func (d *Device) bypass(s proto.Session) uint64 {
	if d.Report == nil || d.Report.Session != s {
		return 0
	}
	return d.Report.BypassSeq()
}

// believe refuses a message of which a number is too far from what is known,
// and names the device.
func (t *Table) believe(d *Device, claims ...claim) bool {
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
		t.refused++
	}
	if d.odd != odd {
		x := d.own()
		x.odd = odd
		if odd != "" && (d.oddAt == 0 || t.j.Now >= d.oddAt+sayAgain) {
			x.oddAt = max(1, t.j.Now)
			t.j.Note(journal.Error, "a device's numbers are not believed", journal.Note{Rule: "belief", Node: int64(d.ID), Ring: d.ring(), Text: odd})
		}
		if odd != "" {
			t.ask(d, d.Session, askFirst, timesGone) // it may not have said so itself
		}
		t.owner.News(News{Kind: Weighed, Device: d, Before: before})
	}
	return odd == ""
}

// Refused is the number of messages that were not believed.
func (t *Table) Refused() uint64 { return t.refused }
