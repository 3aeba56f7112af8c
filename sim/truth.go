package sim

import (
	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// Extinctions tells the truth about a module as its DACs are staged now: for
// each cell the ratio, in thousandths of a dB, of the light on the wanted side
// to that on the other one, when all heaters have settled. Of a cell that
// several paths use it is the worst: MZI1 in all three lit paths, MZI2 in its
// two, the matrix in loopback. For reports and tests, not for agents.
func (w *World) Extinctions(id BoardID, bundle, mod int) [hal.CellsPerMod]int32 {
	var worst [hal.CellsPerMod]int32
	for i := range worst {
		worst[i] = unused
	}
	for path := range hal.NumLOS {
		for k, x := range w.PathExtinctions(id, bundle, mod, path) {
			worst[k] = min(worst[k], x)
		}
	}
	return worst
}

// unused is the extinction of a cell that a path does not use.
const unused = 1 << 30

// PathExtinctions is the same for one path, hal.LOSLoopback and following.
func (w *World) PathExtinctions(id BoardID, bundle, mod, path int) (out [hal.CellsPerMod]int32) {
	m := w.module(id, bundle, mod)
	m.refresh()
	var phase [hal.CellsPerMod]float64
	m.settledPhases([2]bool{path != hal.LOSLoopback, path == hal.LOSExternal2}, &phase)
	for k := range out {
		out[k] = unused
		inLoop := k >= hal.CellMatrix
		behind := k >= hal.CellMZI2 && k < hal.CellMatrix
		if inLoop && path != hal.LOSLoopback || behind && path == hal.LOSLoopback {
			continue
		}
		bar := m.per.cells[k].bar(phase[k])
		if bar < 0.5 {
			bar = 1 - bar
		}
		out[k] = int32(1000 * detmath.DB(bar/max(1-bar, 1e-9)))
	}
	return out
}

// settledPhases are the phases that the staged codes lead to for given levels
// of the toggle nets.
func (m *module) settledPhases(nets [2]bool, phase *[hal.CellsPerMod]float64) {
	var warm padded
	for k := range hal.CellsPerMod {
		if m.planted == nil || (m.planted.open|m.planted.short)>>k&1 == 0 {
			warm[k+crosstalkBand] = m.per.warmthOf(k, m.cellVolts(k, nets))
		}
	}
	m.standing(&warm, 0, hal.CellsPerMod, phase)
}

// Personality is the optics of one module; for reports and tests, not for
// agents.
func (w *World) Personality(id BoardID, bundle, mod int) *Personality {
	return w.module(id, bundle, mod).per
}
