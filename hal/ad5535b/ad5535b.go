package ad5535b

import (
	"errors"
	"fmt"

	"ringlight/hal"
)

// Shape of the chip, "Features".
const (
	Channels    = 32
	CodeBits    = 14
	CodeFull    = 1<<CodeBits - 1
	AddressBits = 5
	FrameBits   = AddressBits + CodeBits
	// FrameBytes is a frame in whole bytes of a SPI controller: the 19 bits
	// first, then five that the chip ignores.
	FrameBytes = 3
	// MaxHertz is the fastest clock, "Timing Characteristics".
	MaxHertz = 30_000_000
	// UpdateHertz is how often channels may be written, "Features": a frame
	// with its pause of the chip select must take longer.
)

// The full scale is 50 times the reference, which is 1 to 4 V, "REF_IN".
const (
	ReferenceGain = 50
)

const pad = 8*FrameBytes - FrameBits

// ErrShort is a frame that ends before its nineteenth bit; the chip drops it.
var ErrShort = errors.New("ad5535b: frame shorter than 19 bits")

// AppendWrite appends the frame that puts code on a channel. Both are data of
// the driver's own, so one out of range is a broken invariant and panics: what
// went out instead could never be read back.
func AppendWrite(dst []byte, channel int, code uint16) []byte {
	if channel < 0 || channel >= Channels || code > CodeFull {
		panic(fmt.Sprintf("ad5535b: channel %d code %d: the chip has %d channels of %d bits", channel, code, Channels, CodeBits))
	}
	v := (uint32(channel)<<CodeBits | uint32(code)) << pad
	return append(dst, byte(v>>16), byte(v>>8), byte(v))
}

// Decode is what the chip takes from the bytes clocked in while its select was
// low: the first 19 bits.
func Decode(frame []byte) (channel int, code uint16, err error) {
	if 8*len(frame) < FrameBits {
		return 0, 0, fmt.Errorf("%w: %d: %w", ErrShort, 8*len(frame), hal.ErrOutOfRange)
	}
	v := (uint32(frame[0])<<16 | uint32(frame[1])<<8 | uint32(frame[2])) >> pad
	return int(v >> CodeBits), uint16(v & CodeFull), nil
}

// Microvolt is the output for a code with a reference in millivolts.
func Microvolt(code uint16, referenceMillivolt int64) int64 {
	return int64(code) * ReferenceGain * referenceMillivolt * 1000 / (1 << CodeBits)
}
