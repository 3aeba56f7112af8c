package pca9548

// Channels is the number of downstream segments.
const Channels = 8

// Select is the control byte that connects one channel alone, "Control
// register".
func Select(channel uint8) byte { return 1 << (channel % Channels) }

// AppendSelect appends the message that connects one channel alone.
func AppendSelect(dst []byte, channel uint8) []byte { return append(dst, Select(channel)) }

// AppendNone appends the message that connects none.
func AppendNone(dst []byte) []byte { return append(dst, 0) }
