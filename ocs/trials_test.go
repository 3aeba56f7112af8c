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
