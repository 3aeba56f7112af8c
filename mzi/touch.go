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

// registers are the heat of every cell for both registers of its channel.
type registers [Cells][2]float64

// under is the heat of all cells in a setting.
func (r *registers) under(lit Lit) (u [Cells]float64) {
	for k := range u {
		u[k] = r[k][register(k, lit)]
	}
	return u
}

// register of a cell in force in a setting: MZI1 hangs on one toggle net, MZI2
// on the other, the matrix on none.
func register(k int, lit Lit) int {
	if k < CellMZI2 && lit != Loop || k >= CellMZI2 && k < CellMatrix && lit == Ext2 {
		return 1
	}
	return 0
}

// compose makes the two registers of every heater, so that every cell stands
// right in each setting in which light passes it. Going round, each stays on
// its turn, for a neighbour's turn is a tenth of a radian in crosstalk.
func (s *Search) compose() {
	var r registers
	for round := range solveRounds {
		for lit := Loop; lit < numLits; lit++ {
			s.touch.lit = lit
			u := r.under(lit)
			for k := range Cells {
				if !s.composes(k) {
					continue
				}
				reg := register(k, lit)
				from := r[k][reg]
				if round == 0 {
					from = 0
				}
				u[k] = s.m.heatIn(k, s.finalPhase(k), s.around(k, &r, &u), from, s.max[k])
				r[k][reg] = u[k]
			}
		}
	}
	for k := range Cells {
		b := 1
		if k >= CellMatrix {
			b = 0
		}
		s.result.Volts[k][0], s.result.Volts[k][1] = Volts(r[k][0], s.cfg.Step), Volts(r[k][b], s.cfg.Step)
	}
}

// composes says whether a cell gets a heat of its own in the setting under way:
// light passes it there, and no earlier setting has the same register.
func (s *Search) composes(k int) bool {
	switch {
	case k >= CellMatrix:
		return s.touch.lit == Loop
	case k >= CellMZI2:
		return s.touch.lit != Loop
	}
	return s.touch.lit != Ext2 // external by the same code whichever way MZI2 goes
}

// finalPhase is workPhase with the matrix in the loopback's own setting.
func (s *Search) finalPhase(k int) float64 {
	if k >= CellMatrix {
		return s.result.Setting.Phase(k - CellMatrix)
	}
	return s.workPhase(k)
}

// around is the phase that the other heaters add to a cell in the setting under
// way. To an external MZI1 it is the mean over both external paths: the code is
// the same, and so each path has half of what MZI2's heat makes between them.
func (s *Search) around(k int, r *registers, u *[Cells]float64) float64 {
	sum := s.m.Background(k, u)
	if k < CellMZI2 && s.touch.lit == Ext1 {
		other := r.under(Ext2)
		sum = (sum + s.m.Background(k, &other)) / 2
	}
	return sum
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
