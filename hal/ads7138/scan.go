package ads7138

import "ringlight/hal"

// ScanMessages make the chip at an address scan all its channels continuously, each
// newest result at hand.
func ScanMessages(addr uint16, oversample byte) []hal.Msg {
	sets := [...]struct{ reg, value byte }{
		{RegSequence, 0},
		{RegGeneral, GeneralAnalog | GeneralStats},
		{RegOversample, oversample},
		{RegAutoSel, 0xFF},
		{RegOpMode, OpModeAutonomous},
		{RegSequence, SequenceAuto | SequenceStart},
	}
	msgs := make([]hal.Msg, len(sets))
	buf := make([]byte, 0, 3*len(sets))
	for i, s := range sets {
		from := len(buf)
		buf = AppendWrite(buf, s.reg, s.value)
		msgs[i] = hal.Msg{Addr: addr, W: buf[from:len(buf):len(buf)]}
	}
	return msgs
}
