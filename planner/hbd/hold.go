package hbd

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// An operator's word that a node stays out outlives its drain, its agent and
// its planner: a node that comes back in the middle of a repair joins no ring, and is
// drained. Its agent keeps it too; the store alone knows who said it, and why.

const prefixHold = "hold/" // hold, by the node's number

// hold is who took a node out, when, and why.
type hold struct {
	Author string `json:"author,omitempty"`
	Reason string `json:"reason,omitempty"`
	Millis uint64 `json:"millis"` // wall clock, for people
	// Quarantine: nothing that it says counts, and its ring goes round it at once.
	Quarantine bool `json:"quarantine,omitempty"`

	again time.Duration // when its agent may be told again
}

func holdKey(id proto.NodeID) string { return journal.NumberedKey(prefixHold, uint64(id)) }

// about says who took a node out, and why.
func (x *hold) about() string {
	s := "drained"
	if x.Quarantine {
		s = "quarantined"
	}
	if x.Author != "" {
		s += " by " + x.Author
	}
	if x.Reason != "" {
		s += ": " + x.Reason
	}
	return s
}

// told begins a line of the journal with it, where somebody said so.
func (x *hold) told() string {
	if x.Author == "" && x.Reason == "" {
		return ""
	}
	return x.about() + "; "
}

// note is the hold as operators see it.
func (x *hold) note() *proto.DrainNote {
	if x == nil {
		return nil
	}
	return &proto.DrainNote{Author: x.Author, Reason: x.Reason, SinceMillis: x.Millis}
}

// holds are the nodes that stay out.
type holds struct {
	h    *Rings
	list []proto.NodeID
}

// take keeps a node out from now on, and says what the store is to know.
func (hs *holds) take(n *node, x hold) journal.Record {
	if n.hold == nil {
		hs.list = append(hs.list, n.Device.ID)
	}
	n.own().hold = &x
	if x.Quarantine {
		n.stepped(x.about())
		n.Device.Ignored = true
		hs.h.Placed.reads(n.Device.ID)
	}
	return journal.Encode(holdKey(n.Device.ID), x)
}

// drop lets a node in again.
func (hs *holds) drop(n *node) {
	if n.hold == nil {
		return
	}
	if n.hold.Quarantine {
		n.stepped("")
		n.Device.Ignored = false
	}
	n.own().hold = nil
	n.eased()
	hs.h.Placed.reads(n.Device.ID)
	hs.list = slices.DeleteFunc(hs.list, func(id proto.NodeID) bool { return id == n.Device.ID })
	hs.h.j.Persist(journal.Record{Key: holdKey(n.Device.ID)})
}

// restore takes one from the store.
func (hs *holds) restore(n *node, raw []byte) error {
	var x hold
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if n.hold != nil {
		return fmt.Errorf("node %d twice", n.Device.ID)
	}
	hs.take(n, x)
	return nil
}

// check drains those that came back and are in no ring any more.
func (hs *holds) check() {
	for _, id := range hs.list {
		if n := &hs.h.Placed.nodes[id]; hs.due(n) && hs.h.j.Now >= n.hold.again {
			n.hold.again = hs.h.j.Now + member.ResendFirst
			hs.h.j.Command(n.Device.ID, n.Device.Session, proto.Command{Verb: proto.VerbDrain})
		}
	}
}

// due: its agent is there and does not know, and no ring needs it.
func (hs *holds) due(n *node) bool {
	return hs.h.j.LinkUp && !n.hold.Quarantine && n.Device.Online() && n.Device.Session != 0 && n.Device.Known && !n.drained() && !n.leaving &&
		(n.said.out || n.Device.Group == 0 && hs.h.txn.Phase() == member.Resting && (len(n.Device.Whole().Rings) == 0 || !n.Device.Unassigned && !n.Device.Pending()))
}

// next is when one is to be told again.
func (hs *holds) next() time.Duration {
	next := journal.Never
	for _, id := range hs.list {
		if n := &hs.h.Placed.nodes[id]; hs.due(n) {
			next = min(next, n.hold.again)
		}
	}
	return next
}

// Quarantine leaves a node out of everything: nothing that it says counts, its ring is
// formed without it at once, and nobody waits for it.
func Quarantine(h *Rings, q *proto.OpRequest, r *proto.OpReply) {
	n := &h.Placed.nodes[q.Node]
	refuse := func(code proto.Code, field, limit, reason string) {
		r.Refuse(&proto.Error{Code: code, Field: field, Limit: limit, Reason: reason})
	}
	switch {
	case q.Reason == "":
		refuse(proto.Invalid, "reason", "a text", "who comes after has to know why")
		return
	case n.hold != nil && n.hold.Quarantine:
		refuse(proto.Duplicate, "node", "one that is not quarantined", fmt.Sprintf("node %d is %s", n.Device.ID, n.hold.about()))
		return
	case n.leaving:
		refuse(proto.Busy, "node", "", fmt.Sprintf("node %d is being drained", n.Device.ID))
		return
	}
	cost := h.Evidence.costWithout(n)
	if r.Cost = &cost; q.DryRun {
		return
	}
	x := hold{Author: q.Author, Reason: q.Reason, Millis: h.j.Wall, Quarantine: true}
	h.j.Persist(h.drains.take(n, x))
	h.j.Note(journal.Warn, "node is quarantined", journal.Note{Rule: "quarantine", Node: int64(n.Device.ID), Ring: n.Device.Group, Cause: proto.CauseOperator, Text: proto.Clip(x.about())})
	h.participantLost(n, "it is quarantined")
	h.Agenda.markNode(n)
	h.Agenda.replan(0)
}

// Lift ends a quarantine: the node is asked to announce itself, and told where it
// stands before it may join a ring.
func Lift(h *Rings, q *proto.OpRequest, r *proto.OpReply) {
	n := &h.Placed.nodes[q.Node]
	if n.hold == nil || !n.hold.Quarantine {
		r.Refuse(&proto.Error{Code: proto.Invalid, Field: "node", Limit: "one that is quarantined", Reason: fmt.Sprintf("node %d is not", n.Device.ID)})
		return
	}
	h.j.Note(journal.Info, "node is let in again", journal.Note{Rule: "quarantine", Node: int64(n.Device.ID), Cause: proto.CauseOperator, Text: "its quarantine is lifted"})
	h.drains.drop(n)
	h.Table.Clear(n.Device)
	h.Agenda.markNode(n)
	h.Agenda.replan(0)
}
