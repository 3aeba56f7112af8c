package planner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"ringlight/proto"
)

// whyPage answers why a node or bundle is as it is: what is true now, with
// measurements, and what led to it, from the planner's log and from the
// agent's own last events where it still has some that did not come here.
func (p *Planner) whyPage(q *proto.OpRequest, r *proto.OpReply, own []proto.Event) {
	n := p.node(q.Node)
	if n == nil || r.Code != proto.OK {
		return
	}
	lines := p.history(n, q.Bundle, own)
	facts := p.facts(n, q.Bundle)
	if room := proto.MaxPage - len(facts); len(lines) > room {
		lines = lines[len(lines)-room:]
	}
	r.Why = append(lines, facts...)
}

// history lists what happened to a node, its ring and, where it names it as a
// peer, its neighbours; earliest first.
func (p *Planner) history(n *nodeView, bundle int16, own []proto.Event) []proto.WhyLine {
	var out []proto.WhyLine
	known := map[uint64]bool{}
	for i := range p.log.entries {
		e := p.log.at(i)
		switch {
		case e.event != nil && e.event.Node == n.id:
			known[e.event.Seq] = true
			if bundle < 0 || int16(e.event.Bundle) == bundle {
				out = append(out, whyEvent(e.seq, e.millis, e.event))
			}
		case e.event != nil && e.event.Peer == n.id && e.event.Ring != 0 && aboutSide(e.event.Kind) && bundle < 0:
			out = append(out, whyEvent(e.seq, e.millis, e.event))
		case e.note != nil && (e.note.Node == int64(n.id) || e.note.Node < 0 && e.note.Ring != 0 && e.note.Ring == n.ring || e.note.Rule == "commit" && e.note.Gen == n.want.gen):
			out = append(out, proto.WhyLine{Seq: e.seq, AtMillis: e.millis, Node: n.id, Bundle: -1, Rule: e.note.Rule, Cause: e.note.Cause,
				Text: e.note.Text, Measured: proto.NoPower, Expected: proto.NoPower, Gen: e.note.Gen})
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

func whyEvent(seq, millis uint64, e *proto.Event) proto.WhyLine {
	text := e.Kind.String()
	if e.Kind == proto.EvAlarm && e.Resolved {
		text += " cleared"
	}
	if e.Path != e.FromPath && e.FromPath != proto.Dark {
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
	if e.Text != "" {
		text += ": " + e.Text
	}
	return proto.WhyLine{Seq: seq, AtMillis: millis, Node: e.Node, Bundle: int16(e.Bundle), Rule: e.Kind.MessageID(), Cause: e.Cause,
		Text: proto.Clip(text), Measured: e.Measured, Expected: e.Expected, Gen: e.Generation}
}

// aboutSide: the event's side and peer mean something.
func aboutSide(k proto.EventKind) bool {
	switch k {
	case proto.EvLightLost, proto.EvLightFound, proto.EvSwitched, proto.EvRestored, proto.EvClosed, proto.EvBanned:
		return true
	}
	return false
}

// facts are what holds now.
func (p *Planner) facts(n *nodeView, bundle int16) []proto.WhyLine {
	fact := func(b int16, rule, text string) proto.WhyLine {
		return proto.WhyLine{AtMillis: p.wall, Node: n.id, Bundle: b, Rule: rule, Text: proto.Clip(text), Measured: proto.NoPower, Expected: proto.NoPower, Gen: n.want.gen}
	}
	var out []proto.WhyLine
	switch r := p.ring(n.ring); {
	case r != nil:
		out = append(out, fact(-1, "placement", fmt.Sprintf("member %d of %d of ring %d, which is %s at generation %d",
			slices.Index(r.nodes, n.id)+1, len(r.nodes), r.id, p.stateOf(r), r.gen)))
		if p.frozen(r) {
			for _, id := range r.nodes {
				if m := &p.nodes[id]; m.usable() && !m.ready() {
					out = append(out, fact(-1, "frozen", fmt.Sprintf("ring %d cannot be changed: node %d: %s", r.id, id, m.whyNot())))
				}
			}
		}
	case n.unassigned:
		out = append(out, fact(-1, "placement", "in no ring; it is told so when it can be"))
	default:
		out = append(out, fact(-1, "placement", "in no ring: spare"))
	}
	if why := n.whyNot(); why != "" {
		out = append(out, fact(-1, "usable", why))
	}
	for _, text := range p.waits(n) {
		out = append(out, fact(-1, "timer", text))
	}
	if n.report == nil {
		return out
	}
	for i := range n.report.Sides {
		s := &n.report.Sides[i]
		if bundle >= 0 && n.sideBundle(s) != bundle && !n.bansOn(s, bundle) {
			continue
		}
		for _, text := range p.sideFacts(n, s) {
			out = append(out, fact(-1, "side", text))
		}
	}
	for i := range n.report.Bundles {
		b := &n.report.Bundles[i]
		if bundle >= 0 && int16(b.Bundle) != bundle {
			continue
		}
		line := fact(int16(b.Bundle), "bundle", fmt.Sprintf("%s, %s, %d losses so far", b.Path, b.State, b.Flaps))
		line.Cause, line.Measured, line.Expected = b.Cause, b.Measured, b.Expected
		out = append(out, line)
	}
	for i := range n.report.Alarms {
		a := &n.report.Alarms[i]
		out = append(out, fact(int16(a.Bundle), "alarm", a.Kind.String()+", "+a.Severity.String()+": "+a.Text))
	}
	return out
}

// sideBundle is the bundle that a side uses, -1 when it uses none.
func (n *nodeView) sideBundle(s *proto.SideReport) int16 {
	if len(n.report.Rings) == 0 || s.Current < 0 {
		return -1
	}
	list := n.report.Rings[0].Left
	if s.Side == proto.Right {
		list = n.report.Rings[0].Right
	}
	if int(s.Current) >= len(list) {
		return -1
	}
	return int16(list[s.Current].Bundle)
}

// candidates are those of a side, as the node has applied them.
func (n *nodeView) candidates(side proto.Side) []proto.Candidate {
	switch {
	case len(n.report.Rings) == 0:
		return nil
	case side == proto.Right:
		return n.report.Rings[0].Right
	}
	return n.report.Rings[0].Left
}

// bansOn: some banned candidate of the side goes over the bundle.
func (n *nodeView) bansOn(s *proto.SideReport, bundle int16) bool {
	for k, c := range n.candidates(s.Side) {
		if s.Banned&(1<<k) != 0 && int16(c.Bundle) == bundle {
			return true
		}
	}
	return false
}

// sideFacts says where a side stands, what keeps it there, which candidates
// it may not use, and what it waits for.
func (p *Planner) sideFacts(n *nodeView, s *proto.SideReport) []string {
	list := n.candidates(s.Side)
	name := func(k int) string {
		if k < 0 || k >= len(list) {
			return "none"
		}
		return fmt.Sprintf("node %d over %d/%s", list[k].Peer, list[k].Bundle, list[k].Path)
	}
	text := fmt.Sprintf("%s side: %s, request %s", s.Side, s.State, s.Request)
	switch {
	case s.State == proto.SideEnd:
	case int(s.Current) == int(s.Working):
		text += ", on its planned candidate " + name(int(s.Current))
	case s.Current < 0:
		text += ", in loopback; planned is " + name(int(s.Working))
	default:
		text += ", bypass: on " + name(int(s.Current)) + " in place of " + name(int(s.Working))
	}
	out := []string{text}
	if s.Timer != proto.TimerNone && s.Timer != proto.TimerBan {
		out = append(out, fmt.Sprintf("%s side waits: %s%s", s.Side, s.Timer, p.left(n, s.UntilMicros)))
	}
	for k := range list {
		if s.Banned&(1<<k) == 0 {
			continue
		}
		wait := "; no steady light so far"
		if s.Timer == proto.TimerBan {
			wait = ", which it has had;" + p.left(n, s.UntilMicros) + " to go"
		}
		out = append(out, fmt.Sprintf("%s side: %s is banned after 8 losses within 10 s; a plan that names it lifts the ban, or 10 s of steady light%s", s.Side, name(k), wait))
	}
	return out
}

// left says how long a timer of the agent's clock still runs.
func (p *Planner) left(n *nodeView, untilMicros uint64) string {
	now := time.Duration(n.report.UptimeMicros)*time.Microsecond + p.now - n.reportAt
	if rest := time.Duration(untilMicros)*time.Microsecond - now; rest > 0 {
		return " " + rest.Round(time.Millisecond).String()
	}
	return " over by now"
}

// waits says what the planner itself waits for with a node and its ring.
func (p *Planner) waits(n *nodeView) []string {
	var out []string
	in := func(at time.Duration) string { return max(0, at-p.now).Round(time.Millisecond).String() }
	if n.pending() {
		text := fmt.Sprintf("generation %d is wanted and not reported", n.want.gen)
		if n.resendAt != Never {
			text += "; sent again in " + in(n.resendAt)
		}
		out = append(out, text)
	}
	if n.refusal.code != proto.OK {
		out = append(out, fmt.Sprintf("the plan of generation %d, which knew %d of its bypasses, was refused: %s %s; asked again in %s, or when that has changed",
			n.refusal.gen, n.refusal.bypassSeq, n.refusal.code, n.refusal.reason, in(n.refusal.until)))
	}
	if n.leaving {
		out = append(out, "it is being drained")
	}
	r := p.ring(n.ring)
	if r == nil {
		return out
	}
	if r.hurtAt != 0 && r.hurtAt+settleWait > p.now {
		out = append(out, fmt.Sprintf("ring %d: the reports of its bypass are awaited for %s", r.id, in(r.hurtAt+settleWait)))
	}
	if r.splitAt != 0 || r.renewed > 0 && !p.hasLight(r) {
		out = append(out, fmt.Sprintf("ring %d is split though its members are well, formed anew %d times; next attempt in %s", r.id, r.renewed, in(max(r.splitAt+splitWait, r.renewAt))))
	}
	return out
}
