package fleet

import (
	"fmt"
	"slices"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs/box"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/boxes"
)

// Mirrors are the boards of a fabric's optical switches in a world: one
// layout, each with mirrors and factory data of its own. Switch s is board
// First + s. Behind those of mirrors come the servers' that are joined directly.
type Mirrors struct {
	Board     *hal.Board
	First     sim.BoardID
	Factories []*mems.Factory
	Servers   *Servers // nil: none are joined directly
	kinds     []string // of switches, in turn; none: all have mirrors
	boxes     []*far   // by switch; nil: it has mirrors
	ports     int      // with fibres
	plug      func(layer, port int) int
}

// far is a commercial box. Its board in the world is its place and has no part in it.
type far struct {
	boxes.Box
	dark []bool // ports of side A
}

// OfMirrors is the kind of a switch that is no box.
const OfMirrors = "mirrors"

// BuildMirrors puts a board for every switch of a core into a world. What
// they join shines into the first ports of side A; the others have no fibre.
// Kinds say what the switches are, in turn: OfMirrors, or one of boxes.Protocols.
func BuildMirrors(w *sim.World, core *fabric.Core, seed uint64, kinds ...string) (*Mirrors, error) {
	if core.SwitchSize() > hal.MaxCrossbarPorts {
		return nil, &proto.Error{Code: proto.Invalid, Field: "core.switch_ports", Limit: fmt.Sprintf("at most %d in the simulator", hal.MaxCrossbarPorts),
			Reason: fmt.Sprintf("%d ports", core.SwitchSize())}
	}
	if core.Switches() == 0 {
		return new(Mirrors), nil
	}
	board, err := hal.DefaultMEMS(core.SwitchSize())
	if err != nil {
		return nil, err
	}
	m := &Mirrors{Board: &board, kinds: kinds}
	return m, m.lay(w, core, seed, nil)
}

// lay adds the boards that a core needs more, and lights the ports that have fibres in
// it: all but those of which dead says that theirs carries none.
func (m *Mirrors) lay(w *sim.World, core *fabric.Core, seed uint64, dead func(s, port int) bool) error {
	was := len(m.Factories)
	for s := was; s < core.Mirrors(); s++ {
		id, err := w.AddBoard(sim.BoardConfig{Board: *m.Board, Seed: detmath.Hash(seed, uint64(proto.FirstSwitch)+uint64(s)), Powered: true})
		if err != nil {
			return fmt.Errorf("fleet: switch %d: %w", s, err)
		}
		if s == 0 {
			m.First = id
		} else if id != m.ID(s) {
			return fmt.Errorf("fleet: switch %d: it is board %d, behind others", s, id)
		}
		m.boxes = append(m.boxes, nil)
		if n := len(m.kinds); n > 0 && m.kinds[s%n] != OfMirrors {
			x := &far{boxes.New(m.kinds[s%n], m.Board.Mirrors.Ports), make([]bool, m.Board.Mirrors.Ports)}
			x.SetDark(func(port int) bool { return x.dark[port] })
			m.boxes[s] = x
		}
		for p := range m.Board.Mirrors.Ports {
			m.shine(w, s, p, false)
		}
		m.Factories = append(m.Factories, mems.Measure(w.Maker(id), m.Board.Mirrors.Ports))
	}
	for s := range core.Mirrors() {
		for p := range core.Ports() {
			if (s >= was || p >= m.ports) && (dead == nil || !dead(s, p)) {
				m.shine(w, s, p, true)
			}
		}
	}
	m.ports = max(m.ports, core.Ports())
	return m.layServers(w, core, seed)
}

// shine says whether light comes into a port.
func (m *Mirrors) shine(w *sim.World, s, port int, lit bool) {
	w.SetMirrorInput(m.ID(s), port, sim.InputLight{Lit: lit, MilliTHz: sim.DefaultMilliTHz})
	if x := m.boxes[s]; x != nil {
		x.dark[port] = !lit
	}
}

// box is switch s, where it is one; nil: it is none.
func (m *Mirrors) box(s int) *far {
	if m == nil || s < 0 || s >= len(m.boxes) {
		return nil
	}
	return m.boxes[s]
}

// ID is the board of switch s.
func (m *Mirrors) ID(s int) sim.BoardID { return m.First + sim.BoardID(s) }

// Switches is how many there are, servers' transceivers included.
func (m *Mirrors) Switches() int {
	n := len(m.Factories)
	if m.Servers != nil {
		n += len(m.Servers.Calibrations)
	}
	return n
}

// Agent fills in what the agent of switch s is told of its board.
func (m *Mirrors) Agent(s int, cfg *agent.Config) {
	if x := m.box(s); x != nil {
		x.HangUp()
		cfg.Board, cfg.BoxPorts = &hal.Board{Buses: []hal.Bus{{Kind: hal.TextLine, Device: "box"}}}, len(x.dark)
		cfg.Box = &box.Config{Client: x.Client(), End: x.End(), Ports: len(x.dark)}
		return
	}
	if s < len(m.Factories) {
		cfg.Board, cfg.Factory = m.Board, m.Factories[s]
		return
	}
	cfg.Board, cfg.Calibrations = m.Servers.Board, m.Servers.Calibrations[s-len(m.Factories)]
}

// passes is the loss under which light counts as passing. chosen: 6 dB over
// what the best paths lose, as a switch's agent sees it.
const passes = 8_000

// Passes tells whether light really passes from a port of side A to one of
// side B of switch s, whatever anybody says.
func (m *Mirrors) Passes(w *sim.World, s int, a, b uint16) bool {
	if s >= len(m.Factories) {
		return m.hears(w, s, a, b)
	}
	if x := m.box(s); x != nil {
		return slices.Contains(x.Lit(), circuit.Pair{A: a, B: b})
	}
	return int(a) < m.ports && Passes(w, m.ID(s), int(a), int(b))
}

// Passes is the same of one board.
func Passes(w *sim.World, id sim.BoardID, a, b int) bool { return w.MirrorLoss(id, a, b) < passes }

// Lit are all pairs of ports of switch s between which light passes.
func (m *Mirrors) Lit(w *sim.World, s int) []circuit.Pair {
	var lit []circuit.Pair
	if s >= len(m.Factories) {
		n := uint16(len(m.Servers.Board.Bundles))
		for a := range n {
			for b := a; b < 2*n; b += n {
				if m.hears(w, s, a, b) {
					lit = append(lit, circuit.Pair{A: a, B: b})
				}
			}
		}
		return lit
	}
	if x := m.box(s); x != nil {
		return x.Lit()
	}
	for a := range uint16(m.ports) {
		for b := range uint16(m.Board.Mirrors.Ports) {
			if m.Passes(w, s, a, b) {
				lit = append(lit, circuit.Pair{A: a, B: b})
			}
		}
	}
	return lit
}
