package ad7998

import (
	"bytes"
	"testing"
)

// Golden messages: those that the kernel's driver sends, and results of its form.
func TestMessages(t *testing.T) {
	for _, tc := range []struct{ got, want []byte }{
		{AppendConfig(nil, ConfigAll), []byte{0x02, 0x0F, 0xF8}},
		{AppendReadConfig(nil), []byte{0x02}},
		{AppendReadOne(nil, 5), []byte{0xD0}},
		{AppendReadSequence(nil), []byte{0x70}},
	} {
		if !bytes.Equal(tc.got, tc.want) {
			t.Errorf("message % x, want % x", tc.got, tc.want)
		}
	}
	if code, ch := Result([]byte{0x95, 0x7A}); code != 0x57A || ch != 1 { // with the alert flag
		t.Errorf("result %#x of channel %d", code, ch)
	}
	var r [2]byte
	for ch := range uint8(Channels) {
		PutResult(r[:], 0xABC, ch)
		if code, at := Result(r[:]); code != 0xABC || at != ch {
			t.Errorf("channel %d: %#x of %d", ch, code, at)
		}
	}
}

// A pointer names a channel or a sequence, never both.
func TestPointer(t *testing.T) {
	for p := range 256 {
		reg, ch, one, sequence := Pointer(byte(p))
		if one && sequence || int(reg) != p&15 || one && int(ch) != p>>4&7 || sequence != (p>>4 == 7) {
			t.Errorf("%#02x: register %d, channel %d, %v, %v", p, reg, ch, one, sequence)
		}
	}
}
