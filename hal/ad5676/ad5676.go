package ad5676

import (
	"errors"
	"fmt"
)

// Shape of the chip.
const (
	Channels   = 8
	FrameBytes = 3
)

// Commands, "Command Definitions": the high four bits of a frame. Those of one
// channel have it in the low four.
const (
	CmdNoop      = 0x00
	CmdInput     = 0x10 // + channel: write the input register
	CmdUpdate    = 0x20 // input registers of the channels in the mask to their outputs
	CmdBoth      = 0x30 // + channel: write the input register and the output
	CmdPower     = 0x40 // two bits per channel, "Power-Down Operation"
	CmdMask      = 0x50 // bit per channel: 1 leaves it out of an edge of LDAC
	CmdReset     = 0x60 // as after power-on
	CmdReference = 0x70 // "Internal Reference Setup"
	CmdDaisy     = 0x80 // "Daisy-Chain Operation"
	CmdReadback  = 0x90 // + channel: the output register comes with the next frame
	CmdAllInputs = 0xA0 // one code for every input register
	CmdAllBoth   = 0xB0 // and every output
	cmdLast      = CmdAllBoth
)

// AllChannels is every channel in a mask.
const AllChannels = 1<<Channels - 1

// ReferenceOff is the bit of CmdReference that turns the internal reference off.
const ReferenceOff = 1 << 0

// FullScaleMicrovolt is the width of the span with the internal reference and the
// GAIN pin high, "Transfer Function".
const FullScaleMicrovolt = 5_000_000

// AppendWrite appends one frame.
func AppendWrite(dst []byte, cmd byte, value uint16) []byte {
	return append(dst, cmd, byte(value>>8), byte(value))
}

// AppendRead appends the two frames that read a channel's output register: the
// value comes with the second.
func AppendRead(dst []byte, channel int) []byte {
	return append(dst, CmdReadback|byte(channel), 0, 0, CmdNoop, 0, 0)
}

// Value is the value in one frame, sent or received.
func Value(frame []byte) uint16 { return uint16(frame[1])<<8 | uint16(frame[2]) }

// Power is the field of a channel in the value of CmdPower; all but 0 is off.
func Power(value uint16, channel int) uint16 { return value >> (2 * channel) & 3 }

// Why a frame is refused.
var (
	errFrame   = errors.New("not a frame of 24 bits")
	errCommand = errors.New("no such command")
	errChannel = errors.New("no such channel")
)

// Parse takes a sent frame apart. A frame of another length does nothing in the
// chip; commands and channels that the tables do not have are reserved.
func Parse(frame []byte) (cmd byte, channel int, value uint16, err error) {
	if len(frame) != FrameBytes {
		return 0, 0, 0, fmt.Errorf("ad5676: %d bytes: %w", len(frame), errFrame)
	}
	cmd, channel, value = frame[0]&0xF0, int(frame[0]&0x0F), Value(frame)
	switch cmd {
	case CmdInput, CmdBoth, CmdReadback:
		if channel >= Channels {
			return cmd, channel, value, fmt.Errorf("ad5676: channel %d: %w", channel, errChannel)
		}
	}
	if cmd > cmdLast {
		return cmd, channel, value, fmt.Errorf("ad5676: command %#02x: %w", frame[0], errCommand)
	}
	return cmd, channel, value, nil
}
