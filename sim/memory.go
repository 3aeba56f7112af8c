package sim

import (
	"cmp"
	"fmt"
	"slices"

	"ringlight/mzi/detmath"
)

// Page is one page of a module's EEPROM that was written.
type Page struct {
	Number uint16
	Data   [StorePage]byte
}

// Memory is what has been written to the EEPROM of a module, by page: what
// outlives the board's power, and for a board in a process of its own the
// process.
func (w *World) Memory(id BoardID, bundle, mod int) []Page {
	s := w.module(id, bundle, mod).slow
	if s == nil {
		return nil
	}
	var out []Page
	for n, p := range s.eeprom.pages { // any order: sorted below
		out = append(out, Page{Number: n, Data: *p})
	}
	slices.SortFunc(out, func(a, b Page) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// Remember puts pages back into the EEPROM of a module.
func (w *World) Remember(id BoardID, bundle, mod int, pages []Page) {
	w.module(id, bundle, mod).remember(pages)
}

func (m *module) remember(pages []Page) {
	kept := map[uint16]*[StorePage]byte{}
	for _, p := range pages {
		data := p.Data
		kept[p.Number] = &data
	}
	m.slowly().eeprom.pages = kept
}

// Exchange puts another module of kind chips in the place of one: other optics,
// an EEPROM with these pages, everything else as after power-on. Faults of the
// old one go with it.
func (w *World) Exchange(id BoardID, bundle, mod int, per *Personality, pages []Page) error {
	if _, err := w.board(id); err != nil {
		return err
	}
	m := w.module(id, bundle, mod)
	if m.mci != nil {
		return fmt.Errorf("sim: bundle %d module %d: of kind cmis", bundle, mod)
	}
	if m.moving != nil {
		m.board.freeTransit(m.moving)
	}
	*m = module{board: m.board, bundle: m.bundle, place: m.place, per: per, wired: m.wired, seed: derive(m.seed, detmath.Golden), tx: m.tx}
	m.remember(pages)
	m.powerOn()
	m.changed()
	return nil
}
