package live

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/ocs"
	"ringlight/sim"
	"ringlight/sim/fleet"
)

// catalogueSize is how many optical personalities the modules of a demo are
// drawn from; each is calibrated once, from nothing, by the production code.
const catalogueSize = 16

// boardTime is the shortest and the longest of a set of times on a board's
// clock.
type boardTime struct{ min, max time.Duration }

// calibrate draws the catalogue and lets the production code calibrate every
// module of it from nothing, each on a board of its own, as many at a time as
// there are processors.
func calibrate(ctx context.Context, ph *sim.Physics, seed uint64, size int, progress func(done, of int)) (*fleet.Optics, boardTime, error) {
	b := &fleet.Optics{Personalities: sim.Catalogue(ph, seed, size), Physics: ph}
	b.Calibrated = make([]*ocs.Calibration, size)
	took := make([]time.Duration, size)
	err := InParallel(ctx, runtime.GOMAXPROCS(0), size, progress, func(i int) (err error) {
		b.Calibrated[i], took[i], err = b.Calibrate(b.Personalities[i], detmath.Hash(seed, uint64(i)), ctx.Err)
		if err != nil {
			return fmt.Errorf("live: module %s: %w", b.Personalities[i].Serial(), err)
		}
		return nil
	})
	return b, boardTime{slices.Min(took), slices.Max(took)}, err
}
