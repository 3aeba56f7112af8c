package tmp102

// Registers, "Pointer Register": the two low bits of the pointer byte.
const (
	RegTemperature = 0 // read only
	RegConfig      = 1
	RegLow         = 2
	RegHigh        = 3
	PointerMask    = 3
)

// Register values after power-on, "Configuration Register" and "High- and
// Low-Limit Registers".
const (
	ResetConfig = 0x60A0
	ResetLow    = 0x4B00 // 75 C
	ResetHigh   = 0x5000 // 80 C
)

// Bits of the "Configuration Register".
const (
	ConfigExtended = 1 << 4
)

// AppendRead appends what to write before reading the two bytes of reg.
func AppendRead(dst []byte, reg byte) []byte { return append(dst, reg&PointerMask) }

// AppendWrite appends the message that writes reg.
func AppendWrite(dst []byte, reg byte, value uint16) []byte {
	return append(dst, reg&PointerMask, byte(value>>8), byte(value))
}

// stepMicro is one step of the reading in millionths of a degree.
const stepMicro = 62_500

// readingExtended, bit 0 of the "Temperature Register", is set in extended mode:
// 13 bits instead of 12, to 150 degrees. Another host, such as Linux's driver, may
// have left a chip in it.
const readingExtended = 1 << 0

// Millicelsius is the temperature in the two bytes of a reading, of either mode.
func Millicelsius(reply []byte) int32 {
	raw := int32(int16(uint16(reply[0])<<8 | uint16(reply[1])))
	shift := 4
	if reply[1]&readingExtended != 0 {
		shift = 3
	}
	return raw >> shift * stepMicro / 1000
}

// Reading is the register value of a temperature in the mode that a
// configuration asks for, clamped to what its bits hold.
func Reading(millicelsius int32, config uint16) uint16 {
	step := int64(millicelsius) * 1000
	if step >= 0 {
		step = (step + stepMicro/2) / stepMicro
	} else {
		step = (step - stepMicro/2) / stepMicro
	}
	if config&ConfigExtended != 0 {
		return uint16(int16(min(max(step, -4096), 4095))<<3) | readingExtended
	}
	return uint16(int16(min(max(step, -2048), 2047)) << 4)
}
