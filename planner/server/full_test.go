package server

import (
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ringlight/planner"
)

// fullOnce is a store whose first writes fail.
type fullOnce struct {
	Store
	fails []error
}

func (f *fullOnce) Commit([]planner.Record) (err error) {
	if len(f.fails) > 0 {
		err, f.fails = f.fails[0], f.fails[1:]
	}
	return err
}

// Goal: whatever is full - a disk, a quota, what a process may write - is waited for, and
// what else fails ends the planner.
func TestWhatIsFullIsWaitedFor(t *testing.T) {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{store: &fullOnce{fails: []error{fmt.Errorf("write: %w", full), full, fmt.Errorf("file resize error: %s", full)}}}
			s.cfg.Log = slog.New(slog.DiscardHandler)
			began := time.Now()
			if err := s.commit(nil); err != nil || time.Since(began) != 3*fullAgain || s.full.Load() != nil {
				t.Errorf("%v: %v after %v", full, err, time.Since(began))
			}
		})
	}
	s := &server{store: &fullOnce{fails: []error{syscall.EIO}}}
	if err := s.commit(nil); err == nil {
		t.Error("a write that failed counts as done")
	}
}
