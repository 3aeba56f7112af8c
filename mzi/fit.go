package mzi

import (
	"math"

	"ringlight/mzi/detmath"
)

// fringe is what a diode sees of one cell whose heat is swept while all else
// stands still: Mean + Swing*cos(Slope*u + Phase). That holds exactly wherever
// the cell sits in the module, since the field behind it is linear in
// exp(j*phase).
type fringe struct {
	Mean, Swing  float64
	Slope, Phase float64
}

// Contrast is Swing over Mean: 1 when all light passes the cell.
func (f *fringe) Contrast() float64 {
	if !(f.Mean > 0) {
		return 0
	}
	return f.Swing / f.Mean
}

// leastLeak bounds what an extinction is believed: noise may well make the dark
// look darker than it is. chosen: 40 dB, beyond what any cell has.
const leastLeak = 1e-4

// extinction in thousandths of a dB for the share of light that goes the wrong way.
func extinction(leak float64) int32 {
	leak = clamp(leak, leastLeak, 0.5)
	return int32(math.Floor(float64(1000*detmath.DB((1-leak)/leak)) + 0.5))
}

// loss in thousandths of a dB for the share of light that arrives.
func loss(share float64) int32 {
	return int32(math.Floor(float64(-1000*detmath.DB(max(share, leastLeak))) + 0.5))
}

// boundShare is how near to a bound of the slope, as a share of the slope, a
// fit counts as pressed against it. chosen: what the golden sections leave open
// is a tenth of that.
const boundShare = 1e-3

// against reports whether a fit ended at a bound of the slope: its minimum lies
// beyond, or there is none.
func (f *fringe) against(lo, hi float64) bool {
	return f.Slope < float64(lo*(1+boundShare)) || f.Slope > float64(hi*(1-boundShare))
}

// maxPoints is the longest sweep.
const maxPoints = 24

// points is a sweep: heater settings and the light measured at each.
type points struct {
	n    int
	u, y [maxPoints]float64
}

// linear fits mean, cosine and sine for a known slope and returns them with
// the sum of squares that is left.
func (p *points) linear(slope float64) (mean, c, s, left float64) {
	// Normal equations of the basis 1, cos, sin, with the mean of y taken out
	// first to keep the rest small.
	n := float64(p.n)
	base := 0.0
	for _, y := range p.y[:p.n] {
		base += y
	}
	base /= n
	var sc, ss, scc, sss, scs, sy, syc, sys, syy float64
	for i, u := range p.u[:p.n] {
		sin, cos := detmath.Sincos(float64(slope * u))
		y := p.y[i] - base
		sc += cos
		ss += sin
		scc += float64(cos * cos)
		sss += float64(sin * sin)
		scs += float64(cos * sin)
		sy += y
		syc += float64(y * cos)
		sys += float64(y * sin)
		syy += float64(y * y)
	}
	// Take the mean out of cosine and sine, leaving two unknowns.
	scc -= float64(sc * sc / n)
	sss -= float64(ss * ss / n)
	scs -= float64(sc * ss / n)
	syc -= float64(sy * sc / n)
	sys -= float64(sy * ss / n)
	det := float64(scc*sss) - float64(scs*scs)
	if !(det > 0) {
		return base, 0, 0, syy
	}
	c = (float64(syc*sss) - float64(sys*scs)) / det
	s = (float64(sys*scc) - float64(syc*scs)) / det
	mean = base + (sy-float64(c*sc)-float64(s*ss))/n
	left = syy - float64(sy*sy/n) - float64(c*syc) - float64(s*sys)
	return mean, c, s, left
}

const (
	// chosen: from one slope that is tried to the next the sweep's end moves by a
	// fifth of a radian, which no minimum is narrower than.
	fitGrid   = 0.2
	fitRefine = 12 // golden sections: leaves a 300th of a grid step
	// A light is never less than none. chosen: what converters may be off.
	mostContrast = 1.1
)

// fit finds the fringe with a slope between lo and hi. A fixed slope fails: the
// power for pi is known to some ten per cent only, which a sweep of a whole
// period turns into more than half a radian at its end.
func (p *points) fit(lo, hi float64) fringe {
	n := int(math.Floor(float64(float64((hi-lo)*(p.u[p.n-1]-p.u[0]))/fitGrid))) + 2
	step := (hi - lo) / float64(n)
	best, bestLeft := lo, math.MaxFloat64
	for i := range n + 1 {
		x := lo + float64(float64(i)*step)
		mean, c, s, left := p.linear(x)
		if left < bestLeft && float64(c*c)+float64(s*s) <= float64(mostContrast*mostContrast*float64(mean*mean)) {
			best, bestLeft = x, left
		}
	}
	const golden = 0.6180339887498949
	a, b := max(lo, best-step), min(hi, best+step)
	x1, x2 := b-float64(golden*(b-a)), a+float64(golden*(b-a))
	_, _, _, f1 := p.linear(x1)
	_, _, _, f2 := p.linear(x2)
	for range fitRefine {
		if f1 <= f2 {
			b, x2, f2 = x2, x1, f1
			x1 = b - float64(golden*(b-a))
			_, _, _, f1 = p.linear(x1)
		} else {
			a, x1, f1 = x1, x2, f2
			x2 = a + float64(golden*(b-a))
			_, _, _, f2 = p.linear(x2)
		}
	}
	return p.at((a + b) / 2)
}

// off is by how much the points lie off a fringe, rms.
func (p *points) off(f *fringe) float64 {
	_, _, _, left := p.linear(f.Slope)
	return math.Sqrt(max(left, 0) / float64(max(p.n-4, 1)))
}

// at is the fringe of a known slope.
func (p *points) at(slope float64) fringe {
	mean, c, s, _ := p.linear(slope)
	return fringe{
		Mean: mean, Swing: math.Sqrt(float64(c*c) + float64(s*s)),
		Slope: slope, Phase: detmath.Atan2(-s, c),
	}
}
