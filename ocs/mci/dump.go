package mci

import (
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
)

// dump reads a whole module between everything else that it is asked. While it
// runs, the module changes its page now and then and may miss a trigger, which it
// then is given alone: a dump costs a switch at most one hold-off.
type dump struct {
	*cmis.Dump
	module *Module
	image  []byte
	err    error
}

// Dump begins to read the memory of a module, unless one is being read.
func (s *Set) Dump(module int) bool {
	if s.dump != nil {
		return false
	}
	m := &s.Modules[module]
	s.dump = &dump{Dump: cmis.NewDump(m.Advert.Banks, m.Flags), module: m}
	s.last.image = nil
	return true
}

// Dumping reports whether a module is being read.
func (s *Set) Dumping() bool { return s.dump != nil }

// Image is that of the last dump, or why there is none.
func (s *Set) Image() ([]byte, error) { return s.last.image, s.last.err }

// dumps asks for the next part, which the port may have at once from its cache; a
// part that something else came before is asked for again.
func (s *Set) dumps() {
	d := s.dump
	over, err := d.Over()
	if !over {
		d.module.Ask(hal.ClassHousekeeping, func(_ time.Duration, err error) { d.Done(err) }, d.Next())
		return
	}
	s.last = dump{err: err}
	if err == nil {
		s.last.image = d.Dump.Image.Bytes()
	}
	s.dump = nil
	d.module.Home()
}
