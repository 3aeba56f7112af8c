package agent

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
)

// VirtualBoard is a board whose time moves only when it is stepped.
type VirtualBoard interface {
	SubmitAt(at time.Duration, bus hal.BusID, op *hal.Op) error
	Level(line hal.LineID) (bool, error)
	Now() time.Duration
	// Advance moves time on to the next event, at most to limit; ok is false
	// when limit came first.
	Advance(limit time.Duration) (ev hal.Event, ok bool)
}

// Bench is an agent alone with a board on its virtual clock: no network, no
// journal, no waiting. It is for work by hand.
type Bench struct {
	agent *Agent
	board VirtualBoard
	// Calibrated is told of new calibrations, Say of what the agent would log;
	// both may be nil.
	Calibrated func(proto.BundleID, *ocs.Calibration)
	Say        func(text string)
	// Idle, when not nil, is called now and then during long work.
	Idle func()

	rec    *Recorder // nil: nothing is recorded
	next   time.Duration
	asked  uint64
	answer *Answer
	out    []Output
}

// NewBench starts an agent on a board and lets it read the hardware.
func NewBench(cfg Config, board VirtualBoard) (*Bench, error) {
	return NewRecordedBench(cfg, board, nil)
}

// NewRecordedBench is NewBench that hands every block of a recording to blocks;
// EndRecording gives the last one.
func NewRecordedBench(cfg Config, board VirtualBoard, blocks func([]byte)) (*Bench, error) {
	b := &Bench{board: board}
	if blocks != nil {
		rec, err := NewRecorder(&cfg, &Journal{}, 0)
		if err != nil {
			return nil, err
		}
		b.rec, rec.out = rec, blocks
		blocks(rec.head)
	}
	b.agent = New(cfg, Journal{})
	for i := range cfg.Board.Bundles {
		for _, line := range cfg.Board.Bundles[i].LOS {
			high, err := board.Level(line)
			if err != nil {
				return nil, err
			}
			now := board.Now()
			b.deliver(now, Input{Kind: InHardware, Hardware: hal.Event{Edge: &hal.Edge{Line: line, High: high, At: now}}})
		}
	}
	return b, b.poll(false)
}

// EndRecording hands out what is recorded and not yet told.
func (b *Bench) EndRecording() {
	if b.rec != nil {
		b.rec.Flush()
	}
}

func (b *Bench) deliver(now time.Duration, in Input) {
	if b.rec != nil {
		b.rec.Told(now, &in)
	}
	b.agent.Deliver(now, in)
}

// maxSpins bounds the polls at one instant: a few rounds of work, persistence
// and answers are usual, a thousand are a fault.
const maxSpins = 1000

// poll polls the agent and carries out what it asks.
func (b *Bench) poll(edge bool) error {
	for range maxSpins {
		now := b.board.Now()
		if b.rec != nil {
			b.rec.Polled(now)
		}
		b.out, b.next = b.agent.Poll(now, b.out[:0])
		for i := range b.out {
			o := &b.out[i]
			switch o.Kind {
			case OutSubmit:
				at := now
				if edge {
					at += b.agent.cfg.Decide
				}
				if b.rec != nil {
					b.rec.Asked(now, o.Bus, o.Op)
				}
				if err := b.board.SubmitAt(at, o.Bus, o.Op); err != nil {
					b.deliver(now, Input{Kind: InHardware, Hardware: hal.Event{Completion: &hal.Completion{
						Bus: o.Bus, Op: o.Op, Start: now, End: now, Err: err}}})
				}
			case OutPersist:
				b.deliver(now, Input{Kind: InPersisted, ID: o.ID})
			case OutAnswer:
				if o.Answer.ID == b.asked {
					b.answer = o.Answer
				}
			case OutCalibrate:
				if b.Calibrated != nil {
					b.Calibrated(o.Bundle, o.Calibration)
				}
			case OutLog:
				if b.Say != nil {
					b.Say(o.Text)
				}
			}
		}
		if len(b.out) == 0 && b.next > now {
			return nil
		}
	}
	return fmt.Errorf("agent: polls at %v without end", b.board.Now())
}

// idleEvery is how many events pass between two calls of Idle.
const idleEvery = 1 << 12

// Run lets time pass until limit or until stop says so after an event.
func (b *Bench) Run(limit time.Duration, stop func() bool) error {
	for n := 0; ; n++ {
		if b.Idle != nil && n%idleEvery == 0 {
			b.Idle()
		}
		if stop != nil && stop() {
			return nil
		}
		until := min(b.next, limit)
		ev, ok := b.board.Advance(until)
		if ok {
			b.deliver(b.board.Now(), Input{Kind: InHardware, Hardware: ev})
		} else if b.board.Now() >= limit {
			return nil
		}
		if err := b.poll(ev.Edge != nil); err != nil {
			return err
		}
	}
}

// Ask asks the agent and lets time pass until it has answered, or for at most
// patience of it.
func (b *Bench) Ask(q Ask, patience time.Duration) (*Answer, error) {
	b.asked++
	q.ID, b.answer = b.asked, nil
	limit := b.board.Now() + patience
	b.deliver(b.board.Now(), Input{Kind: InAsk, Ask: q})
	if err := b.poll(false); err != nil {
		return nil, err
	}
	if err := b.Run(limit, func() bool { return b.answer != nil }); err != nil {
		return nil, err
	}
	if b.answer == nil {
		return nil, fmt.Errorf("agent: no answer within %v of board time", patience)
	}
	return b.answer, nil
}

// Status is the agent's, at once.
func (b *Bench) Status() *Status { return b.agent.status(b.board.Now()) }
