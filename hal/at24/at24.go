package at24

// Shape of the chip, "Memory Organization".
const (
	Size          = 8192
	PageBytes     = 32
	ProgramMicros = 5000 // "Write Cycle Time", maximum
)

// AppendRead appends what to write before reading from addr on; a read may
// cross pages and wraps at the end.
func AppendRead(dst []byte, addr uint16) []byte { return append(dst, byte(addr>>8), byte(addr)) }

// AppendWrite appends the message that writes the part of data that fits into
// addr's page, and returns how much that is.
func AppendWrite(dst []byte, addr uint16, data []byte) ([]byte, int) {
	n := min(len(data), PageBytes-int(addr)%PageBytes)
	return append(AppendRead(dst, addr), data[:n]...), n
}

// Address is the address in the first two bytes of a message.
func Address(w []byte) uint16 { return (uint16(w[0])<<8 | uint16(w[1])) % Size }
