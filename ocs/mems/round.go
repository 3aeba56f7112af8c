package mems

import (
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// round is the bus work that one step of a round waits for, and what the round
// looks at.
type round struct {
	waiting int     // operations under way
	tries   []uint8 // of each, by its number
	health  bool    // a look at everything is wanted
	looking bool    // and under way
	doubt   bool    // this look asks whether the monitors scan
}

// expect begins a step of n operations with numbers under limit.
func (r *round) expect(limit, n int) {
	r.waiting = n
	r.tries = slices.Grow(r.tries[:0], limit)[:limit]
	clear(r.tries)
}

// again reports whether an operation that failed may be tried once more.
func (r *round) again(i int) bool {
	r.tries[i]++
	return r.tries[i] < work.MaxTries
}

// over counts an operation and reports whether it was the last.
func (r *round) over() bool {
	r.waiting--
	return r.waiting <= 0
}

// begin starts a round if there is anything to do.
func (x *Crossbar) begin() {
	switch {
	case x.mirrors.any():
		x.move()
	case x.round.health || x.paths.busy():
		x.look()
	}
}

// move takes every mirror that is not where it should be a step further.
func (x *Crossbar) move() {
	x.become(Moving)
	n := x.mirrors.step(&x.work)
	x.round.expect(n, n)
}

// unwritten: mirrors may stand anywhere, and their circuits have failed.
func (x *Crossbar) unwritten(now time.Duration, bus hal.BusID, err error) {
	x.mirrors.unwritten(bus, err)
	for c := range x.paths.all {
		if x.mirrors.lost(c.Pair) != nil {
			x.follow(now, c, c.fail(now, err))
		}
	}
}

// roundOver: all operations of a step have come back.
func (x *Crossbar) roundOver(now time.Duration) {
	switch x.state {
	case Starting:
		if silent, err := x.monitors.silent(); silent {
			x.faulted(now, err)
			return
		}
		x.adopt(now)
		x.round.health = true
		// The scan has begun anew, and has nothing to tell before it is round.
		x.become(Settling)
		x.until = now + monitorWindow
	case Moving:
		x.become(Settling)
		x.until = now + x.mirrors.written()
	case Looking:
		x.looked(now)
	}
}

// faulted: no monitor answers. The mirrors are left to themselves.
func (x *Crossbar) faulted(now time.Duration, err error) {
	x.err = err
	x.become(Faulted)
	x.tell(circuit.Event{Kind: circuit.Ready, At: now, Err: err})
}

func (x *Crossbar) settled() {
	if x.ready && x.mirrors.any() {
		x.move()
		return
	}
	x.mirrors.long = false
	x.look()
}

// look reads the monitors of the circuits that wait for it, or all of them.
func (x *Crossbar) look() {
	all := x.round.health
	x.monitors.begin(all)
	x.round.looking, x.round.doubt = all, false
	asked := all
	for c := range x.paths.all {
		if c.looked = all || c.busy(); c.looked {
			asked = true
			x.monitors.ask(hal.SideA, int(c.Pair.A))
			x.monitors.ask(hal.SideB, int(c.Pair.B))
		}
	}
	if !asked {
		x.become(Resting)
		return
	}
	x.become(Looking)
	x.round.health = false
	x.ask()
}

// ask reads what a look is at.
func (x *Crossbar) ask() {
	x.round.expect(len(x.monitors.chips)+1, x.monitors.look(&x.work, x.round.looking, x.round.doubt))
}

// lit: light was to be seen at a port when it was last looked at.
func (x *Crossbar) lit(side, port int) bool {
	c := x.paths.at(side, port)
	return c != nil && (c.phase == held || c.phase == climbing) && c.Err == nil
}

// looked hands every circuit its sample.
func (x *Crossbar) looked(now time.Duration) {
	if silent, err := x.monitors.silent(); silent && x.round.looking {
		x.faulted(now, err)
		return
	}
	if x.monitors.stopped() { // and the mirrors are at rest, for all that one knows
		x.faulted(now, errSupply)
		return
	}
	if !x.round.doubt && x.monitors.darkened(x.lit) {
		x.round.doubt = true
		x.ask()
		return
	}
	x.become(Resting)
	x.monitors.each(func(side, port int, power proto.MilliDBm) {
		if ev, any := x.watches[side][port].Look(now, power); any {
			ev.Side, ev.Port = uint8(side), uint16(port)
			x.tell(ev)
		}
	})
	for c := range x.paths.all {
		if c.looked {
			c.looked = false
			x.sample(now, c)
		}
	}
	if x.round.looking && !x.ready {
		x.ready = true
		if x.cfg.Startup == Keep {
			x.believeParked()
		}
		x.tell(circuit.Event{Kind: circuit.Ready, At: now})
	}
}

// sample is a look at a circuit.
func (x *Crossbar) sample(now time.Duration, c *path) {
	if c.phase == blocked {
		return
	}
	in, err := x.monitors.power(hal.SideA, int(c.Pair.A))
	out, outErr := x.monitors.power(hal.SideB, int(c.Pair.B))
	if err == nil {
		err = outErr
	}
	switch {
	case err != nil:
		x.follow(now, c, c.fail(now, err))
	case x.mirrors.arrived(c.Pair):
		x.follow(now, c, c.look(now, reading{in: in, loss: in - out, powerLost: x.monitors.lostPower(),
			factory: x.cfg.Factory.Loss(c.Pair, x.cfg.MilliTHz, x.monitors.milliCelsius)}))
	}
}

// follow does what a circuit makes of what it was told.
func (x *Crossbar) follow(now time.Duration, c *path, f finding) {
	if f.tell {
		ev := c.event(f.kind, now)
		if f.kind == circuit.Unlit {
			ev.Loss = proto.NoPower
		}
		x.tell(ev)
	}
	if f.move {
		x.aim(c, f.drive)
	}
	if f.doubt {
		x.mirrors.doubt(c.Pair)
	}
}

// aim sends both mirrors of a circuit to a drive.
func (x *Crossbar) aim(c *path, drive [4]int16) {
	c.rest = rest{}
	c.drive = x.mirrors.aim(c.Pair, drive)
}
