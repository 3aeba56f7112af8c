package hal

// What a driver of the default board (`kind: chips`) must know of its
// analogue part. chosen: see the board page; none is a datasheet figure.
const (
	// An ADC code of full scale means this optical power, in thousandths of a
	// dBm. A lane diode sees one lane; a half-sum adds four lanes' receive
	// diodes; a tap adds the eight lanes' light in the waveguide of its path,
	// the tap's own ratio allowed for.
	LaneFullScaleMilliDBm = 3000
	SumFullScaleMilliDBm  = 9000
	TapFullScaleMilliDBm  = 9000

	// DarkMilliDBm is what a code of zero means: less than half a step of twelve
	// bits below any full scale in use.
	DarkMilliDBm = -40_000

	// LOS comparators, per lane: a half-sum is compared with four times this.
	LOSAssertMilliDBm = -16000
	LOSClearMilliDBm  = -14000

	// The heater rail's shunt, in front of all three DACs of a module; the
	// chips themselves draw a constant current besides the heaters'.
	RailShuntMilliohm = 500

	// What a heater and a module may take. The guard of the driver clamps
	// here, and a correct driver is never stopped by anything else.
	HeaterMaxMillivolt   = 8500
	HeaterMaxMicroampere = 10_000
	HeaterMaxMicrowatt   = 60_000
	ModuleMaxMicrowatt   = 2_000_000
	HeaterNominalOhm     = 1000

	// Codes of heaters, in calibrations and on the pages of CMIS modules, are
	// steps of this by 65536, whichever DAC makes the voltage.
	HeaterFullScaleMicrovolt = 10_000_000

	// What the board puts behind each output of an AD5676R.
	AD5676RStageGain = 2
)

// HeaterCode is the code nearest to a voltage; what is outside is clamped.
func HeaterCode(microvolt int64) uint16 {
	code := (max(microvolt, 0)*65536 + HeaterFullScaleMicrovolt/2) / HeaterFullScaleMicrovolt
	return uint16(min(code, 65535))
}

// HeaterMicrovolt is the voltage that a code stands for.
func HeaterMicrovolt(code uint16) int64 {
	return (int64(code)*HeaterFullScaleMicrovolt + 32768) / 65536
}
