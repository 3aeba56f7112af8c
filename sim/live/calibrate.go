package live

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/ocs"
	"ringlight/sim"
	"ringlight/sim/fleet"
)

// boardTime is the shortest and the longest of a set of times on a board's
// clock.
type boardTime struct{ min, max time.Duration }

// calibrate draws the catalogue and lets the production code calibrate every
// module of it from nothing, each on a board of its own, as many at a time as
// there are processors.
func calibrate(ctx context.Context, seed uint64, size int, progress func(done, of int)) (*fleet.Optics, boardTime, error) {
	b := &fleet.Optics{Personalities: sim.Catalogue(seed, size)}
	b.Calibrated = make([]*ocs.Calibration, len(b.Personalities))
	took := make([]time.Duration, len(b.Personalities))
	errs := make([]error, len(b.Personalities))
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				b.Calibrated[i], took[i], errs[i] = fleet.Calibrate(b.Personalities[i], detmath.Hash(seed, uint64(i)), ctx.Err)
				mu.Lock()
				done++
				progress(done, len(took))
				mu.Unlock()
			}
		})
	}
	for i := range b.Personalities {
		next <- i
	}
	close(next)
	workers.Wait()
	spread := boardTime{took[0], took[0]}
	for i, t := range took {
		spread.min, spread.max = min(spread.min, t), max(spread.max, t)
		if errs[i] != nil {
			errs[i] = fmt.Errorf("live: module %s: %w", b.Personalities[i].Serial(), errs[i])
		}
	}
	return b, spread, errors.Join(errs...)
}
