package hbd

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// Facts are what holds now of a node, or of one of its bundles.
func (a *agenda) Facts(id proto.NodeID, bundle int16) []proto.WhyLine {
	n := &a.pl.nodes[id]
	fact := func(b int16, rule, text string) proto.WhyLine {
		return proto.WhyLine{AtMillis: a.j.Wall, Node: n.Device.ID, Bundle: b, Rule: rule, Text: proto.Clip(text), Measured: proto.NoPower, Expected: proto.NoPower, Gen: n.Device.Want.Gen}
	}
	var out []proto.WhyLine
	switch r := a.pl.ring(n.Device.Group); {
	case r != nil:
		out = append(out, fact(-1, "placement", fmt.Sprintf("member %d of %d of ring %d, which is %s at generation %d",
			slices.Index(r.nodes, n.Device.ID)+1, len(r.nodes), r.id, r.stateNow(), r.Gen)))
		if r.frozen(a.j.Now) {
			for _, id := range r.nodes {
				if m := &a.pl.nodes[id]; m.usable() && !m.Device.Ready() {
					out = append(out, fact(-1, "frozen", fmt.Sprintf("ring %d cannot be changed: node %d: %s", r.id, id, m.whyNot())))
				}
			}
		}
	case n.Device.Unassigned:
		out = append(out, fact(-1, "placement", "in no ring; waits to be told so"))
	default:
		out = append(out, fact(-1, "placement", "in no ring"+map[bool]string{true: ": spare", false: ", and no spare"}[n.spare()]))
	}
	if why := n.whyNot(); why != "" {
		out = append(out, fact(-1, "usable", why))
	}
	for _, text := range a.waits(n) {
		out = append(out, fact(-1, "timer", text))
	}
	said := n.Device.Whole()
	for i := range said.Sides {
		s := &said.Sides[i]
		if bundle >= 0 && sideBundle(said, s) != bundle && !bansOn(said, s, bundle) {
			continue
		}
		for _, text := range n.sideFacts(said, s, a.j.Now) {
			out = append(out, fact(-1, "side", text))
		}
	}
	for i := range said.Bundles {
		b := &said.Bundles[i]
		if bundle >= 0 && int16(b.Bundle) != bundle {
			continue
		}
		line := fact(int16(b.Bundle), "bundle", fmt.Sprintf("%s, %s, %s so far", b.Path, b.State, proto.Count(int(b.Flaps), "loss")))
		if !n.Device.Online() {
			line.Text += fmt.Sprintf(", as its report of %v ago says", (a.j.Now - n.Device.ReportAt).Round(time.Second))
		}
		line.Cause, line.Measured, line.Expected = b.Cause, b.Measured, b.Expected
		out = append(out, line)
		if text := said.Holding(b); text != "" {
			out = append(out, fact(int16(b.Bundle), "drift", text))
		}
		if text := n.healthOf(b.Bundle, a.j.Now); text != "" {
			out = append(out, fact(int16(b.Bundle), "health", text))
		}
	}
	return out
}

// Waits says what the rings wait for: answers, a node for a place, and light.
func (h *Rings) Waits() (out []string) {
	if text := h.txn.Waits(); text != "" {
		out = append(out, text)
	}
	slices.Sort(h.Placed.unsettled)
	h.Placed.unsettled = slices.DeleteFunc(slices.Compact(h.Placed.unsettled), func(id proto.RingID) bool {
		r := h.Placed.ring(id)
		if r == nil {
			return true
		}
		text := r.waitsFor()
		if text != "" {
			out = append(out, text)
		}
		r.unsettled = text != ""
		return !r.unsettled
	})
	if moves := h.Evidence.patience.Waits(); moves > 0 {
		text := fmt.Sprintf("one more ring would be whole if %d whole rings moved: they move once short rings have lacked nodes for %v in total", moves, time.Duration(moves)*h.Evidence.patience.Each())
		if mean, of := h.Evidence.patience.Mean(); mean > 0 {
			text += fmt.Sprintf("; up to %d move at once, for the last %d outages took %v in the mean", h.Evidence.patience.AtOnce(), of, mean.Round(time.Second))
		}
		if cost, of := h.Evidence.patience.Cost(); cost > 0 && h.Placed.fab.MovePriceMS == 0 {
			text += fmt.Sprintf("; jobs computed again after %v, the median of %d", cost.Round(time.Millisecond), of)
		}
		out = append(out, text)
	}
	if first, last, waits := h.Placed.Expected(); waits > 0 {
		out = append(out, fmt.Sprintf("%d new nodes, %d to %d, are expected since the fabric was edited", waits, first, last))
	}
	if len(h.Placed.rings) == 0 && len(h.Placed.nodes) > 0 && !h.root.Listening() {
		free := 0
		for i := range h.Placed.nodes {
			if h.Placed.nodes[i].free() {
				free++
			}
		}
		out = append(out, fmt.Sprintf("no ring: %d usable nodes, the smallest ring has %d", free, h.Placed.sizes[0]))
	}
	return out
}

