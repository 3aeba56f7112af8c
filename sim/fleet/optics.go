package fleet

import (
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/mzi/detmath"
	"ringlight/ocs"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
)

// Optics is what all boards of a run are made of: personalities of modules,
// and what calibration found out about each. It is shared and never written.
type Optics struct {
	Personalities []*sim.Personality
	Calibrated    []*ocs.Calibration // one module each
	Physics       *sim.Physics       // of the boards' calls, and of the personalities; nil: sim.DefaultPhysics
	Control       bool               // modules have controllers, those of a bundle behind one mux
}

// CatalogueSize is the number of personalities that large fleets draw from.
const CatalogueSize = 64

// pick draws the modules of one bundle.
func (o *Optics) pick(seed uint64, node, bundle, modules int) []int {
	list := make([]int, modules)
	for m := range list {
		list[m] = int(detmath.Hash(seed, uint64(node), uint64(bundle), uint64(m)) % uint64(len(o.Personalities)))
	}
	return list
}

// fibreLoss is a few hundred metres of single-mode fibre with a splice;
// chosen: well inside the link budget of docs/board.md.
const fibreLoss int32 = 200 // thousandths of a dB

// Build puts a board for every node of a fabric into a world and joins them by
// the fabric's fibres. Board n is node n.
func (o *Optics) Build(w *sim.World, f *fabric.Fabric, modules int, seed uint64) (*hal.Board, [][]*ocs.Calibration, error) {
	board, err := boardfile.Default(f.GPUsPerNode, f.Bundles, modules)
	if o.Control {
		board, err = boardfile.DefaultCMIS(f.GPUsPerNode, f.Bundles, modules, true)
	}
	if err != nil {
		return nil, nil, err
	}
	calibrations := make([][]*ocs.Calibration, f.Nodes)
	for n := range f.Nodes {
		var id sim.BoardID
		if id, calibrations[n], err = o.add(w, &board, n, modules, seed); err != nil {
			return nil, nil, fmt.Errorf("fleet: node %d: %w", n, err)
		}
		if int(id) != n {
			return nil, nil, fmt.Errorf("fleet: node %d became board %d", n, id)
		}
	}
	for _, x := range f.AllFibres() {
		if err := w.Connect(SimPort(x.A), SimPort(x.B), simFibre(x, fibreLoss)); err != nil {
			return nil, nil, fmt.Errorf("fleet: fibre %v - %v: %w", x.A, x.B, err)
		}
	}
	return &board, calibrations, nil
}

func simFibre(x fabric.Fibre, loss int32) sim.Fibre {
	return sim.Fibre{LossMilliDB: loss, Crossed: x.Crossed}
}

// add puts a board with modules of the catalogue into a world, dark; who is its
// number among those of a seed.
func (o *Optics) add(w *sim.World, board *hal.Board, who, modules int, seed uint64) (sim.BoardID, []*ocs.Calibration, error) {
	cfg := sim.BoardConfig{Board: *board, Physics: o.Physics, Seed: detmath.Hash(seed, uint64(who))}
	var calibrations []*ocs.Calibration
	for j := range board.Bundles {
		var optics []*sim.Personality
		var parts []*ocs.Calibration
		for _, i := range o.pick(seed, who, j, modules) {
			optics = append(optics, o.Personalities[i])
			parts = append(parts, o.Calibrated[i])
		}
		cfg.Personalities = append(cfg.Personalities, optics)
		whole, err := ocs.Join(parts)
		if err != nil {
			return 0, nil, fmt.Errorf("bundle %d: %w", j, err)
		}
		calibrations = append(calibrations, whole)
	}
	id, err := w.AddBoard(cfg)
	return id, calibrations, err
}

// SimPort is a fabric's port as the world knows it.
func SimPort(p fabric.Port) sim.Port {
	path := hal.LOSExternal1
	if p.Path == proto.External2 {
		path = hal.LOSExternal2
	}
	return sim.Port{Board: sim.BoardID(p.Node), Bundle: int(p.Bundle), Path: path}
}

