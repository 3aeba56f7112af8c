package ocs

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/proto"
)

// Firmware is that of a bundle's modules.
type Firmware struct{ t *Transceiver }

// There: some module may take firmware by messages.
func (x Firmware) There() bool {
	set := x.t.drive.controllers()
	for i := 0; set != nil && i < len(set.Modules); i++ {
		if set.Modules[i].Advert.CDBInstances > 0 {
			return true
		}
	}
	return false
}

// Upgrade brings a module of a dark bundle to a firmware version, whose file is image;
// Upgraded tells the end. Others may follow; then the bundle is to be renewed. A module
// that takes no firmware by messages is hal.ErrUnsupported.
func (x Firmware) Upgrade(module int, want proto.FirmwareVersion, image []byte) error {
	t := x.t
	set := t.drive.controllers()
	switch {
	case set == nil:
		return fmt.Errorf("ocs: bundle %d: firmware: %w", t.cfg.Bundle, hal.ErrUnsupported)
	case module < 0 || module >= len(set.Modules):
		return fmt.Errorf("ocs: bundle %d: module %d: %w", t.cfg.Bundle, module, hal.ErrOutOfRange)
	case t.state != Idle && t.state != Upgrading, t.sw.busy(), set.Dumping():
		return ErrNotReady
	case t.path != proto.Dark || t.target != proto.Dark:
		return ErrCarriesLight
	}
	t.become(Upgrading)
	set.Upgrade(module, cmis.Version(want), image, func(now time.Duration, err error) {
		if err != nil {
			err = &ModuleError{Module: module, Err: err}
		}
		t.emit(Event{Kind: Upgraded, At: now, Path: t.path, Module: uint8(module), Cell: None, Lane: None, Err: err})
	})
	return nil
}
