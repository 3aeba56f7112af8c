package ocs

import (
	"fmt"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/ocs/heater"
	"ringlight/ocs/stored"
)

// Comparison is what a calibration changed against the one before it. Pairs are
// before and after.
type Comparison struct {
	Modules []ModuleComparison `json:"modules"`
}

// ModuleComparison is the share of one module.
type ModuleComparison struct {
	Module           int              `json:"module"`
	Serial           string           `json:"serial"`
	Was              string           `json:"was,omitempty"` // serial number before, where it is another one
	CaseMillicelsius [2]int32         `json:"case_millicelsius"`
	RailMillivolt    [2]int32         `json:"rail_millivolt"`
	LargestMicrorad  int32            `json:"largest_phase_change_microrad"` // of all cells, without sign
	LargestCell      int              `json:"largest_cell"`
	Cells            []CellComparison `json:"cells"`
}

// CellComparison is the share of one cell.
type CellComparison struct {
	Cell                int      `json:"cell"`
	Name                string   `json:"name"`
	PhaseMicrorad       [2]int32 `json:"phase_microrad"`        // without heat
	PhaseChangeMicrorad int32    `json:"phase_change_microrad"` // the shorter way round
	ExtinctionMilliDB   [2]int32 `json:"extinction_millidb"`    // 0: not noted
	MilliOhm            [2]int32 `json:"resistance_milliohm"`
	PiMicrowatt         [2]int32 `json:"pi_power_microwatt"`
	// Heater power for the codes of registers A and B.
	PowerMicrowatt [2][2]int32 `json:"power_microwatt"`
}

// Compare tells what changed from one calibration of a bundle to a later one.
func Compare(before, after *Calibration) (*Comparison, error) {
	if len(before.Modules) != len(after.Modules) {
		return nil, fmt.Errorf("ocs: %d modules before, %d after: %w", len(before.Modules), len(after.Modules), stored.ErrMismatch)
	}
	c := new(Comparison)
	for i, a := range after.Modules {
		b := before.Modules[i]
		m := ModuleComparison{Module: i, Serial: a.Serial, CaseMillicelsius: [2]int32{b.CaseMillicelsius, a.CaseMillicelsius},
			RailMillivolt: [2]int32{b.RailMillivolt, a.RailMillivolt}}
		if b.Serial != a.Serial {
			m.Was = b.Serial
		}
		for k := range a.each {
			m.add(k, b, a)
		}
		c.Modules = append(c.Modules, m)
	}
	return c, nil
}

const microradPerTurn = 6_283_185

func (m *ModuleComparison) add(k int, before, after *ModuleCalibration) {
	b, a := &before.Cells[k], &after.Cells[k]
	x := CellComparison{Cell: k, Name: mzi.CellName(k), PhaseMicrorad: [2]int32{b.OffsetMicrorad, a.OffsetMicrorad},
		ExtinctionMilliDB: [2]int32{before.Extinction[k], after.Extinction[k]}, MilliOhm: [2]int32{int32(b.MilliOhm), int32(a.MilliOhm)},
		PiMicrowatt: [2]int32{int32(b.PiMicrowatt), int32(a.PiMicrowatt)}}
	d := int64(a.OffsetMicrorad) - int64(b.OffsetMicrorad)
	for d > microradPerTurn/2 {
		d -= microradPerTurn
	}
	for d < -microradPerTurn/2 {
		d += microradPerTurn
	}
	x.PhaseChangeMicrorad = int32(d)
	if d := max(x.PhaseChangeMicrorad, -x.PhaseChangeMicrorad); d > m.LargestMicrorad {
		m.LargestMicrorad, m.LargestCell = d, k
	}
	for register := range 2 {
		from := register
		if k >= hal.CellMatrix {
			from = 0 // one code
		}
		x.PowerMicrowatt[register] = [2]int32{heater.Microwatt(before.Codes[k][from], b.MilliOhm), heater.Microwatt(after.Codes[k][from], a.MilliOhm)}
	}
	m.Cells = append(m.Cells, x)
}
