package diode

import (
	"fmt"

	"ringlight/hal"
)

// Driver makes the bus work of one kind of ADC and reads its replies. It knows channels
// and not what hangs on them, and keeps nothing.
type Driver interface {
	// Scan makes it convert all its channels continuously, 1<<average conversions a result,
	// and Average changes that.
	Scan(addr uint16, average byte) []hal.Msg
	Average(addr uint16, average byte) hal.Msg
	// State asks how it stands, and Scanning says of the answers whether it is a scan
	// without averages.
	State(addr uint16) []hal.Msg
	Scanning(state []hal.Msg) bool
	// Ask appends to w what asks for results of channels, 1<<average conversions
	// averaged, and says how many bytes come back.
	Ask(w []byte, channels []uint8, average byte) (_ []byte, reply int)
	// Codes puts the results of these channels into block, sixteen bits each, low byte
	// first.
	Codes(block, reply []byte, channels []uint8)
	// Register finds a register by its name.
	Register(name string) (Register, bool)
	// Value is a register's value in its reply; channel is that of which it is a result
	// of sixteen bits, -1: of none.
	Value(r Register, reply []byte) uint32
	Result(r Register, v uint32) (channel int, code uint16)
	Read(r Register, addr uint16) hal.Msg
	Write(r Register, addr uint16, v byte) hal.Msg
}

// drivers by part; a part that is like another has that one's.
var drivers = map[hal.Part]Driver{hal.ADS7138: ads7138Driver{}, hal.AD7998: ad7998Driver{}}

// Add makes an ADC with registers of its own known to boards, and gives it its driver. It
// is for the start of a program, before a board is made.
func Add(data hal.PartData, d Driver) (hal.Part, error) {
	if data.Role != hal.RoleADC || data.Channels != Channels {
		return hal.NoPart, fmt.Errorf("diode: %q: %w: want an ADC of %d channels", data.Name, hal.ErrOutOfRange, Channels)
	}
	data.Driven = true
	part, err := hal.AddPart(data)
	if err == nil {
		drivers[part] = d
	}
	return part, err
}
