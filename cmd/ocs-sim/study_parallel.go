package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"

	"ringlight/sim/live"
)

const maxParallel = 1024

func parallelFlag(fs *flag.FlagSet) *int {
	return fs.Int("parallel", runtime.NumCPU(), "simulations side by side")
}

// cells is a study of simulations that share nothing.
type cells[C, R any, T result] interface {
	Validate() error
	Cells() []C
	Run(C) (R, error)
	Result([]R) T
}

// simulate runs the cells of a study, so many at a time, and puts them together
// in their order whoever ends first.
func simulate[C, R any, T result](ctx context.Context, s *studyRun, cfg cells[C, R, T], parallel int) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if parallel < 1 || parallel > maxParallel {
		return invalid("parallel", fmt.Sprintf("1 to %d", maxParallel), "%d is out of range", parallel)
	}
	return s.compute(ctx, func() (result, error) {
		all := cfg.Cells()
		runs := make([]R, len(all))
		err := live.InParallel(ctx, parallel, len(all), s.progress(), func(i int) (err error) {
			runtime.LockOSThread() // a clock may count the thread's time
			defer runtime.UnlockOSThread()
			runs[i], err = cfg.Run(all[i])
			return err
		})
		if err != nil {
			return nil, err
		}
		return cfg.Result(runs), nil
	})
}
