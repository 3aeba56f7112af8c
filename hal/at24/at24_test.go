package at24

import (
	"bytes"
	"testing"

	"ringlight/hal"
)

// A write must end at its page, whatever is asked, and a message is taken apart as it
// was put together.
func TestWritesStayInTheirPage(t *testing.T) {
	data := make([]byte, 100)
	for _, tc := range []struct {
		part hal.Part
		addr uint16
		take int
	}{
		{hal.AT24C64, 0, 32}, {hal.AT24C64, 31, 1}, {hal.AT24C64, 32, 32}, {hal.AT24C64, 0x130, 16},
		{hal.AT24C02, 0, 8}, {hal.AT24C02, 7, 1}, {hal.AT24C02, 0xF8, 8}, {hal.AT24C02, 0x85, 3},
	} {
		c := Of(tc.part)
		msg, n := c.AppendWrite(nil, tc.addr, data)
		addr, rest, ok := c.Parse(msg)
		if n != tc.take || len(rest) != n || addr != tc.addr || !ok {
			t.Errorf("%v from %#x: %d bytes, message of %d, address %#x; want %d", tc.part, tc.addr, n, len(msg), addr, tc.take)
		}
	}
	two, one := Of(hal.AT24C64), Of(hal.AT24C02)
	if msg, n := two.AppendWrite(nil, 5, nil); n != 0 || !bytes.Equal(msg, []byte{0, 5}) {
		t.Errorf("nothing to write: % x, %d", msg, n)
	}
	if msg := one.AppendRead(nil, 0x1A5); !bytes.Equal(msg, []byte{0xA5}) {
		t.Errorf("one address byte: % x", msg)
	}
	if a, _, _ := two.Parse([]byte{0xFF, 0xFF}); int(a) != two.Size-1 {
		t.Errorf("address beyond the chip: %#x, want it to wrap", a)
	}
	if _, _, ok := two.Parse([]byte{1}); ok {
		t.Error("half an address was taken")
	}
}
