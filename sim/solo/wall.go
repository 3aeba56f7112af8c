package solo

import (
	"context"
	"sync"
	"syscall"
	"time"

	"ringlight/hal"
	"ringlight/sim"
)

// Waits of a precise wall. The runtime's timers wake on whole milliseconds;
// what is nearer is waited for in the kernel, in naps short enough that work
// submitted meanwhile is not late.
const (
	coarse = 2 * time.Millisecond
	nap    = 50 * time.Microsecond
)

// Wall lets the time of a world go with the real clock. Whoever looks at the
// world holds the lock.
type Wall struct {
	sync.Mutex
	World *sim.World
	Told  func(sim.BoardID, hal.Event) // what boards tell, from one goroutine, without the lock
	// Stepped is called after whatever happens on a board, Idle when nothing is
	// due any more, and again when the time that it returned has passed; both
	// under the lock. nil: nobody looks.
	Stepped func(sim.BoardID)
	Idle    func() time.Duration
	Precise bool // for one board that has a processor

	born time.Time
	wake chan struct{} // something earlier is due
	told []said
}

// said is an event on its way, until the lock is given back.
type said struct {
	board sim.BoardID
	ev    hal.Event
}

// Start sets the clock to 0, before Run.
func (w *Wall) Start() { w.born, w.wake = time.Now(), make(chan struct{}, 1) }

// Now is the time since Start.
func (w *Wall) Now() time.Duration { return time.Since(w.born) }

// Do does something to the world at the time it is now. What was due before
// is left to Run, which catches up first; where nothing was, the world is brought to
// now: else what is done to it would have happened when something did last.
func (w *Wall) Do(f func(at time.Duration) error) error {
	w.Lock()
	now := w.Now()
	if next, any := w.World.Next(); !any || next > now {
		w.reach(now)
	}
	err := f(max(w.World.Now(), now))
	w.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return err
}

// reach lets time pass in which nothing is due.
func (w *Wall) reach(now time.Duration) {
	if now > w.World.Now() {
		w.World.AdvanceTo(now)
	}
}

// step lets everything happen that is due, and says how long nothing will be.
func (w *Wall) step() (wait time.Duration) {
	w.Lock()
	defer w.Unlock()
	now := w.Now()
	w.told, wait = w.told[:0], time.Hour
	for {
		next, any := w.World.Next()
		if !any || next > now {
			w.reach(now)
			if w.Idle != nil {
				wait = w.Idle()
			}
			if any {
				wait = min(wait, next-now)
			}
			return wait
		}
		board, ev, visible := w.World.Step()
		if w.Stepped != nil {
			w.Stepped(board)
		}
		if visible {
			w.told = append(w.told, said{board, ev})
		}
	}
}

// Run lets the time go until ctx ends.
func (w *Wall) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := w.step()
		for _, t := range w.told {
			w.Told(t.board, t.ev)
		}
		switch {
		case len(w.told) > 0 || wait <= 0:
			continue
		case w.Precise && wait < coarse:
			ts := syscall.NsecToTimespec(int64(min(wait, nap)))
			_ = syscall.Nanosleep(&ts, nil)
			continue
		case w.Precise:
			wait -= coarse / 2
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-timer.C:
		}
	}
}
