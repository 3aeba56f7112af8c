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
// its planner: who comes back in the middle of a repair joins no ring, and is
// drained. Its agent keeps it too; the store alone knows who said it, and why.

const prefixHold = "hold/" // hold, by the node's number

// hold is who took a node out, when, and why.
type hold struct {
	Author string `json:"author,omitempty"`
	Reason string `json:"reason,omitempty"`
	Millis uint64 `json:"millis"` // wall clock, for people

	again time.Duration // when its agent may be told again
}

func holdKey(id proto.NodeID) string { return journal.NumberedKey(prefixHold, uint64(id)) }

// about says who took a node out, and why.
func (x *hold) about() string {
	s := "drained"
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
		hs.list = append(hs.list, n.ID)
	}
	n.own().hold = &x
	return journal.Encode(holdKey(n.ID), x)
}

// drop lets a node in again.
func (hs *holds) drop(n *node) {
	if n.hold == nil {
		return
	}
	n.own().hold = nil
	n.eased()
	hs.list = slices.DeleteFunc(hs.list, func(id proto.NodeID) bool { return id == n.ID })
	hs.h.j.Persist(journal.Record{Key: holdKey(n.ID)})
}

// restore takes one from the store.
func (hs *holds) restore(key string, raw []byte) error {
	n, err := hs.h.storedNode(key)
	if err != nil {
		return err
	}
	var x hold
	if err := json.Unmarshal(raw, &x); err != nil {
		return err
	}
	if n.hold != nil {
		return fmt.Errorf("node %d twice", n.ID)
	}
	hs.take(n, x)
	return nil
}

// check drains those that came back and are in no ring any more.
func (hs *holds) check() {
	for _, id := range hs.list {
		if n := &hs.h.nodes[id]; hs.due(n) && hs.h.j.Now >= n.hold.again && hs.h.j.LinkUp {
			n.hold.again = hs.h.j.Now + member.ResendFirst
			hs.h.j.Command(n.ID, n.Session, proto.Command{Verb: proto.VerbDrain})
		}
	}
}

// due: its agent is there and does not know, and no ring needs it.
func (hs *holds) due(n *node) bool {
	return n.Online() && n.Session != 0 && n.Report != nil && !n.drained() && !n.leaving &&
		(n.said.out || n.Group == 0 && hs.h.txn.Phase() == member.Resting && (len(n.Whole().Rings) == 0 || !n.Unassigned && !n.Pending()))
}

// next is when one is to be told again.
func (hs *holds) next() time.Duration {
	next := journal.Never
	for _, id := range hs.list {
		if n := &hs.h.nodes[id]; hs.due(n) {
			next = min(next, n.hold.again)
		}
	}
	return next
}
