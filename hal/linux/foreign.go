package linux

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"periph.io/x/conn/v3/gpio"

	"ringlight/hal"
)

// edgeWait bounds one wait for an edge: a driver that loses one is found out by the
// level, and one that waits without end would outlive its board. chosen: seldom enough to
// cost nothing.
const edgeWait = time.Second

// waitPause is how long a driver is left alone that came back early without an edge.
const waitPause = time.Millisecond

// foreign are the inputs whose pins come from periph's registry. Somebody else's driver
// waits for each on a goroutine of its own, so an edge reaches the board's thread by
// way of another; without a stamp its time is when we were told.
type foreign struct {
	now    func() time.Duration
	epoch  time.Duration
	wake   func()
	closed atomic.Bool
	pins   []*foreignPin

	mu    sync.Mutex
	edges []edge
}

type foreignPin struct {
	pin    gpio.PinIn
	id     hal.LineID
	name   string
	invert bool
	high   bool // as the thread was told
}

func (f *foreign) add(id hal.LineID, l hal.Line, pin gpio.PinIn) error {
	if err := pin.In(gpio.PullNoChange, gpio.BothEdges); err != nil {
		return fmt.Errorf("line %d %s: %w", id, l.Name, caused(err))
	}
	f.pins = append(f.pins, &foreignPin{pin: pin, id: id, name: l.Name, invert: l.ActiveLow, high: bool(pin.Read()) != l.ActiveLow})
	return nil
}

// start waits for edges, each pin from the level that add read.
func (f *foreign) start() {
	for _, p := range f.pins {
		go f.follow(p, p.high)
	}
}

func (f *foreign) follow(p *foreignPin, high bool) {
	for !f.closed.Load() {
		asked := f.now()
		came := p.pin.WaitForEdge(edgeWait)
		at, level := f.now(), bool(p.pin.Read()) != p.invert
		if stamped, ok := p.pin.(hal.StampedPin); came && ok {
			level, at, _ = stamped.LastEdge()
			level, at = level != p.invert, at-f.epoch
		}
		switch {
		case level != high:
			f.put(edge{p.id, level, at})
		case came: // it went for a moment
			f.put(edge{p.id, !level, at}, edge{p.id, level, at})
		case f.now()-asked < edgeWait/2:
			time.Sleep(waitPause)
		}
		high = level
	}
}

func (f *foreign) put(edges ...edge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed.Load() { // else nobody is left to wake
		f.edges = append(f.edges, edges...)
		f.wake()
	}
}

// take gives the thread what has come.
func (f *foreign) take(out []edge) []edge {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.edges {
		for _, p := range f.pins {
			if p.id == e.line {
				p.high = e.high
			}
		}
	}
	out = append(out, f.edges...)
	f.edges = f.edges[:0]
	return out
}

// level is where the edges that take gave have led.
func (f *foreign) level(id hal.LineID) (high, ok bool) {
	for _, p := range f.pins {
		if p.id == id {
			return p.high, true
		}
	}
	return false, false
}

func (f *foreign) close() error {
	f.mu.Lock()
	f.closed.Store(true)
	f.mu.Unlock()
	var errs []error
	for _, p := range f.pins {
		errs = append(errs, p.pin.Halt())
	}
	return errors.Join(errs...)
}
