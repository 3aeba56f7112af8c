package testbed

import (
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/sim"
	"ringlight/sim/fleet"
)

// netPort is an interface of a device at which light ends.
type netPort struct {
	Device string // node3, pod0-spine1
	Name   string // g0r: the right side of GPU 0; ocs2: a spine's port to its third switch
}

// nowhere is where a port sends that is dark.
const nowhere = -1

// optics are the ports of a fabric and what of a world joins them.
type optics struct {
	ports []netPort
	// Of nodes: a half of a bundle, as the walk through the light has it.
	sides []side
	index map[side]int
	// Of leaves and spines: a fibre into side A of a switch, and by one out of side B who hears it.
	from    []fibre
	arrives map[fibre]int
	size    int    // ports of a switch's side that have fibres
	faces   []face // of servers joined directly
	fixed   []int  // where a port leads that is no light; nil: it is

	near [][]int // by board: the ports of which it may change where they send
}

// side is the left (0) or right (1) side of a GPU.
type side struct {
	sim.GPU
	Side int
}

// fibre is one at a port of one side of a switch.
type fibre struct {
	board sim.BoardID
	port  int
}

// opticsOf numbers the ports of a fabric: those of nodes, then those of spines between
// pods.
func opticsOf(f *fabric.Fabric) (*optics, error) {
	o := &optics{index: map[side]int{}, arrives: map[fibre]int{}}
	for n := range f.Nodes {
		for b := range f.Bundles {
			for half := range 2 { // the upper half is the right of its GPU, the lower the left of the next
				s := side{sim.GPU{Board: sim.BoardID(n), Index: (b + half) % f.GPUsPerNode}, 1 - half}
				o.index[s] = len(o.ports)
				o.sides = append(o.sides, s)
				o.ports = append(o.ports, netPort{nodeName(n), sideName(s)})
			}
		}
	}
	boards := f.Nodes
	if c := f.Core; c != nil {
		if c.Direct == nil && c.LeafSpine == nil && !c.Paired() {
			return nil, fmt.Errorf("testbed: the core is %v: want pods with interleaved wiring", c)
		}
		o.size, boards = c.Ports(), boards+c.Switches()
		o.addCore(c, f.Nodes)
	}
	o.near = make([][]int, boards)
	add := func(board sim.BoardID, port int) {
		if !slices.Contains(o.near[board], port) {
			o.near[board] = append(o.near[board], port)
		}
	}
	for i, s := range o.sides {
		add(s.Board, i)
		for _, x := range f.AllFibres() {
			a, z := sim.BoardID(x.A.Node), sim.BoardID(x.B.Node)
			if a == s.Board {
				add(z, i)
			} else if z == s.Board {
				add(a, i)
			}
		}
	}
	for i, x := range o.from {
		add(x.board, len(o.sides)+i)
	}
	for i, x := range o.faces { // whose light goes to any other of its layer
		for j, y := range o.faces {
			if x.bundle == y.bundle {
				add(y.board, i)
			}
			if j == 0 {
				add(sim.BoardID(f.Nodes+x.bundle), i)
			}
		}
	}
	return o, nil
}

// addCore adds the ports of a core: those with fibres to switches of mirrors, as the sheet
// of its cabling has them, interfaces of servers joined directly, or uplinks and ports of
// spines with fixed links between.
func (o *optics) addCore(c *fabric.Core, first int) {
	number := func(device, port string) int {
		p := netPort{device, port}
		at := slices.Index(o.ports, p)
		if at < 0 {
			at, o.ports = len(o.ports), append(o.ports, p)
		}
		return at
	}
	switch l := c.LeafSpine; {
	case c.Direct != nil:
		for s := range c.Direct.Servers {
			for i := range c.Degree {
				number(serverName(s), fmt.Sprintf("if%d", i))
				o.faces = append(o.faces, face{sim.BoardID(first + c.ServerSwitch(s)), i})
			}
		}
	case l != nil && l.Switches == 0:
		for leaf := range l.Leaves {
			for up := range l.GPUsPerLeaf {
				a := number(leafName(leaf), fmt.Sprintf("up%d", up))
				b := number(fmt.Sprintf("spine%d", up/l.FixedLinks()), fmt.Sprintf("port%d", leaf*l.FixedLinks()+up%l.FixedLinks()))
				o.fixed = append(o.fixed, b, a)
			}
		}
	default:
		for _, x := range c.CoreFibres() {
			at := number(x.Device, x.Port) - len(o.sides)
			for len(o.from) <= at {
				o.from = append(o.from, fibre{})
			}
			if end := (fibre{sim.BoardID(first + x.At.Switch), x.At.Port}); x.Sends {
				o.from[at] = end
			} else {
				o.arrives[end] = len(o.sides) + at
			}
		}
	}
}

