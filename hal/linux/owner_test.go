package linux

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"ringlight/hal"
)

func sinceStart() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// stop ends an owner whose wire has no file to close.
func stop(o *owner) {
	o.mu.Lock()
	o.closed = true
	o.work.Broadcast()
	o.mu.Unlock()
	<-o.ended
}

// gate is a wire that waits to be let through.
type gate struct {
	entered chan uint16
	open    chan error
	back    []byte
}

func (g *gate) transfer(m *hal.Msg) error {
	g.entered <- m.Addr
	err := <-g.open
	g.back = append(g.back[:0], make([]byte, len(m.R))...)
	for i := range g.back {
		g.back[i] = byte(m.Addr)
	}
	return err
}
func (g *gate) read() []byte { return g.back }
func (g *gate) close() error { return nil }

func gated(t *testing.T) (*owner, *gate, chan hal.Event) {
	t.Helper()
	g := &gate{entered: make(chan uint16), open: make(chan error)}
	events := make(chan hal.Event, 512)
	return newOwner(3, "gate", g, sinceStart(), func(ev hal.Event) { events <- ev }), g, events
}

// op has a deadline that a test on a busy machine keeps.
func op(class hal.Class, addrs ...uint16) *hal.Op {
	o := &hal.Op{Class: class, Deadline: time.Minute}
	for _, a := range addrs {
		o.Msgs = append(o.Msgs, hal.Msg{Addr: a, W: []byte{1}, R: make([]byte, 1)})
	}
	return o
}

func TestSwitchingGoesFirst(t *testing.T) {
	// Goal: work waits by class, and within a class in order; an op under way
	// is not broken into.
	o, g, events := gated(t)
	first := op(hal.ClassHousekeeping, 1, 2)
	submit(t, o, first)
	if got := <-g.entered; got != 1 {
		t.Fatal(got)
	}
	for i, c := range []hal.Class{hal.ClassHousekeeping, hal.ClassSafety, hal.ClassSwitch, hal.ClassVerify, hal.ClassSwitch} {
		submit(t, o, op(c, uint16(10+i)))
	}
	g.open <- nil
	for _, want := range []uint16{2, 12, 14, 13, 11, 10} {
		if got := <-g.entered; got != want {
			t.Errorf("address %d on the wire, want %d", got, want)
		}
		g.open <- nil
	}
	done := (<-events).Completion
	if done.Op != first || done.Err != nil || done.Bus != 3 || first.Msgs[1].R[0] != 2 || done.End < done.Start {
		t.Errorf("completion %+v, read %v", done, first.Msgs[1].R)
	}
	if err := o.shut(); err != nil {
		t.Error(err)
	}
	if err := o.submit(op(0, 1), nil); !errors.Is(err, hal.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestHangingBusDelaysNobody(t *testing.T) {
	// Goal: an op that the kernel does not end fails at its deadline, what
	// waits behind it at once, and the bus works again when the kernel lets go;
	// the late answer touches nothing.
	o, g, events := gated(t)
	hung := op(hal.ClassVerify, 5)
	hung.Deadline = time.Millisecond
	submit(t, o, hung)
	<-g.entered
	waiting := op(hal.ClassSwitch, 6)
	submit(t, o, waiting)
	if done := (<-events).Completion; done.Op != hung || !errors.Is(done.Err, hal.ErrTimeout) || done.End-done.Start < time.Millisecond {
		t.Fatalf("%+v", done)
	}
	if done := (<-events).Completion; done.Op != waiting || !errors.Is(done.Err, hal.ErrBusStuck) {
		t.Fatalf("%+v", done)
	}
	late := op(hal.ClassSwitch, 7)
	submit(t, o, late)
	if done := (<-events).Completion; done.Op != late || !errors.Is(done.Err, hal.ErrBusStuck) {
		t.Fatalf("%+v", done)
	}
	g.open <- nil // the kernel lets go
	after := op(hal.ClassSwitch, 8)
	// The owner may still be on its way out of the kernel: asked again, it
	// answers in the end.
	for {
		submit(t, o, after)
		var done *hal.Completion
		select {
		case addr := <-g.entered:
			if addr != 8 {
				t.Fatal(addr)
			}
			g.open <- nil
			done = (<-events).Completion
		case ev := <-events:
			done = ev.Completion
		}
		if done.Op != after {
			t.Fatalf("%+v", done)
		}
		if done.Err == nil {
			break
		}
	}
	if hung.Msgs[0].R[0] != 0 {
		t.Error("a transfer given up still wrote into its op")
	}
	o.shut()
}

func TestQueueAndFirstErrorAreBounded(t *testing.T) {
	o, g, events := gated(t)
	bad := op(hal.ClassSafety, 1, 2, 3)
	submit(t, o, bad)
	<-g.entered
	for range maxQueue {
		submit(t, o, op(hal.ClassHousekeeping, 9))
	}
	if err := o.submit(op(hal.ClassSwitch, 9), nil); !errors.Is(err, hal.ErrQueueFull) {
		t.Errorf("queue over its limit: %v", err)
	}
	if err := o.submit(&hal.Op{}, nil); !errors.Is(err, hal.ErrOutOfRange) {
		t.Errorf("an op of nothing: %v", err)
	}
	g.open <- nil
	<-g.entered
	g.open <- fmt.Errorf("wire: %w", hal.ErrByteNACK)
	if done := (<-events).Completion; done.Msg != 1 || !errors.Is(done.Err, hal.ErrByteNACK) {
		t.Errorf("%+v, want message 1 to have failed", done)
	}
	closing := make(chan error)
	<-g.entered
	go func() { closing <- o.shut() }()
	for n := 0; n < maxQueue-1; n++ { // all but the one under way end closed
		if done := (<-events).Completion; !errors.Is(done.Err, hal.ErrClosed) {
			t.Fatalf("%+v", done)
		}
	}
	g.open <- nil
	if err := <-closing; err != nil {
		t.Error(err)
	}
}

func submit(t *testing.T, o *owner, op *hal.Op) {
	t.Helper()
	if err := o.submit(op, nil); err != nil {
		t.Fatal(err)
	}
}
