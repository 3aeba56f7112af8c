package linux

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"periph.io/x/conn/v3/gpio"

	"ringlight/hal"
)

// Board is an open board. Its lines, and the writes that answer them, are the
// work of one thread, which Attach makes out of the caller's; without one the
// lines say nothing but their Level.
type Board struct {
	born    time.Time
	epoch   time.Duration // the kernel's monotonic clock at born
	owners  []*owner      // by bus; those on the wires of another have its
	routes  []*route      // nil: the owner's own wires
	lines   []*lines
	foreign foreign
	latches []hal.BusID
	shared  []string
	thread  *thread
	prompt  *hal.Prompt // nil: no thread is attached

	post   sync.Mutex // events are given out one at a time
	events func(hal.Event)
}

// Open opens every bus and line of a board; completions are given to events
// one after the other, from several goroutines. On an error nothing stays open, and the
// error names every bus and line that could not be had.
func Open(board *hal.Board, events func(hal.Event)) (*Board, error) {
	return open(board, events, func(i hal.BusID) (wire, error) { return openWire(board, i) }, realGPIO())
}

func openWire(board *hal.Board, i hal.BusID) (wire, error) {
	b := board.Buses[i]
	switch b.Kind {
	case hal.I2C:
		if len(b.Lines) > 0 {
			return openLatch(b.Lines, realGPIO().pinIO)
		}
		if err := checkAdapter(sysDevices, &b); err != nil {
			return nil, err
		}
		bus, err := i2cOf(b.Device)
		if err != nil {
			return nil, err
		}
		return &i2cWire{bus: bus}, nil
	case hal.SPI:
		if b.Bridge != nil {
			return openBridge(board.Buses[b.Root].Device, &b, func(sel uint16) uint8 { return board.SPIMode(i, sel) })
		}
		return spiOf(b, func(sel uint16) uint8 { return board.SPIMode(i, sel) })
	case hal.TextLine:
		return openText(&b)
	}
	return nil, fmt.Errorf("%w: kind %d", hal.ErrUnsupported, b.Kind)
}

func open(board *hal.Board, events func(hal.Event), wires func(hal.BusID) (wire, error), pins *gpioChips) (*Board, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return nil, fmt.Errorf("linux: clock: %w", err)
	}
	o := &Board{born: time.Now(), epoch: time.Duration(ts.Nano()), events: events}
	for _, l := range board.Latches {
		o.latches = append(o.latches, l.Bus)
	}
	var errs []error
	var err error
	if o.shared, err = bound(sysDevices, board); err != nil {
		errs = append(errs, err)
	}
	for i, bus := range board.Buses {
		if len(bus.Via) > 0 {
			o.owners, o.routes = append(o.owners, nil), append(o.routes, routeOf(hal.BusID(i), bus.Via))
			continue
		}
		o.routes = append(o.routes, nil)
		w, err := wires(hal.BusID(i))
		if err != nil {
			errs = append(errs, fmt.Errorf("linux: bus %d %s: %w", i, bus.Device, err))
			o.owners = append(o.owners, nil)
			continue
		}
		own := newOwner(hal.BusID(i), bus.Device, w, o.Now, o.give)
		o.owners = append(o.owners, own)
		if own.recovery, err = recoveryOf(bus, pins); err != nil {
			errs = append(errs, fmt.Errorf("linux: bus %d %s: %w", i, bus.Device, err))
		}
	}
	for i, bus := range board.Buses {
		if len(bus.Via) > 0 {
			o.owners[i] = o.owners[bus.Root]
		}
	}
	o.foreign = foreign{now: o.Now, epoch: o.epoch, wake: o.Wake}
	if o.lines, err = pins.watch(board.Lines, o.Now, &o.foreign); err != nil {
		errs = append(errs, err)
	}
	if o.thread, err = newThread(o); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		o.Close()
		return nil, errors.Join(errs...)
	}
	o.foreign.start()
	return o, nil
}

// recoveryOf is nil for a bus without lines of its own.
func recoveryOf(bus hal.Bus, pins *gpioChips) (*recovery, error) {
	if bus.SCL == nil && bus.SDA == nil {
		return nil, nil
	}
	if bus.Kind != hal.I2C || bus.SCL == nil || bus.SDA == nil {
		return nil, fmt.Errorf("%w: lines to free a bus: want SCL and SDA, of an I2C bus", hal.ErrOutOfRange)
	}
	var wires [2]gpio.PinIO
	for i, l := range []*hal.Line{bus.SCL, bus.SDA} {
		var err error
		if wires[i], err = pins.wire(*l); err != nil {
			if i > 0 {
				_ = wires[0].Halt()
			}
			return nil, fmt.Errorf("%s: %w", [...]string{"scl", "sda"}[i], err)
		}
	}
	return &recovery{scl: wires[0], sda: wires[1]}, nil
}

func (o *Board) give(ev hal.Event) {
	o.post.Lock()
	defer o.post.Unlock()
	o.events(ev)
	o.Wake()
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
	return o.owners[bus].submit(op, o.routes[bus])
}

// Level is the level that the edges of a line have led to; it is for the
// thread that waits for them.
func (o *Board) Level(line hal.LineID) (bool, error) {
	for _, w := range o.lines {
		for i := range w.inputs {
			if w.inputs[i].id == line {
				return w.inputs[i].high, nil
			}
		}
	}
	if high, ok := o.foreign.level(line); ok {
		return high, nil
	}
	return false, fmt.Errorf("linux: line %d: %w", line, hal.ErrNoDevice)
}

// LostEdges is how many edges the kernel had no room for; it is for the thread
// that waits for them.
func (o *Board) LostEdges() (n uint64) {
	for _, w := range o.lines {
		n += w.lost
	}
	return n
}

// Shared names the chips that a driver of the kernel reads beside us.
func (o *Board) Shared() []string { return o.shared }

// Close lets go of the devices and leaves every level as it is.
func (o *Board) Close() error {
	var errs []error
	for _, w := range o.lines {
		w.close()
	}
	errs = append(errs, o.foreign.close())
	for i, w := range o.owners {
		if w != nil && o.routes[i] == nil {
			errs = append(errs, w.shut())
		}
	}
	if o.thread != nil {
		o.thread.close()
	}
	return errors.Join(errs...)
}
