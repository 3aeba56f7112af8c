package live

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// boardTime is the shortest and the longest of a set of times on a board's
// clock.
type boardTime struct{ min, max time.Duration }

// calibrateLimit is the board time after which a calibration has gone wrong;
// chosen: several times what the slowest needs.
const calibrateLimit = 5 * time.Minute

// calibrate draws the catalogue and lets the production code calibrate every
// module of it from nothing, each on a board of its own, as many at a time as
// there are processors.
func calibrate(ctx context.Context, seed uint64, progress func(done, of int)) (*bench, boardTime, error) {
	b := &bench{personalities: sim.Catalogue(seed, catalogueSize)}
	b.calibrated = make([]*ocs.Calibration, len(b.personalities))
	took := make([]time.Duration, len(b.personalities))
	errs := make([]error, len(b.personalities))
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				b.calibrated[i], took[i], errs[i] = calibrateModule(ctx, b.personalities[i], mix(seed, uint64(i)))
				mu.Lock()
				done++
				progress(done, len(took))
				mu.Unlock()
			}
		})
	}
	for i := range b.personalities {
		next <- i
	}
	close(next)
	workers.Wait()
	spread := boardTime{took[0], took[0]}
	for i, t := range took {
		spread.min, spread.max = min(spread.min, t), max(spread.max, t)
		if errs[i] != nil {
			errs[i] = fmt.Errorf("live: module %s: %w", b.personalities[i].Serial(), errs[i])
		}
	}
	return b, spread, errors.Join(errs...)
}

// calibrateModule runs one calibration on the virtual clock of a world that
// holds nothing else.
func calibrateModule(ctx context.Context, p *sim.Personality, seed uint64) (*ocs.Calibration, time.Duration, error) {
	board, err := hal.Default(1, 1, 1)
	if err != nil {
		return nil, 0, err
	}
	w := sim.NewWorld(sim.WorldConfig{Seed: seed})
	id, err := w.AddBoard(sim.BoardConfig{Board: board, Personalities: [][]*sim.Personality{{p}}, Powered: true})
	if err != nil {
		return nil, 0, err
	}
	r := &optician{world: w, id: id, board: &board}
	r.trx = ocs.New(ocs.Config{Board: &board, Latch: ocs.NewLatch(&board), Seed: seed})
	r.trx.Start(0)
	if err := r.until(ctx, ocs.Ready); err != nil {
		return nil, 0, err
	}
	start := r.now
	if err := r.trx.Calibrate(r.now); err != nil {
		return nil, 0, err
	}
	if err := r.until(ctx, ocs.Calibrated); err != nil {
		return nil, 0, err
	}
	return r.trx.Status().Calibration, r.now - start, nil
}

// optician drives one bundle on one board in virtual time.
type optician struct {
	world *sim.World
	id    sim.BoardID
	board *hal.Board
	trx   *ocs.Transceiver
	now   time.Duration
	done  []*hal.Completion
	ops   []ocs.BusOp
	found []ocs.Event
}

// until runs until the optics report something of a kind.
func (r *optician) until(ctx context.Context, want ocs.EventKind) error {
	for ctx.Err() == nil {
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
	return ctx.Err()
}

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
	if !ok && next == ocs.Never {
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
				r.trx.Light(r.now, proto.Loopback+proto.Path(path), ev.Edge.High)
			}
		}
	}
	return nil
}
