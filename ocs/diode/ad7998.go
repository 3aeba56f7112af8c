package diode

import (
	"strconv"
	"strings"

	"ringlight/hal"
	"ringlight/hal/ad7998"
)

// ad7998Driver converts while it is read, and averages nothing: a reading is as many
// conversions as are to be averaged, of one channel or of all in turn.
type ad7998Driver struct{}

// ad7998Average bounds the binary logarithm of conversions in a reading: all channels are
// then 512 bytes, 12 ms at 400 kHz, half of what a bus may take for one message.
const ad7998Average = 5

// ad7998Step is a step of its codes in sixteen bits.
const ad7998Step = FullCode / (ad7998.CodeFull + 1)

func (d ad7998Driver) Scan(addr uint16, average byte) []hal.Msg {
	return []hal.Msg{d.Average(addr, average)}
}

// Average is the configuration once more: each reading says how many.
func (ad7998Driver) Average(addr uint16, _ byte) hal.Msg {
	return hal.Msg{Addr: addr, W: ad7998.AppendConfig(nil, ad7998.ConfigAll)}
}

func (ad7998Driver) State(addr uint16) []hal.Msg {
	return []hal.Msg{{Addr: addr, W: ad7998.AppendReadConfig(nil), R: make([]byte, 2)}}
}

func (ad7998Driver) Scanning(state []hal.Msg) bool {
	return uint16(state[0].R[0])<<8|uint16(state[0].R[1]) == ad7998.ConfigAll
}

func (ad7998Driver) Ask(w []byte, channels []uint8, average byte) ([]byte, int) {
	bytes := 2 << min(average, ad7998Average)
	if len(channels) == 1 {
		return ad7998.AppendReadOne(w, channels[0]), bytes
	}
	return ad7998.AppendReadSequence(w), bytes * Channels
}

// Codes averages what was converted. Each result names its channel.
func (ad7998Driver) Codes(block, reply []byte, channels []uint8) {
	var sum, count [Channels]uint32
	for at := 0; at+1 < len(reply); at += 2 {
		code, ch := ad7998.Result(reply[at:])
		sum[ch] += uint32(code)
		count[ch]++
	}
	for i, ch := range channels {
		code := uint32(0)
		if count[ch] > 0 {
			code = sum[ch] * ad7998Step / count[ch]
		}
		block[2*i], block[2*i+1] = byte(code), byte(code>>8)
	}
}

func (d ad7998Driver) Register(name string) (Register, bool) {
	r := Register{driver: d, Bits: 16, addr: ad7998.RegConfig}
	if rest, recent := strings.CutPrefix(name, "recent"); recent {
		n, err := strconv.ParseUint(rest, 10, 8)
		r.addr = ad7998.AppendReadOne(nil, uint8(n))[0]
		return r, err == nil && n < Channels
	}
	return r, name == "config"
}

func (ad7998Driver) Value(r Register, reply []byte) uint32 {
	if r.addr != ad7998.RegConfig {
		code, _ := ad7998.Result(reply)
		return uint32(code)
	}
	return uint32(reply[0])<<8 | uint32(reply[1])
}

func (ad7998Driver) Result(r Register, v uint32) (channel int, code uint16) {
	if _, ch, one, _ := ad7998.Pointer(r.addr); one {
		return int(ch), uint16(v * ad7998Step)
	}
	return -1, 0
}

func (ad7998Driver) Read(r Register, addr uint16) hal.Msg {
	return hal.Msg{Addr: addr, W: []byte{r.addr}, R: make([]byte, 2)}
}

// Write has no register to write: none is a threshold.
func (ad7998Driver) Write(r Register, addr uint16, v byte) hal.Msg {
	return hal.Msg{Addr: addr, W: []byte{r.addr, v}}
}
