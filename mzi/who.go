package mzi

import (
	"fmt"
	"slices"
)

// who finds whose heater moves the light of a cell that does not follow its own as one
// should: every heater is tried, while the light that the cell splits is looked at.
type who struct {
	on     bool
	cell   int
	figure string
	see    see
	lane   int
	at     int
	moved  [Cells]float64 // how far apart readings were, by heater
}

// whoTells is how much more the heater that does it moves the light than any other.
// chosen: a matrix that is not known yet brings it to better and worse diodes.
const whoTells = 1.5

// begin tries heaters on a cell that a sweep has just looked at.
func (w *who) begin(s *Search, figure string) {
	*w = who{on: true, cell: s.sweep.cell, figure: figure, see: seeLoop, lane: s.sweep.cell % Lanes, at: -1}
	if w.cell >= CellMZI2 {
		w.see = seeSplit
	}
}

// next takes the readings of a heater and tries another one; at the end the search fails.
func (w *who) next(s *Search) bool {
	if w.at >= 0 {
		y := s.sweep.pts.y[:s.sweep.pts.n]
		w.moved[w.at] = slices.Max(y) - slices.Min(y)
		s.heat(w.at, 0)
	}
	if w.at = s.after(w.at); w.at < s.cells {
		most := s.max[w.at]
		return s.look(w.at, w.see, w.lane, 0, 0, 0.31*most, 0.67*most) // of two turns
	}
	most := slices.Max(w.moved[:])
	by := slices.Index(w.moved[:], most)
	for k, x := range w.moved {
		if k != by && float64(whoTells*x) > most {
			by = -1
			break
		}
	}
	switch by {
	case -1:
	case w.cell:
		w.figure += fmt.Sprintf("; it moves with it, but not as with a power for pi of %v to %v", s.cfg.LeastPi, s.cfg.MostPi)
	default:
		w.figure += fmt.Sprintf("; the heater of cell %d (%s) moves it: swapped, or so in the board file", by, CellName(by))
	}
	w.on = false
	s.fail(w.cell, NoResponse, w.figure)
	return false
}
