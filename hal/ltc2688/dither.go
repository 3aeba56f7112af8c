package ltc2688

// In dither mode a channel's output is the code of register A plus a sine whose
// amplitude is the code of register B, the low two bits left out, and whose phase
// goes on with every rising edge of the channel's source. "Dither".
const DitherAmplitudeMask = 0xFFFC

// Periods of the dither in edges of its source, bits 8:6 of the setting: 4 times
// 2 to the field.
const (
	Period4 = iota
	Period8
	Period16
	Period32
	Period64
	PeriodMask = 7 << PeriodShift
)

// Phases of the dither at the first edge, bits 10:9 of the setting: quarters of a
// period.
const (
	Phase0 = iota
	Phase90
	Phase180
	Phase270
	PhaseMask = 3 << PhaseShift
)

// Clocks is the period of a setting's dither in edges of its source; reserved
// fields count as the longest.
func Clocks(setting uint16) int { return 4 << min(setting&PeriodMask>>PeriodShift, Period64) }

// Quarter is the phase of a setting's dither in quarters of its period.
func Quarter(setting uint16) int { return int(setting & PhaseMask >> PhaseShift) }

// Source of a setting's toggle or dither.
func Source(setting uint16) int { return int(setting & SourceMask >> SourceShift) }
