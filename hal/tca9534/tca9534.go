package tca9534

// Registers, "Register Map".
const (
	RegInput    = 0 // read only: the levels of the pins
	RegOutput   = 1
	RegPolarity = 2
	RegConfig   = 3 // bit set: the pin is an input
	NumRegs     = 4
)

// Register values after power-on, "Register Descriptions": every pin is an input.
const (
	ResetOutput   = 0xFF
	ResetPolarity = 0x00
	ResetConfig   = 0xFF
)

// AppendWrite appends the message that writes one register.
func AppendWrite(dst []byte, reg, value byte) []byte { return append(dst, reg, value) }

// AppendRead appends what to write before reading one register.
func AppendRead(dst []byte, reg byte) []byte { return append(dst, reg) }
