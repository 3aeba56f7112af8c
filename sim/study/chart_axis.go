package study

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"ringlight/mzi/detmath"
)

// axis maps values to pixels.
type axis struct {
	from, to float64
	start    float64 // pixel of from
	length   float64 // pixels to `to`, negative: upwards
	ticks    []float64
	percent  bool
	log      bool // from, to and ticks are values all the same
}

// newAxis covers the values with round ends.
func newAxis(from, to, start, length float64, percent bool) axis {
	if !(to > from) {
		to = from + 1
	}
	step := niceStep((to - from) / 5)
	a := axis{start: start, length: length, percent: percent}
	first := math.Floor(from/step + 1e-6)
	a.from = float64(first * step)
	for i := int(first); ; i++ {
		v := float64(i) * step
		a.ticks = append(a.ticks, v)
		if v >= to-step/1e6 {
			a.to = v
			return a
		}
	}
}

// decades covers values above 0 with powers of ten, at least one decade.
func decades(from, to, start, length float64, percent bool) axis {
	a := axis{start: start, length: length, percent: percent, log: true, from: 1}
	for a.from > from*(1+1e-9) {
		a.from /= 10
	}
	for a.from*10 <= from*(1+1e-9) {
		a.from *= 10
	}
	for v := a.from; ; v *= 10 {
		a.ticks, a.to = append(a.ticks, v), v
		if len(a.ticks) > 1 && v >= to*(1-1e-9) {
			return a
		}
	}
}

// octaves covers values above 0, each a tick unless it would touch the last.
func octaves(values []float64, start, length float64, percent bool) axis {
	slices.Sort(values)
	values = slices.Compact(values)
	a := axis{start: start, length: length, percent: percent, log: true, from: values[0], to: values[len(values)-1]}
	if len(values) == 1 {
		a.from, a.to = a.from/2, a.to*2
	}
	for _, v := range values {
		if n := len(a.ticks); n > 0 && a.at(v)-a.at(a.ticks[n-1]) < float64(len(a.label(v))+1)*letter*sizeTick {
			continue
		}
		a.ticks = append(a.ticks, v)
	}
	return a
}

// niceStep is 1, 2 or 5 times a power of ten, not below v.
func niceStep(v float64) float64 {
	unit := 1.0
	for unit > v {
		unit /= 10
	}
	for unit*10 <= v {
		unit *= 10
	}
	for _, f := range []float64{1, 2, 5, 10} {
		if f*unit >= v {
			return f * unit
		}
	}
	return 10 * unit
}

func (a axis) at(v float64) float64 {
	share := (v - a.from) / (a.to - a.from)
	if a.log {
		share = 0
		if v > a.from {
			share = detmath.Log(v/a.from) / detmath.Log(a.to/a.from)
		}
	}
	return a.start + float64(min(max(share, 0), 1)*a.length)
}

// base is where bars stand: at 0, or at the lowest that there is.
func (a axis) base() float64 { return a.at(max(0, a.from)) }

func (a axis) label(v float64) string {
	unit := ""
	if a.percent {
		v, unit = v*100, " %"
	}
	return plainDigits(v, 9) + unit // nine digits hide the rounding error of a multiple of 0.1
}

// value is how a bar is labelled, short enough to stand above it.
func (a axis) value(v float64) string {
	if a.percent {
		v *= 100
	}
	return plainDigits(v, 3)
}

// plainDigits writes a number without an exponent; thousands are parted.
func plainDigits(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'g', digits, 64)
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		s = strconv.FormatFloat(f, 'f', -1, 64)
		if n := int(f); float64(n) == f && (n >= 10000 || n <= -10000) {
			s = fmt.Sprintf("%d\u2009%03d", n/1000, max(n, -n)%1000)
			if n >= 1e6 {
				s = fmt.Sprintf("%d\u2009%03d\u2009%03d", n/1e6, n/1000%1000, n%1000)
			}
		}
	}
	return s
}
