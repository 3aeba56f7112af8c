package agent

import (
	"strconv"
	"time"

	"ringlight/node"
	"ringlight/proto"
)

// persistence keeps the journal behind the agent: at most one record is under
// way, what happens meanwhile goes into the next.
type persistence struct {
	last    uint64 // number of the newest record
	durable uint64 // on disk
	state   bool   // the machine's state must go into the next record
	light   bool   // so must the light, as far as it has changed
	// stateIn is the record that holds the newest state: an acknowledgement
	// waits for it.
	stateIn  uint64
	reserved uint64 // Reserved of the record under way
	draft    record // of the next one
	fails    string // why the journal cannot be written; "": it can
	since    time.Duration
}

func (p *persistence) saveState() {
	p.state = true
	p.stateIn = p.last + 1
}

// saveLight lets the next record have the light, as far as it has changed.
func (p *persistence) saveLight() { p.light = true }

// has tells that a record is on disk.
func (p *persistence) has(number uint64) bool { return number <= p.durable }

// settled tells that the newest state is on disk.
func (p *persistence) settled() bool { return p.has(p.stateIn) }

func (p *persistence) flying() bool { return p.last != p.durable }

// record gives out the next record, if there is anything to say and none is
// under way.
func (a *Agent) record(out []Output) []Output {
	p := &a.persist
	if p.flying() {
		return out
	}
	reserve := a.wire.up && a.outbox.reserve()
	r := &p.draft
	*r = record{Acked: a.outbox.acked, Last: a.outbox.last, Reserved: a.outbox.reserved, Refused: a.wire.refused}
	light := p.light && a.adopted && a.optics.addRecord(r)
	p.light = false
	if !p.state && !light && !reserve && len(a.outbox.changed) == 0 {
		return out
	}
	if p.state {
		s := a.machine.State()
		r.State = &s
	}
	for _, seq := range a.outbox.changed {
		if e := a.outbox.at(seq); e != nil {
			r.Events = append(r.Events, *e)
		}
	}
	a.outbox.changed = a.outbox.changed[:0]
	p.state = false
	p.reserved = r.Reserved
	p.last++
	return append(out, Output{Kind: OutPersist, ID: p.last, Saved: &Record{*r}})
}

func (a *Agent) persisted(now time.Duration, id uint64) {
	p := &a.persist
	if id != p.last {
		return // of another life, or told twice
	}
	p.durable = id
	a.outbox.durable = max(a.outbox.durable, p.reserved)
	if a.wire.reportHeld && p.settled() {
		a.wire.reportHeld = false
		a.report(now)
	}
}

// refuses is why no plan can be taken: one that is not on disk would be forgotten by the
// next life, and the others of its ring would go on with it.
func (p *persistence) refuses() *proto.Error {
	if p.fails == "" {
		return nil
	}
	return &proto.Error{Code: proto.HardwareFailed, Field: "journal", Limit: "one that can be written", Reason: proto.Clip(p.fails)}
}

// unwritten is told why the journal cannot be written, "" that it can be again. Whoever
// waits for a plan to be on disk is told at once that it will not be.
func (a *Agent) unwritten(now time.Duration, why string) {
	p := &a.persist
	if why == p.fails {
		return
	}
	if p.fails == "" || why == "" {
		p.since = now
		e := proto.Event{Kind: proto.EvJournal, Severity: proto.SeverityCritical, Cause: proto.CauseOwnFault, Text: proto.Clip(why)}
		level, text := uint8(2), "the journal cannot be written; no plan is taken, answers and events wait: "+why
		if why == "" {
			e.Severity, e.Resolved, level, text = proto.SeverityOK, true, 0, "the journal is written again"
		}
		a.note(now, own(now, e))
		a.log(level, text)
	}
	p.fails = why
	a.report(now)
	for i := range a.wire.acks {
		if h := &a.wire.acks[i]; why != "" && h.ack.Phase == proto.PhasePrepare && !p.has(h.after) {
			h.ack.Refuse(p.refuses())
			h.after = 0
			a.step(now, node.Event{Kind: node.DropStaged, Term: h.ack.Term})
		}
	}
}

// heldAck is an answer that waits for the disk.
type heldAck struct {
	ack   proto.Ack
	after uint64
}

// answer queues an acknowledgement behind the newest state. Refusals beyond their
// rate are counted, and the next one says how many there were: an answer to each
// message of a flood would keep the others from the planner.
func (a *Agent) answer(now time.Duration, ack proto.Ack) {
	ack.Version, ack.Node, ack.Session = proto.Version, a.cfg.Node, a.cfg.Session
	if w := &a.wire; refusal(ack.Code) {
		w.refused++
		if !w.refusals.Take(time.Time{}.Add(now), refusalRate, 1) {
			w.unsaid++
			return
		}
		if w.unsaid > 0 {
			ack.Reason = proto.Clip("and " + strconv.FormatUint(w.unsaid, 10) + " more that were not answered; " + ack.Reason)
			w.unsaid = 0
		}
	}
	after := uint64(0)
	if !a.persist.settled() && (a.persist.fails == "" || ack.Code == proto.OK) {
		after = a.persist.stateIn
	}
	if len(a.wire.acks) >= maxAcks {
		// The sender asks again; an old answer is worth less than a new one.
		a.wire.acks = append(a.wire.acks[:0], a.wire.acks[1:]...)
	}
	a.wire.acks = append(a.wire.acks, heldAck{ack, after})
}

// refusal tells the codes of messages that changed nothing because they were
// wrong.
func refusal(c proto.Code) bool {
	switch c {
	case proto.OK, proto.Busy, proto.NotCalibrated, proto.HardwareFailed:
		return false
	}
	return true
}
