package ocs

import "ringlight/ocs/heater"

// heat is what the heaters of a bundle's modules are to have.
type heat struct {
	t           *Transceiver
	drivers     []*heater.Driver // of the modules
	inForce     []*heater.Codes  // in place of the calibration's, by module
	limitErrors uint32           // codes that the limits cut down
}

// codes of a module that are in force, or to be.
func (h *heat) codes(module int) *heater.Codes {
	if module < len(h.inForce) && h.inForce[module] != nil {
		return h.inForce[module]
	}
	return h.t.cfg.Calibration.Modules[module].codes()
}

// allowed is what of them the limits let pass.
func (h *heat) allowed(module int) *heater.Allowed {
	passed, cuts := h.allow(module, h.t.cfg.Calibration.Modules[module], h.codes(module))
	h.limitErrors += cuts
	return passed
}

// allow is what of a module's codes its heaters may have when they are as a
// calibration says, and how many were cut down.
func (h *heat) allow(module int, m *ModuleCalibration, codes *heater.Codes) (*heater.Allowed, uint32) {
	for k := range m.Cells {
		h.drivers[module].Know(k, m.Cells[k].MilliOhm)
	}
	return h.drivers[module].AllowAll(codes)
}
