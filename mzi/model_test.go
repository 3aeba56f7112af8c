package mzi

import (
	"math"
	"math/rand/v2"
	"time"

	"periph.io/x/conn/v3/physic"
)

// model is a small module of the tests' own: fields through imperfect cells,
// crosstalk, noise and steps of the converters. It takes the library's math
// where the package may not, and shares no formula with the search.
type model struct {
	rng      *rand.Rand
	matrix   Matrix
	offset   [Cells]float64
	piPower  [Cells]float64 // watt
	ohm      [Cells]float64
	split    [Cells][2]float64 // coupler angles
	near     [Cells][Cells]float64
	laser    [Lanes]float64 // watt
	diode    [Lanes]float64
	volt     [Cells]float64
	open     int // cell, -1 none
	short    int
	cold     int // takes current, moves no light
	dead     int // lane without a laser
	walk     int // moves by 5 mrad/sqrt(s)
	maxPower float64
	maxVolt  float64

	odd     oddness
	warm    [Cells]float64 // watt in each heater now
	bias    [10]float64    // codes, of each diode's channel
	scale   [10]float64
	seconds float64
	knots   [Lanes][]float64 // of each laser's wander, one in ten seconds
}

const chipAmpere = 0.021

// oddness is what makes a module other than the search may have in mind. Zero is
// none of it.
type oddness struct {
	piMilliwatt, piSpread float64
	ohm, tcr              float64 // more resistance at 60 mW
	next, row, common     float64 // crosstalk: of neighbours, of cells 8 apart, radian a watt of all
	fall                  float64 // how much less per pitch
	tau                   float64 // seconds
	noise, offset, gain   float64
	rin, wander           float64
	saturation            float64 // watt
	matrix                Matrix  // Benes
}

func newModel(seed uint64) *model { return newOddModel(seed, oddness{}) }

func newOddModel(seed uint64, odd oddness) *model {
	m := &model{rng: rand.New(rand.NewPCG(seed, 1)), matrix: odd.matrix, open: -1, short: -1, cold: -1, dead: -1, walk: -1}
	if m.matrix == nil {
		m.matrix = Benes
	}
	u := func(lo, hi float64) float64 { return lo + (hi-lo)*m.rng.Float64() }
	for _, d := range []struct {
		x     *float64
		usual float64
	}{{&odd.piMilliwatt, 25}, {&odd.piSpread, 0.1}, {&odd.ohm, 1000}, {&odd.next, 0.02}, {&odd.fall, 0.25}, {&odd.noise, 1}} {
		if *d.x == 0 {
			*d.x = d.usual
		}
	}
	m.odd = odd
	leak := math.Asin(math.Pow(10, -28.0/20))
	for k := range m.has() {
		m.offset[k] = u(-math.Pi, math.Pi)
		m.piPower[k] = odd.piMilliwatt / 1000 * u(1-odd.piSpread, 1+odd.piSpread)
		m.ohm[k] = odd.ohm * u(0.95, 1.05)
		// Both outputs' nulls 28 dB down: angles a and b with a+b and a-b off a
		// right angle and off nought by leak.
		a, b := leak, leak
		if m.rng.IntN(2) == 0 {
			a = -a
		}
		if m.rng.IntN(2) == 0 {
			b = -b
		}
		m.split[k] = [2]float64{math.Pi/4 + (a+b)/2, math.Pi/4 + (a-b)/2}
		for j := range m.has() {
			switch d := max(k-j, j-k); {
			case d == 0:
				m.near[k][j] = 1
			case d <= 4:
				m.near[k][j] = odd.next * math.Pow(odd.fall, float64(d-1)) * u(0.8, 1.2)
			case d == 8:
				m.near[k][j] = odd.row * u(0.8, 1.2)
			}
		}
	}
	for l := range Lanes {
		m.laser[l] = 1e-3 * math.Pow(10, u(-0.25, 0.2))
		m.diode[l] = math.Pow(10, -0.2+u(-0.06, 0.03))
	}
	for ch := range m.bias {
		m.bias[ch], m.scale[ch] = odd.offset*u(-1, 1), 1+odd.gain*u(-1, 1)
	}
	for l := range m.knots {
		for range 200 {
			m.knots[l] = append(m.knots[l], u(-1, 1))
		}
	}
	return m
}

