package hbd

import (
	"fmt"
	"slices"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// touched is a node that something is heard of.
func (h *Rings) touched(d *member.Device) *node {
	h.Placed.touch(d.ID)
	if h.Evidence.probes.heard = h.j.Now; h.Evidence.probes.alone {
		h.Evidence.probes.at = h.j.Now
	}
	return &h.Placed.nodes[d.ID]
}

// News follows up on one word of a node.
func (h *Rings) News(x member.News) {
	n := h.touched(x.Device)
	before := n.flagsOf(x.Before)
	switch x.Kind {
	case member.Birth:
		if !x.Again {
			// A node that speaks is not dead, and what was seen on its fibres is over.
			h.Evidence.answered(n, "a new birth")
			h.Evidence.cuts.reborn(n.Device.ID, h.j.Now, h.Placed.fab.Qualifies().BeforeUse)
			h.Placed.reads(n.Device.ID)
			h.Placed.unseen(n)
		}
		if n.probe.open {
			h.Evidence.answered(n, "it answers")
		}
	case member.Gone:
		h.j.Note(journal.Info, "agent offline", journal.Note{Rule: "offline", Node: int64(n.Device.ID), Ring: n.Device.Group, Text: x.Why + "; light is judged by its neighbours"})
		h.participantLost(n, "went offline")
	case member.Reported:
		h.reported(n, x.First)
	case member.Spoke:
		// A sign that it lives now, not one that it sent before it was asked.
		answered := n.probe.open && x.Ack.Corr == n.probe.corr || (n.dead || n.probe.open) && n.Device.Quotes(x.Ack)
		if answered {
			if n.probe.open && x.Ack.Corr == n.probe.corr {
				h.Evidence.probes.answered(n)
			}
			h.Evidence.answered(n, "it answers")
		}
		if answered || x.Broke {
			h.changed(n, before)
		}
		if x.Ack.Phase == proto.PhasePrepare {
			h.prepared(n, x.Ack)
		}
		return
	case member.Weighed:
		if n.Device.Trails() && !slices.Contains(h.refusing, n.Device.ID) {
			h.refusing = append(h.refusing, n.Device.ID)
		}
	}
	h.changed(n, before)
}

// answered: a node has spoken, so it lives.
func (e *evidence) answered(n *node, why string) {
	if n.probe.open {
		n.heard()
		e.pl.reads(n.Device.ID)
		if r := e.pl.ring(n.Device.Group); r != nil && r.marked || n.Device.Group == 0 {
			e.agenda.replan(debounce) // perhaps its answer was all that was waited for
		}
		if n.Device.Group == 0 {
			e.agenda.markNode(n)
		}
	}
	if n.dead {
		n.dead = false
		if was := n.parted; was.life != 0 {
			n.own().parted = parting{}
			n.eased()
			if was.life == n.Device.Session { // it was there all the time: what is dark is the fibre
				e.holdOff(n.Device.ID, was.from, n.Device.Group, 0, "light lost at one end")
			}
		}
		n.because("")
		e.j.Note(journal.Info, "node is back", journal.Note{Rule: "presence", Node: int64(n.Device.ID), Ring: n.Device.Group, Text: why})
	}
}

// reported takes a report; first: of this life.
func (h *Rings) reported(n *node, first bool) {
	m := &n.Device.Report
	known := n.later
	if first || n.fresh() { // what it counts now is so, however high it was said to be before
		known.bypass = 0
	}
	if !n.after(known.moved) {
		known.moved, known.counted = 0, false
	}
	if !n.after(known.said) {
		known.said = 0
	}
	n.tells(known)
	if n.Device.Refusal.Code != proto.OK && over(&n.Device.Refusal, m) {
		n.Device.Refused(member.Refusal{})
	}
	if h.Placed.measured(n) {
		h.Agenda.tellMeasured(n)
	}
	h.obstacles.sooner(n)
	n.readAlarms()
	n.readSides(h.j.Now)
	// What it says of itself, unless a later event told already.
	mode := m.Mode()
	out := mode == proto.ModeHostDown || mode == proto.ModeIsolated || mode == proto.ModeDrained
	switch {
	case n.after(n.later.said):
	case out != n.said.out:
		h.say(n, out, mode, 0)
	case out: // for another reason, it may be
		n.said.mode = mode
		n.because(outReason(mode))
	}
	if n.Device.Want.Gen == 0 && !h.Table.Numbers.Fresh {
		h.Agenda.unassign(n)
	}
	h.Evidence.update(n)
}

// Told draws from an event what the placement needs before the next report.
func (h *Rings) Told(d *member.Device, m *proto.Event) {
	n := h.touched(d)
	h.bypasses.take(h.Placed.ring(m.Ring), m)
	if d.Known && m.Seq <= d.Report.LastEvent() && m.Session == d.ReportOf() {
		return // the report, which is newer, has told already
	}
	before := n.flags()
	switch m.Kind {
	case proto.EvLightLost, proto.EvSwitched, proto.EvClosed, proto.EvLightFound, proto.EvRestored:
		n.moved(m)
		n.readLoss(m, h.j.Now)
	case proto.EvHostFault:
		h.say(n, true, proto.ModeHostDown, m.Seq)
	case proto.EvIsolated:
		n.moved(m)
		mode := proto.ModeIsolated
		switch m.Cause {
		case proto.CauseHostFault:
			mode = proto.ModeHostDown
		case proto.CauseOperator:
			mode = proto.ModeDrained
		}
		if !n.said.out {
			h.say(n, true, mode, m.Seq)
		}
		n.own().later.said = m.Seq
	case proto.EvReturned:
		n.moved(m)
		if n.said.out {
			h.say(n, false, proto.ModeService, m.Seq)
		}
	case proto.EvSplitBrain:
		h.j.Note(journal.Error, "another plan with the same number", journal.Note{Rule: "split_brain", Node: int64(n.Device.ID), Gen: m.Generation, Text: m.Text})
	}
	h.changed(n, before)
}

// later is what events told that the last report does not know yet.
type later struct {
	said    uint64 // number of the event that said what it is, 0: a report
	moved   uint64 // of the last that told of a moved side, 0: none
	counted bool   // that one told the bypass count
	bypass  uint64 // the highest count that one told
}

// tells sets what the last report does not know yet.
func (n *node) tells(x later) {
	if n.later != x {
		n.own().later = x
		n.eased()
	}
}

// outReason is why a node is out of service, for people.
func outReason(mode proto.Mode) string { return "reported by the node: " + mode.Words() }

// say changes what a node says of itself, and writes it down.
func (h *Rings) say(n *node, out bool, mode proto.Mode, seq uint64) {
	was := n.said.mode.Words()
	n.said = saidFault{out: out, mode: mode}
	x := n.later
	x.said = seq
	n.tells(x)
	if out {
		h.Placed.unseen(n)
	}
	rules := map[proto.Mode]string{proto.ModeHostDown: "host_fault", proto.ModeIsolated: "own_fault", proto.ModeDrained: "drained"}
	if out {
		if wait := n.own().outs.strike(h.j.Now, outsFree, outsLast); wait > 0 {
			h.obstacles.damped = append(h.obstacles.damped, n.Device.ID)
		}
		n.eased()
	}
	if !out {
		n.because("")
		h.j.Note(journal.Info, "node recovered", journal.Note{Rule: "returned", Node: int64(n.Device.ID), Ring: n.Device.Group, Text: "reported by the node, which was: " + was})
		return
	}
	n.because(outReason(mode))
	h.j.Note(journal.Warn, "node is out of service", journal.Note{Rule: rules[mode], Node: int64(n.Device.ID), Ring: n.Device.Group, Text: n.reason})
}

// tellMeasured writes down that a node is left out for what it measured, or no longer.
func (a *agenda) tellMeasured(n *node) {
	if n.unmeasured == "" {
		a.j.Note(journal.Info, "node recovered", journal.Note{Rule: "measured", Node: int64(n.Device.ID), Ring: n.Device.Group, Text: "rings can be built with its measured times"})
		return
	}
	a.pl.unseen(n)
	a.j.Note(journal.Warn, "node is left out", journal.Note{Rule: "measured", Node: int64(n.Device.ID), Ring: n.Device.Group, Text: n.unmeasured})
}

// unseen forgets that a node's links had light: the node was away, and that
// is reason enough for them to be dark.
func (p *placement) unseen(n *node) {
	if r := p.ring(n.Device.Group); r != nil {
		r.unseen(n.Device.ID)
	}
}

// changed follows up on anything new about a node.
func (h *Rings) changed(n *node, before flags) {
	h.judge(n)
	h.obstacles.takesPart(n)
	timeOutage(&h.Evidence.patience, n, h.j.Now)
	if (n.dead || n.unanswered()) && n.Device.Online() && n.Device.AskAt() == journal.Never {
		h.Table.Doubt(n.Device)
	}
	if n.flags() != before {
		h.Agenda.markNode(n)
		h.Agenda.replan(debounce)
	}
	if r := h.Placed.ring(n.Device.Group); r != nil {
		h.Evidence.watch(r)
		h.Evidence.watchRing(r)
		if r.hurtAt != 0 && !r.settling(h.j.Now) {
			h.Agenda.replan(0) // that was the last report that the ring waited for
		}
	}
	if !n.usable() {
		h.participantLost(n, n.whyNot())
	}
}

// judge finds nodes that no re-sending brings to what is wanted of them: the
// term has moved on, ring 0's topic holds a later decision, or the node holds
// a later plan, which we did not make.
func (h *Rings) judge(n *node) {
	if h.root.Listening() || n.Device.Unassigned || !n.Device.Pending() || !n.Device.Known {
		return
	}
	if n.Device.Outdated(h.j.Term) || n.Device.Group == 0 && *n.Device.Want.Decided != h.idleDecision {
		if n.Device.Beyond() && n.Device.Want.Term == h.j.Term { // it says that it has what was never given: told again, later and later
			n.Device.Strayed(h.j.Now)
			if h.j.Now < n.again.until {
				return
			}
			n.own().again.strike(h.j.Now, renewsFree, dampLast)
		}
		h.Agenda.renew(n, fmt.Sprintf("node %d is not at generation %d, which is of another term or planner", n.Device.ID, n.Device.Want.Gen))
	}
}

// Resendable: what is committed for a node is still what it is to be told.
func (h *Rings) Resendable(d *member.Device) bool {
	h.judge(&h.Placed.nodes[d.ID])
	return !d.Unassigned && !d.Outdated(h.j.Term)
}

// renew asks for a generation that tells a node where it stands, its whole
// ring with it.
func (a *agenda) renew(n *node, why string) {
	if r := a.pl.ring(n.Device.Group); r == nil {
		a.unassign(n)
	} else if !r.renew {
		r.renew = true
		a.mark(r)
		a.j.Note(journal.Info, "plan goes to the ring again", journal.Note{Rule: "renew", Node: int64(n.Device.ID), Ring: r.id, Text: why})
	}
	a.replan(debounce)
}
