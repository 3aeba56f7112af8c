package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/hal/pca9535"
	"ringlight/mzi"
	"ringlight/ocs/heater"
	"ringlight/proto"
)

// Never is the time of a deadline that is not running.
const Never = hal.Never

// settleTime is how long a switch is given to settle after the write that
// caused it: the DAC's 10 us and the 57 us in which a falling heater brings
// 20 dB. docs/board.md, Optics.
const settleTime = 70 * time.Microsecond

// maxTries bounds how often one piece of bus work is tried. chosen: three bad
// answers in a row are no glitch.
const maxTries = 3

// Config is what a Transceiver is told at birth.
type Config struct {
	Board  *hal.Board
	Bundle proto.BundleID
	Latch  *Latch
	// Calibration of the bundle; nil: it can only be dark or calibrated. It is
	// shared and never written.
	Calibration *Calibration
	Seed        uint64 // of calibration searches
	// Lanes is the permutation that the loopback makes, zero: mzi.Halves. Who
	// set another one gives it again at the next start.
	Lanes mzi.Permutation
	Lock  LockConfig
}

// BusOp is bus work to be submitted. Its Op's token has 56 bits of ours; the
// top 8 are the caller's, who brings the completion back.
type BusOp = hal.BusOp

// task names what an Op is for, in its token.
type task uint8

const (
	taskLatchRead task = iota
	taskLatchClaim
	taskSwitch
	taskReadModule
	taskStageModule
	taskVerify
	taskHealth
	taskCalibrate
	taskMCI // of CMIS modules
	taskPassport
	taskLanes
	taskLock
)

// A token is the life of the Transceiver that it belongs to, the task, the
// module, and a number within it.
const (
	lifeShift   = 32
	taskShift   = 24
	moduleShift = 16
	tokenBits   = 56
)

func (t *Transceiver) token(k task, module, n int) uint64 {
	return (uint64(t.life)<<lifeShift | uint64(k)<<taskShift | uint64(module)<<moduleShift | uint64(n)) & (1<<tokenBits - 1)
}

// Transceiver is all modules of one bundle, driven as one.
type Transceiver struct {
	cfg    Config
	bundle *hal.Bundle
	state  State
	life   uint16 // of tokens: completions of an earlier Start are not ours
	err    error  // why it is Faulted

	path, target proto.Path
	port         proto.PortState
	since        time.Duration
	lit          [proto.NumPaths]bool
	busErrors    uint32
	limitErrors  uint32

	sw      switching
	scan    scan
	verify  verification
	health  healthRound
	cal     *calibrating // only while Calibrating
	pass    *passports   // nil: nobody is at the EEPROMs
	lanes   laneSwitch
	lock    lock
	force   []*heater.Codes // codes in force in place of the calibration's, by module
	mci     *mciDrive       // of CMIS modules; nil: latch and chips
	pending []BusOp         // put out by the next Poll
	events  []Event
}

// New makes a Transceiver; it does nothing before Start.
func New(cfg Config) *Transceiver {
	t := &Transceiver{cfg: cfg, bundle: &cfg.Board.Bundles[cfg.Bundle]}
	if t.bundle.Modules[0].Kind == hal.KindCMIS {
		t.mci = newMCIDrive(t)
		return t
	}
	t.sw.init(t)
	return t
}

// Start reads the hardware back and adopts it. It may be called again, to try
// once more after a fault.
func (t *Transceiver) Start(now time.Duration) {
	t.become(Reading)
	t.life++
	t.err = nil
	t.cal, t.pass = nil, nil
	t.lanes.finish()
	t.lock.reset()
	t.pending = t.pending[:0]
	t.sw.reset()
	// Work of an earlier life may be on the buses still, with its buffers.
	t.verify, t.health = verification{}, healthRound{hot: t.health.hot, last: t.health.last}
	t.verify.reset()
	if t.mci != nil {
		t.mci = newMCIDrive(t)
		t.mci.start(t, now)
		return
	}
	t.readLatch()
}

func (t *Transceiver) latchBus() (hal.BusID, uint16) {
	l := t.cfg.Board.Latches[t.bundle.Latch]
	return l.Bus, l.Addr
}

func (t *Transceiver) put(bus hal.BusID, op *hal.Op) {
	t.pending = append(t.pending, BusOp{Bus: bus, Op: op})
}

func (t *Transceiver) emit(e Event) {
	e.State = t.port
	t.events = append(t.events, e)
}

// readLatch asks for output and configuration registers, whose shadow the
// whole node shares.
func (t *Transceiver) readLatch() {
	bus, addr := t.latchBus()
	t.put(bus, &hal.Op{Token: t.token(taskLatchRead, 0, 0), Class: hal.ClassSafety, Msgs: []hal.Msg{
		{Addr: addr, W: pca9535.AppendRead(nil, pca9535.RegOutput), R: make([]byte, 2)},
		{Addr: addr, W: pca9535.AppendRead(nil, pca9535.RegConfig), R: make([]byte, 2)},
	}})
}

