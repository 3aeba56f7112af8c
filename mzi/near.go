package mzi

import (
	"math"

	"ringlight/mzi/detmath"
)

// nearness is the state of the crosstalk stage: each cell is looked at on both
// sides of its fringe with all others as they are, and then on one side with one of
// them much warmer or cooler. Which cells are neighbours is not asked: every pair is measured.
type nearness struct {
	cell, next int
	again      int  // how often the swept cell was looked at anew
	late       bool // the pairs whose light the other cells of the line bend
	view       view
	of         int     // which of the views that is
	views      [2]view // from which the cell was seen with all as they are
	base       [2]float64
	full       [2]float64 // light at its brightest, halved
	based      [2]bool
	aggressor  int // that is moved, -1: none
	before     [Cells]float64
	heats, at  [2]float64 // of both sides, and the phases that the model has there
}

// view is how a cell is looked at.
type view struct {
	see         see
	laser, lane int
	top         float64 // phase at which it is brightest
}

const (
	// A side of the fringe is to be that far from its ends, radian, for a heater that moves
	// the cell by less than a radian not to bring it to the other side. chosen: a cell that
	// stands further off than this is looked at anew from where it was found.
	nearOff   = 0.5
	nearAgain = 3
	nearBent  = 0.25 // radian that a moved cell bends others on the way of the light by, and they are not put right. chosen: a hundredth of the light
)

func (s *Search) stepNear() bool {
	n := &s.near
	if s.step == 0 {
		*n = nearness{aggressor: -1}
		s.expose(0)
	} else {
		n.shifted(s)
	}
	s.step++
	for {
		if n.aggressor < 0 && n.next < s.cells {
			j := n.next
			if j == n.cell || n.late != s.cfg.Matrix.bent(s.clean, n.cell, j) {
				n.next = s.after(n.next)
				continue
			}
			n.of = n.viewOf(s, n.cell, j)
			if n.view = n.views[n.of]; n.based[n.of] {
				n.aggressor = j
				n.perturb(s, j)
			}
			return n.sides(s)
		}
		n.settleOffset(s)
		n.next = 0
		n.based, n.again = [2]bool{}, 0
		s.cover(n.cell)
		if n.cell = s.after(n.cell); n.cell == s.cells {
			if n.late {
				s.m.reciprocate(&s.u)
				return false
			}
			n.late, n.cell = true, 0
		}
		s.expose(n.cell)
	}
}

// viewOf chooses how the swept cell is seen when another one is moved, of two.
func (n *nearness) viewOf(s *Search, k, j int) int {
	switch {
	case k >= CellMatrix:
		lines := s.cfg.Matrix.through(s.clean, k-CellMatrix)
		for i, l := range lines {
			n.views[i] = view{seeLane, l.In, l.Out, s.workPhase(k)}
		}
		if j == lines[0].In || lines[0].has(j-CellMatrix) { // its way is to stay lit
			return 1
		}
		return 0
	case k >= CellMZI2:
		n.views[0] = view{seeSplit, k - CellMZI2, 0, PhaseCross}
		return 0
	}
	// What the matrix does is nothing to the taps, and MZI2 nothing to the lanes.
	n.views = [2]view{{seeLoop, k, 0, PhaseCross}, {seeTaps, k, 0, PhaseBar}}
	if j >= CellMatrix {
		return 1
	}
	return 0
}

// bent says whether moving cell j throws light back onto the line on which cell k
// is seen, so that the line's other cells must be kept right meanwhile: it lies
// behind k, on its other line.
func (x Matrix) bent(clean Setting, k, j int) bool {
	if k < CellMatrix || j < CellMatrix || j <= k {
		return false
	}
	lines := x.through(clean, k-CellMatrix)
	return lines[0].has(j-CellMatrix) || lines[1].has(j-CellMatrix)
}

// perturb moves a cell as far as it goes; the MZI1 that leads to the cell looked at
// but half as far, for its light is needed. Others on the way of that light stay right.
func (n *nearness) perturb(s *Search, j int) {
	to := s.max[j]
	if s.u[j] > s.max[j]/2 {
		to = 0
	}
	if n.cell >= CellMZI2 && n.cell < CellMatrix && j == n.cell-CellMZI2 {
		half := detmath.Pi / 2 / s.m.Cells[j].Slope
		if to = s.u[j] + half; to > s.max[j] {
			to = s.u[j] - half
		}
	}
	s.heat(j, to)
	if n.cell < CellMatrix {
		return
	}
	line := s.cfg.Matrix.Lines(s.clean)[n.view.laser]
	way := []int{n.view.laser} // its MZI1 and the cells of the matrix
	for _, c := range line.Cells() {
		way = append(way, CellMatrix+c)
	}
	for _, k := range way {
		if bent := s.m.Background(k, &s.u) - s.m.Background(k, &n.before); k != n.cell && k != j && (n.late && k >= CellMatrix || math.Abs(bent) > nearBent) {
			s.heat(k, s.m.heat(k, s.workPhase(k), &s.u, s.u[k], s.max[k]))
		}
	}
}

