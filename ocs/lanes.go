package ocs

import (
	"fmt"

	"ringlight/hal"
	"ringlight/hal/ltc2688"
	"ringlight/mzi"
	"ringlight/proto"

	"periph.io/x/conn/v3/physic"
)

// heaterLimits are what codes are made within; the guard clamps at the same.
var heaterLimits = mzi.Limits{Voltage: hal.HeaterMaxMillivolt * milliVolt, Current: hal.HeaterMaxMicroampere * microAmpere, Power: hal.HeaterMaxMicrowatt * microWatt}

// model is the calibration as mzi reckons with it, and the most heat of each
// heater.
func (m *ModuleCalibration) model() (model *mzi.Module, most *[mzi.Cells]float64) {
	model, most = new(mzi.Module), new([mzi.Cells]float64)
	for k := range m.Cells {
		c := &m.Cells[k]
		cell := &model.Cells[k]
		cell.Ohm = float64(c.MilliOhm) / 1000
		cell.Offset = float64(c.OffsetMicrorad) / 1e6
		cell.Slope = mzi.PhaseBar / (float64(c.PiMicrowatt) / 1e6 * cell.Ohm)
		for i, x := range c.Near {
			model.Near[k][i] = float64(x) / 1e6
		}
		most[k] = heaterLimits.MostHeat(cell.Ohm)
	}
	return model, most
}

// LaneCodes are the codes of every heater, register A and B, with which the
// module's loopback takes lane n to lane p[n]: routed by the looping algorithm,
// with the crosstalk of all heaters compensated for every path, and as the guard
// lets them pass. The codes of a calibration are those of mzi.Halves.
func (m *ModuleCalibration) LaneCodes(p mzi.Permutation) (codes [hal.CellsPerMod][2]uint16, err error) {
	setting, err := mzi.Route(p)
	if err != nil {
		return codes, err
	}
	model, most := m.model()
	volts := model.Compose(setting, mzi.Loop, most, dacStep)
	return m.guardedCodes(&volts)
}

// trimmedCodes are the codes next to those in force that the calibration, which
// has moved, asks for. They favour one external path over the other, for MZI1 has
// but one code for both.
func (m *ModuleCalibration) trimmedCodes(p mzi.Permutation, favour mzi.Lit, inForce *forced) (codes forced, err error) {
	setting, err := mzi.Route(p)
	if err != nil {
		return codes, err
	}
	model, most := m.model()
	from := voltages(inForce)
	volts := model.Recompose(setting, favour, &from, most, dacStep)
	return m.guardedCodes(&volts)
}

// voltages that codes stand for; the matrix has one.
func voltages(codes *forced) (volts [mzi.Cells][2]physic.ElectricPotential) {
	for k := range volts {
		b := codes[k][1]
		if k >= hal.CellMatrix {
			b = codes[k][0]
		}
		volts[k] = [2]physic.ElectricPotential{voltsOf(codes[k][0]), voltsOf(b)}
	}
	return volts
}

func voltsOf(code uint16) physic.ElectricPotential {
	return physic.ElectricPotential(ltc2688.Microvolt(span, code)) * physic.MicroVolt
}

// expectedLoop is what the diode of an output sees when all is well and the
// loopback makes p. The calibration knows it for mzi.Halves; the lanes' lights
// differ as their shares of a tap do.
func expectedLoop(m *ModuleCalibration, p mzi.Permutation, out int) proto.MilliDBm {
	was, is := 0, 0
	for lane := range p {
		if int(mzi.Halves[lane]) == out {
			was = lane
		}
		if int(p[lane]) == out {
			is = lane
		}
	}
	return m.LaneLoop[out] + m.LaneTap[0][is] - m.LaneTap[0][was]
}

// guardedCodes turns voltages into codes; what the guard would cut is refused.
func (m *ModuleCalibration) guardedCodes(volts *[mzi.Cells][2]physic.ElectricPotential) (codes [hal.CellsPerMod][2]uint16, err error) {
	for k := range volts {
		for register, v := range volts[k] {
			codes[k][register] = ltc2688.Code(span, int64(v/physic.MicroVolt))
		}
	}
	codes, cuts := guardedOf(m, codes)
	if cuts > 0 {
		return codes, fmt.Errorf("ocs: %d codes beyond the limits of their heaters or of the module: %w", cuts, hal.ErrOutOfRange)
	}
	return codes, nil
}
