package at24

import (
	"bytes"
	"testing"
)

// A write must end at its page, whatever is asked.
func TestWritesStayInTheirPage(t *testing.T) {
	data := make([]byte, 100)
	for _, tc := range []struct {
		addr uint16
		take int
	}{{0, 32}, {31, 1}, {32, 32}, {0x130, 16}} {
		msg, n := AppendWrite(nil, tc.addr, data)
		if n != tc.take || len(msg) != 2+n || Address(msg) != tc.addr {
			t.Errorf("from %#x: %d bytes, message of %d, address %#x; want %d", tc.addr, n, len(msg), Address(msg), tc.take)
		}
	}
	if msg, n := AppendWrite(nil, 5, nil); n != 0 || !bytes.Equal(msg, []byte{0, 5}) {
		t.Errorf("nothing to write: % x, %d", msg, n)
	}
	if a := Address([]byte{0xFF, 0xFF}); a != Size-1 {
		t.Errorf("address beyond the chip: %#x, want it to wrap", a)
	}
}
