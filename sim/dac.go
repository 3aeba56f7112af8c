package sim

import (
	"ringlight/hal"
	"ringlight/hal/ltc2688"

	"periph.io/x/conn/v3/physic"
)

// dac is one LTC2688.
type dac struct {
	// Codes a and b of each channel as written, and as updated.
	in, out      [ltc2688.Channels][2]uint16
	setting      [ltc2688.Channels]uint16
	offset, gain [ltc2688.Channels]uint16
	config       uint16
	powerDown    uint16
	abSelect     uint16
	soft         uint16
	toggle       uint16
	mux, fault   uint16
	reply        uint16 // of the last read command, sent with the next frame
	readyAt      int64  // nanoseconds; a reset takes its time
	dither       *dither
}

// frame is one transfer with the chip select low. The chip takes 24 bits or
// nothing. It returns what came back and the channels whose output may have
// changed.
func (c *dac) frame(now int64, w []byte) (back [ltc2688.FrameBytes]byte, changed uint16) {
	if len(w) != ltc2688.FrameBytes || now < c.readyAt {
		return back, 0
	}
	back[1], back[2] = byte(c.reply>>8), byte(c.reply)
	c.reply = 0
	cmd, value := w[0], ltc2688.Value(w)
	if cmd == ltc2688.CmdNoop {
		return back, 0
	}
	if cmd&ltc2688.ReadFlag != 0 {
		c.reply = c.read(cmd &^ ltc2688.ReadFlag)
		return back, 0
	}
	return back, c.write(now, cmd, value)
}

// read is the register behind a command.
func (c *dac) read(cmd byte) uint16 {
	ch := cmd & 0x0F
	switch cmd & 0xF0 {
	case ltc2688.CmdCode, ltc2688.CmdCodeUpdate, ltc2688.CmdCodeUpdateAll, ltc2688.CmdUpdate:
		return c.in[ch][c.abSelect>>ch&1]
	case ltc2688.CmdSetting:
		return c.setting[ch]
	case ltc2688.CmdOffset:
		return c.offset[ch]
	case ltc2688.CmdGain:
		return c.gain[ch]
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

func (c *dac) write(now int64, cmd byte, value uint16) (changed uint16) {
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
		c.offset[ch] = value
		return bit
	case ltc2688.CmdGain:
		c.gain[ch] = value
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
			*c = dac{readyAt: now + ltc2688.ResetMicros*1000}
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
func (c *dac) set(ch int, value uint16) {
	if value&ltc2688.SettingDither != 0 && c.dither == nil {
		c.dither = new(dither)
	}
	c.setting[ch] = value
}

// volts is the output of a channel for the levels of the toggle pins. The
// heater supply has one sign, so a bipolar span ends at 0.
func (c *dac) volts(ch int, nets [2]bool) float64 {
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
	// Gain and offset adjustments are fine corrections: both in quarters, of
	// 2^-16 of the code and of a code.
	code := float64(c.out[ch][level])
	code += float64(code * float64(int16(c.gain[ch])) * (1.0 / 65536 / 4))
	code += float64(float64(int16(c.offset[ch])) * 0.25)
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

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// shortMilliampere is the current limit of a DAC output.
const shortMilliampere = 20.0

// drive carries the outputs of the channels in mask of one DAC to their
// heaters, and reports whether any heater goes elsewhere now.
func (w *World) drive(b *board, m *module, d int, mask uint16, nets [2]bool) (moved bool) {
	if m.dac[d].dither != nil {
		m.dac[d].dither.see(nets)
	}
	for ch := range ltc2688.Channels {
		k := d*ltc2688.Channels + ch
		if mask>>ch&1 == 0 || k >= hal.CellsPerMod {
			continue
		}
		v := m.dac[d].volts(ch, nets)
		c := &m.per.cells[k]
		milliamp := 1000 * v / c.ohm
		milliwatt := v * milliamp
		if m.planted != nil {
			switch {
			case m.planted.open>>k&1 != 0:
				milliamp, milliwatt = 0, 0
			case m.planted.short>>k&1 != 0 && v > 0:
				milliamp, milliwatt = shortMilliampere, 0
			}
		}
		b.limits.note(v, milliamp, milliwatt)
		m.milliamp[k] = float32(milliamp)
		if w.setLevel(m, k, milliwatt/c.piPower) {
			moved = true
		}
	}
	power, current := 0.0, 0.0
	for k := range m.level {
		power += float64(m.level[k] * m.per.cells[k].piPower)
		current += float64(m.milliamp[k])
	}
	b.limits.noteModule(power)
	if current != m.rail {
		if now := int64(w.now); now > m.railSince {
			m.railBefore, m.railSince = m.rail, now
		}
		m.rail = current
	}
	return moved
}

// railOver is the mean current of the heater rail from one time to a later one
// in milliamperes, the DACs' own included. It goes back over one change.
func (m *module) railOver(from, to int64) float64 {
	old := min(max(m.railSince-from, 0), to-from)
	part := float64(old) / float64(to-from)
	return m.rail + float64(part*(m.railBefore-m.rail)) + railIdleMilliamp
}

func (w *World) driveHeaters(b *board, m *module, d int) {
	w.drive(b, m, d, 0xFFFF, b.netsOf(m))
}

// LimitRecord is the most that any heater or module of a board ever saw.
type LimitRecord struct {
	Volt    physic.ElectricPotential
	Current physic.ElectricCurrent
	Heater  physic.Power
	Module  physic.Power
}

func (l *LimitRecord) note(volt, milliampere, milliwatt float64) {
	l.Volt = max(l.Volt, physic.ElectricPotential(volt*float64(physic.Volt)))
	l.Current = max(l.Current, physic.ElectricCurrent(milliampere*float64(physic.MilliAmpere)))
	l.Heater = max(l.Heater, physic.Power(milliwatt*float64(physic.MilliWatt)))
}

func (l *LimitRecord) noteModule(milliwatt float64) {
	l.Module = max(l.Module, physic.Power(milliwatt*float64(physic.MilliWatt)))
}

// Limits is the record of a board since it was made.
func (w *World) Limits(id BoardID) LimitRecord { return w.boards[id].limits }
