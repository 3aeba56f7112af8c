package linux

import (
	"fmt"
	"sync"
	"time"

	"periph.io/x/conn/v3/driver/driverreg"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/host/v3/gpioioctl"

	"ringlight/hal"
)

// settleWait is how long a line whose level contradicts the edges counted so
// far may still owe us one. chosen: far more than an interrupt takes.
const settleWait = 5 * time.Millisecond

// edgePin is what we use of periph's gpio.PinIn.
type edgePin interface {
	In(pull gpio.Pull, edge gpio.Edge) error
	Read() gpio.Level
	WaitForEdge(timeout time.Duration) bool
	Halt() error
}

// findPin asks periph for a line of a GPIO chip.
func findPin(l hal.Line) (edgePin, error) {
	if _, err := driverreg.Init(); err != nil {
		return nil, fmt.Errorf("%w (%v)", hal.ErrNoDevice, err)
	}
	for _, chip := range gpioioctl.Chips {
		if chip.Name() == l.Chip {
			if l.Offset < 0 || l.Offset >= chip.LineCount() {
				return nil, fmt.Errorf("%w: %s has %d lines", hal.ErrOutOfRange, l.Chip, chip.LineCount())
			}
			return chip.ByNumber(l.Offset), nil
		}
	}
	return nil, fmt.Errorf("%w: no GPIO chip %q", hal.ErrNoDevice, l.Chip)
}

// watcher turns one line's edges into events.
type watcher struct {
	id     hal.LineID
	invert bool
	pin    edgePin
	clock  func() time.Duration
	post   func(hal.Event)

	mu    sync.Mutex // orders Level against the first edge
	high  bool
	stop  chan struct{}
	ended chan struct{}
}

func newWatcher(id hal.LineID, l hal.Line, pin edgePin, clock func() time.Duration, post func(hal.Event)) (*watcher, error) {
	if err := pin.In(gpio.PullNoChange, gpio.BothEdges); err != nil {
		return nil, fmt.Errorf("%s line %d: %w", l.Chip, l.Offset, errorFromText(err))
	}
	w := &watcher{id: id, invert: l.ActiveLow, pin: pin, clock: clock, post: post,
		stop: make(chan struct{}), ended: make(chan struct{})}
	w.high = w.read()
	go w.run()
	return w, nil
}

func (w *watcher) read() bool { return bool(w.pin.Read()) != w.invert }

func (w *watcher) run() {
	defer close(w.ended)
	for {
		// 0 is forever here; -1 returns at once (periph/host #78).
		ok := w.pin.WaitForEdge(0)
		at := w.clock()
		select {
		case <-w.stop:
			return
		default:
		}
		if !ok {
			// Not halted and no edge: the line is gone. The last level stands.
			return
		}
		// periph counts edges but does not tell their direction; they
		// alternate. A short glitch is thus two edges, as it should be, and
		// not none.
		w.edge(at)
		for w.read() != w.level() {
			if w.pin.WaitForEdge(settleWait) {
				w.edge(w.clock())
				continue
			}
			if w.read() != w.level() { // the kernel dropped one
				w.edge(w.clock())
			}
		}
	}
}

func (w *watcher) level() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.high
}

func (w *watcher) edge(at time.Duration) {
	w.mu.Lock()
	w.high = !w.high
	high := w.high
	w.mu.Unlock()
	w.post(hal.Event{Edge: &hal.Edge{Line: w.id, High: high, At: at}})
}

func (w *watcher) shut() {
	close(w.stop)
	// Halt does nothing before the first WaitForEdge has set the line up, so
	// ask until the watcher is gone.
	for {
		_ = w.pin.Halt()
		t := time.NewTimer(settleWait)
		select {
		case <-w.ended:
			t.Stop()
			return
		case <-t.C:
		}
	}
}
