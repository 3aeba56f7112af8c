package tmp102

import (
	"bytes"
	"testing"
)

// The datasheet's own examples, "12-Bit Temperature Data Format" and "13-Bit",
// both ways.
func TestReadings(t *testing.T) {
	for _, tc := range []struct {
		milli int32
		raw   uint16
		mode  uint16
	}{{150_000, 0x4B01, ConfigExtended}, {25_000, 0x0C81, ConfigExtended}, {-250, 0xFFE1, ConfigExtended}, {-55_000, 0xE481, ConfigExtended},
		{127_937, 0x7FF0, 0}, {100_000, 0x6400, 0}, {80_000, 0x5000, 0}, {25_000, 0x1900, 0}, {250, 0x0040, 0}, {0, 0, 0}, {-250, 0xFFC0, 0}, {-25_000, 0xE700, 0}, {-55_000, 0xC900, 0}} {
		if got := Reading(tc.milli, tc.mode); got != tc.raw {
			t.Errorf("%d: %#04x, want %#04x", tc.milli, got, tc.raw)
		}
		if got := Millicelsius([]byte{byte(tc.raw >> 8), byte(tc.raw)}); got-tc.milli > 1 || tc.milli-got > 1 {
			t.Errorf("%#04x: %d, want %d", tc.raw, got, tc.milli)
		}
	}
	if hot, cold := Reading(500_000, 0), Reading(-500_000, 0); hot != 0x7FF0 || cold != 0x8000 {
		t.Errorf("out of range: %#04x %#04x, want 0x7FF0 0x8000", hot, cold)
	}
}

func TestMessages(t *testing.T) {
	if got := AppendWrite(nil, RegHigh, 0x5000); !bytes.Equal(got, []byte{3, 0x50, 0}) {
		t.Errorf("write % x", got)
	}
	if got := AppendRead(nil, 0xFF); !bytes.Equal(got, []byte{3}) {
		t.Errorf("pointer % x: only two bits are the pointer", got)
	}
}
