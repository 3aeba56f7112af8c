package sim

import (
	"ringlight/hal"
	"ringlight/hal/ad5676"
)

// ad is one AD5676R as a board has it: GAIN high, RSTSEL for zero, each output
// doubled, and LDAC pulsed by every edge of the toggle net that it follows.
type ad struct {
	in, out   [ad5676.Channels]uint16
	power     uint16
	mask      uint8
	reference uint16
	reply     uint16 // of the last readback, sent with the next frame

	net   int // whose edges pulse LDAC; -1: none, it is high
	level bool
}

// newAD is the n-th of a module's after power-on.
func newAD(n int, nets [2]bool) *ad {
	c := &ad{net: -1}
	if n < len(nets) {
		c.net, c.level = n, nets[n]
	}
	return c
}

// frame takes 24 bits or nothing.
func (c *ad) frame(_ int64, w, back []byte) (changed uint16) {
	clear(back)
	cmd, channel, value, err := ad5676.Parse(w)
	if len(w) == ad5676.FrameBytes && len(back) == len(w) {
		back[1], back[2] = byte(c.reply>>8), byte(c.reply)
	}
	c.reply = 0
	if err != nil {
		return 0
	}
	switch cmd {
	case ad5676.CmdInput:
		c.in[channel] = value
	case ad5676.CmdUpdate:
		return c.update(uint8(value))
	case ad5676.CmdBoth:
		c.in[channel] = value
		return c.update(1 << channel)
	case ad5676.CmdPower:
		c.power = value
		return ad5676.AllChannels
	case ad5676.CmdMask:
		c.mask = uint8(value)
	case ad5676.CmdReset:
		*c = ad{net: c.net, level: c.level}
		return ad5676.AllChannels
	case ad5676.CmdReference:
		c.reference = value
		return ad5676.AllChannels
	case ad5676.CmdReadback:
		c.reply = c.out[channel]
	case ad5676.CmdAllInputs, ad5676.CmdAllBoth:
		for i := range c.in {
			c.in[i] = value
		}
		if cmd == ad5676.CmdAllBoth {
			return c.update(ad5676.AllChannels)
		}
	}
	return 0
}

// update brings input registers to the outputs.
func (c *ad) update(channels uint8) (changed uint16) {
	for ch := range c.out {
		if channels>>ch&1 != 0 && c.out[ch] != c.in[ch] {
			c.out[ch] = c.in[ch]
			changed |= 1 << ch
		}
	}
	return changed
}

// inert: the frame reads a register or does nothing.
func (c *ad) inert(w []byte) bool {
	return len(w) == ad5676.FrameBytes && (w[0]&0xF0 == ad5676.CmdReadback || w[0] == ad5676.CmdNoop)
}

// pins pulses LDAC at an edge.
func (c *ad) pins(nets [2]bool) (follow uint16) {
	if c.net < 0 || nets[c.net] == c.level {
		return 0
	}
	c.level = nets[c.net]
	return c.update(^c.mask)
}

func (c *ad) channels() int { return ad5676.Channels }

// volts is the output of a channel behind the stage that doubles it; for other
// levels of the nets, what it would be behind the edge.
func (c *ad) volts(ch int, nets [2]bool) float64 {
	if ad5676.Power(c.power, ch) != 0 || c.reference&ad5676.ReferenceOff != 0 {
		return 0
	}
	code := c.out[ch]
	if c.net >= 0 && nets[c.net] != c.level && c.mask>>ch&1 == 0 {
		code = c.in[ch]
	}
	return float64(code) * (ad5676.FullScaleMicrovolt * hal.AD5676RStageGain * 1e-6 / 65536)
}
