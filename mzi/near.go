package mzi

// nearness is the state of the crosstalk stage: each cell is swept with its
// neighbours as they are, and then with one of them much warmer or cooler.
type nearness struct {
	cell, next int
	base       float64 // phase of the fringe without
	aggressor  int     // that is moved, -1: none
	back       float64 // its heat before
	sum        [nearMeasured + 1]float64
	count      [nearMeasured + 1]float64
	known      [Cells][2*Reach + 1]bool
}

const (
	// nearMeasured pitches are measured; the one beyond is taken as a quarter
	// of the last ("a quarter per further pitch", board page), which is below
	// eight milliradian.
	nearMeasured = 2
	nearFall     = 0.25
	nearPoints   = 8
)

func (s *Search) stepNear() bool {
	n := &s.near
	if s.step == 0 {
		n.next = -nearMeasured
		n.aggressor = -1
		s.expose(n.cell)
		s.step++
		return s.watch(n.cell, nearPoints, aggressors(n.cell))
	}
	s.step++
	phase := s.phaseAtKnownSlope()
	if n.aggressor < 0 {
		n.base = phase
	} else {
		j := n.aggressor
		moved := float64(s.m.Cells[j].Slope * (s.u[j] - n.back))
		x := Wrap(phase-n.base) / moved
		at := j - n.cell + Reach
		s.m.Near[n.cell][at] = x
		n.known[n.cell][at] = true
		pitch := max(j-n.cell, n.cell-j)
		n.sum[pitch] += x
		n.count[pitch]++
		s.heat(j, n.back)
		n.aggressor = -1
	}
	for ; n.next <= nearMeasured; n.next++ {
		j := n.cell + n.next
		if n.next == 0 || j < 0 || j >= Cells || s.inTheWay(j) {
			continue
		}
		n.next++
		n.aggressor, n.back = j, s.u[j]
		s.heat(j, s.farthest(j))
		return s.watch(n.cell, nearPoints, aggressors(n.cell))
	}
	s.cover(n.cell)
	if n.cell++; n.cell == Cells {
		s.fillNear()
		return false
	}
	n.next = -nearMeasured
	s.expose(n.cell)
	return s.watch(n.cell, nearPoints, aggressors(n.cell))
}

// expose makes MZI2 of a lane visible: its MZI1 goes external.
func (s *Search) expose(k int) {
	if k >= CellMZI2 && k < CellMatrix {
		s.aim(k-CellMZI2+CellMZI1, PhaseBar)
	}
}

// cover undoes expose and brings the swept cell back to its state.
func (s *Search) cover(k int) {
	if k >= CellMZI2 && k < CellMatrix {
		s.aim(k-CellMZI2+CellMZI1, PhaseCross)
	}
	s.aim(k, s.workPhase(k))
}

// aggressors are the cells whose heat is measured on cell k.
func aggressors(k int) []int {
	list := make([]int, 0, 2*nearMeasured)
	for d := -nearMeasured; d <= nearMeasured; d++ {
		if j := k + d; d != 0 && j >= 0 && j < Cells {
			list = append(list, j)
		}
	}
	return list
}

// inTheWay says whether cell j lies on the line by which the swept cell is
// seen: moving it would change the light by more than its heat.
func (s *Search) inTheWay(j int) bool {
	k := s.sweep.cell
	if k < CellMatrix || j < CellMatrix {
		return false
	}
	line := s.lineThrough(k-CellMatrix, aggressors(k))
	return line.has(j - CellMatrix)
}

// farthest is the end of a heater's range that is farther from where it is.
func (s *Search) farthest(j int) float64 {
	if s.u[j] > s.max[j]/2 {
		return 0
	}
	return s.max[j]
}

// phaseAtKnownSlope fits the last sweep with the slope that is known already:
// it has not changed, and a free one would only add its own error.
func (s *Search) phaseAtKnownSlope() float64 {
	f := s.sweep.pts.at(s.m.Cells[s.sweep.cell].Slope)
	return f.Phase
}

// fillNear takes the mean of its pitch for what could not be measured, and the
// fall of the board page for what was not.
func (s *Search) fillNear() {
	n := &s.near
	for k := range s.m.Near {
		for i := range s.m.Near[k] {
			j := k - Reach + i
			pitch := max(j-k, k-j)
			if j < 0 || j >= Cells || pitch == 0 || pitch > nearMeasured || n.known[k][i] {
				continue
			}
			if n.count[pitch] > 0 {
				s.m.Near[k][i] = n.sum[pitch] / n.count[pitch]
			}
		}
		for _, i := range [2]int{0, 2 * Reach} {
			if j := k - Reach + i; j >= 0 && j < Cells {
				inner := i + 1
				if i > Reach {
					inner = i - 1
				}
				s.m.Near[k][i] = float64(nearFall * s.m.Near[k][inner])
			}
		}
		// The offset was learned with the crosstalk in it; now that it is known
		// the last touch parts the two.
	}
}
