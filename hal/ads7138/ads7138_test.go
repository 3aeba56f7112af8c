package ads7138

import (
	"bytes"
	"testing"
)

func TestMessages(t *testing.T) {
	for _, tc := range []struct{ got, want []byte }{
		{AppendWrite(nil, RegOversample, 4), []byte{0x08, 0x03, 0x04}},
		{AppendRead(nil, RegStatus), []byte{0x10, 0x00}},
		{AppendReadBlock(nil, RegRecent), []byte{0x30, 0xA0}},
	} {
		if !bytes.Equal(tc.got, tc.want) {
			t.Errorf("message % x, want % x", tc.got, tc.want)
		}
	}
}

// Results come low byte first; a block cut short must not be read beyond.
func TestBlock(t *testing.T) {
	block := make([]byte, BlockBytes)
	block[6], block[7] = 0xF0, 0xAB
	if got := Code16(block, 3); got != 0xABF0 {
		t.Errorf("channel 3: %#04x, want 0xABF0", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("channel 7 of a block of 8 bytes was read")
		}
	}()
	Code16(block[:8], 7)
}

func TestCycle(t *testing.T) {
	for opmode, want := range map[byte]int64{0: 1000, 1: 1500, 15: 192_000, OpModeAutonomous: 1000, OpModeSlowClock: 32_000} { // any order: independent cases
		if got := CycleNanos(opmode); got != want {
			t.Errorf("OPMODE_CFG %#02x: %d ns, want %d", opmode, got, want)
		}
	}
}
