package sim

import (
	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// MatrixLossMilliDB is what the five cells of a way through the matrix take.
const MatrixLossMilliDB = hal.MatrixStages * cellLossDB * 1000

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
		m.standing(&warm, 0, hal.CellsPerMod, &phase)
	}
	var mat matrix
	m.per.propagate(&phase, allPorts, &mat)
	routes := m.per.routes(&mat, &phase)
	for i := range routes {
		for o, share := range routes[i] {
			out[i][o] = int32(1000 * (detmath.DB(max(share, 1e-9)) - hal.MatrixStages*cellLossDB))
		}
	}
	return out
}
