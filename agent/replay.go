package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	busrec "ringlight/hal/record"
	"ringlight/proto"
)

// Replayed is how a recording went when the production code lived through it
// again.
type Replayed struct {
	Node        int64         `json:"node"`
	Software    string        `json:"software"` // that was recorded
	Lived       time.Duration `json:"lived_ns"` // of the board's time
	Entries     uint64        `json:"entries"`
	Lost        uint64        `json:"entries_lost"`
	Polls       uint64        `json:"polls"`
	Ops         uint64        `json:"ops"`
	Edges       uint64        `json:"edges"`
	Told        uint64        `json:"told"` // packets, questions and the disk's word
	Errors      []BusErrors   `json:"errors"`
	Compared    bool          `json:"compared"` // the agent's ops with the recorded ones
	NotCompared string        `json:"not_compared,omitempty"`
	Diverged    *Divergence   `json:"diverged,omitempty"` // the first
}

// BusErrors counts what went wrong on one bus.
type BusErrors struct {
	Bus   hal.BusID `json:"bus"`
	Cause string    `json:"cause"`
	Count int       `json:"count"`
}

// Divergence is where an agent did not do what the recorded one did.
type Divergence struct {
	Entry uint64        `json:"entry"`
	At    time.Duration `json:"at_ns"`
	Want  string        `json:"recorded"`
	Got   string        `json:"replayed"`
}

// replay is an agent that lives through a recording.
type replay struct {
	res   *Replayed
	host  *Host  // nil: nothing is compared
	queue []Work // that the agent has asked for and the recording not yet
	ops   map[uint64]underWay
}

// Submit compares later: the recording tells next what was asked for.
func (p *replay) Submit(_ time.Duration, w Work) error {
	p.queue = append(p.queue, w)
	return nil
}

// Send and Persist do nothing: what became of packets and records is recorded.
func (p *replay) Send(time.Duration, proto.Packet) error             { return nil }
func (p *replay) Persist(_ time.Duration, _ uint64, _ *Record) error { return nil }

// underWay is an op without its completion.
type underWay struct {
	bus hal.BusID
	op  *hal.Op // the agent's own; nil: nothing is compared
}

// Replay feeds a recording to an agent made from this program's code and
// compares the bus work that it asks for. It ends at the first divergence.
func Replay(raw []byte) (res *Replayed, err error) {
	// A recording of another life, or a forged one, may lead the agent into
	// what cannot be: its invariants panic then, and that is a finding here.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: it leads the agent into what cannot be: %v", busrec.ErrFormat, p)
		}
	}()
	return relive(raw)
}

func relive(raw []byte) (*Replayed, error) {
	rd, err := busrec.NewReader(raw)
	if err != nil {
		return nil, err
	}
	var head recordHead
	if err := json.Unmarshal(rd.Head, &head); err != nil {
		return nil, fmt.Errorf("%w: head: %w", busrec.ErrFormat, err)
	}
	p := &replay{res: &Replayed{Node: int64(head.Node), Software: head.Software, Errors: []BusErrors{}},
		ops: map[uint64]underWay{}}
	switch {
	case head.Board == nil:
		return nil, fmt.Errorf("%w: head without a board", busrec.ErrFormat)
	case !plausible(head.Board):
		return nil, fmt.Errorf("%w: head with a board that cannot be", busrec.ErrFormat)
	case head.Switch:
		p.res.NotCompared = "a circuit switch: its factory data are not part of a recording"
	default:
		cfg, journal, err := head.born()
		if err != nil {
			return nil, err
		}
		p.host = NewHost(cfg, journal, p, nil)
		p.res.Compared = true
	}
	for {
		e, ok, err := rd.Next()
		p.res.Entries, p.res.Lost = rd.Index()-rd.Lost(), rd.Lost()
		if err != nil || !ok {
			return p.res, err
		}
		p.res.Lived = e.At
		if rd.Lost() > 0 && p.host != nil {
			p.host, p.res.Compared = nil, false
			p.res.NotCompared = fmt.Sprintf("%d entries are missing before entry %d: the agent's state there is not known; record from its start", rd.Lost(), rd.Index()-1)
		}
		if err := p.entry(&e, rd.Index()-1); err != nil || p.res.Diverged != nil {
			return p.res, err
		}
	}
}

// plausible reports whether a board is within what boards may be.
func plausible(b *hal.Board) bool {
	ok := len(b.Bundles) <= hal.MaxBundles && len(b.Buses) <= maxBuses && len(b.Lines) <= maxBuses*hal.NumLOS
	for i := range b.Bundles {
		ok = ok && len(b.Bundles[i].Modules) > 0 && len(b.Bundles[i].Modules) <= hal.MaxModules
		for _, l := range b.Bundles[i].LOS {
			ok = ok && int(l) < len(b.Lines)
		}
	}
	return ok
}

