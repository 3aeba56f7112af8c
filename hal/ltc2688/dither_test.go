package ltc2688

import (
	"bytes"
	"testing"
)

// dither is the setting of a channel that dithers with a source's edges.
func dither(span, source, period, phase uint16) uint16 {
	return Setting(span, source) | period<<PeriodShift&PeriodMask | phase<<PhaseShift&PhaseMask | SettingDither
}

// Goal: every command's frame is the golden one.
// Method: a table of golden frames, both directions.
func TestGoldenFrames(t *testing.T) {
	for _, tc := range []struct {
		golden []byte
		cmd    byte
		value  uint16
		read   bool
	}{
		{[]byte{0x05, 0xAB, 0xCD}, CmdCode + 5, 0xABCD, false},
		{[]byte{0x1A, 0x0E, 0xA1}, CmdSetting + 10, dither(Span10V, SourceTGP1, 2, Phase270) | 1<<7, false},
		{[]byte{0x2F, 0xFF, 0xFE}, CmdOffset + 15, 0xFFFE, false},
		{[]byte{0x30, 0x00, 0x10}, CmdGain, 0x0010, false},
		{[]byte{0x43, 0x12, 0x34}, CmdCodeUpdate + 3, 0x1234, false},
		{[]byte{0x51, 0x12, 0x34}, CmdCodeUpdateAll + 1, 0x1234, false},
		{[]byte{0x6E, 0x00, 0x00}, CmdUpdate + 14, 0, false},
		{[]byte{0x70, 0x80, 0x00}, CmdConfig, ConfigReset, false},
		{[]byte{0x72, 0xFF, 0x00}, CmdABSelect, 0xFF00, false},
		{[]byte{0x73, 0x00, 0x01}, CmdSoftwareToggle, 1, false},
		{[]byte{0x74, 0x00, 0xFF}, CmdToggleEnable, 0x00FF, false},
		{[]byte{0x7C, 0x00, 0x00}, CmdUpdateAll, 0, false},
		{[]byte{0xF7, 0x00, 0x00}, CmdThermal, 0, true},
		{[]byte{0x85, 0x00, 0x00}, CmdCode + 5, 0, true},
	} {
		built := AppendWrite(nil, tc.cmd, tc.value)
		if tc.read {
			built = AppendRead(nil, tc.cmd)[:FrameBytes]
		}
		if !bytes.Equal(built, tc.golden) {
			t.Errorf("built % x, golden % x", built, tc.golden)
		}
	}
}

// Goal: the fields of a dither keep to themselves.
// Method: every period, phase and source, there and back; larger numbers.
func TestDitherFields(t *testing.T) {
	for period := range uint16(5) {
		for phase := range uint16(4) {
			for source := range uint16(4) {
				s := dither(Span10V, source, period, phase)
				if Clocks(s) != 4<<period || Quarter(s) != int(phase) || Source(s) != int(source) || s&SpanMask != Span10V || s&SettingDither == 0 {
					t.Errorf("setting %#04x: %d clocks, quarter %d, source %d", s, Clocks(s), Quarter(s), Source(s))
				}
			}
		}
	}
	if s := dither(0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF); s != SpanMask|SourceMask|PeriodMask|PhaseMask|SettingDither || Clocks(s) != 64 {
		t.Errorf("setting %#04x, %d clocks", s, Clocks(s))
	}
}
