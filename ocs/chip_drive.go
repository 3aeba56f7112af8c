package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/hal/pca953x"
	"ringlight/ocs/mci"
	"ringlight/ocs/work"
)

// chipDrive is the latch and the chips of a bundle's modules: a path is a write to
// the latch, and the codes of all paths lie in the DACs beforehand.
type chipDrive struct {
	*Transceiver
	turn     latchTurn
	scan     scan
	readings chipHealth
	cal      *calibrating // only while Calibrating
	pass     *passports   // nil: nobody is at the EEPROMs
	lock     lock
	arm      arming

	calibrations uint8 // that were begun, modulo what a token bears
}

func (t *chipDrive) start(time.Duration) {
	t.cal, t.pass = nil, nil
	t.lock.reset()
	t.turn.reset()
	t.readings = chipHealth{seen: new(ownLightOp)}
	t.arm = arming{both: t.arm.both, took: t.arm.took}
	t.readLatch()
}

func (t *chipDrive) controllers() *mci.Set { return nil }

// fault ends all that is under way with the bundle's service.
func (t *chipDrive) fault(now time.Duration, module int, err error) {
	t.scan.tries = 0
	t.lock.reset()
	t.Transceiver.fault(now, module, err)
}

func (t *chipDrive) due(now time.Duration) (next time.Duration) {
	t.turn.due(t, now)
	if t.cal != nil {
		t.cal.due(t, now)
	}
	if t.pass != nil {
		t.pass.due(t, now)
	}
	t.lock.due(t, now)
	t.arm.run(t, now)
	next = min(t.sw.next(), t.lock.next(t))
	if t.cal != nil {
		next = min(next, t.cal.next())
	}
	if t.pass != nil {
		next = min(next, t.pass.next())
	}
	return next
}

func (t *chipDrive) completed(now time.Duration, c *hal.Completion, k task, module, n int) {
	if t.isDACs(c.Bus) {
		t.arm.out--
	}
	if c.Err != nil && !(k == taskPassport && t.pass.asks(c, n)) {
		t.busErrors++
	}
	switch k {
	case taskLatchRead:
		t.orRetry(now, c, -1, func() { t.latchRead(now, c.Op) })
	case taskLatchClaim:
		t.orRetry(now, c, -1, func() { t.found(now) })
	case taskSwitch:
		t.turn.completed(t, now, c)
	case taskReadModule:
		if c.Err != nil && n == readSerial {
			t.moduleRead(now, module, n, c.Op) // with no identity in it
			return
		}
		t.orRetry(now, c, module, func() { t.moduleRead(now, module, n, c.Op) })
	case taskStageModule:
		t.orRetry(now, c, module, func() {
			if t.scan.waiting--; t.scan.waiting == 0 {
				t.scan.staging = true
				t.readModule()
			}
		})
	case taskVerify:
		t.accounted(now, module, t.readings.own[module].own.Block(), c.Err)
	case taskHealth:
		t.healthDone(now, c, module, n)
	case taskCalibrate:
		if t.cal != nil && n>>calShift == int(t.calibrations) {
			t.cal.completed(t, now, c, n&(1<<calShift-1))
		}
	case taskPassport:
		t.passportDone(now, c, n)
	case taskArm:
		t.arm.completed(t, now, c, module)
	case taskPattern:
		t.Patterns.done(now, module, cmis.PatternStep(n), c.Err)
	case taskLock:
		t.lock.completed(t, now, c, n)
	}
}

func (t *chipDrive) latchBus() (hal.BusID, uint16) {
	l := t.cfg.Board.Latches[t.bundle.Latch]
	return l.Bus, l.Addr
}

// readLatch asks for output and configuration registers, whose shadow the
// whole node shares.
func (t *chipDrive) readLatch() {
	bus, addr := t.latchBus()
	part := t.cfg.Latch.chips[t.bundle.Latch].part
	t.put(bus, &hal.Op{Token: t.token(taskLatchRead, 0, 0), Class: hal.ClassSafety, Msgs: []hal.Msg{
		{Addr: addr, W: part.AppendRead(nil, pca953x.Output), R: make([]byte, part.Ports)},
		{Addr: addr, W: part.AppendRead(nil, pca953x.Config), R: make([]byte, part.Ports)},
	}})
}

func (t *chipDrive) latchRead(now time.Duration, op *hal.Op) {
	l := t.cfg.Latch
	part := l.chips[t.bundle.Latch].part
	l.readBack(t.bundle, part.Value(op.Msgs[0].R), part.Value(op.Msgs[1].R))
	if l.driven(t.bundle) {
		t.found(now)
		return
	}
	// Nobody has driven these pins since power-up. Their levels stay what the
	// board's pulls make them: dark.
	bus, addr := t.latchBus()
	l.claim(t.bundle)
	t.put(bus, &hal.Op{Token: t.token(taskLatchClaim, 0, 0), Class: hal.ClassSafety, Msgs: []hal.Msg{
		{Addr: addr, W: l.appendWrite(nil, t.bundle)},
		{Addr: addr, W: l.appendConfig(nil, t.bundle)},
	}})
}

// found adopts the path that the latch holds and goes on to the modules.
func (t *chipDrive) found(now time.Duration) {
	t.adoptPath(now, pathOf(t.cfg.Latch.bits(t.bundle)))
	if t.cfg.Calibration == nil {
		t.lookForPassports()
		return
	}
	t.startScan(now, false)
}

// writeLatch puts out a write that brings the bundle's pins to bits. A switch has its
// own, which allocates nothing.
func (t *chipDrive) writeLatch(bits uint16, token uint64, class hal.Class) {
	t.cfg.Latch.set(t.bundle, bits)
	bus, addr := t.latchBus()
	t.put(bus, &hal.Op{Token: token, Class: class, Msgs: []hal.Msg{{Addr: addr, W: t.cfg.Latch.appendWrite(nil, t.bundle)}}})
}

// orRetry goes on after work that must succeed, or tries it again.
func (t *chipDrive) orRetry(now time.Duration, c *hal.Completion, module int, then func()) {
	if c.Err == nil {
		t.scan.tries = 0
		then()
		return
	}
	if t.scan.tries++; t.scan.tries < work.MaxTries {
		t.put(c.Bus, c.Op)
		return
	}
	err := c.Err
	if module >= 0 {
		err = &ModuleError{Module: module, Err: err}
	}
	t.fault(now, module, err)
}
