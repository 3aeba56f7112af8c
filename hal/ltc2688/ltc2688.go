package ltc2688

// Shape of the chip.
const (
	Channels   = 16
	FrameBytes = 3
)

// Commands, "Command Codes" table. Those of one channel take + channel.
const (
	CmdCode           = 0x00 // + channel: write the code to input register A or B
	CmdSetting        = 0x10 // + channel: span and toggle or dither source
	CmdOffset         = 0x20 // + channel: offset adjustment, two's complement
	CmdGain           = 0x30 // + channel: gain adjustment
	CmdCodeUpdate     = 0x40 // + channel: write the code, update the channel
	CmdCodeUpdateAll  = 0x50 // + channel: write the code, update every channel
	CmdUpdate         = 0x60 // + channel: input registers to DAC registers
	CmdConfig         = 0x70 // "Configuration Register"
	CmdPowerDown      = 0x71 // mask of channels
	CmdABSelect       = 0x72 // bit per channel: code writes go to A (0) or B (1)
	CmdSoftwareToggle = 0x73 // bit per channel: level of the software source
	CmdToggleEnable   = 0x74 // bit per channel: toggle or dither in force
	CmdMux            = 0x75 // "Analog Multiplexer"
	CmdFault          = 0x76 // write clears the fault flags of the bits written
	CmdThermal        = 0x77 // read only, "Thermal Overload"
	CmdCodeAll        = 0x78 // write the code to every channel
	CmdCodeAllUpdate  = 0x79 // and update
	CmdSettingAll     = 0x7A // one setting for every channel
	CmdSettingAllUpd  = 0x7B // and update
	CmdUpdateAll      = 0x7C // every input register to its DAC register at once
	CmdNoop           = 0xFF
	ReadFlag          = 0x80
)

// Bits of the configuration register, "Configuration Register".
const (
	ConfigReset = 1 << 15 // clears itself; the chip needs ResetMicros
)

// ResetMicros is the time after a reset before the chip may be used, "Power-On
// and Reset".
const ResetMicros = 10_000

// Span of a channel, bits 2:0 of its setting, "SoftSpan".
const (
	Span5V         = 0 // 0 to 5 V
	Span10V        = 1 // 0 to 10 V
	SpanBipolar5V  = 2
	SpanBipolar10V = 3
	SpanBipolar15V = 4
	SpanMask       = 7
)

// Further fields of a channel's setting, "Channel Setting Register".
const (
	SettingOverrange = 1 << 3 // span x 1.05
	SourceShift      = 4      // toggle or dither source, bits 5:4
	SourceMask       = 3 << SourceShift
	PeriodShift      = 6 // dither period, bits 8:6
	PhaseShift       = 9 // dither phase, bits 10:9
	SettingDither    = 1 << 11
)

// Sources of a channel's toggle.
const (
	SourceSoftware = iota
	SourceTGP0
	SourceTGP1
	SourceTGP2
)

// Setting is the setting of a channel that toggles from source within span.
func Setting(span, source uint16) uint16 {
	return span&SpanMask | source<<SourceShift&SourceMask
}

// AppendWrite appends one frame that writes value under cmd.
func AppendWrite(dst []byte, cmd byte, value uint16) []byte {
	return append(dst, cmd, byte(value>>8), byte(value))
}

// AppendRead appends the two frames that read the register of cmd: the reply
// comes with the second.
func AppendRead(dst []byte, cmd byte) []byte {
	return append(dst, cmd|ReadFlag, 0, 0, CmdNoop, 0, 0)
}

// Value is the value in one frame of three bytes, sent or received.
func Value(frame []byte) uint16 { return uint16(frame[1])<<8 | uint16(frame[2]) }

// FullScaleMicrovolt is the width of a unipolar span with the internal
// reference, 0 for a span that is not unipolar.
func FullScaleMicrovolt(setting uint16) int64 {
	var fs int64
	switch setting & SpanMask {
	case Span5V:
		fs = 5_000_000
	case Span10V:
		fs = 10_000_000
	}
	if setting&SettingOverrange != 0 {
		fs += fs / 20
	}
	return fs
}

// Microvolt is the ideal output of code within a unipolar span.
func Microvolt(setting uint16, code uint16) int64 {
	return (int64(code)*FullScaleMicrovolt(setting) + 32768) / 65536
}
