package agent

import (
	"time"

	"ringlight/hal"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/ocs/selector"
	"ringlight/proto"
)

// crossbar is a board of mirrors, or a commercial box, by what is wanted of it.
type crossbar interface {
	circuit.Switch // makes and tells circuits
	turns
	saver
	watcher
	portKeeper
}

// turns are a crossbar's work.
type turns interface {
	Start(now time.Duration)
	Poll(now time.Duration, done []*hal.Completion, out []hal.BusOp) ([]hal.BusOp, time.Duration)
	TakeEvents(buf []circuit.Event) []circuit.Event
}

// saver is what the journal must know to keep the circuits.
type saver interface {
	Save(buf []circuit.Saved) []circuit.Saved
	Recall(saved []circuit.Saved, parked bool) // for the next Start
}

// watcher tells what a crossbar is at.
type watcher interface {
	Busy() bool  // makes circuits
	Stray() bool // found light at its start where no circuit is
	HealthRound(now time.Duration)
}

// portKeeper is for single ports.
type portKeeper interface {
	Override(now time.Duration, side, port int, o proto.Override) error
	Power(side, port int) (proto.MilliDBm, error)
}

// lit is a crossbar with pins that tell its light. It can be read back: nothing
// of it has to be on disk before it moves.
type lit interface {
	Edge(now time.Duration, e *hal.Edge)
}

// connect makes what switches the circuits.
func (o *crossOptics) connect() (crossbar, error) {
	cfg := &o.agent.cfg
	switch {
	case cfg.Box != nil:
		return box.New(*cfg.Box), nil
	case cfg.Board.Mirrors == nil:
		b := selector.New(selector.Config{Board: cfg.Board, Calibrations: cfg.Calibrations, Seed: cfg.Seed})
		o.lit = b
		return b, nil
	}
	// A board that was never told of a plan may carry anything; nobody knows
	// where its mirrors point, and they stay there.
	x, err := mems.New(mems.Config{Board: cfg.Board, Factory: cfg.Factory, Startup: mems.Keep, Saved: o.kept, Parked: o.parked})
	if err != nil {
		return nil, err
	}
	for side, t := range cfg.Thresholds {
		for port := range cfg.ports() {
			if err := x.SetThresholds(side, port, t); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}
