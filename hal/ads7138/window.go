package ads7138

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

// ParseWindow reads a channel's four registers: hysteresis and low bits of the
// upper threshold, its high bits, count and low bits of the lower threshold, its
// high bits. inside is its bit of EVENT_RGN, beside them.
func ParseWindow(r [WindowBytes]byte, inside bool) Window {
	return Window{
		High: uint16(r[1])<<4 | uint16(r[0]>>4), Hysteresis: uint16(r[0]&15) * HysteresisStep,
		Low: uint16(r[3])<<4 | uint16(r[2]>>4), Count: int(r[2]&15) + 1, Inside: inside,
	}
}

// Bits of "ALERT_PIN_CFG Register".
const (
	AlertLow   = 0 // active low, level
	AlertLogic = 3
)
