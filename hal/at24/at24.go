package at24

import "ringlight/hal"

// ProgramMicros is "Write Cycle Time", maximum.
const ProgramMicros = 5000

// Chip is a part of the series, "Memory Organization".
type Chip struct {
	Size      int
	PageBytes int
	addrBytes int
}

// Of is what a part of a board is.
func Of(part hal.Part) Chip {
	if part.Like() == hal.AT24C02 {
		return Chip{Size: 256, PageBytes: 8, addrBytes: 1}
	}
	return Chip{Size: 8192, PageBytes: 32, addrBytes: 2}
}

// AppendRead appends what to write before reading from addr on; a read may
// cross pages and wraps at the end.
func (c Chip) AppendRead(dst []byte, addr uint16) []byte {
	if c.addrBytes == 1 {
		return append(dst, byte(addr))
	}
	return append(dst, byte(addr>>8), byte(addr))
}

// AppendWrite appends the message that writes the part of data that fits into
// addr's page, and returns how much that is.
func (c Chip) AppendWrite(dst []byte, addr uint16, data []byte) ([]byte, int) {
	n := min(len(data), c.PageBytes-int(addr)%c.PageBytes)
	return append(c.AppendRead(dst, addr), data[:n]...), n
}

// Parse takes a message apart; ok: it holds a whole address.
func (c Chip) Parse(w []byte) (addr uint16, data []byte, ok bool) {
	if len(w) < c.addrBytes {
		return 0, nil, false
	}
	for _, b := range w[:c.addrBytes] {
		addr = addr<<8 | uint16(b)
	}
	return addr % uint16(c.Size), w[c.addrBytes:], true
}
