package ocs

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
)

// mciDump reads a whole module between everything else that it is asked. While
// it runs, the module changes its page now and then and may miss a trigger,
// which it then is given alone: a dump costs a switch at most one hold-off.
type mciDump struct {
	module int
	dump   *cmis.Dump
}

// Dump begins to read the memory of a CMIS module; DumpImage has it when it is
// over. Modules of kind chips have no such memory: hal.ErrUnsupported.
func (t *Transceiver) Dump(module int) error {
	switch {
	case t.mci() == nil:
		return fmt.Errorf("ocs: bundle %d: dump: %w", t.cfg.Bundle, hal.ErrUnsupported)
	case module < 0 || module >= len(t.mci().mods):
		return fmt.Errorf("ocs: bundle %d: module %d: %w", t.cfg.Bundle, module, hal.ErrOutOfRange)
	case t.state != Idle || t.mci().dump != nil:
		return ErrNotReady
	}
	m := &t.mci().mods[module]
	t.mci().dump, t.mci().image = &mciDump{module: module, dump: cmis.NewDump(m.advert.Banks, m.flags)}, nil
	return nil
}

// DumpImage is the linear image of the last Dump; done is false while it runs.
// err is why it failed.
func (t *Transceiver) DumpImage() (image []byte, done bool, err error) {
	switch {
	case t.mci() == nil:
		return nil, true, hal.ErrUnsupported
	case t.mci().dump != nil:
		return nil, false, nil
	}
	return t.mci().image, true, t.mci().imageErr
}

// dumps asks for the next part, which the port may have at once from its cache; a part that something else came before is asked
// for again.
func (d *mciDrive) dumps(t *Transceiver, now time.Duration) {
	if over, err := d.dump.dump.Over(); over {
		d.image, d.imageErr = nil, err
		if err == nil {
			d.image = d.dump.dump.Image.Bytes()
		}
		m := &d.mods[d.dump.module]
		d.dump = nil
		m.run(hal.ClassHousekeeping, func(time.Duration, error) {}, m.reads[1]) // back to the service page
		return
	}
	dump := d.dump.dump
	d.mods[d.dump.module].run(hal.ClassHousekeeping, func(now time.Duration, err error) { dump.Done(now, err) }, dump.Next())
}

// Flags is a new listener to a module's latched flags, which health rounds read;
// nil for modules of kind chips.
func (t *Transceiver) Flags(module int) *cmis.Subscription {
	if t.mci() == nil || module < 0 || module >= len(t.mci().mods) {
		return nil
	}
	return t.mci().mods[module].flags.Subscribe()
}
