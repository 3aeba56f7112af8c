package hbd

import (
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/planner/ring"
	"ringlight/proto"
)

// prepare sends the desired states of a new generation.
func (h *Rings) prepare(q *proposal) {
	h.Table.Numbers.Gen++
	for _, r := range q.rings {
		h.Placed.tell(r)
	}
	h.proposal, h.text = q, q.explain()
	h.txn.Prepare(h.Table.Numbers.Gen, h.text, h.Agenda.since, q.desired(h.j.Term, h.Table.Numbers.Gen, h.Evidence.broken), func(*member.Device) bool { return false })
	h.markJoins()
	for _, id := range q.idle {
		h.txn.Part(h.Placed.nodes[id].Device).Idle = true
	}
	h.doubtAt = h.j.Now + h.Evidence.probes.joins()
	h.j.Line(journal.Line{Level: journal.Info, Message: "generation prepares", Rule: "prepare", Node: -1, Generation: h.Table.Numbers.Gen, Text: h.text})
	h.txn.Resend()
	if h.txn.Complete() {
		h.decide() // only rings without a node left: nobody to ask
	}
}

// markJoins finds the nodes that would join a running ring. They may be left
// out where someone else is asked too.
func (h *Rings) markJoins() {
	h.joinAt, h.joinDue = journal.Never, false
	joins, silences := 0, 0
	for _, r := range h.proposal.rings {
		if h.Placed.ring(r.id) == nil {
			continue
		}
		for _, id := range r.nodes {
			if n := &h.Placed.nodes[id]; n.Device.Group == 0 {
				h.txn.Part(n.Device).Optional = true
				joins, silences = joins+1, max(silences, n.Device.Silences())
			}
		}
	}
	if len(h.proposal.rings) > 0 && joins+len(h.proposal.idle) > 0 && joins < len(h.txn.Parts) {
		h.joinAt = h.j.Now + min(h.Evidence.probes.joins()<<min(silences, maxJoinWaits), probeMost)
	}
}

// leaveOut gives up on joining nodes that keep all others waiting. It reports
// whether the generation is over.
func (h *Rings) leaveOut() bool {
	if h.j.Now < h.joinAt {
		return false
	}
	needed := false
	h.txn.Unanswered(func(part *member.Part) { needed = needed || !part.Optional && !part.Idle })
	if needed {
		h.joinAt, h.joinDue = journal.Never, true // it is not the joining ones who keep the others waiting
		return false
	}
	if !slices.ContainsFunc(h.txn.Parts, func(part member.Part) bool { return part.Optional && !part.Prepared && !part.Absent }) {
		h.joinAt, h.joinDue = journal.Never, false
		h.txn.Unanswered(h.txn.LeaveOut) // it is told when it can be
		h.decide()
		return true
	}
	h.silence("left_out", fmt.Sprintf("generation %d goes on without it after %v", h.txn.Gen, (h.j.Now-h.txn.Began()).Round(time.Millisecond)))
	h.Agenda.betterAt = max(h.Agenda.betterAt, h.j.Now+slowWait)
	h.abort("a node that would join did not answer")
	return true
}

// silence leaves out members that did not answer, until they speak.
func (h *Rings) silence(rule, text string) {
	h.txn.Unanswered(func(part *member.Part) {
		h.Placed.touch(part.Device.ID)
		if h.Table.Silence(part.Device, journal.Never); part.Device.Refusal.Code != proto.OK {
			h.refusing = append(h.refusing, part.Device.ID)
		}
		if r := h.Placed.ring(h.Placed.nodes[part.Device.ID].Device.Group); r != nil {
			r.balked = true
		}
		h.j.Note(journal.Warn, "node did not answer a prepare", journal.Note{Rule: rule, Node: int64(part.Device.ID), Gen: h.txn.Gen, Text: text})
	})
}

func (h *Rings) checkPrepare() {
	if !h.j.LinkUp || h.leaveOut() || h.obstacles.gives() {
		return
	}
	if h.j.Now >= h.doubtAt {
		h.doubtAt = h.j.Now + h.Evidence.probes.joins()
		if slices.ContainsFunc(h.txn.Parts, func(part member.Part) bool { return part.Prepared }) { // else it is the planner's own link that is slow
			since := h.j.Now
			h.doubtAt = journal.Never
			h.txn.Unanswered(func(part *member.Part) {
				if n := &h.Placed.nodes[part.Device.ID]; h.Placed.ring(n.Device.Group).unmissed(n.Device.ID) {
					h.Evidence.probes.ask(n, since, probeWait)
				}
			})
		}
	}
	if !h.txn.Late() {
		h.txn.Resend()
		return
	}
	h.silence("presumed_abort", fmt.Sprintf("generation %d, %d s", h.txn.Gen, int(member.PrepareTimeout.Seconds())))
	h.abort("not every node answered in time")
}

// participantLost ends a generation that waits for a node which is gone. One that is
// only told that it is in no ring may be anything but out: it ends no ring's repair.
func (h *Rings) participantLost(n *node, why string) {
	timeOutage(&h.Evidence.patience, n, h.j.Now)
	switch part := h.txn.Part(n.Device); {
	case part == nil || part.Idle && n.Device.Ready() && n.able():
	case part.Idle && len(h.proposal.rings) > 0:
		h.obstacles.leftOut(part)
	default:
		h.abort(fmt.Sprintf("node %d: %s", n.Device.ID, why))
	}
}

// leftOut no longer waits for a node on which no ring depends; it is told when it can be.
func (o *obstacles) leftOut(part *member.Part) {
	h := o.h
	if part.Prepared || part.Absent {
		return
	}
	if h.txn.LeaveOut(part); h.txn.Complete() {
		h.decide()
	}
}

