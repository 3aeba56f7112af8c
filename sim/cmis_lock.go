package sim

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/hal/ads7138"
	"ringlight/hal/cmis"
	"ringlight/mzi/detmath"
)

// A controller's own lock, as a module's maker might build one: one cell of the path in
// force after the other goes a little to either side, and what of its light goes the
// wrong way tells by how much it is to be moved. It knows the nominal heater, and of its
// own lanes the light that the factory measured. All figures are chosen.
const (
	mciLockRest   = 200 * time.Millisecond
	mciLockDwell  = 1200 * time.Microsecond // on one side: heat, and as many conversions of each channel as follow
	mciLockShots  = 128
	mciLockDither = 0.03 // radian
	mciLockGain   = 0.7  // of what is found, in a look
	mciLockMost   = 0.6  // radian that a cell is moved at most
	mciLockGood   = 0.08 // radian: beyond it a cell of 28 dB has less than 25
	mciLockCells  = hal.CellMatrix
	// An error beyond mciLockTwice is moved when a second look finds it within mciLockAgrees.
	mciLockTwice, mciLockAgrees = 0.1, 0.05
	mciCarryLeast               = 0.006 // radian by which the matrix is moved at least
)

// mciLock is how far it has come.
type mciLock struct {
	gen    byte // of the look under way: a trigger makes it void
	k      int
	side   int // 0: none, 1: below, 2: above
	seen   float64
	trim   [cmis.Cells]float64   // radian
	large  [mciLockCells]float64 // errors that the last look found and did not move
	dither float64               // of cell k
	stuck  bool                  // a cell of this look could not be moved as far as it should, or not be seen
	blind  bool                  // the diode showed nothing on the first side: its zero lies below its converter's
	most   float64               // largest error of this look
	cell   int                   // whose it is
	shots  uint64
}

// hold begins to lock, or ends it: what was trimmed stays.
func (c *mci) hold(v byte) {
	if v > 1 || v == c.lower[cmis.LockMode] {
		return
	}
	c.lower[cmis.LockMode] = v
	c.lower[cmis.LockState] = byte(cmis.LockOff)
	c.freeze()
}

// freeze ends a look without a finding, and lets the next begin later.
func (c *mci) freeze() {
	l := &c.lock
	l.gen++
	if l.side != 0 {
		l.side, l.dither = 0, 0
		c.nudge(l.k)
	}
	if c.lower[cmis.LockMode] == 1 {
		c.lower[cmis.LockState] = byte(cmis.LockSeeking)
		c.rest()
	}
}

// rest lets the next look begin later.
func (c *mci) rest() {
	c.later(cmp.Or(c.timing.LockRest, mciLockRest), mciLockStep, c.lock.gen)
}

// lockable says whether cells of a path can be seen, and how many there are.
func (c *mci) lockable() (cells int, ok bool) {
	const lasers = cmis.TriggerUpper | cmis.TriggerLower
	if c.search || c.state() != cmis.ModuleReady || !c.applied || c.lower[cmis.InForce]&lasers != lasers {
		return 0, false
	}
	if c.lower[cmis.InForce]&cmis.TriggerPath == hal.LOSLoopback {
		return hal.CellMZI2, true
	}
	return mciLockCells, true
}

// lockStep goes on with a look.
func (c *mci) lockStep(gen byte) {
	l := &c.lock
	if gen != l.gen || c.lower[cmis.LockMode] != 1 {
		return
	}
	cells, ok := c.lockable()
	if !ok {
		c.freeze()
		return
	}
	switch l.side {
	case 0:
		l.k, l.most, l.cell, l.stuck = 0, 0, 0, false
	case 1:
		l.seen, l.blind = c.misrouted(l.k)
	case 2:
		if seen, blind := c.misrouted(l.k); !blind && !l.blind {
			c.trimmed(l.k, seen-l.seen)
		} else if l.dither = 0; !l.stuck {
			l.stuck, l.cell = true, l.k
		}
		l.k++
	}
	if l.k == cells {
		l.side = 0
		c.looked(cells)
		c.rest()
		return
	}
	l.side = l.side%2 + 1
	l.dither = float64(mciLockDither * float64(2*l.side-3))
	c.nudge(l.k)
	c.later(mciLockDwell, mciLockStep, l.gen)
}

// trimmed moves a cell by what the difference of both sides says.
func (c *mci) trimmed(k int, diff float64) {
	l, lane := &c.lock, k%hal.Lanes
	light := c.m.per.laser[lane]
	if k < hal.CellMZI2 && c.nets[0] {
		light *= c.m.per.loopGain[lane]
	}
	if k >= hal.CellMZI2 {
		light *= 2 // from the one tap to the other
	}
	off := diff / (light * detmath.Sin(mciLockDither))
	off = min(max(off, -1), 1)
	if x := math.Abs(off); x > l.most {
		l.most, l.cell = x, k
	}
	want := l.trim[k] - float64(mciLockGain*off)
	if before := l.large[k]; math.Abs(off) > mciLockTwice && (before == 0 || math.Abs(off-before) > mciLockAgrees) {
		l.large[k], want = off, l.trim[k]
	} else {
		l.large[k] = 0
	}
	l.trim[k] = min(max(want, -mciLockMost), mciLockMost)
	l.dither = 0
	l.stuck = l.stuck || l.trim[k] != want || !c.nudge(k) && math.Abs(off) > mciLockGood
}

