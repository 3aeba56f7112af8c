package sc18is602

import (
	"bytes"
	"testing"
)

func TestConfigAndTransfer(t *testing.T) {
	// Goal: the clock is the fastest that is not over what a chip bears, mode bits are
	// where the data sheet has them, and messages are as it says.
	for _, tc := range []struct {
		mode uint8
		hz   int64
		want byte
	}{{0, 20_000_000, 0}, {0, MaxHertz, 0}, {1, MaxHertz - 1, 0x05}, {2, 460_750, 0x09}, {3, 120_000, 0x0e}, {0, 1000, 3}} {
		if got := Config(tc.mode, tc.hz); got != tc.want {
			t.Errorf("mode %d, %d Hz: %#02x, want %#02x", tc.mode, tc.hz, got, tc.want)
		}
	}
	if w := AppendConfig(AppendTransfer(nil, 2, []byte{7, 8}), 0x09); !bytes.Equal(w, []byte{0x04, 7, 8, 0xf0, 0x09}) {
		t.Errorf("% x", w)
	}
}
