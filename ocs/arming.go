package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/ocs/heater"
	"ringlight/ocs/work"
)

// arming keeps in the DACs what the next edge of a toggle net is to bring into
// force, where they cannot hold both codes of a cell. Until it is there no net
// toggles: a Select that comes too soon goes dark at once and waits. DACs that hold
// both are always armed.
type arming struct {
	both bool    // they do
	due  bool    // codes have changed
	nets [2]bool // levels that they are armed at
	out  int     // DAC work under way
	left int     // of it to arm
	took time.Duration

	tries int
	began time.Duration
}

// dacs is the driver of a module's heaters as the toggle nets stand.
func (d *chipDrive) dacs(module int) *heater.Driver {
	return d.trx.heat.drivers[module].At(d.pins.nets())
}

func (d *chipDrive) isDACs(bus hal.BusID) bool { return bus == d.trx.bundle.Modules[0].SPI }

// put counts the work of the DACs: none of it may meet an edge.
func (d *chipDrive) put(bus hal.BusID, op *hal.Op) {
	if d.isDACs(bus) {
		d.arm.out++
	}
	d.trx.put(bus, op)
}

// armed reports whether a net may toggle.
func (d *chipDrive) armed() bool {
	a := &d.arm
	return a.both || !a.due && a.out == 0 && a.nets == d.pins.nets()
}

// run arms the DACs when something has changed and nothing is on its way.
func (a *arming) run(d *chipDrive, now time.Duration) {
	switch timing := d.cal != nil && d.cal.step == calTiming && d.cal.latch.out == 0; {
	case a.both || !a.due && a.nets == d.pins.nets() || a.out > 0 || d.turn.edge:
		return
	case !timing && (d.trx.state != Idle || d.trx.cfg.Calibration == nil):
		return
	}
	a.due, a.nets, a.left, a.began = false, d.pins.nets(), len(d.trx.bundle.Modules), now
	for i := range d.trx.bundle.Modules {
		var codes *heater.Allowed
		if d.cal != nil {
			m := d.cal.result.Modules[i]
			codes, _ = d.trx.heat.allow(i, m, m.codes())
		} else {
			codes = d.trx.heat.allowed(i)
		}
		d.put(d.trx.bundle.Modules[i].SPI, &hal.Op{Token: d.trx.token(taskArm, i, 0), Class: hal.ClassSwitch, Msgs: d.dacs(i).Arm(codes)})
	}
}

func (a *arming) completed(d *chipDrive, now time.Duration, c *hal.Completion, module int) {
	if c.Err != nil {
		if a.tries++; a.tries < work.MaxTries {
			d.put(c.Bus, c.Op)
			return
		}
		d.fault(now, module, &ModuleError{Module: module, Err: c.Err})
		return
	}
	if a.left--; a.left == 0 {
		a.tries = 0
		a.took = max(a.took, c.End-a.began)
	}
}
