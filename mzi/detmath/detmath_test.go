package detmath

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"testing"
)

// draw is a fixed sequence in [lo, hi): a test of bits must not depend on the
// library's generator.
type draw uint64

func (d *draw) between(lo, hi float64) float64 {
	*d = *d*6364136223846793005 + 1442695040888963407
	return lo + float64((hi-lo)*(float64(uint64(*d)>>11)/(1<<53)))
}

// ulps is the distance of got from want in units of want's last place, or of
// floor's where want is smaller.
func ulps(got, want, floor float64) float64 {
	scale := math.Max(math.Abs(want), floor)
	_, e := math.Frexp(scale)
	return math.Abs(got-want) / math.Ldexp(1, e-53)
}

// Goal: every function agrees with the standard library to a few units in the
// last place over its range.
// Method: 200,000 points each. Near a zero of sine or cosine the distance is
// counted against a result of 1e-6, since both round the argument there. The
// library's own power is off by up to 7, see TestWholePowersOfTen.
func TestAgreesWithTheLibrary(t *testing.T) {
	tests := []struct {
		name      string
		lo, hi    float64
		floor     float64
		got, want func(float64) float64
		limit     float64
	}{
		{"sin", -50, 50, 1e-6, Sin, math.Sin, 2},
		{"cos", -50, 50, 1e-6, Cos, math.Cos, 2},
		{"sin near zero", -1, 1, 0, Sin, math.Sin, 1.5},
		{"sin far", -MaxAngle, MaxAngle, 1e-4, Sin, math.Sin, 2},
		{"cos far", -MaxAngle, MaxAngle, 1e-4, Cos, math.Cos, 2},
		{"exp", -700, 700, 0, Exp, math.Exp, 2},
		{"exp small", -1, 1, 0, Exp, math.Exp, 2},
		{"log", 1e-9, 1e9, 0, Log, math.Log, 2},
		{"log near one", 0.5, 2, 0, Log, math.Log, 2},
		{"log10", 1e-9, 1, 0, log10, math.Log10, 3},
		{"pow10", -3, 3, 0, Pow10, func(x float64) float64 { return math.Pow(10, x) }, 8},
		{"atan, right", -8, 8, 0, func(y float64) float64 { return Atan2(y, 1) }, func(y float64) float64 { return math.Atan2(y, 1) }, 2},
		{"atan, left", -8, 8, 0, func(y float64) float64 { return Atan2(y, -3) }, func(y float64) float64 { return math.Atan2(y, -3) }, 2},
		{"decibels there and back", 1e-9, 10, 0, func(x float64) float64 { return FromDB(DB(x)) }, func(x float64) float64 { return x }, 60},
	}
	for _, tt := range tests {
		d, worst, at := draw(1), 0.0, 0.0
		for range 200_000 {
			x := d.between(tt.lo, tt.hi)
			if u := ulps(tt.got(x), tt.want(x), tt.floor); !(u <= worst) {
				worst, at = u, x
			}
		}
		if !(worst <= tt.limit) {
			t.Errorf("%s: %.2f ulp at %v, want at most %v", tt.name, worst, at, tt.limit)
		}
	}
}

// Goal: powers of ten are right over the whole range, where the library's own
// power is off by up to 7 units.
// Method: every whole exponent against the parser, which rounds correctly.
func TestWholePowersOfTen(t *testing.T) {
	for n := minPow10; n <= maxPow10; n++ {
		want, err := strconv.ParseFloat(fmt.Sprintf("1e%v", n), 64)
		if err != nil {
			t.Fatal(err)
		}
		if u := ulps(Pow10(n), want, 0); !(u <= 1) {
			t.Errorf("10**%v: %.1f ulp", n, u)
		}
	}
}

