package linux

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"periph.io/x/conn/v3/gpio"

	"ringlight/hal"
)

// sticky is a bus on which a chip holds the data line until it has seen so
// many clocks, or the clock itself for ever. It notes what the lines did.
type sticky struct {
	scl, sda  bool // pulled by us
	need      int  // clocks that the chip still wants; -1: for ever
	stretches bool // the chip holds the clock
	clocks    int
	stops     int
}

func (s *sticky) clock() bool { return !s.scl && !s.stretches }
func (s *sticky) data() bool  { return !s.sda && s.need == 0 }

// line is one of the two lines.
type line struct {
	gpio.PinIO
	bus   *sticky
	clock bool
}

func (l line) set(pulled bool) error {
	before, data := l.bus.clock(), l.bus.data()
	if l.clock {
		l.bus.scl = pulled
	} else {
		l.bus.sda = pulled
	}
	if after := l.bus.clock(); !before && after {
		l.bus.clocks++
		if l.bus.need > 0 {
			l.bus.need--
		}
	}
	if before && l.bus.clock() && !data && l.bus.data() {
		l.bus.stops++
	}
	return nil
}
func (l line) In(gpio.Pull, gpio.Edge) error { return l.set(false) }
func (l line) Out(level gpio.Level) error    { return l.set(level == gpio.Low) }
func (l line) Halt() error                   { return nil }
func (l line) Read() gpio.Level {
	if l.clock {
		return gpio.Level(l.bus.clock())
	}
	return gpio.Level(l.bus.data())
}

func recoveryOn(s *sticky) *recovery {
	return &recovery{scl: line{gpio.INVALID, s, true}, sda: line{gpio.INVALID, s, false}}
}

func TestNineClocksFreeABus(t *testing.T) {
	// Goal: a chip that is in the middle of a byte lets go after the clocks that
	// it still wants, a stop follows, and both lines are let go; a bus that is
	// free is not touched; a chip that never lets go, and one that holds the
	// clock, are named apart.
	for _, tc := range []struct {
		bus           sticky
		clocks, stops int
		err           error
	}{
		{bus: sticky{need: 1}, clocks: 1, stops: 1},
		{bus: sticky{need: 9}, clocks: 9, stops: 1},
		{bus: sticky{need: 0}},
		{bus: sticky{need: 10}, clocks: 9, err: hal.ErrBusStuck},
		{bus: sticky{need: -1}, clocks: 9, err: hal.ErrBusStuck},
		{bus: sticky{need: 3, stretches: true}, err: hal.ErrClockStretch},
	} {
		s := tc.bus
		n, err := recoveryOn(&s).free()
		if n != tc.clocks || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) || s.stops != tc.stops {
			t.Errorf("%+v: %d clocks, %d stops, %v; want %d, %d, %v", tc.bus, n, s.stops, err, tc.clocks, tc.stops, tc.err)
		}
		if s.scl || s.sda {
			t.Errorf("%+v: a line is still pulled", tc.bus)
		}
	}
}

func TestStuckBusIsFreedAndNamed(t *testing.T) {
	// Goal: an op that ends with a timeout on a bus whose data line is held says
	// so, frees the bus, and the next op works.
	// Method: a wire that times out for as long as the data line is low.
	s := &sticky{need: 4}
	g := &gate{entered: make(chan uint16), open: make(chan error)}
	events := make(chan hal.Event, 8)
	o := newOwner(3, "gate", g, sinceStart(), func(ev hal.Event) { events <- ev })
	o.recovery = recoveryOn(s)
	submit(t, o, op(hal.ClassHousekeeping, 5))
	<-g.entered
	g.open <- hal.ErrTimeout
	if done := (<-events).Completion; !errors.Is(done.Err, hal.ErrBusStuck) || errors.Is(done.Err, hal.ErrTimeout) {
		t.Errorf("first: %v", done.Err)
	}
	if s.clocks < 4 || s.need != 0 || s.stops != 1 {
		t.Errorf("bus after it: %+v", s)
	}
	submit(t, o, op(hal.ClassHousekeeping, 5))
	<-g.entered
	g.open <- nil
	if done := (<-events).Completion; done.Err != nil {
		t.Errorf("second: %v", done.Err)
	}
	if err := o.shut(); err != nil {
		t.Error(err)
	}
}

