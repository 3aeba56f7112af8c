package fleet

import (
	"testing"
	"time"

	"ringlight/planner/fabric"
)

// Goal: an agent has as much of its processor as it is given, never less for long,
// and work is done in no more of its slices than it takes.
// Method: several shares over many periods, each slice looked at; work of half a
// slice, and of many.
func TestAShareOfAProcessor(t *testing.T) {
	for _, parts := range []uint32{leastShare, million / 50, million / 20, million * 3 / 10, million - 1} {
		s := shareOf(7, parts)
		had, last := time.Duration(0), time.Duration(0)
		for n, at := 0, time.Duration(0); n < 1000; n++ {
			begin, end := s.from(at)
			if begin-last > 2*(s.period-sliceTime) || end-begin > sliceTime {
				t.Fatalf("%d parts: a slice from %v to %v after %v", parts, begin, end, last)
			}
			had, last, at = had+end-begin, end, end
		}
		if want := time.Duration(int64(last) * int64(parts) / million); had < want-sliceTime || had > want+sliceTime {
			t.Errorf("%d parts: %v of %v, want %v", parts, had, last, want)
		}
		for _, work := range []time.Duration{sliceTime / 2, 40 * sliceTime} {
			if took := s.done(0, work); took < work || took > (work/sliceTime+2)*s.period {
				t.Errorf("%d parts: %v of work takes %v", parts, work, took)
			}
		}
	}
	if s := shareOf(7, million); s != (share{}) {
		t.Errorf("a whole processor is shared: %+v", s)
	}
}

// Goal: what is lost above TCP and starved agents make a run another one, which
// the same seed repeats; both end as the script says.
// Method: one script with and without them, twice; how many packets and polls it
// takes, and the hash.
func TestLossAndStarvationAreRepeated(t *testing.T) {
	once := func(shed, starve uint32, lines ...string) *Result {
		cfg := testConfig(t, 16, 2, 32, fabric.Line)
		cfg.Span, cfg.Shed, cfg.Starve = 30*time.Second, shed, starve
		cfg.Faults = script(t, append(lines, "5s node dark 5", "15s node on 5")...)
		return run(t, cfg)
	}
	plain := once(0, 0)
	for what, other := range map[string]func() *Result{
		"loss":               func() *Result { return once(1000, 0) },
		"starved":            func() *Result { return once(0, million/20) },
		"loss by a line":     func() *Result { return once(0, 0, "1s network shed 200000", "12s network shed 0") },
		"starved by a line":  func() *Result { return once(0, 0, "1s agent starve 4 50000 for 10s", "12s agent starve 6 20000") },
		"starved for itself": func() *Result { return once(0, million) },
	} {
		a, b := other(), other()
		if a.TraceSHA256 != b.TraceSHA256 {
			t.Errorf("%s: one seed, two traces", what)
		}
		if same := a.TraceSHA256 == plain.TraceSHA256; same != (what == "starved for itself") {
			t.Errorf("%s: the trace of a run without is the same: %t", what, same)
		}
	}
}
