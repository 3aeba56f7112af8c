package sim

import (
	"encoding/binary"
	"math"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/cmis"
)

// MCITiming is how long a module's controller takes for what. While it is away
// it does not acknowledge its address.
type MCITiming struct {
	PageChange  time.Duration // after a write to the page byte
	Write       time.Duration // after a write of volatile bytes
	NonVolatile time.Duration
	// Trigger is the longest time from a trigger byte to the drive of the
	// heaters; each one takes between half of it and all.
	Trigger time.Duration
	Apply   time.Duration // staged codes to heaters
	PowerUp time.Duration
	DPInit  time.Duration
	Command time.Duration // of the command data block
	// NoSearch: a controller without page B4h; nobody calibrates its module.
	NoSearch bool
	// NoLock: a controller that holds no cell by itself.
	NoLock bool
	// LockRest is between two looks of its lock; 0: mciLockRest.
	LockRest time.Duration
	// NoFirmware: a controller that takes no firmware; NoEPL: only by the local payload;
	// NoCommit: its commits come to nothing.
	NoFirmware, NoEPL, NoCommit bool
	// NoPages: a controller that keeps its heaters to itself, without pages B1h, B2h and B4h.
	NoPages bool
	// NoPatterns: a controller without pages 13h and 14h.
	NoPatterns bool
}

// DefaultMCITiming is a controller that is quick where it matters. chosen.
func DefaultMCITiming() MCITiming {
	return MCITiming{PageChange: 400 * time.Microsecond, Write: 150 * time.Microsecond, NonVolatile: 20 * time.Millisecond,
		Trigger: 30 * time.Microsecond, Apply: 200 * time.Microsecond, PowerUp: 80 * time.Millisecond, DPInit: 4 * time.Millisecond, Command: 30 * time.Millisecond}
}

// SlowMCITiming is a controller that takes every time the specification
// leaves it, the trigger byte being a write like any other.
func SlowMCITiming() MCITiming {
	return MCITiming{PageChange: 10 * time.Millisecond, Write: 10 * time.Millisecond, NonVolatile: 80 * time.Millisecond,
		Trigger: 10 * time.Millisecond, Apply: 10 * time.Millisecond, PowerUp: 900 * time.Millisecond, DPInit: 90 * time.Millisecond, Command: 500 * time.Millisecond}
}

// settleMicros is the time in which heaters settle, as page B0h says it.
const settleMicros = 80

// mci is the controller of a module of kind cmis: its memory, what it is doing,
// and what it makes of the chips behind it.
type mci struct {
	m       *module
	timing  MCITiming
	page    uint8
	at      uint8 // address pointer
	busy    int64 // until when it does not answer
	lower   [128]byte
	pages   map[uint8]*[128]byte
	nets    [2]bool
	staged  [2][cmis.Cells]uint16
	forced  [2][cmis.Cells]uint16 // applied last
	applied bool                  // what is staged is what the heaters have
	todo    []mciWork
	draws   uint64
	warm    uint8 // temperature flags that stand
	raises  [cmis.NumFlags]uint16
	search  bool     // being calibrated: page B4h drives heaters and lasers
	rail    railChip // behind the controller
	power   *controllerPower
	lock    mciLock
	fw      firmware
	own     ownCodes
	hosted  bool // byte 64 was written since the start: no default path
}

// controllerPower is what drives the heaters of a module of kind cmis: how it
// does is its own affair, so there is no chip.
type controllerPower [(cmis.Cells + controllerChannels - 1) / controllerChannels]controllerSupply

// controllerSupply holds codes of 10 V for both levels of the nets.
type controllerSupply struct {
	code   [controllerChannels][2]uint16
	follow [2]uint16 // channels that follow each net; the others have level 0
}

const controllerChannels = 16

func (s *controllerSupply) volts(ch int, nets [2]bool) float64 {
	level := boolToInt(nets[0] && s.follow[0]>>ch&1 != 0 || nets[1] && s.follow[1]>>ch&1 != 0)
	return float64(s.code[ch][level]) * (10.0 / 65536)
}

