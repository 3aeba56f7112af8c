package mzi

import (
	"fmt"
	"math"
)

// touching is the state of the last touch: the module stands with the codes of the
// result in each of its three lit settings, and every cell that has light there is
// looked at on the side where none should be. What is found goes into the model and
// makes new codes, until nothing is found any more; what the diodes saw with the
// last codes is what is accepted or not.
type touching struct {
	lit   Lit
	order int
	pass  int
	flips [MatrixCells]Setting // cells turned over while one is looked at
	over  [MatrixCells]float64 // heat with which a cell was turned over first; 0: never
	sum   [Cells][2]float64    // what the model was off, by register
	n     [Cells][2]float64    //
	leak  [Cells]float64       // most light the wrong way
	where [Cells]Lit           // and where
	worst float64              // that the model was off
	sure  [Cells]float64       // how sure that is, rms
	home  [Cells]float64       // heat before cells were turned over

	pedestal pedestal // under the reading under way
}

const (
	// chosen: what crosstalk leaves from one pass to the next is a tenth; more
	// passes than that mend nothing.
	touchPasses = 10
	// chosen: a cell of 28 dB has 27.9 with it.
	touchDone = 0.008
)

func (s *Search) stepTouch() bool {
	t := &s.touch
	if s.step == 0 {
		for c := range s.cfg.Matrix {
			if !s.reach(CellMatrix+c, s.result.Setting.Phase(c)) {
				return false
			}
		}
		for c := range s.cfg.Matrix {
			t.flips[c] = s.cfg.Matrix.parting(s.result.Setting, s.m, c)
		}
		s.compose()
		s.place(Loop)
	} else if s.touch.pedestal.lifted(s) {
		return true
	} else {
		s.touched()
		t.order++
	}
	s.step++
	for {
		if s.touchNext() {
			return true
		}
		t.order = 0
		if t.lit++; t.lit == numLits {
			t.lit = Loop
			t.pass++
			if t.worst <= touchDone || t.pass == touchPasses {
				return false
			}
			s.relearn()
			s.compose()
		}
		s.place(t.lit)
	}
}

// touchNext looks at the next cell in the setting, if there is one.
func (s *Search) touchNext() bool {
	t := &s.touch
	for t.order < CellMatrix && !s.has(t.order) && (t.lit != Loop || t.order < CellMZI2) {
		t.order++
	}
	k := t.order
	t.home = s.u
	switch {
	case t.lit == Loop && k < CellMZI2:
		return t.pedestal.lookAt(s, k, seeTap1, k, 0)
	case t.lit == Loop && k < CellMZI2+len(s.cfg.Matrix):
		c := k - CellMZI2
		setting := s.result.Setting ^ t.flips[c]
		for f := range s.cfg.Matrix {
			if t.flips[c].Bar(f) {
				t.turnOver(s, f, setting.Phase(f))
			}
		}
		lines := s.cfg.Matrix.through(setting, c)
		return t.pedestal.lookAt(s, CellMatrix+c, seeLane, lines[0].In, lines[1].Out)
	case t.lit == Loop || k >= CellMatrix:
		return false
	case k < CellMZI2:
		return t.pedestal.lookAt(s, k, seeLoop, k, 0)
	case t.lit == Ext1:
		return t.pedestal.lookAt(s, k, seeTap2, k-CellMZI2, 0)
	}
	return t.pedestal.lookAt(s, k, seeTap1, k-CellMZI2, 0)
}

// turnOver brings a matrix cell to its other state. Two heats are as near: which of
// them is taken stays the same, or what the model does not know of the cell's crosstalk
// is seen now on the one side and now on the other, and no pass is the last.
func (t *touching) turnOver(s *Search, f int, phase float64) {
	k := CellMatrix + f
	from := t.over[f]
	if from == 0 {
		from = s.u[k]
	}
	s.heat(k, s.m.heat(k, phase, &s.u, from, s.max[k]))
	t.over[f] = s.u[k]
}

// touched takes the light measured of a cell.
func (s *Search) touched() {
	t := &s.touch
	k := s.sweep.cell
	pts := &s.sweep.pts
	for i := range pts.y[:pts.n] {
		pts.y[i] -= t.pedestal.y
	}
	e, leak := pts.null(s.m.Cells[k].Slope)
	off := Wrap(litPhase(k, t.lit, s.result.Setting) + e - s.m.Phase(k, &s.u))
	reg := register(k, t.lit)
	t.sum[k][reg] += off
	t.n[k][reg]++
	t.worst = max(t.worst, math.Abs(off))
	if leak > t.leak[k] {
		t.leak[k], t.where[k], t.sure[k] = leak, t.lit, s.sweep.off()/s.light(k)
	}
	for c := range Cells {
		s.heat(c, t.home[c])
	}
}

