package boardfile

import (
	"fmt"
	"strconv"
	"strings"
)

// Addr is an I2C address, written "0x20" as datasheets do.
type Addr uint16

// MarshalText writes it.
func (a Addr) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%02x", uint16(a)), nil }

// noAddr is what no part has.
const noAddr = 0xffff

// UnmarshalText reads it. What is none becomes one that no part has: a decoder cannot
// say in which field it stood, the check of the board can.
func (a *Addr) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), "0x")
	n, err := strconv.ParseUint(digits, 16, 7)
	if *a = Addr(n); !ok || err != nil {
		*a = noAddr
	}
	return nil
}
