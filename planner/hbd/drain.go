package hbd

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/planner/journal"
	"ringlight/planner/member"
	"ringlight/proto"
)

// Taking a node out with as little dark as there can be: a generation forms
// its ring without it, a spare in its place; when the ring has light on every
// link, and not before, the node itself is drained. What goes wrong on the
// way stops it, and the node stays what it then is: a spare.

const (
	// qualifyWait is how long a changed ring may take to have light on every
	// link. chosen: a node's asks for a planned candidate end after 350 ms, a
	// report is coalesced over 200 ms, and a lost one is sent again after 2 s.
	qualifyWait = 5 * time.Second
	// commitSpread stands for the time between the first and the last member
	// that hears a decision, in estimates. chosen: seen with 64 agents.
	commitSpread = 10 * time.Millisecond
	// maxStage is how many running rings are told again by one generation.
	// chosen: one in twenty of the rings of 10,000 nodes.
	maxStage  = 32
	maxDrains = 64 // under way; chosen: people are few
	// stagePoll is how often a stage that has no light yet is looked at.
	stagePoll = 100 * time.Millisecond
)

// draining is one drain under way.
type draining struct {
	node     proto.NodeID
	ring     proto.RingID // that it leaves, 0 = none
	hold     hold         // that follows it
	client   string
	corr     proto.Corr
	cost     proto.Cost
	ttl      time.Duration
	sent     bool
	again    time.Duration // when the agent is told again, Never: not told yet
	deadline time.Duration
	qualify  time.Duration // by when the ring must have light, Never: not committed yet
}

// drains are those under way.
type drains struct {
	h    *Rings
	list []draining
	holds
}

// begin begins a drain, or says why not. It reports whether the answer
// comes later.
func (ds *drains) begin(client string, q *proto.OpRequest, n *node, r *proto.OpReply) bool {
	cost, said := ds.h.Evidence.costWithout(n), hold{Author: q.Author, Reason: q.Reason, Millis: ds.h.j.Wall}
	refuse := func(code proto.Code, limit, format string, args ...any) bool {
		r.Refuse(&proto.Error{Code: code, Field: "node", Limit: limit, Reason: fmt.Sprintf(format, args...)})
		return false
	}
	switch {
	case q.DryRun:
		r.Cost = &cost
		return false
	case n.drained(), n.hold != nil && !n.leaving:
		if q.Reason != "" {
			said.Quarantine = n.hold != nil && n.hold.Quarantine
			ds.h.j.Persist(ds.take(n, said))
		}
		return refuse(proto.Duplicate, "a node in service", "node %d is drained already", n.Device.ID)
	case slices.ContainsFunc(ds.list, func(d draining) bool { return d.client == client && d.corr == q.Corr }):
		return true // asked again: the answer is under way
	case n.leaving:
		return refuse(proto.Busy, "", "node %d is being drained", n.Device.ID)
	case ds.h.root.Busy() != "":
		return refuse(proto.Busy, "", "the planner is %s", ds.h.root.Busy())
	case len(ds.list) >= maxDrains:
		return refuse(proto.Busy, fmt.Sprintf("%d at a time", maxDrains), "too many nodes are being drained")
	}
	if !n.Device.Online() || n.Device.Session == 0 || !n.Device.Known {
		ds.h.j.Persist(ds.take(n, said))
		r.Cost, r.Reason = &cost, proto.Clip(fmt.Sprintf("the agent of node %d is offline: its ring is formed without it within some %v, and it is drained when it is back", n.Device.ID, 2*stepWait))
		ds.h.j.Note(journal.Info, "node is kept out", journal.Note{Rule: "drain", Node: int64(n.Device.ID), Ring: n.Device.Group, Cause: proto.CauseOperator, Text: proto.Clip(said.about() + "; its agent is offline")})
		ds.h.Agenda.markNode(n)
		ds.h.Agenda.replan(0)
		return false
	}
	wait := time.Duration(q.TTLMillis) * time.Millisecond
	ds.list = append(ds.list, draining{node: n.Device.ID, ring: n.Device.Group, hold: said, client: client, corr: q.Corr, cost: cost, ttl: wait, deadline: ds.h.j.Now + wait, qualify: journal.Never, again: journal.Never})
	ds.keep(&ds.list[len(ds.list)-1])
	n.leaving = true
	ds.h.j.Note(journal.Info, "drain begins", journal.Note{Rule: "drain", Node: int64(n.Device.ID), Ring: n.Device.Group, Cause: proto.CauseOperator,
		Text: proto.Clip(said.told() + fmt.Sprintf("%s and %s touched, %s fewer", proto.Count(len(cost.Rings), "ring"), proto.Count(int(cost.Links), "link"), proto.Count(int(cost.GPUs), "GPU")))})
	ds.h.Agenda.markNode(n)
	ds.h.Agenda.replan(0)
	return true
}

