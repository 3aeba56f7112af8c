package mzi

import "periph.io/x/conn/v3/physic"

// rail is the state of the resistance sweep: first the current of the chips
// alone, then each heater at a low voltage, at which a short does no harm, and
// at a high one, which measures.
type rail struct {
	base physic.ElectricCurrent
	high bool
}

const (
	// chosen: 0.5 mA through a good heater, at most 10 mA through one of 50 ohm.
	railLow = 500 * physic.MilliVolt
	// chosen: 36 mW at 1 kOhm; the sensor's step of 20 uA is a third of a per
	// cent there.
	railHigh = 6 * physic.Volt

	// A good heater has 1 kOhm within five per cent. chosen: half and double
	// are beyond any good one and far from open or short.
	ohmMin = 500
	ohmMax = 2000
	// chosen: distance from the limits of a heater, for the error of its
	// resistance.
	margin = 0.975
)

func (s *Search) stepRail() bool {
	k := (s.step - 1) / 2
	switch {
	case s.step == 0:
		for i := range s.max {
			s.max[i] = Square(railHigh)
		}
		s.step++
		return s.once(seeRail, ReadRail, 0)
	case s.step == 1:
		s.rail.base = s.sweep.sample.Current
		s.heat(0, Square(railLow))
		s.step++
		return s.once(seeRail, ReadRail, 0)
	}
	k = (s.step - 2) / 2
	ampere := float64(s.sweep.sample.Current-s.rail.base) / float64(physic.Ampere)
	if s.step&1 == 0 {
		// The low voltage: more than twice too little or too much.
		volt := float64(railLow) / float64(physic.Volt)
		switch {
		case ampere < volt/ohmMax:
			s.fail(k, Open)
		case ampere > volt/ohmMin:
			s.fail(k, Short)
		}
		s.heat(k, Square(railHigh))
	} else {
		volt := float64(railHigh) / float64(physic.Volt)
		switch {
		case ampere < volt/ohmMax:
			s.fail(k, Open)
		case ampere > volt/ohmMin:
			s.fail(k, Short)
		default:
			s.limit(k, volt/ampere)
		}
		s.heat(k, 0)
		if k+1 == Cells {
			return false
		}
		s.heat(k+1, Square(railLow))
	}
	if s.err != nil {
		return false
	}
	s.step++
	return s.once(seeRail, ReadRail, 0)
}

// limit notes a heater's resistance and with it the most heat that it may
// take.
func (s *Search) limit(k int, ohm float64) {
	s.m.Cells[k].Ohm = ohm
	l := Limits{s.cfg.MaxVoltage, s.cfg.MaxCurrent, s.cfg.MaxPower}
	s.max[k] = l.MostHeat(ohm)
}