// watt is what heater k takes at a voltage, at rest.
func (m *model) watt(k int, v float64) float64 {
	p := v * v / m.ohm[k]
	if x := m.odd.tcr / 60e-3; x > 0 {
		p = (math.Sqrt(1+4*x*p) - 1) / (2 * x)
	}
	return p
}

// settle lets the heaters go on for some seconds.
func (m *model) settle(seconds float64) {
	left := 0.0
	if m.odd.tau > 0 {
		left = math.Exp(-seconds / m.odd.tau)
	}
	for k := range m.has() {
		goal := m.watt(k, m.volt[k])
		m.warm[k] = goal + (m.warm[k]-goal)*left
	}
	m.seconds += seconds
}

// has says how many cells there are.
func (m *model) has() int { return CellMatrix + len(m.matrix) }

// power is that of a lane's laser now.
func (m *model) power(l int) float64 {
	n := int(m.seconds / 10)
	x := m.seconds/10 - float64(n)
	a, b := m.knots[l][n], m.knots[l][n+1]
	return m.laser[l] * (1 + m.odd.wander*(a+x*x*(3-2*x)*(b-a)))
}

func (m *model) phase(k int) float64 {
	sum := m.offset[k]
	for j := range m.has() {
		if j == m.open || j == m.short || j == m.cold {
			continue
		}
		sum += m.near[k][j]*math.Pi*m.warm[j]/m.piPower[j] + m.odd.common*m.warm[j]
	}
	return sum
}

// cell is the fields that a unit from each input sends to each output.
func (m *model) cell(k int) (t [2][2]complex128) {
	phi := m.phase(k)
	arm := complex(math.Cos(phi), math.Sin(phi))
	c1, s1 := complex(math.Cos(m.split[k][0]), 0), complex(0, math.Sin(m.split[k][0]))
	c2, s2 := complex(math.Cos(m.split[k][1]), 0), complex(0, math.Sin(m.split[k][1]))
	in := [2][2]complex128{{c1, s1}, {s1, c1}}
	out := [2][2]complex128{{c2, s2}, {s2, c2}}
	for i := range 2 {
		for o := range 2 {
			t[i][o] = in[i][0]*arm*out[0][o] + in[i][1]*out[1][o]
		}
	}
	return t
}

func power(a complex128) float64 { return real(a)*real(a) + imag(a)*imag(a) }

// lanes is the power on every loopback diode and both taps.
func (m *model) lanes(lasers uint8) (loop [Lanes]float64, tap [2]float64) {
	var cells [Cells][2][2]complex128
	for k := range m.has() {
		cells[k] = m.cell(k)
	}
	for l := range Lanes {
		if lasers>>l&1 == 0 || l == m.dead {
			continue
		}
		p := m.power(l)
		one, two := cells[CellMZI1+l], cells[CellMZI2+l]
		tap[0] += p * power(one[0][0]) * power(two[0][1])
		tap[1] += p * power(one[0][0]) * power(two[0][0])
		var field [Lanes]complex128
		field[l] = one[0][1]
		for c, pair := range m.matrix {
			t := &cells[CellMatrix+c]
			a, b := field[pair[0]], field[pair[1]]
			field[pair[0]], field[pair[1]] = a*t[0][0]+b*t[1][0], a*t[0][1]+b*t[1][1]
		}
		for o := range Lanes {
			loop[o] += p * power(field[o]) * m.diode[o]
		}
	}
	return loop, tap
}

// convert is what 32 averaged conversions of 12 bits make of a power.
func (m *model) convert(ch int, p, full float64) physic.Power {
	if m.odd.saturation > 0 {
		p /= 1 + p/m.odd.saturation
	}
	sum := 0.0
	for range 32 {
		code := p / full * 4096 * m.scale[ch]
		if m.odd.rin > 0 {
			code *= 1 + m.odd.rin*m.rng.NormFloat64()
		}
		sum += min(max(math.Floor(code+m.bias[ch]+m.odd.noise*0.6*m.rng.NormFloat64()+0.5), 0), 4095)
	}
	return physic.Power(sum / 32 / 4096 * full * float64(physic.Watt))
}

