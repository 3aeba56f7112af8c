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

// UnmarshalText reads it; seven bits at most.
func (a *Addr) UnmarshalText(text []byte) error {
	digits, ok := strings.CutPrefix(string(text), "0x")
	n, err := strconv.ParseUint(digits, 16, 7)
	if !ok || err != nil {
		return fmt.Errorf("address %q: want \"0x00\" to \"0x7f\"", text)
	}
	*a = Addr(n)
	return nil
}
