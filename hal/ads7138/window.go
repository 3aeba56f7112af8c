package ads7138

import (
	"errors"
	"fmt"
)

// Window is the digital window comparator of one channel, "Digital Window
// Comparator". Thresholds are codes of twelve bits.
type Window struct {
	Low, High uint16
	// Hysteresis is how far back within the window a result must come before the
	// next one outside it counts anew: in codes, a multiple of HysteresisStep up to
	// 15 of them.
	Hysteresis uint16
	// Count is how many results in a row must lie outside, 1 to 16.
	Count int
	// Inside turns it round: results inside the window are the events.
	Inside bool
}

// Limits of a Window.
const (
	HysteresisStep = 8 // the field is the upper four of seven bits
	MaxHysteresis  = 15 * HysteresisStep
	MaxCount       = 16
)

// ErrWindow is a window that the chip has no registers for.
var ErrWindow = errors.New("no such window")

// WindowBytes is the number of registers of one channel's window.
const WindowBytes = 4

// Reset values of a channel's window: from 0 to full scale, no hysteresis, one
// hit.
const (
	ResetHysteresis = 0xF0
	ResetHigh       = 0xFF
)

// WindowReg is the first register of a channel's window.
func WindowReg(channel int) byte { return RegThresholds + WindowBytes*byte(channel) }

// Registers are the four registers of a window: hysteresis and low bits of the
// upper threshold, its high bits, count and low bits of the lower threshold, its
// high bits. Inside is a bit of EVENT_RGN, beside them.
func (w Window) Registers() (r [WindowBytes]byte, err error) {
	switch {
	case w.High > CodeFull || w.Low > w.High:
		return r, fmt.Errorf("ads7138: thresholds %d and %d: want at most %d, low not above high: %w", w.Low, w.High, CodeFull, ErrWindow)
	case w.Hysteresis > MaxHysteresis || w.Hysteresis%HysteresisStep != 0:
		return r, fmt.Errorf("ads7138: hysteresis %d: want a multiple of %d up to %d: %w", w.Hysteresis, HysteresisStep, MaxHysteresis, ErrWindow)
	case w.Count < 1 || w.Count > MaxCount:
		return r, fmt.Errorf("ads7138: count %d: want 1 to %d: %w", w.Count, MaxCount, ErrWindow)
	}
	return [WindowBytes]byte{byte(w.High<<4) | byte(w.Hysteresis/HysteresisStep), byte(w.High >> 4), byte(w.Low<<4) | byte(w.Count-1), byte(w.Low >> 4)}, nil
}

// ParseWindow reads a channel's four registers; inside is its bit of EVENT_RGN.
func ParseWindow(r [WindowBytes]byte, inside bool) Window {
	return Window{
		High: uint16(r[1])<<4 | uint16(r[0]>>4), Hysteresis: uint16(r[0]&15) * HysteresisStep,
		Low: uint16(r[3])<<4 | uint16(r[2]>>4), Count: int(r[2]&15) + 1, Inside: inside,
	}
}

// AppendWindow appends the message that writes a channel's window.
func AppendWindow(dst []byte, channel int, w Window) ([]byte, error) {
	if channel < 0 || channel >= Channels {
		return dst, fmt.Errorf("ads7138: channel %d: want 0 to %d: %w", channel, Channels-1, ErrWindow)
	}
	r, err := w.Registers()
	if err != nil {
		return dst, err
	}
	return AppendWriteBlock(dst, WindowReg(channel), r[:]...), nil
}

// Bits of "ALERT_PIN_CFG Register".
const (
	AlertPushPull = 1 << 2 // else open drain
	AlertLow      = 0      // active low, level
	AlertHigh     = 1
	AlertPulseLow = 2
	AlertPulseHi  = 3
	AlertLogic    = 3
)

// AppendClearEvents appends the two messages' bytes that clear latched flags of
// the channels in the mask: written 1 to clear. EVENT_FLAG follows them.
func AppendClearEvents(dst []byte, high, low byte) (clearHigh, clearLow []byte) {
	dst = AppendWrite(dst, RegEventHigh, high)
	n := len(dst)
	dst = AppendWrite(dst, RegEventLow, low)
	return dst[:n:n], dst[n:]
}
