package live

import (
	"context"
	"fmt"
	"time"
)

// The steps of a run of processes are written as tests are: what a step cannot go on
// from ends it where it stands, and none of those who called passes it on. Only
// attempt looks at it: Procs, await, and who wants to know what came of something.

// ended is how a step ends that cannot go on.
type ended struct{ err error }

// must ends the step when something has failed.
func must(err error) {
	if err != nil {
		panic(ended{err})
	}
}

func fail(format string, args ...any) { panic(ended{fmt.Errorf(format, args...)}) }

// got is what somebody gave who did not fail.
func got[T any](v T, err error) T {
	must(err)
	return v
}

// attempt does something to its end, and gives why it ended before. It sees what is
// done in its own goroutine alone.
func attempt(do func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case ended:
			err = e.err
		default:
			panic(e)
		}
	}()
	do()
	return nil
}

// within has what ends inside of it say where that was.
func within(where string, do func()) {
	if err := attempt(do); err != nil {
		fail("%s: %w", where, err)
	}
}

// pause waits.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
		must(ctx.Err())
	case <-time.After(d):
	}
}
