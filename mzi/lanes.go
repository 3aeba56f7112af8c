package mzi

import (
	"fmt"

	"periph.io/x/conn/v3/physic"
)

const (
	// chosen: 16 points over a period and a tenth, when the slope is unknown.
	firstPoints = 16
	// chosen: 10 when it is known.
	laterPoints = 10
	// A cell that works and has all the light to itself shows a contrast above
	// 0.99 (28 dB); one that does not work shows none. chosen: between.
	goodContrast = 0.8
	// chosen: -30 dBm; the weakest lane has thirty times that on its diodes
	// when the matrix spreads it.
	darkest = float64(physic.MicroWatt) / float64(physic.Watt)
)

// stepMZI1 sweeps MZI1 of each lane, alone in the module, on the sum of the
// loopback diodes: whatever the matrix does, it does it to all that goes
// inside.
func (s *Search) stepMZI1() bool {
	if s.step > 0 && !s.foundLane(CellMZI1+s.step-1, PhaseCross) || s.step == s.cfg.Lanes {
		return s.who.on && s.who.next(s)
	}
	s.step++
	return s.scan(CellMZI1+s.step-1, firstPoints, seeLoop, s.step-1, 0)
}

// stepMZI2 sweeps MZI2 of each lane on the Tx taps, MZI1 being external.
func (s *Search) stepMZI2() bool {
	if s.step > 0 {
		lane := s.step - 1
		if !s.foundLane(CellMZI2+lane, PhaseCross) {
			return s.who.on && s.who.next(s)
		}
		s.heat(CellMZI1+lane, 0)
	}
	if s.step == s.cfg.Lanes {
		return false
	}
	lane := s.step
	s.aim(CellMZI1+lane, PhaseBar)
	s.step++
	return s.scan(CellMZI2+lane, firstPoints, seeSplit, lane, 0)
}

// foundLane judges the sweep of a cell that has a lane's light to itself, and
// lets the heater cool again.
func (s *Search) foundLane(k int, top float64) bool {
	f := &s.sweep.fringe
	light := f.Mean
	if k >= CellMZI2 { // its fringe is a share
		light = s.sweep.sample.seen(seeTaps, 0, &s.result.Dark)
		s.taps[k-CellMZI2] = light
	}
	switch {
	case light < darkest:
		s.fail(k, NoLight, fmt.Sprintf("%.1f uW", 1e6*light))
		return false
	case f.Contrast() < goodContrast:
		s.who.begin(s, fmt.Sprintf("contrast %.2f", f.Contrast()))
		return false
	}
	s.learn(k, f, top)
	s.quiet = max(s.quiet, s.sweep.pts.off(f)/f.Swing)
	ok := s.reach(k, PhaseCross) && s.reach(k, PhaseBar)
	s.heat(k, 0)
	return ok
}
