package linux

import (
	"fmt"
	"sync"

	"periph.io/x/conn/v3/gpio"

	"ringlight/hal"
)

// clearClocks is how many clocks free a chip that holds the data line: it
// waits for the rest of a byte and its acknowledgement. [UM10204] 3.1.16.
const clearClocks = 9

// pull and letGo drive a line of the bus as open drain.
func pull(p gpio.PinIO) error  { return caused(p.Out(gpio.Low)) }
func letGo(p gpio.PinIO) error { return caused(p.In(gpio.PullNoChange, gpio.NoEdge)) }

// recovery frees an I2C bus by hand, through two GPIO lines that are wired to
// it beside the controller. Between recoveries both lines are inputs. An
// adapter whose driver frees its bus itself needs none.
type recovery struct {
	mu       sync.Mutex // the owner and its watchdog
	scl, sda gpio.PinIO
	done     int // recoveries that freed the bus
}

// cause says what holds the bus: the clock, the data line, or nothing.
func (r *recovery) cause() error {
	switch {
	case r.scl.Read() == gpio.Low:
		return hal.ErrClockStretch
	case r.sda.Read() == gpio.Low:
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
		_ = letGo(r.scl)
		_ = letGo(r.sda)
	}()
	for clocks < clearClocks && !r.sda.Read() {
		if err := pull(r.scl); err != nil {
			return clocks, err
		}
		if err := letGo(r.scl); err != nil {
			return clocks, err
		}
		clocks++
		if !r.scl.Read() {
			return clocks, fmt.Errorf("%w: after %d clocks", hal.ErrClockStretch, clocks)
		}
	}
	if !r.sda.Read() {
		return clocks, fmt.Errorf("%w: after %d clocks", hal.ErrBusStuck, clocks)
	}
	// A stop: data rises while the clock is high.
	for _, do := range []func(gpio.PinIO) error{pull, letGo} {
		for _, p := range []gpio.PinIO{r.scl, r.sda} {
			if err := do(p); err != nil {
				return clocks, err
			}
		}
	}
	r.done++
	return clocks, nil
}

// close lets go of the lines.
func (r *recovery) close() { _, _ = r.scl.Halt(), r.sda.Halt() }