// check moves every drain on.
func (ds *drains) check() {
	if ds.h.root.Busy() != "" {
		return // a node that was not heard yet is neither offline nor drained
	}
	for i := 0; i < len(ds.list); {
		if r, done := ds.run(&ds.list[i]); done {
			d := &ds.list[i]
			ds.h.Placed.nodes[d.node].leaving = false
			ds.h.Placed.touch(d.node)
			r.Corr = d.corr
			records := []journal.Record{{Key: drainKey(d.node)}}
			if r.Code == proto.OK {
				records = append(records, ds.take(&ds.h.Placed.nodes[d.node], d.hold))
			}
			ds.h.j.Persist(records...)
			ds.h.root.Reply(d.client, r)
			ds.h.Agenda.markNode(&ds.h.Placed.nodes[d.node])
			ds.list = slices.Delete(ds.list, i, i+1)
			ds.h.Agenda.replan(debounce)
			continue
		}
		i++
	}
	ds.holds.check()
}

func (ds *drains) run(d *draining) (*proto.OpReply, bool) {
	n, v := &ds.h.Placed.nodes[d.node], ds.h.Placed.ring(d.ring)
	stop := func(code proto.Code, why string) (*proto.OpReply, bool) {
		ds.h.j.Note(journal.Warn, "drain stopped", journal.Note{Rule: "drain_stop", Node: int64(n.Device.ID), Ring: d.ring, Cause: proto.CauseOperator, Text: why})
		r := &proto.OpReply{}
		r.Refuse(&proto.Error{Code: code, Field: "node", Reason: why})
		return r, true
	}
	switch {
	case n.drained():
		ds.h.j.Note(journal.Info, "node is drained", journal.Note{Rule: "drain", Node: int64(n.Device.ID), Ring: d.ring, Cause: proto.CauseOperator, Text: "its ring has light without it"})
		return &proto.OpReply{Cost: &d.cost}, true
	case !n.usable() && !n.said.out && n.over == "":
		if n.dead { // which says nothing of its hardware
			return stop(proto.Expired, n.whyNot())
		}
		return stop(proto.HardwareFailed, n.whyNot())
	case n.Device.Group == 0 && (v == nil || v.hasLight()) && (!n.Device.Online() || n.Device.Unassigned && !n.Device.Ready() || ds.h.j.Now >= d.deadline):
		text := "it is in no ring; its agent does not answer, and it is drained when it does"
		ds.h.j.Note(journal.Info, "node is kept out", journal.Note{Rule: "drain", Node: int64(n.Device.ID), Ring: d.ring, Cause: proto.CauseOperator, Text: text})
		return &proto.OpReply{Cost: &d.cost, Reason: text}, true
	case !n.Device.Online() && !n.blocks():
		return stop(proto.NotFound, "the agent went offline")
	case ds.h.j.Now >= d.deadline:
		return stop(proto.Expired, "not done in time")
	case d.sent && ds.h.j.Now < d.again:
		return nil, false
	case d.sent:
		ds.tell(d, n)
		return nil, false
	case n.said.out: // it left its ring by itself, and shall not come back by itself
		d.sent = true
		ds.tell(d, n)
		return nil, false
	case n.Device.Group != 0 || n.Device.Unassigned || n.Device.Pending() || ds.h.txn.Phase() != member.Resting:
		return nil, false
	}
	if v != nil && !v.hasLight() {
		if d.qualify == journal.Never {
			d.qualify = ds.h.j.Now + qualifyWait
		}
		if ds.h.j.Now >= d.qualify {
			return stop(proto.HardwareFailed, fmt.Sprintf("ring %d has light on %d of %d links %v after the switch", v.id, v.linksConfirmed(), len(v.nodes)-1, qualifyWait))
		}
		return nil, false
	}
	d.sent = true
	ds.tell(d, n)
	return nil, false
}

