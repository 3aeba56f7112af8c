package mems

import (
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// phase is what a circuit waits for.
//
//	opening --- within reach ---> held <---------- good ---------.
//	   |  \                        ^ |                            |
//	   |   `--- no light in ----.  | `-- drifted --> climbing ----+
//	   |                        v  |                   ^          |
//	   `--- off the mark ------>( unlit ) --- light ---'     out of moves:
//	                                                        held, as Failed
//
// blocked is an operator's, and ends in opening.
type phase uint8

const (
	opening  phase = iota // mirrors on their way to where the factory found the path
	climbing              // a hill-climb move under way
	held                  // nothing to do but to watch
	unlit                 // no light comes in
	adopting              // found at start: is it there?
	blocked               // a port is forced off
)

// path is a circuit and its tuning. It is told what a look found and says what
// follows; it moves nothing itself.
type path struct {
	circuit.Circuit
	phase  phase
	drive  [4]int16
	asked  time.Duration
	climb  climb
	looked bool // in the look under way
	rest   rest
}

// rest tells from the looks at a circuit since its last move whether its mirrors
// have come to rest: those of a make with little damping swing longer than they
// are given, and what a look finds then is not so a moment later.
type rest struct {
	looks, calm int // in all, and in a row that found what the one before did
	last, sum   proto.MilliDBm
}

// Looks before a result is believed. chosen: two may meet a swing at the same point;
// after 20, some 50 ms, nothing swings that tunes at all, and what differs is
// noise, whose mean counts.
const (
	calmLooks = 2
	mostLooks = 20
)

// look takes what a look found, and gives what is to be made of it.
func (r *rest) look(loss proto.MilliDBm) proto.MilliDBm {
	if d := loss - r.last; r.looks > 0 && -restWithin <= d && d <= restWithin {
		r.calm++
	} else {
		r.calm = 0
	}
	r.looks++
	r.last, r.sum = loss, r.sum+loss
	if r.looks >= mostLooks {
		return r.sum / proto.MilliDBm(r.looks)
	}
	return loss
}

// over: the mirrors are at rest.
func (r *rest) over() bool {
	return r.looks >= mostLooks || r.calm > 0 && (r.calm >= calmLooks || r.looks == 2)
}

// reading is what a look found of a path.
type reading struct {
	in, loss, factory proto.MilliDBm
	powerLost         bool // by the whole board: its mirrors are at rest
}

// finding is what follows from a reading.
type finding struct {
	tell  bool // an event of this kind
	kind  circuit.EventKind
	move  bool // the mirrors, to drive
	drive [4]int16
	doubt bool // nobody knows where the mirrors stand
}

// What a loss means. chosen, but the first: docs/board.md and the switch-abstraction
// objects call a path tuned within 0.5 dB of its target.
const (
	tunedWithin = 500  // milli-dB above the factory's
	climbUntil  = 250  // and no further climbing under this: half of it is for drift
	adoptWithin = 6000 // a saved circuit that is this near is the same circuit
	restWithin  = 60   // between two looks at mirrors at rest: three times the noise of both monitors
)

// MaxTuneTime bounds one tuning. docs/board.md, MEMS board.
const MaxTuneTime = 500 * time.Millisecond

// roundTime is about what a hill-climb move of all circuits takes.
const roundTime = climbSettle + 3*time.Millisecond

// busy: its mirrors are on their way.
func (c *path) busy() bool { return c.phase == opening || c.phase == climbing }

// near: no further from what the factory measured than that.
func (c *path) near(milliDB proto.MilliDBm) bool { return c.Loss <= c.Factory+milliDB }

func (c *path) event(kind circuit.EventKind, now time.Duration) circuit.Event {
	return circuit.Event{Kind: kind, At: now, Pair: c.Pair, Loss: c.Loss, Factory: c.Factory, Err: c.Err}
}

// look takes a reading of a path whose mirrors are where they were sent.
func (c *path) look(now time.Duration, r reading) finding {
	c.Factory = r.factory
	if r.in < circuit.LeastInput {
		f := finding{tell: c.phase != unlit, kind: circuit.Unlit}
		c.phase, c.State, c.Err = unlit, proto.Tuning, circuit.ErrNoInput
		return f
	}
	c.Loss = r.loss
	switch c.phase {
	case adopting:
		if !c.near(adoptWithin) || r.powerLost {
			f := c.fail(now, ErrNotAdopted)
			f.doubt = true
			return f
		}
		if c.near(tunedWithin) { // what is right is not moved to make it better
			c.OpenLoop, c.Opened = c.Loss, now-c.asked
			return c.tuned(now)
		}
		c.phase = opening
	case unlit:
		c.phase, c.asked = opening, now
	}
	switch c.phase {
	case opening, climbing:
		c.Loss = c.rest.look(c.Loss)
		if c.phase == opening {
			return c.opened(now)
		}
		return c.climbed(now)
	case held:
		return c.watched(now)
	}
	return finding{}
}

// opened: the mirrors are where the table sent them.
func (c *path) opened(now time.Duration) finding {
	if c.rest.looks == 1 {
		c.OpenLoop, c.Opened, c.Moves, c.Err = c.Loss, now-c.asked, 0, nil
	}
	switch near := c.near(climbUntil); {
	case !near:
		return c.startClimb()
	case !c.rest.over():
		return finding{} // and looks again
	}
	return c.tuned(now)
}

// startClimb goes on from where the mirrors are: what light it has stays.
func (c *path) startClimb() finding {
	c.phase, c.State = climbing, proto.Tuning
	return finding{move: true, drive: c.climb.start(c.drive, c.Loss)}
}

func (c *path) climbed(now time.Duration) finding {
	if c.climb.leg == climbCheck && !c.rest.over() {
		return finding{} // and looks again
	}
	drive, checked := c.climb.next(c.Loss)
	c.Moves = c.climb.moves
	var f finding
	if checked {
		next, again := drive, false
		if !c.near(climbUntil) {
			next, again = c.climb.sweep()
		}
		switch {
		case again && now-c.asked < MaxTuneTime-sweepMoves*roundTime:
			drive = next
		case c.near(tunedWithin):
			f = c.tuned(now)
		default:
			f = c.fail(now, circuit.ErrNotTuned)
		}
	}
	f.move, f.drive = true, drive
	return f
}

func (c *path) tuned(now time.Duration) finding {
	c.phase, c.State, c.Err, c.Took = held, proto.Tuned, nil, now-c.asked
	return finding{tell: true, kind: circuit.Tuned}
}

// fail leaves the mirrors where they are: some light may be better than none.
func (c *path) fail(now time.Duration, err error) finding {
	c.phase, c.Took = held, now-c.asked
	if c.State == proto.Failed {
		return finding{}
	}
	c.State, c.Err = proto.Failed, err
	return finding{tell: true, kind: circuit.Failed}
}

// watched: a health round looked at a circuit at rest.
func (c *path) watched(now time.Duration) finding {
	near := c.near(tunedWithin)
	switch {
	case near && c.State == proto.Failed && c.Err != ErrNotAdopted: // that one's mirrors stand anywhere
		c.asked = now
		return c.tuned(now)
	case c.State == proto.Failed && c.Err != ErrNotAdopted && c.Err != circuit.ErrNotTuned:
		// Its monitor did not answer before, and does now.
		if c.Err = circuit.ErrNotTuned; c.near(adoptWithin) {
			c.asked = now
			return c.startClimb()
		}
	case !near && c.State == proto.Tuned:
		c.asked = now
		f := c.startClimb()
		f.tell, f.kind = true, circuit.Drifted
		return f
	}
	return finding{}
}

// paths are the circuits, by either port.
type paths struct {
	byA []*path // nil: none
	ofB []int   // the port of A in circuit with one of B; -1: none
}

// clear takes up no circuit.
func (t *paths) clear() {
	clear(t.byA)
	for b := range t.ofB {
		t.ofB[b] = -1
	}
}

// at is the circuit that a port is in, if any.
func (t *paths) at(side, port int) *path {
	if side == hal.SideB {
		if port = t.ofB[port]; port < 0 {
			return nil
		}
	}
	return t.byA[port]
}

func (t *paths) add(c *path) { t.byA[c.Pair.A], t.ofB[c.Pair.B] = c, int(c.Pair.A) }

func (t *paths) remove(p circuit.Pair) { t.byA[p.A], t.ofB[p.B] = nil, -1 }

// busy reports whether the mirrors of any circuit are on their way.
func (t *paths) busy() bool {
	return slices.ContainsFunc(t.byA, func(c *path) bool { return c != nil && c.busy() })
}

// all circuits, in the order of their ports of side A.
func (t *paths) all(yield func(*path) bool) {
	for _, c := range t.byA {
		if c != nil && !yield(c) {
			return
		}
	}
}
