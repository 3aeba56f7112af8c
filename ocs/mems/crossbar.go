package mems

import (
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/hal/ad5535b"
	"ringlight/hal/ads7138"
	"ringlight/hal/tmp102"
	"ringlight/ocs/circuit"
	"ringlight/ocs/work"
	"ringlight/proto"
)

// Config is what a Crossbar is told at birth.
type Config struct {
	Board   *hal.Board // a MEMS board
	Factory *Factory
	Startup Startup
	Saved   []circuit.Saved // for Keep and Restore
	// Parked says, for Keep, that all other mirrors were left parked. It
	// is believed while light does not say otherwise.
	Parked bool
	// MilliTHz is the optical frequency that the light has; 0: 193,100.
	MilliTHz int32
}

const defaultMilliTHz = 193_100

// Crossbar is a board of two mirror arrays: any port of side A to any of side
// B. It is a machine like a Transceiver: Start, Apply and the like change what
// it wants, Poll takes completions and puts out bus work.
//
// The DACs have nothing to read back. What was written is kept as a shadow, and
// only the loss between the two monitors of a circuit proves it.
type Crossbar struct {
	cfg   Config
	hw    *hal.Mirrors
	ports int
	state State
	err   error

	mirrors  [hal.NumSides][]mirror
	circuits []*path // by port of A, nil = none
	ownerB   []int   // port of A in circuit with a port of B, -1 = none
	blocked  [hal.NumSides][]proto.Override
	watches  [hal.NumSides][]circuit.Watch
	chips    []chip

	milliCelsius int32
	until        time.Duration // of Settling
	waiting      int           // operations under way
	tries        []uint8       // of the operations under way, by index
	health       bool          // a look at everything is wanted
	looking      bool          // and under way
	ready        bool          // the first one is over
	longMove     bool          // a mirror of this round goes far
	sees         bool          // brown-outs are dealt with when all is at rest
	stray        bool          // the first look saw light where there is no circuit
	busErrors    uint32
	limitErrors  uint32

	work   work.Queue
	events []circuit.Event
}

// mirror is where one mirror is and should be.
type mirror struct {
	shadow, target [2]int16
	aimed          bool // target is somebody's wish
	known          bool // shadow is what the electrodes have
	moved          bool // in this round
	err            error
}

// chip is one ADS7138 of monitors.
type chip struct {
	bus   hal.BusID
	addr  uint16
	side  int
	port  [ads7138.Channels]int // -1: none
	power [ads7138.Channels]proto.MilliDBm
	read  bool // in this look
	brown bool // has been without power since a change last saw to the mirrors
	err   error
}

// Tasks of a crossbar's tokens.
const (
	scanTask uint8 = iota
	writeTask
	lookTask
	tempTask
	seenTask // clears a brown-out; nobody waits for it
)

// New makes a Crossbar; it does nothing before Start.
func New(cfg Config) (*Crossbar, error) {
	hw := cfg.Board.Mirrors
	if hw == nil {
		return nil, fmt.Errorf("ocs: board has no mirrors: %w", hal.ErrUnsupported)
	}
	if err := cfg.Factory.check(hw.Ports); err != nil {
		return nil, err
	}
	if cfg.MilliTHz == 0 {
		cfg.MilliTHz = defaultMilliTHz
	}
	for i, s := range cfg.Saved {
		if int(s.Pair.A) >= hw.Ports || int(s.Pair.B) >= hw.Ports {
			return nil, fmt.Errorf("ocs: saved circuit %d: %v: %w", i, s.Pair, hal.ErrOutOfRange)
		}
		if slices.ContainsFunc(cfg.Saved[:i], func(o circuit.Saved) bool { return o.Pair.A == s.Pair.A || o.Pair.B == s.Pair.B }) {
			return nil, fmt.Errorf("ocs: saved circuit %d: %v: %w", i, s.Pair, circuit.ErrPortTwice)
		}
	}
	x := &Crossbar{cfg: cfg, hw: hw, ports: hw.Ports}
	x.circuits = make([]*path, x.ports)
	x.ownerB = make([]int, x.ports)
	for side := range x.mirrors {
		x.mirrors[side] = make([]mirror, x.ports)
		x.blocked[side] = make([]proto.Override, x.ports)
		x.watches[side] = make([]circuit.Watch, x.ports)
		for port, m := range hw.Monitors[side] {
			x.monitor(side, port, m)
		}
	}
	return x, nil
}

// monitor notes which chip watches a port.
func (x *Crossbar) monitor(side, port int, m hal.Monitor) {
	i := slices.IndexFunc(x.chips, func(c chip) bool { return c.bus == m.Bus && c.addr == m.Addr })
	if i < 0 {
		i = len(x.chips)
		x.chips = append(x.chips, chip{bus: m.Bus, addr: m.Addr, side: side, port: [ads7138.Channels]int{-1, -1, -1, -1, -1, -1, -1, -1}})
	}
	x.chips[i].port[m.Channel] = port
}