func (t *Transceiver) latchRead(now time.Duration, op *hal.Op) {
	l := t.cfg.Latch
	l.readBack(t.bundle, pca9535.Pair(op.Msgs[0].R), pca9535.Pair(op.Msgs[1].R))
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
func (t *Transceiver) found(now time.Duration) {
	t.path = pathOf(t.cfg.Latch.bits(t.bundle))
	t.target, t.since = t.path, now
	t.port = proto.Tuning
	if t.path == proto.Dark {
		t.port = proto.Blocked
	}
	t.settleLight()
	if t.cfg.Calibration == nil {
		t.lookForPassports()
		return
	}
	t.startScan(now, false)
}

// Light tells the filtered light of a path: how its LOS line stands.
func (t *Transceiver) Light(now time.Duration, p proto.Path, lit bool) {
	if int(p) >= proto.NumPaths || t.lit[p] == lit {
		return
	}
	t.lit[p] = lit
	if p == t.path {
		t.settleLight()
		if !lit && t.state == Idle && !t.sw.busy() {
			t.startVerify(now) // ours or theirs? The reads follow the pin.
		}
	}
}

// settleLight lets the light decide what state the port is in.
func (t *Transceiver) settleLight() {
	if t.port == proto.Failed || t.path == proto.Dark || t.sw.busy() {
		return
	}
	t.port = proto.Tuning
	if t.lit[t.path] {
		t.port = proto.Tuned
	}
}

// Poll takes completions and puts out bus work. It returns when it wants to be
// called again, at the latest.
func (t *Transceiver) Poll(now time.Duration, done []*hal.Completion, out []BusOp) ([]BusOp, time.Duration) {
	if t.mci != nil {
		return t.mci.poll(t, now, done, out)
	}
	for _, c := range done {
		t.completed(now, c)
	}
	t.lanes.due(t, now) // it may let a switch go
	t.sw.due(t, now)
	if t.cal != nil {
		t.cal.due(t, now)
	}
	if t.pass != nil {
		t.pass.due(t, now)
	}
	t.lock.due(t, now)
	if len(t.pending) > 0 {
		out = append(out, t.pending...)
		t.pending = t.pending[:0]
	}
	next := min(t.sw.next(), t.lanes.next(), t.lock.next(t))
	if t.cal != nil {
		next = min(next, t.cal.next())
	}
	if t.pass != nil {
		next = min(next, t.pass.next())
	}
	return out, next
}

func (t *Transceiver) completed(now time.Duration, c *hal.Completion) {
	token := c.Op.Token & (1<<tokenBits - 1)
	if uint16(token>>lifeShift) != t.life {
		return
	}
	k, module, n := task(token>>taskShift), int(uint8(token>>moduleShift)), int(uint16(token))
	if c.Err != nil && !(k == taskPassport && t.pass.asks(c, n)) {
		t.busErrors++
	}
	switch k {
	case taskLatchRead:
		t.orRetry(now, c, -1, func() { t.latchRead(now, c.Op) })
	case taskLatchClaim:
		t.orRetry(now, c, -1, func() { t.found(now) })
	case taskSwitch:
		t.sw.completed(t, now, c)
	case taskReadModule:
		if c.Err != nil && n == readSerial {
			t.moduleRead(now, module, n, c.Op) // with no identity in it
			return
		}
		t.orRetry(now, c, module, func() { t.moduleRead(now, module, n, c.Op) })
	case taskStageModule:
		t.orRetry(now, c, module, func() { t.moduleStaged(now) })
	case taskVerify:
		t.verified(now, c, module, n)
	case taskHealth:
		t.healthDone(now, c, module, n)
	case taskCalibrate:
		if t.cal != nil {
			t.cal.completed(t, now, c, n)
		}
	case taskPassport:
		t.passportDone(now, c, n)
	case taskLanes:
		t.lanes.completed(t, now, c, module, n)
	case taskLock:
		t.lock.completed(t, now, c, n)
	}
}

// orRetry goes on after work that must succeed, or tries it again.
func (t *Transceiver) orRetry(now time.Duration, c *hal.Completion, module int, then func()) {
	if c.Err == nil {
		t.scan.tries = 0
		then()
		return
	}
	if t.scan.tries++; t.scan.tries < maxTries {
		t.put(c.Bus, c.Op)
		return
	}
	err := c.Err
	if module >= 0 {
		err = &ModuleError{Module: module, Err: err}
	}
	t.fault(now, module, err)
}

// fault takes the bundle out of service until the next Start. The light stays
// as it is: what to do about it is not for the optics to say.
func (t *Transceiver) fault(now time.Duration, module int, err error) {
	t.scan.tries = 0
	t.life++ // what is still under way is no longer waited for
	t.lanes.finish()
	t.lock.reset()
	t.sw.held = false
	t.err = err
	t.become(Faulted)
	named := uint8(None)
	if module >= 0 {
		named = uint8(module)
	}
	t.emit(Event{Kind: Ready, At: now, Path: t.path, Module: named, Cell: None, Lane: None, Err: err})
}

// TakeEvents appends what was found since the last call.
func (t *Transceiver) TakeEvents(buf []Event) []Event {
	buf = append(buf, t.events...)
	t.events = t.events[:0]
	return buf
}
