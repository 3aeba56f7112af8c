package heater

import (
	"slices"

	"ringlight/hal"
	"ringlight/hal/ltc2688"
)

// ltc is the LTC2688: registers A and B are its own, and its toggle pins are the
// toggle nets.
type ltc struct{ wired *hal.Optics }

// ltcSpan of every heater; a code of ours is a code of this span.
const ltcSpan = ltc2688.Span10V

const (
	ltcChannels = ltc2688.Channels
	ltcFrame    = ltc2688.FrameBytes

	// ltcReads is the length of readBack: of the toggles, the settings, and the
	// codes behind each choice of a register.
	ltcReads = ltcFrame * (2 + 2*ltcChannels + 2*(1+2*ltcChannels))

	ltcBankA = 0x0000 // of CmdABSelect: every code write and read goes to A
	ltcBankB = 0xFFFF
)

// settingOf is a channel's setting: MZI1 follows toggle net 0, MZI2 net 1, the
// matrix stands still.
func (c ltc) settingOf(n, channel int) uint16 {
	switch cell := c.wired.CellAt(n, channel); {
	case cell < 0:
	case cell < hal.CellMZI2:
		return ltc2688.Setting(ltcSpan, ltc2688.SourceTGP0)
	case cell < hal.CellMatrix:
		return ltc2688.Setting(ltcSpan, ltc2688.SourceTGP1)
	}
	return ltc2688.Setting(ltcSpan, ltc2688.SourceSoftware)
}

// togglesOf is the toggle-enable register.
func (c ltc) togglesOf(n int) uint16 {
	mask := uint16(0)
	for ch := range ltcChannels {
		if cell := c.wired.CellAt(n, ch); cell >= 0 && cell < hal.CellMatrix {
			mask |= 1 << ch
		}
	}
	return mask
}

// appendCodes appends the frames that write the input registers, A and B.
func (c ltc) appendCodes(dst []byte, n int, codes *Codes) []byte {
	dst = slices.Grow(dst, 2*(1+ltcChannels)*ltcFrame)
	for register, sel := range [2]uint16{ltcBankA, ltcBankB} {
		dst = ltc2688.AppendWrite(dst, ltc2688.CmdABSelect, sel)
		for ch := range ltcChannels {
			dst = ltc2688.AppendWrite(dst, ltc2688.CmdCode+byte(ch), codeOf(codes, c.wired.CellAt(n, ch), register))
		}
	}
	return dst
}

func (c ltc) frames(dst []byte, n int, o *order) []byte {
	put := func(cmd byte, v uint16) { dst = ltc2688.AppendWrite(dst, cmd, v) }
	switch o.action {
	case actCold:
		for _, x := range [][2]uint16{
			{ltc2688.CmdABSelect, ltcBankA}, {ltc2688.CmdCodeAll, 0},
			{ltc2688.CmdABSelect, ltcBankB}, {ltc2688.CmdCodeAll, 0},
			{ltc2688.CmdABSelect, ltcBankA}, {ltc2688.CmdUpdateAll, 0},
			{ltc2688.CmdToggleEnable, 0}, {ltc2688.CmdPowerDown, 0},
			{ltc2688.CmdSettingAll, ltc2688.Setting(ltcSpan, ltc2688.SourceSoftware)},
		} {
			put(byte(x[0]), x[1])
		}
	case actStage:
		put(ltc2688.CmdPowerDown, 0)
		dst = c.appendCodes(dst, n, &o.codes.codes)
		for ch := range ltcChannels {
			put(ltc2688.CmdSetting+byte(ch), c.settingOf(n, ch))
		}
		put(ltc2688.CmdToggleEnable, c.togglesOf(n))
		put(ltc2688.CmdUpdateAll, 0)
	case actLoad:
		dst = c.appendCodes(dst, n, &o.codes.codes)
	case actTake:
		put(ltc2688.CmdUpdateAll, 0)
	case actRest:
		put(ltc2688.CmdABSelect, ltcBankA)
	case actPattern:
		put(ltc2688.CmdABSelect, ltcBankA)
		for ch := range ltcChannels {
			put(ltc2688.CmdCode+byte(ch), o.codes.test(c.wired.CellAt(n, ch), ch))
		}
	default:
		dst = c.settings(dst, n, o)
	}
	return dst
}

// settings appends the frames of orders about single heaters.
func (c ltc) settings(dst []byte, n int, o *order) []byte {
	put := func(cmd byte, v uint16) { dst = ltc2688.AppendWrite(dst, cmd, v) }
	from, sel := len(dst), uint16(0)
	for _, s := range o.settings {
		if at := c.wired.Heaters[s.cell]; int(at.Chip) == n {
			sel |= uint16(s.register) << at.Channel
		}
	}
	for _, s := range o.settings {
		at := c.wired.Heaters[s.cell]
		if int(at.Chip) != n {
			continue
		}
		ch := at.Channel
		switch {
		case o.action == actSet:
			put(ltc2688.CmdCodeUpdate+ch, s.code)
		case o.action == actPoke:
			put(ltc2688.CmdABSelect, [2]uint16{ltcBankA, ltcBankB}[s.register])
			put(ltc2688.CmdCode+ch, s.code)
			put(ltc2688.CmdUpdate+ch, 0)
			put(ltc2688.CmdABSelect, ltcBankA)
		default:
			if len(dst) == from {
				put(ltc2688.CmdABSelect, sel)
			}
			put(ltc2688.CmdCode+ch, s.code)
		}
	}
	if o.action == actMove && len(dst) > from {
		put(ltc2688.CmdUpdateAll, 0)
	}
	return dst
}

// readBack leaves register B chosen.
func (ltc) readBack(dst []byte) []byte {
	dst = ltc2688.AppendRead(dst, ltc2688.CmdToggleEnable)
	for ch := range ltcChannels {
		dst = ltc2688.AppendRead(dst, ltc2688.CmdSetting+byte(ch))
	}
	for _, sel := range [2]uint16{ltcBankA, ltcBankB} {
		dst = ltc2688.AppendWrite(dst, ltc2688.CmdABSelect, sel)
		for ch := range ltcChannels {
			dst = ltc2688.AppendRead(dst, ltc2688.CmdCode+byte(ch))
		}
	}
	return dst
}

func (c ltc) state(n int, _ [2]bool, reply []byte) (s state) {
	at := 0
	next := func() uint16 { // each value comes with the second of its two frames
		at += 2 * ltc2688.FrameBytes
		return ltc2688.Value(reply[at-ltc2688.FrameBytes:])
	}
	s.toggles = next()
	s.ready = s.toggles == c.togglesOf(n)
	for ch := range ltcChannels {
		s.settings[ch] = next()
		s.ready = s.ready && s.settings[ch] == c.settingOf(n, ch)
		if s.settings[ch]&(ltc2688.SpanMask|ltc2688.SettingOverrange) == ltcSpan {
			s.ranges |= 1 << ch
		}
	}
	for register := range 2 {
		at += ltc2688.FrameBytes
		for ch := range ltcChannels {
			s.codes[ch][register] = next()
		}
	}
	return s
}
