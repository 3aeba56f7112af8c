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
	ConfigShutdown = 1 << 8
	ConfigExtended = 1 << 4
	ConfigAlert    = 1 << 5 // read only
)

// AppendRead appends what to write before reading the two bytes of reg.
func AppendRead(dst []byte, reg byte) []byte { return append(dst, reg&PointerMask) }

// AppendWrite appends the message that writes reg.
func AppendWrite(dst []byte, reg byte, value uint16) []byte {
	return append(dst, reg&PointerMask, byte(value>>8), byte(value))
}

// stepMicro is one step of the 12-bit reading in millionths of a degree.
const stepMicro = 62_500

// Millicelsius is the temperature in the two bytes of a reading (normal, not
// extended mode).
func Millicelsius(reply []byte) int32 {
	raw := int32(int16(uint16(reply[0])<<8|uint16(reply[1]))) >> 4
	return raw * stepMicro / 1000
}

// Reading is the register value of a temperature, clamped to what 12 bits
// hold.
func Reading(millicelsius int32) uint16 {
	step := int64(millicelsius) * 1000
	if step >= 0 {
		step = (step + stepMicro/2) / stepMicro
	} else {
		step = (step - stepMicro/2) / stepMicro
	}
	step = min(max(step, -2048), 2047)
	return uint16(int16(step) << 4)
}