// tell takes the node out; the message may be lost, and is sent again.
func (ds *drains) tell(d *draining, n *node) {
	d.qualify, d.again = journal.Never, ds.h.j.Now+member.ResendFirst
	if ds.h.j.LinkUp {
		ds.h.j.Command(n.Device.ID, n.Device.Session, proto.Command{Verb: proto.VerbDrain})
	}
}

// next is when a drain needs a look without news.
func (ds *drains) next() time.Duration {
	if ds.h.root.Busy() != "" {
		return journal.Never
	}
	next := ds.holds.next()
	for i := range ds.list {
		next = min(next, ds.list[i].deadline, ds.list[i].again)
		if q := ds.list[i].qualify; q > ds.h.j.Now { // else something else is waited for
			next = min(next, q)
		}
	}
	return next
}

// A drain outlives its planner: the next one goes on where the store says it
// stood, since half a drain is a node that nobody uses and nobody may touch.

const prefixDrain = "drain/" // drainRecord, by the node's number

// drainRecord is one drain under way. Whether the agent has been told is not
// kept: it says so itself, and is told again else.
type drainRecord struct {
	Ring      proto.RingID `json:"ring"`
	Client    string       `json:"client"`
	Corr      string       `json:"corr"`
	Cost      proto.Cost   `json:"cost"`
	TTLMillis uint32       `json:"ttl_millis"`
	Hold      hold         `json:"hold"`
}

func drainKey(id proto.NodeID) string { return journal.NumberedKey(prefixDrain, uint64(id)) }

// keep writes a drain down.
func (ds *drains) keep(d *draining) {
	ds.h.j.Persist(journal.Encode(drainKey(d.node), drainRecord{Ring: d.ring, Client: d.client, Corr: hex.EncodeToString(d.corr[:]),
		Cost: d.cost, TTLMillis: uint32(d.ttl.Milliseconds()), Hold: d.hold}))
}

// restore takes up a drain of a former planner. Its time begins anew with
// the first look round, since clocks of two lives have nothing in common.
func (ds *drains) restore(n *node, raw []byte) error {
	var r drainRecord
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	d := draining{node: n.Device.ID, ring: r.Ring, hold: r.Hold, client: r.Client, cost: r.Cost, ttl: time.Duration(r.TTLMillis) * time.Millisecond,
		deadline: journal.Never, qualify: journal.Never, again: journal.Never}
	corr, err := hex.DecodeString(r.Corr)
	if err != nil || len(corr) != len(d.corr) {
		return errors.New("corr: want 32 hexadecimal digits")
	}
	copy(d.corr[:], corr)
	n.leaving = true
	ds.list = append(ds.list, d)
	return nil
}

// Draining is the client to answer about a drain of that number, if one is under way.
func Draining(h *Rings, corr proto.Corr) (client string, ok bool) {
	at := slices.IndexFunc(h.drains.list, func(d draining) bool { return d.corr == corr })
	if at < 0 {
		return "", false
	}
	return h.drains.list[at].client, true
}

// resume sets the time of the drains that a former planner began.
func (ds *drains) resume() {
	for i := range ds.list {
		d := &ds.list[i]
		if d.deadline != journal.Never {
			continue
		}
		d.deadline = ds.h.j.Now + d.ttl
		ds.h.j.Note(journal.Info, "drain goes on", journal.Note{Rule: "drain", Node: int64(d.node), Ring: d.ring, Cause: proto.CauseOperator, Text: "a former planner began it"})
	}
}
