package study

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"ringlight/proto"
)

// smallRewire runs in tens of milliseconds.
func smallRewire(seed uint64) RewireConfig {
	return RewireConfig{Pods: 20, Groups: 2, SpinePorts: 8, Length: 2, Idle: []float64{0, 0.125}, Churn: []float64{0.1, 1}, Drawn: Drawn{Seed: seed}}
}

// Goal: interleaved wiring realises every topology, uniform wiring does not;
// the search keeps more than the published method, and that more than blind
// splits; nobody keeps more than the bound.
// Method: a middling core, every sequence.
// Reference: [CROSS] sec 6.2, Fig. 5 and 7
func TestRewireComparesTheMethods(t *testing.T) {
	cfg := DefaultRewire()
	cfg.Length = 2
	res, err := Rewire(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Rows) != len(cfg.Idle)*len(cfg.Churn)*len(rewireMethods) {
		t.Fatalf("%d rows", len(res.Rows))
	}
	for _, row := range res.Rows {
		if row.Kept > row.UpperBound || row.UpperBound > row.Circuits || row.Realised > row.Asked {
			t.Errorf("%+v: more than there can be", row)
		}
		uniform := row.Method == MethodGreedy || row.Method == MethodHelios
		if uniform == (row.Realised == row.Asked) || uniform == (math.Abs(row.LTRR-1) < 1e-12) || row.LTRRWorst > row.LTRR {
			t.Errorf("%+v: realised as the wiring cannot", row)
		}
		if row.MeanMS != nil {
			t.Errorf("%+v: a time without a clock", row)
		}
		if (row.Steps > 0) != (row.Method == MethodSearch) {
			t.Errorf("%+v: steps", row)
		}
	}
	for _, idle := range cfg.Idle {
		used := cfg.SpinePorts
		if idle > 0 {
			used -= 2 // an eighth of twelve ports, rounded
		}
		for _, churn := range cfg.Churn {
			kept := map[string]float64{}
			for _, m := range rewireMethods {
				row := res.of(idle, churn, m)
				if row == nil {
					t.Fatalf("idle %v, churn %v: no row of %s", idle, churn, m)
				}
				kept[m] = row.keptOfBound
				if want := cfg.Pods * used / 2 * cfg.Groups * cfg.Length; row.Asked != want {
					t.Errorf("idle %v: %d links asked, want %d", idle, row.Asked, want)
				}
				if least := int(float64(row.Circuits)*(1-churn)) - cfg.Groups*cfg.Length; m == MethodSearch && row.UpperBound < least {
					t.Errorf("churn %v: at most %d of %d circuits can stay, want %d and more", churn, row.UpperBound, row.Circuits, least)
				}
			}
			if kept[MethodSearch] < 1.2*kept[MethodPublished] || kept[MethodPublished] < 1.2*kept[MethodSplit] {
				t.Errorf("idle %v, churn %v: kept of the bound %v", idle, churn, kept)
			}
		}
	}
	if res.of(0, 0.5, MethodSearch) != nil {
		t.Error("a churn that was not run has a row")
	}
}

// Goal: the same seed gives the same result, another seed another, and a
// clock changes the times alone.
// Method: a clock that counts how often it is asked.
func TestRewireIsDeterministic(t *testing.T) {
	run := func(seed uint64, clock func() time.Duration) *RewireResult {
		cfg := smallRewire(seed)
		cfg.Clock = clock
		res, err := Rewire(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	plain := run(3, nil)
	if !reflect.DeepEqual(plain, run(3, nil)) {
		t.Error("seed 3 gives two results")
	}
	if reflect.DeepEqual(plain.Rows, run(4, nil).Rows) {
		t.Error("seeds 3 and 4 give the same result")
	}
	ticks := time.Duration(0)
	timed := run(3, func() time.Duration { ticks += time.Millisecond; return ticks * ticks / time.Millisecond })
	for n := range timed.Rows {
		row := &timed.Rows[n]
		if row.MeanMS == nil || row.WorstMS == nil || *row.MeanMS <= 0 || *row.WorstMS < *row.MeanMS {
			t.Fatalf("%+v: no times", row)
		}
		row.MeanMS, row.WorstMS = nil, nil
	}
	if !reflect.DeepEqual(plain.Rows, timed.Rows) {
		t.Error("a clock changes the result")
	}
}

// Goal: what a study is refused names the flag.
// Method: one of each.
func TestRewireRefuses(t *testing.T) {
	for _, c := range []struct {
		field  string
		change func(*RewireConfig)
	}{
		{"pods", func(c *RewireConfig) { c.Pods = 1 }}, {"pods", func(c *RewireConfig) { c.Pods = 5000 }},
		{"groups", func(c *RewireConfig) { c.Groups = 0 }}, {"spine-ports", func(c *RewireConfig) { c.SpinePorts = 7 }},
		{"pods", func(c *RewireConfig) { c.Pods, c.Groups, c.SpinePorts = 4096, 1024, 4096 }},
		{"length", func(c *RewireConfig) { c.Length = 0 }}, {"steps", func(c *RewireConfig) { c.Steps = -1 }},
		{"idle", func(c *RewireConfig) { c.Idle = nil }}, {"idle", func(c *RewireConfig) { c.Idle = []float64{1} }},
		{"churn", func(c *RewireConfig) { c.Churn = []float64{0} }}, {"churn", func(c *RewireConfig) { c.Churn = []float64{math.NaN()} }},
	} {
		cfg := smallRewire(1)
		c.change(&cfg)
		_, err := Rewire(cfg)
		var e *proto.Error
		if !errors.As(err, &e) || e.Field != c.field || e.Limit == "" {
			t.Errorf("%v, want an error that names %s and its limit", err, c.field)
		}
	}
}

// Goal: a drawn topology has every port that should be in use in use, at any
// churn, and none of a pod with itself.
// Method: small cores down to two pods, the ports counted.
func TestDrawnTopologiesUseTheirPorts(t *testing.T) {
	for pods := 2; pods < 12; pods++ {
		cfg := RewireConfig{Pods: pods, Groups: 2, SpinePorts: 6, Drawn: Drawn{Seed: uint64(pods)}}
		s := newSequence(cfg, 0, 0.3)
		for range 20 {
			s.advance()
			for h, top := range s.wanted {
				idle := 0
				for _, n := range top.Ports() {
					if n > cfg.SpinePorts {
						t.Fatalf("%d pods: %v", pods, top)
					}
					idle += cfg.SpinePorts - n
				}
				for _, l := range top.Links {
					if l.I == l.J {
						t.Fatalf("%d pods: a pod joined with itself: %v", pods, top)
					}
				}
				if pods%2 == 0 && pods > 2 && idle > 4 || idle > 6 {
					t.Errorf("%d pods, group %d: %d ports idle", pods, h, idle)
				}
			}
		}
	}
}
