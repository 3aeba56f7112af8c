package mems

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// circuitPhase is what a circuit waits for.
//
//	opening --- within reach ---> held <---------- good ---------.
//	   |  \                        ^ |                            |
//	   |   `--- no light in ----.  | `-- drifted --> climbing ----+
//	   |                        v  |                   ^          |
//	   `--- off the mark ------>( unlit ) --- light ---'     out of moves:
//	                                                        held, as Failed
//
// blocked is an operator's, and ends in opening.
type circuitPhase uint8

const (
	circuitOpening  circuitPhase = iota // mirrors on their way to where the factory found the path
	circuitClimbing                     // a hill-climb move under way
	circuitHeld                         // nothing to do but to watch
	circuitUnlit                        // no light comes in
	circuitAdopting                     // found at start: is it there?
	circuitBlocked                      // a port is forced off
)

type path struct {
	circuit.Circuit
	phase  circuitPhase
	drive  [4]int16
	asked  time.Duration
	climb  climb
	looked bool // in the look under way
}

func (c *path) asks() bool { return c.phase == circuitOpening || c.phase == circuitClimbing }

// What a loss means. chosen, but the first: board.md and the switch-abstraction
// objects call a path tuned within 0.5 dB of its target.
const (
	tunedWithin = 500  // milli-dB above the factory's
	climbUntil  = 250  // and no further climbing under this: half of it is for drift
	adoptWithin = 6000 // a saved circuit that is this near is the same circuit
)

func (x *Crossbar) mirrorsOf(c *path) (a, b *mirror) {
	return &x.mirrors[hal.SideA][c.Pair.A], &x.mirrors[hal.SideB][c.Pair.B]
}

// aim sends both mirrors of a circuit to a drive.
func (x *Crossbar) aim(c *path, drive [4]int16) {
	for i := range drive {
		drive[i] = x.guardDrive(drive[i])
	}
	a, b := x.mirrorsOf(c)
	a.target, b.target = [2]int16(drive[:2]), [2]int16(drive[2:])
	a.aimed, b.aimed, a.err, b.err = true, true, nil, nil
	c.drive = drive
}

func (x *Crossbar) park(side, port int) {
	m := &x.mirrors[side][port]
	for i, d := range x.cfg.Factory.Park[side][port] {
		m.target[i] = x.guardDrive(d)
	}
	m.aimed, m.err = true, nil
}

// Apply makes a change in one act. An error means that nothing of it was done;
// it wraps a CircuitError for the first circuit that stands in the way.
func (x *Crossbar) Apply(now time.Duration, ch circuit.Change) error {
	switch x.state {
	case Off, Starting:
		return fmt.Errorf("ocs: crossbar: %w", circuit.ErrNotReady)
	case Faulted:
		return fmt.Errorf("ocs: crossbar: %w: %w", circuit.ErrOutOfService, x.err)
	}
	if !x.ready {
		return fmt.Errorf("ocs: crossbar: %w", circuit.ErrNotReady)
	}
	if err := ch.Check(x.ports, x.ports, x.at); err != nil {
		return fmt.Errorf("ocs: crossbar: %w", err)
	}
	for _, p := range ch.Remove {
		x.remove(now, p)
	}
	if ch.Mode == circuit.Overwrite {
		keep := make([]int, x.ports) // port of B + 1, by port of A
		for _, p := range ch.Create {
			keep[p.A] = int(p.B) + 1
		}
		for a, c := range x.circuits {
			if c != nil && keep[a] != int(c.Pair.B)+1 {
				x.remove(now, c.Pair)
			}
		}
	}
	// All that must go goes before anything comes.
	for _, p := range ch.Create {
		if c := x.circuits[p.A]; c != nil && c.Pair != p {
			x.remove(now, c.Pair)
		}
		if a := x.ownerB[p.B]; a >= 0 && a != int(p.A) {
			x.remove(now, x.circuits[a].Pair)
		}
	}
	for _, p := range ch.Create {
		switch c := x.circuits[p.A]; {
		case c == nil || x.adrift(c):
			x.create(now, p, x.cfg.Factory.Drive[int(p.A)*x.ports+int(p.B)])
		case c.State != proto.Failed:
		case c.Err == circuit.ErrNotTuned:
			c.asked = now
			x.startClimb(c) // from where it is: what light it has stays
		default:
			x.health = true // a monitor did not answer; the light may be as good as ever
		}
	}
	if ch.Park {
		x.sees = true
		x.eachIdle(func(side, port int, m *mirror) {
			if !m.known && !m.aimed {
				x.park(side, port)
			}
		})
	}
	return nil
}

// adrift: the circuit has failed, and its mirrors have to be sent out anew.
func (x *Crossbar) adrift(c *path) bool {
	a, b := x.mirrorsOf(c)
	return c.State == proto.Failed && (c.Err == ErrNotAdopted || a.err != nil || b.err != nil ||
		c.Err == circuit.ErrNotTuned && c.Loss > c.Factory+adoptWithin)
}