func (m *model) measure(d *Drive, settling time.Duration) (s Sample) {
	for _, h := range d.Set {
		m.volt[h.Cell] = float64(h.Voltage) / float64(physic.Volt)
		p := m.watt(h.Cell, m.volt[h.Cell])
		m.maxPower = math.Max(m.maxPower, p)
		m.maxVolt = math.Max(m.maxVolt, m.volt[h.Cell])
	}
	m.settle(settling.Seconds() + 42e-6 + 250e-6*m.rng.Float64())
	if d.Read == ReadRail {
		amp := chipAmpere
		for k, v := range m.volt[:m.has()] {
			switch {
			case k == m.open:
			case k == m.short && v > 0:
				amp += 0.02
			default:
				amp += m.watt(k, v) / math.Max(v, 1e-9)
			}
		}
		s.Current = physic.ElectricCurrent(math.Round(amp/20e-6)) * 20 * physic.MicroAmpere
		return s
	}
	loop, tap := m.lanes(d.Lasers)
	for l := range loop {
		if d.Read != ReadTaps {
			s.Lane[l] = m.convert(l, loop[l], 2e-3)
		}
	}
	for i := range tap {
		if d.Read != ReadLanes {
			s.Tap[i] = m.convert(Lanes+i, tap[i], 8e-3)
		}
	}
	return s
}

// run lets a search find the model.
func (m *model) run(s *Search) {
	var sample Sample
	for {
		d, settling, done := s.Next(&sample)
		if done {
			return
		}
		if m.walk >= 0 {
			m.offset[m.walk] += 0.005 * math.Sqrt(settling.Seconds()) * m.rng.NormFloat64()
		}
		sample = m.measure(d, settling)
	}
}

// put sets the result's codes: reg1 and reg2 are the toggle nets.
func (m *model) put(r *Result, net0, net1 int) {
	for k := range m.has() {
		reg := 0
		switch {
		case k < CellMZI2:
			reg = net0
		case k < CellMatrix:
			reg = net1
		}
		m.volt[k] = float64(r.Volts[k][reg]) / float64(physic.Volt)
	}
	m.settle(1)
}

// extinction of a cell in dB that must be barred (or crossed): what goes the
// wrong way against what goes the right one.
func (m *model) extinction(k int, bar bool) float64 {
	t := m.cell(k)
	straight, crossed := power(t[0][0]), power(t[0][1])
	if !bar {
		straight, crossed = crossed, straight
	}
	return 10 * math.Log10(straight/crossed)
}

// worst are the least extinctions of MZI1, MZI2 and the matrix over the three
// lit settings.
func (m *model) worst(r *Result) (mzi1, mzi2, matrix float64) {
	mzi1, mzi2, matrix = 99, 99, 99
	for lit := Loop; lit < numLits; lit++ {
		m.put(r, min(int(lit), 1), int(lit)/2)
		for l := range Lanes {
			mzi1 = math.Min(mzi1, m.extinction(CellMZI1+l, lit != Loop))
			if lit != Loop {
				mzi2 = math.Min(mzi2, m.extinction(CellMZI2+l, lit == Ext2))
			}
		}
		if lit == Loop {
			for c := range m.matrix {
				matrix = math.Min(matrix, m.extinction(CellMatrix+c, r.Setting.Bar(c)))
			}
		}
	}
	return mzi1, mzi2, matrix
}

func testConfig(seed uint64) Config {
	return Config{
		Seed: seed, Step: 10 * physic.Volt / 65536, Lanes: Lanes, Matrix: Benes,
		MaxVoltage: 8500 * physic.MilliVolt, MaxCurrent: 10 * physic.MilliAmpere, MaxPower: 60 * physic.MilliWatt,
		LeastOhm: 450, MostOhm: 2200, LeastPi: 10 * physic.MilliWatt, MostPi: 60 * physic.MilliWatt, MostSettle: 1200 * time.Microsecond,
	}
}
