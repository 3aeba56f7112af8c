package core

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// switchView is a switch as the circuits see it.
type switchView struct {
	*member.Device
	shownAt time.Duration // when it first reported its target
	byHand  uint64        // changes at the board that it told of in a refusal
	tells   int           // times in a row that it was told again as its report differed
	tellAt  time.Duration // not again before
}

func (v *switchView) index() int { return int(v.ID - proto.FirstSwitch) }

// quoted is the bypass_seq that a plan quotes: changes at the board that it knows of.
func (v *switchView) quoted() uint64 { return max(v.byHand, v.Report.BypassSeq()) }

// able: it can take part in a stage, and holds what it should.
func (v *switchView) able() bool { return able(v.Standing()) }

func able(s member.Standing) bool { return s.Ready && !s.Pending && !s.Unassigned }

func (v *switchView) whyUnable() string {
	switch {
	case v.WhyNot() != "":
		return v.WhyNot()
	case v.Pending() || v.Unassigned:
		return "has not taken its last generation"
	}
	return ""
}

// tuning: some circuit of a switch that reports is on its way.
func (v *switchView) tuning() bool {
	return slices.ContainsFunc(v.Circuits(), func(r proto.CircuitReport) bool { return r.State == proto.Tuning })
}

// News follows up on one word of a switch.
func (c *Circuits) News(n member.News) {
	v := &c.Evidence.switches[n.Device.ID-proto.FirstSwitch]
	c.agenda.unreported = true
	switch n.Kind {
	case member.Birth:
		if !n.Again {
			c.born(v)
		}
		c.changed(v, n.Before)
	case member.Gone:
		// Its light stays: mirrors hold.
		c.j.Note(journal.Info, "switch offline", journal.Note{Rule: "offline", Node: int64(v.ID), Text: n.Why + "; its circuits stay as they are"})
		if part := c.Stages.Txn.Part(v.Device); part != nil && !part.Absent {
			c.Stages.abort(fmt.Sprintf("switch %d: went offline", v.index()))
		}
		c.changed(v, n.Before)
	case member.Reported:
		c.reported(v, n.Before)
		c.changed(v, n.Before)
	case member.Spoke:
		if n.Ack.Phase == proto.PhasePrepare {
			c.Stages.prepared(v, n.Ack)
		}
		if v.able() != able(n.Before) {
			c.changed(v, n.Before)
		}
	case member.Weighed:
		c.changed(v, n.Before)
	}
}

// Told notes an event of a switch that says what its reports do not.
func (c *Circuits) Told(d *member.Device, m *proto.Event) {
	c.agenda.unreported = true
	if m.Kind == proto.EvSplitBrain {
		c.j.Note(journal.Error, "another plan with the same number", journal.Note{Rule: "split_brain", Node: int64(d.ID), Gen: m.Generation, Text: m.Text})
	}
}

// changed follows up on anything new about a switch.
func (c *Circuits) changed(v *switchView, before member.Standing) {
	v.judge(c)
	if v.able() != able(before) || v.Unassigned {
		c.agenda.replan(debounce)
	}
}

// judge finds whether no re-sending brings the switch to what is wanted.
func (v *switchView) judge(c *Circuits) {
	v.Unassigned = v.Unassigned || c.heard && v.Known && v.Pending() && v.Outdated(c.j.Term)
}

// Resendable: what is committed for a switch is still what it is to be told.
func (c *Circuits) Resendable(d *member.Device) bool {
	c.Evidence.switches[d.ID-proto.FirstSwitch].judge(c)
	if d.Unassigned {
		c.agenda.replan(0)
	}
	return !d.Unassigned && !d.Outdated(c.j.Term)
}

// born begins a new life: what did not come up in the old one is forgotten.
func (c *Circuits) born(v *switchView) {
	v.Refusing(0)
	for s, life := range c.Evidence.bad { // any order: each is judged by itself
		if s.sw == v.index() && life != v.Session {
			c.Evidence.setBad(s, false)
			c.agenda.replan(debounce)
		}
	}
	for s := range c.Evidence.tried { // any order: each is judged by itself
		if s.sw == v.index() {
			delete(c.Evidence.tried, s)
		}
	}
	if ports, need := int(v.Birth.Ports), c.Evidence.fab.PortsOf(v.index()); ports < need {
		v.Refused(member.Refusal{Code: proto.Invalid, Until: journal.Never, Reason: fmt.Sprintf("%d ports, and %d have fibres", ports, need)})
		c.j.Note(journal.Error, "switch is too small", journal.Note{Rule: "ports", Node: int64(v.ID), Text: v.Refusal.Reason})
	}
}

// reported takes a report.
func (c *Circuits) reported(v *switchView, before member.Standing) {
	c.Evidence.dark = max(c.Evidence.dark, v.Whole().DarkMicros)
	if before.Pending && !v.Pending() || v.shownAt == 0 { // 0: a former planner's switch may still be at it
		v.shownAt = c.j.Now
	}
	if !before.Pending && v.Pending() {
		// It lost what it had, to a loss of power of its board: tell it again.
		c.Table.Resend(v.Device)
	}
	if c.heard && v.Want.Gen == 0 && !v.Unassigned {
		c.adoptSwitch(v)
	}
	if c.readCircuits(v); c.heard && (len(c.Evidence.out.young) > 0 || slices.ContainsFunc(v.Circuits(), noInput)) {
		c.agenda.replan(debounce)
	}
}

// readCircuits looks at the circuits of a switch that holds its target. One
// that has failed, or is not what is wanted - after a loss of power, or by
// somebody at the board - is told again once; if that does not help, its link
// goes elsewhere if it can.
func (c *Circuits) readCircuits(v *switchView) {
	if !c.heard || v.Want.Gen == 0 || v.Pending() || v.Unassigned || !c.Stages.rests() || c.Stages.open.active() {
		return
	}
	s := v.index()
	want := c.Evidence.wanted(s)
	again := len(want) != len(v.Circuits())
	var failed []slot // and not told again so far
	for _, x := range want {
		k := slot{s, x.A, x.B}
		switch r := c.Evidence.reportOf(s, x.A, x.B); {
		case r == nil || r.Job != x.Job:
			again = true
		case r.State.Lit():
			c.Evidence.setBad(k, false)
			delete(c.Evidence.tried, k)
		case r.State == proto.Failed && c.Evidence.bad[k] == 0 && (c.Evidence.tried[k] == 0 || c.Evidence.tried[k] == v.Want.Gen):
			failed, again = append(failed, k), true
		case r.State == proto.Failed && c.Evidence.bad[k] == 0:
			c.Evidence.setBad(k, true)
			c.j.Note(journal.Warn, "circuit has failed", journal.Note{Rule: "circuit_failed", Node: int64(v.ID),
				Text: fmt.Sprintf("port %d to %d, job %d", x.A, x.B, x.Job)})
			c.agenda.replan(debounce)
		}
	}
	switch {
	case !again:
		v.tells = 0
	case c.j.Now < v.tellAt:
		c.agenda.replan(v.tellAt - c.j.Now)
	default:
		v.tellAt = c.j.Now + member.Backoff(v.tells+1)
		v.tells++
		v.Unassigned = true
		for _, k := range failed {
			c.Evidence.tried[k] = v.Want.Gen
		}
		c.j.Note(journal.Info, "plan goes to the switch again", journal.Note{Rule: "renew", Node: int64(v.ID), Gen: v.Want.Gen, Text: "it reports other circuits than it was told, or failed ones"})
	}
}
