package sim

import (
	"fmt"
	"math"
	"time"

	"ringlight/hal"
	"ringlight/mzi/detmath"
)

// Fibres of transceivers that end at a board of mirrors. What a transceiver
// sends in at a port of side A arrives at the transceiver whose fibre is at the
// port of side B that the mirrors join it to, with the loss that they have.
// The mirrors' own monitors are lit beside it: see InputLight.

// links are the transceivers at the ports of a board of mirrors.
type links struct {
	ports   []linked      // by port; nil: none
	until   time.Duration // mirrors may move until then
	looking bool          // an evMirrors is on the heap
}

// linked is a transceiver's external path at a port.
type linked struct {
	bundle *bundle // nil: no fibre
	ext    int
	gain   float64 // of its fibre
	joined int     // the port of side B that it shines to; -1: none
	steps  int     // how much is lost there
}

// Mirrors are looked at so often, for so long after they were written to: they
// stand by then. chosen: the slowest rings down by six orders of magnitude.
const (
	linkLook = 500 * time.Microsecond
	linkRest = 20 * time.Millisecond
	// linkStep is by how much a loss changes before receivers are told, in dB.
	// chosen: well under the margin of a receiver.
	linkStep = 0.5
	linkLost = 20.0 // dB: less than this joins nobody
)

// Through lays a fibre pair from a port of a board to a port of a board of
// mirrors, of both sides of it.
func (w *World) Through(p Port, mirrors BoardID, port int, f Fibre) error {
	bu, e, err := w.end(p)
	if err != nil {
		return err
	}
	b, err := w.board(mirrors)
	if err != nil {
		return err
	}
	if b.mems == nil || port < 0 || port >= b.mems.hw.Ports {
		return fmt.Errorf("sim: board %d has no mirrors for port %d", mirrors, port)
	}
	if err := e.free(p, f); err != nil {
		return err
	}
	l := &b.mems.links
	if l.ports == nil {
		l.ports = make([]linked, b.mems.hw.Ports)
	}
	if l.ports[port].bundle != nil {
		return fmt.Errorf("sim: port %d of the mirrors of board %d already has a fibre", port, mirrors)
	}
	*e = fibreEnd{crossed: f.Crossed, mirror: true}
	l.ports[port] = linked{bundle: bu, ext: p.Path - hal.LOSExternal1, gain: f.gain(), joined: -1}
	b.mems.moved(b)
	return nil
}

// moved: mirrors may be on their way from now on.
func (m *mems) moved(b *board) {
	l := &m.links
	if l.ports == nil {
		return
	}
	l.until = b.now + linkRest
	if !l.looking {
		l.looking = true
		b.events.Push(b.now+linkLook, event{kind: evMirrors, board: int32(b.id)})
	}
}

// lookAtLinks joins what the mirrors join by now.
func (m *mems) lookAtLinks(b *board) {
	l := &m.links
	l.looking = b.now < l.until
	if l.looking {
		b.events.Push(b.now+linkLook, event{kind: evMirrors, board: int32(b.id)})
	}
	var lost, found [hal.MaxCrossbarPorts]int
	nLost, nFound := 0, 0
	for a := range l.ports {
		p := &l.ports[a]
		if p.bundle == nil {
			continue
		}
		to, steps := m.joins(int64(b.now), a, b.carrier())
		if to == p.joined && steps == p.steps {
			continue
		}
		if p.joined >= 0 && to != p.joined {
			lost[nLost] = p.joined
			nLost++
			p.bundle.ends[p.ext].to = nil
			l.ports[p.joined].end().peer = nil
		}
		p.joined, p.steps = to, steps
		if to >= 0 {
			found[nFound] = a
			nFound++
		}
	}
	for _, a := range found[:nFound] {
		p := &l.ports[a]
		z := &l.ports[p.joined]
		p.end().to, p.end().toExt = z.bundle, z.ext
		e := z.end()
		e.peer, e.ext = p.bundle, p.ext
		e.gain = p.gain * float64(z.gain*detmath.FromDB(-linkStep*float64(p.steps)))
		z.follow()
	}
	for _, port := range lost[:nLost] {
		if z := &l.ports[port]; z.end().peer == nil {
			z.follow()
		}
	}
}

func (p *linked) end() *fibreEnd { return &p.bundle.ends[p.ext] }

// follow looks at the light that arrives.
func (p *linked) follow() { p.bundle.los[hal.LOSExternal1+p.ext].follow() }

// joins is the port of side B that has a fibre and gets the light of a port of
// side A, and what that loses in steps of linkStep.
func (m *mems) joins(now int64, a int, millicelsius int32) (to, steps int) {
	from, n := m.place(a), m.side()
	var at [2]int
	for i := range at {
		angle := m.arrays[hal.SideA][a].axes[i].points(now, millicelsius)
		place := from[i] + float64(2*m.length*angle)
		at[i] = int(math.Floor(place/memsPitch + float64(n-1)/2 + 0.5))
		if at[i] < 0 || at[i] >= n {
			return -1, 0
		}
	}
	to = at[1]*n + at[0]
	if to >= m.hw.Ports || m.links.ports[to].bundle == nil {
		return -1, 0
	}
	loss := m.loss(now, a, to, millicelsius)
	if loss > linkLost {
		return -1, 0
	}
	return to, int(math.Floor(loss/linkStep + 0.5))
}

// From is the port whose light comes to a port now; ok is false when nobody's
// does, whether its fibre joins nothing or the far end sends elsewhere.
func (w *World) From(p Port) (from Port, ok bool) {
	_, e, err := w.end(p)
	if err != nil || e.peer == nil || !w.Lit(p) {
		return Port{}, false
	}
	return Port{e.peer.board.id, e.peer.place, hal.LOSExternal1 + e.ext}, true
}
