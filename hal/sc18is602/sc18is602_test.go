package sc18is602

import (
	"bytes"
	"testing"
)

func TestConfigAndTransfer(t *testing.T) {
	// Goal: the clock is the fastest that is not over what a chip bears, mode bits are
	// where the data sheet has them, and a message comes apart as it was made.
	for _, tc := range []struct {
		mode uint8
		hz   int64
		want byte
	}{{0, 20_000_000, 0}, {0, MaxHertz, 0}, {1, MaxHertz - 1, 0x05}, {2, 460_750, 0x09}, {3, 120_000, 0x0e}, {0, 1000, 3}} {
		if got := Config(tc.mode, tc.hz); got != tc.want {
			t.Errorf("mode %d, %d Hz: %#02x, want %#02x", tc.mode, tc.hz, got, tc.want)
		}
	}
	if sel, data, _, ok := Function(AppendTransfer(nil, 2, []byte{7, 8})); !ok || sel != 4 || !bytes.Equal(data, []byte{7, 8}) {
		t.Errorf("%d, % x, %v", sel, data, ok)
	}
	if _, _, config, ok := Function(AppendConfig(nil, 0x09)); !ok || config != 9 {
		t.Errorf("%#02x, %v", config, ok)
	}
	for _, w := range [][]byte{nil, {1}, {0, 1}, {0x10, 1}, {0xf0, 1, 2}, append([]byte{1}, make([]byte, BufferBytes+1)...)} {
		if _, _, _, ok := Function(w); ok {
			t.Errorf("% x was taken", w)
		}
	}
}
