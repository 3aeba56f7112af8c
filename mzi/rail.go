package mzi

import (
	"fmt"

	"periph.io/x/conn/v3/physic"
)

// rail is the state of the resistance sweep: first the current of the chips
// alone, then each heater at a low voltage, at which a short does no harm, and
// at a high one, which measures.
type rail struct {
	base physic.ElectricCurrent
	high float64 // volt
	cell int     // under way
}

const (
	// chosen: 0.5 mA through a heater of 1 kOhm, at most 10 mA through one of 50 ohm.
	railLow = 500 * physic.MilliVolt
	// chosen: what a heater is measured at, of the most that it may take; the first
	// look may be off by a tenth.
	railShare = 0.6
	// chosen: so many times over what its maker states a heater counts as open, and
	// so many times under it as a short.
	brokenTimes = 4
	// chosen: distance from the limits of a heater, for the error of its
	// resistance.
	margin = 0.975
)

func (s *Search) stepRail() bool {
	low := float64(railLow) / float64(physic.Volt)
	switch {
	case s.step == 0:
		for i := range s.max {
			s.max[i] = Square(railLow)
		}
		s.step++
		return s.once(seeRail, ReadRail, 0)
	case s.step == 1:
		s.rail.base = s.sweep.sample.Current
		s.heat(0, Square(railLow))
		s.step++
		return s.once(seeRail, ReadRail, 0)
	}
	k := s.rail.cell
	ampere := float64(s.sweep.sample.Current-s.rail.base) / float64(physic.Ampere)
	if s.step&1 == 0 {
		if s.broken(k, low, ampere) {
			return false
		}
		s.limit(k, clamp(low/ampere, s.cfg.LeastOhm, s.cfg.MostOhm))
		s.heat(k, float64(railShare*s.max[k]))
		s.rail.high = float64(s.where[k]) / float64(physic.Volt)
	} else {
		if s.broken(k, s.rail.high, ampere) {
			return false
		}
		ohm := s.rail.high / ampere
		if ohm < s.cfg.LeastOhm || ohm > s.cfg.MostOhm {
			s.fail(k, OddHeater, fmt.Sprintf("%.0f ohm, its maker states %.0f to %.0f", ohm, s.cfg.LeastOhm, s.cfg.MostOhm))
			return false
		}
		s.heat(k, 0)
		s.limit(k, ohm)
		if s.rail.cell = s.after(k); s.rail.cell == s.cells {
			return false
		}
		s.heat(s.rail.cell, Square(railLow))
	}
	s.step++
	return s.once(seeRail, ReadRail, 0)
}

// broken fails a heater that takes hardly any current, or far too much.
func (s *Search) broken(k int, volt, ampere float64) bool {
	figure := fmt.Sprintf("%.2f mA at %.1f V", 1000*ampere, volt)
	switch {
	case ampere < volt/(brokenTimes*s.cfg.MostOhm):
		s.fail(k, Open, figure)
	case ampere > volt*brokenTimes/s.cfg.LeastOhm:
		s.fail(k, Short, figure)
	}
	return s.err != nil
}

// limit notes a heater's resistance and with it the most heat that it may
// take.
func (s *Search) limit(k int, ohm float64) {
	s.m.Cells[k].Ohm = ohm
	l := Limits{s.cfg.MaxVoltage, s.cfg.MaxCurrent, s.cfg.MaxPower}
	s.max[k] = l.MostHeat(ohm)
}
