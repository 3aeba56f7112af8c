package pca9535

import (
	"bytes"
	"testing"
)

func TestMessages(t *testing.T) {
	for _, tc := range []struct{ got, want []byte }{
		{AppendWrite(nil, RegOutput+1, 0xC0), []byte{3, 0xC0}},
		{AppendWritePair(nil, RegConfig, 0x1234), []byte{6, 0x34, 0x12}},
		{AppendRead(nil, RegInput), []byte{0}},
	} {
		if !bytes.Equal(tc.got, tc.want) {
			t.Errorf("message % x, want % x", tc.got, tc.want)
		}
	}
	if v := Pair([]byte{0x34, 0x12}); v != 0x1234 {
		t.Errorf("pair %#04x", v)
	}
}

// Bytes of one message must never leave their pair.
func TestPairs(t *testing.T) {
	for reg := range byte(NumRegs) {
		if n := Next(reg); n/2 != reg/2 || n == reg || Next(n) != reg {
			t.Errorf("after register %d comes %d", reg, n)
		}
	}
}
