package mems_test

import (
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/proto"
	"ringlight/sim"
)

// rig is one simulated MEMS board with its crossbar, on the virtual
// clock.
type rig struct {
	t       testing.TB
	world   *sim.World
	board   *hal.Board
	id      sim.BoardID
	factory *mems.Factory
	x       *mems.Crossbar
	done    []*hal.Completion
	next    time.Duration
	events  []circuit.Event
	spi     int // operations that moved mirrors
	spoil   int // how many of them are yet to fail
	from    time.Duration
}

func newRig(t testing.TB, ports int, seed uint64, faults ...sim.Fault) *rig {
	t.Helper()
	return newRigOf(t, ports, seed, sim.MirrorPhysics{}, faults...)
}

func newRigOf(t testing.TB, ports int, seed uint64, ph sim.MirrorPhysics, faults ...sim.Fault) *rig {
	t.Helper()
	hw, err := hal.DefaultMEMS(ports)
	if err != nil {
		t.Fatal(err)
	}
	return newRigOn(t, hw, seed, ph, faults...)
}

// newRigOn is a rig of any board of mirrors.
func newRigOn(t testing.TB, hw hal.Board, seed uint64, ph sim.MirrorPhysics, faults ...sim.Fault) *rig {
	t.Helper()
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: seed}), board: &hw}
	var err error
	if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Seed: seed, Powered: true, Faults: faults, Mirrors: ph}); err != nil {
		t.Fatal(err)
	}
	r.factory = mems.Measure(r.world.Maker(r.id), hw.Mirrors.Ports)
	r.boot(mems.Config{Startup: mems.Dark})
	return r
}

// boot makes a new life of the software on the same hardware.
func (r *rig) boot(cfg mems.Config) {
	r.t.Helper()
	cfg.Board, cfg.Factory = r.board, r.factory
	x, err := mems.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.x, r.done, r.events, r.spi = x, nil, nil, 0
	x.Start(r.world.Now())
	r.until(2*time.Second, func() bool {
		s := x.Status()
		return len(r.events) > 0 && !s.Busy || s.State == mems.Faulted
	})
}

func (r *rig) poll() {
	now := r.world.Now()
	ops, next := r.x.Poll(now, r.done, nil)
	r.done, r.next = nil, next
	for _, op := range ops {
		if r.board.Buses[op.Bus].Kind == hal.SPI {
			r.spi++
		}
		if err := r.world.Submit(now, r.id, op.Bus, op.Op); err != nil {
			r.t.Fatal(err)
		}
	}
	r.events = r.x.TakeEvents(r.events)
}

// until lets the world go on until done, at most for d.
func (r *rig) until(d time.Duration, done func() bool) bool {
	limit := r.world.Now() + d
	for {
		r.poll()
		if done() {
			return true
		}
		at := min(limit, r.next)
		if _, ev, ok := r.world.Advance(at); ok {
			if c := ev.Completion; r.spoil > 0 && r.board.Buses[c.Bus].Kind == hal.SPI {
				r.spoil--
				c.Err = hal.ErrTimeout
			}
			r.done = append(r.done, ev.Completion)
		} else if at == limit {
			r.poll()
			return done()
		}
	}
}

func (r *rig) idle() bool { return !r.x.Status().Busy }

// apply makes a change and waits for its end.
func (r *rig) apply(c circuit.Change) {
	r.t.Helper()
	r.events, r.from = nil, r.world.Now()
	if err := r.x.Apply(r.from, c); err != nil {
		r.t.Fatal(err)
	}
	if !r.until(2*time.Second, r.idle) {
		r.t.Fatalf("not done after 2 s: %+v", r.x.Status())
	}
}

func pairs(n int, f func(a int) int) (out []circuit.Pair) {
	for a := range n {
		out = append(out, circuit.Pair{A: uint16(a), B: uint16(f(a))})
	}
	return out
}

type figures struct {
	open, took time.Duration
	moves      int
	openLoss   proto.MilliDBm // over the factory's
	loss       proto.MilliDBm
}

// check compares the circuits with the limits of the default board, and with
// the light itself.
func (r *rig) check(want int) (f figures) {
	r.t.Helper()
	all := r.x.Circuits(nil)
	if len(all) != want {
		r.t.Errorf("%d circuits, want %d", len(all), want)
	}
	for _, c := range all {
		if c.State != proto.Tuned {
			r.t.Errorf("%v: %v: %v (loss %d, factory %d)", c.Pair, c.State, c.Err, c.Loss, c.Factory)
		}
		truth := proto.MilliDBm(r.world.MirrorLoss(r.id, int(c.Pair.A), int(c.Pair.B)))
		if truth > c.Factory+550 { // and what the look and the factory err by
			r.t.Errorf("%v: says tuned, loses %d, factory %d", c.Pair, truth, c.Factory)
		}
		f.open, f.took, f.moves = max(f.open, c.Opened), max(f.took, c.Took), max(f.moves, c.Moves)
		f.openLoss, f.loss = max(f.openLoss, c.OpenLoop-c.Factory), max(f.loss, truth-c.Factory)
	}
	if f.open > 25*time.Millisecond || f.took > mems.MaxTuneTime || f.moves > mems.MaxClimbMoves || f.openLoss > 3000 {
		r.t.Errorf("beyond the limits: %+v", f)
	}
	if n := r.world.PulledIn(r.id); n != 0 {
		r.t.Errorf("%d mirrors pulled in", n)
	}
	return f
}
