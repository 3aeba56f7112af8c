package mems

import (
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// Config is what a Crossbar is told at birth.
type Config struct {
	Board   *hal.Board // a MEMS board
	Factory *Factory
	Startup Startup
	Saved   []circuit.Saved // for Keep and Restore
	// Parked says, for Keep, that all other mirrors were left parked. It is
	// believed while light does not say otherwise.
	Parked bool
	// MilliTHz is the optical frequency that the light has; 0: 193,100.
	MilliTHz int32
}

const defaultMilliTHz = 193_100

// Crossbar is a board of two mirror arrays: any port of side A to any of side
// B. Start, Apply and the like change what it wants, Poll takes completions
// and puts out bus work.
type Crossbar struct {
	cfg   Config
	ports int
	state State
	err   error
	until time.Duration // of Settling

	mirrors  mirrors
	monitors monitors
	paths    paths
	blocked  [hal.NumSides][]proto.Override
	watches  [hal.NumSides][]circuit.Watch

	round     round
	ready     bool // the first look is over
	sees      bool // brown-outs are looked at when all is at rest
	stray     bool // the first look saw light where there is no circuit
	busErrors uint32

	work   work.Queue
	events []circuit.Event
}

// Tasks of the bus work.
const (
	scanTask uint8 = iota
	writeTask
	lookTask
	tempTask
	seenTask // clears a brown-out; nobody waits for it
)

// New makes a Crossbar; it does nothing before Start.
func New(cfg Config) (*Crossbar, error) {
	hw := cfg.Board.Mirrors
	if hw == nil {
		return nil, fmt.Errorf("ocs: board has no mirrors: %w", hal.ErrUnsupported)
	}
	if err := cfg.Factory.check(hw.Ports); err != nil {
		return nil, err
	}
	if cfg.MilliTHz == 0 {
		cfg.MilliTHz = defaultMilliTHz
	}
	for i, s := range cfg.Saved {
		if int(s.Pair.A) >= hw.Ports || int(s.Pair.B) >= hw.Ports {
			return nil, fmt.Errorf("ocs: saved circuit %d: %v: %w", i, s.Pair, hal.ErrOutOfRange)
		}
		if slices.ContainsFunc(cfg.Saved[:i], func(o circuit.Saved) bool { return o.Pair.A == s.Pair.A || o.Pair.B == s.Pair.B }) {
			return nil, fmt.Errorf("ocs: saved circuit %d: %v: %w", i, s.Pair, circuit.ErrPortTwice)
		}
	}
	x := &Crossbar{cfg: cfg, ports: hw.Ports, mirrors: newMirrors(cfg.Board, cfg.Factory), monitors: newMonitors(hw), paths: paths{make([]*path, hw.Ports), make([]int, hw.Ports)}}
	for side := range x.blocked {
		x.blocked[side] = make([]proto.Override, x.ports)
		x.watches[side] = make([]circuit.Watch, x.ports)
	}
	return x, nil
}

// Start makes the monitors scan, looks, and takes up the circuits as Startup
// says. It may be called again, after a fault; Saved counts each time.
func (x *Crossbar) Start(time.Duration) {
	x.become(Starting)
	x.err = nil
	x.work.Restart()
	x.paths.clear()
	x.mirrors.forget()
	x.round.expect(len(x.monitors.chips), x.monitors.scan(&x.work))
}

// Recall replaces what the next Start knows of circuits.
func (x *Crossbar) Recall(saved []circuit.Saved, parked bool) {
	x.cfg.Saved, x.cfg.Parked = saved, parked
}

// Poll takes completions and puts out bus work. It returns when it wants to be
// called again, at the latest.
func (x *Crossbar) Poll(now time.Duration, done []*hal.Completion, out []hal.BusOp) ([]hal.BusOp, time.Duration) {
	for _, c := range done {
		x.completed(now, c)
	}
	if x.state == Settling && now >= x.until {
		x.settled()
	}
	if x.state == Resting {
		x.begin()
	}
	if x.sees && x.state == Resting {
		x.sees = false
		x.monitors.seen(&x.work)
	}
	out = x.work.Take(out)
	if x.state == Settling {
		return out, x.until
	}
	return out, hal.Never
}

func (x *Crossbar) completed(now time.Duration, c *hal.Completion) {
	task, i, mine := x.work.Mine(c.Op)
	if !mine {
		return
	}
	if task == seenTask {
		if c.Err != nil {
			x.monitors.chips[i].brown = true // with the next change
		}
		return
	}
	if c.Err != nil {
		x.busErrors++
		if x.round.again(i) {
			x.work.Put(c.Bus, c.Op)
			return
		}
	}
	switch task {
	case scanTask:
		x.monitors.scans(i, c)
	case writeTask:
		if c.Err != nil {
			x.unwritten(now, c.Bus, c.Err)
		}
	case lookTask:
		x.monitors.looked(i, c)
	case tempTask:
		x.monitors.warmth(c)
	}
	if x.round.over() {
		x.roundOver(now)
	}
}

// HealthRound asks for a look at every monitor: drifted circuits are tuned
// again, dark ones that have light now are tuned, thresholds are compared.
func (x *Crossbar) HealthRound(time.Duration) { x.round.health = true }

// tell notes what happened.
func (x *Crossbar) tell(ev circuit.Event) { x.events = append(x.events, ev) }

// TakeEvents appends what happened since the last call.
func (x *Crossbar) TakeEvents(buf []circuit.Event) []circuit.Event {
	buf = append(buf, x.events...)
	x.events = x.events[:0]
	return buf
}

// Status is how the board stands.
func (x *Crossbar) Status() Status {
	return Status{State: x.state, Busy: x.Busy(), BusErrors: x.busErrors, LimitErrors: x.mirrors.limited, Err: x.err}
}

// Stray tells whether, at the start, light left at a port that is in no
// circuit, or may come to do so: after a loss of power mirrors are on their way
// to rest. Only a change that parks ends it.
func (x *Crossbar) Stray() bool { return x.stray }

// Busy tells whether circuits are being made or mirrors moved.
func (x *Crossbar) Busy() bool {
	return x.state != Resting && x.state != Faulted || x.paths.busy()
}

// Circuits appends all circuits in the order of their ports of side A.
func (x *Crossbar) Circuits(buf []circuit.Circuit) []circuit.Circuit {
	for c := range x.paths.all {
		buf = append(buf, c.Circuit)
	}
	return buf
}

// Power is what a port's monitor last showed.
func (x *Crossbar) Power(side, port int) (proto.MilliDBm, error) {
	if err := circuit.CheckPort(side, port, x.ports, x.ports); err != nil {
		return 0, err
	}
	return x.monitors.power(side, port)
}

// Save appends what a later life needs to keep or restore the circuits.
func (x *Crossbar) Save(buf []circuit.Saved) []circuit.Saved {
	for c := range x.paths.all {
		buf = append(buf, circuit.Saved{Pair: c.Pair, Drive: c.drive})
	}
	return buf
}

// SetThresholds puts a port under thresholds.
func (x *Crossbar) SetThresholds(side, port int, t circuit.Thresholds) error {
	if err := circuit.CheckPort(side, port, x.ports, x.ports); err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		return err
	}
	x.watches[side][port] = circuit.Watch{Thresholds: t}
	return nil
}
