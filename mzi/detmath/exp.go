package detmath

import "math"

const (
	maxFloat = 0x1p1023 * (1 + (1 - 0x1p-52))

	ln2Hi   = 0x1.62e42feep-1 // 32 bits: its product with an exponent is exact
	ln2Lo   = 0x1.a39ef35793c76p-33
	log2E   = 1.442695040888963407359925
	lg2Hi   = 0x1.34413508p-2
	lg2Lo   = 0x1.f79fef311f12bp-34
	log2Ten = 3.321928094887362347870319
	ln10    = 2.302585092994045684017991
	log10E  = 0.4342944819032518276511289

	expBias  = 1023
	fracBits = 52
)

// Arguments beyond which Exp and Pow10 leave the normal numbers; there they
// are 0 or infinite, since no power in the product is that small or large.
const (
	maxExp   = 709.0
	minExp   = -708.0
	maxPow10 = 308.0
	minPow10 = -307.0
)

// scale multiplies x by 2**k for a k that leaves it a normal number.
func scale(x float64, k int) float64 {
	return float64(x * math.Float64frombits(uint64(k+expBias)<<fracBits))
}

// expSeries is e**r for |r| up to ln(2)/2; the first term left out is below
// 5e-18.
func expSeries(r float64) float64 {
	p := 1.0 / 6227020800
	p = float64(p*r) + 1.0/479001600
	p = float64(p*r) + 1.0/39916800
	p = float64(p*r) + 1.0/3628800
	p = float64(p*r) + 1.0/362880
	p = float64(p*r) + 1.0/40320
	p = float64(p*r) + 1.0/5040
	p = float64(p*r) + 1.0/720
	p = float64(p*r) + 1.0/120
	p = float64(p*r) + 1.0/24
	p = float64(p*r) + 1.0/6
	p = float64(p*r) + 0.5
	return 1 + (r + float64(float64(p*r)*r))
}

// Exp is e**x; 0 below -708, infinite above 709.
func Exp(x float64) float64 { return power(x, minExp, maxExp, log2E, ln2Hi, ln2Lo, 1) }

// Pow10 is 10**x; 0 below -307, infinite above 308.
func Pow10(x float64) float64 { return power(x, minPow10, maxPow10, log2Ten, lg2Hi, lg2Lo, ln10) }

// power is a base to the x: log2 is that of the base, hi and lo are 2's logarithm to it.
func power(x, least, most, log2, hi, lo, ln float64) float64 {
	switch {
	case x != x:
		return x
	case x > most:
		return math.Inf(1)
	case x < least:
		return 0
	}
	k := math.Floor(float64(x*log2) + 0.5)
	r := (x - float64(k*hi)) - float64(k*lo)
	return scale(expSeries(float64(r*ln)), int(k))
}

// split is x = m * 2**k with m in [sqrt(1/2), sqrt(2)), for a normal x > 0.
func split(x float64) (m float64, k int) {
	b := math.Float64bits(x)
	k = int(b>>fracBits) - expBias
	m = math.Float64frombits(b&(1<<fracBits-1) | expBias<<fracBits)
	if m > 1.41421356237309504880 {
		m, k = m/2, k+1
	}
	return m, k
}

// logSeries is ln(m) for m in [sqrt(1/2), sqrt(2)) as 2 artanh((m-1)/(m+1));
// the first term left out is below 3e-17 of the result.
func logSeries(m float64) float64 {
	f := m - 1
	s := f / (m + 1)
	z := float64(s * s)
	p := 2.0 / 21
	p = float64(p*z) + 2.0/19
	p = float64(p*z) + 2.0/17
	p = float64(p*z) + 2.0/15
	p = float64(p*z) + 2.0/13
	p = float64(p*z) + 2.0/11
	p = float64(p*z) + 2.0/9
	p = float64(p*z) + 2.0/7
	p = float64(p*z) + 2.0/5
	p = float64(p*z) + 2.0/3
	// 2s = f - s*f, and f is exact.
	return f - float64(s*(f-float64(p*z)))
}

// Log is the natural logarithm of x. It is NaN for x < 0, and minus infinite
// for zero and for the subnormal numbers below 2.3e-308, which are no power.
func Log(x float64) float64 { return logTo(x, 1, ln2Hi, ln2Lo) }

// logTo is a logarithm: that of e in it, and that of 2 in two parts.
func logTo(x, e, hi, lo float64) float64 {
	switch {
	case x != x || x < 0:
		return math.NaN()
	case x < 0x1p-1022:
		return math.Inf(-1)
	case x > maxFloat:
		return x
	}
	m, k := split(x)
	return float64(float64(k)*hi) + (float64(logSeries(m)*e) + float64(float64(k)*lo))
}

func log10(x float64) float64 { return logTo(x, log10E, lg2Hi, lg2Lo) }

// DB is the ratio x in decibels.
func DB(x float64) float64 { return float64(10 * log10(x)) }

// FromDB is the ratio that db decibels stand for.
func FromDB(db float64) float64 { return Pow10(db / 10) }
