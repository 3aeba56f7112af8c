package sim

import (
	"fmt"

	"ringlight/hal"
	"ringlight/mzi/detmath"
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
	b, e, err := w.end(p)
	switch {
	case err != nil:
		return err
	case e.peer != nil || e.outside != nil:
		return fmt.Errorf("sim: port %v already has a fibre", p)
	case f.LossMilliDB < 0:
		return fmt.Errorf("sim: fibre loss %d mdB: a fibre does not amplify", f.LossMilliDB)
	}
	*e = fibreEnd{crossed: f.Crossed, gain: detmath.FromDB(-float64(f.LossMilliDB) / 1000), outside: &outside{}}
	w.follow(b, p.Bundle, p.Path)
	return nil
}

// Sent is the light that leaves a port now.
func (w *World) Sent(p Port, out *Light) error {
	b, e, err := w.end(p)
	if err != nil {
		return err
	}
	*out = Light{}
	if e.outside != nil && e.outside.cut {
		return nil
	}
	bu := &b.bundles[p.Bundle]
	var phase [hal.CellsPerMod]float64
	var lit light
	for i := range bu.modules {
		m := &bu.modules[i]
		w.refresh(b, m)
		d := decay{age: -1}
		m.emit(int64(w.now), &lit, &phase, &d)
		for l, sent := range lit.ext[p.Path-hal.LOSExternal1] {
			out[i][l] = uint32(float64(float64(sent*m.per.txGain[l]) * nanowatts))
		}
	}
	return nil
}

// Receive is the light that comes to a port of Lead from now on. It changes
// at once: what it did on the way here is lost.
func (w *World) Receive(p Port, in *Light) error {
	b, e, err := w.end(p)
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
	w.follow(b, p.Bundle, p.Path)
	return nil
}

// Changes counts what may have changed the light that a board sends.
func (w *World) Changes(id BoardID) uint64 { return w.boards[id].changes }

// steady is the trace of light that comes from outside.
func (o *outside) steady(w *World, mod int, tr *trace) {
	tr.n = 1
	tr.at[0] = int64(w.now)
	tr.ext[0][0] = o.lanes[mod]
}

// take is the light on the diodes of both halves.
func (e *fibreEnd) take(lanes, diode *[hal.Lanes]float64) (sum [2]float64) {
	for l, p := range lanes {
		at := l ^ hal.HalfLanes // straight: the other half
		if e.crossed {
			at = l
		}
		sum[at/hal.HalfLanes] += float64(p * float64(e.gain*diode[at]))
	}
	return sum
}
