package sim

import (
	"math/bits"
	"time"

	"ringlight/mzi/detmath"
)

// Drift of a cell's phase is a pure function of (seed, cell, time).
//
// The usual one reverts to its mean: a stationary first-order process at knots
// of three hours, written as the sum of its shocks so that any knot can be had
// without the ones before, and straight lines between the knots.
//
// The planted one never comes back: a random walk, built by halving the time
// from a far horizon down to seconds, again so that any second can be had.
const (
	driftSigma = 0.050         // radian, stationary
	driftKnot  = 3 * time.Hour // tau is 6 h, so each knot keeps exp(-1/2)
	driftKeep  = 0.60653065971263342360
	driftGain  = 0.79506006886886220 // sqrt(1-driftKeep^2)
	driftTerms = 14                  // keep^14 is 0.1 % of a shock

	walkPerRootSecond = 0.005 // radian
	walkLevels        = 26    // horizon 2^26 s, two years

	// The phases are taken anew once a minute: a tenth of a milliradian.
	driftEpoch = time.Minute
	walkEpoch  = time.Second
)

// driftKnotAt is the drift at a knot and at the one after it; both are sums of
// the same shocks but for one.
func driftKnotAt(seed uint64, n int64) (a, b float64) {
	whole := detmath.Mix(seed + detmath.Golden) // as in derive
	shock := func(i int64) float64 { return normal(detmath.Mix(whole ^ uint64(i+1)*detmath.Golden)) }
	weight := driftSigma * driftGain
	later := shock(n + 1)
	for i := range int64(driftTerms) {
		x := shock(n - i)
		a += float64(weight * x)
		b += float64(weight * later)
		later = x
		weight *= driftKeep
	}
	return a, b
}

// driftFrom is the module's drift from knot n on, by cell: there, and what the next knot
// adds. It is kept: a module is looked at many times in three hours.
func (m *module) driftFrom(n int64) [][2]float64 {
	if m.drift == nil {
		m.drift, m.knot = make([][2]float64, m.wired.CellSpan()), n-1
	}
	if m.knot != n {
		m.knot = n
		for k := range m.drift {
			a, b := driftKnotAt(derive(m.seed, uint64(k)), n)
			m.drift[k] = [2]float64{a, b - a}
		}
	}
	return m.drift
}

// walkAt is a Brownian motion at a whole second: the midpoint of an interval
// of length T is the mean of its ends plus a shock of deviation sqrt(T)/2.
func walkAt(seed uint64, t time.Duration) float64 {
	s := int64(t/time.Second) & (1<<walkLevels - 1)
	lo, hi := int64(0), int64(1)<<walkLevels
	width := walkPerRootSecond * sqrt(float64(hi))
	a, b := 0.0, float64(width*normal(derive(seed, uint64(hi))))
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		m := (a+b)/2 + float64(width/2*normal(derive(seed, uint64(mid))))
		if s < mid {
			hi, b = mid, m
		} else {
			lo, a = mid, m
		}
		width = float64(width * 0.70710678118654752440)
	}
	return a
}

// hotAdd is what a case without a draught has over the air, in kelvin. chosen:
// far over any limit, short of what breaks it.
const hotAdd = 50

// caseAdd is how much warmer the case of a module is at a time than the air.
func (m *module) caseAdd(t time.Duration) float64 {
	add := m.per.caseAdd + m.per.phys.swing(t)
	if m.planted != nil && m.planted.hot {
		add += hotAdd
	}
	return add
}

// caseMilli is the case temperature in thousandths of a degree Celsius.
func (m *module) caseMilli() int32 {
	return m.board.ambientMilli + int32(m.caseAdd(m.board.now)*1000)
}

// refresh brings drift and case temperature of a module up to date. They change once
// an epoch.
func (m *module) refresh() {
	now := m.board.now
	epoch, walking := driftEpoch, uint64(0)
	if m.planted != nil {
		walking = m.planted.walk
	}
	if ph := m.per.phys; walking != 0 || ph.CaseDay > 0 || ph.CaseHour > 0 {
		epoch = walkEpoch
	}
	n := int64(now/epoch) + 1
	if n == m.epoch {
		return
	}
	if m.epoch == 0 || m.routed < 0 || now >= m.routedUntil {
		m.routed = 0
	}
	m.epoch = n
	m.rerouted()
	t := (now / epoch) * epoch
	m.air = caseRadPerK * (float64(m.board.ambientMilli)/1000 + m.caseAdd(t) - caseNominal)
	m.driftFrom(int64(t / driftKnot))
	m.part = float64(t%driftKnot) / float64(driftKnot)
	for ; walking != 0; walking &= walking - 1 {
		k := bits.TrailingZeros64(walking)
		seed := derive(m.seed, uint64(k)) ^ detmath.Golden
		m.planted.walked[k] = walkAt(seed, t) - walkAt(seed, time.Duration(m.planted.walkSince)*walkEpoch)
	}
}

// rest is the phase of a cell while no heater is warm, as of the last refresh.
func (m *module) rest(k int) float64 {
	d := &m.drift[k]
	x := m.per.cells[k].offset + m.air + (d[0] + float64(m.part*d[1]))
	if m.planted != nil && m.planted.walk>>k&1 != 0 {
		x += m.planted.walked[k]
	}
	return x
}
