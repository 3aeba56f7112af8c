package diode

import (
	"math"
	"strconv"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/hal/ad7998"
	"ringlight/hal/ads7138"
	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// Shape of an ADC's results as everybody here reckons with them.
const (
	Channels   = ads7138.Channels
	BlockBytes = ads7138.BlockBytes // of all channels
	Steps      = ads7138.CodeFull   // of a conversion that is not averaged
	FullCode   = 1 << 16            // one more than the largest code
	// MostAverage is the largest binary logarithm of a number of conversions
	// averaged.
	MostAverage = ads7138.MaxOversample
	Conversion  = time.Microsecond // of one channel
)

// Which is one of a module's two ADCs.
type Which uint8

const (
	Guard Which = iota // half-sums and taps
	Lane               // the loopback lanes
	Both
)

// Meter reads the diodes of one module.
type Meter struct{ hw *hal.Module }

// Of is a module's meter.
func Of(m *hal.Module) Meter { return Meter{m} }

func (m Meter) addr(adc Which) uint16 {
	if adc == Lane {
		return m.hw.LaneADC
	}
	return m.hw.Guard
}

// sense is where the n-th light of an ADC is.
func (m Meter) sense(adc Which, n int) *hal.Sense {
	if adc == Lane {
		return &m.hw.Optics().Lanes[n]
	}
	return &m.hw.Optics().Guard[n]
}

// Scan makes an ADC convert all its channels continuously, 1<<average conversions a
// result.
func (m Meter) Scan(adc Which, average byte) []hal.Msg {
	if m.isSAR() {
		return []hal.Msg{m.sarConfig(adc)}
	}
	return ads7138.ScanMessages(m.addr(adc), average)
}

// Average changes that of a scan.
func (m Meter) Average(adc Which, average byte) hal.Msg {
	if m.isSAR() {
		return m.sarConfig(adc) // each reading says how many
	}
	return hal.Msg{Addr: m.addr(adc), W: ads7138.AppendWrite(nil, ads7138.RegOversample, average)}
}

// State asks how an ADC stands.
func (m Meter) State(adc Which) []hal.Msg {
	if m.isSAR() {
		return m.sarState(adc)
	}
	regs := [...]byte{ads7138.RegStatus, ads7138.RegOversample, ads7138.RegOpMode}
	msgs := make([]hal.Msg, len(regs))
	for i, reg := range regs {
		msgs[i] = hal.Msg{Addr: m.addr(adc), W: ads7138.AppendRead(nil, reg), R: make([]byte, 1)}
	}
	return msgs
}

// Scanning reports whether the answers to State are of a scan without averages.
func (m Meter) Scanning(state []hal.Msg) bool {
	if m.isSAR() {
		return sarReady(state)
	}
	return state[0].R[0]&ads7138.StatusRunning != 0 && state[1].R[0] == 0 && state[2].R[0] == ads7138.OpModeAutonomous
}

// Reading is a read of n lights of an ADC from the first on. Its buffers are kept from
// one to the next.
type Reading struct {
	meter    Meter
	adc      Which
	first, n int
	whole    bool // of all channels, which do not lie in order
	w, r     []byte
	block    [BlockBytes]byte
}

// Ask is the message of a reading, of 1<<average conversions averaged: as the scan
// averages, where the ADC scans.
func (x *Reading) Ask(m Meter, adc Which, first, n int, average byte) hal.Msg {
	x.meter, x.adc, x.first, x.n, x.whole = m, adc, first, n, false
	if m.isSAR() {
		x.askSAR(n, average)
		return hal.Msg{Addr: m.addr(adc), W: x.w, R: x.r}
	}
	from := m.sense(adc, first).Channel
	for i := range n {
		x.whole = x.whole || m.sense(adc, first+i).Channel != from+uint8(i)
	}
	if x.whole {
		from, n = 0, Channels
	}
	x.room(2 * n)
	x.w = ads7138.AppendReadBlock(x.w[:0], ads7138.RegRecent+2*from)
	return hal.Msg{Addr: m.addr(adc), W: x.w, R: x.r}
}

// room makes the buffer so long.
func (x *Reading) room(n int) {
	if cap(x.r) < n {
		x.r = make([]byte, n)
	}
	x.r = x.r[:n]
}

// Block is the codes that were read, light after light from the first on, low byte
// first.
func (x *Reading) Block() []byte {
	if x.meter.isSAR() {
		return x.sarBlock()
	}
	if !x.whole {
		return x.r
	}
	for i := range x.n {
		copy(x.block[2*i:], x.r[2*x.meter.sense(x.adc, x.first+i).Channel:][:2])
	}
	return x.block[:2*x.n]
}

// Code of the n-th light of a block.
func Code(block []byte, n int) uint16 { return ads7138.Code16(block, n) }

// LaneLevel is the light on a lane's diode, of a whole block.
func LaneLevel(o *hal.Optics, block []byte, lane int) proto.MilliDBm {
	return level(Code(block, lane), o.Lanes[lane].FullScaleMilliDBm)
}

// GuardLevel is a light of the guard ADC, of a whole block.
func GuardLevel(o *hal.Optics, block []byte, n int) proto.MilliDBm {
	return level(Code(block, n), o.Guard[n].FullScaleMilliDBm)
}

// level is the optical power that a code means on a channel whose full scale is
// given.
func level(code uint16, fullScale int32) proto.MilliDBm {
	if code == 0 {
		return hal.DarkMilliDBm
	}
	db := detmath.DB(float64(code) / FullCode)
	return proto.MilliDBm(math.Floor(float64(db*1000)+0.5)) + proto.MilliDBm(fullScale)
}

// Register is one register of an ADC, for an engineer's hands.
type Register struct {
	Bits      int
	Threshold bool // of the window comparator; no other is to be written
	addr      byte
	sar       bool
}

// Forms says what registers are called.
const Forms = "guard|lanes/recent0..7, guard|lanes/0x00..0xff (ADS7138), guard|lanes/config (AD7998)"

// FindRegister finds a register of the module's ADCs.
func (m Meter) FindRegister(name string) (r Register, ok bool) {
	if m.isSAR() {
		r = Register{Bits: 16, sar: true}
		if rest, recent := strings.CutPrefix(name, "recent"); recent {
			n, err := strconv.ParseUint(rest, 10, 8)
			r.addr = ad7998.AppendReadOne(nil, uint8(n))[0]
			return r, err == nil && n < Channels
		}
		r.addr = ad7998.RegConfig
		return r, name == "config"
	}
	if rest, recent := strings.CutPrefix(name, "recent"); recent {
		n, err := strconv.ParseUint(rest, 10, 16)
		return Register{Bits: 16, addr: ads7138.RegRecent + byte(2*n)}, err == nil && n < Channels
	}
	n, err := strconv.ParseUint(name, 0, 8)
	return Register{Bits: 8, addr: byte(n), Threshold: n >= ads7138.RegThresholds && n < ads7138.RegMax}, err == nil
}

// Value of a register in the reply to Read.
func (r Register) Value(reply []byte) uint32 {
	switch {
	case r.sar && r.addr != ad7998.RegConfig:
		code, _ := ad7998.Result(reply)
		return uint32(code)
	case r.sar:
		return uint32(reply[0])<<8 | uint32(reply[1])
	case r.Bits == 16:
		return uint32(reply[0]) | uint32(reply[1])<<8
	}
	return uint32(reply[0])
}

// Light is which light of an ADC a register's value is the result of, and what
// it means; false where it is no result, or nothing hangs on that channel.
func (m Meter) Light(adc Which, r Register, v uint32) (n int, power proto.MilliDBm, ok bool) {
	channel, code := (r.addr-ads7138.RegRecent)/2, v
	recent := r.Bits == 16 && r.addr >= ads7138.RegRecent
	if r.sar {
		_, channel, recent, _ = ad7998.Pointer(r.addr)
		code *= FullCode / (ads7138.CodeFull + 1)
	}
	for n := range Channels {
		if s := m.sense(adc, n); recent && s.Channel == channel {
			return n, level(uint16(code), s.FullScaleMilliDBm), true
		}
	}
	return 0, 0, false
}

// Milliwatt is a level as power, for an engineer's eyes.
func Milliwatt(level proto.MilliDBm) float64 { return detmath.FromDB(float64(level) / 1000) }

// Read asks for a register.
func (r Register) Read(addr uint16) hal.Msg {
	if r.sar {
		return hal.Msg{Addr: addr, W: []byte{r.addr}, R: make([]byte, 2)}
	}
	if r.Bits == 16 {
		return hal.Msg{Addr: addr, W: ads7138.AppendReadBlock(nil, r.addr), R: make([]byte, 2)}
	}
	return hal.Msg{Addr: addr, W: ads7138.AppendRead(nil, r.addr), R: make([]byte, 1)}
}

// Write sets a register of eight bits.
func (r Register) Write(addr uint16, v byte) hal.Msg {
	return hal.Msg{Addr: addr, W: ads7138.AppendWrite(nil, r.addr, v)}
}
