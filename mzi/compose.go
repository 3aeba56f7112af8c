package mzi

import "periph.io/x/conn/v3/physic"

// registers are the heat of every cell for both registers of its channel.
type registers [Cells][2]float64

// under is the heat of all cells in a setting.
func (r *registers) under(lit Lit) (u [Cells]float64) {
	for k := range u {
		u[k] = r[k][register(k, lit)]
	}
	return u
}

// register of a cell in force in a setting: MZI1 hangs on one toggle net, MZI2
// on the other, the matrix on none.
func register(k int, lit Lit) int {
	if k < CellMZI2 && lit != Loop || k >= CellMZI2 && k < CellMatrix && lit == Ext2 {
		return 1
	}
	return 0
}

// Compose makes the voltages of both registers of every heater, so that every
// cell stands right in each lit setting in which light passes it, with the
// matrix in setting; max is the most heat that each may take, step that of the
// DAC. MZI1 has one code for both external paths, though MZI2's heat is not the
// same in both: favour is the one in which it stands right, Loop halves the
// error. The matrix has the same voltage in both. Going round, each cell stays on
// its turn, for a neighbour's turn is a tenth of a radian in crosstalk.
func (m *Module) Compose(setting Setting, favour Lit, max *[Cells]float64, step physic.ElectricPotential) (volts [Cells][2]physic.ElectricPotential) {
	var r registers
	for k := range r {
		if !m.absent(k) {
			r[k] = [2]float64{m.least(k), m.least(k)}
		}
	}
	return m.compose(setting, favour, &r, 0, max, step)
}

// turnSlack is how far off, in radian, a cell that carries light may be left at
// an end of its heat before it goes to another turn; on the way there its light is
// misrouted for some twenty microseconds. chosen: half of what costs 25 dB.
const turnSlack = 0.04

// Recompose is Compose from the voltages in force, for cells that carry light:
// each stays on its turn as long as it can.
func (m *Module) Recompose(setting Setting, favour Lit, from *[Cells][2]physic.ElectricPotential, max *[Cells]float64, step physic.ElectricPotential) (volts [Cells][2]physic.ElectricPotential) {
	var r registers
	for k := range r {
		r[k] = [2]float64{Square(from[k][0]), Square(from[k][1])}
	}
	return m.compose(setting, favour, &r, turnSlack, max, step)
}

func (m *Module) compose(setting Setting, favour Lit, r *registers, slack float64, max *[Cells]float64, step physic.ElectricPotential) (volts [Cells][2]physic.ElectricPotential) {
	for range solveRounds {
		for lit := range numLits {
			u := r.under(lit)
			for k := range Cells {
				if !composes(k, lit) || m.absent(k) {
					continue
				}
				reg := register(k, lit)
				u[k] = m.heatIn(k, litPhase(k, lit, setting), m.around(k, lit, favour, r, &u), r[k][reg], slack, max[k])
				r[k][reg] = u[k]
			}
		}
	}
	for k := range Cells {
		b := 1
		if k >= CellMatrix {
			b = 0
		}
		volts[k][0], volts[k][1] = Volts(r[k][0], step), Volts(r[k][b], step)
	}
	return volts
}

// composes says whether a cell gets a heat of its own in a setting: light passes
// it there, and no earlier setting has the same register.
func composes(k int, lit Lit) bool {
	switch {
	case k >= CellMatrix:
		return lit == Loop
	case k >= CellMZI2:
		return lit != Loop
	}
	return lit != Ext2 // external by the same code whichever way MZI2 goes
}

// litPhase is the phase that a cell must have.
func litPhase(k int, lit Lit, setting Setting) float64 {
	switch {
	case k >= CellMatrix:
		return setting.Phase(k - CellMatrix)
	case k >= CellMZI2 && lit == Ext2, k < CellMZI2 && lit != Loop:
		return PhaseBar
	}
	return PhaseCross
}

// around is the phase that the other heaters add to a cell in a setting; to an
// external MZI1, in the path that is favoured or as the mean of both.
func (m *Module) around(k int, lit, favour Lit, r *registers, u *[Cells]float64) float64 {
	sum := m.Background(k, u)
	if k >= CellMZI2 || lit != Ext1 || favour == Ext1 {
		return sum
	}
	under := r.under(Ext2)
	other := m.Background(k, &under)
	if favour == Ext2 {
		return other
	}
	return (sum + other) / 2
}

// Error is how far the phase of cell k lies from where Compose would have it, for
// voltages in force and a setting; 0 for a cell that no light passes there, or that is none.
func (m *Module) Error(k int, lit Lit, setting Setting, volts *[Cells][2]physic.ElectricPotential) float64 {
	if m.absent(k) || k >= CellMatrix && lit != Loop || k >= CellMZI2 && k < CellMatrix && lit == Loop {
		return 0
	}
	var u [Cells]float64
	for j := range u {
		u[j] = Square(volts[j][register(j, lit)])
	}
	return Wrap(m.Phase(k, &u) - litPhase(k, lit, setting))
}

// Limits of one heater.
type Limits struct {
	Voltage physic.ElectricPotential
	Current physic.ElectricCurrent
	Power   physic.Power
}

// MostHeat is the most heat, as a square of volts, that a heater of a resistance
// may take: a margin within the limits.
func (l *Limits) MostHeat(ohm float64) float64 {
	v := margin * float64(l.Voltage) / float64(physic.Volt)
	a := margin * float64(l.Current) / float64(physic.Ampere) * ohm
	p := margin * float64(l.Power) / float64(physic.Watt) * ohm
	return min(float64(v*v), float64(a*a), p)
}
