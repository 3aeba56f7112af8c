package ocs

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/ocs/heater"
	"ringlight/ocs/stored"

	"periph.io/x/conn/v3/physic"
)

// heaterLimits are what codes are made within; a heater.Driver clamps at the same.
func heaterLimits(h *hal.HeaterLimits) mzi.Limits {
	return mzi.Limits{Voltage: physic.ElectricPotential(h.MaxMillivolt) * milliVolt, Current: physic.ElectricCurrent(h.MaxMicroampere) * microAmpere,
		Power: physic.Power(h.MaxMicrowatt) * microWatt}
}

// model is the calibration as mzi reckons with it, and the most heat of each
// heater, of what they bear.
func (m *ModuleCalibration) model(bears *hal.HeaterLimits) (model *mzi.Module, most *[mzi.Cells]float64) {
	limits := heaterLimits(bears)
	model, most = new(mzi.Module), new([mzi.Cells]float64)
	for k := range m.each {
		c := &m.Cells[k]
		cell := &model.Cells[k]
		cell.Ohm = float64(c.MilliOhm) / 1000
		cell.Offset = float64(c.OffsetMicrorad) / 1e6
		cell.Slope = mzi.PhaseBar / (float64(c.PiMicrowatt) / 1e6 * cell.Ohm)
		for j := range model.Cross[k] {
			model.Cross[k][j] = float64(m.Common) / 1e6
		}
		for i, x := range c.Near {
			if j := k - Reach + i; j >= 0 && j < mzi.Cells {
				model.Cross[k][j] = float64(x) / 1e6
			}
		}
		most[k] = limits.MostHeat(cell.Ohm)
	}
	for _, f := range m.Far {
		model.Cross[f.Cell][f.From] = float64(f.Share) / 1e6
	}
	return model, most
}

// maxFar bounds what of a module's crosstalk is kept beyond each cell's
// neighbours: chosen: three for each cell of most modules, and the passport has room for it.
const maxFar = 3 * hal.BenesCells

// What heaters do to each other is kept in steps of so many millionths, and to as
// much. chosen: a whole turn times a step is a twentieth of a milliradian.
const (
	shareStep = 10
	mostShare = 0.32
)

// cross takes the crosstalk that was measured: of the heaters near each cell all, of
// the others what they have in common and the largest that differ from it.
func (m *ModuleCalibration) cross(found *mzi.Module) {
	var far []int32
	for k := range m.each {
		for j := range m.each {
			share := int32(math.Floor(float64(min(max(found.Cross[k][j], -mostShare), mostShare)*1e6/shareStep)+0.5)) * shareStep
			if d := j - k + Reach; d >= 0 && d <= 2*Reach {
				m.Cells[k].Near[d] = share
				continue
			}
			far = append(far, share)
			m.Far = append(m.Far, FarCalibration{Cell: uint8(k), From: uint8(j), Share: share})
		}
		m.Cells[k].Near[Reach] = 1_000_000
	}
	sort.Slice(far, func(i, j int) bool { return far[i] < far[j] })
	m.Common = far[len(far)/2]
	off := func(f FarCalibration) int32 { return max(f.Share-m.Common, m.Common-f.Share) }
	sort.SliceStable(m.Far, func(i, j int) bool { return off(m.Far[i]) > off(m.Far[j]) })
	m.Far = slices.Clone(m.Far[:min(len(m.Far), maxFar)])
}

// keepPhases makes up for what is not kept of a module's crosstalk: with the codes
// found its cells have the phases that they were found with.
func (m *ModuleCalibration) keepPhases(found *mzi.Result, bears *hal.HeaterLimits) {
	kept, _ := m.model(bears)
	lost := func(k int, lit mzi.Lit) float64 {
		return found.Module.Error(k, lit, found.Setting, &found.Volts) - kept.Error(k, lit, found.Setting, &found.Volts)
	}
	for k := range m.each {
		c, cell := &m.Cells[k], &kept.Cells[k]
		a, b := lost(k, mzi.Loop), 0.0
		switch {
		case k < hal.CellMZI2:
			b = (lost(k, mzi.Ext1) + lost(k, mzi.Ext2)) / 2
		case k < hal.CellMatrix:
			a, b = lost(k, mzi.Ext1), lost(k, mzi.Ext2)
		}
		ua := mzi.Square(found.Volts[k][0])
		if d := mzi.Square(found.Volts[k][1]) - ua; d != 0 {
			slope := cell.Slope
			c.PiMicrowatt = uint32(math.Floor(float64(mzi.PhaseBar/((slope+(b-a)/d)*cell.Ohm)*1e6) + 0.5))
			cell.Slope = mzi.PhaseBar / (float64(c.PiMicrowatt) / 1e6 * cell.Ohm)
			a -= float64((cell.Slope - slope) * ua)
		}
		c.OffsetMicrorad = int32(math.Floor(float64(mzi.Wrap(cell.Offset+a)*1e6) + 0.5))
	}
}

