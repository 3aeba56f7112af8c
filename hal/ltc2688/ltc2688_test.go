package ltc2688

import (
	"bytes"
	"testing"
)

// Frames must be a command byte and 16 bits, most significant first.
func TestFrames(t *testing.T) {
	for _, tc := range []struct {
		got  []byte
		want []byte
	}{
		{AppendWrite(nil, CmdCode+3, 0x1234), []byte{0x03, 0x12, 0x34}},
		{AppendWrite(nil, CmdSetting+15, Setting(Span10V, SourceTGP1)), []byte{0x1F, 0x00, 0x21}},
		{AppendWrite(nil, CmdUpdateAll, 0), []byte{0x7C, 0, 0}},
		{AppendWrite([]byte{9}, CmdConfig, ConfigReset), []byte{9, 0x70, 0x80, 0x00}},
		{AppendRead(nil, CmdABSelect), []byte{0xF2, 0, 0, 0xFF, 0, 0}},
	} {
		if !bytes.Equal(tc.got, tc.want) {
			t.Errorf("frame % x, want % x", tc.got, tc.want)
		}
	}
	if v := Value([]byte{0xAA, 0x12, 0x34}); v != 0x1234 {
		t.Errorf("value %#04x", v)
	}
}

// A field must not spill into its neighbours, whatever is asked.
func TestSettingKeepsToItsFields(t *testing.T) {
	if got := Setting(0xFFFF, 0xFFFF); got != SpanMask|SourceMask {
		t.Errorf("setting %#04x, want %#04x", got, SpanMask|SourceMask)
	}
}

// A code's voltage by span; spans that go below zero are not ours.
func TestVoltages(t *testing.T) {
	for _, tc := range []struct {
		setting    uint16
		code, back int64
	}{
		{Span5V, 0, 0}, {Span5V, 32768, 2_500_000}, {Span10V, 32768, 5_000_000}, {Span10V, 55706, 8_500_061}, {Span10V, 65535, 9_999_847},
		{Span10V | SettingOverrange, 65535, 10_499_840}, {SpanBipolar5V, 0, 0},
	} {
		if v := Microvolt(tc.setting, uint16(tc.code)); v != tc.back {
			t.Errorf("setting %d, code %d: %d uV, want %d", tc.setting, tc.code, v, tc.back)
		}
	}
}
