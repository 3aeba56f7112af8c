package detmath

import "math"

// Pi rounded to a float64.
const Pi = 3.14159265358979323846264338327950288

// MaxAngle bounds the arguments of Sin, Cos and Sincos, in radians; beyond it
// they return NaN. chosen: up to here the three-part reduction below is exact,
// and no phase in the product comes within a factor of a thousand of it.
const MaxAngle = 1 << 20

// Pi/2 in three parts. The first two have 33 bits, so that their product with
// any quadrant number up to MaxAngle*2/pi is exact.
const (
	halfPi1  = 0x1.921fb544p+0
	halfPi2  = 0x1.0b4611a6p-34
	halfPi3  = 0x1.3198a2e037073p-69
	twoByPi  = 2 / Pi
	quarters = 4
)

// reduce brings x into [-pi/4, pi/4] and tells how many quarter turns were
// taken away.
func reduce(x float64) (r float64, quarter int) {
	if x >= -Pi/4 && x <= Pi/4 {
		return x, 0
	}
	n := math.Floor(float64(x*twoByPi) + 0.5)
	r = x - float64(n*halfPi1)
	r -= float64(n * halfPi2)
	r -= float64(n * halfPi3)
	return r, int(n) & (quarters - 1)
}

// Taylor series on [-pi/4, pi/4]: the first terms left out are below 2e-19 and
// 3e-18 there.
func sinSeries(r float64) float64 {
	z := float64(r * r)
	p := 1.0 / 355687428096000
	p = float64(p*z) - 1.0/1307674368000
	p = float64(p*z) + 1.0/6227020800
	p = float64(p*z) - 1.0/39916800
	p = float64(p*z) + 1.0/362880
	p = float64(p*z) - 1.0/5040
	p = float64(p*z) + 1.0/120
	p = float64(p*z) - 1.0/6
	return r + float64(float64(p*z)*r)
}

func cosSeries(r float64) float64 {
	z := float64(r * r)
	p := 1.0 / 20922789888000
	p = float64(p*z) - 1.0/87178291200
	p = float64(p*z) + 1.0/479001600
	p = float64(p*z) - 1.0/3628800
	p = float64(p*z) + 1.0/40320
	p = float64(p*z) - 1.0/720
	p = float64(p*z) + 1.0/24
	// 1 - z/2 rounds once; what it lost comes back with the small terms.
	h := float64(0.5 * z)
	w := 1 - h
	return w + ((1 - w) - h + float64(float64(p*z)*z))
}

// angleOK also refuses NaN, for which no comparison holds.
func angleOK(x float64) bool { return x >= -MaxAngle && x <= MaxAngle }

// Sin is the sine of x radians, |x| up to MaxAngle.
func Sin(x float64) float64 {
	if !angleOK(x) {
		return math.NaN()
	}
	r, q := reduce(x)
	switch q {
	case 0:
		return sinSeries(r)
	case 1:
		return cosSeries(r)
	case 2:
		return -sinSeries(r)
	default:
		return -cosSeries(r)
	}
}

// Cos is the cosine of x radians, |x| up to MaxAngle. It has the bits of
// Sincos for half of the work.
func Cos(x float64) float64 {
	if !angleOK(x) {
		return math.NaN()
	}
	r, q := reduce(x)
	switch q {
	case 0:
		return cosSeries(r)
	case 1:
		return -sinSeries(r)
	case 2:
		return -cosSeries(r)
	default:
		return sinSeries(r)
	}
}

// Sincos is the sine and cosine of x radians, |x| up to MaxAngle.
func Sincos(x float64) (sin, cos float64) {
	if !angleOK(x) {
		return math.NaN(), math.NaN()
	}
	r, q := reduce(x)
	s, c := sinSeries(r), cosSeries(r)
	switch q {
	case 0:
		return s, c
	case 1:
		return c, -s
	case 2:
		return -s, -c
	default:
		return -c, s
	}
}

// Multiples of 1/8 at which the arc tangent is tabulated: from the nearest of
// them its series needs seven terms.
const atanSteps = 8

var atanTable = [atanSteps + 1]float64{
	0,
	0.1243549945467614350313548,
	0.2449786631268641541720825,
	0.3587706702705722203959201,
	0.4636476090008061162142562,
	0.5585993153435624359715082,
	0.6435011087932843868028092,
	0.7188299996216245054170142,
	0.7853981633974483096156608,
}

// atanUnit is the arc tangent of x in [0, 1].
func atanUnit(x float64) float64 {
	i := int(float64(x*atanSteps) + 0.5)
	c := float64(i) / atanSteps
	t := (x - c) / (1 + float64(x*c))
	z := float64(t * t)
	p := 1.0 / 15
	p = float64(p*z) - 1.0/13
	p = float64(p*z) + 1.0/11
	p = float64(p*z) - 1.0/9
	p = float64(p*z) + 1.0/7
	p = float64(p*z) - 1.0/5
	p = float64(p*z) + 1.0/3
	return atanTable[i] + (t - float64(float64(p*z)*t))
}

// Atan2 is the angle of the point (x, y) in (-pi, pi], for finite arguments;
// it is 0 at the origin and NaN when either is NaN or infinite.
func Atan2(y, x float64) float64 {
	ax, ay := math.Abs(x), math.Abs(y)
	if !(ax <= maxFloat && ay <= maxFloat) {
		return math.NaN()
	}
	if ax == 0 && ay == 0 {
		return 0
	}
	var a float64
	if ay <= ax {
		a = atanUnit(ay / ax)
	} else {
		a = Pi/2 - atanUnit(ax/ay)
	}
	if x < 0 {
		a = Pi - a
	}
	if y < 0 {
		a = -a
	}
	return a
}
