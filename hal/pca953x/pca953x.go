package pca953x

import "ringlight/hal"

// Functions of registers.
const (
	Input    = 0 // read only: the levels of the pins
	Output   = 1
	Polarity = 2
	Config   = 3 // bit set: the pin is an input
	numFuncs = 4
)

// Register values after power-on: every pin is an input.
const (
	ResetOutput = 0xFF
	ResetConfig = 0xFF
)

// Chip is a part of the family.
type Chip struct {
	Ports byte
	shift byte // of a function in the register's number
	goOn  byte // bit of the command byte
}

// MostRegs of any part.
const MostRegs = numFuncs << 2

// Of is what a part of a board is.
func Of(part hal.Part) Chip {
	switch part.Like() {
	case hal.PCAL6524:
		return Chip{Ports: 3, shift: 2, goOn: 0x80}
	case hal.TCA9534:
		return Chip{Ports: 1}
	}
	return Chip{Ports: 2, shift: 1}
}

// TCA9534 is what lets a module's lasers shine, lane by lane.
var TCA9534 = Of(hal.TCA9534)

// Reg is the register of a function and a port.
func (c Chip) Reg(function, port byte) byte { return function<<c.shift + port }

// At is the function and port that a command byte names; a port that the part does
// not have is not there.
func (c Chip) At(cmd byte) (function, port byte) {
	reg := cmd &^ c.goOn
	return reg >> c.shift % numFuncs, reg & (1<<c.shift - 1)
}

// Next is the command byte that the byte after one is for.
func (c Chip) Next(cmd byte) byte {
	function, port := c.At(cmd)
	if c.goOn == 0 || cmd&c.goOn != 0 {
		port = (port + 1) % c.Ports
	}
	return cmd&c.goOn | c.Reg(function, port)
}

// AppendWrite appends the message that writes one port.
func (c Chip) AppendWrite(dst []byte, function, port, value byte) []byte {
	return append(dst, c.Reg(function, port), value)
}

// AppendWriteAll appends the message that writes all ports.
func (c Chip) AppendWriteAll(dst []byte, function byte, value uint32) []byte {
	dst = c.AppendRead(dst, function)
	for port := range c.Ports {
		dst = append(dst, byte(value>>(8*port)))
	}
	return dst
}

// AppendRead appends what to write before reading all ports.
func (c Chip) AppendRead(dst []byte, function byte) []byte {
	return append(dst, c.goOn|c.Reg(function, 0))
}

// Value is what all ports hold, of the reply to such a read.
func (c Chip) Value(reply []byte) (v uint32) {
	for port := range c.Ports {
		v |= uint32(reply[port]) << (8 * port)
	}
	return v
}
