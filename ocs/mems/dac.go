package mems

import (
	"fmt"

	"ringlight/hal"
	"ringlight/hal/ad5535b"
)

// DAC is the driver of a kind of mirror DAC.
type DAC struct {
	Frame uint8 // bytes
	// Write appends the frame that puts a code of fourteen bits, of hal.MirrorBias's scale,
	// on a channel.
	Write func(dst []byte, channel int, code uint16) []byte
}

// dacs by part; a part that is like another has that one's.
var dacs = map[hal.Part]DAC{hal.AD5535B: {ad5535b.FrameBytes, ad5535b.AppendWrite}}

// AddDAC makes a mirror DAC with frames of its own known to boards, and gives it its driver.
// It is for the start of a program, before a board is made.
func AddDAC(data hal.PartData, d DAC) (hal.Part, error) {
	if data.Role != hal.RoleMirrorDAC || data.Channels != hal.MirrorDACChannels || d.Frame == 0 || d.Write == nil {
		return hal.NoPart, fmt.Errorf("mems: %q: %w: want a mirror DAC of %d channels with a driver", data.Name, hal.ErrOutOfRange, hal.MirrorDACChannels)
	}
	data.Driven = true
	part, err := hal.AddPart(data)
	if err == nil {
		dacs[part] = d
	}
	return part, err
}
