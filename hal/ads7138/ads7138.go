package ads7138

// Shape of the chip.
const (
	Channels  = 8
	CodeBits  = 12
	CodeFull  = 1<<CodeBits - 1
	FirstAddr = 0x10 // "Device Address": 0x10 to 0x17
	LastAddr  = 0x17
)

// Opcodes, "Opcodes for Commands".
const (
	OpWrite      = 0x08 // one register
	OpRead       = 0x10 // one register
	OpSetBits    = 0x18 // register |= data
	OpClearBits  = 0x20 // register &^= data
	OpWriteBlock = 0x28 // consecutive registers
	OpReadBlock  = 0x30 // consecutive registers
)

// Registers, "Register Map".
const (
	RegStatus      = 0x00 // SYSTEM_STATUS
	RegGeneral     = 0x01 // GENERAL_CFG
	RegOversample  = 0x03 // OSR_CFG
	RegOpMode      = 0x04 // OPMODE_CFG
	RegGPIValue    = 0x0D // GPI_VALUE
	RegSequence    = 0x10 // SEQUENCE_CFG
	RegChannelSel  = 0x11 // CHANNEL_SEL
	RegAutoSel     = 0x12 // AUTO_SEQ_CH_SEL
	RegAlertSel    = 0x14 // ALERT_CH_SEL
	RegAlertPin    = 0x17 // ALERT_PIN_CFG
	RegEvent       = 0x18 // EVENT_FLAG
	RegEventHigh   = 0x1A // EVENT_HIGH_FLAG
	RegEventLow    = 0x1C // EVENT_LOW_FLAG
	RegEventRegion = 0x1E // EVENT_RGN
	RegThresholds  = 0x20 // + 4*channel: hysteresis, high, count, low
	RegMax         = 0x60 // + 2*channel: LSB, MSB
	RegMin         = 0x80 // + 2*channel
	RegRecent      = 0xA0 // + 2*channel
)

// Bits of "SYSTEM_STATUS Register".
const (
	StatusBrownOut = 1 << 0 // set by power-on; written 1 to clear
	StatusRunning  = 1 << 6 // SEQ_STATUS
	ResetStatus    = 1<<7 | StatusBrownOut
)

// Bits of "GENERAL_CFG Register".
const (
	GeneralReset      = 1 << 0 // clears itself
	GeneralCalibrate  = 1 << 1 // clears itself
	GeneralAnalog     = 1 << 2 // CH_RST: every pin an analogue input
	GeneralComparator = 1 << 4 // DWC_EN
	GeneralStats      = 1 << 5 // STATS_EN: clears and keeps MAX, MIN, RECENT
)

// Bits of "OPMODE_CFG Register". Bits 3:0 divide the clock.
const (
	OpModeAutonomous = 1 << 5 // CONV_MODE: conversions run by themselves
	OpModeSlowClock  = 1 << 4 // OSC_SEL
	OpModeDivMask    = 0x0F
)

// Bits of "SEQUENCE_CFG Register".
const (
	SequenceAuto  = 1 << 0 // SEQ_MODE: the channels of AUTO_SEQ_CH_SEL in turn
	SequenceStart = 1 << 4 // SEQ_START
)

// MaxOversample is the largest OSR_CFG: 2^7 conversions averaged.
const MaxOversample = 7

// cycleQuarters is the time between two conversions in quarters of a
// microsecond for CLK_DIV 0 to 15 with the fast clock, "Oscillator
// and Timing Control".
var cycleQuarters = [16]uint32{4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768}

// CycleNanos is the time between two conversions under OPMODE_CFG; the slow
// clock is 32 times slower.
func CycleNanos(opmode byte) int64 {
	n := int64(cycleQuarters[opmode&OpModeDivMask]) * 250
	if opmode&OpModeSlowClock != 0 {
		n *= 32
	}
	return n
}

// AppendWrite appends the message that writes one register.
func AppendWrite(dst []byte, reg, value byte) []byte { return append(dst, OpWrite, reg, value) }

// AppendRead appends what to write before reading one register.
func AppendRead(dst []byte, reg byte) []byte { return append(dst, OpRead, reg) }

// AppendReadBlock appends what to write before reading registers from first
// on, as many as the read takes bytes.
func AppendReadBlock(dst []byte, first byte) []byte { return append(dst, OpReadBlock, first) }

// BlockBytes is the length of a read of all channels' RECENT, MAX or MIN.
const BlockBytes = 2 * Channels

// Code16 is the 16-bit result of a channel in a block read from channel 0 on:
// low byte first, left-aligned, so that without averaging the low four bits
// carry no result.
func Code16(block []byte, channel int) uint16 {
	return uint16(block[2*channel]) | uint16(block[2*channel+1])<<8
}
