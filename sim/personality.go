package sim

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// Figures of the optics. chosen: docs/board.md, which tells what they rest on.
const (
	pi              = 3.14159265358979323846264338327950288
	heaterOhmSpread = 0.05
	extinctionDB    = 28.0
	cellLossDB      = 0.3
	facetLossDB     = 1.5
	connectorDB     = 1.0
	// The light that a loopback diode misses: makes docs/board.md's -2.3 dBm out
	// of six cells.
	loopCouplingDB = 0.5
	crosstalkFall  = 0.25 // per further pitch
	crosstalkBand  = 4    // pitches; beyond it is under a milliradian
	crosstalkTol   = 0.2
	caseRadPerK    = 0.02
	caseNominal    = 25.0
	riseRatio      = 0.75 // of the time constant of a heater that cools
	dacSettleMin   = 4 * time.Microsecond
	dacSettleMax   = 10 * time.Microsecond
)

// settleGroups: heaters of sixteen cells settle alike. chosen.
const settleGroups = (hal.CellsPerMod + 15) / 16

// Personality is what production made of one module: everything about its
// optics that calibration has to find out. It is read-only and shared by any
// number of boards.
type Personality struct {
	serial   string
	phys     *Physics
	identity [hal.IdentityBytes]byte
	cells    [hal.CellsPerMod]cell
	// crosstalk[k][j] is the share of the phase of heater k-band+j that cell k
	// sees; its own is 1.
	crosstalk  [hal.CellsPerMod][2*crosstalkBand + 1]float64
	row        [hal.CellsPerMod][2]float64 // of the heaters rowPitch before and behind
	reach      int                         // pitches that a heater is felt
	rise, fall int64                       // time constants, nanoseconds
	tail       int64                       // of the share that follows slowly; 0: none does
	calm       int64                       // see calmTaus
	adc        *[numADCs][8]adcError       // nil: none is off
	// Powers are in milliwatt, gains are ratios.
	laser    [hal.Lanes]float64
	txGain   [hal.Lanes]float64    // MZI2 to fibre
	rxGain   [2][hal.Lanes]float64 // fibre to diode of external 1, 2
	loopGain [hal.Lanes]float64    // matrix output to loopback diode, cells' loss included
	settle   [settleGroups]time.Duration
	caseAdd  float64 // kelvin over the board's ambient
}

// cell is one Mach-Zehnder: two couplers c1, s1 and c2, s2 that are not quite
// 50:50, and a heater on the upper arm.
type cell struct {
	offset         float64 // radian
	piPower        float64 // milliwatt
	ohm            float64
	cc, ss, cs, sc float64 // c1*c2, s1*s2, c1*s2, s1*c2
	barMean        float64 // |bar|^2 = barMean - barSwing*cos(phase)
	barSwing       float64
}

// Serial is the module's serial number, as its EEPROM says.
func (p *Personality) Serial() string { return p.serial }

// CellTruth is what calibration of one cell should find.
type CellTruth struct {
	OffsetRadian float64 // at 25 C, without drift
	PiMilliwatt  float64
	Ohm          float64
}

// Cell tells the truth about one cell; for tests and reports, not for agents.
func (p *Personality) Cell(k int) CellTruth {
	c := &p.cells[k]
	return CellTruth{c.offset, c.piPower, c.ohm}
}

// Catalogue draws n personalities; the first of a longer catalogue of the
// same seed are the same. Without physics they are of DefaultPhysics.
func Catalogue(ph *Physics, seed uint64, n int) []*Personality {
	list := make([]*Personality, n)
	for i := range list {
		list[i] = newPersonality(orDefault(ph), derive(seed, uint64(i)))
	}
	return list
}

// Parts of a personality's seed.
const (
	drawOffset = iota << 8
	drawPiPower
	drawOhm
	drawCoupler
	drawCrosstalk
	drawLaser
	drawTxFacet
	drawRxFacet
	drawConnector
	drawLoop
	drawSettle
	drawCase
	drawSerial
	drawRow
	drawADC
)