// looked says what a look found.
func (c *mci) looked(cells int) {
	l := &c.lock
	state := cmis.LockHolding
	if l.stuck || l.most > mciLockGood {
		state = cmis.LockLost
	}
	c.lower[cmis.LockState] = cmis.LockStateOf(state, int32(1e6*c.carry(cells)))
	c.lower[cmis.LockState+1]++
	c.lower[cmis.LockState+2] = byte(l.cell)
	binary.BigEndian.PutUint16(c.lower[cmis.LockState+3:], uint16(min(l.most*1e5, 65535)))
}

// carry moves the matrix by what the cells of a look have in common, as far as that stands
// out of what they differ by, and says how much that is, radian rms.
func (c *mci) carry(cells int) (spread float64) {
	l := &c.lock
	seen := slices.Sorted(slices.Values(l.trim[:cells]))
	common := (seen[(cells-1)/2] + seen[cells/2]) / 2
	for _, x := range seen {
		spread += float64((x - common) * (x - common))
	}
	spread /= float64(cells - 1)
	if common != 0 {
		common *= max(0, 1-float64(spread*math.Pi/2)/float64(cells)/float64(common*common))
	}
	spread = math.Sqrt(spread)
	for k := hal.CellMatrix; k < cmis.Cells; k++ {
		if math.Abs(common-l.trim[k]) >= mciCarryLeast {
			l.trim[k] = common
			if !c.nudge(k) {
				spread = 1
			}
		}
	}
	return spread
}

// misrouted is what of a cell's light goes the wrong way, or moves that way, in milliwatt:
// of an MZI1 on what it is not to lead to, of an MZI2 from one tap to the other; blind: the
// diode that should show it shows nothing.
func (c *mci) misrouted(k int) (milliwatt float64, blind bool) {
	m := c.m
	m.refresh()
	t := int64(m.board.now)
	see := func(which converter, in *[ads7138.Channels]float64, ch int) float64 {
		full := m.wired.full[which][ch]
		code := in[ch] * ads7138.CodeFull / full
		if m.per.adc != nil {
			code = m.per.adc[which][ch].of(code)
		}
		c.lock.shots++
		noise := float64(adcNoiseCodes * m.per.phys.ADCNoise / math.Sqrt(mciLockShots))
		code += float64(noise * normal(derive(m.seed^detmath.Golden, c.lock.shots)))
		return max(code, 0) * full / ads7138.CodeFull
	}
	if k < hal.CellMZI2 && c.nets[0] {
		in, sum := m.laneInputs(t), 0.0
		for ch := range in {
			x := see(laneADC, &in, ch)
			blind = blind || x == 0 && ch == m.wired.Opposite(k)
			sum += x
		}
		return sum, blind
	}
	in := m.guardInputs(t)
	one, two := see(guardADC, &in, hal.GuardTap1), see(guardADC, &in, hal.GuardTap2)
	switch {
	case k < hal.CellMZI2:
		return one + two, one+two == 0
	case c.nets[1]:
		return one - two, false
	}
	return two - one, false
}

// trimmedCode is a cell's code with what the lock adds; whole: all of it.
func (c *mci) trimmedCode(k, register int) (code uint16, whole bool) {
	code = c.forced[register][k]
	add := c.lock.trim[k]
	if k == c.lock.k {
		add += c.lock.dither
	}
	if add == 0 {
		return code, true
	}
	ph := c.m.per.phys
	volt := float64(code) * (10.0 / 65536)
	// Nominal: phase is pi times power over that for pi.
	square := float64(volt*volt) + float64(add/pi*ph.PPi/1000*ph.HeaterOhm)
	trimmed := math.Floor(float64(math.Sqrt(max(square, 0))*(65536/10.0)) + 0.5)
	if trimmed > 65535 || !c.allows(uint16(trimmed)) {
		return code, false
	}
	return uint16(trimmed), square >= 0
}

// nudge brings a cell to its code, and says whether all of it is allowed.
func (c *mci) nudge(k int) (whole bool) {
	d, ch := k/controllerChannels, k%controllerChannels
	whole = true
	for register := range 2 {
		code, ok := c.trimmedCode(k, register)
		c.power[d].code[ch][register] = code
		whole = whole && ok
	}
	if c.m.drive(d, 1<<ch) {
		c.m.changed()
	}
	return whole
}