func TestHungKernelIsFreedByItsWatchdog(t *testing.T) {
	// Goal: while the kernel sits on a transfer, the watchdog names what holds
	// the bus and frees it, so that the kernel can come back.
	s := &sticky{need: 2}
	g := &gate{entered: make(chan uint16), open: make(chan error)}
	events := make(chan hal.Event, 8)
	o := newOwner(3, "gate", g, sinceStart(), func(ev hal.Event) { events <- ev })
	o.recovery = recoveryOn(s)
	hung := op(hal.ClassVerify, 5)
	hung.Deadline = time.Millisecond
	submit(t, o, hung)
	<-g.entered
	if done := (<-events).Completion; done.Op != hung || !errors.Is(done.Err, hal.ErrBusStuck) {
		t.Errorf("%+v", done)
	}
	for freed := false; !freed; { // the watchdog is on its way
		o.recovery.mu.Lock()
		freed = o.recovery.done > 0
		o.recovery.mu.Unlock()
	}
	g.open <- nil
	if err := o.shut(); err != nil && !errors.Is(err, hal.ErrBusStuck) {
		t.Error(err)
	}
}

func TestLinesOfABusComeInPairs(t *testing.T) {
	// Goal: a board that names one line of a bus, or lines of an SPI bus, is
	// refused.
	g := newFakeGPIO()
	l, other := &hal.Line{Chip: "gpiochip0", Offset: 1}, &hal.Line{Chip: "gpiochip0", Offset: 2}
	for _, b := range []hal.Bus{{Kind: hal.I2C, SCL: l}, {Kind: hal.I2C, SDA: l}, {Kind: hal.SPI, SCL: l, SDA: other}} {
		if r, err := recoveryOf(b, g.gpio()); !errors.Is(err, hal.ErrOutOfRange) || r != nil {
			t.Errorf("%+v: %v", b, err)
		}
	}
	if r, err := recoveryOf(hal.Bus{Kind: hal.I2C}, g.gpio()); r != nil || err != nil {
		t.Errorf("none: %v", err)
	}
	r, err := recoveryOf(hal.Bus{Kind: hal.I2C, SCL: l, SDA: other}, g.gpio())
	if err != nil {
		t.Fatal(err)
	}
	for _, pulled := range []bool{true, false} { // open drain: driven low, or an input
		do, flags := letGo, uint64(lineInput)
		if pulled {
			do, flags = pull, lineOutput
		}
		if err := do(r.scl); err != nil || g.config != flags {
			t.Errorf("pulled %v: flags %#x, %v", pulled, g.config, err)
		}
	}
	if g.levels = 1; !r.scl.Read() || r.cause() != nil {
		t.Error("a high line reads low")
	}
	r.close()
}

func TestLinesOfTheControllerAreNamed(t *testing.T) {
	// Goal: recovery lines that the bus's own controller holds are an error that
	// says so and what to do, whether the kernel names a holder, says only that
	// the line is in use, or its pin controller refuses with EINVAL.
	for _, tc := range []struct {
		holder string
		used   bool
		errno  syscall.Errno
		want   string
	}{
		{holder: "1e78a080.i2c-bus", used: true, want: "held by 1e78a080.i2c-bus"},
		{used: true, want: "held by another function of its pin"},
		{errno: syscall.EINVAL, want: "invalid argument"},
		{errno: syscall.EBUSY, want: "held by another function of its pin"},
	} {
		g := newFakeGPIO()
		g.used[1], g.holder, g.refuse = tc.used, tc.holder, tc.errno
		_, err := recoveryOf(hal.Bus{Kind: hal.I2C, SCL: &hal.Line{Name: "I2C0_SCL"}, SDA: &hal.Line{Chip: "gpiochip0", Offset: 2}}, g.gpio())
		if err == nil {
			t.Fatalf("%+v: taken", tc)
		}
		for _, want := range []string{"scl: I2C0_SCL: ", tc.want, "leave scl and sda out"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v: no %q", tc, err, want)
			}
		}
	}
}
