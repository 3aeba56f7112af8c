package ads7138

import "ringlight/hal"

// ScanMessages make the chip at an address scan all its channels for ever, each
// newest result at hand; buf holds their bytes.
func ScanMessages(addr uint16, oversample byte) []hal.Msg {
	buf := make([]byte, 0, 32)
	var msgs []hal.Msg
	for _, s := range [...]struct{ reg, value byte }{
		{RegSequence, 0},
		{RegGeneral, GeneralAnalog | GeneralStats},
		{RegOversample, oversample},
		{RegAutoSel, 0xFF},
		{RegOpMode, OpModeAutonomous},
		{RegSequence, SequenceAuto | SequenceStart},
	} {
		from := len(buf)
		buf = AppendWrite(buf, s.reg, s.value)
		msgs = append(msgs, hal.Msg{Addr: addr, W: buf[from:len(buf):len(buf)]})
	}
	return msgs
}
