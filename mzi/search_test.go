package mzi

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Goal: every cell of a module is found from nothing.
// Method: modules of the tests' own model; the extinctions are read off the
// model, not off the search.
func TestFindsEveryCellFromNothing(t *testing.T) {
	seeds := 60 // make bench-calibration takes 200, on the simulated board
	if testing.Short() {
		seeds = 20
	}
	var one, two, mat, count []float64
	for seed := range seeds {
		m := newModel(uint64(seed))
		s, err := NewSearch(testConfig(uint64(seed)))
		if err != nil {
			t.Fatal(err)
		}
		m.run(s)
		r, err := s.Result()
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		a, b, c := m.worst(r)
		one, two, mat = append(one, a), append(two, b), append(mat, c)
		count = append(count, float64(r.Measurements))
		if a < 25 || b < 25 || c < 20 {
			t.Errorf("seed %d: extinction MZI1 %.1f dB, MZI2 %.1f, matrix %.1f; want 25, 25, 20", seed, a, b, c)
		}
		if m.maxPower > 60e-3 || m.maxVolt > 8.5 {
			t.Errorf("seed %d: a heater had %.1f mW, %.2f V", seed, 1e3*m.maxPower, m.maxVolt)
		}
		// Some seven thousand. A last touch that comes to no end takes 12,000.
		if r.Measurements < 1000 || r.Measurements > 9000 {
			t.Errorf("seed %d: %d measurements", seed, r.Measurements)
		}
	}
	for _, x := range []struct {
		name string
		v    []float64
	}{{"MZI1", one}, {"MZI2", two}, {"matrix", mat}, {"measurements", count}} {
		slices.Sort(x.v)
		if n := len(x.v); n > 0 {
			t.Logf("%-12s min %.1f p05 %.1f p50 %.1f max %.1f", x.name, x.v[0], x.v[n/20], x.v[n/2], x.v[n-1])
		}
	}
}

// Goal: a search that cannot succeed names the cell and says why.
// Method: one fault each, on a cell of each kind.
func TestFaultsAreNamed(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(*model)
		cells []int
		fault []Fault
	}{
		{"open MZI1", func(m *model) { m.open = 3 }, []int{3}, []Fault{Open}},
		{"open matrix", func(m *model) { m.open = 29 }, []int{29}, []Fault{Open}},
		{"short MZI2", func(m *model) { m.short = 11 }, []int{11}, []Fault{Short}},
		{"cold MZI1", func(m *model) { m.cold = 5 }, []int{5}, []Fault{NoResponse}},
		{"cold MZI2", func(m *model) { m.cold = 14 }, []int{14}, []Fault{NoResponse}},
		{"cold matrix", func(m *model) { m.cold = CellMatrix + 9 }, []int{CellMatrix + 9}, []Fault{NoResponse, NoRoute}},
		{"walking MZI1", func(m *model) { m.walk = 2 }, []int{2}, []Fault{Drifting}},
		{"walking MZI2", func(m *model) { m.walk = 8 }, []int{8}, []Fault{Drifting}},
		{"walking matrix", func(m *model) { m.walk = 35 }, []int{35}, []Fault{Drifting}},
		{"dead laser", func(m *model) { m.dead = 6 }, []int{CellMZI1 + 6}, []Fault{NoLight}},
	}
	for out := range Lanes {
		// A blind diode shows up where the search first needs it: at the MZI1
		// of its lane, on a way through the matrix, or at the end.
		tests = append(tests, struct {
			name  string
			spoil func(*model)
			cells []int
			fault []Fault
		}{fmt.Sprintf("blind diode %d", out), func(m *model) { m.diode[out] = 0 }, nil, []Fault{NoLight}})
	}
	seeds := uint64(4)
	if testing.Short() {
		seeds = 1
	}
	for _, tt := range tests {
		for seed := range seeds {
			m := newModel(seed)
			tt.spoil(m)
			s, err := NewSearch(testConfig(seed))
			if err != nil {
				t.Fatal(err)
			}
			m.run(s)
			_, err = s.Result()
			var found *CellError
			if !errors.As(err, &found) {
				t.Errorf("%s, seed %d: %v, want a cell named", tt.name, seed, err)
				continue
			}
			if lane, ok := strings.CutPrefix(tt.name, "blind diode "); ok && found.Figure != "none at the loopback diode of lane "+lane+": it is dead, or no light comes to it" {
				t.Errorf("%s, seed %d: the diode is not named: %v", tt.name, seed, err)
			}
			if tt.cells != nil && !slices.Contains(tt.cells, found.Cell) || !slices.Contains(tt.fault, found.Fault) {
				t.Errorf("%s, seed %d: %v", tt.name, seed, err)
			}
		}
	}
}

// Goal: a search that is not over has no result, and one without limits does
// not begin.
// Method: ask too early; leave each limit out.
func TestRefusesToGuess(t *testing.T) {
	s, err := NewSearch(testConfig(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Result(); err == nil {
		t.Error("a result before the first measurement")
	}
	for i, spoil := range []func(*Config){
		func(c *Config) { c.Step = 0 }, func(c *Config) { c.MaxVoltage = 0 }, func(c *Config) { c.MaxCurrent = 0 },
		func(c *Config) { c.MaxPower = 0 }, func(c *Config) { c.Lanes = 5 },
	} {
		cfg := testConfig(1)
		spoil(&cfg)
		if _, err := NewSearch(cfg); err == nil {
			t.Errorf("config %d was accepted", i)
		}
	}
}

// BenchmarkSearch is one module from nothing; most of the time goes into the
// tests' model.
func BenchmarkSearch(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		m := newModel(uint64(i))
		s, err := NewSearch(testConfig(uint64(i)))
		if err != nil {
			b.Fatal(err)
		}
		m.run(s)
	}
}

// BenchmarkNext is the search's own share: the answers are the same whatever it
// asks.
func BenchmarkNext(b *testing.B) {
	m := newModel(1)
	s, _ := NewSearch(testConfig(1))
	var samples []Sample
	var sample Sample
	for {
		d, settling, done := s.Next(&sample)
		if done {
			break
		}
		sample = m.measure(d, settling)
		samples = append(samples, sample)
	}
	b.ReportMetric(float64(len(samples)), "measurements/search")
	for b.Loop() {
		s, _ := NewSearch(testConfig(1))
		for i := range samples {
			s.Next(&samples[max(i-1, 0)])
		}
	}
}
