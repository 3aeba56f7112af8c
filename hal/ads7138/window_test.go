package ads7138

import "testing"

// Goal: a window is read from its four registers, reset values included.
// Method: golden registers.
func TestWindowRegisters(t *testing.T) {
	for _, tc := range []struct {
		w Window
		r [WindowBytes]byte
	}{
		{Window{Low: 0, High: CodeFull, Count: 1}, [WindowBytes]byte{ResetHysteresis, ResetHigh, 0, 0}},
		{Window{Low: 0x123, High: 0xABC, Hysteresis: 40, Count: 4}, [WindowBytes]byte{0xC5, 0xAB, 0x33, 0x12}},
		{Window{Low: 7, High: 7, Hysteresis: MaxHysteresis, Count: MaxCount}, [WindowBytes]byte{0x7F, 0x00, 0x7F, 0x00}},
	} {
		for _, inside := range []bool{false, true} {
			tc.w.Inside = inside
			if w := ParseWindow(tc.r, inside); w != tc.w {
				t.Errorf("% x: %+v, want %+v", tc.r, w, tc.w)
			}
		}
	}
}
