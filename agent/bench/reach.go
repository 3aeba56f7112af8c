package bench

import (
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
)

// Reach reads a register, or writes value into it; it is what the register
// then holds. A bundle that carries light is not written.
func Reach(field Field, st Station, reg *ocs.Register, poke bool, value uint32) (uint32, error) {
	h := &direct{field: field}
	work := reg.Peek()
	if poke {
		l := newLab(field, []Station{st})
		if err := l.start(); err != nil {
			return 0, fmt.Errorf("reading the hardware back: %w", err)
		}
		if p := l.bundles[0][reg.Bundle].optics.Status().Path; p != proto.Dark {
			return 0, fmt.Errorf("bundle %d is on %v: it %w", reg.Bundle, p, ErrInService)
		}
		h.other = l.hear
		var err error
		if work, err = reg.Poke(value); err != nil {
			return 0, err
		}
	}
	bus, op := work.Next(nil)
	for op != nil {
		done := &hal.Completion{Bus: bus, Op: op, Err: h.op(bus, op)}
		bus, op = work.Next(done)
	}
	return work.Value()
}

// dumpPatience bounds the reading of a whole module. chosen: pages of a
// controller that takes every hold-off that it may, many times over.
const dumpPatience = time.Minute

// DumpModule reads the memory of a CMIS module as the linear image of public
// tools.
func DumpModule(field Field, st Station, bundle, module int) ([]byte, error) {
	l := newLab(field, []Station{st})
	if bundle < 0 || bundle >= len(l.bundles[0]) {
		return nil, fmt.Errorf("bundle %d: want 0 to %d", bundle, len(l.bundles[0])-1)
	}
	if err := l.start(); err != nil {
		return nil, fmt.Errorf("bringing the modules up: %w", err)
	}
	return l.dump(bundle, module)
}

func (l *lab) dump(bundle, module int) ([]byte, error) {
	d := l.bundles[0][bundle]
	if err := d.optics.Dump(module); err != nil {
		return nil, err
	}
	d.due = true
	var image []byte
	var failed error
	if err := l.run(dumpPatience, func() bool {
		var done bool
		image, done, failed = d.optics.DumpImage()
		return done
	}); err != nil {
		return nil, err
	}
	return image, failed
}