// Start makes the monitors scan, looks, and takes up the circuits as Startup
// says. It may be called again, after a fault; Saved counts each time.
func (x *Crossbar) Start(now time.Duration) {
	x.become(Starting)
	x.err = nil
	x.work.Restart()
	for a := range x.circuits {
		x.circuits[a], x.ownerB[a] = nil, -1
	}
	for side := range x.mirrors {
		for p := range x.mirrors[side] {
			// Without a word from before, a mirror may stand anywhere, and is
			// best left there.
			x.mirrors[side][p] = mirror{}
		}
	}
	x.expect(len(x.chips))
	for i := range x.chips {
		c := &x.chips[i]
		c.err = nil
		x.work.Put(c.bus, &hal.Op{Token: x.work.Token(scanTask, i), Class: hal.ClassSafety, Msgs: monitorScan(c.addr)})
	}
}

// expect begins a batch of operations with indexes under n.
func (x *Crossbar) expect(n int) {
	x.waiting = n
	x.tries = slices.Grow(x.tries[:0], n)[:n]
	clear(x.tries)
}

// monitorOversample averages 16 conversions: all eight channels in 128 us.
const monitorOversample = 4

// monitorScan is ads7138.ScanMessages with averages.
func monitorScan(addr uint16) []hal.Msg {
	msgs := ads7138.ScanMessages(addr, nil)
	over := hal.Msg{Addr: addr, W: ads7138.AppendWrite(nil, ads7138.RegOversample, monitorOversample)}
	msgs = slices.Insert(msgs, len(msgs)-1, over)
	status := hal.Msg{Addr: addr, W: ads7138.AppendRead(nil, ads7138.RegStatus), R: make([]byte, 1)}
	return slices.Insert(msgs, 0, status)
}

// lostPower tells whether the board has been without power since a change
// last saw to the mirrors: then they stand at rest, whatever was saved, and
// light that passes by chance proves nothing. One monitor alone may have been
// exchanged.
func (x *Crossbar) lostPower() bool {
	for i := range x.chips {
		if c := &x.chips[i]; c.err == nil && !c.brown {
			return false
		}
	}
	return true
}

// seen clears the monitors' brown-outs: all mirrors are where they should be.
func (x *Crossbar) seen() {
	for i := range x.chips {
		if c := &x.chips[i]; c.brown {
			c.brown = false
			x.work.Put(c.bus, &hal.Op{Token: x.work.Token(seenTask, i), Class: hal.ClassSafety, Msgs: []hal.Msg{
				{Addr: c.addr, W: ads7138.AppendWrite(nil, ads7138.RegStatus, ads7138.StatusBrownOut)}}})
		}
	}
}

// Poll takes completions and puts out bus work. It returns when it wants to be
// called again, at the latest.
func (x *Crossbar) Poll(now time.Duration, done []*hal.Completion, out []hal.BusOp) ([]hal.BusOp, time.Duration) {
	for _, c := range done {
		x.completed(now, c)
	}
	if x.state == Settling && now >= x.until {
		x.settled()
	}
	if x.state == Resting {
		x.begin()
	}
	if x.sees && x.state == Resting {
		x.sees = false
		x.seen()
	}
	out = x.work.Take(out)
	if x.state == Settling {
		return out, x.until
	}
	return out, hal.Never
}

func (x *Crossbar) completed(now time.Duration, c *hal.Completion) {
	k, i, mine := x.work.Mine(c.Op)
	if !mine {
		return
	}
	if k == seenTask {
		if c.Err != nil {
			x.chips[i].brown = true // with the next change
		}
		return
	}
	if c.Err != nil {
		x.busErrors++
		if x.tries[i]++; x.tries[i] < work.MaxTries {
			x.work.Put(c.Bus, c.Op)
			return
		}
	}
	switch k {
	case scanTask:
		x.chips[i].err = c.Err
		x.chips[i].brown = c.Err == nil && c.Op.Msgs[0].R[0]&ads7138.StatusBrownOut != 0
	case writeTask:
		if c.Err != nil {
			x.notWritten(now, c.Bus, c.Err)
		}
	case lookTask:
		x.chips[i].take(c)
	case tempTask:
		if c.Err == nil {
			x.milliCelsius = tmp102.Millicelsius(c.Op.Msgs[0].R)
		}
	}
	if x.waiting--; x.waiting > 0 {
		return
	}
	switch x.state {
	case Starting:
		if !slices.ContainsFunc(x.chips, func(c chip) bool { return c.err == nil }) {
			x.faulted(now)
			return
		}
		x.adopt(now)
		x.health = true
		// The scan has begun anew, and has nothing to tell before it is round.
		x.become(Settling)
		x.until = now + monitorWindow
	case Moving:
		x.become(Settling)
		x.until = now + x.settleTime()
		x.forgetMoves()
	case Looking:
		x.looked(now)
	}
}

