package ocs

import (
	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/ltc2688"
	"ringlight/hal/pca9548"
	"ringlight/hal/tca9534"
)

// What the chips of a module must hold to carry light, and the messages that
// bring it there and read it back.

// settingOf is a channel's setting: MZI1 follows toggle net 0, MZI2 net 1, the
// matrix stands still.
func settingOf(dac, channel int) uint16 {
	switch cell := dac*ltc2688.Channels + channel; {
	case cell < hal.CellMZI2:
		return ltc2688.Setting(span, ltc2688.SourceTGP0)
	case cell < hal.CellMatrix:
		return ltc2688.Setting(span, ltc2688.SourceTGP1)
	}
	return ltc2688.Setting(span, ltc2688.SourceSoftware)
}

// togglesOf is the toggle-enable register of a DAC.
func togglesOf(dac int) uint16 {
	mask := uint16(0)
	for ch := range ltc2688.Channels {
		if dac*ltc2688.Channels+ch < hal.CellMatrix {
			mask |= 1 << ch
		}
	}
	return mask
}

// codeOf is what register A (0) or B (1) of a channel must hold; channels
// without a heater, and register B of the matrix, hold 0.
func codeOf(codes *forced, dac, channel, register int) uint16 {
	cell := dac*ltc2688.Channels + channel
	if cell >= hal.CellsPerMod || register == 1 && cell >= hal.CellMatrix {
		return 0
	}
	return codes[cell][register]
}

const (
	bankA = 0x0000 // of CmdABSelect: every code write and read goes to A
	bankB = 0xFFFF
)

// appendStage appends the frames that bring a calibrated DAC from any state to
// the codes of all paths. Outputs move at the very end, at once.
func appendStage(dst []byte, dac int, codes *[hal.CellsPerMod][2]uint16) []byte {
	dst = ltc2688.AppendWrite(dst, ltc2688.CmdPowerDown, 0)
	for bank, sel := range [2]uint16{bankA, bankB} {
		dst = ltc2688.AppendWrite(dst, ltc2688.CmdABSelect, sel)
		for ch := range ltc2688.Channels {
			code := uint16(0)
			if cell := dac*ltc2688.Channels + ch; cell < hal.CellsPerMod && (bank == 0 || cell < hal.CellMatrix) {
				code = codes[cell][bank]
			}
			dst = ltc2688.AppendWrite(dst, ltc2688.CmdCode+byte(ch), code)
		}
	}
	for ch := range ltc2688.Channels {
		dst = ltc2688.AppendWrite(dst, ltc2688.CmdSetting+byte(ch), settingOf(dac, ch))
	}
	dst = ltc2688.AppendWrite(dst, ltc2688.CmdToggleEnable, togglesOf(dac))
	return ltc2688.AppendWrite(dst, ltc2688.CmdUpdateAll, 0)
}

// appendReadBack appends the frames that read a DAC's settings and codes; they
// change its A/B selection and nothing that is seen outside.
func appendReadBack(dst []byte) []byte {
	dst = ltc2688.AppendRead(dst, ltc2688.CmdToggleEnable)
	for ch := range ltc2688.Channels {
		dst = ltc2688.AppendRead(dst, ltc2688.CmdSetting+byte(ch))
	}
	for _, sel := range [2]uint16{bankA, bankB} {
		dst = ltc2688.AppendWrite(dst, ltc2688.CmdABSelect, sel)
		for ch := range ltc2688.Channels {
			dst = ltc2688.AppendRead(dst, ltc2688.CmdCode+byte(ch))
		}
	}
	return dst
}

// readBackBytes is the length of appendReadBack's frames.
const readBackBytes = ltc2688.FrameBytes * (2 + 2*ltc2688.Channels + 2*(1+2*ltc2688.Channels))

// staged reports whether the reply to appendReadBack is what codes want of a
// DAC.
func staged(reply []byte, codes *forced, dac int) bool {
	// Each value comes with the second of its two frames.
	at := 0
	next := func() uint16 {
		at += 2 * ltc2688.FrameBytes
		return ltc2688.Value(reply[at-ltc2688.FrameBytes:])
	}
	ok := next() == togglesOf(dac)
	for ch := range ltc2688.Channels {
		ok = next() == settingOf(dac, ch) && ok
	}
	for bank := range 2 {
		at += ltc2688.FrameBytes
		for ch := range ltc2688.Channels {
			ok = next() == codeOf(codes, dac, ch, bank) && ok
		}
	}
	return ok
}

// readCodes takes the codes of a DAC out of the reply to appendReadBack, and
// reports whether its settings are as they must be.
func readCodes(reply []byte, dac int, codes *forced) bool {
	at := 0
	next := func() uint16 {
		at += 2 * ltc2688.FrameBytes
		return ltc2688.Value(reply[at-ltc2688.FrameBytes:])
	}
	ok := next() == togglesOf(dac)
	for ch := range ltc2688.Channels {
		ok = next() == settingOf(dac, ch) && ok
	}
	for bank := range 2 {
		at += ltc2688.FrameBytes
		for ch := range ltc2688.Channels {
			code := next()
			if cell := dac*ltc2688.Channels + ch; cell < hal.CellsPerMod {
				codes[cell][bank] = code
			}
		}
	}
	return ok
}

// scanning reports whether two registers, OSR_CFG and OPMODE_CFG, and the
// status say that the scan of ads7138.ScanMessages runs.
func scanning(status, oversample, opmode byte) bool {
	return status&ads7138.StatusRunning != 0 && oversample == 0 && opmode == ads7138.OpModeAutonomous
}

// enableMessages let every laser of a module shine: its pins float and the
// board pulls them up.
func enableMessages(m *hal.Module) []hal.Msg {
	return []hal.Msg{
		{Addr: m.Mux, W: pca9548.AppendSelect(nil, m.MuxChannel)},
		{Addr: m.LaneEnable, W: tca9534.AppendWrite(nil, tca9534.RegConfig, tca9534.ResetConfig)},
		{Addr: m.Mux, W: pca9548.AppendNone(nil)},
	}
}
