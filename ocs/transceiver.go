package ocs

import (
	"time"

	"ringlight/hal"
	"ringlight/ocs/heater"
	"ringlight/ocs/mci"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// settleTime is how long a switch is given to settle after the write that
// caused it: as the slowest module's maker states, or what its calibration found,
// whichever is longer.
func (t *Transceiver) settleTime(c *Calibration) (most time.Duration) {
	for i := range t.bundle.Modules {
		most = max(most, t.bundle.Modules[i].Optics().Settle)
	}
	return max(most, time.Duration(settleShare*float64(c.standTime())))
}

// settleShare is how much of the time in which heat stands still brings 20 dB:
// exponentially, a step of pi is within 0.2 rad in 2.8 time constants, one of two pi
// within 5 mrad in 7.1.
const settleShare = 0.36

// standTime is after how long the heat of every module stands still; 0 where nobody
// has measured it.
func (c *Calibration) standTime() (most time.Duration) {
	if c != nil {
		for _, m := range c.Modules {
			most = max(most, time.Duration(m.SettleMicros)*time.Microsecond)
		}
	}
	return most
}

// Config is what a Transceiver is told at birth.
type Config struct {
	Board  *hal.Board
	Bundle proto.BundleID
	Latch  *Latch
	// Calibration of the bundle; nil: it can only be dark or calibrated. It is
	// shared and never written.
	Calibration *Calibration
	Seed        uint64 // of calibration searches
	Lock        LockConfig
}

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
	taskLock
	taskArm
	taskPattern
)

// A token's number is the module and a number within it.
const moduleShift = 16

func (t *Transceiver) token(k task, module, n int) uint64 {
	return t.work.Token(uint8(k), module<<moduleShift|n)
}

// Transceiver is all modules of one bundle, driven as one: what state the bundle
// is in, what it was asked for and what its light means. Its drive moves it.
type Transceiver struct {
	cfg    Config
	bundle *hal.Bundle
	drive  drive
	state  State
	err    error // why it is Faulted
	// The life that has begun makes all anew; over when it serves.
	renewing bool

	path, target proto.Path
	port         proto.PortState
	calibrated   time.Duration // or the life that found the calibration began
	foundIt      bool          // it did
	lit          [proto.NumPaths]bool
	noted        [proto.NumPaths]time.Duration // when its last change was
	busErrors    uint32
	heat         heat

	sw       switching
	verify   verification
	Patterns Patterns
	Firmware Firmware
	Health   Health
	rooms    []rooms // by module
	work     work.Queue
	events   []Event
}

// drive is what moves and measures a bundle's light: latch and chips of the board,
// or the controllers of CMIS modules. The Transceiver says what state the bundle is
// in and what a reading means; a drive knows how to get there.
type drive interface {
	mover
	looker
	worker
	// controllers of the modules, nil where they have none of their own.
	controllers() *mci.Set
}

// mover begins what the bundle was asked for, or says why not.
type mover interface {
	choose(now time.Duration, p proto.Path, how switchStep) error
	calibrate(now time.Duration) error
}

// looker measures.
type looker interface {
	// look reads the own light of every module, and tells accounted of each; it
	// returns how many it asked.
	look() (asked int)
	// readHealth reads one module, unless it is busy.
	readHealth(module int) bool
	// lockless is why no module can be held, "" where they can.
	lockless() string
	// hold is how a module is held; why it is not, though looks have come to their end.
	hold(module int) (h Hold, why string)
	// proof is how the light of a module was last found to be good.
	proof(module int) proof
	// progress of a calibration, if one is running.
	progress() (p Progress, running bool)
}

// worker does the bus work.
type worker interface {
	// start reads the hardware back and adopts it, in a new life.
	start(now time.Duration)
	// completed takes the end of one piece of work of this life.
	completed(now time.Duration, c *hal.Completion, k task, module, n int)
	// due lets go on what waited for a time, and says when it wants its next turn.
	due(now time.Duration) (next time.Duration)
}

// New makes a Transceiver; it does nothing before Start.
func New(cfg Config) *Transceiver {
	t := &Transceiver{cfg: cfg, bundle: &cfg.Board.Bundles[cfg.Bundle]}
	t.Patterns.t, t.Firmware.t, t.Health.t, t.heat.t, t.verify.t = t, t, t, t, t
	t.rooms = make([]rooms, len(t.bundle.Modules))
	for i := range t.bundle.Modules {
		t.heat.drivers = append(t.heat.drivers, heater.For(&t.bundle.Modules[i]))
	}
	if t.bundle.Modules[0].Kind == hal.KindCMIS {
		d := &mciDrive{trx: t}
		d.renew()
		t.drive = d
	} else {
		d := &chipDrive{trx: t, pins: cfg.Latch.of(t.bundle)}
		d.arm.both = t.heat.drivers[0].HoldsBoth()
		t.drive = d
	}
	return t
}

