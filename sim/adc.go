package sim

import (
	"ringlight/hal/ads7138"
	"ringlight/mzi/detmath"
)

// adc is one ADS7138. Nothing runs in it: a result is worked out when it is
// read, from the light at its own sample times.
type adc struct {
	reg     [ads7138.RegThresholds + 4*ads7138.Channels]byte
	started int64 // nanoseconds, of the running sequence
	stats   int64 // since when MAX, MIN and RECENT are kept
	kept    int64 // until when, once they are not
	read    byte  // register of the read that follows
	opcode  byte  // of that read; 0 = none
	events  *comparing
}

// converter names an ADC of a module.
type converter uint8

const (
	guardADC converter = iota // sums of the halves, and taps
	laneADC                   // a loopback diode each
	numADCs
)

const adcNoiseCodes = 0.6 // chosen: rms, TIA and ADC together

// tiaNanos is the delay of the transimpedance amplifiers, to the comparators
// and to the ADCs alike.
const tiaNanos = 5_000

func (c *adc) reset() {
	*c = adc{}
	c.reg[ads7138.RegStatus] = ads7138.ResetStatus
	for ch := range ads7138.Channels {
		c.reg[ads7138.WindowReg(ch)], c.reg[ads7138.WindowReg(ch)+1] = ads7138.ResetHysteresis, ads7138.ResetHigh
	}
}

// running reports whether the channels of AUTO_SEQ_CH_SEL are scanned.
func (c *adc) running() bool {
	return c.reg[ads7138.RegOpMode]&ads7138.OpModeAutonomous != 0 &&
		c.reg[ads7138.RegSequence]&(ads7138.SequenceAuto|ads7138.SequenceStart) == ads7138.SequenceAuto|ads7138.SequenceStart &&
		c.reg[ads7138.RegAutoSel] != 0
}

func (c *adc) oversample() int64 {
	return 1 << min(c.reg[ads7138.RegOversample]&7, ads7138.MaxOversample)
}

// write takes the bytes of a message and returns how many it acknowledged.
func (c *adc) write(now int64, w []byte) int {
	if len(w) == 0 {
		return 0
	}
	op := w[0]
	switch op {
	case ads7138.OpRead, ads7138.OpReadBlock:
		if len(w) > 1 {
			c.opcode, c.read = op, w[1]
		}
		return min(len(w), 2)
	case ads7138.OpWrite, ads7138.OpSetBits, ads7138.OpClearBits:
		if len(w) >= 3 {
			v := w[2]
			if op != ads7138.OpWrite {
				old := c.value(w[1])
				if op == ads7138.OpSetBits {
					v = old | v
				} else {
					v = old &^ v
				}
			}
			c.put(now, w[1], v)
		}
		return min(len(w), 3)
	case ads7138.OpWriteBlock:
		for i, v := range w[min(2, len(w)):] {
			c.put(now, w[1]+byte(i), v)
		}
		return len(w)
	}
	return 0 // no other opcode is acknowledged
}

// value is a plain register; results are worked out elsewhere.
func (c *adc) value(reg byte) byte {
	if int(reg) >= len(c.reg) {
		return 0
	}
	v := c.reg[reg]
	if reg == ads7138.RegStatus && c.running() {
		v |= ads7138.StatusRunning
	}
	if reg == ads7138.RegEvent {
		v = c.reg[ads7138.RegEventHigh] | c.reg[ads7138.RegEventLow]
	}
	return v
}

func (c *adc) put(now int64, reg, v byte) {
	if int(reg) >= len(c.reg) {
		return // results are read-only
	}
	was := c.running()
	switch reg {
	case ads7138.RegStatus:
		c.reg[reg] &^= v & ads7138.StatusBrownOut
		return
	case ads7138.RegGeneral:
		if v&ads7138.GeneralReset != 0 {
			c.reset()
			return
		}
		if v&ads7138.GeneralStats != 0 {
			c.stats = now
		} else if c.reg[reg]&ads7138.GeneralStats != 0 {
			c.kept = now
		}
		v &^= ads7138.GeneralCalibrate
		if v&ads7138.GeneralComparator == 0 {
			c.events = nil
		} else if c.events == nil {
			c.events = &comparing{upTo: now}
		}
	case ads7138.RegEventHigh, ads7138.RegEventLow:
		c.reg[reg] &^= v // written 1 to clear
		return
	case ads7138.RegEvent, ads7138.RegGPIValue:
		return // read-only
	}
	c.reg[reg] = v
	switch reg {
	case ads7138.RegOversample, ads7138.RegOpMode, ads7138.RegAutoSel, ads7138.RegSequence:
		if c.running() && (!was || reg != ads7138.RegSequence) {
			c.started = now
		}
	}
}

// slot is the place of a channel in the sequence and how many it has.
func (c *adc) slot(ch int) (place, of int64, in bool) {
	mask := c.reg[ads7138.RegAutoSel]
	for i := range ads7138.Channels {
		if mask>>i&1 == 0 {
			continue
		}
		if i < ch {
			place++
		}
		of++
	}
	return place, of, mask>>ch&1 != 0
}

// asOf is the time that MAX, MIN and RECENT are of. Without STATS_EN they stand as
// they were when it was cleared: so the kernel's driver reads them, lest a byte of
// the next result follows one of the last. Light that has moved since is not asked
// for what it was.
func (c *adc) asOf(now int64) int64 {
	if c.reg[ads7138.RegGeneral]&ads7138.GeneralStats == 0 {
		return c.kept
	}
	return now
}

