package pca9548

import (
	"bytes"
	"testing"
)

// One channel alone, and never none by accident.
func TestSelect(t *testing.T) {
	for ch := range uint8(Channels) {
		if got := AppendSelect(nil, ch); !bytes.Equal(got, []byte{1 << ch}) {
			t.Errorf("channel %d: % x", ch, got)
		}
	}
	if got := Select(8); got != 1 {
		t.Errorf("channel 8: %#02x, want it to wrap to channel 0 and not to select none", got)
	}
	if got := AppendNone(nil); !bytes.Equal(got, []byte{0}) {
		t.Errorf("none: % x", got)
	}
}
