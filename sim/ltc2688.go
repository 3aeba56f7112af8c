package sim

import (
	"ringlight/hal/ltc2688"
	"ringlight/mzi/detmath"
)

// ltc is one LTC2688.
type ltc struct {
	// Codes a and b of each channel as written, and as updated.
	in, out    [ltc2688.Channels][2]uint16
	setting    [ltc2688.Channels]uint16
	trims      *trims // nil: none was ever written
	config     uint16
	powerDown  uint16
	abSelect   uint16
	soft       uint16
	toggle     uint16
	mux, fault uint16
	reply      uint16 // of the last read command, sent with the next frame
	readyAt    int64  // nanoseconds; a reset takes its time
	dither     *dither
	nets       [2]bool // as last seen
	holds      bool    // edges choose between what updates have brought, and load nothing
}

// trims are fine corrections of each channel.
type trims struct{ offset, gain [ltc2688.Channels]uint16 }

// trimmed is where they are written and read.
func (c *ltc) trimmed() *trims {
	if c.trims == nil {
		c.trims = new(trims)
	}
	return c.trims
}

// frame is one transfer with the chip select low. The chip takes 24 bits or
// nothing.
func (c *ltc) frame(now int64, w, back []byte) (changed uint16) {
	clear(back)
	if len(w) != ltc2688.FrameBytes || now < c.readyAt {
		return 0
	}
	if len(back) == len(w) {
		back[1], back[2] = byte(c.reply>>8), byte(c.reply)
	}
	c.reply = 0
	cmd, value := w[0], ltc2688.Value(w)
	if cmd == ltc2688.CmdNoop {
		return 0
	}
	if cmd&ltc2688.ReadFlag != 0 {
		c.reply = c.read(cmd &^ ltc2688.ReadFlag)
		return 0
	}
	return c.write(now, cmd, value)
}

// inert: the frame reads a register or does nothing.
func (c *ltc) inert(w []byte) bool { return len(w) == ltc2688.FrameBytes && w[0]&ltc2688.ReadFlag != 0 }

// read is the register behind a command.
func (c *ltc) read(cmd byte) uint16 {
	ch := cmd & 0x0F
	switch cmd & 0xF0 {
	case ltc2688.CmdCode, ltc2688.CmdCodeUpdate, ltc2688.CmdCodeUpdateAll, ltc2688.CmdUpdate:
		return c.in[ch][c.abSelect>>ch&1]
	case ltc2688.CmdSetting:
		return c.setting[ch]
	case ltc2688.CmdOffset:
		return c.trimmed().offset[ch]
	case ltc2688.CmdGain:
		return c.trimmed().gain[ch]
	}
	switch cmd {
	case ltc2688.CmdConfig:
		return c.config
	case ltc2688.CmdPowerDown:
		return c.powerDown
	case ltc2688.CmdABSelect:
		return c.abSelect
	case ltc2688.CmdSoftwareToggle:
		return c.soft
	case ltc2688.CmdToggleEnable:
		return c.toggle
	case ltc2688.CmdMux:
		return c.mux
	case ltc2688.CmdFault:
		return c.fault
	}
	return 0 // no thermal overload, and nothing behind the rest
}

func (c *ltc) write(now int64, cmd byte, value uint16) (changed uint16) {
	ch := cmd & 0x0F
	bit := uint16(1) << ch
	switch cmd & 0xF0 {
	case ltc2688.CmdCode:
		c.in[ch][c.abSelect>>ch&1] = value
		return 0
	case ltc2688.CmdSetting:
		c.set(int(ch), value)
		return bit
	case ltc2688.CmdOffset:
		c.trimmed().offset[ch] = value
		return bit
	case ltc2688.CmdGain:
		c.trimmed().gain[ch] = value
		return bit
	case ltc2688.CmdCodeUpdate:
		c.in[ch][c.abSelect>>ch&1] = value
		c.out[ch] = c.in[ch]
		return bit
	case ltc2688.CmdCodeUpdateAll:
		c.in[ch][c.abSelect>>ch&1] = value
		c.out = c.in
		return 0xFFFF
	case ltc2688.CmdUpdate:
		c.out[ch] = c.in[ch]
		return bit
	}
	switch cmd {
	case ltc2688.CmdConfig:
		if value&ltc2688.ConfigReset != 0 {
			*c = ltc{readyAt: now + ltc2688.ResetMicros*1000, holds: c.holds, nets: c.nets}
			return 0xFFFF
		}
		c.config = value
	case ltc2688.CmdPowerDown:
		c.powerDown = value
		return 0xFFFF
	case ltc2688.CmdABSelect:
		c.abSelect = value
	case ltc2688.CmdSoftwareToggle:
		if c.dither != nil {
			c.dither.softened(c.soft, value)
		}
		c.load(ltc2688.SourceSoftware, c.soft&^value, false)
		c.load(ltc2688.SourceSoftware, value&^c.soft, true)
		c.soft = value
		return 0xFFFF
	case ltc2688.CmdToggleEnable:
		c.toggle = value
		return 0xFFFF
	case ltc2688.CmdMux:
		c.mux = value
	case ltc2688.CmdFault:
		c.fault &^= value
	case ltc2688.CmdCodeAll, ltc2688.CmdCodeAllUpdate:
		for i := range c.in {
			c.in[i][c.abSelect>>i&1] = value
		}
		if cmd == ltc2688.CmdCodeAllUpdate {
			c.out = c.in
			return 0xFFFF
		}
	case ltc2688.CmdSettingAll, ltc2688.CmdSettingAllUpd:
		for i := range c.setting {
			c.set(i, value)
		}
		if cmd == ltc2688.CmdSettingAllUpd {
			c.out = c.in
		}
		return 0xFFFF
	case ltc2688.CmdUpdateAll:
		c.out = c.in
		return 0xFFFF
	}
	return 0
}

