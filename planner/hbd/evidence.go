package hbd

import (
	"fmt"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// What the planner concludes, and from what. A node that says itself that it
// is out is believed. An agent that is offline proves nothing about its
// light: only when both neighbours have lost it is the node held to be dead,
// or when one has and its agent stays away.

// concludeDead looks for runs of offline members between members that have
// lost them.
func (h *Rings) concludeDead(r *ringView) {
	for i := 0; i < len(r.nodes); {
		if !r.doubted(i) {
			i++
			continue
		}
		first := i
		for i < len(r.nodes) && r.doubted(i) {
			i++
		}
		left := first == 0 || r.lost(first-1, proto.Right)
		right := i == len(r.nodes) || r.lost(i, proto.Left)
		if first == 0 && i == len(r.nodes) || (!left || !right) && !h.abandoned(r, first, i) {
			continue
		}
		for _, id := range r.nodes[first:i] {
			if n := &h.nodes[id]; !n.dead && n.usable() {
				h.die(r, n, first, i)
			}
		}
	}
}

// abandoned: nobody has spoken for a run of members for a while, and one
// neighbour has lost its light. Their lasers may shine on, but nobody moves
// them: a piece stays open until the other neighbour passes them by too.
func (h *Rings) abandoned(r *ringView, first, end int) bool {
	if (first == 0 || !r.lost(first-1, proto.Right)) && (end == len(r.nodes) || !r.lost(end, proto.Left)) {
		return false
	}
	for _, id := range r.nodes[first:end] {
		n := &h.nodes[id]
		if !n.usable() {
			continue
		}
		gone := n.GoneAt
		if n.Online() {
			gone = n.probe.at
		}
		if wait := gone + agentPatience - h.j.Now; wait > 0 {
			r.abandonedAt = h.j.Now + wait
			h.mark(r)
			h.replan(wait)
			return false
		}
	}
	return true
}

func (h *Rings) die(r *ringView, n *node, first, end int) {
	n.dead = true
	var by string
	switch {
	case first == 0 || !r.lost(first-1, proto.Right):
		by = fmt.Sprintf("node %d has lost its light", r.nodes[end])
	case end == len(r.nodes) || !r.lost(end, proto.Left):
		by = fmt.Sprintf("node %d has lost its light", r.nodes[first-1])
	default:
		by = fmt.Sprintf("nodes %d and %d have lost its light", r.nodes[first-1], r.nodes[end])
	}
	what := "is offline"
	if n.Online() {
		what = "does not answer"
	}
	n.reason = "dead: its agent " + what + " and " + by
	h.j.Note(journal.Warn, "node is dead", journal.Note{Rule: "dead", Node: int64(n.ID), Ring: r.id, Gen: r.Gen, Cause: proto.CauseLightLost, Text: n.reason})
	h.markNode(n)
	h.replan(debounce)
	h.participantLost(n, n.reason)
}

// watchRing follows a ring's state, and finds one that is split though every
// member is well and has been told: it is formed anew, less and less often.
func (h *Rings) watchRing(r *ringView) {
	was := r.state
	r.state = r.stateNow()
	if r.state != was {
		level := journal.Info
		if r.state == proto.RingDown || r.state == proto.RingDegraded {
			level = journal.Warn
		}
		h.j.Line(journal.Line{Level: level, Message: "ring " + r.state.String(), Node: -1, Ring: r.id, Generation: r.Gen})
	}
	if r.seeLight() == len(r.nodes)-1 {
		r.splitAt, r.renewed, r.renewAt = 0, 0, 0
		return
	}
	if h.root.Listening() {
		return
	}
	apart := h.concludeParted(r)
	if !r.allWell() || r.renew {
		r.splitAt = 0
		return
	}
	if r.splitAt == 0 {
		r.splitAt = max(1, h.j.Now)
	}
	if apart {
		r.splitAt = max(1, min(r.splitAt, h.j.Now-splitWait)) // both ends say so: nothing to wait for
	}
	h.mark(r)
	h.replan(max(r.splitAt+splitWait, r.renewAt) - h.j.Now)
}

// dueSplit marks a split ring for a new attempt. After some attempts the
// fibres that stayed dark are held to be cut, and the placement avoids them.
func (h *Rings) dueSplit(r *ringView) {
	if r.splitAt == 0 || h.j.Now < r.splitAt+splitWait || h.j.Now < r.renewAt {
		return
	}
	r.splitAt = 0
	if r.renewed >= renewsToCut || h.cuts.doubtful(r) {
		h.concludeCut(r)
	}
	r.renewAt = h.j.Now + min(renewFirst<<min(r.renewed, 10), renewLast)
	r.renewed++
	r.renew = true
	h.j.Note(journal.Warn, "ring is split though its members are well", journal.Note{Rule: "rejoin", Node: -1, Ring: r.id, Gen: r.Gen,
		Text: "formed anew; nodes that returned are let in again"})
}
