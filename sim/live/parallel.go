package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"ringlight/sim/fleet"
)

// InParallel does n things, so many at a time, and says after each how far it
// is. It begins no more when ctx has ended or one has failed.
func InParallel(ctx context.Context, atOnce, n int, progress func(done, of int), do func(i int) error) error {
	errs := make([]error, n+1)
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done, failed := 0, atomic.Bool{}
	for range min(atOnce, n) {
		workers.Go(func() {
			for i := range next {
				if errs[i] = do(i); errs[i] != nil {
					failed.Store(true)
				}
				mu.Lock()
				done++
				progress(done, n)
				mu.Unlock()
			}
		})
	}
	for i := 0; i < n && errs[n] == nil && !failed.Load(); i++ {
		select {
		case next <- i:
		case <-ctx.Done():
			errs[n] = ctx.Err()
		}
	}
	close(next)
	workers.Wait()
	return errors.Join(errs...)
}

// seeds are fleets that differ in their seeds alone, from first on.
type seeds struct {
	first uint64
	runs  int
	of    func(seed uint64) fleet.Config
	// trace takes what the runs tell as text, each line with its seed; nil:
	// nobody.
	trace    io.Writer
	progress func(done, of int)
}

// run gives the results in the order of their seeds.
func (s *seeds) run(ctx context.Context) ([]*fleet.Result, error) {
	results := make([]*fleet.Result, s.runs)
	var mu sync.Mutex // of trace
	err := InParallel(ctx, runtime.GOMAXPROCS(0), s.runs, s.progress, func(i int) error {
		seed := s.first + uint64(i)
		cfg := s.of(seed)
		if s.trace != nil {
			cfg.TraceLine = func(line string) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(s.trace, "seed %d: %s\n", seed, line)
			}
		}
		r, err := fleet.New(cfg)
		if err != nil {
			return err
		}
		results[i], err = r.Do()
		return err
	})
	return results, err
}