// Goal: exact points are exact, and what is out of range says so.
// Method: table.
func TestExactPointsAndEdges(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	tests := []struct {
		name      string
		got, want float64
	}{
		{"sin 0", Sin(0), 0}, {"cos 0", Cos(0), 1}, {"exp 0", Exp(0), 1}, {"log 1", Log(1), 0},
		{"pow10 0", Pow10(0), 1}, {"from 0 dB", FromDB(0), 1}, {"0 dB", DB(1), 0},
		{"sin pi/2", Sin(Pi / 2), 1}, {"cos pi", Cos(Pi), -1},
		{"atan2 0 0", Atan2(0, 0), 0}, {"atan2 0 -1", Atan2(0, -1), Pi}, {"atan2 -1 0", Atan2(-1, 0), -Pi / 2},
		{"atan2 1 1", Atan2(1, 1), Pi / 4},
		{"exp far", Exp(1000), inf}, {"exp far down", Exp(-1000), 0}, {"exp nan", Exp(nan), nan},
		{"pow10 far", Pow10(400), inf}, {"pow10 far down", Pow10(-400), 0}, {"pow10 nan", Pow10(nan), nan},
		{"log 0", Log(0), -inf}, {"log -1", Log(-1), nan}, {"log inf", Log(inf), inf}, {"log nan", Log(nan), nan},
		{"log10 0", log10(0), -inf}, {"log10 -1", log10(-1), nan}, {"log10 inf", log10(inf), inf},
		{"sin far", Sin(MaxAngle + 1), nan}, {"cos inf", Cos(inf), nan}, {"sin nan", Sin(nan), nan},
		{"atan2 inf", Atan2(inf, 1), nan}, {"atan2 nan", Atan2(1, nan), nan},
	}
	for _, tt := range tests {
		if math.Float64bits(tt.got) != math.Float64bits(tt.want) && !(tt.got != tt.got && tt.want != tt.want) {
			t.Errorf("%s = %v, want %v", tt.name, tt.got, tt.want)
		}
	}
}

// Goal: the same bits on every machine.
// Method: golden bits of single points and of a hash over 20,000 points of
// each function; the test runs on every architecture that is built for.
func TestGoldenBits(t *testing.T) {
	points := []struct {
		name string
		got  float64
		want uint64
	}{
		{"sin 1", Sin(1), 0x3feaed548f090cee},
		{"cos 1", Cos(1), 0x3fe14a280fb5068c},
		{"exp 1", Exp(1), 0x4005bf0a8b14576a},
		{"log 10", Log(10), 0x40026bb1bbb55516},
		{"pow10 0.3", Pow10(0.3), 0x3fffec982d5bb8af},
		{"atan2 1 3", Atan2(1, 3), 0x3fd4978fa3269ee1},
	}
	for _, p := range points {
		if b := math.Float64bits(p.got); b != p.want {
			t.Errorf("%s: bits %#x, want %#x", p.name, b, p.want)
		}
	}
	hashes := []struct {
		name   string
		lo, hi float64
		f      func(float64) float64
		want   string
	}{
		{"sin", -100, 100, Sin, "9674820b639dba6d"},
		{"cos", -100, 100, Cos, "d0fdab55541adc8e"},
		{"exp", -50, 50, Exp, "4b7df002dc264909"},
		{"log", 0, 100, Log, "88aa1350c547d072"},
		{"log10", 0, 100, log10, "15a7c3dcda71d17c"},
		{"pow10", -9, 9, Pow10, "2334c3696f31084b"},
		{"atan2", -9, 9, func(y float64) float64 { return Atan2(y, 0.7) }, "b3ca48f4dbdcd17b"},
	}
	for _, h := range hashes {
		d, sum := draw(7), fnv.New64a()
		for range 20_000 {
			var b [8]byte
			bits := math.Float64bits(h.f(d.between(h.lo, h.hi)))
			for i := range b {
				b[i] = byte(bits >> (8 * i))
			}
			sum.Write(b[:])
		}
		if got := fmt.Sprintf("%016x", sum.Sum64()); got != h.want {
			t.Errorf("%s: hash %s, want %s", h.name, got, h.want)
		}
	}
}

// Goal: a sine or cosine alone has the bits of Sincos.
// Method: 100,000 points, and what is out of range.
func TestAloneAsTogether(t *testing.T) {
	d := draw(3)
	for i := range 100_000 {
		x := d.between(-40, 40)
		if i == 0 {
			x = MaxAngle + 1
		}
		s, c := Sincos(x)
		if math.Float64bits(Sin(x)) != math.Float64bits(s) || math.Float64bits(Cos(x)) != math.Float64bits(c) {
			t.Fatalf("at %v: %v and %v alone, %v and %v together", x, Sin(x), Cos(x), s, c)
		}
	}
}

var sink float64

func BenchmarkSincos(b *testing.B) {
	x := 0.1
	for b.Loop() {
		s, c := Sincos(x)
		sink, x = s+c, x+0.37
		if x > 100 {
			x = 0
		}
	}
}

func BenchmarkExp(b *testing.B) {
	x := -10.0
	for b.Loop() {
		sink, x = Exp(x), x+0.01
		if x > 10 {
			x = -10
		}
	}
}
