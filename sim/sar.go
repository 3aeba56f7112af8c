package sim

import (
	"ringlight/hal"
	"ringlight/hal/ad7998"
	"ringlight/hal/ads7138"
)

// readADC is an ADC that converts while it is read. Each pair of bytes takes pair
// nanoseconds on the wire; after says that a write came in front of the read.
type readADC interface {
	// write takes the bytes of a message and returns how many it acknowledged.
	write(w []byte) int
	answer(in *moduleInputs, r []byte, after bool, pair int64)
	// inert: what is read behind that write is no result.
	inert(w []byte) bool
}

// readADCs by part, as after power-on. All others are taken for the ADS7138.
var readADCs = map[hal.Part]func() readADC{
	hal.AD7998: func() readADC { return &sar{config: ad7998.ResetConfig} },
}

// sar is one AD7998: it converts while it is read.
type sar struct {
	config  uint16
	pointer byte
	cycle   byte
}

func (c *sar) inert(w []byte) bool { return len(w) == 1 && w[0] == ad7998.RegConfig }

func (c *sar) write(w []byte) int {
	c.pointer = w[0]
	switch reg, _, one, sequence := ad7998.Pointer(w[0]); {
	case one || sequence:
	case reg == ad7998.RegConfig && len(w) >= 3:
		c.config = (uint16(w[1])<<8 | uint16(w[2])) & 0x0FFF
	case reg == ad7998.RegCycle && len(w) >= 2:
		c.cycle = w[1]
	}
	return len(w)
}

// answer: a stop forgets what was to be converted.
func (c *sar) answer(in *moduleInputs, r []byte, after bool, pair int64) {
	reg, channel, one, sequence := ad7998.Pointer(c.pointer)
	if !after {
		one, sequence = false, false
	}
	c.pointer = reg
	switch {
	case reg == ad7998.RegConfig:
		repeat16(r, c.config)
		return
	case reg == ad7998.RegCycle:
		for i := range r {
			r[i] = c.cycle
		}
		return
	case reg != ad7998.RegResult || !one && !sequence:
		clear(r) // nothing was asked to be converted
		return
	}
	channels := byte(c.config >> ad7998.ConfigChannels)
	if one {
		channels = 1 << channel
	}
	if channels == 0 {
		clear(r)
		return
	}
	now := int64(in.m.board.now) - tiaNanos
	in.m.probe(in.which, now, now+pair*int64(len(r)/2+1), &in.p)
	ch := uint8(ad7998.Channels - 1)
	for i := 0; i < len(r); i += 2 {
		for ch = (ch + 1) % ads7138.Channels; channels>>ch&1 == 0; ch = (ch + 1) % ads7138.Channels {
		}
		var two [2]byte
		ad7998.PutResult(two[:], in.p.convert(int(ch), now+pair*int64(i/2), 0, 1)>>4, ch)
		copy(r[i:], two[:])
	}
}
