package ocs

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestTrialsBelieveNoLateCall(t *testing.T) {
	// Goal: bounds of trials hold what the hardware takes, are never 0, and count
	// what came late: one call in a thousand to every fifth, 3 ms late or told too
	// late to have taken any time at all.
	// Method: 40 to 150 us as on the board page, 2,000 seeds.
	rng := rand.New(rand.NewPCG(7, 11))
	for _, part := range []float64{0, 0.001, 0.02, 0.1, 0.2} {
		for range 400 {
			var s trials
			least, most, spoilt := time.Hour, time.Duration(0), 0
			for !s.enough(32) {
				d := 60*time.Microsecond + time.Duration(rng.Int64N(int64(60*time.Microsecond)))
				switch {
				case rng.Float64() >= part:
					least, most = min(least, d), max(most, d)
				case rng.IntN(4) == 0:
					spoilt, d = spoilt+1, 0
				default:
					spoilt, d = spoilt+1, d+3*time.Millisecond
				}
				s.add(d)
			}
			low, high := s.bounds()
			_, _, late := s.believed()
			if low <= 0 || low > least || high < most || high > 2*most || late != spoilt {
				t.Fatalf("%v late: %v to %v, %d not believed; %d were late, the others %v to %v: %v", part, low, high, late, spoilt, least, most, s.took)
			}
			if len(s.took)-late < 32 && len(s.took) < 32*maxMoreTrials {
				t.Fatalf("%d trials, %d late: not made up for", len(s.took), late)
			}
		}
	}
}

func TestTrialsOfABusyHost(t *testing.T) {
	// Goal: however a host that is busy spreads its times, a bound is over 0, at
	// least half of the trials lie within, and the end comes.
	rng := rand.New(rand.NewPCG(3, 5))
	for range 2000 {
		var s trials
		for !s.enough(32) {
			d := time.Duration(rng.ExpFloat64() * float64(2*time.Millisecond))
			if rng.IntN(3) == 0 {
				d = -d / 10
			}
			s.add(d)
		}
		low, high := s.bounds()
		_, _, late := s.believed()
		if low <= 0 || low > high || len(s.took) > 32*maxMoreTrials || late > len(s.took)*3/4 {
			t.Fatalf("%v to %v of %d, %d late", low, high, len(s.took), late)
		}
	}
	var none trials
	none.add(0)
	if low, high := none.bounds(); low < 0 || low > high {
		t.Error(low, high)
	}
}

func TestDetectionOnABusyHost(t *testing.T) {
	// Goal: however late a host acts on an edge, or is told that a write has ended,
	// the soonest that it can notice light is a bound that says something, and not
	// more than is true. It was 1 us on nearly every busy host: the widest trial
	// widened the bound below by a quarter of itself.
	// Method: edges noted 40 to 110 us after the light, acted on 0 to 5 ms later and
	// most within 0.3; of four writes one seems to take up to 2 ms more.
	rng := rand.New(rand.NewPCG(5, 13))
	floors, above := 0, 0
	for range 1000 {
		var d detection
		for !d.seen.enough(32) {
			noted := 40*time.Microsecond + time.Duration(rng.Int64N(int64(70*time.Microsecond)))
			seen := noted + min(time.Duration(rng.ExpFloat64()*float64(300*time.Microsecond)), 5*time.Millisecond)
			wrote := 29*time.Microsecond + time.Duration(rng.Int64N(int64(time.Microsecond)))
			if rng.IntN(4) == 0 {
				late := time.Duration(rng.Int64N(int64(2 * time.Millisecond)))
				noted, seen, wrote = noted-late, seen-late, wrote+late
			}
			d.add(noted, seen, wrote)
		}
		least, most := d.bounds()
		if most < 110*time.Microsecond {
			t.Fatalf("%v to %v", least, most)
		}
		switch {
		case least < 10*time.Microsecond:
			floors++
		case least > 40*time.Microsecond:
			above++
		}
	}
	t.Logf("%d of 1000 bounds say nothing, %d more than is true", floors, above)
	if floors > 30 || above > 10 {
		t.Error("too many")
	}
}

func TestLightThatIsFoundLateMayHaveComeAtOnce(t *testing.T) {
	// Goal: the shortest switch is bounded by looks that found no light, of the
	// quickest module; a host that looks late knows nothing of it. It took the first
	// look that found light for the first light.
	us := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	for _, c := range []struct {
		name  string
		looks []sighting
		want  time.Duration
	}{
		{"all late", []sighting{{0, us(170), true}, {0, us(150), true}, {1, us(300), true}}, 0},
		{"one module", []sighting{{0, us(20), false}, {0, us(35), false}, {0, us(45), true}}, us(35)},
		{"the quicker", []sighting{{0, us(35), false}, {0, us(45), true}, {1, us(20), false}, {1, us(30), true}}, us(20)},
		{"never looked in the dark", []sighting{{0, us(35), false}, {0, us(45), true}, {1, us(30), true}}, 0},
		{"one that came late once", []sighting{{0, us(20), false}, {0, us(30), true}, {0, us(55), false}}, us(20)},
		{"in the dark for longer than settling", []sighting{{0, us(90), false}}, 70 * time.Microsecond},
		{"before the write's end", []sighting{{0, us(-5), false}, {0, us(5), true}}, 0},
	} {
		if got := soonest(c.looks, 70*time.Microsecond); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
