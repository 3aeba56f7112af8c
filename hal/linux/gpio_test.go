package linux

import (
	"sync/atomic"
	"testing"
	"time"

	"periph.io/x/conn/v3/gpio"

	"ringlight/hal"
)

// fakePin gives one edge for each value sent to it.
type fakePin struct {
	edges chan bool // the new level
	level atomic.Bool
	halt  chan struct{}
}

func (p *fakePin) In(gpio.Pull, gpio.Edge) error { return nil }
func (p *fakePin) Read() gpio.Level              { return gpio.Level(p.level.Load()) }
func (p *fakePin) Halt() error {
	select {
	case <-p.halt:
	default:
		close(p.halt)
	}
	return nil
}

func (p *fakePin) WaitForEdge(time.Duration) bool {
	select {
	case high := <-p.edges:
		p.level.Store(high)
		return true
	case <-p.halt:
		return false
	}
}

// Goal: an edge carries the moment at which its waiting thread woke, taken
// before anything else, and the level of the line as the board means it.
// Method: a pin and a clock of our own, a line that is active low.
func TestAnEdgeCarriesItsMoment(t *testing.T) {
	for _, low := range []bool{false, true} {
		pin := &fakePin{edges: make(chan bool), halt: make(chan struct{})}
		var now atomic.Int64
		clock := func() time.Duration { return time.Duration(now.Load()) }
		events := make(chan hal.Event)
		w, err := newWatcher(3, hal.Line{ActiveLow: low}, pin, clock, func(ev hal.Event) {
			now.Add(int64(time.Millisecond)) // whoever hears of it is late
			events <- ev
		})
		if err != nil {
			t.Fatal(err)
		}
		high := low // at rest: the pin is low
		for i, at := range []time.Duration{5 * time.Second, 7 * time.Second, 9 * time.Second} {
			now.Store(int64(at))
			pin.edges <- i%2 == 0
			high = !high
			ev := <-events
			if ev.Edge == nil || ev.Edge.Line != 3 || ev.Edge.High != high || ev.Edge.At != at {
				t.Errorf("active low %v, edge %d: %+v, want high %v at %v", low, i, ev.Edge, high, at)
			}
		}
		w.shut()
	}
}
