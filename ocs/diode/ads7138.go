package diode

import (
	"strconv"
	"strings"

	"ringlight/hal"
	"ringlight/hal/ads7138"
)

// ads7138Driver scans: the newest results, averaged by the chip, lie at hand.
type ads7138Driver struct{}

func (ads7138Driver) Scan(addr uint16, average byte) []hal.Msg {
	return ads7138.ScanMessages(addr, average)
}

func (ads7138Driver) Average(addr uint16, average byte) hal.Msg {
	return hal.Msg{Addr: addr, W: ads7138.AppendWrite(nil, ads7138.RegOversample, average)}
}

func (ads7138Driver) State(addr uint16) []hal.Msg {
	regs := [...]byte{ads7138.RegStatus, ads7138.RegOversample, ads7138.RegOpMode}
	msgs := make([]hal.Msg, len(regs))
	for i, reg := range regs {
		msgs[i] = hal.Msg{Addr: addr, W: ads7138.AppendRead(nil, reg), R: make([]byte, 1)}
	}
	return msgs
}

func (ads7138Driver) Scanning(state []hal.Msg) bool {
	return state[0].R[0]&ads7138.StatusRunning != 0 && state[1].R[0] == 0 && state[2].R[0] == ads7138.OpModeAutonomous
}

// whole reports whether channels do not lie in order: then all are read.
func whole(channels []uint8) bool {
	for i, ch := range channels {
		if ch != channels[0]+uint8(i) {
			return true
		}
	}
	return false
}

func (ads7138Driver) Ask(w []byte, channels []uint8, _ byte) ([]byte, int) {
	from, n := channels[0], len(channels)
	if whole(channels) {
		from, n = 0, Channels
	}
	return ads7138.AppendReadBlock(w, ads7138.RegRecent+2*from), 2 * n
}

func (ads7138Driver) Codes(block, reply []byte, channels []uint8) {
	if !whole(channels) {
		copy(block, reply)
		return
	}
	for i, ch := range channels {
		copy(block[2*i:], reply[2*ch:][:2])
	}
}

func (d ads7138Driver) Register(name string) (Register, bool) {
	if rest, recent := strings.CutPrefix(name, "recent"); recent {
		n, err := strconv.ParseUint(rest, 10, 16)
		return Register{driver: d, Bits: 16, addr: ads7138.RegRecent + byte(2*n)}, err == nil && n < Channels
	}
	n, err := strconv.ParseUint(name, 0, 8)
	return Register{driver: d, Bits: 8, addr: byte(n), Threshold: n >= ads7138.RegThresholds && n < ads7138.RegMax}, err == nil
}

func (ads7138Driver) Value(r Register, reply []byte) uint32 {
	if r.Bits == 16 {
		return uint32(reply[0]) | uint32(reply[1])<<8
	}
	return uint32(reply[0])
}

func (ads7138Driver) Result(r Register, v uint32) (channel int, code uint16) {
	if r.Bits != 16 || r.addr < ads7138.RegRecent {
		return -1, 0
	}
	return int(r.addr-ads7138.RegRecent) / 2, uint16(v)
}

func (ads7138Driver) Read(r Register, addr uint16) hal.Msg {
	if r.Bits == 16 {
		return hal.Msg{Addr: addr, W: ads7138.AppendReadBlock(nil, r.addr), R: make([]byte, 2)}
	}
	return hal.Msg{Addr: addr, W: ads7138.AppendRead(nil, r.addr), R: make([]byte, 1)}
}

func (ads7138Driver) Write(r Register, addr uint16, v byte) hal.Msg {
	return hal.Msg{Addr: addr, W: ads7138.AppendWrite(nil, r.addr, v)}
}