// face is an interface of a server joined directly.
type face struct {
	board  sim.BoardID
	bundle int
}

// selected is the port of a face's path, if it sends by one.
func (x face) selected(w *sim.World) (sim.Port, bool) {
	path, shining := w.Selected(x.board, x.bundle)
	return sim.Port{Board: x.board, Bundle: x.bundle, Path: path}, shining && path >= hal.LOSExternal1
}

func nodeName(n int) string       { return fmt.Sprintf("node%d", n) }
func leafName(l int) string       { return fmt.Sprintf("leaf%d", l) }
func serverName(n int) string     { return fmt.Sprintf("server%d", n) }
func spineName(pod, h int) string { return fmt.Sprintf("pod%d-spine%d", pod, h) }

func sideName(s side) string { return fmt.Sprintf("g%d%c", s.Index, "lr"[s.Side]) }

// leads is the port to which what a port sends comes by the light as it is now.
func (o *optics) leads(w *sim.World, i int) int {
	if i < len(o.sides) {
		if to, at, ok := w.Beside(o.sides[i].GPU, o.sides[i].Side); ok {
			return o.index[side{to, at}]
		}
		return nowhere
	}
	if len(o.faces) > 0 {
		at, ok := o.faces[i].selected(w)
		for j, x := range o.faces {
			if to, hears := x.selected(w); ok && hears && i != j && x.bundle == at.Bundle {
				if from, lit := w.From(to); lit && from == at {
					return j
				}
			}
		}
		return nowhere
	}
	from := o.from[i-len(o.sides)]
	for b := range o.size {
		if to, known := o.arrives[fibre{from.board, b}]; known && fleet.Passes(w, from.board, from.port, b) {
			return to
		}
	}
	return nowhere
}

// through is the port by which what comes into a node at a port leaves it: through its
// GPUs and the cables between them.
func (o *optics) through(i, gpus, bundles int) int {
	s := o.sides[i]
	for {
		s.Side = 1 - s.Side
		gap := s.Index
		if s.Side == 0 {
			gap = (s.Index + gpus - 1) % gpus
		}
		if gap < bundles {
			return o.index[s]
		}
		s.Index, s.Side = (s.Index+2*s.Side-1+gpus)%gpus, 1-s.Side
	}
}

// settling is how long after something happened on a board its light is looked at again
// and again, and every how much: heaters and mirrors are still on their way. chosen: a
// mirror's ringing, and less than a frame of a stream of a thousand a second.
const (
	settling = 20 * time.Millisecond
	again    = 500 * time.Microsecond
)

// lookout knows where every port sends now. All of it is under the world's lock.
type lookout struct {
	*optics
	now      []int
	restless map[sim.BoardID]time.Duration // and since when
	changed  func(port, to int)
}

// look is called after something happened on a board, or with -1 when nothing is due.
func (l *lookout) look(w *sim.World, board sim.BoardID) time.Duration {
	if board >= 0 {
		l.restless[board] = w.Now()
		l.around(w, board)
		return 0
	}
	for b, since := range l.restless { // any order: each its own
		l.around(w, b)
		if w.Now() > since+settling {
			delete(l.restless, b)
		}
	}
	if len(l.restless) > 0 {
		return again
	}
	return time.Hour
}

func (l *lookout) around(w *sim.World, board sim.BoardID) {
	for _, i := range l.near[board] {
		if to := l.leads(w, i); to != l.now[i] {
			l.now[i] = to
			l.changed(i, to)
		}
	}
}