func (s *controllerSupply) pins([2]bool) (follow uint16) { return s.follow[0] | s.follow[1] }

func (s *controllerSupply) channels() int { return controllerChannels }

// mciWork is something a controller will have done at a time.
type mciWork struct {
	at   int64
	what mciWhat
	arg  byte
}

type mciWhat uint8

const (
	mciTrigger mciWhat = iota
	mciApply
	mciPowered
	mciInitialized
	mciCommand
	mciReset
	mciLow
	mciLockStep
	mciRun
	mciOwn
)

// newMCI is a controller with its memory as it leaves the factory.
func newMCI(m *module, timing MCITiming) *mci {
	if timing == (MCITiming{}) {
		timing = DefaultMCITiming()
	}
	c := &mci{m: m, timing: timing, fw: firmware{bank: [2]fwImage{{true, cmis.Version{Major: 1}}, {}}}}
	c.reset()
	return c
}

// reset is a loss of power or a software reset; non-volatile bytes stay.
func (c *mci) reset() {
	old := c.pages[cmis.PageAdmin]
	c.own.busy = false
	*c = mci{m: c.m, timing: c.timing, draws: c.draws, fw: c.fw, own: c.own, pages: map[uint8]*[128]byte{}}
	if !c.fw.start() {
		c.busy = math.MaxInt64 // there is nothing to start from
	}
	c.memory()
	if old != nil {
		copy(c.pages[cmis.PageAdmin][223-128:], old[223-128:])
	}
}

func (c *mci) state() cmis.ModuleState { return cmis.ModuleStateOf(c.lower[cmis.StateByte]) }

// become changes the module's state, which raises its flag.
func (c *mci) become(s cmis.ModuleState) {
	if !c.state().CanBecome(s) {
		panic("sim: " + c.state().String() + " cannot become " + s.String())
	}
	c.lower[cmis.StateByte] = byte(s)<<1 | c.lower[cmis.StateByte]&1
	c.raise(0, 0)
}

// pathBecome changes the state of a lane's data path.
func (c *mci) pathBecome(lane int, s cmis.DataPathState) {
	p := c.pages[cmis.PageLaneStatus][cmis.DPStates-128:]
	was := cmis.DataPathState(cmis.Nibble(p, lane))
	if was == s {
		return
	}
	if !was.CanBecome(s) {
		panic("sim: " + was.String() + " cannot become " + s.String())
	}
	cmis.PutNibble(p, lane, uint8(s))
	c.raise(2, lane)
}

func (c *mci) path(lane int) cmis.DataPathState {
	return cmis.DataPathState(cmis.Nibble(c.pages[cmis.PageLaneStatus][cmis.DPStates-128:], lane))
}

// flagByte is where a latched byte lies.
func (c *mci) flagByte(i int) *byte {
	at := cmis.RaiseFlags[i]
	if at.Offset < 128 {
		return &c.lower[at.Offset]
	}
	return &c.pages[at.Page][at.Offset-128]
}

// raise latches a flag and counts it.
func (c *mci) raise(byteIndex, bit int) {
	*c.flagByte(byteIndex) |= 1 << bit
	c.raises[8*byteIndex+bit]++
}

// later puts work on the controller's list and on the world's heap.
func (c *mci) later(after time.Duration, what mciWhat, arg byte) {
	b, at := c.m.board, c.m.board.now+after
	c.todo = append(c.todo, mciWork{int64(at), what, arg})
	b.events.Push(at, event{kind: evMCI, board: int32(b.id), place: uint16(c.m.bundle.place*hal.MaxModules + c.m.place), gen: b.outage})
}

// due does what the controller has come to.
func (c *mci) due() {
	for i := 0; i < len(c.todo); {
		if c.todo[i].at > int64(c.m.board.now) {
			i++
			continue
		}
		t := c.todo[i]
		c.todo = append(c.todo[:i], c.todo[i+1:]...)
		c.do(t)
		i = 0 // a reset has emptied the list
	}
}

