package sim

import (
	"fmt"
	"slices"

	"ringlight/hal/at24"
	"ringlight/mzi/detmath"
)

// Page is one page of a module's EEPROM that was written.
type Page struct {
	Number uint16
	Data   [at24.PageBytes]byte
}

// Memory is what has been written to the EEPROM of a module, by page: what
// outlives the board's power, and for a board in a process of its own the
// process.
func (w *World) Memory(id BoardID, bundle, mod int) []Page {
	s := w.boards[id].bundles[bundle].modules[mod].slow
	if s == nil {
		return nil
	}
	var out []Page
	for n, p := range s.eeprom.pages { // any order: sorted below
		out = append(out, Page{Number: n, Data: *p})
	}
	slices.SortFunc(out, func(a, b Page) int { return int(a.Number) - int(b.Number) })
	return out
}

// Remember puts pages back into the EEPROM of a module.
func (w *World) Remember(id BoardID, bundle, mod int, pages []Page) {
	m := &w.boards[id].bundles[bundle].modules[mod]
	if m.slow == nil {
		m.slow = new(slowChips)
		m.slow.reset()
	}
	m.slow.eeprom.pages = map[uint16]*[at24.PageBytes]byte{}
	for _, p := range pages {
		data := p.Data
		m.slow.eeprom.pages[p.Number] = &data
	}
}

// Exchange puts another module of kind chips in the place of one: other optics,
// an EEPROM with these pages, everything else as after power-on. Faults of the
// old one go with it.
func (w *World) Exchange(id BoardID, bundle, mod int, per *Personality, pages []Page) error {
	b, err := w.board(id)
	if err != nil {
		return err
	}
	m := &b.bundles[bundle].modules[mod]
	if m.mci != nil {
		return fmt.Errorf("sim: bundle %d module %d: of kind cmis", bundle, mod)
	}
	if m.moving != nil {
		w.freeTransit(m.moving)
	}
	*m = module{per: per, bundle: bundle, seed: derive(m.seed, detmath.Golden), tx: m.tx}
	w.Remember(id, bundle, mod, pages)
	m.guard.reset()
	m.lanes.reset()
	m.enable = allLanes
	m.powerOn()
	w.driveAll(b, m)
	w.moduleChanged(b, bundle, 1<<mod)
	return nil
}
