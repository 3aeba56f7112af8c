package sim

import (
	"errors"
	"fmt"

	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// fibreEnd is what arrives at one external path of a bundle.
type fibreEnd struct {
	peer    *bundle // whose light comes here; nil: none
	ext     int     // the peer's: 0 external 1, 1 external 2
	to      *bundle // where the light from here comes to: the peer, but through mirrors
	toExt   int
	mirror  bool // the fibre ends at mirrors, which say what is joined
	crossed bool
	cut     bool // of the direction towards this end
	gain    float64
	outside *outside // of a fibre that leaves the world; then peer is nil
}

// sender is the module at the other end whose light comes to module i; nil:
// nothing does.
func (e *fibreEnd) sender(i int) *module {
	if e.peer == nil || i >= len(e.peer.modules) {
		return nil
	}
	return &e.peer.modules[i]
}

// receive is the light on the diodes of both halves of a module that the lanes of
// another send through the fibre, or, without one, that comes from outside.
func (e *fibreEnd) receive(m, src *module, sent, diode *[hal.Lanes]float64) (sum [2]float64) {
	for l, p := range sent {
		at, has := m.wired.arrives(l, e.crossed)
		if p == 0 || !has {
			continue
		}
		if src != nil {
			p = float64(p * src.outGain(e.ext, l))
		}
		sum[at/m.wired.half] += float64(p * float64(e.gain*diode[at]))
	}
	return sum
}

// end is the bundle that a port belongs to and what arrives there.
func (w *World) end(p Port) (*bundle, *fibreEnd, error) {
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
	bu := &b.bundles[p.Bundle]
	return bu, &bu.ends[p.Path-hal.LOSExternal1], nil
}

// free checks that a fibre may be laid from a port.
func (e *fibreEnd) free(p Port, f Fibre) error {
	switch {
	case e.peer != nil || e.outside != nil || e.mirror:
		return fmt.Errorf("sim: port %v already has a fibre", p)
	case f.LossMilliDB < 0:
		return fmt.Errorf("sim: fibre loss %d mdB: a fibre does not amplify", f.LossMilliDB)
	}
	return nil
}

func (f Fibre) gain() float64 { return detmath.FromDB(-float64(f.LossMilliDB) / 1000) }

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
	if a == z {
		return fmt.Errorf("sim: fibre from %v to itself", a)
	}
	if err := ae.free(a, f); err != nil {
		return err
	}
	if err := ze.free(z, f); err != nil {
		return err
	}
	aExt, zExt := a.Path-hal.LOSExternal1, z.Path-hal.LOSExternal1
	*ae = fibreEnd{peer: zb, ext: zExt, to: zb, toExt: zExt, crossed: f.Crossed, gain: f.gain()}
	*ze = fibreEnd{peer: ab, ext: aExt, to: ab, toExt: aExt, crossed: f.Crossed, gain: f.gain()}
	ab.los[a.Path].follow()
	zb.los[z.Path].follow()
	return nil
}

// Unplug takes the fibre out of a port, and out of the one at its other end; where
// none is, nothing happens.
func (w *World) Unplug(p Port) {
	bu, e, err := w.end(p)
	if err != nil || e.peer == nil || e.mirror {
		return
	}
	far, ext := e.peer, e.ext
	*e, far.ends[ext] = fibreEnd{}, fibreEnd{}
	bu.los[p.Path].follow()
	far.los[hal.LOSExternal1+ext].follow()
}

// Bend has the fibre at a port take so many thousandths of a dB more, both ways.
func (w *World) Bend(p Port, mdb int32) error {
	bu, e, err := w.end(p)
	if err != nil || e.peer == nil || e.mirror {
		return errors.Join(fmt.Errorf("sim: port %v has no fibre", p), err)
	}
	e.gain *= lossOf(int(mdb))
	far := &e.peer.ends[e.ext]
	far.gain = e.gain
	bu.los[p.Path].follow()
	e.peer.los[hal.LOSExternal1+e.ext].follow()
	return nil
}

// Cut interrupts the fibre at a port, in one direction or both.
func (w *World) Cut(p Port, d Direction) error { return w.setCut(p, d, true) }

// Mend undoes Cut.
func (w *World) Mend(p Port, d Direction) error { return w.setCut(p, d, false) }

func (w *World) setCut(p Port, d Direction, cut bool) error {
	bu, e, err := w.end(p)
	if err != nil {
		return err
	}
	if e.peer == nil && e.outside == nil && !e.mirror {
		return fmt.Errorf("sim: port %v has no fibre", p)
	}
	if d == Both || d == In {
		e.cut = cut
		bu.los[p.Path].follow()
	}
	if e.outside != nil {
		if d == Both || d == Out {
			e.outside.cut = cut
			bu.board.changes++
		}
		return nil
	}
	if (d == Both || d == Out) && e.to != nil {
		e.to.ends[e.toExt].cut = cut
		e.to.los[hal.LOSExternal1+e.toExt].follow()
	}
	return nil
}
