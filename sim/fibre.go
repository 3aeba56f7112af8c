package sim

import (
	"fmt"

	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// fibreEnd is what arrives at one external path of a bundle.
type fibreEnd struct {
	peer    *board // nil: nothing connected
	bundle  int    // the peer's
	ext     int    // the peer's: 0 external 1, 1 external 2
	crossed bool
	cut     bool // of the direction towards this end
	gain    float64
	outside *outside // of a fibre that leaves the world; then peer is nil
}

// receive is the light on the diodes of both halves that the lanes of a
// module send through the fibre.
func (e *fibreEnd) receive(src *module, sent, diode *[hal.Lanes]float64) (sum [2]float64) {
	for l, p := range sent {
		if p == 0 {
			continue
		}
		at := l ^ hal.HalfLanes // straight: the other half
		if e.crossed {
			at = l
		}
		sum[at/hal.HalfLanes] += float64(float64(p*src.per.txGain[l]) * float64(e.gain*diode[at]))
	}
	return sum
}

func (w *World) end(p Port) (*board, *fibreEnd, error) {
	b, err := w.board(p.Board)
	if err != nil {
		return nil, nil, err
	}
	if p.Bundle < 0 || p.Bundle >= len(b.bundles) {
		return nil, nil, fmt.Errorf("sim: port %v: the board has %d bundles", p, len(b.bundles))
	}
	if p.Path != hal.LOSExternal1 && p.Path != hal.LOSExternal2 {
		return nil, nil, fmt.Errorf("sim: port %v: want external1 or external2", p)
	}
	return b, &b.bundles[p.Bundle].ends[p.Path-hal.LOSExternal1], nil
}

// Connect lays a fibre pair between two ports.
func (w *World) Connect(a, z Port, f Fibre) error {
	ab, ae, err := w.end(a)
	if err != nil {
		return err
	}
	zb, ze, err := w.end(z)
	if err != nil {
		return err
	}
	switch {
	case a == z:
		return fmt.Errorf("sim: fibre from %v to itself", a)
	case ae.peer != nil || ae.outside != nil:
		return fmt.Errorf("sim: port %v already has a fibre", a)
	case ze.peer != nil || ze.outside != nil:
		return fmt.Errorf("sim: port %v already has a fibre", z)
	case f.LossMilliDB < 0:
		return fmt.Errorf("sim: fibre loss %d mdB: a fibre does not amplify", f.LossMilliDB)
	}
	gain := detmath.FromDB(-float64(f.LossMilliDB) / 1000)
	*ae = fibreEnd{peer: zb, bundle: z.Bundle, ext: z.Path - hal.LOSExternal1, crossed: f.Crossed, gain: gain}
	*ze = fibreEnd{peer: ab, bundle: a.Bundle, ext: a.Path - hal.LOSExternal1, crossed: f.Crossed, gain: gain}
	w.follow(ab, a.Bundle, a.Path)
	w.follow(zb, z.Bundle, z.Path)
	return nil
}

// Cut interrupts the fibre at a port, in one direction or both.
func (w *World) Cut(p Port, d Direction) error { return w.setCut(p, d, true) }

// Mend undoes Cut.
func (w *World) Mend(p Port, d Direction) error { return w.setCut(p, d, false) }

func (w *World) setCut(p Port, d Direction, cut bool) error {
	b, e, err := w.end(p)
	if err != nil {
		return err
	}
	if e.peer == nil && e.outside == nil {
		return fmt.Errorf("sim: port %v has no fibre", p)
	}
	if d == Both || d == In {
		e.cut = cut
		w.follow(b, p.Bundle, p.Path)
	}
	if e.outside != nil {
		if d == Both || d == Out {
			e.outside.cut = cut
			b.changes++
		}
		return nil
	}
	if d == Both || d == Out {
		e.peer.bundles[e.bundle].ends[e.ext].cut = cut
		w.follow(e.peer, e.bundle, hal.LOSExternal1+e.ext)
	}
	return nil
}
