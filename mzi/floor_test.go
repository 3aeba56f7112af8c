package mzi

import "testing"

// Goal: a diode whose zero lies below its converter's hides no leak: the module stands
// right, and its own figure is no better than it is.
// Method: modules of the tests' model whose channels are up to 8 steps and 5 % off;
// what the search says is compared with the model's truth.
func TestLittleLightIsSeenBelowTheConvertersZero(t *testing.T) {
	lifted := 0
	for seed := range uint64(5) {
		m := newOddModel(seed, oddness{offset: 8, gain: 0.05})
		s, err := NewSearch(testConfig(seed))
		if err != nil {
			t.Fatal(err)
		}
		m.run(s)
		r, err := s.Result()
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			continue
		}
		for d, dark := range s.below.dark {
			full := 2e-3
			if d >= Lanes {
				full = 8e-3
			}
			if !dark || s.below.one[d] == s.below.two[d] { // see pair
				continue
			}
			lifted++
			if steps, truth := s.below.low(s, d)/full*4096, max(-m.bias[d], 0); steps < truth*0.9-0.8 || steps > truth*1.1+0.3 {
				t.Errorf("seed %d: diode %d is %.1f steps below, found %.1f", seed, d, truth, steps)
			}
		}
		one, two, mat := m.worst(r)
		if own, truth := float64(r.Own.MZI)/1000, min(one, two); truth < 26 || own > truth+0.7 {
			t.Errorf("seed %d: MZI1 and MZI2 have %.1f dB, own figure %.1f", seed, truth, own)
		}
		if own := float64(r.Own.Matrix) / 1000; mat < 26 || own > mat+0.7 {
			t.Errorf("seed %d: the matrix has %.1f dB, own figure %.1f", seed, mat, own)
		}
	}
	if lifted < 10 {
		t.Errorf("only %d diodes were in question", lifted)
	}
}

// Goal: what a converter cuts off of noise around nought hides no leak either: a module's own
// figure is no better than it is.
// Method: modules whose zeros are those of their converters, with the usual noise and twice
// that. Without light that lifts such a diode they are told up to 2.1 dB better than they are.
func TestNoiseCutOffHidesNoLeak(t *testing.T) {
	for _, noise := range []float64{1, 2} {
		for seed := range uint64(4) {
			m := newOddModel(seed, oddness{noise: noise})
			s, err := NewSearch(testConfig(seed))
			if err != nil {
				t.Fatal(err)
			}
			m.run(s)
			r, err := s.Result()
			if err != nil {
				t.Errorf("noise %g, seed %d: %v", noise, seed, err)
				continue
			}
			one, two, mat := m.worst(r)
			if own, truth := float64(r.Own.MZI)/1000, min(one, two); own > truth+0.5 {
				t.Errorf("noise %g, seed %d: MZI1 and MZI2 have %.1f dB, own figure %.1f", noise, seed, truth, own)
			}
			if own := float64(r.Own.Matrix) / 1000; own > mat+0.5 {
				t.Errorf("noise %g, seed %d: the matrix has %.1f dB, own figure %.1f", noise, seed, mat, own)
			}
		}
	}
}
