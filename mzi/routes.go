package mzi

import (
	"fmt"
	"math"
	"slices"
)

// The matrix is found by paths that have every cell between them. On each, the cells
// are moved one after the other to where the path's output is brightest. That may end on
// another way from the same input to the same output, or on two ways at once, which
// recombine: then some cell of the path does not swing the whole light, and another
// start is made.

// routes are the paths, and the setting of which they are lines. The Benes network has four
// without a common cell; what leaks out of such a line at one of its cells goes along
// another, and meets it again once at most. Found by trying all; the test checks it. Other
// matrices have lines of their clean setting.
func (x Matrix) routes(clean Setting) (Setting, []Line) {
	if !slices.Equal(x, Benes) {
		return clean, x.cover(clean)
	}
	const setting Setting = 0x5390
	lines := x.Lines(setting)
	return setting, []Line{lines[1], lines[2], lines[5], lines[6]}
}

const (
	routePasses = 3
	// chosen: 12 points over a period and a tenth, the slope being unknown.
	routePoints = 12
	// chosen: on 200 modelled modules four starts are the mean and 19 the most.
	maxStarts = 60
)

// routing is the state of this stage.
type routing struct {
	setting Setting
	lines   []Line // the paths left

	start, pass, pos int

	fringe [MatrixCells]fringe
	best   [MatrixCells]float64 // contrast of each cell of the path, over all starts
	seen   float64              // the most light that came out at its end, mean of a sweep
}

func (s *Search) stepRoute() bool {
	r := &s.route
	if s.step == 0 {
		for l := range s.cfg.Lanes {
			s.aim(CellMZI1+l, PhaseCross)
		}
	} else if !s.climbed() {
		return false
	}
	if len(r.lines) == 0 {
		return false
	}
	s.step++
	line := &r.lines[0]
	return s.scan(CellMatrix+line.Cells()[r.pos], routePoints, seeLane, line.In, line.Out)
}

// climbed takes the sweep of one cell of a path and chooses the next. It is
// false when the search has failed.
func (s *Search) climbed() bool {
	r := &s.route
	line := &r.lines[0]
	cells := line.Cells()
	f := s.sweep.fringe
	s.heat(s.sweep.cell, f.brightest(s.max[s.sweep.cell]))
	r.fringe[r.pos], r.seen = f, max(r.seen, f.Mean)
	if r.pos++; r.pos < len(cells) {
		return true
	}
	r.pos = 0
	good := true
	for i, k := range cells {
		c := r.fringe[i].Contrast()
		r.best[i] = max(r.best[i], c)
		lo, hi := s.anySlope(CellMatrix + k)
		good = good && c > goodContrast && r.fringe[i].Mean > darkest && !r.fringe[i].against(lo, hi)
	}
	if r.pass++; r.pass < routePasses {
		return true
	}
	r.pass = 0
	if good {
		for i, c := range cells {
			s.learn(CellMatrix+c, &r.fringe[i], r.setting.Phase(c))
		}
		*r = routing{setting: r.setting, lines: r.lines[1:]}
		return true
	}
	if r.start++; r.start == maxStarts {
		s.blame(line)
		return false
	}
	s.restart(cells)
	return true
}

// restart makes another start. Ways from the input to the output share cells at both
// ends, of the Benes network the first and last, and two of four the second and fourth:
// where the light took a wrong one, turning the two cells at which it left and came back
// sends it over to the right one. Every third start is a random one, since two ways
// may recombine so well that neither wins.
func (s *Search) restart(cells []int) {
	r := &s.route
	left, last := 0, len(cells)-1
	for left+1 < last-left-1 && r.fringe[left+1].Contrast() >= goodContrast && r.fringe[last-left-1].Contrast() >= goodContrast {
		left++
	}
	if r.start%3 == 0 || left == last-left { // one cell turned twice is where it was
		for _, c := range cells {
			s.heat(CellMatrix+c, float64(s.random()*s.max[CellMatrix+c]))
		}
		return
	}
	for _, i := range [2]int{left, last - left} {
		k := CellMatrix + cells[i]
		half := math.Pi / r.fringe[i].Slope
		if s.u[k]+half <= s.max[k] {
			s.heat(k, s.u[k]+half)
		} else {
			s.heat(k, s.u[k]-half)
		}
	}
}

// blame names the cell of a path that never swung the light, or, where none was ever seen,
// its last one, with the diode behind it.
func (s *Search) blame(line *Line) {
	cells := line.Cells()
	if s.route.seen <= darkest {
		s.fail(CellMatrix+cells[len(cells)-1], NoLight, blind(line.Out))
		return
	}
	worst := 0
	for i, c := range s.route.best[:len(cells)] {
		if c < s.route.best[worst] {
			worst = i
		}
	}
	fault := NoRoute
	if s.route.best[worst] < goodContrast/2 {
		fault = NoResponse
	}
	s.fail(CellMatrix+cells[worst], fault, fmt.Sprintf("contrast %.2f at best; or the board file has its heater, or the diode of lane %d, elsewhere", s.route.best[worst], line.Out))
}

// blind is why no light is seen at the end of a way.
func blind(lane int) string {
	return fmt.Sprintf("none at the loopback diode of lane %d: it is dead, or no light comes to it", lane)
}

// brightest is the least heat at which the fringe has its maximum; where none
// is within the limit, the limit.
func (f *fringe) brightest(max float64) float64 {
	p := Wrap(f.Phase)
	if p > 0 {
		p -= twoPi
	}
	return min(-p/f.Slope, max)
}

// cleanPasses is chosen: the first finds what the routes left; the others look on
// either side of each cell's state alone, which no heat that its own brings along
// can bend, and are exact once all cells stand right.
const cleanPasses = 3

// stepClean sweeps every cell of the matrix again, all others standing near
// their states.
func (s *Search) stepClean() bool {
	cells := len(s.cfg.Matrix)
	if s.step == 0 {
		for c := range cells {
			s.aim(CellMatrix+c, s.clean.Phase(c))
		}
	} else if k := s.sweep.cell; s.step <= cells {
		if s.sweep.fringe.Swing < darkest {
			s.fail(k, NoLight, blind(s.sweep.lane))
			return false
		}
		s.learn(k, &s.sweep.fringe, s.workPhase(k))
		if !s.reach(k, s.workPhase(k)) {
			return false
		}
		s.aim(k, s.workPhase(k))
	} else {
		e, _ := s.sweep.pts.null(s.m.Cells[k].Slope)
		s.m.Cells[k].Offset = Wrap(s.m.Cells[k].Offset + s.workPhase(k) + e - s.m.Phase(k, &s.u))
		s.aim(k, s.workPhase(k))
	}
	if s.step == cleanPasses*cells {
		return false
	}
	c := s.step % cells
	s.step++
	lines := s.cfg.Matrix.through(s.clean, c)
	if s.step <= cells {
		return s.scan(CellMatrix+c, laterPoints, seeLane, lines[0].In, lines[0].Out)
	}
	return s.around(CellMatrix+c, seeLane, lines[0].In, lines[1].Out)
}

// workPhase is the phase of a cell while the search goes on: inside, external 1,
// and the matrix in its clean setting. What watch looks at is brightest there.
func (s *Search) workPhase(k int) float64 {
	if k >= CellMatrix {
		return s.clean.Phase(k - CellMatrix)
	}
	return PhaseCross
}
