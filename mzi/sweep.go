package mzi

import (
	"fmt"
	"math"

	"ringlight/mzi/detmath"

	"periph.io/x/conn/v3/physic"
)

// see is what a sweep looks at.
type see uint8

const (
	seeNone  see = iota
	seeRail      // no sweep: one reading of the rail
	seeDark      // no sweep: all diodes with no laser on
	seeLevel     // no sweep: one reading for the result
	seeLoop      // sum of the loopback lanes
	seeLane      // one loopback lane
	seePart      // one loopback lane, of all of them
	seeIn        // sum of the loopback lanes, of all light
	seeTap1      // one Tx tap
	seeTap2      //
	seeTaps      // both
	seeSplit     // the first, of both
)

// seeReads are the readings that show it.
var seeReads = [...]Reading{seeRail: ReadRail, seeDark: ReadAll, seeLoop: ReadLanes, seeLane: ReadLane, seePart: ReadLanes, seeIn: ReadAll,
	seeTap1: ReadTaps, seeTap2: ReadTaps, seeTaps: ReadTaps, seeSplit: ReadTaps}

// sweep is the measurement under way: one cell's heat over several points.
type sweep struct {
	see    see
	cell   int
	lane   int // of seeLane and seePart
	at     int // point being measured
	fits   bool
	pts    points
	sample Sample // the last
	fringe fringe

	// The last point is read until its mean is as sure as wanted.
	sure      float64 // deviation of the mean that will do; 0: one reading does
	least     int     // readings, that they tell how far they are off
	most      int
	n         int
	sum, sums float64
}

// measuring says whether a measurement is begun and not taken.
func (s *Search) measuring() bool { return s.sweep.see != seeNone }

// once asks for a single reading.
func (s *Search) once(what see, read Reading, lasers uint8) bool {
	w := &s.sweep
	w.see, w.fits = what, false
	w.pts.n, w.at, w.n, w.sum, w.sums, w.sure = 1, 0, 0, 0, 0, 0
	s.drive.Read, s.drive.Lasers = read, lasers
	return true
}

// scan begins a sweep of a cell over its whole heat, seen with one lane's laser
// alone.
func (s *Search) scan(cell, n int, what see, laser, lane int) bool {
	for i := range n {
		s.sweep.pts.u[i] = float64(s.max[cell] * float64(i) / float64(n-1))
	}
	s.sweep.fits = true
	return s.visit(cell, n, what, laser, lane)
}

// look begins a measurement of a cell at some heats.
func (s *Search) look(cell int, what see, laser, lane int, heats ...float64) bool {
	s.sweep.fits = false
	n := copy(s.sweep.pts.u[:], heats)
	return s.visit(cell, n, what, laser, lane)
}

func (s *Search) visit(cell, n int, what see, laser, lane int) bool {
	w := &s.sweep
	w.see, w.cell, w.lane, w.at = what, cell, lane, 0
	w.pts.n, w.n, w.sum, w.sums, w.sure = n, 0, 0, 0, 0
	s.drive.Lasers, s.drive.Lane, s.drive.Read = 1<<laser, lane, seeReads[what]
	s.heat(cell, w.pts.u[0])
	return true
}

// until has the last point of the measurement that has begun read until it is sure
// to a deviation, so many times at least and at most.
func (s *Search) until(sure float64, least, most int) bool {
	s.sweep.sure, s.sweep.least, s.sweep.most = sure, least, most
	return true
}

// enough takes a reading of a point and says whether its mean will do.
func (w *sweep) enough(y float64) bool {
	w.n++
	w.sum += y
	w.sums += float64(y * y)
	if w.sure == 0 || w.at < w.pts.n-1 || w.n >= w.most {
		return true
	}
	return w.n >= w.least && w.off() <= w.sure
}

// off is by how much the mean of a point's readings is off, rms.
func (w *sweep) off() float64 {
	n := float64(w.n)
	if w.n < 2 {
		return 0
	}
	return math.Sqrt(max(w.sums-float64(w.sum*w.sum/n), 0) / (n * (n - 1)))
}

// take notes a sample and, at the end of a sweep, fits it.
func (s *Search) take(sample *Sample) {
	w := &s.sweep
	w.sample = *sample
	if w.see < seeLoop {
		w.see = seeNone
		return
	}
	if !w.enough(sample.seen(w.see, w.lane, &s.result.Dark)) {
		return
	}
	w.pts.u[w.at] = s.u[w.cell]
	w.pts.y[w.at] = w.sum / float64(w.n)
	if w.at++; w.at < w.pts.n {
		w.n, w.sum, w.sums = 0, 0, 0
		s.heat(w.cell, w.pts.u[w.at])
		return
	}
	w.see = seeNone
	if !w.fits {
		return
	}
	lo, hi := s.slopes(w.cell)
	w.fringe = w.pts.fit(lo, hi)
	if s.m.Cells[w.cell].Slope != 0 && w.fringe.against(lo, hi) {
		// What is known of the slope is wrong: a route's last sweep can be
		// bent by the cells that its heat reaches. Begin again.
		lo, hi = s.anySlope(w.cell)
		w.fringe = w.pts.fit(lo, hi)
	}
}

