package fleet

import (
	"fmt"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// Mirrors are the boards of a fabric's optical switches in a world: one
// layout, each with mirrors and factory data of its own. Switch s is board
// First + s. Behind those of mirrors come the servers' that are joined directly.
type Mirrors struct {
	Board     *hal.Board
	First     sim.BoardID
	Factories []*mems.Factory
	Servers   *Servers // nil: none are joined directly
	ports     int      // with fibres
	plug      func(layer, port int) int
}

// BuildMirrors puts a board for every switch of a core into a world. What
// they join shines into the first ports of side A; the others have no fibre.
func BuildMirrors(w *sim.World, core *fabric.Core, seed uint64) (*Mirrors, error) {
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
	m := &Mirrors{Board: &board}
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
		for p := range m.Board.Mirrors.Ports {
			w.SetMirrorInput(id, p, sim.InputLight{})
		}
		m.Factories = append(m.Factories, mems.Measure(w.Maker(id), m.Board.Mirrors.Ports))
	}
	for s := range core.Mirrors() {
		for p := range core.Ports() {
			if (s >= was || p >= m.ports) && (dead == nil || !dead(s, p)) {
				w.SetMirrorInput(m.ID(s), p, sim.InputLight{Lit: true, MilliTHz: sim.DefaultMilliTHz})
			}
		}
	}
	m.ports = max(m.ports, core.Ports())
	return m.layServers(w, core, seed)
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
	for a := range uint16(m.ports) {
		for b := range uint16(m.Board.Mirrors.Ports) {
			if m.Passes(w, s, a, b) {
				lit = append(lit, circuit.Pair{A: a, B: b})
			}
		}
	}
	return lit
}
