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

// A member that is lit but cannot take part - silent, away, refusing, not believed -
// keeps its ring as it is: a plan with it would have to be given up. Where the ring
// is well that is right. Where it needs a change, the member is stepped over after a
// while: the ring is formed without it as if it were dead, by all others together.
// It keeps the plan that it has, loses its neighbours' light when they commit, and
// closes into loopback by its own rules. When it takes part again it is told first
// that it is in no ring, and may join one after that.

// obstacles are what is in the way of a repair: members that cannot take part, devices
// that are slow to prepare, nodes that go and come back.
type obstacles struct {
	h      *Rings
	at     time.Duration  // when a ring or a node is looked at again that waits
	yields int            // generations in a row that gave way
	damped []proto.NodeID // that go out and come back again and again
}

// stepWait is how long a ring that needs a change waits for a member that cannot
// take part. chosen: an agent that is started anew is back in two seconds, and a ring
// is to be whole again in ten.
const stepWait = 4 * time.Second

// check has those looked at that have waited.
func (o *obstacles) check() {
	if o.h.j.Now >= o.at {
		o.at = journal.Never
		o.h.Agenda.replan(0)
	}
}

// blocks: light says that it is well, and it cannot be told anything.
func (n *node) blocks() bool { return n.usable() && !n.Device.Ready() }

// needs: a member has to leave the ring, its links do not join, it has to be told
// again, or a member has not followed what it was told.
func (r *ringView) needs() bool {
	return r.splitAt != 0 || r.renew || r.some(func(n *node) bool { return !n.wanted() || n.Device.Trails() })
}

// stepOver looks after a ring that needs a change and has members that cannot take
// part. They are stepped over when that makes it better.
func (o *obstacles) stepOver(r *ringView) {
	gone, wished, usable := time.Duration(0), false, 0 // as long as those in the way count
	var who []proto.NodeID
	for _, id := range r.nodes {
		n := &o.h.Placed.nodes[id]
		if n.usable() {
			usable++
		}
		wished = wished || n.leaving || n.hold != nil || n.ended
		if !n.blocks() {
			continue
		}
		who = append(who, id)
		if !n.Device.Online() {
			gone = max(gone, n.Device.GoneAt)
		}
	}
	needs, wait := r.needs(), stepWait
	if !needs && len(who) > 0 && (usable < r.size || !r.closed()) { // short or in pieces, and they are in the way of what would make it whole
		needs, wait = true, stepWait+agentPatience // one of them may be dead, which is to be found first
	}
	switch {
	case !needs:
		r.needAt, r.balked = 0, false
		return
	case r.needAt == 0:
		r.needAt = max(1, o.h.j.Now)
	}
	if len(who) == 0 {
		return
	}
	if due := max(r.needAt+wait, gone+stepWait); o.h.j.Now < due {
		o.at = min(o.at, due)
		return
	}
	some, closed := r.joined()
	for _, id := range who {
		n := &o.h.Placed.nodes[id]
		n.stepped(fmt.Sprintf("stepped over: %s, and its ring needed a change", n.whyNot()))
		o.h.Placed.reads(id)
	}
	left := 0
	res := o.h.Placed.index.Look([]proto.RingID{r.id}, false) // others may move for it
	if at := slices.IndexFunc(res.Groups, func(g ring.Group) bool { return g.ID == r.id }); at >= 0 {
		left = len(res.Groups[at].Nodes)
	}
	if !wished && (left < 1 || left < 2 && some || left <= usable && closed) {
		for _, id := range who {
			o.h.Placed.nodes[id].stepped("")
			o.h.Placed.reads(id)
		}
		r.needAt = o.h.j.Now
		o.at = min(o.at, o.h.j.Now+stepWait)
		return
	}
	r.needAt = 0
	o.h.Placed.touchRing(r.id)
	for _, id := range who {
		n := &o.h.Placed.nodes[id]
		o.h.Agenda.markNode(n)
		o.h.j.Note(journal.Warn, "node is stepped over", journal.Note{Rule: "step_over", Node: int64(id), Ring: r.id, Gen: r.Gen,
			Text: n.over + fmt.Sprintf("; ring %d is formed without it, of %s", r.id, proto.Count(left, "node"))})
	}
}

// Revoked takes note that a node's key counts no more: its ring goes round it, until
// it comes with another key.
func (a *agenda) Revoked(id proto.NodeID) {
	n := &a.pl.nodes[id]
	if n.Device.Ready() {
		return // it has come with another already
	}
	n.own().ended = true
	a.j.Note(journal.Warn, "a node's key is revoked", journal.Note{Rule: "revoked", Node: int64(id), Ring: n.Device.Group, Cause: proto.CauseOperator, Text: "its ring is formed without it, until it has another key"})
	a.markNode(n)
	a.replan(0)
}

// stepped notes that the planner goes round a node, and why; "": no longer.
func (n *node) stepped(why string) {
	if n.over != why {
		n.own().over = why
		n.eased()
	}
}