func newPersonality(ph *Physics, seed uint64) *Personality {
	p := &Personality{serial: fmt.Sprintf("RL%010d", derive(seed, drawSerial)%10_000_000_000), phys: ph}
	draw := func(part, i int) uint64 { return derive(seed, uint64(part)<<16|uint64(i)) }
	loss := func(db float64) float64 { return detmath.FromDB(-db) }
	for k := range p.cells {
		c := &p.cells[k]
		c.offset = between(draw(drawOffset, k), -pi, pi)
		c.piPower = ph.PPi * between(draw(drawPiPower, k), 1-ph.PPiSpread, 1+ph.PPiSpread)
		c.ohm = ph.HeaterOhm * between(draw(drawOhm, k), 1-heaterOhmSpread, 1+heaterOhmSpread)
		c.couplers(draw(drawCoupler, k))
		for j := range p.crosstalk[k] {
			p.crosstalk[k][j] = crosstalkShare(ph.Crosstalk, j-crosstalkBand, draw(drawCrosstalk, k<<4|j))
			if j < crosstalkBand {
				p.crosstalk[k][j] *= 1 + ph.Skew
			} else if j > crosstalkBand {
				p.crosstalk[k][j] *= 1 - ph.Skew
			}
		}
		for j := range p.row[k] {
			p.row[k][j] = crosstalkShare(ph.CrosstalkRow, 1, draw(drawRow, k<<1|j))
		}
	}
	p.thermal()
	p.adc = ph.converterErrors(derive(seed, drawADC))
	for l := range hal.Lanes {
		// Ends that give docs/board.md's worst and best levels; the modes give its
		// nominal ones.
		p.laser[l] = detmath.FromDB(bump(draw(drawLaser, l), -2.5, 0, 2.0) - ph.LaserAgeing)
		p.txGain[l] = loss(bump(draw(drawTxFacet, l), facetLossDB-0.4, facetLossDB, facetLossDB+0.6))
		for e := range 2 {
			p.rxGain[e][l] = loss(bump(draw(drawRxFacet, l<<1|e), facetLossDB-0.4, facetLossDB, facetLossDB+0.6) +
				bump(draw(drawConnector, l<<1|e), connectorDB-0.6, connectorDB, connectorDB+0.7))
		}
		p.loopGain[l] = loss(hal.MatrixStages*cellLossDB + bump(draw(drawLoop, l), loopCouplingDB-0.3, loopCouplingDB, loopCouplingDB+0.6))
	}
	for d := range p.settle {
		p.settle[d] = dacSettleMin + time.Duration(draw(drawSettle, d)%uint64(dacSettleMax-dacSettleMin+1))
	}
	p.caseAdd = between(draw(drawCase, 0), -1, 1)
	p.identity, _ = hal.Identity(p.serial) // always 12 characters
	return p
}

// couplers draws the two couplers of a cell. With angles t1 and t2 the bar
// output's null is cos^2(t1+t2) and the cross output's is sin^2(t1-t2); both
// are put at the extinction ratio, so that the whole stays lossless.
func (c *cell) couplers(h uint64) {
	null := detmath.Pow10(-extinctionDB / 20)
	a := detmath.Atan2(null, sqrt(1-float64(null*null)))
	b := a
	if h&1 != 0 {
		a = -a
	}
	if h&2 != 0 {
		b = -b
	}
	s1, c1 := detmath.Sincos((pi/2 + a + b) / 2)
	s2, c2 := detmath.Sincos((pi/2 + a - b) / 2)
	c.cc, c.ss, c.cs, c.sc = c1*c2, s1*s2, c1*s2, s1*c2
	c.barMean = float64(c.cc*c.cc) + float64(c.ss*c.ss)
	c.barSwing = 2 * float64(c.cc*c.ss)
}

// thermal works out how far and how long a heater is felt.
func (p *Personality) thermal() {
	p.fall = int64(p.phys.TauUS * 1000)
	p.rise = int64(riseRatio * float64(p.fall))
	p.calm = calmTaus * p.fall
	if p.phys.Tail > 0 {
		p.tail = int64(p.phys.TailMS * 1e6)
		p.calm = calmTaus * max(p.fall, p.tail)
	}
	switch {
	case p.phys.CommonK > 0:
		p.reach = hal.CellsPerMod
	case p.phys.CrosstalkRow > 0:
		p.reach = rowPitch
	default:
		p.reach = crosstalkBand
	}
}

func crosstalkShare(next float64, pitch int, h uint64) float64 {
	if pitch == 0 {
		return 1
	}
	if pitch < 0 {
		pitch = -pitch
	}
	x := next
	for range pitch - 1 {
		x *= crosstalkFall
	}
	return x * between(h, 1-crosstalkTol, 1+crosstalkTol)
}
