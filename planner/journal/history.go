package journal

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/proto"
)

// Subject is what a history is about: a node, its ring, and the generation
// that it was told last.
type Subject struct {
	Node proto.NodeID
	Ring proto.RingID
	Gen  proto.Generation
}

// History lists what happened to a node, its ring and, where it names it as a
// peer, its neighbours; earliest first. own are the events that the node itself
// still has, of which some may not have come here. bundle -1: all of them.
func (j *Journal) History(n Subject, bundle int16, own []proto.Event) []proto.WhyLine {
	var out []proto.WhyLine
	known := map[uint64]bool{}
	for i := range j.entries {
		e := j.At(i)
		switch {
		case e.Event != nil && e.Event.Node == n.Node:
			known[e.Event.Seq] = true
			if bundle < 0 || int16(e.Event.Bundle) == bundle {
				out = append(out, e.Line())
			}
		case e.Event != nil && e.Event.Peer == n.Node && e.Event.Ring != 0 && aboutSide(e.Event.Kind) && bundle < 0:
			out = append(out, e.Line())
		case e.Note != nil && (e.Note.Node == int64(n.Node) || e.Note.Node < 0 && e.Note.Ring != 0 && e.Note.Ring == n.Ring || e.Note.Rule == "commit" && e.Note.Gen == n.Gen):
			line := e.Line()
			line.Node = n.Node
			out = append(out, line)
		}
	}
	slices.SortStableFunc(own, func(a, b proto.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range own {
		if e := &own[i]; !known[e.Seq] && (bundle < 0 || int16(e.Bundle) == bundle) {
			line := whyEvent(0, 0, e)
			line.Text = proto.Clip("agent only: " + line.Text)
			out = append(out, line)
		}
	}
	return out
}

// Line is an entry in the words that why has for it. A note of no single node
// has the node ^0.
func (e *Entry) Line() proto.WhyLine {
	if e.Event != nil {
		return whyEvent(e.Seq, e.Millis, e.Event)
	}
	return proto.WhyLine{Seq: e.Seq, AtMillis: e.Millis, Node: proto.NodeID(e.Note.Node), Bundle: -1, Rule: e.Note.Rule, Cause: e.Note.Cause,
		Text: e.Note.Text, Measured: proto.NoPower, Expected: proto.NoPower, Gen: e.Note.Gen}
}

func whyEvent(seq, millis uint64, e *proto.Event) proto.WhyLine {
	text := e.Kind.Words()
	if e.Kind == proto.EvAlarm && e.Resolved {
		text += " cleared"
	}
	if !aboutPath(e) {
		// A plan that is applied, a start: of no path, which is not dark.
	} else if e.Path != e.FromPath && e.FromPath != proto.Dark {
		text += fmt.Sprintf(", %s to %s", e.FromPath, e.Path)
	} else {
		text += ", " + e.Path.String()
	}
	if e.Ring != 0 && aboutSide(e.Kind) {
		text += fmt.Sprintf(", %s side of ring %d, peer %d", e.Side, e.Ring, e.Peer)
	}
	if l := e.Ledger; l != nil {
		text += fmt.Sprintf(", %d us (%s)", l.TotalMicros(), l.Text(e.LedgerMark))
	}
	if e.Count > 1 {
		text += fmt.Sprintf(", %d times", e.Count)
	}
	switch {
	case e.Text != "" && e.Kind == proto.EvHostOK:
		text += " (was: " + e.Text + ")"
	case e.Text != "":
		text += ": " + e.Text
	}
	return proto.WhyLine{Seq: seq, AtMillis: millis, Node: e.Node, Bundle: int16(e.Bundle), Rule: e.Kind.MessageID(), Cause: e.Cause,
		Text: proto.Clip(text), Measured: e.Measured, Expected: e.Expected, Gen: e.Generation}
}

// aboutPath: the event's path means something. What is about the whole node has
// none, and dark there would be read as a loss.
func aboutPath(e *proto.Event) bool {
	switch e.Kind {
	case proto.EvApplied, proto.EvStarted, proto.EvAdopted, proto.EvHostFault, proto.EvHostOK, proto.EvRequest, proto.EvSplitBrain, proto.EvReturned, proto.EvIsolated, proto.EvAlarm, proto.EvCalibrated:
		return e.Path != proto.Dark || e.FromPath != proto.Dark
	}
	return !e.Node.IsSwitch() || e.Path != proto.Dark || e.FromPath != proto.Dark
}

// aboutSide: the event's side and peer mean something.
func aboutSide(k proto.EventKind) bool {
	switch k {
	case proto.EvLightLost, proto.EvLightFound, proto.EvSwitched, proto.EvRestored, proto.EvClosed, proto.EvBanned:
		return true
	}
	return false
}

// AuditPage answers with a page of the stored chain.
func (j *Journal) AuditPage(q *proto.OpRequest, r *proto.OpReply) {
	text, next := j.Chain.Page(q.Page, proto.MaxPart)
	r.Text, r.Next = proto.Part(text), next
}

// EventsPage pages by the planner's numbers; Page is the first one wanted, so that
// what comes between two requests neither repeats nor hides an item.
func (j *Journal) EventsPage(q *proto.OpRequest, r *proto.OpReply) {
	for i := range j.Len() {
		e := j.At(i)
		if e.Seq < q.Page || e.Event == nil {
			continue
		}
		if len(r.Events) == proto.MaxPage {
			r.Next = e.Seq
			return
		}
		r.Events = append(r.Events, proto.LoggedEvent{Seq: e.Seq, AtMillis: e.Millis, Event: *e.Event})
	}
}
