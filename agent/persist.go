package agent

import (
	"encoding/json"
	"slices"

	"ringlight/proto"
)

// persistence keeps the journal behind the agent: at most one record is under
// way, what happens meanwhile goes into the next.
type persistence struct {
	last    uint64 // number of the newest record
	durable uint64 // on disk
	state   bool   // the machine's state must go into the next record
	light   bool   // so must the light
	// stateIn is the record that holds the newest state: an acknowledgement
	// waits for it.
	stateIn  uint64
	reserved uint64 // Reserved of the record under way
	kept     []BundleRecord
}

func (p *persistence) saveState() {
	p.state = true
	p.stateIn = p.last + 1
}

func (p *persistence) flying() bool { return p.last != p.durable }

// record gives out the next record, if there is anything to say and none is
// under way.
func (a *Agent) record(out []Output) []Output {
	p := &a.persist
	if p.flying() {
		return out
	}
	reserve := a.wire.up && a.outbox.reserve()
	light := p.light && a.lightChanged()
	p.light = false
	if !p.state && !light && !reserve && len(a.outbox.changed) == 0 {
		return out
	}
	r := record{Acked: a.outbox.acked, Last: a.outbox.last, Reserved: a.outbox.reserved, Refused: a.wire.refused}
	if p.state {
		s := a.machine.State()
		r.State = &s
	}
	if light {
		r.Light = slices.Clone(p.kept)
	}
	slices.Sort(a.outbox.changed)
	for _, seq := range a.outbox.changed {
		if e := a.outbox.at(seq); e != nil {
			r.Events = append(r.Events, *e)
		}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		// Every field is an integer, a bool or a text.
		panic("agent: journal record does not encode: " + err.Error())
	}
	a.outbox.changed = a.outbox.changed[:0]
	p.state = false
	p.reserved = r.Reserved
	p.last++
	return append(out, Output{Kind: OutPersist, ID: p.last, Record: raw})
}

// lightChanged brings kept up to date and reports whether it was not.
func (a *Agent) lightChanged() bool {
	p := &a.persist
	if !a.adopted {
		return false // what the journal says is still to be compared
	}
	if len(p.kept) != len(a.bundles) {
		p.kept = make([]BundleRecord, len(a.bundles))
		for i := range a.bundles {
			p.kept[i] = a.bundles[i].record()
		}
		return true
	}
	changed := false
	for i := range a.bundles {
		if q := a.bundles[i].ask; q != nil && !q.held {
			continue // a calibration flickers
		}
		if r := a.bundles[i].record(); p.kept[i] != r {
			p.kept[i], changed = r, true
		}
	}
	return changed
}

func (a *Agent) persisted(id uint64) {
	p := &a.persist
	if id != p.last {
		return // of another life, or told twice
	}
	p.durable = id
	a.outbox.durable = max(a.outbox.durable, p.reserved)
}

// heldAck is an answer that waits for the disk.
type heldAck struct {
	ack   proto.Ack
	after uint64
}

// answer queues an acknowledgement behind the newest state.
func (a *Agent) answer(ack proto.Ack) {
	ack.Version, ack.Node, ack.Session = proto.Version, a.cfg.Node, a.cfg.Session
	if refusal(ack.Code) {
		a.wire.refused++
	}
	after := uint64(0)
	if a.persist.stateIn > a.persist.durable {
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