// takesPart: a node that was stepped over can be told again where it stands.
func (o *obstacles) takesPart(n *node) {
	if n.ended && n.Device.Ready() {
		n.own().ended = false
		n.eased()
		o.h.Agenda.markNode(n)
	}
	if n.over == "" || !n.Device.Ready() || n.Device.Group != 0 {
		return
	}
	n.stepped("")
	o.h.Placed.reads(n.Device.ID)
	o.h.j.Note(journal.Info, "node is back", journal.Note{Rule: "step_over", Node: int64(n.Device.ID), Text: "it can be told where it stands"})
	o.h.Agenda.markNode(n)
}

// retellWait is the least time between two plans that tell a ring to wait less for
// light. chosen: a member that tells false and true times in turn then costs its ring
// a plan in ten seconds at most, and no light.
const retellWait = 10 * time.Second

// sooner notes that a ring waits longer for light than its members take by what they
// say now: one of them was slow, or told false times, and all others say that they
// cannot recover in time.
func (o *obstacles) sooner(n *node) {
	r := o.h.Placed.ring(n.Device.Group)
	if r == nil || r.late || !n.Device.At(r.Decided) {
		return
	}
	if r.told == 0 {
		for _, a := range n.Device.Whole().Rings {
			r.told = slowest(a.Envelope)
		}
	}
	if quicker(slowest(n.envelope()), r.told) && quicker(r.takes(), r.told) {
		r.late = true
		o.h.Agenda.mark(r)
		o.h.Agenda.replan(max(debounce, r.retold-o.h.j.Now))
	}
}

// takes is how long the slowest member takes by what all say, as long as it was told
// where one has not spoken.
func (r *ringView) takes() uint32 {
	if r.some(func(n *node) bool { return !n.Device.Known }) {
		return r.told
	}
	return slowest(r.pl.envelope(r.nodes))
}

// quicker: by a fifth and more, which is no drift.
func quicker(says, told uint32) bool { return 5*uint64(says) < 4*uint64(told) }

// retell has a ring told how long it is to wait.
func (o *obstacles) retell(r *ringView) {
	if !r.late {
		return
	}
	if o.h.j.Now < r.retold {
		o.at = min(o.at, r.retold)
		return
	}
	if r.late = false; quicker(r.takes(), r.told) {
		r.retold, r.renew = o.h.j.Now+retellWait, true
		o.h.j.Note(journal.Info, "plan goes to the ring again", journal.Note{Rule: "renew", Node: -1, Ring: r.id, Text: fmt.Sprintf("its members take %d us at most by what they say now, and it was told %d", r.takes(), r.told)})
	}
}

// closed: all are joined.
func (r *ringView) closed() bool {
	_, all := r.joined()
	return all
}

// joined: some or all members beside each other, past those that are out, have each
// other's light, as far as they say: one that cannot take part has said nothing else.
func (r *ringView) joined() (some, all bool) {
	some, all = r.alone(), r.splitAt == 0 && !r.alone()
	for at := range r.nodes {
		if !r.at(at).usable() {
			continue
		}
		to := r.peer(at, proto.Right)
		for r.step == 0 && to >= 0 && !r.at(to).usable() { // in a pair nobody steps over another
			to = r.peer(to, proto.Right)
		}
		if to >= 0 && r.at(to).usable() {
			both := r.meets(at, to, proto.Right) && r.meets(to, at, proto.Left)
			some, all = some || both, all && both
		}
	}
	return some, all
}

// meets: a member has the light of the next one on a side, or cannot say so.
func (r *ringView) meets(at, other int, s proto.Side) bool {
	n := r.at(at)
	l, beside := &n.loss[s], other == r.peer(at, s)
	switch {
	case !n.Device.Ready() && n.Device.At(r.Decided): // it stays as it was
		return true
	case beside && !l.lost:
		return n.Device.At(r.Decided)
	}
	return l.lost && l.lit && l.peer == r.nodes[other]
}

// Wait rules of a generation under way.

// giveWay is how long a generation may keep another ring waiting that needs a repair;
// it doubles with each that gave way, until one is committed. chosen: agents that are
// well prepare in a tenth of it.
const giveWay = 300 * time.Millisecond

// gives reports whether the generation under way has given way: some device is slow
// to prepare, and another ring is hurt.
func (o *obstacles) gives() bool {
	if o.h.j.Now < o.givesAt() {
		return false
	}
	o.yields++
	o.h.silence("gives_way", fmt.Sprintf("generation %d gives way to a ring that waits", o.h.txn.Gen))
	o.h.abort("another ring is hurt, and some devices are slow to answer")
	return true
}

// givesAt is when it does, Never when nobody waits.
func (o *obstacles) givesAt() time.Duration {
	if o.h.txn.Phase() != member.Preparing || o.h.Agenda.planAt == journal.Never {
		return journal.Never
	}
	for _, id := range o.h.Agenda.marked {
		if r := o.h.Placed.ring(id); r != nil && r.marked && !r.balked && r.needs() && !r.frozen(o.h.j.Now) && !slices.ContainsFunc(o.h.proposal.rings, func(x *ringView) bool { return x.id == id }) {
			return o.h.txn.Began() + giveWay<<min(o.yields, 4)
		}
	}
	return journal.Never
}