// set takes a channel's setting; choosing the dither begins it.
func (c *ltc) set(ch int, value uint16) {
	if value&ltc2688.SettingDither != 0 && c.dither == nil {
		c.dither = new(dither)
	}
	c.setting[ch] = value
}

// volts is the output of a channel for the levels of the toggle pins. The
// heater supply has one sign, so a bipolar span ends at 0.
func (c *ltc) volts(ch int, nets [2]bool) float64 {
	if c.powerDown>>ch&1 != 0 {
		return 0
	}
	setting := c.setting[ch]
	level := 0
	if c.toggle>>ch&1 != 0 && setting&ltc2688.SettingDither == 0 {
		switch setting & ltc2688.SourceMask >> ltc2688.SourceShift {
		case ltc2688.SourceSoftware:
			level = int(c.soft >> ch & 1)
		case ltc2688.SourceTGP0:
			level = boolToInt(nets[0])
		case ltc2688.SourceTGP1:
			level = boolToInt(nets[1])
		}
	}
	code := float64(c.out[ch][level])
	if t := c.trims; t != nil { // both in quarters, of 2^-16 of the code and of a code
		code += float64(code * float64(int16(t.gain[ch])) * (1.0 / 65536 / 4))
		code += float64(float64(int16(t.offset[ch])) * 0.25)
	}
	if c.dithering(ch) {
		code += c.sine(ch)
	}
	code = min(max(code, 0), 65535)
	if fs := ltc2688.FullScaleMicrovolt(setting); fs != 0 {
		return code * (float64(fs) * 1e-6 / 65536)
	}
	width := [8]float64{ltc2688.SpanBipolar5V: 10, ltc2688.SpanBipolar10V: 20, ltc2688.SpanBipolar15V: 30}[setting&ltc2688.SpanMask]
	return max(0, (code-32768)*(width/65536))
}

// dither is what an LTC2688 counts for channels in dither mode: rising edges of
// its sources since the mode was chosen. A chip that nobody told to dither has
// none.
type dither struct {
	edges [4]uint32                // of TGP0 to TGP2, from 1
	soft  [ltc2688.Channels]uint32 // of each channel's software source
	nets  [2]bool                  // levels of TGP0 and TGP1
}

// see takes the levels of the toggle pins.
func (d *dither) see(nets [2]bool) {
	for i, high := range nets {
		if high && !d.nets[i] {
			d.edges[ltc2688.SourceTGP0+i]++
		}
	}
	d.nets = nets
}

// softened takes a write to the software toggle register.
func (d *dither) softened(before, after uint16) {
	for ch := range d.soft {
		if after&^before>>ch&1 != 0 {
			d.soft[ch]++
		}
	}
}

// pins takes the levels of the toggle pins; enabled channels follow them.
func (c *ltc) pins(nets [2]bool) (follow uint16) {
	if c.dither != nil {
		c.dither.see(nets)
	}
	for i := range nets {
		if nets[i] != c.nets[i] {
			c.load(ltc2688.SourceTGP0+uint16(i), 0xFFFF, nets[i])
		}
	}
	c.nets = nets
	return c.toggle
}

// load is an edge of a toggle source: the output takes the input register of the level
// that it went to. The kernel's driver says so where it writes the code of a channel
// that toggles without an update: the DAC is to be updated by the toggle. A chip that
// holds waits for an update instead.
func (c *ltc) load(source, channels uint16, high bool) {
	if c.holds {
		return
	}
	for ch, setting := range c.setting {
		if c.toggle&channels>>ch&1 != 0 && setting&ltc2688.SettingDither == 0 && uint16(ltc2688.Source(setting)) == source {
			level := boolToInt(high)
			c.out[ch][level] = c.in[ch][level]
		}
	}
}

func (c *ltc) channels() int { return ltc2688.Channels }

// dithering reports whether a channel is in dither mode and enabled.
func (c *ltc) dithering(ch int) bool {
	return c.dither != nil && c.toggle>>ch&1 != 0 && c.setting[ch]&ltc2688.SettingDither != 0
}

// sine is what the dither adds to a channel's code.
func (c *ltc) sine(ch int) float64 {
	setting := c.setting[ch]
	n := c.dither.soft[ch]
	if source := ltc2688.Source(setting); source != ltc2688.SourceSoftware {
		n = c.dither.edges[source]
	}
	clocks := uint32(ltc2688.Clocks(setting))
	turn := float64(n%clocks)/float64(clocks) + float64(ltc2688.Quarter(setting))/4
	return float64(c.out[ch][1]&ltc2688.DitherAmplitudeMask) * detmath.Sin(2*pi*turn)
}

// heaterMicrovolt is what a heater's code stands for in a calibration and on
// the pages of a CMIS module: a step of a span of 10 V.
func heaterMicrovolt(code uint16) int64 { return ltc2688.Microvolt(ltc2688.Span10V, code) }
