package mzi

import (
	"fmt"
	"math"
	"time"
)

// stillness is the state of the drift stage: every cell is read at the steepest
// of its fringe, where a change of its phase is a change of light at first
// order, again and again, with a rest between two rounds. What is read is a share of
// all light, so that a laser may wander.
type stillness struct {
	round, cell int
	home, steep [Cells]float64 // heat: where the cells stand, and are looked at
	last        [Cells]float64
	off         [Cells]float64 // square of how sure the last was, radian
	sum         [Cells]float64 // squares of the steps between rounds, radian
	noise       [Cells]float64 // of which the readings' own
}

const (
	// chosen: a second between two looks and twelve steps. A cell that walks by
	// 5 mrad/sqrt(s), the planted fault of the board page, makes 300 mrad^2 of
	// squares in that; one that stands makes what its readings are off. One walking
	// cell in 4,000 makes less than a seventh of its mean.
	stillRounds = 13
	stillRest   = time.Second
	stillMost   = 40e-6 // radian^2
	stillWalk   = 28e-6 // of it without the readings' own
	// chosen: one cell in 10,000 that stands makes more than four times the mean of
	// its readings' own.
	stillNoise = 4
	// chosen: twelve steps of readings that sure make 6 mrad^2.
	stillSure     = 0.0005
	stillLeast    = 3
	stillReadings = 12
)

// stepStill looks at one cell after the other. It runs behind the crosstalk
// stage, with the matrix in its clean setting and MZI1 internal.
func (s *Search) stepStill() bool {
	l := &s.still
	if s.step > 0 {
		s.lookedAt(l.cell)
		if l.cell = s.after(l.cell); l.cell == s.cells {
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
	if l.round == 0 {
		// Every round goes through the same heats, or the aim's own steps would
		// be taken for drift.
		if k == 0 {
			l.home = s.u
		}
		s.expose(k)
		l.steep[k] = Square(Volts(s.steep(k), s.cfg.Step))
	} else {
		s.expose(k)
	}
	switch {
	case k >= CellMatrix:
		line := s.cfg.Matrix.through(s.clean, k-CellMatrix)[0]
		s.look(k, seePart, line.In, line.Out, l.steep[k])
	case k >= CellMZI2:
		s.look(k, seeSplit, k-CellMZI2, 0, l.steep[k])
	default:
		s.look(k, seeIn, k-CellMZI1, 0, l.steep[k])
	}
	return s.until(stillSure/2, max(stillLeast, min(s.tries(), stillReadings)), stillReadings) // a share moves by half of what its phase does
}

// lookedAt takes the reading of a cell and brings the cell back.
func (s *Search) lookedAt(k int) {
	l, w := &s.still, &s.sweep
	y := w.pts.y[0]
	off := 2 * w.off()
	if l.round > 0 {
		step := 2 * (y - l.last[k])
		l.sum[k] += float64(step * step)
		l.noise[k] += float64(off*off) + l.off[k]
	}
	l.last[k], l.off[k] = y, float64(off*off)
	s.heat(k, l.home[k])
	if k >= CellMZI2 && k < CellMatrix {
		s.heat(k-CellMZI2+CellMZI1, l.home[k-CellMZI2+CellMZI1])
	}
}

// stoodStill ends the stage. Of several cells that did not, the worst is named.
func (s *Search) stoodStill() bool {
	worst, most := -1, 0.0
	for k, x := range s.still.sum {
		if over := x / max(stillMost, stillWalk+float64(stillNoise*s.still.noise[k])); over > max(most, 1) {
			worst, most = k, over
		}
	}
	if worst >= 0 {
		s.fail(worst, Drifting, fmt.Sprintf("%.1f mrad a root second", 1000*math.Sqrt(s.still.sum[worst]/(stillRounds-1))))
	}
	return false
}
