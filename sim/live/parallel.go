package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"ringlight/sim/fleet"
)

// inParallel does n things, as many at a time as there are processors, and says
// after each how far it is. It begins no more when ctx has ended.
func inParallel(ctx context.Context, n int, progress func(done, of int), do func(i int) error) error {
	errs := make([]error, n+1)
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(func() {
			for i := range next {
				errs[i] = do(i)
				mu.Lock()
				done++
				progress(done, n)
				mu.Unlock()
			}
		})
	}
	for i := 0; i < n && errs[n] == nil; i++ {
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
	err := inParallel(ctx, s.runs, s.progress, func(i int) error {
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
