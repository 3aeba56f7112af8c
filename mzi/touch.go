package mzi

import (
	"slices"

	"periph.io/x/conn/v3/physic"
)

// touching is the state of the last touch: the module stands in each of its
// three lit settings in turn, with crosstalk compensated, and every cell that
// has light there is swept once more.
type touching struct {
	lit   Lit
	order int
}

func (s *Search) stepTouch() bool {
	t := &s.touch
	if s.step == 0 {
		s.work()
	} else {
		s.seen(s.sweep.cell)
		t.order++
	}
	s.step++
	for {
		if k, ok := s.touched(); ok {
			return s.watch(k, laterPoints, nil)
		}
		if t.lit == Ext2 {
			s.compose()
			return false
		}
		t.lit++
		t.order = 0
		s.work()
	}
}

// touched is the cell whose turn it is in the setting.
func (s *Search) touched() (int, bool) {
	n := s.touch.order
	if s.touch.lit == Loop {
		// MZI1 of every lane, then the matrix.
		if n < Lanes {
			return CellMZI1 + n, true
		}
		return CellMatrix + n - Lanes, n-Lanes < MatrixCells
	}
	return CellMZI1 + n, n < CellMatrix
}

// work brings the module into the setting under way.
func (s *Search) work() {
	var want [Cells]float64
	var which []int
	for k := range Cells {
		if k >= CellMatrix && s.touch.lit != Loop {
			break
		}
		want[k] = s.workPhase(k)
		which = append(which, k)
	}
	u := s.u
	s.m.Solve(which, &want, &u, &s.max)
	for _, k := range which {
		s.heat(k, u[k])
	}
}

// compose makes the codes of the result.
func (s *Search) compose() {
	s.result.Volts = s.m.Compose(s.result.Setting, Loop, &s.max, s.cfg.Step)
}

// laneSpread is how many times the weakest lane's light in loopback goes into
// the strongest one's at most. chosen: lanes of a sound module lie within 5 dB.
const laneSpread = 10

// everyLaneSeen: each diode sees its lane in loopback. Where one is blind, the
// cells whose light it was to show have been set by noise.
func (s *Search) everyLaneSeen() bool {
	most := slices.Max(s.result.LaneLoop[:])
	for lane, out := range s.cfg.Loopback {
		if s.result.LaneLoop[out] < max(physic.MicroWatt, most/laneSpread) {
			s.fail(CellMZI1+lane, NoLight)
			return false
		}
	}
	return true
}

// stepLevels notes what the module's own diodes see of each lane alone, in each
// setting.
func (s *Search) stepLevels() bool {
	if s.step > 0 {
		lit, lane := Lit((s.step-1)/Lanes), (s.step-1)%Lanes
		sample := &s.sweep.sample
		switch lit {
		case Loop:
			out := s.cfg.Loopback[lane]
			s.result.LaneLoop[out] = sample.Lane[out]
		default:
			s.result.LaneTap[lit-Ext1][lane] = sample.Tap[lit-Ext1]
		}
	}
	if s.step == Lanes && !s.everyLaneSeen() {
		return false
	}
	if s.step == int(numLits)*Lanes {
		for k := range Cells {
			s.heat(k, 0)
		}
		return false
	}
	lit, lane := Lit(s.step/Lanes), s.step%Lanes
	for k := range Cells {
		s.heat(k, Square(s.result.Volts[k][register(k, lit)]))
	}
	s.step++
	read := ReadLanes
	if lit != Loop {
		read = ReadTaps
	}
	return s.once(seeLevel, read, 1<<lane)
}
