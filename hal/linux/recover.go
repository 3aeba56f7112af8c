package linux

import (
	"fmt"
	"sync"

	"ringlight/hal"
)

// clearClocks is how many clocks free a chip that holds the data line: it
// waits for the rest of a byte and its acknowledgement. [UM10204] 3.1.16.
const clearClocks = 9

// wirePin is a line of the bus: open drain, pulled low or let go.
type wirePin interface {
	pull() error
	release() error
	high() bool
	close() error
}

// recovery frees an I2C bus by hand, through two GPIO lines that are wired to
// it beside the controller. Between recoveries both lines are inputs. An
// adapter whose driver frees its bus itself needs none.
type recovery struct {
	mu       sync.Mutex // the owner and its watchdog
	scl, sda wirePin
	done     int // recoveries that freed the bus
}

// cause says what holds the bus: the clock, the data line, or nothing.
func (r *recovery) cause() error {
	switch {
	case !r.scl.high():
		return hal.ErrClockStretch
	case !r.sda.high():
		return hal.ErrBusStuck
	}
	return nil
}

// free lets the bus go: nine clocks at most until the data line is released,
// then a stop, so that every chip waits for a start again. A bus that is free
// is left alone. clocks is how many it took.
func (r *recovery) free() (clocks int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := r.cause()
	if held == nil {
		return 0, nil
	}
	if held == hal.ErrClockStretch {
		return 0, fmt.Errorf("%w: nobody else can drive a clock that a chip holds low", held)
	}
	defer func() { // whatever happened, nobody pulls
		_ = r.scl.release()
		_ = r.sda.release()
	}()
	for clocks < clearClocks && !r.sda.high() {
		if err := r.scl.pull(); err != nil {
			return clocks, err
		}
		if err := r.scl.release(); err != nil {
			return clocks, err
		}
		clocks++
		if !r.scl.high() {
			return clocks, fmt.Errorf("%w: after %d clocks", hal.ErrClockStretch, clocks)
		}
	}
	if !r.sda.high() {
		return clocks, fmt.Errorf("%w: after %d clocks", hal.ErrBusStuck, clocks)
	}
	// A stop: data rises while the clock is high.
	for _, step := range []func() error{r.scl.pull, r.sda.pull, r.scl.release, r.sda.release} {
		if err := step(); err != nil {
			return clocks, err
		}
	}
	r.done++
	return clocks, nil
}

// close lets go of the lines.
func (r *recovery) close() { _, _ = r.scl.close(), r.sda.close() }
