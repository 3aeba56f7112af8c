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
	// Calibrated is told of new calibrations; nil: nobody is.
	Calibrated func(proto.BundleID, *ocs.Calibration)

	host     *Host
	board    VirtualBoard
	thinking Thinking
	// Over, when not nil, is asked now and then during long work: its error ends it.
	Over func() error
}

// NewBench starts an agent on a board and lets it read the hardware. Every
// block of a recording goes to blocks, nil for none; EndRecording gives the
// last one.
func NewBench(cfg Config, board VirtualBoard, blocks func([]byte)) (*Bench, error) {
	b := &Bench{board: board, thinking: Thinking{Takes: cfg.Decide}}
	var rec *Recorder
	if blocks != nil {
		var err error
		if rec, err = newRecorder(&cfg, &Journal{}, 0); err != nil {
			return nil, err
		}
		rec.out = blocks
		blocks(rec.head)
	}
	b.host = NewHost(cfg, Journal{}, benchPorts{b}, rec)
	b.host.Calibrated = func(id proto.BundleID, c *ocs.Calibration) {
		if b.Calibrated != nil {
			b.Calibrated(id, c)
		}
	}
	if err := b.host.Levels(board.Now(), board.Level); err != nil {
		return nil, err
	}
	return b, b.host.Settle(board.Now())
}

// EndRecording hands out what is recorded and not yet told.
func (b *Bench) EndRecording() {
	if b.host.recorder != nil {
		b.host.recorder.Flush()
	}
}

// benchPorts know no network, and a disk that is as quick as memory.
type benchPorts struct{ b *Bench }

func (p benchPorts) Submit(now time.Duration, w Work) error {
	return p.b.board.SubmitAt(p.b.thinking.Leaves(now, w.Decided), w.Bus, w.Op)
}

func (benchPorts) Send(time.Duration, proto.Packet) error { return nil }

func (p benchPorts) Persist(now time.Duration, id uint64, _ *Record) error {
	p.b.host.Deliver(now, Input{Kind: InPersisted, ID: id})
	return nil
}

// overEvery is how many events pass between two calls of Over.
const overEvery = 1 << 12

// Run lets time pass until limit or until stop says so after an event.
func (b *Bench) Run(limit time.Duration, stop func() bool) error {
	for n := 0; ; n++ {
		if b.Over != nil && n%overEvery == 0 {
			if err := b.Over(); err != nil {
				return err
			}
		}
		if stop != nil && stop() {
			return nil
		}
		ev, ok := b.board.Advance(min(b.host.Next(), limit))
		if ok {
			b.host.Deliver(b.board.Now(), Input{Kind: InHardware, Hardware: ev})
		} else if b.board.Now() >= limit {
			return nil
		}
		if err := b.host.Settle(b.board.Now()); err != nil {
			return err
		}
	}
}

// Ask asks the agent and lets time pass until it has answered, or for at most
// patience of it.
func (b *Bench) Ask(q Ask, patience time.Duration) (*Answer, error) {
	var answer *Answer
	limit := b.board.Now() + patience
	b.host.Ask(b.board.Now(), q, func(a *Answer) { answer = a })
	if err := b.host.Settle(b.board.Now()); err != nil {
		return nil, err
	}
	if err := b.Run(limit, func() bool { return answer != nil }); err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, fmt.Errorf("agent: no answer within %v of board time", patience)
	}
	return answer, nil
}

// Status is the agent's, at once.
func (b *Bench) Status() *Status { return b.host.Status(b.board.Now()) }
