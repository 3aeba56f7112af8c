package ocs

import (
	"slices"
	"time"
)

// trials are the times that one thing took, again and again. A call that comes
// late, or a completion told late, makes a time that the hardware did not take:
// it is counted and not believed. Believed is what is over zero and no further
// from the median than seven times the median distance to it (Tukey's outer
// fence, for times that lie alike on both sides), and lateFloor in any case.
// That is half of them at least: up to so many late ones spoil no bound, and a
// host that is late oftener than that is measured as the host that it is.
type trials struct {
	took []time.Duration
}

// lateFloor is how far a time may lie from the others on a host that is always
// prompt. chosen: twice the slowest interrupt of the board page.
const lateFloor = 150 * time.Microsecond

// maxMoreTrials is how often late trials are made up for, in times of their
// planned number. chosen: a host that is late in every second trial shows that
// as its own width.
const maxMoreTrials = 2

func (s *trials) add(d time.Duration) { s.took = append(s.took, d) }

// believed are the shortest and the longest that are, and how many are not.
func (s *trials) believed() (least, most time.Duration, late int) {
	sorted := slices.Clone(s.took)
	slices.Sort(sorted)
	n := len(sorted)
	for len(sorted) > 0 && sorted[0] <= 0 {
		sorted = sorted[1:]
	}
	if len(sorted) == 0 {
		return 0, 0, n
	}
	median := sorted[len(sorted)/2]
	off := slices.Clone(sorted)
	for i, d := range off {
		off[i] = max(d-median, median-d)
	}
	slices.Sort(off)
	fence := max(7*off[len(off)/2], lateFloor)
	in := slices.DeleteFunc(sorted, func(d time.Duration) bool { return max(d-median, median-d) > fence })
	return in[0], in[len(in)-1], n - len(in)
}

// beyond widens what is believed by a quarter of its width at both ends: a few
// dozen trials do not meet the worst. chosen.
func (s *trials) beyond() (least, most time.Duration) {
	least, most, _ = s.believed()
	more := (most - least) / 4
	return max(least-more, 0), most + more
}

// bounds are beyond for what is a bound by itself: nothing happens in no time.
func (s *trials) bounds() (least, most time.Duration) {
	least, most = s.beyond()
	return max(least, time.Microsecond), max(most, time.Microsecond)
}

// enough tells whether want of them are believed, or no more are to be made.
func (s *trials) enough(want int) bool {
	if len(s.took) < want || len(s.took)%2 != 0 {
		return false
	}
	_, _, late := s.believed()
	return len(s.took)-late >= want || len(s.took) >= maxMoreTrials*want
}
