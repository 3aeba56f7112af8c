package diode

import (
	"ringlight/hal"
	"ringlight/hal/ad7998"
	"ringlight/hal/ads7138"
)

// The AD7998 converts while it is read, and averages nothing: a reading is as many
// conversions as are to be averaged, of one channel or of all in turn.

// sarAverage bounds the binary logarithm of conversions in a reading: all channels are
// then 512 bytes, 12 ms at 400 kHz, half of what a bus may take for one message.
const sarAverage = 5

func (m Meter) isSAR() bool { return m.hw.Diodes == hal.AD7998 }

func (m Meter) sarConfig(adc Which) hal.Msg {
	return hal.Msg{Addr: m.addr(adc), W: ad7998.AppendConfig(nil, ad7998.ConfigAll)}
}

func (m Meter) sarState(adc Which) []hal.Msg {
	return []hal.Msg{{Addr: m.addr(adc), W: ad7998.AppendReadConfig(nil), R: make([]byte, 2)}}
}

func sarReady(state []hal.Msg) bool {
	return uint16(state[0].R[0])<<8|uint16(state[0].R[1]) == ad7998.ConfigAll
}

// askSAR fills in the buffers of a reading.
func (x *Reading) askSAR(n int, average byte) {
	bytes := 2 << min(average, sarAverage)
	if n == 1 {
		x.w = ad7998.AppendReadOne(x.w[:0], x.meter.sense(x.adc, x.first).Channel)
	} else {
		x.w = ad7998.AppendReadSequence(x.w[:0])
		bytes *= Channels
	}
	x.room(bytes)
}

// sarBlock averages what was converted. Each result names its channel.
func (x *Reading) sarBlock() []byte {
	var sum, count [Channels]uint32
	for at := 0; at+1 < len(x.r); at += 2 {
		code, ch := ad7998.Result(x.r[at:])
		sum[ch] += uint32(code)
		count[ch]++
	}
	for i := range x.n {
		ch := x.meter.sense(x.adc, x.first+i).Channel
		code := uint32(0)
		if count[ch] > 0 {
			code = sum[ch] * (FullCode / (ads7138.CodeFull + 1)) / count[ch]
		}
		x.block[2*i], x.block[2*i+1] = byte(code), byte(code>>8)
	}
	return x.block[:2*x.n]
}
