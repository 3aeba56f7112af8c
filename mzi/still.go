package mzi

import "time"

// stillness is the state of the drift stage: every cell is read at the steepest
// of its fringe, where a change of its phase is a change of light at first
// order, again and again, with a rest between two rounds.
type stillness struct {
	round, cell int
	home, steep [Cells]float64 // heat: where the cells stand, and are looked at
	last        [Cells]float64 // watt
	sum         [Cells]float64 // squares of the steps between rounds, radian
}

const (
	// chosen: a second between two looks and twelve steps. A cell that walks by
	// 5 mrad/sqrt(s), the planted fault of the board page, makes 300 mrad^2 of
	// squares in that; one that stands makes 2 to 10 out of the converter's noise.
	// One walking cell in 4,000 makes less than a seventh of its mean.
	stillRounds = 13
	stillRest   = time.Second
	stillMost   = 40e-6 // radian^2
)

// stepStill looks at one cell after the other. It runs behind the crosstalk
// stage, with the matrix in cleanSetting and MZI1 internal.
func (s *Search) stepStill() bool {
	l := &s.still
	if s.step > 0 {
		s.lookedAt(l.cell)
		if l.cell++; l.cell == Cells {
			l.cell = 0
			l.round++
		}
		if l.round == stillRounds {
			return s.stoodStill()
		}
	}
	s.step++
	if l.cell == 0 && l.round > 0 {
		s.pause = stillRest
	}
	k := l.cell
	if s.swing[k] < darkest {
		s.fail(k, NoLight) // a blind diode
		return false
	}
	if l.round == 0 {
		// Every round goes through the same heats, or the aim's own steps would
		// be taken for drift.
		if k == 0 {
			l.home = s.u
		}
		s.expose(k)
		s.aim(k, s.topPhase(k)+PhaseBar/2)
		l.steep[k] = s.u[k]
	} else {
		s.expose(k)
		s.heat(k, l.steep[k])
	}
	switch {
	case k >= CellMatrix:
		line := s.lineThrough(k-CellMatrix, nil)
		s.drive.Lane = line.Out
		s.sweep.lane = line.Out
		return s.once(seeStill, ReadLane, 1<<line.In)
	case k >= CellMZI2:
		return s.once(seeStill, ReadTaps, 1<<(k-CellMZI2))
	}
	// All that goes inside ends on one diode: the others would only add noise.
	s.sweep.lane = cleanSetting.Trace(k - CellMZI1).Out
	s.drive.Lane = s.sweep.lane
	return s.once(seeStill, ReadLane, 1<<(k-CellMZI1))
}

// lookedAt takes the reading of a cell and brings the cell back.
func (s *Search) lookedAt(k int) {
	l, w := &s.still, &s.sweep
	look := seeLane
	if k >= CellMZI2 && k < CellMatrix {
		look = seeTaps
	}
	watt := w.sample.watts(look, w.lane)
	if l.round > 0 {
		step := (watt - l.last[k]) / s.swing[k]
		l.sum[k] += float64(step * step)
	}
	l.last[k] = watt
	s.heat(k, l.home[k])
	if k >= CellMZI2 && k < CellMatrix {
		s.heat(k-CellMZI2+CellMZI1, l.home[k-CellMZI2+CellMZI1])
	}
}

// stoodStill ends the stage. Of several cells that did not, the worst is named.
func (s *Search) stoodStill() bool {
	worst := 0
	for k, x := range s.still.sum {
		if x > s.still.sum[worst] {
			worst = k
		}
	}
	if s.still.sum[worst] > stillMost {
		s.fail(worst, Drifting)
	}
	return false
}
