package mzi

import (
	"math"

	"ringlight/mzi/detmath"
)

const (
	// nullSide is how far to either side of its state a cell is moved to see where it
	// is darkest. chosen: the light there is ten times what a step of the
	// converter is off, and a cell that is half as far off is still found.
	nullSide = 0.7
	// A side nearer than that to the end of the heat shows too little.
	nullLeast = 0.15
	// What goes the wrong way is wanted this sure, of all light. chosen: a quarter
	// of a dB at 28 dB; six readings seldom agree by chance.
	nullSure          = 1e-4
	nullLeastReadings = 6
	nullReadings      = 48
)

// around looks at a cell where it stands, and on both sides of that, on a diode
// that is to be dark; where its heat ends on one side, twice on the other.
func (s *Search) around(k int, what see, laser, lane int) bool {
	slope, u := s.m.Cells[k].Slope, s.u[k]
	down, up := -nullSide, nullSide
	if room := float64(slope * u); room < nullSide {
		if down = -room; room < nullLeast {
			down = nullSide / 2
		}
	}
	if room := float64(slope * (s.max[k] - u)); room < nullSide {
		if up = room; room < nullLeast {
			up = -nullSide / 2
		}
	}
	s.look(k, what, laser, lane, u+down/slope, u+up/slope, u)
	return s.until(float64(nullSure*s.light(k)), max(nullLeastReadings, s.tries()), nullReadings)
}

// light is about what a dark diode would show with all of a cell's light on it.
func (s *Search) light(k int) float64 {
	if k >= CellMZI2 && k < CellMatrix {
		return s.taps[k-CellMZI2]
	}
	return 2 * s.swing[k]
}

// null is by how much the phase at the last of three points is ahead of the darkest,
// and which share of the light goes that way there. What the light at its darkest
// is, and what the converter is off, do not bend it: with a null n and all light
// a, y = n + a*(1-cos(e+d))/2, whose three unknowns three points give.
func (p *points) null(slope float64) (e, leak float64) {
	d1, d2 := float64(slope*(p.u[0]-p.u[2])), float64(slope*(p.u[1]-p.u[2]))
	s1, c1 := detmath.Sincos(d1)
	s2, c2 := detmath.Sincos(d2)
	y1, y2 := p.y[0]-p.y[2], p.y[1]-p.y[2]
	e = detmath.Atan2(float64(y2*(1-c1))-float64(y1*(1-c2)), float64(y1*s2)-float64(y2*s1))
	if e > detmath.Pi/2 {
		e -= detmath.Pi
	} else if e < -detmath.Pi/2 {
		e += detmath.Pi
	}
	sin, cos := detmath.Sincos(e)
	light := 0.0 // by the side that shows more
	if a, b := float64(cos*(1-c1))+float64(sin*s1), float64(cos*(1-c2))+float64(sin*s2); math.Abs(a) > math.Abs(b) {
		light = 2 * y1 / a
	} else {
		light = 2 * y2 / b
	}
	if !(light > 0) {
		return e, 0.5
	}
	off := (1 - cos) / 2
	return e, off + max(p.y[2]/light-off, 0)
}
