package ocs

import (
	"slices"
	"sort"
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
	in := s.in()
	if len(in) == 0 {
		return 0, 0, len(s.took)
	}
	return in[0], in[len(in)-1], len(s.took) - len(in)
}

// in are those that are believed, the shortest first.
func (s *trials) in() []time.Duration {
	sorted := slices.Clone(s.took)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	for len(sorted) > 0 && sorted[0] <= 0 {
		sorted = sorted[1:]
	}
	if len(sorted) == 0 {
		return nil
	}
	median := sorted[len(sorted)/2]
	off := slices.Clone(sorted)
	for i, d := range off {
		off[i] = max(d-median, median-d)
	}
	sort.Slice(off, func(i, j int) bool { return off[i] < off[j] })
	fence := max(7*off[len(off)/2], lateFloor)
	return slices.DeleteFunc(sorted, func(d time.Duration) bool { return max(d-median, median-d) > fence })
}

// beyond widens what is believed by a quarter of its width: a few dozen trials
// do not meet the worst. chosen. Below by no more than from the shortest to the
// middle: a busy host draws times out to one side, and that some come late does
// not say that others may come sooner.
func (s *trials) beyond() (least, most time.Duration) {
	sorted := s.in()
	if len(sorted) == 0 {
		return 0, 0
	}
	least, most = sorted[0], sorted[len(sorted)-1]
	more := (most - least) / 4
	return max(least-min(more, sorted[len(sorted)/2]-least), 0), most + more
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

// detection is how long light took to be noticed. The host notes an edge, and
// acts on it some time after, when it is busy long after: no decision comes
// sooner than the one or later than the other. Both are counted from the end of
// the write that made the light, which a busy host is told late: whose write
// seems to have taken more than twice the shortest, and longer than half of
// them, is not asked how soon its edge was noted.
type detection struct {
	noted, wrote []time.Duration
	seen         trials
}

func (d *detection) add(noted, seen, wrote time.Duration) {
	d.noted, d.wrote = append(d.noted, noted), append(d.wrote, wrote)
	d.seen.add(seen)
}

func (d *detection) bounds() (least, most time.Duration) {
	wrote := slices.Clone(d.wrote)
	sort.Slice(wrote, func(i, j int) bool { return wrote[i] < wrote[j] })
	var soon trials
	for i, w := range d.wrote {
		if w <= max(2*wrote[0], wrote[len(wrote)/2]) {
			soon.add(d.noted[i])
		}
	}
	least, _ = soon.bounds()
	_, most = d.seen.bounds()
	return min(least, most), most
}

// sighting is one look at a module after a switch, and whether its light was there.
type sighting struct {
	module int
	at     time.Duration
	lit    bool
}

// soonest is the latest time at which no module had light yet: of each the
// latest look in the dark that came before all that found light. 0 where nobody
// looked in time: a light that is found late may have come at once.
func soonest(looks []sighting, settle time.Duration) time.Duration {
	first := make(map[int]time.Duration)
	for _, g := range looks {
		if at, ok := first[g.module]; g.lit && (!ok || g.at < at) {
			first[g.module] = g.at
		}
	}
	dark := make(map[int]time.Duration)
	for _, g := range looks {
		if at, ok := first[g.module]; !g.lit && (!ok || g.at < at) {
			dark[g.module] = max(dark[g.module], g.at)
		}
	}
	least := settle
	for _, g := range looks {
		least = min(least, dark[g.module])
	}
	return max(least, 0)
}
