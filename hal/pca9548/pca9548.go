package pca9548

import "ringlight/hal"

// Channels is the number of downstream segments.
const Channels = 8

// Select is the control byte that connects one channel alone, "Control
// register".
func Select(channel uint8) byte { return 1 << (channel % Channels) }

// AppendSelect appends the message that connects one channel alone.
func AppendSelect(dst []byte, channel uint8) []byte { return append(dst, Select(channel)) }

// AppendNone appends the message that connects none.
func AppendNone(dst []byte) []byte { return append(dst, 0) }

// Behind puts messages behind a channel of a mux, and lets go of it after them. At
// address 0 there is no mux: the kernel drives it, or the chips have a bus of their
// own.
func Behind(mux uint16, channel uint8, msgs ...hal.Msg) []hal.Msg {
	if mux == 0 {
		return msgs
	}
	out := make([]hal.Msg, 0, len(msgs)+2)
	out = append(out, hal.Msg{Addr: mux, W: AppendSelect(nil, channel)})
	return append(append(out, msgs...), hal.Msg{Addr: mux, W: AppendNone(nil)})
}

// Turn leads messages that Behind made to another channel; false: they are behind no mux,
// and should be, or the other way.
func Turn(mux uint16, channel uint8, msgs []hal.Msg) bool {
	first, last := &msgs[0], &msgs[len(msgs)-1]
	is := len(first.R) == 0 && len(last.R) == 0
	if mux == 0 || !is {
		return (mux == 0) != is
	}
	first.Addr, last.Addr, first.W = mux, mux, AppendSelect(first.W[:0], channel)
	return true
}

// Inner are the messages that Behind was given.
func Inner(mux uint16, msgs []hal.Msg) []hal.Msg {
	if mux == 0 {
		return msgs
	}
	return msgs[1 : len(msgs)-1]
}