// eachIdle calls f for every mirror in no circuit.
func (x *Crossbar) eachIdle(f func(side, port int, m *mirror)) {
	for port := range x.ports {
		if x.circuits[port] == nil {
			f(hal.SideA, port, &x.mirrors[hal.SideA][port])
		}
		if x.ownerB[port] < 0 {
			f(hal.SideB, port, &x.mirrors[hal.SideB][port])
		}
	}
}

// believeParked takes idle mirrors to be parked, if the first look at the
// board shows no light at a port where there should be none, and at least one
// of the circuits that were saved: after a loss of power neither is so.
func (x *Crossbar) believeParked() {
	adopted, saved := false, false
	for _, c := range x.circuits {
		if c != nil {
			saved = true
			adopted = adopted || c.State != proto.Failed
		}
	}
	stray := false
	for port, a := range x.ownerB {
		chip := x.chipOf(hal.SideB, port)
		stray = stray || a < 0 && chip.err == nil && chip.power[x.hw.Monitors[hal.SideB][port].Channel] >= circuit.LeastInput
	}
	x.stray = stray || x.lostPower()
	if !x.cfg.Parked || x.stray || saved && !adopted {
		return
	}
	x.eachIdle(func(side, port int, m *mirror) {
		for i, d := range x.cfg.Factory.Park[side][port] {
			m.shadow[i] = x.guardDrive(d)
		}
		m.target, m.known = m.shadow, true
	})
}

// at is the circuit that a port is in.
func (x *Crossbar) at(side int, port uint16) (circuit.Pair, bool) {
	a := int(port)
	if side == hal.SideB {
		a = x.ownerB[port]
	}
	if a < 0 || x.circuits[a] == nil {
		return circuit.Pair{}, false
	}
	return x.circuits[a].Pair, true
}

func (x *Crossbar) remove(now time.Duration, p circuit.Pair) {
	c := x.circuits[p.A]
	if c == nil || c.Pair != p {
		return
	}
	x.circuits[p.A], x.ownerB[p.B] = nil, -1
	x.park(hal.SideA, int(p.A))
	x.park(hal.SideB, int(p.B))
	x.events = append(x.events, circuit.Event{Kind: circuit.Removed, At: now, Pair: p, Loss: c.Loss, Factory: c.Factory})
}

func (x *Crossbar) create(now time.Duration, p circuit.Pair, drive [4]int16) *path {
	c := &path{Circuit: circuit.Circuit{Pair: p, State: proto.Tuning}, phase: circuitOpening, asked: now}
	x.circuits[p.A], x.ownerB[p.B] = c, int(p.A)
	x.aim(c, drive)
	x.obey(c)
	return c
}

// obey lets an operator's override of either port have its way.
func (x *Crossbar) obey(c *path) {
	if x.blocked[hal.SideA][c.Pair.A] == proto.Normal && x.blocked[hal.SideB][c.Pair.B] == proto.Normal {
		return
	}
	c.phase, c.State, c.Err = circuitBlocked, proto.Blocked, nil
	x.park(hal.SideA, int(c.Pair.A))
	x.park(hal.SideB, int(c.Pair.B))
}

// Override holds a port off, or lets it go again. Its circuit stays: it is
// blocked meanwhile, and tuned anew afterwards.
func (x *Crossbar) Override(now time.Duration, side, port int, o proto.Override) error {
	if side < 0 || side >= hal.NumSides || port < 0 || port >= x.ports {
		return fmt.Errorf("ocs: port %d of side %d: %w", port, side, hal.ErrOutOfRange)
	}
	x.blocked[side][port] = o
	a := port
	if side == hal.SideB {
		a = x.ownerB[port]
	}
	if a < 0 || x.circuits[a] == nil {
		return nil
	}
	c := x.circuits[a]
	if was := c.phase == circuitBlocked; was {
		c.phase, c.State, c.asked = circuitOpening, proto.Tuning, now
		x.aim(c, c.drive)
	}
	x.obey(c)
	return nil
}

// adopt takes up circuits at start.
func (x *Crossbar) adopt(now time.Duration) {
	x.ready = false
	if x.cfg.Startup != Keep {
		x.sees = true
		for side := range x.mirrors {
			for p := range x.mirrors[side] {
				x.park(side, p)
			}
		}
	}
	if x.cfg.Startup == Dark {
		return
	}
	for _, s := range x.cfg.Saved {
		c := x.create(now, s.Pair, s.Drive)
		if x.cfg.Startup == Keep && c.phase != circuitBlocked {
			c.phase = circuitAdopting
			for i, m := range [2]*mirror{&x.mirrors[hal.SideA][s.Pair.A], &x.mirrors[hal.SideB][s.Pair.B]} {
				m.shadow, m.known = [2]int16(c.drive[2*i:2*i+2]), true
			}
		}
	}
}