// window is when the newest finished result of a channel was sampled: it
// began at from and took n conversions of cycle each.
func (c *adc) window(ch int, now int64) (from, cycle, n, round int64, ok bool) {
	place, of, in := c.slot(ch)
	if !in || !c.running() {
		return 0, 0, 0, 0, false
	}
	cycle, n = ads7138.CycleNanos(c.reg[ads7138.RegOpMode]), c.oversample()
	one := cycle * n
	round = one * of
	done := c.asOf(now) - c.started - one*(place+1)
	if done < 0 {
		return 0, 0, 0, 0, false
	}
	from = c.started + done/round*round + place*one
	return from, cycle, n, round, from+one > c.stats
}

// probe is what a chip's eight inputs see between two instants.
type probe struct {
	from, to int64
	points   int
	at       [probePoints][ads7138.Channels]float64
	full     *[ads7138.Channels]float64
	seed     uint64
	noise    float64 // codes, rms
	rin      float64 // of the light, rms
}

// probePoints are where the light is worked out while it moves; between them
// it is taken as a straight line.
const probePoints = 6

func (p *probe) codes(ch int, t int64) float64 {
	if p.points == 1 {
		return p.at[0][ch]
	}
	span := (p.to - p.from) / (probePoints - 1)
	i := min(max((t-p.from)/span, 0), probePoints-2)
	part := float64(t-p.from-i*span) / float64(span)
	a := p.at[i][ch]
	return a + float64(part*(p.at[i+1][ch]-a))
}

// convert averages n conversions from t on into 16 bits, left-aligned.
func (p *probe) convert(ch int, t, cycle, n int64) uint16 {
	seed := derive(p.seed, uint64(ch))
	sum := int64(0)
	for range n {
		x := p.codes(ch, t)
		if p.rin > 0 {
			x *= 1 + float64(p.rin*normal(derive(seed, uint64(t))))
		}
		x += float64(p.noise * normal(detmath.Mix(seed^uint64(t)*detmath.Golden)))
		x += 0.5
		code := int64(x)
		if x < 0 {
			code = 0
		}
		sum += min(code, ads7138.CodeFull)
		t += cycle
	}
	return uint16(sum * 16 / n)
}

// statWindow bounds how many results back MAX and MIN look; the chip's go back
// to when they were cleared.
const statWindow = 128

// inputs is what an ADC measures.
type inputs interface {
	// sample converts a channel once, now.
	sample(c *adc, ch int) uint16
	// result is the newest finished result of a channel in a bank, MAX, MIN or
	// RECENT; 0: none.
	result(c *adc, bank, ch int) uint16
}

// answer fills the bytes of a read; after says that a write came before it in
// the same message. A read without an opcode is one conversion of the channel
// that CHANNEL_SEL names, "Manual Mode".
func (c *adc) answer(in inputs, r []byte, after bool) {
	op := c.opcode
	c.opcode = 0
	switch {
	case !after || op == 0:
		repeat16(r, in.sample(c, int(c.reg[ads7138.RegChannelSel]&7)))
	case op == ads7138.OpReadBlock:
		c.registers(in, c.read, r)
	default: // one register, however many bytes are clocked out
		var one [1]byte
		c.registers(in, c.read, one[:])
		for i := range r {
			r[i] = one[0]
		}
	}
}

// registers fills what stands in the registers from reg on.
func (c *adc) registers(in inputs, reg byte, r []byte) {
	var v uint16
	for i, pair := 0, -1; i < len(r); i++ {
		at := int(reg) + i
		bank, ch := (at-ads7138.RegMax)>>5, at>>1&15
		switch {
		case at < ads7138.RegMax:
			r[i] = c.value(byte(at))
			continue
		case ch >= ads7138.Channels || bank > 2:
			r[i] = 0
			continue
		case at>>1 != pair:
			pair = at >> 1
			v = in.result(c, bank, ch)
		}
		r[i] = byte(v >> (8 * (at & 1)))
	}
}

// moduleInputs is what an ADC of a module sees; its light is worked out once,
// for the first result that somebody reads.
type moduleInputs struct {
	m     *module
	which converter
	p     probe
	ready bool
}

// inputs are the levels at one ADC for one read.
func (m *module) inputs(which converter) inputs {
	m.compare(which)
	m.board.seen = moduleInputs{m: m, which: which}
	return &m.board.seen
}

func (m *module) results(which converter, reg byte, r []byte) {
	m.adc[which].registers(m.inputs(which), reg, r)
}

func (in *moduleInputs) result(c *adc, bank, ch int) uint16 {
	now := c.asOf(int64(in.m.board.now))
	from, cycle, n, round, ok := c.window(ch, now)
	if !ok {
		return 0
	}
	if !in.ready {
		back := 2 * round
		if bank != 2 {
			back = round * (statWindow + 1)
		}
		in.m.probe(in.which, max(now-back, c.started)-tiaNanos, now-tiaNanos, &in.p)
		in.ready = true
	}
	v := in.p.convert(ch, from-tiaNanos, cycle, n)
	if bank == 2 {
		return v
	}
	for k := int64(1); k < statWindow && from-k*round >= max(c.started, c.stats); k++ {
		x := in.p.convert(ch, from-k*round-tiaNanos, cycle, n)
		if bank == 0 {
			v = max(v, x)
		} else {
			v = min(v, x)
		}
	}
	return v
}

func (in *moduleInputs) sample(c *adc, ch int) uint16 {
	now := int64(in.m.board.now) - tiaNanos
	cycle, n := ads7138.CycleNanos(c.reg[ads7138.RegOpMode]), c.oversample()
	in.m.probe(in.which, now, now+cycle*n, &in.p)
	return in.p.convert(ch, now, cycle, n)
}