// LaneCodes are the codes of every heater, register A and B, with which the
// module's loopback takes lane n to lane p[n]: with the crosstalk of all heaters compensated for every path, and as the limits
// lets them pass. The codes of a calibration swap the halves.
func (m *ModuleCalibration) LaneCodes(o *hal.Optics, p mzi.Permutation) (codes heater.Codes, err error) {
	setting, err := mzi.Matrix(o.Couplers).Route(p)
	if err != nil {
		return codes, err
	}
	model, most := m.model(&o.Heater)
	volts := model.Compose(setting, mzi.Loop, most, heater.Step)
	return m.guardedCodes(&o.Heater, &volts)
}

// trimmedCodes are the codes next to those in force that the calibration, which
// has moved, asks for. They favour one external path over the other, for MZI1 has
// but one code for both.
func (m *ModuleCalibration) trimmedCodes(o *hal.Optics, favour mzi.Lit, inForce *heater.Codes) (codes heater.Codes, err error) {
	setting, err := mzi.Matrix(o.Couplers).Route(mzi.Halves(o.LaneCount))
	if err != nil {
		return codes, err
	}
	model, most := m.model(&o.Heater)
	from := voltages(inForce)
	volts := model.Recompose(setting, favour, &from, most, heater.Step)
	return m.guardedCodes(&o.Heater, &volts)
}

// voltages that codes stand for; the matrix has one.
func voltages(codes *heater.Codes) (volts [mzi.Cells][2]physic.ElectricPotential) {
	for k := range volts {
		b := codes[k][1]
		if k >= hal.CellMatrix {
			b = codes[k][0]
		}
		volts[k] = [2]physic.ElectricPotential{heater.Volts(codes[k][0]), heater.Volts(b)}
	}
	return volts
}

// fit is what of codes heaters like the module's may have, and how many would be cut
// down.
func (m *ModuleCalibration) fit(bears *hal.HeaterLimits, codes *heater.Codes) (heater.Codes, uint32) {
	var milliohm [hal.CellsPerMod]uint32
	for k := range m.Cells {
		milliohm[k] = m.Cells[k].MilliOhm
	}
	return heater.Fit(bears, &milliohm, codes)
}

// guardedCodes turns voltages into codes; what the limits would cut is refused.
func (m *ModuleCalibration) guardedCodes(bears *hal.HeaterLimits, volts *[mzi.Cells][2]physic.ElectricPotential) (heater.Codes, error) {
	var codes heater.Codes
	for k := range volts {
		for register, v := range volts[k] {
			codes[k][register] = heater.Code(v)
		}
	}
	codes, cuts := m.fit(bears, &codes)
	if cuts > 0 {
		return codes, fmt.Errorf("ocs: %d codes beyond the limits of their heaters or of the module: %w", cuts, hal.ErrOutOfRange)
	}
	return codes, nil
}

// composeCodes makes every module's codes; nil entries are the calibration's own.
func composeCodes(hw []hal.Module, modules []*ModuleCalibration, own bool) ([]*heater.Codes, error) {
	for i, m := range modules {
		for k := range m.Cells {
			if found := m.Cells[k].found(); found != hw[i].Optics().Has(k) {
				return nil, &ModuleError{Module: i, Err: fmt.Errorf("%w: %s: it has it: %v, the module: %v", stored.ErrMismatch, mzi.CellName(k), found, !found)}
			}
		}
		if m.Matrix != 0 && m.Matrix != matrixSum(hw[i].Optics().Couplers) {
			return nil, &ModuleError{Module: i, Err: fmt.Errorf("%w: of a matrix with other couplers", stored.ErrMismatch)}
		}
	}
	codes := make([]*heater.Codes, len(modules))
	if own {
		return codes, nil
	}
	for i, m := range modules {
		c, err := m.LaneCodes(hw[i].Optics(), mzi.Halves(hw[i].Optics().LaneCount))
		if err != nil {
			return nil, &ModuleError{Module: i, Err: err}
		}
		codes[i] = &c
	}
	return codes, nil
}

// compose makes every module's codes, as the lock has their
// calibrations by now.
func (d *chipDrive) compose() ([]*heater.Codes, error) {
	modules := d.trx.cfg.Calibration.Modules
	if d.lock.modules != nil {
		modules = make([]*ModuleCalibration, len(modules))
		for i := range modules {
			modules[i] = d.lock.calibrated(d, i)
		}
	}
	return composeCodes(d.trx.bundle.Modules, modules, !d.lock.trimmed())
}