// maxBuses of a board in a recording. chosen: beyond the default board's 33.
const maxBuses = 256

func (p *replay) entry(e *busrec.Entry, index uint64) error {
	done := p.ops[e.Seq]
	p.count(e)
	if e.Kind == busrec.Completion {
		delete(p.ops, e.Seq)
	}
	if p.host == nil {
		if e.Kind == busrec.Submit {
			p.ops[e.Seq] = underWay{bus: e.Bus}
		}
		return nil
	}
	diverged := func(want, got string) { p.res.Diverged = &Divergence{index, e.At, want, got} }
	switch e.Kind {
	case busrec.Poll:
		if len(p.queue) > 0 {
			diverged("nothing", work(p.queue[0].Bus, p.queue[0].Op))
			return nil
		}
		_, err := p.host.Round(e.At)
		return err
	case busrec.Submit:
		if len(p.queue) == 0 {
			diverged(work(e.Bus, e.Op), "nothing")
			return nil
		}
		o := p.queue[0]
		p.queue = p.queue[1:]
		if o.Bus != e.Bus || !sameOp(o.Op, e.Op) {
			diverged(work(e.Bus, e.Op), work(o.Bus, o.Op))
			return nil
		}
		p.ops[e.Seq] = underWay{o.Bus, o.Op}
	case busrec.Completion:
		op := done.op
		if op == nil || len(e.R) != len(op.Msgs) {
			return fmt.Errorf("%w: entry %d: completion of op %d, which is not under way", busrec.ErrFormat, index, e.Seq)
		}
		for i := range op.Msgs {
			copy(op.Msgs[i].R, e.R[i])
		}
		p.host.Deliver(e.At, Input{Kind: InHardware, Hardware: hal.Event{Completion: &hal.Completion{Bus: done.bus, Op: op,
			Start: e.Start, End: e.End, Msg: e.Msg, Err: e.Err}}})
	case busrec.Edge:
		edge := e.Edge
		p.host.Deliver(e.At, Input{Kind: InHardware, Hardware: hal.Event{Edge: &edge}})
	case busrec.Other:
		in, err := inputOf(e)
		if err != nil {
			return fmt.Errorf("%w: entry %d: %w", busrec.ErrFormat, index, err)
		}
		if in.Kind == InFirmware && in.ID > 0 {
			p.host, p.res.Compared = nil, false
			p.res.NotCompared = in.Text
			return nil
		}
		p.host.Deliver(e.At, in)
	}
	return nil
}

// count keeps the figures that need no agent.
func (p *replay) count(e *busrec.Entry) {
	switch e.Kind {
	case busrec.Poll:
		p.res.Polls++
	case busrec.Submit:
		p.res.Ops++
	case busrec.Edge:
		p.res.Edges++
	case busrec.Other:
		p.res.Told++
	case busrec.Completion:
		bus := p.ops[e.Seq].bus
		if e.Err == nil {
			break
		}
		cause := "other"
		if c := errors.Unwrap(e.Err); c != nil {
			cause = c.Error()
		}
		i := slices.IndexFunc(p.res.Errors, func(b BusErrors) bool { return b.Bus == bus && b.Cause == cause })
		if i < 0 {
			i = len(p.res.Errors)
			p.res.Errors = append(p.res.Errors, BusErrors{Bus: bus, Cause: cause})
		}
		p.res.Errors[i].Count++
	}
}

func sameOp(a, b *hal.Op) bool {
	if a.Class != b.Class || max(a.Deadline, 0) != b.Deadline || len(a.Msgs) != len(b.Msgs) {
		return false
	}
	for i := range a.Msgs {
		x, y := &a.Msgs[i], &b.Msgs[i]
		if x.Addr != y.Addr || x.Frame != y.Frame || !bytes.Equal(x.Redact(x.W), y.W) || len(x.R) != len(y.R) || (x.R == nil) != (y.R == nil) {
			return false
		}
	}
	return true
}

// work is an op in words.
func work(bus hal.BusID, op *hal.Op) string {
	s := fmt.Sprintf("bus %d class %d", bus, op.Class)
	for i := range op.Msgs {
		if i == 8 {
			return fmt.Sprintf("%s ... (%d messages)", s, len(op.Msgs))
		}
		m := &op.Msgs[i]
		s += fmt.Sprintf(" [%#x", m.Addr)
		if w := m.Redact(m.W); len(w) > 0 {
			s += fmt.Sprintf(" w % x", w[:min(len(w), 24)])
		}
		if len(m.R) > 0 {
			s += fmt.Sprintf(" r %d", len(m.R))
		}
		s += "]"
	}
	return s
}
