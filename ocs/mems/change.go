package mems

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// Apply makes a change in one act. An error means that nothing of it was done;
// it wraps a circuit.Error for the first circuit that stands in the way.
func (x *Crossbar) Apply(now time.Duration, ch circuit.Change) error {
	switch {
	case x.state == Faulted:
		return fmt.Errorf("ocs: crossbar: %w: %w", circuit.ErrOutOfService, x.err)
	case x.state == Off || x.state == Starting || !x.ready:
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
		for c := range x.paths.all {
			if keep[c.Pair.A] != int(c.Pair.B)+1 {
				x.remove(now, c.Pair)
			}
		}
	}
	// All that must go goes before anything comes.
	for _, p := range ch.Create {
		for _, c := range [hal.NumSides]*path{x.paths.at(hal.SideA, int(p.A)), x.paths.at(hal.SideB, int(p.B))} {
			if c != nil && c.Pair != p {
				x.remove(now, c.Pair)
			}
		}
	}
	for _, p := range ch.Create {
		x.want(now, p)
	}
	if ch.Park {
		x.sees = true
		x.eachIdle(x.mirrors.parkLost)
	}
	return nil
}

// at is the circuit that a port is in.
func (x *Crossbar) at(side int, port uint16) (circuit.Pair, bool) {
	if c := x.paths.at(side, int(port)); c != nil {
		return c.Pair, true
	}
	return circuit.Pair{}, false
}

func (x *Crossbar) remove(now time.Duration, p circuit.Pair) {
	c := x.paths.at(hal.SideA, int(p.A))
	if c == nil || c.Pair != p {
		return
	}
	x.paths.remove(p)
	x.parkBoth(p)
	c.Err = nil
	x.tell(c.event(circuit.Removed, now))
}

func (x *Crossbar) parkBoth(p circuit.Pair) {
	x.mirrors.park(hal.SideA, int(p.A))
	x.mirrors.park(hal.SideB, int(p.B))
}

// want makes a circuit, or does for one that is there what can be done.
func (x *Crossbar) want(now time.Duration, p circuit.Pair) {
	switch c := x.paths.at(hal.SideA, int(p.A)); {
	case c == nil || x.adrift(c):
		x.create(now, p, x.cfg.Factory.Drive[int(p.A)*x.ports+int(p.B)])
	case c.State != proto.Failed:
	case c.Err == circuit.ErrNotTuned:
		c.asked = now
		x.follow(now, c, c.startClimb())
	default:
		x.round.health = true // a monitor did not answer; the light may be as good as ever
	}
}

// adrift: the circuit has failed, and its mirrors have to be sent out anew.
func (x *Crossbar) adrift(c *path) bool {
	return c.State == proto.Failed && (c.Err == ErrNotAdopted || x.mirrors.lost(c.Pair) != nil ||
		c.Err == circuit.ErrNotTuned && !c.near(adoptWithin))
}

func (x *Crossbar) create(now time.Duration, p circuit.Pair, drive [4]int16) *path {
	c := &path{Circuit: circuit.Circuit{Pair: p, State: proto.Tuning}, phase: opening, asked: now}
	x.paths.add(c)
	x.aim(c, drive)
	x.obey(c)
	return c
}

// Override holds a port off, or lets it go again. Its circuit stays: it is
// blocked meanwhile, and tuned anew afterwards.
func (x *Crossbar) Override(now time.Duration, side, port int, o proto.Override) error {
	if err := circuit.CheckPort(side, port, x.ports, x.ports); err != nil {
		return err
	}
	x.blocked[side][port] = o
	c := x.paths.at(side, port)
	if c == nil {
		return nil
	}
	if c.phase == blocked {
		c.phase, c.State, c.asked = opening, proto.Tuning, now
		x.aim(c, c.drive)
	}
	x.obey(c)
	return nil
}

// obey lets an operator's override of either port have its way.
func (x *Crossbar) obey(c *path) {
	if x.blocked[hal.SideA][c.Pair.A] == proto.Normal && x.blocked[hal.SideB][c.Pair.B] == proto.Normal {
		return
	}
	c.phase, c.State, c.Err = blocked, proto.Blocked, nil
	x.parkBoth(c.Pair)
}

// adopt takes up circuits at start.
func (x *Crossbar) adopt(now time.Duration) {
	x.ready = false
	if x.cfg.Startup != Keep {
		x.sees = true
		for side := range x.mirrors.at {
			for port := range x.ports {
				x.mirrors.park(side, port)
			}
		}
	}
	if x.cfg.Startup == Dark {
		return
	}
	for _, s := range x.cfg.Saved {
		c := x.create(now, s.Pair, s.Drive)
		if x.cfg.Startup == Keep && c.phase != blocked {
			c.phase = adopting
			x.mirrors.believe(c.Pair, c.drive)
		}
	}
}

// eachIdle calls f for every mirror in no circuit.
func (x *Crossbar) eachIdle(f func(side, port int)) {
	for port := range x.ports {
		for side := range hal.NumSides {
			if x.paths.at(side, port) == nil {
				f(side, port)
			}
		}
	}
}

// believeParked takes idle mirrors to be parked, if the first look at the
// board shows no light at a port where there should be none, and at least one
// of the circuits that were saved: after a loss of power neither is so.
func (x *Crossbar) believeParked() {
	adopted, saved := false, false
	for c := range x.paths.all {
		saved = true
		adopted = adopted || c.State != proto.Failed
	}
	x.stray = x.monitors.lostPower()
	for port := range x.ports {
		power, err := x.monitors.power(hal.SideB, port)
		x.stray = x.stray || x.paths.at(hal.SideB, port) == nil && err == nil && power >= circuit.LeastInput
	}
	if !x.cfg.Parked || x.stray || saved && !adopted {
		return
	}
	x.eachIdle(x.mirrors.believeParked)
}
