package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/ocs/mci"
)

// chipDrive is the latch and the chips of a bundle's modules: a path is a write to
// the latch, and the codes of all paths lie in the DACs beforehand.
type chipDrive struct {
	trx      *Transceiver // whose light it moves
	pins     pins
	turn     latchTurn
	scan     scan
	readings chipHealth
	cal      *calibrating // only while Calibrating
	pass     passports
	lock     lock
	arm      arming

	calibrations uint8 // that were begun, modulo what a token bears
}

func (d *chipDrive) start(time.Duration) {
	d.cal, d.pass = nil, passports{}
	d.lock.reset()
	d.turn.reset()
	d.readings = chipHealth{seen: new(ownLightOp)}
	d.arm = arming{both: d.arm.both, took: d.arm.took}
	d.readLatch()
}

func (d *chipDrive) controllers() *mci.Set { return nil }

// fault ends all that is under way with the bundle's service.
func (d *chipDrive) fault(now time.Duration, module int, err error) {
	d.scan.tries = 0
	d.lock.reset()
	d.trx.fault(now, module, err)
}

func (d *chipDrive) due(now time.Duration) (next time.Duration) {
	d.turn.due(d, now)
	if d.cal != nil {
		d.cal.due(d, now)
	}
	d.pass.due(d, now)
	d.lock.due(d, now)
	d.arm.run(d, now)
	next = min(d.trx.sw.next(), d.lock.next(d), d.pass.next())
	if d.cal != nil {
		next = min(next, d.cal.next())
	}
	return next
}

func (d *chipDrive) completed(now time.Duration, c *hal.Completion, k task, module, n int) {
	if d.isDACs(c.Bus) {
		d.arm.out--
	}
	if c.Err != nil && !(k == taskPassport && d.pass.asks(c, n)) {
		d.trx.busErrors++
	}
	switch k {
	case taskLatchRead:
		d.scan.orRetry(d, now, c, -1, func() { d.latchRead(now, c.Op) })
	case taskLatchClaim:
		d.scan.orRetry(d, now, c, -1, func() { d.found(now) })
	case taskSwitch:
		d.turn.completed(d, now, c)
	case taskReadModule:
		if c.Err != nil && n == readSerial {
			d.scan.moduleRead(d, now, module, n, c.Op) // with no identity in it
			return
		}
		d.scan.orRetry(d, now, c, module, func() { d.scan.moduleRead(d, now, module, n, c.Op) })
	case taskStageModule:
		d.scan.orRetry(d, now, c, module, func() {
			if d.scan.waiting--; d.scan.waiting == 0 {
				d.scan.staging = true
				d.scan.readModule(d)
			}
		})
	case taskVerify:
		d.trx.verify.accounted(now, module, d.readings.own[module].own.Block(), c.Err)
	case taskHealth:
		d.readings.completed(d, now, c, module, n)
	case taskCalibrate:
		if d.cal != nil && n>>calShift == int(d.calibrations) {
			d.cal.completed(d, now, c, n&(1<<calShift-1))
		}
	case taskPassport:
		d.pass.completed(d, now, c, n)
	case taskArm:
		d.arm.completed(d, now, c, module)
	case taskPattern:
		d.trx.Patterns.done(now, module, cmis.PatternStep(n), c.Err)
	case taskLock:
		d.lock.completed(d, now, c, n)
	}
}

// readLatch asks for output and configuration registers, whose shadow the
// whole node shares.
func (d *chipDrive) readLatch() {
	d.put(d.pins.chip.bus, &hal.Op{Token: d.trx.token(taskLatchRead, 0, 0), Class: hal.ClassSafety, Msgs: d.pins.read()})
}

func (d *chipDrive) latchRead(now time.Duration, op *hal.Op) {
	d.pins.readBack(op.Msgs)
	if d.pins.driven() {
		d.found(now)
		return
	}
	// Nobody has driven these pins since power-up. Their levels stay what the
	// board's pulls make them: dark.
	d.put(d.pins.chip.bus, &hal.Op{Token: d.trx.token(taskLatchClaim, 0, 0), Class: hal.ClassSafety, Msgs: d.pins.claim()})
}

// found adopts the path that the latch holds and goes on to the modules.
func (d *chipDrive) found(now time.Duration) {
	d.trx.adoptPath(now, pathOf(d.pins.bits()))
	if d.trx.cfg.Calibration == nil {
		d.pass.begin(d, passAdopt, 0, len(d.trx.bundle.Modules), nil) // what they know themselves
		return
	}
	d.scan.begin(d, now, false)
}

// writeLatch puts out a write that brings the bundle's pins to bits. A switch has its
// own, which allocates nothing.
func (d *chipDrive) writeLatch(bits uint16, token uint64, class hal.Class) {
	d.pins.set(bits)
	d.put(d.pins.chip.bus, &hal.Op{Token: token, Class: class, Msgs: []hal.Msg{d.pins.write(nil)}})
}
