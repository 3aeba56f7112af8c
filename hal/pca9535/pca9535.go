package pca9535

// Registers, "Command byte"; + port.
const (
	RegInput    = 0 // read only: the levels of the pins
	RegOutput   = 2
	RegPolarity = 4
	RegConfig   = 6 // bit set: the pin is an input
	NumRegs     = 8
)

// Register values after power-on, "Registers": every pin is an input.
const (
	ResetOutput   = 0xFF
	ResetPolarity = 0x00
	ResetConfig   = 0xFF
)

// Next is the register to which the byte after one for reg goes, "Writing
// to the port registers":
// the other of the pair.
func Next(reg byte) byte { return reg ^ 1 }

// AppendWrite appends the message that writes one register.
func AppendWrite(dst []byte, reg, value byte) []byte { return append(dst, reg, value) }

// AppendWritePair appends the message that writes both ports of a pair; reg
// is the first.
func AppendWritePair(dst []byte, reg byte, value uint16) []byte {
	return append(dst, reg, byte(value), byte(value>>8))
}

// AppendRead appends what to write before reading from reg on.
func AppendRead(dst []byte, reg byte) []byte { return append(dst, reg) }

// Pair is the value of both ports in a reply of two bytes.
func Pair(reply []byte) uint16 { return uint16(reply[0]) | uint16(reply[1])<<8 }
