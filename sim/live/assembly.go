package live

import (
	"fmt"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// catalogueSize is how many optical personalities the modules of a demo are
// drawn from; each is calibrated once, from nothing, by the production code.
const catalogueSize = 16

// bench is what all boards of a run are made of: the personalities and what
// calibration found out about each.
type bench struct {
	personalities []*sim.Personality
	calibrated    []*ocs.Calibration // one module each; nil slice: leave the boards uncalibrated
}

// pick draws the modules of one bundle.
func (b *bench) pick(seed uint64, node, bundle, modules int) []int {
	list := make([]int, modules)
	for m := range list {
		list[m] = int(mix(seed, uint64(node), uint64(bundle), uint64(m)) % uint64(len(b.personalities)))
	}
	return list
}

// fibreLoss is a few hundred metres of single-mode fibre with a splice;
// chosen: well inside the link budget of board.md.
const fibreLoss = 200 // thousandths of a dB

// build puts a board for every node of a fabric into a world and joins them
// by the fabric's fibres.
func build(w *sim.World, f *fabric.Fabric, modules int, seed uint64, b *bench) ([]hal.Board, [][]*ocs.Calibration, error) {
	boards := make([]hal.Board, f.Nodes)
	calibrations := make([][]*ocs.Calibration, f.Nodes)
	for n := range f.Nodes {
		board, err := hal.Default(f.GPUsPerNode, f.Bundles, modules)
		if err != nil {
			return nil, nil, err
		}
		cfg := sim.BoardConfig{Board: board, Seed: mix(seed, uint64(n))}
		for j := range f.Bundles {
			var optics []*sim.Personality
			var parts []*ocs.Calibration
			for _, i := range b.pick(seed, n, j, modules) {
				optics = append(optics, b.personalities[i])
				parts = append(parts, b.calibrated[i])
			}
			cfg.Personalities = append(cfg.Personalities, optics)
			whole, err := ocs.Join(parts)
			if err != nil {
				return nil, nil, fmt.Errorf("live: node %d: bundle %d: %w", n, j, err)
			}
			calibrations[n] = append(calibrations[n], whole)
		}
		id, err := w.AddBoard(cfg)
		if err != nil {
			return nil, nil, fmt.Errorf("live: node %d: %w", n, err)
		}
		if int(id) != n {
			return nil, nil, fmt.Errorf("live: node %d became board %d", n, id)
		}
		boards[n] = board
	}
	for _, x := range f.Fibres {
		if err := w.Connect(simPort(x.A), simPort(x.B), sim.Fibre{LossMilliDB: fibreLoss, Crossed: x.Crossed}); err != nil {
			return nil, nil, fmt.Errorf("live: fibre %v - %v: %w", x.A, x.B, err)
		}
	}
	return boards, calibrations, nil
}

// simPort is a fabric's port as the world knows it: node n is board n.
func simPort(p fabric.Port) sim.Port {
	path := hal.LOSExternal1
	if p.Path == proto.External2 {
		path = hal.LOSExternal2
	}
	return sim.Port{Board: sim.BoardID(p.Node), Bundle: int(p.Bundle), Path: path}
}