// faulted: no monitor answers. The mirrors are left to themselves.
func (x *Crossbar) faulted(now time.Duration) {
	x.err = x.chips[0].err
	x.become(Faulted)
	x.events = append(x.events, circuit.Event{Kind: circuit.Ready, At: now, Err: x.err})
}

// Recall replaces what the next Start knows of circuits.
func (x *Crossbar) Recall(saved []circuit.Saved, parked bool) {
	x.cfg.Saved, x.cfg.Parked = saved, parked
}

// take works out the powers from a block of results.
func (c *chip) take(done *hal.Completion) {
	c.err = done.Err
	if done.Err != nil {
		return
	}
	for ch := range c.power {
		c.power[ch] = monitorPower(ads7138.Code16(done.Op.Msgs[0].R, ch))
	}
}

// SetThresholds puts a port under thresholds.
func (x *Crossbar) SetThresholds(side, port int, t circuit.Thresholds) error {
	if side < 0 || side >= hal.NumSides || port < 0 || port >= x.ports {
		return fmt.Errorf("ocs: port %d of side %d: %w", port, side, hal.ErrOutOfRange)
	}
	if err := t.Check(); err != nil {
		return err
	}
	x.watches[side][port] = circuit.Watch{Thresholds: t}
	return nil
}

// HealthRound asks for a look at every monitor: drifted circuits are tuned
// again, dark ones that have light now are tuned, thresholds are compared.
func (x *Crossbar) HealthRound(time.Duration) { x.health = true }

// TakeEvents appends what happened since the last call.
func (x *Crossbar) TakeEvents(buf []circuit.Event) []circuit.Event {
	buf = append(buf, x.events...)
	x.events = x.events[:0]
	return buf
}

// Status is how the board stands.
func (x *Crossbar) Status() Status {
	s := Status{State: x.state, Ports: x.ports, MilliCelsius: x.milliCelsius, BusErrors: x.busErrors, LimitErrors: x.limitErrors, Err: x.err}
	s.Busy = x.state != Resting && x.state != Faulted
	for _, c := range x.circuits {
		if c == nil {
			continue
		}
		s.Circuits++
		s.Busy = s.Busy || c.phase == circuitOpening || c.phase == circuitClimbing
		if c.State == proto.Failed {
			s.Failed++
		}
	}
	return s
}

// Stray tells whether, at the start, light left at a port that is in no
// circuit, or may come to do so: after a loss of power mirrors are on their way
// to rest. Only a change that parks ends it.
func (x *Crossbar) Stray() bool { return x.stray }

// Busy tells whether circuits are being made or mirrors moved.
func (x *Crossbar) Busy() bool { return x.Status().Busy }

// Circuits appends all circuits in the order of their ports of side A.
func (x *Crossbar) Circuits(buf []circuit.Circuit) []circuit.Circuit {
	for _, c := range x.circuits {
		if c != nil {
			buf = append(buf, c.Circuit)
		}
	}
	return buf
}

// Power is what a port's monitor last showed.
func (x *Crossbar) Power(side, port int) (proto.MilliDBm, error) {
	if side < 0 || side >= hal.NumSides || port < 0 || port >= x.ports {
		return 0, fmt.Errorf("ocs: port %d of side %d: %w", port, side, hal.ErrOutOfRange)
	}
	m := x.hw.Monitors[side][port]
	for i := range x.chips {
		if c := &x.chips[i]; c.bus == m.Bus && c.addr == m.Addr {
			return c.power[m.Channel], c.err
		}
	}
	return 0, hal.ErrNoDevice
}

// Save appends what a later life needs to keep or restore the circuits.
func (x *Crossbar) Save(buf []circuit.Saved) []circuit.Saved {
	for _, c := range x.circuits {
		if c != nil {
			buf = append(buf, circuit.Saved{Pair: c.Pair, Drive: c.drive})
		}
	}
	return buf
}

// guardDrive is below every command: whoever asks, no electrode goes where the
// mirror would be pulled in. What it cut is counted.
func (x *Crossbar) guardDrive(d int16) int16 {
	if d > hal.MirrorMaxDrive || d < -hal.MirrorMaxDrive {
		x.limitErrors++
		return max(-hal.MirrorMaxDrive, min(d, hal.MirrorMaxDrive))
	}
	return d
}

// electrodes calls put with each electrode's DAC and frame for a drive.
func (x *Crossbar) electrodes(side, port int, drive [2]int16, put func(dac int, frame []byte)) {
	for i, d := range drive {
		for pole, code := range [2]int16{hal.MirrorBias + d, hal.MirrorBias - d} {
			at := int(x.hw.Arrays[side][port].Electrodes[2*i+pole])
			var frame [ad5535b.FrameBytes]byte
			put(at/hal.MirrorDACChannels, ad5535b.AppendWrite(frame[:0], at%hal.MirrorDACChannels, uint16(code)))
		}
	}
}
