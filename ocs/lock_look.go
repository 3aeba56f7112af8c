package ocs

import (
	"math"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/mzi/detmath"
	"ringlight/ocs/diode"
	"ringlight/proto"
)

// A look is believed as far as it can be checked. It reads light where none should be:
// what lasers do meanwhile shows there in thousandths, where the light of the path would
// show it whole. And it has more patterns than cells: what the spare ones find is none of
// any cell's, and says how far off all findings may be.

const (
	// lockBlur is what a look may be off in a cell, radian, for its findings to count.
	// chosen: it costs half a dB of 28.
	lockBlur = 0.03
	// lockTwice is the error that a second look has to find too before it is trimmed, and
	// lockAgrees how well. chosen: more than a case moves in a second or drift in an hour.
	lockTwice  = 0.1
	lockAgrees = 0.05
	// lockMost is trimmed by one look. chosen: 25 K.
	lockMost = 0.5
	// Of a diode that shows less, codes, the zero may lie below its converter's.
	lockDark = 0.5
)

// Lights that a look reads.
const (
	seenTap1 = iota
	seenTap2
	seenUpper // half-sums of loopback
	seenLower
	seenLights
)

// lockLook is what a look read, milliwatt by pattern.
type lockLook [seenLights][lockSteps]float64

// take adds the reading of a pattern.
func (x *lockLook) take(a *lockAct, o *hal.Optics) {
	x[seenTap1][a.n] = guardMilliwatt(o, a.taps.Block(), hal.GuardTap1, 0)
	x[seenTap2][a.n] = guardMilliwatt(o, a.taps.Block(), hal.GuardTap1, 1)
	x[seenUpper][a.n] = guardMilliwatt(o, a.loops.Block(), hal.GuardLoopUpper, 0)
	x[seenLower][a.n] = guardMilliwatt(o, a.loops.Block(), hal.GuardLoopUpper, 1)
}

// dim says whether of the light of the path itself so much is missing that a lane may be
// dark: of its cells such a look says nothing.
func (a *lockAct) dim(cal *ModuleCalibration, lanes int) bool {
	levels, lights := cal.LaneLoop[:lanes], a.seen[seenUpper:]
	if a.lit != mzi.Loop {
		levels, lights = cal.LaneTap[a.lit-mzi.Ext1][:lanes], a.seen[a.lit-mzi.Ext1:][:1]
	}
	got := 0.0
	for i := range lights {
		for _, y := range lights[i] {
			got += y / lockSteps
		}
	}
	_, some := missing(levels, sumLevel(levels), proto.MilliDBm(detmath.DB(max(got, 1e-9))*1000))
	return some
}

// signal is the light that tells of cells, and what it is off by itself.
type signal struct {
	light [lockSteps]float64
	noise float64 // of a reading, milliwatt rms
}

// signals of MZI1 and MZI2, rising with light that goes the wrong way: the light there,
// or, of diodes of which one shows none though cells were stepped, what the path lacks.
func (x *lockLook) signals(lit mzi.Lit, step float64) (one, two signal) {
	own, other := &x[seenTap1], &x[seenTap2]
	if lit == mzi.Ext2 {
		own, other = other, own
	}
	dark := func(y *[lockSteps]float64) bool {
		sum := 0.0
		for _, v := range y {
			sum += v
		}
		return sum < lockDark*lockSteps*step
	}
	for n := range lockSteps {
		one.light[n], two.light[n] = x[seenUpper][n]+x[seenLower][n], other[n]
		if lit == mzi.Loop {
			one.light[n] = own[n] + other[n]
		}
	}
	if lit != mzi.Loop && (dark(&x[seenUpper]) || dark(&x[seenLower])) {
		for n := range lockSteps {
			one.light[n] = -own[n] - other[n]
		}
	}
	if lit != mzi.Loop && dark(&two.light) {
		for n := range lockSteps {
			two.light[n] = -own[n]
		}
	}
	one.judge(step)
	two.judge(step)
	return one, two
}

// sum of a pattern over the readings.
func (s *signal) sum(cell int) (sum float64) {
	for n, y := range s.light {
		sum += float64(pattern(cell, n) * y)
	}
	return sum
}

// judge finds the noise by the patterns that are no cell's, at least what is believed of
// readings.
func (s *signal) judge(step float64) {
	square := 0.0
	for cell := lockCells; cell < lockSteps-1; cell++ {
		x := s.sum(cell)
		square += float64(x * x)
	}
	spare := float64(lockSteps - 1 - lockCells)
	s.noise = max(lockNoise*step, math.Sqrt(square/spare/lockSteps))
}

// lightNoise is what looks at a path had of noise, milliwatt^2, in the mean: three patterns
// of one look say too little of it too often, and such a look would be believed.
type lightNoise [2]float64

const (
	// chosen: what fifteen patterns say.
	noiseLooks = 5
	// chosen: a laser that dies during a look does not spoil those that follow.
	noiseBurst = 9
)

// judge lets no signal have less noise than those before it.
func (x *lightNoise) judge(step float64, now ...*signal) {
	least := lockNoise * step
	for i, s := range now {
		x[i] = max(x[i], float64(least*least))
		x[i] += (min(float64(s.noise*s.noise), float64(noiseBurst*x[i])) - x[i]) / noiseLooks
		s.noise = max(s.noise, math.Sqrt(x[i]))
	}
}

