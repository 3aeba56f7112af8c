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
func (t *chipDrive) dacs(module int) *heater.Driver {
	return t.heaters[module].At(t.nets())
}

// nets are the levels of the toggle nets, as meant.
func (t *chipDrive) nets() [2]bool {
	bits := t.cfg.Latch.bits(t.bundle)
	return [2]bool{bits&hal.LatchToggle0 != 0, bits&hal.LatchToggle1 != 0}
}

func (t *chipDrive) isDACs(bus hal.BusID) bool { return bus == t.bundle.Modules[0].SPI }

// put counts the work of the DACs: none of it may meet an edge.
func (t *chipDrive) put(bus hal.BusID, op *hal.Op) {
	if t.isDACs(bus) {
		t.arm.out++
	}
	t.Transceiver.put(bus, op)
}

// armed reports whether a net may toggle.
func (t *chipDrive) armed() bool {
	a := &t.arm
	return a.both || !a.due && a.out == 0 && a.nets == t.nets()
}

// run arms the DACs when something has changed and nothing is on its way.
func (a *arming) run(t *chipDrive, now time.Duration) {
	switch timing := t.cal != nil && t.cal.step == calTiming && t.cal.latch.out == 0; {
	case a.both || !a.due && a.nets == t.nets() || a.out > 0 || t.turn.edge:
		return
	case !timing && (t.state != Idle || t.cfg.Calibration == nil):
		return
	}
	a.due, a.nets, a.left, a.began = false, t.nets(), len(t.bundle.Modules), now
	for i := range t.bundle.Modules {
		var codes *heater.Allowed
		if t.cal != nil {
			m := t.cal.result.Modules[i]
			codes, _ = t.allow(i, m, &m.Codes)
		} else {
			codes = t.allowed(i, t.codes(i))
		}
		t.put(t.bundle.Modules[i].SPI, &hal.Op{Token: t.token(taskArm, i, 0), Class: hal.ClassSwitch, Msgs: t.dacs(i).Arm(codes)})
	}
}

func (a *arming) completed(t *chipDrive, now time.Duration, c *hal.Completion, module int) {
	if c.Err != nil {
		if a.tries++; a.tries < work.MaxTries {
			t.put(c.Bus, c.Op)
			return
		}
		t.fault(now, module, &ModuleError{Module: module, Err: c.Err})
		return
	}
	if a.left--; a.left == 0 {
		a.tries = 0
		a.took = max(a.took, c.End-a.began)
	}
}
