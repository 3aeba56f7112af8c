package mzi

import (
	"math"
	"math/bits"
	"testing"

	"periph.io/x/conn/v3/physic"
)

// Goal: any permutation of the lanes can be routed.
// Method: all 40,320, each traced through the setting that was found.
func TestRoutesEveryPermutation(t *testing.T) {
	n := 0
	var visit func(p Permutation, k int)
	visit = func(p Permutation, k int) {
		if k == Lanes {
			n++
			s, err := Benes.Route(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := Benes.Permutation(s); got != p {
				t.Fatalf("%v routed as %v", p, got)
			}
			return
		}
		for i := k; i < Lanes; i++ {
			p[k], p[i] = p[i], p[k]
			visit(p, k+1)
			p[k], p[i] = p[i], p[k]
		}
	}
	visit(Permutation{0, 1, 2, 3, 4, 5, 6, 7}, 0)
	if n != 40320 {
		t.Errorf("%d permutations tried", n)
	}
	for _, bad := range []Permutation{{0, 0, 1, 2, 3, 4, 5, 6}, {8, 0, 1, 2, 3, 4, 5, 6}} {
		if _, err := Benes.Route(bad); err == nil {
			t.Errorf("%v was routed", bad)
		}
	}
}

// others are matrices that are no Benes network, by couplers.
var others = map[string]Matrix{
	"one column":             {{0, 4}, {1, 5}, {2, 6}, {3, 7}},
	"two columns":            {{0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}},
	"banyan":                 {{0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}},
	"diamond, no crossings":  {{3, 4}, {2, 3}, {4, 5}, {1, 2}, {3, 4}, {5, 6}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {1, 2}, {3, 4}, {5, 6}, {2, 3}, {4, 5}, {3, 4}},
	"diamond, two more":      {{0, 1}, {6, 7}, {3, 4}, {2, 3}, {4, 5}, {1, 2}, {3, 4}, {5, 6}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {1, 2}, {3, 4}, {5, 6}, {2, 3}, {4, 5}, {3, 4}},
	"rectangle":              {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {1, 2}, {3, 4}, {5, 6}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {1, 2}, {3, 4}, {5, 6}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {1, 2}, {3, 4}, {5, 6}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {1, 2}, {3, 4}, {5, 6}},
	"Benes, couplers turned": {{1, 0}, {3, 2}, {5, 4}, {7, 6}, {2, 0}, {6, 4}, {3, 1}, {7, 5}, {4, 0}, {6, 2}, {5, 1}, {7, 3}, {2, 0}, {6, 4}, {3, 1}, {7, 5}, {1, 0}, {3, 2}, {5, 4}, {7, 6}},
}

// Goal: the settings in which the search works are what they are said to be.
// Method: the lines of every matrix.
func TestSearchSettings(t *testing.T) {
	used := Setting(0)
	_, four := Benes.routes(0)
	for r, l := range four {
		if l.In/2 != r || used&l.on != 0 {
			t.Errorf("path %d from lane %d has a cell of another path", r, l.In)
		}
		used |= l.on
	}
	if used != 1<<len(Benes)-1 {
		t.Errorf("the four paths have the cells %#x", used)
	}
	if s, err := Benes.clean(); err != nil || s != 0x530 {
		t.Errorf("clean is %#x, which every calibration from a seed rests on: %v", s, err)
	}
	for name, x := range others {
		clean, err := x.clean()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		lines := x.Lines(clean)
		for a := range lines {
			for b := range a {
				if n := lines[a].meets(&lines[b]); n > 1 {
					t.Errorf("%s: lines %d and %d meet %d times", name, a, b, n)
				}
			}
		}
		all := Setting(0)
		for _, l := range x.cover(clean) {
			all |= l.on
		}
		if all != 1<<len(x)-1 {
			t.Errorf("%s: the paths have the cells %#x", name, all)
		}
		if s, err := x.Route(Halves(Lanes)); err != nil || x.Permutation(s) != Halves(Lanes) {
			t.Errorf("%s: the halves are not swapped: %v", name, err)
		}
	}
	if _, err := (Matrix{{0, 4}, {1, 5}, {2, 6}}).Route(Halves(Lanes)); err == nil {
		t.Error("lane 3 has no coupler, and a way to lane 7")
	}
	twice := Matrix{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {0, 4}}
	if err := twice.Check(Lanes); err == nil {
		t.Error("two couplers in a row join the same lanes, and are told apart")
	}
}

// Goal: the cells of any matrix are found from nothing.
// Method: as with the Benes network.
func TestFindsEveryCellOfOtherMatrices(t *testing.T) {
	for name, x := range others {
		for seed := range uint64(3) {
			m, cfg := newOddModel(seed, oddness{matrix: x}), testConfig(seed)
			cfg.Matrix = x
			s, err := NewSearch(cfg)
			if err != nil {
				t.Fatal(err)
			}
			m.run(s)
			r, err := s.Result()
			if err != nil {
				t.Errorf("%s, seed %d: %v", name, seed, err)
				continue
			}
			if a, b, c := m.worst(r); a < 25 || b < 25 || c < 20 {
				t.Errorf("%s, seed %d: extinction MZI1 %.1f dB, MZI2 %.1f, matrix %.1f; want 25, 25, 20", name, seed, a, b, c)
			}
			for k := CellMatrix + len(x); k < Cells; k++ {
				if r.Volts[k] != [2]physic.ElectricPotential{} {
					t.Errorf("%s: %v for cell %d, which is none", name, r.Volts[k], k)
				}
			}
		}
	}
}

// Goal: cells that a search turns over are apart from the one it looks at.
// Method: every cell, for some permutations.
func TestCellsCanBeParted(t *testing.T) {
	// Every permutation's cells can be looked at with one other turned over.
	for _, p := range []Permutation{Halves(Lanes), {0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {3, 1, 4, 0, 5, 7, 2, 6}} {
		setting, err := Benes.Route(p)
		if err != nil {
			t.Fatal(err)
		}
		module := new(Module)
		for c := range Benes {
			if f := Benes.parting(setting, module, c); f.Bar(c) || !Benes.parted(setting^f, c) || bits.OnesCount32(uint32(f)) > 1 {
				t.Errorf("%v: cell %d is not parted by %#x", p, c, uint32(f))
			}
		}
	}
}

// Goal: a voltage lands on the DAC's grid within half a step.
// Method: tables over the range, ends included.
func TestCellInverse(t *testing.T) {
	const step = 10 * physic.Volt / 65536
	for i := range 500 {
		u := float64(i) * 0.1403
		v := Volts(u, step)
		if v%step != 0 {
			t.Fatalf("%v is not on the grid", v)
		}
		if d := math.Abs(float64(v) - math.Sqrt(u)*float64(physic.Volt)); d > float64(step)/2+1 {
			t.Errorf("u %v: %v is off by %v", u, v, d)
		}
	}
	if Volts(-1, step) != 0 || Volts(math.NaN(), step) != 0 {
		t.Error("no heat is not no voltage")
	}
}

// Goal: a fringe is found whatever its slope within the spread, from noise-free
// points exactly.
// Method: fringes over slopes and phases.
func TestFitFindsTheSlope(t *testing.T) {
	for i := range 40 {
		want := fringe{Mean: 3, Swing: 2.5, Slope: 0.1257 * (0.81 + 0.0095*float64(i)), Phase: Wrap(0.7 * float64(i))}
		p := points{n: firstPoints}
		for j := range p.n {
			p.u[j] = 56 * float64(j) / float64(p.n-1)
			p.y[j] = want.Mean + want.Swing*math.Cos(want.Slope*p.u[j]+want.Phase)
		}
		got := p.fit(0.1257*0.6, 0.1257*2)
		if math.Abs(got.Slope-want.Slope) > 2e-5 || math.Abs(Wrap(got.Phase-want.Phase)) > 1e-3 || math.Abs(got.Contrast()-want.Contrast()) > 1e-3 {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// Goal: neighbours' heat is allowed for, and a cell near no heat stays on its
// turn.
// Method: a chain of cells with strong crosstalk, solved, and the phases read
// back.
func TestSolveAllowsForCrosstalk(t *testing.T) {
	var m Module
	var want, u, most [Cells]float64
	var which []int
	for k := range Cells {
		m.Cells[k] = Cell{Offset: Wrap(float64(k) * 2.1), Slope: 0.12 + 0.0005*float64(k), Ohm: 1000}
		for i, x := range [...]float64{0.02, 0.005, 0.001} {
			for _, j := range [...]int{k - 1 - i, k + 1 + i, k + 8 + i} {
				if j >= 0 && j < Cells {
					m.Cross[k][j] = x
				}
			}
		}
		want[k] = PhaseBar * float64(k%2)
		most[k] = 59
		which = append(which, k)
	}
	m.Solve(which, &want, &u, &most)
	for k := range Cells {
		if e := math.Abs(Wrap(m.Phase(k, &u) - want[k])); e > 1e-6 || u[k] < 0 || u[k] > most[k] {
			t.Errorf("cell %d: off by %v rad at heat %v", k, e, u[k])
		}
	}
}

// Solve finds the heat of the cells in which, in this order, for their phases
// in want; the others stay at what u says. max is the most that each may take.
// The first round takes the least heat that is a little from nought; the later ones
// stay on its turn where they can, so that two neighbours do not push each other to
// and fro.
func (m *Module) Solve(which []int, want *[Cells]float64, u, max *[Cells]float64) {
	for round := range solveRounds {
		for _, k := range which {
			from := u[k]
			if round == 0 {
				from = m.least(k)
			}
			u[k] = m.heat(k, want[k], u, from, max[k])
		}
	}
}

// Permutation that a setting makes.
func (x Matrix) Permutation(s Setting) (p Permutation) {
	for i, l := range x.Lines(s) {
		p[i] = uint8(l.Out)
	}
	return p
}
