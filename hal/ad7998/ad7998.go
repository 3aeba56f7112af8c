package ad7998

// Shape of the chip.
const (
	Channels = 8
	CodeFull = 1<<12 - 1
)

// Registers, by the lower half of the pointer byte.
const (
	RegResult = 0
	RegConfig = 2 // two bytes, high first: bits 11 to 4 are the channels of a sequence
	RegCycle  = 3
	NumRegs   = 16
)

// Of the pointer byte, with RegResult.
const (
	PointOne      = 0x80 // and the channel in bits 6 to 4: that one, again and again
	PointSequence = 0x70 // the channels of RegConfig in turn
	pointMask     = 0xF0
)

// ConfigFilter keeps glitches off the bus lines; the chip comes up with it.
const (
	ConfigFilter   = 1 << 3
	ConfigChannels = 4 // shift
	ConfigAll      = 0xFF<<ConfigChannels | ConfigFilter
	ResetConfig    = ConfigFilter
)

// ConversionMicros is what a conversion takes, typically.
const ConversionMicros = 2

// AppendConfig appends the message that writes the configuration.
func AppendConfig(dst []byte, value uint16) []byte {
	return append(dst, RegConfig, byte(value>>8), byte(value))
}

// AppendReadConfig appends what to write before reading it, two bytes.
func AppendReadConfig(dst []byte) []byte { return append(dst, RegConfig) }

// AppendReadOne appends what to write before reading conversions of one channel.
func AppendReadOne(dst []byte, channel uint8) []byte {
	return append(dst, PointOne|channel%Channels<<4|RegResult)
}

// AppendReadSequence appends what to write before reading the channels of the
// configuration in turn.
func AppendReadSequence(dst []byte) []byte { return append(dst, PointSequence|RegResult) }

// Pointer takes a pointer byte apart: the register, and of the result whether one
// channel is converted or a sequence.
func Pointer(p byte) (reg byte, channel uint8, one, sequence bool) {
	reg = p &^ pointMask
	one = p&PointOne != 0
	return reg, p >> 4 & 7, one, !one && p&pointMask == PointSequence
}

// Result is the code and channel of a result.
func Result(r []byte) (code uint16, channel uint8) {
	return (uint16(r[0])<<8 | uint16(r[1])) & CodeFull, r[0] >> 4 & 7
}

// PutResult writes a result.
func PutResult(r []byte, code uint16, channel uint8) {
	r[0], r[1] = channel<<4|byte(code>>8), byte(code)
}