func (c *mci) do(t mciWork) {
	m := c.m
	switch t.what {
	case mciTrigger:
		c.fire(t.arg)
	case mciApply:
		c.pages[cmis.PageOCS][cmis.ApplyAnswer-128] = byte(cmis.AnswerDone)
		c.take()
	case mciPowered:
		if c.state() == cmis.ModulePwrUp {
			c.become(cmis.ModuleReady)
			m.scan(0)
			c.own.powered(c)
			c.walk()
		}
	case mciInitialized:
		for lane := range hal.Lanes {
			if t.arg>>lane&1 != 0 && c.path(lane) == cmis.DPInit {
				c.pathBecome(lane, cmis.DPInitialized)
			}
		}
		c.walk()
	case mciCommand:
		c.command()
	case mciLockStep:
		c.lockStep(t.arg)
	case mciRun:
		c.boots(int(t.arg))
	case mciOwn:
		c.own.calibrated(c)
	case mciLow:
		if c.state() == cmis.ModulePwrDn {
			c.become(cmis.ModuleLowPwr)
			c.control(c.lower[cmis.ModuleControl])
		}
	case mciReset:
		c.reset()
		m.powerOn()
		m.dim()
		m.changed()
	}
}

// scan starts the ADCs' scan of all channels, averaging 2^average conversions.
func (m *module) scan(average byte) {
	for i := range m.adc {
		for _, r := range [][2]byte{
			{ads7138.RegSequence, 0}, {ads7138.RegOversample, average},
			{ads7138.RegGeneral, ads7138.GeneralAnalog | ads7138.GeneralStats}, {ads7138.RegAutoSel, 0xFF},
			{ads7138.RegOpMode, ads7138.OpModeAutonomous}, {ads7138.RegSequence, ads7138.SequenceAuto | ads7138.SequenceStart},
		} {
			m.adc[i].put(int64(m.board.now), r[0], r[1])
		}
	}
}

// fire carries a trigger out: nets and lasers at once.
func (c *mci) fire(trigger byte) {
	m, now := c.m, c.m.board.now
	path := trigger & cmis.TriggerPath
	c.freeze()
	c.nets = [2]bool{path != hal.LOSLoopback, path == hal.LOSExternal2}
	m.toggled()
	for half, bit := range []byte{cmis.TriggerUpper, cmis.TriggerLower} {
		m.tx[half].turn(trigger&bit != 0, int64(now), int64(now+laserDelay))
	}
	c.lower[cmis.InForce] = trigger
	c.lanes()
	c.lower[cmis.TriggerAnswer] = byte(cmis.AnswerDone)
	c.lower[cmis.TriggerCount]++
	m.bundle.agree()
	m.changed()
}

// walk brings every data path to where the host's controls let it be, and its
// lanes' light with it. A data path is the lanes whose active set names it.
func (c *mci) walk() {
	control, status := c.pages[cmis.PageLaneControl], c.pages[cmis.PageLaneStatus]
	down := control[cmis.DPDeinit-128]
	if c.state() != cmis.ModuleReady || c.lowPower() {
		down = 0xFF
	}
	begun := byte(0)
	active := status[cmis.ActiveSet-128 : cmis.ActiveSet-128+hal.Lanes]
	for lane := range hal.Lanes {
		path := byte(0)
		for other := range hal.Lanes {
			path |= byte(boolToInt(active[other] == active[lane])) << other
		}
		deinit := path&down != 0 || active[lane]>>4 == 0
		disabled := deinit || path&control[cmis.OutputDisableTx-128] != 0
		switch s := c.path(lane); {
		case s == cmis.DPActivated && disabled:
			c.pathBecome(lane, cmis.DPTxTurnOff)
			c.pathBecome(lane, cmis.DPInitialized)
		case s == cmis.DPInitialized && !disabled:
			c.pathBecome(lane, cmis.DPTxTurnOn)
			c.pathBecome(lane, cmis.DPActivated)
		case s == cmis.DPDeactivated && !deinit:
			status[cmis.DPInitPending-128] &^= 1 << lane
			c.pathBecome(lane, cmis.DPInit)
			begun |= 1 << lane
		}
		if s := c.path(lane); deinit && (s == cmis.DPInit || s == cmis.DPInitialized) {
			c.pathBecome(lane, cmis.DPDeinitState)
			c.pathBecome(lane, cmis.DPDeactivated)
		}
	}
	status[cmis.OutputStatusRx-128] = c.up()
	if begun != 0 {
		c.later(c.timing.DPInit, mciInitialized, begun)
	}
	if c.search {
		c.shine()
		return
	}
	c.lanes()
	c.m.changed()
}

