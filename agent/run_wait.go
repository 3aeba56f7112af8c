package agent

import (
	"syscall"
	"time"
)

// shortWait is what the runtime's timers are too coarse for: they wake on
// whole milliseconds, up to a millisecond late.
const shortWait = 2 * time.Millisecond

// shortNap bounds one sleep in the kernel, so that an edge that comes
// meanwhile waits no longer than that. chosen: what a thread takes to wake up
// anyhow.
const shortNap = 50 * time.Microsecond

// shortSleep waits in the kernel on the caller's own thread.
func shortSleep(wait time.Duration) {
	ts := syscall.NsecToTimespec(int64(min(wait, shortNap)))
	_ = syscall.Nanosleep(&ts, nil)
}