// calibrateLimit is the board time after which a calibration has gone wrong;
// chosen: several times what the slowest needs.
const calibrateLimit = 5 * time.Minute

// Calibrate lets the production code calibrate a module from nothing, on the
// virtual clock of a world that holds nothing else, and says how long that
// took on the board's clock. stop, asked now and then, ends it early.
func (o *Optics) Calibrate(p *sim.Personality, seed uint64, stop func() error) (*ocs.Calibration, time.Duration, error) {
	board, err := boardfile.Default(1, 1, 1)
	if err != nil {
		return nil, 0, err
	}
	w := sim.NewWorld(sim.WorldConfig{Seed: seed})
	id, err := w.AddBoard(sim.BoardConfig{Board: board, Personalities: [][]*sim.Personality{{p}}, Physics: o.Physics, Powered: true})
	if err != nil {
		return nil, 0, err
	}
	r := &optician{world: w, id: id, board: &board, stop: stop}
	r.trx = ocs.New(ocs.Config{Board: &board, Latch: ocs.NewLatch(&board), Seed: seed})
	r.trx.Start(0)
	if err := r.until(ocs.Ready); err != nil {
		return nil, 0, err
	}
	start := r.now
	if err := r.trx.Calibrate(r.now); err != nil {
		return nil, 0, err
	}
	if err := r.until(ocs.Calibrated); err != nil {
		return nil, 0, err
	}
	return r.trx.Status().Calibration, r.now - start, nil
}

// optician drives one bundle on one board in virtual time.
type optician struct {
	world *sim.World
	id    sim.BoardID
	board *hal.Board
	stop  func() error
	trx   *ocs.Transceiver
	now   time.Duration
	done  []*hal.Completion
	ops   []hal.BusOp
	found []ocs.Event
}

// stopEvery is how many steps pass between two questions whether to stop.
const stopEvery = 1 << 12

// until runs until the optics report something of a kind.
func (r *optician) until(want ocs.EventKind) error {
	for n := 0; ; n++ {
		if n%stopEvery == 0 && r.stop != nil {
			if err := r.stop(); err != nil {
				return err
			}
		}
		next, err := r.poll()
		if err != nil {
			return err
		}
		r.found = r.trx.TakeEvents(r.found[:0])
		for _, ev := range r.found {
			switch ev.Kind {
			case want:
				return nil
			case ocs.CalibrationFailed, ocs.PathFailed:
				return fmt.Errorf("%v: module %d, cell %d: %w %s", ev.Kind, ev.Module, ev.Cell, ev.Err, ev.Text)
			}
		}
		if r.now > calibrateLimit {
			return fmt.Errorf("not %v after %v of board time", want, r.now)
		}
		if err := r.advance(next); err != nil {
			return err
		}
	}
}

// maxPolls bounds the calls at one instant; more mean that something spins.
const maxPolls = 10_000

func (r *optician) poll() (next time.Duration, err error) {
	for range maxPolls {
		r.ops, next = r.trx.Poll(r.now, r.done, r.ops[:0])
		r.done = r.done[:0]
		for _, op := range r.ops {
			if err := r.world.Submit(r.now, r.id, op.Bus, op.Op); err != nil {
				return 0, err
			}
		}
		if next > r.now {
			return next, nil
		}
	}
	return 0, errors.New("the optics want to be polled for ever")
}

// advance moves to whatever comes next: the board or the optics' own timer.
func (r *optician) advance(next time.Duration) error {
	at, ok := r.world.Next()
	if !ok && next == hal.Never {
		return errors.New("nothing is due and nothing is done")
	}
	if !ok || next < at {
		r.world.AdvanceTo(next)
		r.now = next
		return nil
	}
	_, ev, visible := r.world.Step()
	r.now = r.world.Now()
	if visible && ev.Completion != nil {
		r.done = append(r.done, ev.Completion)
	}
	if visible && ev.Edge != nil {
		for path, line := range r.board.Bundles[0].LOS {
			if line == ev.Edge.Line {
				r.trx.Light(r.now, ev.Edge.At, proto.Loopback+proto.Path(path), ev.Edge.High)
			}
		}
	}
	return nil
}
