package mzi

import (
	"fmt"
	"math"
	"time"
)

// pacing is the state of the stage that measures how fast heat settles. MZI1 and
// MZI2 of every lane go to the steepest of their fringes from either end of
// their heat, and are read after a time; where that is not what is read after
// the longest time that the maker states, the time was too short.
type pacing struct {
	cell, end, try int
	rung           int // of paces
	at             paceStep
	final          float64    // what is seen in the end
	off            [2]float64 // that readings of this rung were off from it, by end: their sum
}

type paceStep uint8

const (
	paceFinal paceStep = iota // read after the longest time
	paceAway                  // at an end of the heat
	paceBack                  // read after the time under trial
)

// paces are the times under trial. chosen: half as long again from one to the next
// but one.
var paces = [...]time.Duration{40 * time.Microsecond, 55 * time.Microsecond, 80 * time.Microsecond, 110 * time.Microsecond, 160 * time.Microsecond,
	220 * time.Microsecond, 320 * time.Microsecond, 450 * time.Microsecond, 640 * time.Microsecond, 900 * time.Microsecond, 1280 * time.Microsecond, 1800 * time.Microsecond, 2560 * time.Microsecond,
	3600 * time.Microsecond, 5120 * time.Microsecond, 7240 * time.Microsecond, 10 * time.Millisecond, 14 * time.Millisecond, 20 * time.Millisecond}

const (
	// A reading begins at any time of a round of the converter: chosen: three tries
	// from either end, of sixteen cells.
	paceTries = 3
	// chosen: what may be missing of a step of up to two turns, in radian at the
	// steepest; noise comes on top.
	paceOff   = 0.005
	paceNoise = 5
	// Where noise would hide more than that, the mean of more tries is judged.
	// chosen: three tries are enough on the default board; the most take 2 s.
	paceHides = 0.01
	paceMost  = 48
	// chosen: on top of a time that is found, for the cells that were not tried.
	paceMore = 1.25
)

func (s *Search) stepPace() bool {
	p := &s.pace
	if s.step > 0 && !s.paced() {
		return false
	}
	if p.cell == CellMatrix {
		s.result.Settle = min(time.Duration(paceMore*float64(paces[p.rung])), s.cfg.MostSettle)
		return false
	}
	s.step++
	k := p.cell
	s.result.Settle = s.cfg.MostSettle
	u := [2]float64{0, s.max[k]}[p.end]
	if p.at != paceAway {
		u = s.steep(k)
	}
	if p.at == paceBack {
		s.result.Settle = paces[p.rung]
	}
	if k >= CellMZI2 {
		s.expose(k)
		s.look(k, seeSplit, k-CellMZI2, 0, u)
	} else {
		s.look(k, seeLoop, k-CellMZI1, 0, u)
	}
	if tries := s.tries(); p.at == paceFinal && tries > paceTries {
		s.until(float64(s.quiet*s.swing[k])/math.Sqrt(float64(tries)), tries, tries)
	}
	return true
}

// tries is how many readings this module's noise asks for: so few seldom agree by
// chance.
func (s *Search) tries() int {
	x := paceNoise * s.quiet / paceHides
	return max(paceTries, int(min(math.Floor(float64(x*x))+1, paceMost)))
}

// steep is the heat at which the light behind a cell follows its phase most.
func (s *Search) steep(k int) float64 {
	return s.m.heat(k, s.workPhase(k)+PhaseBar/2, &s.u, s.m.least(k), s.max[k])
}

// paced takes a reading, and says which is next.
func (s *Search) paced() bool {
	p := &s.pace
	k := p.cell
	y := s.sweep.pts.y[0]
	switch p.at {
	case paceFinal:
		p.final, p.at = y, paceAway
	case paceAway:
		p.at = paceBack
	case paceBack:
		p.at = paceAway
		off := (y - p.final) / s.swing[k]
		p.off[p.end] += off
		if math.Abs(off) > paceOff+float64(paceNoise*s.quiet) {
			return p.slower(s, off)
		}
		if p.end++; p.end < 2 {
			return true
		}
		p.end = 0
		tries := s.tries()
		if p.try++; p.try < tries {
			return true
		}
		for _, off := range p.off {
			n := float64(tries)
			if off /= n; tries > paceTries && math.Abs(off) > paceOff+float64(paceNoise*s.quiet)/math.Sqrt(n) {
				return p.slower(s, off)
			}
		}
		p.try, p.off = 0, [2]float64{}
		s.cover(k)
		p.cell, p.at = s.after(k), paceFinal
	}
	return true
}

// slower tries a longer time with the same cell; off is what was missing.
func (p *pacing) slower(s *Search, off float64) bool {
	p.end, p.try, p.off = 0, 0, [2]float64{}
	if p.rung++; p.rung == len(paces) || paces[p.rung] > s.cfg.MostSettle {
		s.fail(p.cell, TooSlow, fmt.Sprintf("%.0f mrad off after %v", 1000*math.Abs(off), paces[p.rung-1]))
		return false
	}
	return true
}