// seen is what a measurement looks at in a sample, in watts or as a share, without
// what the diodes show in the dark.
func (x *Sample) seen(what see, lane int, dark *Sample) float64 {
	loop, taps := physic.Power(0), [2]physic.Power{x.Tap[0] - dark.Tap[0], x.Tap[1] - dark.Tap[1]}
	for i, p := range x.Lane {
		loop += p - dark.Lane[i]
	}
	one := x.Lane[lane] - dark.Lane[lane]
	watt := func(p physic.Power) float64 { return float64(p) / float64(physic.Watt) }
	switch what {
	case seeLoop:
		return watt(loop)
	case seeLane:
		return watt(one)
	case seePart:
		return ratio(one, loop)
	case seeIn:
		return ratio(loop, loop+taps[0]+taps[1])
	case seeTap1:
		return watt(taps[0])
	case seeTap2:
		return watt(taps[1])
	case seeTaps:
		return watt(taps[0] + taps[1])
	case seeSplit:
		return ratio(taps[0], taps[0]+taps[1])
	}
	panic("mzi: nothing to see")
}

// ratio of a light to all of it; 0 in the dark.
func ratio(part, all physic.Power) float64 {
	if all <= 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// slopes bounds the slope of a cell: widely before it is known.
func (s *Search) slopes(k int) (lo, hi float64) {
	c := &s.m.Cells[k]
	if c.Slope != 0 {
		return c.Slope * (1 - slopeKnown), c.Slope * (1 + slopeKnown)
	}
	return s.anySlope(k)
}

// anySlope bounds the slope of a cell of which only the resistance is known: by
// what the maker states, and once the lanes' own cells are known, whose light
// nothing else bends, by what theirs are.
func (s *Search) anySlope(k int) (lo, hi float64) {
	least, most := float64(s.cfg.LeastPi)/float64(physic.Watt), float64(s.cfg.MostPi)/float64(physic.Watt)
	if k >= CellMatrix {
		first, last := math.MaxFloat64, 0.0
		for j := 0; j < CellMatrix; j = s.after(j) {
			p := detmath.Pi / (s.m.Cells[j].Slope * s.m.Cells[j].Ohm)
			first, last = min(first, p), max(last, p)
		}
		least, most = max(least, float64(first*(1-slopeSpread))), min(most, last/(1-slopeSpread))
	}
	return detmath.Pi / (most * s.m.Cells[k].Ohm), detmath.Pi / (least * s.m.Cells[k].Ohm)
}

const (
	// chosen: sixteen cells of a module show about half of what its cells differ by
	// where they differ by a quarter.
	slopeSpread = 0.2
	// chosen: five times what a first sweep leaves open, so that a later one
	// may still correct it.
	slopeKnown = 0.03
)

// learn takes a fringe of cell k, whose maximum is at phase top, into the
// model.
func (s *Search) learn(k int, f *fringe, top float64) {
	c := &s.m.Cells[k]
	s.swing[k] = f.Swing
	c.Slope = f.Slope
	c.Offset = Wrap(f.Phase + top - s.m.Background(k, &s.u))
}

// aim sets a cell to a phase, as far as the model knows, with the least heat that
// leaves it some way to either side.
func (s *Search) aim(k int, phase float64) {
	s.heat(k, s.m.heat(k, phase, &s.u, s.m.least(k), s.max[k]))
}

// reach fails a cell whose states both, or the one that it needs, lie beyond its
// heat.
func (s *Search) reach(k int, phase float64) bool {
	c := &s.m.Cells[k]
	u := s.m.heat(k, phase, &s.u, s.m.least(k), s.max[k])
	off := math.Abs(Wrap(c.Offset + float64(c.Slope*u) + s.m.Background(k, &s.u) - phase))
	if off <= turnSlack {
		return true
	}
	have := s.max[k] / c.Ohm
	s.fail(k, OutOfReach, fmt.Sprintf("%.2f rad short with %.1f mW of %.0f ohm, %.1f V; pi takes it %.1f mW", off, 1000*have, c.Ohm, math.Sqrt(s.max[k]), 1000*detmath.Pi/(c.Slope*c.Ohm)))
	return false
}
