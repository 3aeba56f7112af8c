package main

import (
	"context"
	"flag"
	"fmt"
	"runtime"

	"ringlight/proto"
	"ringlight/sim/live"
	"ringlight/sim/study"
)

const maxParallel = 1024

func parallelFlag(fs *flag.FlagSet) *int {
	return fs.Int("parallel", runtime.NumCPU(), "simulations side by side")
}

// sideBySide runs the cells of a study, so many at a time; the result has their
// order whoever ends first.
func sideBySide[C, R any](ctx context.Context, cells []C, run func(C) (R, error), parallel int, progress study.Progress) ([]R, error) {
	if parallel < 1 || parallel > maxParallel {
		return nil, &proto.Error{Code: proto.Invalid, Field: "parallel", Limit: fmt.Sprintf("1 to %d", maxParallel), Reason: fmt.Sprintf("%d is out of range", parallel)}
	}
	runs := make([]R, len(cells))
	err := live.InParallel(ctx, parallel, len(cells), progress, func(i int) (err error) {
		runs[i], err = run(cells[i])
		return err
	})
	return runs, err
}