// waitsFor says what a ring waits for, "" when it is as it is to be.
func (r *ringView) waitsFor() string {
	untold := slices.IndexFunc(r.nodes, func(id proto.NodeID) bool { return r.pl.nodes[id].usable() && !r.pl.nodes[id].Device.Ready() })
	switch {
	case untold >= 0:
		return fmt.Sprintf("ring %d cannot be changed: node %d: %s", r.id, r.nodes[untold], r.at(untold).whyNot())
	case len(r.nodes) < r.size:
		return fmt.Sprintf("ring %d has %d of %d nodes: no usable spare is within reach", r.id, len(r.nodes), r.size)
	case !r.hasLight():
		return fmt.Sprintf("ring %d has light on %d of %d links", r.id, r.linksConfirmed(), r.linkCount())
	}
	return ""
}

// sideBundle is the bundle that a side uses, -1 when it uses none.
func sideBundle(m *proto.Reported, s *proto.SideReport) int16 {
	if list := candidates(m, s.Side); s.Current >= 0 && int(s.Current) < len(list) {
		return int16(list[s.Current].Bundle)
	}
	return -1
}

// candidates are those of a side, as the node has applied them.
func candidates(m *proto.Reported, side proto.Side) []proto.Candidate {
	switch {
	case len(m.Rings) == 0:
		return nil
	case side == proto.Right:
		return m.Rings[0].Right
	}
	return m.Rings[0].Left
}

// bansOn: some banned candidate of the side goes over the bundle.
func bansOn(m *proto.Reported, s *proto.SideReport, bundle int16) bool {
	for k, c := range candidates(m, s.Side) {
		if s.Banned&(1<<k) != 0 && int16(c.Bundle) == bundle {
			return true
		}
	}
	return false
}

// sideFacts says where a side stands, what keeps it there, which candidates
// it may not use, and what it waits for.
func (n *node) sideFacts(m *proto.Reported, s *proto.SideReport, now time.Duration) []string {
	list := candidates(m, s.Side)
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
		out = append(out, fmt.Sprintf("%s side waits: %s%s", s.Side, s.Timer, n.left(s.UntilMicros, now)))
	}
	for k := range list {
		if s.Banned&(1<<k) == 0 {
			continue
		}
		wait := "; no steady light so far"
		if s.Timer == proto.TimerBan {
			wait = ", which it has had;" + n.left(s.UntilMicros, now) + " to go"
		}
		out = append(out, fmt.Sprintf("%s side: %s is banned after 8 losses within 10 s; a plan that names it lifts the ban, or 10 s of steady light%s", s.Side, name(k), wait))
	}
	return out
}

// left says how long a timer of the agent's clock still runs.
func (n *node) left(untilMicros uint64, at time.Duration) string {
	now := n.Device.Report.Uptime() + at - n.Device.ReportAt
	if rest := time.Duration(untilMicros)*time.Microsecond - now; rest > 0 {
		return " " + rest.Round(time.Millisecond).String()
	}
	return " over by now"
}

// waits says what the planner itself waits for with a node and its ring.
func (a *agenda) waits(n *node) []string {
	var out []string
	in := func(at time.Duration) string { return max(0, at-a.j.Now).Round(time.Millisecond).String() }
	if n.Device.Pending() {
		text := fmt.Sprintf("generation %d is wanted and not reported", n.Device.Want.Gen)
		if n.Device.ResendAt() != journal.Never {
			text += "; sent again in " + in(n.Device.ResendAt())
		}
		out = append(out, text)
	}
	if at := n.Device.AskAt(); at != journal.Never {
		out = append(out, "it is asked to announce itself in "+in(at))
	}
	if n.Device.Refusal.Code != proto.OK {
		out = append(out, fmt.Sprintf("the plan of generation %d, which knew %d of its bypasses, was refused: %s %s; asked again in %s, or when that has changed",
			n.Device.Refusal.Gen, n.Device.Refusal.BypassSeq, n.Device.Refusal.Code, n.Device.Refusal.Reason, in(n.Device.Refusal.Until)))
	}
	if n.leaving {
		out = append(out, "it is being drained")
	}
	r := a.pl.ring(n.Device.Group)
	if r == nil {
		return out
	}
	if r.hurtAt != 0 && r.hurtAt+settleWait > a.j.Now {
		out = append(out, fmt.Sprintf("ring %d: the reports of its bypass are awaited for %s", r.id, in(r.hurtAt+settleWait)))
	}
	if r.splitAt != 0 || r.renewed > 0 && !r.hasLight() {
		out = append(out, fmt.Sprintf("ring %d is split though its members are well, formed anew %d times; next attempt in %s", r.id, r.renewed, in(max(r.splitAt+splitWait, r.renewAt))))
	}
	return out
}