// findings are the errors of all cells that the look could see, or why none is to be
// believed.
//
// The share that a cell at e from its extremum sends the wrong way is sin^2(e/2);
// to and fro by d it moves by sin(e)*sin(d)/2 either way.
func (a *lockAct) findings(d *chipDrive, cal *ModuleCalibration) (found []lockFinding, why string) {
	o := d.trx.bundle.Modules[a.module].Optics()
	step := milliwattOf(o.Guard[hal.GuardTap1].FullScaleMilliDBm) / diode.Steps
	one, two := a.seen.signals(a.lit, step)
	d.lock.modules[a.module].noise[a.lit].judge(step, &one, &two)
	var blur []float64
	add := func(k int, s *signal, milliwatt float64) {
		mid := (a.up[k] + a.down[k]) / 2
		reach := float64(0.5 * milliwatt * detmath.Sin(mid))
		if mid < lockDither/4 || reach <= 0 {
			return // an end of its heat leaves no step to see by
		}
		x := min(max(s.sum(k)/lockSteps/reach, -1), 1)
		off := detmath.Atan2(x, math.Sqrt(1-float64(x*x))) - (a.up[k]-a.down[k])/2
		sigma := float64(math.Sqrt(1.0/lockSteps)*s.noise) / reach
		blur = append(blur, sigma)
		found = append(found, lockFinding{k, mzi.Wrap(off - a.model.Error(k, a.lit, a.setting, &a.volts)), float64(sigma * sigma)})
	}
	for lane := range o.LaneCount {
		switch a.lit {
		case mzi.Loop:
			add(hal.CellMZI1+lane, &one, milliwattOf(cal.LaneTap[0][lane]))
			continue
		case mzi.Ext1:
			add(hal.CellMZI2+lane, &two, milliwattOf(cal.LaneTap[0][lane]))
		case mzi.Ext2:
			add(hal.CellMZI2+lane, &two, milliwattOf(cal.LaneTap[1][lane]))
		}
		add(hal.CellMZI1+lane, &one, milliwattOf(cal.LaneLoop[o.Opposite(lane)]))
	}
	if len(blur) == 0 {
		return nil, "no cell can be stepped"
	}
	if slices.Sort(blur); blur[len(blur)/2] > lockBlur {
		return nil, "light changed while it was looked at"
	}
	return found, ""
}

// doubted takes findings that are too large to be trimmed at first sight out of those of
// a look, and says whether there are any. What the look before has found too is trimmed,
// and what was known of that cell counts little.
func (m *lockModule) doubted(found []lockFinding) (sure []lockFinding, doubt bool) {
	var large [lockCells]float64
	for _, f := range found {
		if math.Abs(f.off) > lockTwice {
			large[f.cell] = f.off
			if before := m.large[f.cell]; before == 0 || math.Abs(f.off-before) > lockAgrees {
				doubt = true
				continue
			}
			large[f.cell], m.variance[f.cell] = 0, max(m.variance[f.cell], 3*f.variance) // chosen: all at once does not settle
			f.off = min(max(f.off, -lockMost), lockMost)
		}
		sure = append(sure, f)
	}
	m.large = large
	return sure, doubt
}

// Between looks the taps tell. One cell of eight that goes from 28 dB to 25 adds a strayCell of as many lanes to
// the light on its wrong side, a share of the path's, which is as much as a reading is off
// by. So what is over the mean of rounds before is summed up in such cells, less lockStray
// each round: a cusum, as in E. S. Page, Biometrika 41, 100 (1954). chosen: a cell that has
// gone far is looked at in the first round, and a module that stands still in vain some
// ten times an hour.
const lockStray, lockStrays, lockStrayRounds = 0.5, 3.5, 60.0

// strayed is light on a wrong side, as a share of the path's.
type strayed struct {
	rounds, mean, grown float64 // grown: since the last look
}

// strays brings the next look at a module forward where more and more light is on a wrong
// side, by a reading of its guard: a cell may move by itself.
func (l *lock) strays(d *chipDrive, now time.Duration, module int) {
	if module >= len(l.modules) {
		return
	}
	m, block, o := &l.modules[module], d.readings.seen.own.Block(), d.trx.bundle.Modules[module].Optics()
	right, tap := d.trx.cfg.Calibration.Modules[module].tapLights(o, d.trx.path, block[2*hal.GuardTap1:])
	if !(right > 0) {
		return // in the dark nothing is wrong, and no mean is of it
	}
	wrong := [...]float64{tap, guardMilliwatt(o, block, hal.GuardLoopUpper, 0) + guardMilliwatt(o, block, hal.GuardLoopUpper, 1)} // that, and both halves' loopback
	if d.trx.path == proto.Loopback {
		wrong[1] = right
	}
	for i, x := range wrong {
		s, share := &m.strayed[litOf(d.trx.path)][i], (x+1e-6)/(right+1e-6)
		s.rounds = min(s.rounds+1, lockStrayRounds)
		s.mean += (share - s.mean) / s.rounds
		s.grown = max(s.grown+(share-s.mean)/(leastCellLeak/2/float64(o.LaneCount))-lockStray, 0)
		if s.grown > lockStrays {
			m.next = min(m.next, now)
		}
	}
}
