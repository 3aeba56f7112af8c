package live

import (
	"context"
	"errors"
	"runtime"
	"sync"
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