// sample is a look at a circuit.
func (x *Crossbar) sample(now time.Duration, c *path) {
	in, out := x.chipOf(hal.SideA, int(c.Pair.A)), x.chipOf(hal.SideB, int(c.Pair.B))
	if c.phase == circuitBlocked {
		return
	}
	for _, chip := range [2]*chip{in, out} {
		if chip.err != nil {
			x.fail(now, c, chip.err)
			return
		}
	}
	if a, b := x.mirrorsOf(c); a.err != nil || b.err != nil || a.shadow != a.target || b.shadow != b.target {
		return // it has not arrived yet
	}
	power := in.power[x.hw.Monitors[hal.SideA][c.Pair.A].Channel]
	c.Factory = x.cfg.Factory.Loss(c.Pair, x.cfg.MilliTHz, x.milliCelsius)
	if power < circuit.LeastInput {
		if c.phase != circuitUnlit {
			x.events = append(x.events, circuit.Event{Kind: circuit.Unlit, At: now, Pair: c.Pair, Loss: proto.NoPower, Factory: c.Factory, Err: circuit.ErrNoInput})
		}
		c.phase, c.State, c.Err = circuitUnlit, proto.Tuning, circuit.ErrNoInput
		return
	}
	c.Loss = power - out.power[x.hw.Monitors[hal.SideB][c.Pair.B].Channel]
	switch c.phase {
	case circuitAdopting:
		if c.Loss > c.Factory+adoptWithin || x.lostPower() {
			x.fail(now, c, ErrNotAdopted)
			// Nobody knows where they stand; they stay there until they are
			// sent somewhere, from rest.
			for _, m := range [2]*mirror{&x.mirrors[hal.SideA][c.Pair.A], &x.mirrors[hal.SideB][c.Pair.B]} {
				m.known, m.aimed = false, false
			}
			return
		}
		x.opened(now, c)
	case circuitUnlit:
		c.asked = now
		x.opened(now, c)
	case circuitOpening:
		x.opened(now, c)
	case circuitClimbing:
		x.climbed(now, c)
	case circuitHeld:
		x.watched(now, c)
	}
}

// opened: the mirrors are where the table sent them.
func (x *Crossbar) opened(now time.Duration, c *path) {
	c.OpenLoop, c.Opened, c.Moves, c.Err = c.Loss, now-c.asked, 0, nil
	if c.Loss <= c.Factory+climbUntil {
		x.tuned(now, c)
		return
	}
	x.startClimb(c)
}

func (x *Crossbar) startClimb(c *path) {
	c.phase, c.State = circuitClimbing, proto.Tuning
	x.aim(c, c.climb.start(c.drive, c.Loss))
}

func (x *Crossbar) climbed(now time.Duration, c *path) {
	drive, checked := c.climb.next(c.Loss)
	c.Moves = c.climb.moves
	x.aim(c, drive)
	if !checked {
		return
	}
	if c.Loss <= c.Factory+climbUntil {
		x.tuned(now, c)
		return
	}
	next, ok := c.climb.sweep()
	switch {
	case ok && now-c.asked < MaxTuneTime-sweepMoves*roundTime:
		x.aim(c, next)
	case c.Loss <= c.Factory+tunedWithin:
		x.tuned(now, c)
	default:
		x.fail(now, c, circuit.ErrNotTuned)
	}
}

// roundTime is about what a hill-climb move of all circuits takes.
const roundTime = climbSettle + 3*time.Millisecond

func (x *Crossbar) tuned(now time.Duration, c *path) {
	c.phase, c.State, c.Err, c.Took = circuitHeld, proto.Tuned, nil, now-c.asked
	x.events = append(x.events, circuit.Event{Kind: circuit.Tuned, At: now, Pair: c.Pair, Loss: c.Loss, Factory: c.Factory})
}

// fail leaves the mirrors where they are: some light may be better than none.
func (x *Crossbar) fail(now time.Duration, c *path, err error) {
	c.phase, c.Took = circuitHeld, now-c.asked
	if c.State == proto.Failed {
		return
	}
	c.State, c.Err = proto.Failed, err
	x.events = append(x.events, circuit.Event{Kind: circuit.Failed, At: now, Pair: c.Pair, Loss: c.Loss, Factory: c.Factory, Err: err})
}

// watched: a health round looked at a circuit at rest.
func (x *Crossbar) watched(now time.Duration, c *path) {
	near := c.Loss <= c.Factory+tunedWithin
	switch {
	case near && c.State == proto.Failed && c.Err != ErrNotAdopted: // that one's mirrors stand anywhere
		c.asked = now
		x.tuned(now, c)
	case c.State == proto.Failed && c.Err != ErrNotAdopted && c.Err != circuit.ErrNotTuned:
		// Its monitor did not answer before, and does now.
		if c.Err = circuit.ErrNotTuned; c.Loss <= c.Factory+adoptWithin {
			c.asked = now
			x.startClimb(c)
		}
	case !near && c.State == proto.Tuned:
		c.asked = now
		x.events = append(x.events, circuit.Event{Kind: circuit.Drifted, At: now, Pair: c.Pair, Loss: c.Loss, Factory: c.Factory})
		x.startClimb(c)
	}
}
