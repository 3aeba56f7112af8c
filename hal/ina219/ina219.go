package ina219

// Registers, "Register Maps".
const (
	RegConfig      = 0
	RegShunt       = 1 // read only, signed, 10 uV a step
	RegBus         = 2 // read only, bits 15:3, 4 mV a step
	RegPower       = 3 // read only
	RegCurrent     = 4 // read only
	RegCalibration = 5
	numRegs        = 6
)

// NumRegs is the number of registers.
const NumRegs = numRegs

// Bits of the "Configuration Register".
const (
	ConfigReset   = 1 << 15
	ResetConfig   = 0x399F // 32 V, 320 mV, 12 bits, shunt and bus continuously
	GainShift     = 11     // 0 = 40 mV full scale, doubling to 320 mV
	GainMask      = 3 << GainShift
	ShuntADCShift = 3 // 8 + n averages 2^n conversions
	ShuntADCMask  = 15 << ShuntADCShift
	BusADCShift   = 7
	ModeBoth      = 7 // shunt and bus, continuous
)

// Bits of the "Bus Voltage Register".
const (
	BusOverflow = 1 << 0
	BusReady    = 1 << 1
)

// ShuntStepMicrovolt and BusStepMillivolt are one step of each register.
const (
	ShuntStepMicrovolt = 10
	BusStepMillivolt   = 4
)

// ConversionMicros is the time of one shunt conversion under config, "ADC
// Settings".
func ConversionMicros(config uint16) int64 {
	adc := config & ShuntADCMask >> ShuntADCShift
	if adc&8 == 0 {
		return [4]int64{84, 148, 276, 532}[adc&3]
	}
	return 532 << (adc & 7)
}

// FullScaleMicrovolt is the shunt voltage at which the reading saturates.
func FullScaleMicrovolt(config uint16) int64 { return 40_000 << (config & GainMask >> GainShift) }

// AppendRead appends what to write before reading the two bytes of reg.
func AppendRead(dst []byte, reg byte) []byte { return append(dst, reg) }

// AppendWrite appends the message that writes reg.
func AppendWrite(dst []byte, reg byte, value uint16) []byte {
	return append(dst, reg, byte(value>>8), byte(value))
}

// Value is the register value in two bytes of a reply.
func Value(reply []byte) uint16 { return uint16(reply[0])<<8 | uint16(reply[1]) }

// ShuntMicrovolt is the voltage that a shunt register value means.
func ShuntMicrovolt(value uint16) int64 { return int64(int16(value)) * ShuntStepMicrovolt }

// BusMillivolt is the voltage that a bus register value means.
func BusMillivolt(value uint16) int64 { return int64(value>>3) * BusStepMillivolt }
