package ads7138

import (
	"bytes"
	"errors"
	"testing"
)

// Goal: a window has the golden registers and comes back from them; what the chip
// has no registers for is refused.
// Method: a table with both directions; a twin beyond each limit.
func TestWindowRegisters(t *testing.T) {
	for _, tc := range []struct {
		w Window
		r [WindowBytes]byte
	}{
		{Window{Low: 0, High: CodeFull, Count: 1}, [WindowBytes]byte{ResetHysteresis, ResetHigh, 0, 0}},
		{Window{Low: 0x123, High: 0xABC, Hysteresis: 40, Count: 4}, [WindowBytes]byte{0xC5, 0xAB, 0x33, 0x12}},
		{Window{Low: 7, High: 7, Hysteresis: MaxHysteresis, Count: MaxCount}, [WindowBytes]byte{0x7F, 0x00, 0x7F, 0x00}},
	} {
		r, err := tc.w.Registers()
		if err != nil || r != tc.r || ParseWindow(tc.r, false) != tc.w {
			t.Errorf("%+v: registers % x, %v; back %+v", tc.w, r, err, ParseWindow(tc.r, false))
		}
		msg, err := AppendWindow(nil, 3, tc.w)
		if err != nil || !bytes.Equal(msg, append([]byte{OpWriteBlock, 0x2C}, tc.r[:]...)) {
			t.Errorf("message % x, %v", msg, err)
		}
	}
	good := Window{Low: 1, High: 2, Count: 1}
	for name, spoil := range map[string]func(*Window){ // any order: independent cases
		"low above high":  func(w *Window) { w.Low = 3 },
		"beyond 12 bits":  func(w *Window) { w.High = CodeFull + 1 },
		"odd hysteresis":  func(w *Window) { w.Hysteresis = 4 },
		"much hysteresis": func(w *Window) { w.Hysteresis = MaxHysteresis + HysteresisStep },
		"no count":        func(w *Window) { w.Count = 0 },
		"long count":      func(w *Window) { w.Count = MaxCount + 1 },
	} {
		w := good
		spoil(&w)
		if _, err := AppendWindow(nil, 0, w); !errors.Is(err, ErrWindow) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, ch := range []int{-1, Channels} {
		if _, err := AppendWindow(nil, ch, good); !errors.Is(err, ErrWindow) {
			t.Errorf("channel %d: %v", ch, err)
		}
	}
	high, low := AppendClearEvents(nil, 0x81, 0x0F)
	if !bytes.Equal(high, []byte{OpWrite, 0x1A, 0x81}) || !bytes.Equal(low, []byte{OpWrite, 0x1C, 0x0F}) {
		t.Errorf("clear: % x, % x", high, low)
	}
}

// FuzzWindow: any registers are a window, and a window that is accepted comes
// back.
func FuzzWindow(f *testing.F) {
	f.Add([]byte{0xC5, 0xAB, 0x33, 0x12})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < WindowBytes {
			return
		}
		r := [WindowBytes]byte(b[:WindowBytes])
		w := ParseWindow(r, false)
		if w.Low > w.High {
			if _, err := w.Registers(); !errors.Is(err, ErrWindow) {
				t.Errorf("%+v: %v", w, err)
			}
			return
		}
		if got, err := w.Registers(); err != nil || got != r {
			t.Errorf("% x is %+v, which is % x, %v", r, w, got, err)
		}
	})
}
