package fleet

import (
	"fmt"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// Servers are the transceivers of servers that are joined directly: a board
// each, of one layout.
type Servers struct {
	Board        *hal.Board
	Calibrations [][]*ocs.Calibration // by server
	direct       *fabric.Direct
	optics       *Optics
	modules      int
}

// AddServers puts a board for every server of a direct core into a world, with
// power, and leads its fibres to the mirrors.
func (m *Mirrors) AddServers(w *sim.World, core *fabric.Core, o *Optics, modules int, seed uint64) error {
	if core.Direct == nil {
		return nil
	}
	board, err := boardfile.Default(core.GPUsPerServer, core.Degree, modules)
	if err != nil {
		return err
	}
	m.Servers = &Servers{Board: &board, direct: core.Direct, optics: o, modules: modules}
	return m.layServers(w, core, seed)
}

// layServers adds those that a core has more.
func (m *Mirrors) layServers(w *sim.World, core *fabric.Core, seed uint64) error {
	if m.Servers == nil {
		return nil
	}
	for s := len(m.Servers.Calibrations); s < core.Direct.Servers; s++ {
		id, cal, err := m.Servers.optics.add(w, m.Servers.Board, int(proto.FirstSwitch)+core.ServerSwitch(s), m.Servers.modules, seed)
		if err != nil {
			return fmt.Errorf("fleet: server %d: %w", s, err)
		}
		w.SetPower(id, true)
		m.Servers.Calibrations = append(m.Servers.Calibrations, cal)
		for face := range core.Degree {
			for path := range 2 {
				at, port := sim.Port{Board: id, Bundle: face, Path: hal.LOSExternal1 + path}, core.Port(s, path)
				if m.plug != nil {
					port = m.plug(face, port)
				}
				if port < 0 {
					continue // it ends nowhere
				}
				if err := w.Through(at, m.ID(face), port, sim.Fibre{LossMilliDB: fibreLoss}); err != nil {
					return fmt.Errorf("fleet: server %d: %w", s, err)
				}
			}
		}
	}
	return nil
}

// at is where the fibre of a circuit of a server's switch hangs.
func (m *Mirrors) at(s int, a, b uint16) sim.Port {
	return sim.Port{Board: m.ID(s), Bundle: int(a), Path: hal.LOSExternal1 + int(b)/m.Servers.direct.Degree}
}

// hears tells whether an interface of a server listens to a fibre, sends into
// it, and has light from there.
func (m *Mirrors) hears(w *sim.World, s int, a, b uint16) bool {
	if n := m.Servers.direct.Degree; int(b) >= 2*n || int(b)%n != int(a) {
		return false
	}
	at := m.at(s, a, b)
	path, shining := w.Selected(at.Board, at.Bundle)
	return shining && path == at.Path && w.Lit(at)
}

// From is where the light comes from that a port of a layer sends on, by the
// layer's own ports; ok is false where none comes.
func (m *Mirrors) from(w *sim.World, layer int, port uint16) (sender uint16, ok bool) {
	d := m.Servers.direct
	server, path := d.PortEnd(int(port))
	far, ok := w.From(sim.Port{Board: m.ID(d.ServerSwitch(server)), Bundle: layer, Path: hal.LOSExternal1 + path})
	if !ok || far.Bundle != layer {
		return 0, false
	}
	return uint16(d.Port(int(far.Board-m.ID(d.Degree)), far.Path-hal.LOSExternal1)), true
}
