package mzi

import (
	"math"

	"ringlight/mzi/detmath"

	"periph.io/x/conn/v3/physic"
)

// The cells of one module, each with one heater.
const (
	Lanes      = 8                        // at most
	CellMZI1   = 0                        // + lane: internal or external
	CellMZI2   = CellMZI1 + 8             // + lane: external 1 or external 2
	CellMatrix = CellMZI2 + 8             // + coupler
	Cells      = CellMatrix + MatrixCells // at most; a matrix of fewer leaves the last ones zero
)

// Phases at which a cell sends all light one way.
const (
	PhaseCross = 0          // matrix: crossed; MZI1: internal; MZI2: external 1
	PhaseBar   = detmath.Pi // matrix: straight; MZI1: external; MZI2: external 2
	twoPi      = 2 * detmath.Pi
)

// Cell is what heat does to one Mach-Zehnder cell: its phase is
// Offset + Slope*u, u being the square of the heater's voltage, besides what
// the neighbours' heat adds.
type Cell struct {
	Offset float64 // radian
	Slope  float64 // radian per square volt
	Ohm    float64
}

// Wrap brings a phase into [-pi, pi).
func Wrap(phase float64) float64 {
	return phase - float64(twoPi*math.Floor(float64((phase+detmath.Pi)/twoPi)))
}

// Volts is the voltage of a heater whose square is u, on the grid of the DAC.
func Volts(u float64, step physic.ElectricPotential) physic.ElectricPotential {
	if !(u > 0) {
		return 0
	}
	v := float64(math.Sqrt(u) * float64(physic.Volt))
	n := math.Floor(float64(v/float64(step)) + 0.5)
	return physic.ElectricPotential(n) * step
}

// Square is the inverse of Volts.
func Square(v physic.ElectricPotential) float64 {
	x := float64(v) / float64(physic.Volt)
	return float64(x * x)
}

// PiPower is the heater power for a phase of pi.
func (c *Cell) PiPower() physic.Power {
	return physic.Power(detmath.Pi / (c.Slope * c.Ohm) * float64(physic.Watt))
}

// Module is the cells of one module with what the heat of each does to its
// neighbours.
type Module struct {
	Cells [Cells]Cell
	// Cross is the share of heater j's own phase that cell k sees, in Cross[k][j].
	// Which cells lie next to which only a measurement tells.
	Cross [Cells][Cells]float64
}

// absent says that there is no such cell.
func (m *Module) absent(k int) bool { return m.Cells[k].Slope == 0 }

// Background is the phase that the other heaters add to cell k.
func (m *Module) Background(k int, u *[Cells]float64) float64 {
	sum := 0.0
	for j, x := range m.Cross[k] {
		if j == k || x == 0 {
			continue
		}
		sum += float64(x * float64(m.Cells[j].Slope*u[j]))
	}
	return sum
}

// Phase of cell k for all heaters.
func (m *Module) Phase(k int, u *[Cells]float64) float64 {
	c := &m.Cells[k]
	return c.Offset + float64(c.Slope*u[k]) + m.Background(k, u)
}

// edge is how far in radian a cell should stand from the end of its heat, so that
// it can be moved to either side of its state. chosen.
const edge = 0.25

// least is where to begin to look for the least heat that is a little from nought.
func (m *Module) least(k int) float64 { return (edge + PhaseBar) / m.Cells[k].Slope }

// heat is a heat in [0, max] that brings cell k to a phase modulo 2 pi, the
// other heaters being as they are: of those possible the nearest to from. Where
// none is possible, it is the end of the range that comes nearest.
func (m *Module) heat(k int, phase float64, u *[Cells]float64, from, max float64) float64 {
	return m.heatIn(k, phase, m.Background(k, u), from, 0, max)
}

// heatIn is heat for a known phase that the others add. Up to slack, in radian, the
// end of the range is taken for the heat beyond it.
func (m *Module) heatIn(k int, phase, background, from, slack, max float64) float64 {
	c := &m.Cells[k]
	turn := twoPi / c.Slope
	x := (phase - c.Offset - background) / c.Slope
	x += float64(turn * math.Floor(float64((from-x)/turn)+0.5))
	if d := slack / c.Slope; slack > 0 && (x < 0 && x >= -d || x > max && x <= max+d) {
		return clamp(x, 0, max)
	}
	if x < 0 && (x+turn <= max || -x > x+turn-max) {
		x += turn
	}
	if x > max && (x-turn >= 0 || x-max > turn-x) {
		x -= turn
	}
	return clamp(x, 0, max)
}

func clamp(x, lo, hi float64) float64 {
	switch {
	case x < lo:
		return lo
	case x > hi:
		return hi
	}
	return x
}

// solveRounds is how often codes are solved for. chosen: crosstalk is a few per
// cent, so each round leaves a few per cent of the error before.
const solveRounds = 8
