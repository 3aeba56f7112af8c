package main

import (
	"errors"
	"flag"
	"fmt"
	"runtime"
	"sync"

	"ringlight/proto"
	"ringlight/sim/study"
)

const maxParallel = 1024

func parallelFlag(fs *flag.FlagSet) *int {
	return fs.Int("parallel", runtime.NumCPU(), "simulations side by side")
}

// sideBySide runs the cells of a study, so many at a time; the result has their
// order whoever ends first.
func sideBySide[C, R any](cells []C, run func(C) (R, error), parallel int, progress study.Progress) ([]R, error) {
	if parallel < 1 || parallel > maxParallel {
		return nil, &proto.Error{Code: proto.Invalid, Field: "parallel", Limit: fmt.Sprintf("1 to %d", maxParallel), Reason: fmt.Sprintf("%d is out of range", parallel)}
	}
	runs, errs := make([]R, len(cells)), make([]error, len(cells))
	var (
		lock       sync.Mutex
		next, done int
		failed     bool
		wait       sync.WaitGroup
	)
	take := func() int {
		lock.Lock()
		defer lock.Unlock()
		if next++; failed || next > len(cells) {
			return -1
		}
		return next - 1
	}
	for range min(parallel, len(cells)) {
		wait.Go(func() {
			for i := take(); i >= 0; i = take() {
				runs[i], errs[i] = run(cells[i])
				lock.Lock()
				failed = failed || errs[i] != nil
				done++
				if progress != nil {
					progress(done, len(cells))
				}
				lock.Unlock()
			}
		})
	}
	wait.Wait()
	return runs, errors.Join(errs...)
}