// sides looks at the cell on both sides of its fringe.
func (n *nearness) sides(s *Search) bool {
	k := n.cell
	if n.based == [2]bool{} {
		for i, side := range [2]float64{-detmath.Pi / 2, detmath.Pi / 2} {
			n.heats[i] = Square(Volts(s.m.heat(k, s.workPhase(k)+side, &s.u, s.m.least(k), s.max[k]), s.cfg.Step))
			n.at[i] = s.m.Cells[k].Offset + float64(s.m.Cells[k].Slope*n.heats[i]) + s.m.Background(k, &s.u)
		}
		n.before = s.u
	}
	if n.aggressor >= 0 {
		return s.look(k, n.view.see, n.view.laser, n.view.lane, n.heats[0])
	}
	return s.look(k, n.view.see, n.view.laser, n.view.lane, n.heats[0], n.heats[1])
}

// settleOffset separates the cell's own offset from what the others add, now
// that that is known.
func (n *nearness) settleOffset(s *Search) {
	for v := range n.based {
		if n.based[v] {
			c := &s.m.Cells[n.cell]
			c.Offset = Wrap(n.at[0] + n.base[v] - float64(c.Slope*n.heats[0]) - s.m.Background(n.cell, &n.before))
			return
		}
	}
}

// shifted takes the light measured on both sides.
func (n *nearness) shifted(s *Search) {
	k, j := n.cell, n.aggressor
	y, v := s.sweep.pts.y, n.of
	at := n.at[0] - n.view.top
	if j < 0 {
		e := ahead(y[0], y[1], at, n.at[1]-n.view.top)
		if n.based == [2]bool{} && math.Abs(e) > nearOff && n.again < nearAgain {
			n.again++
			s.m.Cells[k].Offset = Wrap(s.m.Cells[k].Offset + e)
			return
		}
		n.base[v], n.based[v] = e, true
		n.full[v] = y[0] / (1 + detmath.Cos(at+e))
		return
	}
	// The same side of the fringe, by what is seen there now.
	x := clamp(y[0]/n.full[v]-1, -1, 1)
	phase := detmath.Atan2(math.Sqrt(1-float64(x*x)), x)
	if Wrap(at+n.base[v]) < 0 {
		phase = -phase
	}
	moved := float64(s.m.Cells[j].Slope * (s.u[j] - n.before[j]))
	s.m.Cross[k][j] = 0
	known := s.m.Background(k, &s.u) - s.m.Background(k, &n.before) // what else was moved
	s.m.Cross[k][j] = (Wrap(phase-at-n.base[v]) - known) / moved
	for c := range Cells {
		s.heat(c, n.before[c])
	}
	n.aggressor = -1
	n.next = s.after(n.next)
}

// Heat that goes from one heater to another goes back as well. Where the two of a
// pair differ by more than their powers for pi may, light that leaked elsewhere
// and came back to the line bent the larger one. chosen.
const (
	unlike      = 0.003
	unlikeShare = 0.5
)

// reciprocate takes the smaller one there, and leaves the phases that cells have.
func (m *Module) reciprocate(u *[Cells]float64) {
	fix := func(k, j int, x float64) {
		c := &m.Cells[k]
		c.Offset = Wrap(c.Offset + float64((m.Cross[k][j]-x)*float64(m.Cells[j].Slope*u[j])))
		m.Cross[k][j] = x
	}
	for k := CellMatrix; k < Cells; k++ {
		for j := CellMatrix; j < k; j++ {
			a, b := m.Cross[k][j], m.Cross[j][k]
			switch {
			case math.Abs(a-b) <= unlike+float64(unlikeShare*min(math.Abs(a), math.Abs(b))):
			case math.Abs(a) > math.Abs(b):
				fix(k, j, b)
			default:
				fix(j, k, a)
			}
		}
	}
}

// ahead is by how much a phase is ahead of what was aimed at, for the light that
// was seen at two phases: y is proportional to 1 + cos(at + ahead). Of the two that
// there are it is the smaller.
func ahead(y1, y2, at1, at2 float64) float64 {
	s1, c1 := detmath.Sincos(at1)
	s2, c2 := detmath.Sincos(at2)
	// y1*(1+cos(at2+e)) = y2*(1+cos(at1+e)), as a + r*cos(e-turn) = 0
	b := float64(y1*c2) - float64(y2*c1)
	c := float64(y2*s1) - float64(y1*s2)
	r := math.Sqrt(float64(b*b) + float64(c*c))
	if r == 0 {
		return 0
	}
	x := clamp((y2-y1)/r, -1, 1)
	turn, wide := detmath.Atan2(c, b), detmath.Atan2(math.Sqrt(1-float64(x*x)), x)
	one, two := Wrap(turn+wide), Wrap(turn-wide)
	if math.Abs(one) < math.Abs(two) {
		return one
	}
	return two
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
