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

// wirePin is what we use of periph's gpio.PinIO. A line of the bus is open
// drain: pulled low by Out(Low), let go by In.
type wirePin interface {
	In(pull gpio.Pull, edge gpio.Edge) error
	Out(l gpio.Level) error
	Read() gpio.Level
}

// recovery frees an I2C bus by hand, through two GPIO lines that are wired to
// it beside the controller. Between recoveries both lines are inputs. An
// adapter whose driver frees its bus itself needs none.
type recovery struct {
	mu       sync.Mutex // the owner and its watchdog
	scl, sda wirePin
	done     int // recoveries that freed the bus
}

func newRecovery(scl, sda wirePin) (*recovery, error) {
	r := &recovery{scl: scl, sda: sda}
	for _, p := range []wirePin{scl, sda} {
		if err := release(p); err != nil {
			return nil, errorFromText(err)
		}
	}
	return r, nil
}

func release(p wirePin) error { return p.In(gpio.PullNoChange, gpio.NoEdge) }

func pull(p wirePin) error { return p.Out(gpio.Low) }

// cause says what holds the bus: the clock, the data line, or nothing.
func (r *recovery) cause() error {
	switch {
	case !bool(r.scl.Read()):
		return hal.ErrClockStretch
	case !bool(r.sda.Read()):
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
		_ = release(r.scl)
		_ = release(r.sda)
	}()
	for clocks < clearClocks && !bool(r.sda.Read()) {
		if err := pull(r.scl); err != nil {
			return clocks, errorFromText(err)
		}
		if err := release(r.scl); err != nil {
			return clocks, errorFromText(err)
		}
		clocks++
		if !bool(r.scl.Read()) {
			return clocks, fmt.Errorf("%w: after %d clocks", hal.ErrClockStretch, clocks)
		}
	}
	if !bool(r.sda.Read()) {
		return clocks, fmt.Errorf("%w: after %d clocks", hal.ErrBusStuck, clocks)
	}
	// A stop: data rises while the clock is high.
	for _, step := range []func() error{
		func() error { return pull(r.scl) }, func() error { return pull(r.sda) },
		func() error { return release(r.scl) }, func() error { return release(r.sda) }} {
		if err := step(); err != nil {
			return clocks, errorFromText(err)
		}
	}
	r.done++
	return clocks, nil
}
