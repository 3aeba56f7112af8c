package sim

import (
	"fmt"

	"ringlight/hal"
)

// Light is what goes through a fibre in one direction: nanowatts of each lane
// of each module, as they leave the sending board.
type Light [hal.MaxModules][hal.Lanes]uint32

const nanowatts = 1_000_000 // in a milliwatt

// outside is the far end of a fibre that leaves the world: what came in last.
type outside struct {
	lanes [hal.MaxModules][hal.Lanes]float64 // milliwatts
	since int64                              // when it last changed
	cut   bool                               // of the direction away from here
}

// Lead lays a fibre from a port out of this world, to a board that is simulated
// elsewhere: Sent is what goes out, Receive puts in what comes.
func (w *World) Lead(p Port, f Fibre) error {
	bu, e, err := w.end(p)
	if err != nil {
		return err
	}
	if err := e.free(p, f); err != nil {
		return err
	}
	*e = fibreEnd{crossed: f.Crossed, gain: f.gain(), outside: &outside{}}
	bu.los[p.Path].follow()
	return nil
}

// Sent is the light that leaves a port now.
func (w *World) Sent(p Port, out *Light) error {
	bu, e, err := w.end(p)
	if err != nil {
		return err
	}
	*out = Light{}
	if e.outside != nil && e.outside.cut {
		return nil
	}
	var lit instant
	for i := range bu.modules {
		m := &bu.modules[i]
		m.refresh()
		m.emit(int64(w.now), &lit)
		for l, sent := range lit.ext[p.Path-hal.LOSExternal1] {
			out[i][l] = uint32(float64(float64(sent*m.outGain(p.Path-hal.LOSExternal1, l)) * nanowatts))
		}
	}
	return nil
}

// Receive is the light that comes to a port of Lead from now on. It changes
// at once: what it did on the way here is lost.
func (w *World) Receive(p Port, in *Light) error {
	bu, e, err := w.end(p)
	if err != nil {
		return err
	}
	if e.outside == nil {
		return fmt.Errorf("sim: port %v leads nowhere outside", p)
	}
	for i := range in {
		for l, nano := range in[i] {
			e.outside.lanes[i][l] = float64(nano) / nanowatts
		}
	}
	e.outside.since = int64(w.now)
	bu.los[p.Path].follow()
	return nil
}

// Changes counts what may have changed the light that a board sends.
func (w *World) Changes(id BoardID) uint64 { return w.boards[id].changes }