// up are the lanes whose data path is initialised or activated.
func (c *mci) up() (lanes uint8) {
	for lane := range hal.Lanes {
		if s := c.path(lane); s == cmis.DPInitialized || s == cmis.DPActivated {
			lanes |= 1 << lane
		}
	}
	return lanes
}

// ready are those of them whose output is not disabled: they may shine.
func (c *mci) ready() uint8 {
	return c.up() &^ c.pages[cmis.PageLaneControl][cmis.OutputDisableTx-128]
}

// lanes lets those lanes shine that may and whose half has its lasers on. Lasers
// that the trigger leaves off are a squelch of the module's own: the data path
// stays as it is, and the output is not valid.
func (c *mci) lanes() {
	c.m.enable = c.ready()
	lit := uint8(0)
	for half, bit := range []byte{cmis.TriggerUpper, cmis.TriggerLower} {
		if c.lower[cmis.InForce]&bit != 0 {
			lit |= (1<<hal.HalfLanes - 1) << (half * hal.HalfLanes)
		}
	}
	c.pages[cmis.PageLaneStatus][cmis.OutputStatusTx-128] = c.m.enable & lit
}

// lowPower reports whether the module is asked to stay in low power: by the host,
// or by the LPMode line, which the simulated board pulls up and a host may have
// the module ignore.
func (c *mci) lowPower() bool {
	return c.lower[cmis.ModuleControl]&(cmis.LowPwrRequest|cmis.LowPwrAllowHW) != 0
}

// agree tells the rest of the simulator what path the bundle takes, when its
// modules agree about it.
func (bu *bundle) agree() {
	for i := range bu.modules {
		if c := bu.modules[i].mci; c == nil || c.nets != bu.modules[0].mci.nets {
			return
		}
	}
	bu.nets = bu.modules[0].mci.nets
}

// take brings the staged codes to the DACs. Where they are others than before, what a
// lock had added to those is of no use.
func (c *mci) take() {
	for k := range c.lock.trim {
		if c.staged[0][k] != c.forced[0][k] || c.staged[1][k] != c.forced[1][k] {
			c.lock.trim[k] = 0
			if k < mciLockCells {
				c.lock.large[k] = 0
			}
		}
	}
	c.forced, c.applied = c.staged, true
	c.freeze()
	c.drive()
}

// drive brings the codes applied last to the DACs.
func (c *mci) drive() {
	for k := range cmis.Cells {
		d, ch := k/controllerChannels, k%controllerChannels
		for register := range 2 {
			c.power[d].code[ch][register], _ = c.trimmedCode(k, register)
		}
		if k < hal.CellMatrix {
			c.power[d].follow[k/hal.CellMZI2] |= 1 << ch
		}
	}
	c.m.driveAll()
	c.m.changed()
}

// warmed raises the flags of the temperature's thresholds that are passed.
func (c *mci) warmed() {
	stand := uint8(0)
	for i, limit := range mciThresholds {
		if t := c.m.caseMilli(); i&1 == 0 && t > limit || i&1 != 0 && t < limit {
			stand |= 1 << i
			if c.warm>>i&1 == 0 {
				c.raise(1, i)
			}
		}
	}
	c.warm = stand
}

// put16 writes a number into a page.
func put16(p *[128]byte, offset int, v uint16) { binary.BigEndian.PutUint16(p[offset-128:], v) }
