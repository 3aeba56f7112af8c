package diode

import (
	"math"
	"time"

	"ringlight/hal"
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

// driver is the one of the module's ADCs.
func (m Meter) driver() Driver { return drivers[m.hw.Diodes.Like()] }

// Scan makes an ADC convert all its channels continuously, 1<<average conversions a
// result.
func (m Meter) Scan(adc Which, average byte) []hal.Msg { return m.driver().Scan(m.addr(adc), average) }

// Average changes that of a scan.
func (m Meter) Average(adc Which, average byte) hal.Msg {
	return m.driver().Average(m.addr(adc), average)
}

// State asks how an ADC stands.
func (m Meter) State(adc Which) []hal.Msg { return m.driver().State(m.addr(adc)) }

// Scanning reports whether the answers to State are of a scan without averages.
func (m Meter) Scanning(state []hal.Msg) bool { return m.driver().Scanning(state) }

// Reading is a read of n lights of an ADC from the first on. Its buffers are kept from
// one to the next.
type Reading struct {
	driver   Driver
	channels []uint8 // by light
	w, r     []byte
	block    [BlockBytes]byte
}

// Ask is the message of a reading, of 1<<average conversions averaged: as the scan
// averages, where the ADC scans.
func (x *Reading) Ask(m Meter, adc Which, first, n int, average byte) hal.Msg {
	x.driver, x.channels = m.driver(), x.channels[:0]
	for i := range n {
		x.channels = append(x.channels, m.sense(adc, first+i).Channel)
	}
	var reply int
	x.w, reply = x.driver.Ask(x.w[:0], x.channels, average)
	if cap(x.r) < reply {
		x.r = make([]byte, reply)
	}
	x.r = x.r[:reply]
	return hal.Msg{Addr: m.addr(adc), W: x.w, R: x.r}
}

// Block is the codes that were read, light after light from the first on, low byte
// first.
func (x *Reading) Block() []byte {
	block := x.block[:2*len(x.channels)]
	x.driver.Codes(block, x.r, x.channels)
	return block
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
	driver    Driver
	addr      byte
}

// Forms says what registers are called.
const Forms = "guard|lanes/recent0..7, guard|lanes/0x00..0xff (ADS7138), guard|lanes/config (AD7998)"

// FindRegister finds a register of the module's ADCs.
func (m Meter) FindRegister(name string) (r Register, ok bool) { return m.driver().Register(name) }

// Value of a register in the reply to Read.
func (r Register) Value(reply []byte) uint32 { return r.driver.Value(r, reply) }

// Light is which light of an ADC a register's value is the result of, and what
// it means; false where it is no result, or nothing hangs on that channel.
func (m Meter) Light(adc Which, r Register, v uint32) (n int, power proto.MilliDBm, ok bool) {
	channel, code := r.driver.Result(r, v)
	for n := range Channels {
		if s := m.sense(adc, n); int(s.Channel) == channel {
			return n, level(code, s.FullScaleMilliDBm), true
		}
	}
	return 0, 0, false
}

// Milliwatt is a level as power, for an engineer's eyes.
func Milliwatt(level proto.MilliDBm) float64 { return detmath.FromDB(float64(level) / 1000) }

// Read asks for a register.
func (r Register) Read(addr uint16) hal.Msg { return r.driver.Read(r, addr) }

// Write sets a register of eight bits.
func (r Register) Write(addr uint16, v byte) hal.Msg { return r.driver.Write(r, addr, v) }