// relearn brings the model to what was seen. A cell that was seen in two states has
// both of them right with another slope.
func (s *Search) relearn() {
	t := &s.touch
	for k := range s.cells {
		c := &s.m.Cells[k]
		a, b := t.sum[k][0]/max(t.n[k][0], 1), t.sum[k][1]/max(t.n[k][1], 1)
		ua, ub := Square(s.result.Volts[k][0]), Square(s.result.Volts[k][1])
		if d := ub - ua; t.n[k][1] > 0 && math.Abs(float64(c.Slope*d)) > 1 {
			more := (b - a) / d
			c.Slope += more
			a -= float64(more * ua)
		} else if t.n[k][1] > 0 {
			a = (a + b) / 2
		}
		c.Offset = Wrap(c.Offset + a)
	}
	*t = touching{pass: t.pass, flips: t.flips, over: t.over}
}

// parting are the cells of the matrix that are turned over while one cell is looked
// at, so that its two lines have no other cell in common: what leaks at the one is
// not to meet its own light again at another. Of those that do it is the one whose
// heat is felt least.
func (x Matrix) parting(s Setting, m *Module, c int) Setting {
	if x.parted(s, c) {
		return 0
	}
	best, least := Setting(0), math.MaxFloat64
	for one := range x {
		for two := one; two < len(x); two++ {
			flips := Setting(1<<one | 1<<two)
			if one == c || two == c || !x.parted(s^flips, c) {
				continue
			}
			felt := math.Abs(m.Cross[CellMatrix+c][CellMatrix+one])
			if two != one {
				felt += math.Abs(m.Cross[CellMatrix+c][CellMatrix+two]) + pairCost
			}
			if felt < least {
				best, least = flips, felt
			}
		}
	}
	return best
}

// pairCost makes two cells worse than one. chosen.
const pairCost = 0.01

// place brings the module into a setting with the codes of the result.
func (s *Search) place(lit Lit) {
	for k := range Cells {
		s.heat(k, Square(s.result.Volts[k][register(k, lit)]))
	}
}

// compose makes the codes of the result.
func (s *Search) compose() {
	if s.touch.pass == 0 {
		s.result.Volts = s.m.Compose(s.result.Setting, Loop, &s.max, s.cfg.Step)
		return
	}
	s.result.Volts = s.m.Recompose(s.result.Setting, Loop, &s.result.Volts, &s.max, s.cfg.Step)
}

// LeastExtinction is what is asked of every cell, and LeastPath of every lane
// against what of other lanes comes out with it. chosen: the board page's.
const (
	LeastExtinction = 25_000 // thousandths of a dB
	LeastPath       = 20_000
	MostPathLoss    = 500
)

var litNames = [numLits]string{"loopback", "external 1", "external 2"}

// accepted says whether the cells do with the codes found what is asked of them; of
// several that do not, the worst is named.
func (s *Search) accepted() bool {
	t := &s.touch
	worst, least := 0, int32(math.MaxInt32)
	for k, leak := range t.leak {
		if !s.has(k) {
			continue
		}
		s.result.Extinction[k] = extinction(leak)
		// What a reading may be off does not make a cell that falls short a good one.
		if x := extinction(leak + float64(2*max(t.sure[k], nullSure))); x < least {
			worst, least = k, x
		}
	}
	if least >= LeastExtinction {
		return true
	}
	if best := extinction(t.leak[worst] - float64(noisySure*t.sure[worst])); t.sure[worst] > nullSure && best >= LeastExtinction {
		s.fail(worst, Noisy, fmt.Sprintf("%.1f dB on %s, at most %.1f, surely only %.1f: %d wanted", float64(s.result.Extinction[worst])/1000, litNames[t.where[worst]],
			float64(best)/1000, float64(least)/1000, LeastExtinction/1000))
		return false
	}
	why := ""
	if j, x := s.m.felt(worst); worst < CellMZI2 && t.where[worst] != Loop && x > strongCross {
		why = fmt.Sprintf("; cell %d puts %.1f %% of its heat there, and differs between the external paths", j, 100*x)
	}
	fault := Leaks
	if u := Square(s.result.Volts[worst][register(worst, t.where[worst])]); u == 0 || u > atEnd*s.max[worst] {
		fault = OutOfReach
	}
	s.fail(worst, fault, fmt.Sprintf("%.1f dB on %s, surely wanted %d%s", float64(s.result.Extinction[worst])/1000, litNames[t.where[worst]], LeastExtinction/1000, why))
	return false
}

// noisySure deviations below what was read a cell's leak may well be: the worst of
// all cells is named, on up to three settings.
const noisySure = 3

// atEnd of its heat a cell stands that would want more. chosen: steps of the DAC are less.
const atEnd = 0.999

// strongCross is the crosstalk beyond which an MZI1 cannot stand right on both
// external paths with one code. chosen: half of pi times it costs 25 dB.
const strongCross = 0.04

// felt is the MZI2 whose heat cell k feels most.
func (m *Module) felt(k int) (j int, share float64) {
	for i := CellMZI2; i < CellMatrix; i++ {
		if x := math.Abs(m.Cross[k][i]); x > share {
			j, share = i, x
		}
	}
	return j, share
}