// abort gives the generation up; the next look is at what it was about.
func (h *Rings) abort(why string) {
	q := h.proposal
	h.Agenda.wantBetter = true
	h.Drop()
	for _, r := range q.rings {
		h.Placed.tell(r)
		h.Agenda.mark(h.Placed.ring(r.id))
	}
	for _, id := range q.gone {
		h.Agenda.mark(h.Placed.ring(id))
	}
	h.j.Note(journal.Warn, "generation aborted", journal.Note{Rule: "presumed_abort", Node: -1, Gen: h.txn.Gen, Text: why})
	h.Agenda.replan(0)
}

// Drop forgets what is being prepared and sends nothing.
func (h *Rings) Drop() {
	if h.txn.Phase() == member.Preparing {
		h.txn.Drop()
		for _, n := range h.proposal.spares {
			delete(h.Placed.kept, n)
		}
		h.proposal = nil
	}
}

// prepared takes a node's answer to a prepare.
func (h *Rings) prepared(n *node, m *proto.Ack) {
	switch h.txn.Answer(n.Device, m) {
	case member.Lost:
		h.Agenda.renew(n, fmt.Sprintf("node %d refuses generation %d sent again: %s", n.Device.ID, n.Device.Want.Gen, m.Words()))
	case member.Refused:
		h.refused(n, m)
	case member.Prepared:
		if h.joinDue {
			h.joinAt = h.j.Now // perhaps it was the last whom the others need
		}
	case member.Complete:
		h.decide()
	}
}

// refused takes a node's no: the generation is given up, and the next goes
// without the node until what it was about has changed, or some time is over.
func (h *Rings) refused(n *node, m *proto.Ack) {
	n.Device.Refuse(m, h.j.Now)
	h.refusing = append(h.refusing, n.Device.ID)
	part := h.txn.Part(n.Device)
	quoted, r := part.Bypass, n.Device.Refusal
	r.BypassSeq, r.LastEvent = quoted, n.Device.Report.LastEvent()
	switch m.Code {
	case proto.Conflict:
		if n.Device.Refusals <= member.MaxRecounts {
			r.Until = h.j.Now + settleWait
		}
		if m.BypassSeq > quoted && m.BypassSeq >= n.bypass() && n.Device.Refusals <= member.MaxRecounts {
			n.own().later.bypass, r = m.BypassSeq, member.Refusal{} // it says itself what to quote
		}
	case proto.NotCalibrated:
		r.Calibs = calibrationsOf(&n.Device.Report)
	}
	if m.Field == "bypass_seq" && n.Device.Known && m.Code == proto.Invalid {
		n.own().later.bypass = 0 // what it said in between was false
		n.eased()
	}
	n.Device.Refused(r)
	h.j.Note(journal.Warn, "node refused a plan", journal.Note{Rule: "refused", Node: int64(n.Device.ID), Gen: h.txn.Gen,
		Text: m.Words()})
	if part.Idle && len(h.proposal.rings) > 0 {
		h.obstacles.leftOut(part)
		return
	}
	h.abort(fmt.Sprintf("node %d refused: %s", n.Device.ID, m.Code))
}

func (h *Rings) decide() { h.txn.Decide(h.proposal.records(&h.txn)) }

// Persisted takes the news that records are on disk. It reports whether they
// were a decision of the rings.
func (h *Rings) Persisted(id uint64) bool {
	if !h.txn.Persisted(id) {
		return false
	}
	q := h.proposal
	h.proposal, h.obstacles.yields = nil, 0
	h.nextRing = q.next
	for _, id := range q.gone {
		for _, n := range h.Placed.ring(id).nodes {
			h.leave(n)
		}
		h.Placed.dropRing(id)
	}
	// All leave before any enters: a node may go from one ring to another.
	for _, r := range q.rings {
		if old := h.Placed.ring(r.id); old != nil {
			for _, n := range old.nodes {
				h.leave(n)
			}
			h.Placed.index.Put(ring.Group{ID: r.id, Size: r.size})
		}
	}
	for _, r := range q.rings {
		if took := h.j.Now - h.txn.Began(); took > slowPrepare {
			r.toldAt, r.slow = h.j.Now, min(followTurns*took, followMost)
		}
		h.Placed.enter(r, h.txn.Decided)
		h.Agenda.mark(h.Placed.ring(r.id))
	}
	if q.owner != "" {
		for _, id := range q.stock {
			h.Placed.ring(id).owner = q.owner
			h.Placed.touchRing(id)
		}
		ClaimsOf(h).claimed()
	}
	h.txn.Commit()
	for _, owner := range h.released {
		if records := ClaimsOf(h).Release(owner); len(records) > 0 {
			h.j.Persist(records...)
		}
	}
	h.released = nil
	for i := range h.txn.Parts {
		h.Placed.nodes[h.txn.Parts[i].Device.ID].unlost()
	}
	for _, id := range q.idle {
		h.Placed.place(id, 0)
		h.Agenda.markNear(id)
	}
	h.j.Note(journal.Info, "generation committed", journal.Note{Rule: "commit", Node: -1, Gen: h.txn.Gen, Cause: proto.CausePlan, Text: h.text})
	for _, r := range q.rings {
		h.Table.SendDecision(r.id, h.txn.Decided)
	}
	if len(q.idle) > 0 {
		h.idleDecision = h.txn.Decided
		h.Table.SendDecision(0, h.txn.Decided)
	}
	if len(q.stage) > 0 {
		h.stage, h.stageAt = q.stage, h.j.Now
	}
	h.Agenda.replan(debounce)
	return true
}

// leave takes a node out of its ring; whoever can be told is a participant
// and gets its new place after this.
func (h *Rings) leave(id proto.NodeID) {
	h.Placed.place(id, 0)
	h.Agenda.unassign(&h.Placed.nodes[id])
}
