package sim

import (
	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// Extinctions tells the truth about a module as its DACs are staged now: for
// each cell the ratio, in thousandths of a dB, of the light on the wanted side
// to that on the other one, when all heaters have settled: below 0 where most goes
// the wrong way, into another fibre. Of a cell that several paths use it is the worst:
// MZI1 in all three lit paths, MZI2 in its two. Of the matrix, in loopback, a path says
// nothing of which side is wanted: it is the brighter, and LaneTruth tells where lanes
// come out. For reports and tests, not for agents.
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

// unused is the extinction of a cell that a path does not use, or that the module has not.
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
		if !m.wired.Has(k) || inLoop && path != hal.LOSLoopback || behind && path == hal.LOSLoopback {
			continue
		}
		right := m.per.cells[k].bar(phase[k])
		switch cross := 1 - right; { // see emit
		case inLoop:
			right = max(right, cross)
		case behind && path == hal.LOSExternal1, !behind && path == hal.LOSLoopback:
			right = cross
		}
		out[k] = int32(1000 * detmath.DB(max(right, 1e-9)/max(1-right, 1e-9)))
	}
	return out
}

// settledPhases are the phases that the staged codes lead to for given levels
// of the toggle nets.
func (m *module) settledPhases(nets [2]bool, phase *[hal.CellsPerMod]float64) {
	var warm padded
	for k := range m.wired.All {
		if m.planted == nil || (m.planted.open|m.planted.short)>>k&1 == 0 {
			warm[k+crosstalkBand] = m.per.warmthOf(k, m.cellVolts(k, nets))
		}
	}
	m.standing(&warm, m.wired.all, phase)
}

// Personality is the optics of one module; for reports and tests, not for
// agents.
func (w *World) Personality(id BoardID, bundle, mod int) *Personality {
	return w.module(id, bundle, mod).per
}

// LaneTruth tells what the matrix of a module would do to each lane in loopback if its
// DACs held these codes, of a span of 10 V, nil: those that they hold, and all heaters had
// settled: by lane and output the light that comes out for what goes in, in thousandths of
// a dB, with the loss of the five cells. For reports and tests, not for agents.
func (w *World) LaneTruth(id BoardID, bundle, mod int, codes *[hal.CellsPerMod]uint16) (out [hal.Lanes][hal.Lanes]int32) {
	m := w.module(id, bundle, mod)
	m.refresh()
	var phase [hal.CellsPerMod]float64
	if codes == nil {
		m.settledPhases([2]bool{}, &phase)
	} else {
		var warm padded
		for k, code := range codes {
			warm[k+crosstalkBand] = m.per.warmthOf(k, float64(heaterMicrovolt(code))/1e6)
		}
		m.standing(&warm, m.wired.all, &phase)
	}
	routes := m.ways(&phase, allPorts)
	for i := range routes {
		for o, share := range routes[i] {
			out[i][o] = int32(1000 * (detmath.DB(max(share, 1e-9)) - hal.MatrixStages*cellLossDB))
		}
	}
	return out
}
