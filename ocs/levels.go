package ocs

import (
	"math"

	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// fullCode is one more than the largest 16-bit result of an ADC.
const fullCode = 1 << 16

// level is the optical power that a code means on a channel whose full scale
// is given.
func level(code uint16, fullScale int32) proto.MilliDBm {
	if code == 0 {
		return hal.DarkMilliDBm
	}
	db := detmath.DB(float64(code) / fullCode)
	return proto.MilliDBm(math.Floor(float64(db*1000)+0.5)) + proto.MilliDBm(fullScale)
}

// sumLevel adds the powers of levels.
func sumLevel(levels []proto.MilliDBm) proto.MilliDBm {
	milliwatt := 0.0
	for _, p := range levels {
		if p != proto.NoPower {
			milliwatt += detmath.FromDB(float64(p) / 1000)
		}
	}
	if milliwatt <= 0 {
		return hal.DarkMilliDBm
	}
	return proto.MilliDBm(math.Floor(float64(detmath.DB(milliwatt)*1000) + 0.5))
}

// guardFullScale is the full scale of a channel of the guard ADC.
func guardFullScale(channel int) int32 {
	if channel >= hal.GuardTap1 {
		return hal.TapFullScaleMilliDBm
	}
	return hal.SumFullScaleMilliDBm
}
