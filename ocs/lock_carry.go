package ocs

import (
	"math"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/hal/pca9548"
	"ringlight/hal/tmp102"
	"ringlight/mzi"
)

// Cells that no diode tells apart, those of the matrix and those of the other path, are
// carried: what the cells that a look sees have in common, all of a module have, for its
// case is as warm for all. How much that is for each kelvin is learned from looks at
// different temperatures; between looks the thermometer then moves all cells.

const (
	// feelEvery is how often the case of a module is felt. chosen: a case that changes by
	// 1 K/s has then gone 40 mrad, which costs 1 dB of 28.
	feelEvery = 2 * time.Second
	// A case this much warmer or colder than at the last look is looked at. chosen: 20 mrad.
	lookKelvin = 1.0
	// A look's cells and a step of this are worth a step of the slope. chosen: 16 steps of
	// the thermometer.
	slopeKelvin = 1.0
	// slopeSure is the sum of squares of such steps from which on a slope is believed.
	// chosen: 2 K once, or 1 K to and fro twice.
	slopeSure = 4.0
	// slopeMost is what is remembered of it. chosen: a day's way there and back.
	slopeMost = 1000.0
	// A slope beyond is none of a case. chosen: five times that of silicon in docs/board.md.
	slopeLimit = 0.1
	// carryLeast is the least change for which all codes are written. chosen: it costs a
	// hundredth of a dB.
	carryLeast = 0.006
)

// carry is what all cells of a module have in common.
type carry struct {
	common  float64 // radian, in the offsets of cells that no look sees
	spread  float64 // radian, of the cells that were seen, about what they have in common
	kelvin  float64 // of the case at the last look, 0: was not known
	at      float64 // kelvin to which the cells have been carried
	fed     bool    // and the codes have not
	from    float64 // kelvin, where a step of the slope began
	fromOff float64 // and what the cells had in common there
	xx, xy  float64 // sums over steps: kelvin^2, kelvin radian
}

// begin begins with a calibration, where nothing was off.
func (c *carry) begin(m *ModuleCalibration) {
	if m.CaseMillicelsius != 0 {
		c.from = float64(m.CaseMillicelsius+zeroCelsiusMillikelvin) / 1000
	}
}

// slope is radian a kelvin; 0 while it is not known.
func (c *carry) slope() float64 {
	if c.xx < slopeSure || math.Abs(c.xy) > float64(slopeLimit*c.xx) {
		return 0
	}
	return c.xy / c.xx
}

// bring takes what a look found, at a temperature of the case in kelvin, 0: not known, to the
// cells that it did not see. What the seen have in common is believed as far as it stands
// out of what they differ by: cells that move each by itself say nothing of others.
func (m *lockModule) bring(found []lockFinding, kelvin float64) {
	c := &m.carry
	var seen [mzi.Cells]bool
	var offs []float64
	for _, f := range found {
		seen[f.cell] = true
		offs = append(offs, m.offset[f.cell])
	}
	if len(offs) < 2 {
		return
	}
	middle := median(offs)
	square := 0.0
	for i, x := range offs {
		square += float64((x - middle) * (x - middle))
		offs[i] = math.Abs(x - middle)
	}
	c.spread = math.Sqrt(square / float64(len(offs)-1))
	apart := 1.4826 * median(offs) // the same of a normal distribution, whatever one cell does
	common := middle
	if common != 0 {
		// Shrunk as James and Stein do; pi/2 is what a median is worse than a mean.
		common *= max(0, 1-float64(apart*apart)*math.Pi/2/float64(len(offs))/float64(middle*middle))
	}
	for k := range m.offset {
		if !seen[k] {
			m.offset[k] = mzi.Wrap(m.offset[k] + common - c.common)
		}
	}
	c.common, c.kelvin, c.at = common, kelvin, kelvin
	if kelvin == 0 {
		return
	}
	d := kelvin - c.from
	if c.from != 0 && math.Abs(d) < slopeKelvin {
		return
	}
	if c.from != 0 {
		c.xx += float64(d * d)
		c.xy += float64(d * (middle - c.fromOff))
		if c.xx > slopeMost {
			c.xx, c.xy = c.xx/2, c.xy/2
		}
	}
	c.from, c.fromOff = kelvin, middle
}

// feed carries all cells of a module to a temperature of its case.
func (m *lockModule) feed(kelvin float64) {
	c := &m.carry
	if c.at == 0 || m.hold.Looks == 0 {
		return
	}
	d := float64(c.slope() * (kelvin - c.at))
	if math.Abs(d) < carryLeast {
		return
	}
	for k := range m.offset {
		m.offset[k] = mzi.Wrap(m.offset[k] + d)
	}
	c.common += d
	c.at, c.fed = kelvin, true
}

// median sorts x.
func median(x []float64) float64 {
	slices.Sort(x)
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}

// feeling reads the case of one module after the other, more often than health rounds do.
type feeling struct {
	out    bool
	module int // next
	at     time.Duration
}

// feelNumber tells its work from that of looks, whose number is a generation.
const feelNumber = 1 << 8

func (f *feeling) next(d *chipDrive) time.Duration {
	if f.out || d.trx.Health.last == nil {
		return hal.Never
	}
	return f.at
}

func (f *feeling) due(d *chipDrive, now time.Duration) {
	if f.next(d) > now {
		return
	}
	if d.trx.Health.last[f.module].slowAt == 0 { // no health round has come by
		f.turn(d, now)
		return
	}
	m := &d.trx.bundle.Modules[f.module]
	f.out = true
	d.put(m.Slow, &hal.Op{Token: d.trx.token(taskLock, f.module, feelNumber), Class: hal.ClassHousekeeping,
		Msgs: pca9548.Behind(m.Mux, m.MuxChannel, hal.Msg{Addr: m.Temp, W: tmp102.AppendRead(nil, tmp102.RegTemperature), R: make([]byte, 2)})})
}

// turn goes on to the next module.
func (f *feeling) turn(d *chipDrive, now time.Duration) {
	n := len(d.trx.bundle.Modules)
	f.out, f.module = false, (f.module+1)%n
	f.at = now + feelEvery/time.Duration(n)
}

// felt takes a module's temperature.
func (l *lock) felt(d *chipDrive, now time.Duration, c *hal.Completion) {
	module := l.feel.module
	l.feel.turn(d, now)
	if c.Err != nil || module >= len(l.modules) {
		return // a health round says of a thermometer that does not answer
	}
	d.trx.Health.warm(now, c.Start, module, tmp102.Millicelsius(c.Op.Msgs[len(c.Op.Msgs)/2].R))
	d.trx.prove(now, module)
	m := &l.modules[module]
	kelvin := d.trx.Health.temperature(module)
	m.feed(kelvin)
	if m.carry.kelvin == 0 || math.Abs(kelvin-m.carry.kelvin) >= lookKelvin {
		l.hurry(d, now, module)
	}
}
