package testbed

import (
	"slices"
	"testing"
	"time"
)

// Goal: a mean of no steps is none, and of some the whole microseconds of theirs.
func TestMeanOfSteps(t *testing.T) {
	for want, of := range map[int64][]int64{0: nil, 5: {5}, 7: {4, 11}} { // any order: each its own
		if s := (Steps{Micros: of}); s.Mean() != want {
			t.Errorf("mean of %v: %d, want %d", of, s.Mean(), want)
		}
	}
}

// Goal: steps are those that ended since a time, each as long as since the one before it,
// and a sum that is wrong, or no number, counts, of whichever rank.
func TestStepsOfAnInterval(t *testing.T) {
	x := &trainer{begun: time.Now(), came: []arrival{{0, 10 * time.Millisecond}, {1, 30 * time.Millisecond}, {2, 35 * time.Millisecond}}}
	if got := x.took(20 * time.Millisecond); !slices.Equal(got, []int64{20_000, 5_000}) {
		t.Errorf("took %v", got)
	}
	x.step(1, "3")
	x.step(1, "no number")
	x.step(2, "0")
	if steps, wrong, err := x.done(20 * time.Millisecond); steps != 2 || wrong != 2 || err != nil {
		t.Errorf("%d steps, %d wrong, %v", steps, wrong, err)
	}
}
