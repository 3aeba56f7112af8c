package ocs

import "ringlight/hal/cmis"

// Flags of a module with a controller, as health rounds have read them.
func (t *Transceiver) Flags(module int) *cmis.Flags {
	return t.drive.controllers().Modules[module].Flags
}
