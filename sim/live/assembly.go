package live

import (
	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/planner/fabric"
	"ringlight/sim"
	"ringlight/sim/fleet"
)

// catalogueSize is how many optical personalities the modules of a demo are
// drawn from; each is calibrated once, from nothing, by the production code.
const catalogueSize = 16

// build puts a board for every node of a fabric into a world and joins them
// by the fabric's fibres.
func build(w *sim.World, f *fabric.Fabric, modules int, seed uint64, b *fleet.Optics) ([]hal.Board, [][]*ocs.Calibration, error) {
	board, calibrations, err := b.Build(w, f, modules, seed)
	if err != nil {
		return nil, nil, err
	}
	boards := make([]hal.Board, f.Nodes)
	for n := range boards {
		boards[n] = *board
	}
	return boards, calibrations, nil
}

// simPort is a fabric's port as the world knows it: node n is board n.
func simPort(p fabric.Port) sim.Port { return fleet.SimPort(p) }
