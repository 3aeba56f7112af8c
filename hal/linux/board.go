package linux

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"ringlight/hal"
)

// Board is an open board.
type Board struct {
	born   time.Time
	owners []*owner
	lines  []*watcher

	post   sync.Mutex // events are given out one at a time
	events func(hal.Event)
}

// Open opens every bus and line of a board; events are called one after the
// other, from several goroutines. On an error nothing stays open, and the
// error names every bus and line that could not be had.
func Open(board *hal.Board, events func(hal.Event)) (*Board, error) {
	return open(board, events, openWire, findPin)
}

func openWire(b hal.Bus) (wire, error) {
	switch b.Kind {
	case hal.I2C:
		return openI2C(b.Device)
	case hal.SPI:
		return openSPI(b.Device, b.Speed)
	case hal.TextLine:
		return openText(b.Device)
	}
	return nil, fmt.Errorf("%w: kind %d", hal.ErrUnsupported, b.Kind)
}

func open(board *hal.Board, events func(hal.Event), wires func(hal.Bus) (wire, error), pins func(hal.Line) (edgePin, error)) (*Board, error) {
	o := &Board{born: time.Now(), events: events}
	var errs []error
	for i, bus := range board.Buses {
		w, err := wires(bus)
		if err != nil {
			errs = append(errs, fmt.Errorf("linux: bus %d %s: %w", i, bus.Device, err))
			continue
		}
		own := newOwner(hal.BusID(i), bus.Device, w, o.Now, o.give)
		o.owners = append(o.owners, own)
		if own.recovery, err = recoveryOf(bus, pins); err != nil {
			errs = append(errs, fmt.Errorf("linux: bus %d %s: %w", i, bus.Device, err))
		}
	}
	for i, l := range board.Lines {
		pin, err := pins(l)
		if err != nil {
			errs = append(errs, fmt.Errorf("linux: line %d: %w", i, err))
			continue
		}
		w, err := newWatcher(hal.LineID(i), l, pin, o.Now, o.give)
		if err != nil {
			errs = append(errs, fmt.Errorf("linux: line %d: %w", i, err))
			continue
		}
		o.lines = append(o.lines, w)
	}
	if len(errs) > 0 {
		o.Close()
		return nil, errors.Join(errs...)
	}
	return o, nil
}

// recoveryOf is nil for a bus without lines of its own.
func recoveryOf(bus hal.Bus, pins func(hal.Line) (edgePin, error)) (*recovery, error) {
	if bus.SCL == nil && bus.SDA == nil {
		return nil, nil
	}
	if bus.Kind != hal.I2C || bus.SCL == nil || bus.SDA == nil {
		return nil, fmt.Errorf("%w: lines to free a bus: want SCL and SDA, of an I2C bus", hal.ErrOutOfRange)
	}
	var wires [2]wirePin
	for i, l := range []*hal.Line{bus.SCL, bus.SDA} {
		pin, err := pins(*l)
		if err != nil {
			return nil, err
		}
		w, ok := pin.(wirePin)
		if !ok {
			return nil, fmt.Errorf("%w: %s line %d cannot be driven", hal.ErrUnsupported, l.Chip, l.Offset)
		}
		wires[i] = w
	}
	return newRecovery(wires[0], wires[1])
}

func (o *Board) give(ev hal.Event) {
	o.post.Lock()
	defer o.post.Unlock()
	o.events(ev)
}

// Now is the time since the board was opened; completions and edges carry it.
func (o *Board) Now() time.Duration { return time.Since(o.born) }

// Submit queues op for its bus and never blocks: the completion comes as an
// event, never from inside Submit. It fails only when the bus does not exist or
// its queue is full.
func (o *Board) Submit(bus hal.BusID, op *hal.Op) error {
	if int(bus) >= len(o.owners) {
		return fmt.Errorf("linux: bus %d: %w", bus, hal.ErrNoDevice)
	}
	return o.owners[bus].submit(op)
}

// Level is the level that the edges of a line have led to.
func (o *Board) Level(line hal.LineID) (bool, error) {
	if int(line) >= len(o.lines) {
		return false, fmt.Errorf("linux: line %d: %w", line, hal.ErrNoDevice)
	}
	return o.lines[line].level(), nil
}

// Close lets go of the devices and leaves every level as it is.
func (o *Board) Close() error {
	var errs []error
	for _, w := range o.lines {
		w.shut()
	}
	for _, w := range o.owners {
		errs = append(errs, w.shut())
	}
	return errors.Join(errs...)
}
