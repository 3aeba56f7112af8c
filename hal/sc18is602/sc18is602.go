package sc18is602

// Shape of the chip.
const (
	Selects     = 4
	BufferBytes = 200 // of one transfer
	// Oscillator is the internal one, in hertz; the SPI clock is a part of it.
	Oscillator = 7_372_000
	MaxHertz   = Oscillator / 4
	MinHertz   = Oscillator / 128
)

// funcConfigure sets clock and mode of all selects, "Configure SPI Interface". A function
// of 1 to 15 is the selects of a transfer, one bit each.
const funcConfigure = 0xF0

// Bits of the configuration; the two lowest choose the clock.
const (
	configCPHA = 1 << 2
	configCPOL = 1 << 3
)

var dividers = [...]int64{4, 16, 64, 128}

// Config is the configuration for a mode, CPOL and CPHA, and the fastest clock that is not
// over hz, but for the slowest there is.
func Config(mode uint8, hz int64) byte {
	c := byte(0)
	for int(c) < len(dividers)-1 && Oscillator/dividers[c] > hz {
		c++
	}
	if mode&1 != 0 {
		c |= configCPHA
	}
	if mode&2 != 0 {
		c |= configCPOL
	}
	return c
}

// AppendConfig appends the message that configures.
func AppendConfig(dst []byte, config byte) []byte { return append(dst, funcConfigure, config) }

// AppendTransfer appends the message that clocks data out to a select, and as much in.
// While it does, the chip does not acknowledge its address; what came in is read then.
func AppendTransfer(dst []byte, sel uint16, data []byte) []byte {
	return append(append(dst, 1<<(sel%Selects)), data...)
}