// Start reads the hardware back and adopts it. It may be called again, to try
// once more after a fault.
func (t *Transceiver) Start(now time.Duration) {
	t.renewing = false
	t.begin(now)
}

// Renew is Start for a bundle that carries nothing. Where its chips do not hold
// what they should it goes dark and they are written again, which Start leaves
// alone while it shines: what was lost with a supply is made good then.
func (t *Transceiver) Renew(now time.Duration) {
	t.renewing = true
	t.begin(now)
}

func (t *Transceiver) begin(now time.Duration) {
	t.become(Reading)
	t.calibrated, t.foundIt = now, true
	t.work.Restart()
	t.err = nil
	t.sw = switching{}
	// Work of an earlier life may be on the buses still, with its buffers.
	t.Patterns = Patterns{t: t}
	t.Health.module = 0
	t.verify.forget()
	t.drive.start(now)
}

// Select asks for a path, break before make: no light leaves until the way is
// set. A later Select wins over one under way. Dark is always granted once the
// latch has been read. Modules of kind cmis see to their own order.
func (t *Transceiver) Select(now time.Duration, p proto.Path) error {
	return t.choose(now, p, switchBreak)
}

// SelectAtOnce is Select without the break, where the old path's light is of no
// use to anybody: it saves a write and the time that heaters take.
func (t *Transceiver) SelectAtOnce(now time.Duration, p proto.Path) error {
	return t.choose(now, p, switchAtOnce)
}

func (t *Transceiver) choose(now time.Duration, p proto.Path, how switchStep) error {
	if int(p) >= proto.NumPaths {
		return errNoSuchPath
	}
	return t.drive.choose(now, p, how)
}

// Calibrate finds every cell of the bundle's modules from nothing. The bundle
// must be dark, and stays dark for its peers: one lane of a module shines at a
// time, which no LOS line takes for light, and later only its own loopback.
// Calibrated or CalibrationFailed tells the end.
func (t *Transceiver) Calibrate(now time.Duration) error {
	switch {
	case t.state == Calibrating:
		return ErrBusy
	case t.state == Faulted:
		return ErrOutOfService
	case t.state != Idle || t.sw.busy():
		return ErrNotReady
	case t.path != proto.Dark || t.target != proto.Dark:
		return ErrCarriesLight
	}
	return t.drive.calibrate(now)
}

// adoptPath takes the path that the hardware is on for the one that was asked for.
func (t *Transceiver) adoptPath(now time.Duration, p proto.Path) {
	t.aim(p)
	t.path = p
	t.settleLight()
}

// serve goes into service with what was read back. differ: codes that carry light
// are not those of the calibration; odd is what else somebody should know.
func (t *Transceiver) serve(now time.Duration, differ bool, odd error, text string) {
	t.renewing = false
	t.become(Idle)
	e := Event{Kind: Ready, At: now, Path: t.path, Module: None, Cell: None, Lane: None}
	if t.cfg.Calibration == nil {
		e.Err = ErrNotCalibrated
	}
	t.emit(e)
	e.Kind = Degraded
	if differ {
		e.Err, e.Text = heater.ErrReadBack, "codes differ from the calibration; not touched while they carry light"
		t.emit(e)
	}
	if odd != nil {
		e.Err, e.Module, e.Text = odd, moduleOf(odd), text
		t.emit(e)
	}
	if t.path != proto.Dark {
		t.verify.start()
	}
}

func (t *Transceiver) put(bus hal.BusID, op *hal.Op) { t.work.Put(bus, op) }

func (t *Transceiver) emit(e Event) {
	t.events = append(t.events, e)
}

// Light tells the filtered light of a path: how its LOS line stands, and when
// the host noted that, which is now where it was looked at.
func (t *Transceiver) Light(now, noted time.Duration, p proto.Path, lit bool) {
	if int(p) >= proto.NumPaths || t.lit[p] == lit {
		return
	}
	t.lit[p], t.noted[p] = lit, min(noted, now)
	if p == t.path {
		t.settleLight()
		if !lit && t.state == Idle && !t.sw.busy() {
			t.verify.start() // ours or theirs? The reads follow the pin.
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
func (t *Transceiver) Poll(now time.Duration, done []*hal.Completion, out []hal.BusOp) ([]hal.BusOp, time.Duration) {
	for _, c := range done {
		if k, n, mine := t.work.Mine(c.Op); mine {
			t.drive.completed(now, c, task(k), n>>moduleShift, n&(1<<moduleShift-1))
		}
	}
	next := t.drive.due(now)
	return t.work.Take(out), next
}

// fault takes the bundle out of service until the next Start. The light stays
// as it is: what to do about it is not for the optics to say.
func (t *Transceiver) fault(now time.Duration, module int, err error) {
	t.work.Abandon() // what is still under way is no longer waited for
	t.sw.loading = false
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
