package cmis

import (
	"encoding/binary"
	"time"
)

// Pages of versatile diagnostic monitors, of which an OCSTrx has one group with one kind:
// the bit error ratio that each media lane receives before forward error correction.
const (
	PageMonitors      = 0x20 // two bytes each: threshold set and lane, kind
	PageSamples       = 0x24 // two bytes each
	PageMonitorLimits = 0x28 // eight bytes a set: high alarm, low alarm, high warning, low warning
	PageMonitorFlags  = 0x2C // four bits each, in that order from bit 0
	PageMonitorGroups = 0x2F
	VDMGroups         = 128 // less one
	VDMControl        = 144
	MonitorPreFEC     = 15 // media input, as it is now
)

// F16 is a ratio as samples have it: 11 bits of mantissa, above them 5 of the power of ten,
// less 24.
func F16(x float64) uint16 {
	exponent := uint16(24)
	for ; x > 2047 && exponent < 31; exponent++ {
		x /= 10
	}
	for ; x > 0 && x < 204 && exponent > 0; exponent-- {
		x *= 10
	}
	return exponent<<11 | uint16(min(x+0.5, 2047))
}

// A sample stands for MonitorBits of a lane, and is of a new light alone MonitorSettle after
// it came. chosen: modules take samples each second, of 1e11 bits.
const (
	MonitorBits   = 100_000_000_000
	MonitorSettle = 2 * time.Second
	// MonitorBytes is what MonitorRequests read of a module.
	MonitorBytes = 256
)

// MonitorRequests read what the samples are of, and the samples.
func MonitorRequests(samples []byte) []Request {
	return []Request{{Page: PageMonitors, Offset: 128, Data: samples[:128]}, {Page: PageSamples, Offset: 128, Data: samples[128:MonitorBytes]}}
}

// LaneSample is the pre-FEC bit error ratio of a lane as errors among MonitorBits; of a
// module that does not monitor it bits is 0.
func LaneSample(samples []byte, lane int) (errors, bits uint64) {
	for at := 0; at < 128; at += 2 {
		if int(samples[at]&0xF) != lane || samples[at+1] != MonitorPreFEC {
			continue
		}
		v := binary.BigEndian.Uint16(samples[128+at:])
		errors = uint64(v & 0x7FF)
		for e := int(v>>11) - 13; e != 0 && errors < MonitorBits; { // 1e11 of 10 to the power of -24
			if e > 0 {
				errors, e = errors*10, e-1
			} else {
				errors, e = errors/10, e+1
			}
		}
		return min(errors, MonitorBits), MonitorBits
	}
	return 0, 0
}
