package diode

import (
	"math"
	"strconv"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// Shape of an ADC.
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

// Scan makes an ADC convert all its channels for ever, 1<<average conversions a
// result.
func Scan(addr uint16, average byte) []hal.Msg { return ads7138.ScanMessages(addr, average) }

// Average changes that of a scan.
func Average(addr uint16, average byte) hal.Msg {
	return hal.Msg{Addr: addr, W: ads7138.AppendWrite(nil, ads7138.RegOversample, average)}
}

// State asks how an ADC stands.
func State(addr uint16) []hal.Msg {
	regs := [...]byte{ads7138.RegStatus, ads7138.RegOversample, ads7138.RegOpMode}
	msgs := make([]hal.Msg, len(regs))
	for i, reg := range regs {
		msgs[i] = hal.Msg{Addr: addr, W: ads7138.AppendRead(nil, reg), R: make([]byte, 1)}
	}
	return msgs
}

// Scanning reports whether the answers to State are of a scan without averages.
func Scanning(state []hal.Msg) bool {
	return state[0].R[0]&ads7138.StatusRunning != 0 && state[1].R[0] == 0 && state[2].R[0] == ads7138.OpModeAutonomous
}

// Read asks for the newest results from a channel on, as many as fit into r. The
// question is put into w.
func Read(addr uint16, first int, w, r []byte) hal.Msg {
	return hal.Msg{Addr: addr, W: ads7138.AppendReadBlock(w[:0], ads7138.RegRecent+byte(2*first)), R: r}
}

// Code of the n-th channel of a block.
func Code(block []byte, n int) uint16 { return ads7138.Code16(block, n) }

// LaneLevel is the light on a lane's diode, of a whole block.
func LaneLevel(block []byte, lane int) proto.MilliDBm {
	return level(Code(block, lane), hal.LaneFullScaleMilliDBm)
}

// GuardLevel is the light on a channel of the guard ADC, of a whole block.
func GuardLevel(block []byte, channel int) proto.MilliDBm {
	if channel >= hal.GuardTap1 {
		return level(Code(block, channel), hal.TapFullScaleMilliDBm)
	}
	return level(Code(block, channel), hal.SumFullScaleMilliDBm)
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
}

// FindRegister finds recent0 to recent7, or a number.
func FindRegister(name string) (r Register, ok bool) {
	if rest, recent := strings.CutPrefix(name, "recent"); recent {
		n, err := strconv.ParseUint(rest, 10, 16)
		return Register{Bits: 16, addr: ads7138.RegRecent + byte(2*n)}, err == nil && n < Channels
	}
	n, err := strconv.ParseUint(name, 0, 8)
	return Register{Bits: 8, addr: byte(n), Threshold: n >= ads7138.RegThresholds && n < ads7138.RegMax}, err == nil
}

// Read asks for a register.
func (r Register) Read(addr uint16) hal.Msg {
	if r.Bits == 16 {
		return hal.Msg{Addr: addr, W: ads7138.AppendReadBlock(nil, r.addr), R: make([]byte, 2)}
	}
	return hal.Msg{Addr: addr, W: ads7138.AppendRead(nil, r.addr), R: make([]byte, 1)}
}

// Write sets a register of eight bits.
func (r Register) Write(addr uint16, v byte) hal.Msg {
	return hal.Msg{Addr: addr, W: ads7138.AppendWrite(nil, r.addr, v)}
}
