package socket

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"ringlight/hal"
)

// fakeBoard answers every op with its own bytes turned over, or with an
// error for address 0x7f; ops for bus 1 wait until released.
type fakeBoard struct {
	mu     sync.Mutex
	events func(hal.Event)
	held   []*hal.Op
	now    time.Duration
}

func (b *fakeBoard) Now() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now += time.Microsecond
	return b.now
}

func (b *fakeBoard) Level(l hal.LineID) (bool, error) {
	if l > 7 {
		return false, hal.ErrNoDevice
	}
	return l%2 == 1, nil
}

func (b *fakeBoard) Submit(bus hal.BusID, op *hal.Op) error {
	switch bus {
	case 0:
		go b.finish(bus, op)
	case 1:
		b.mu.Lock()
		b.held = append(b.held, op)
		b.mu.Unlock()
	default:
		return fmt.Errorf("fake: bus %d: %w", bus, hal.ErrNoDevice)
	}
	return nil
}

func (b *fakeBoard) finish(bus hal.BusID, op *hal.Op) {
	done := &hal.Completion{Bus: bus, Op: op, Start: b.Now(), End: b.Now()}
	for i, m := range op.Msgs {
		if m.Addr == 0x7f {
			done.Msg, done.Err = i, fmt.Errorf("fake: %w", hal.ErrAddressNACK)
			break
		}
		for k := range m.R {
			m.R[k] = ^m.W[k%len(m.W)]
		}
	}
	b.events(hal.Event{Completion: done})
}

func (b *fakeBoard) release() {
	b.mu.Lock()
	held := b.held
	b.held = nil
	b.mu.Unlock()
	for _, op := range held {
		b.finish(1, op)
	}
}

func start(t *testing.T) (*fakeBoard, *Server, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "board")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer()
	b := &fakeBoard{events: s.Event}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, b) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return b, s, path
}

func dial(t *testing.T, path string) (*Client, chan hal.Event) {
	t.Helper()
	events := make(chan hal.Event, 64)
	c, err := Dial(path, func(ev hal.Event) { events <- ev })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, events
}

func next(t *testing.T, events chan hal.Event) hal.Event {
	t.Helper()
	select {
	case ev := <-events:
		return ev
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
	return hal.Event{}
}

func TestBoardBehindASocketWorksLikeOneInProcess(t *testing.T) {
	// Goal: bytes, times, errors and edges come through unchanged.
	// Method: ops of every shape against a fake board.
	b, s, path := start(t)
	c, events := dial(t, path)
	op := &hal.Op{Token: 7, Class: hal.ClassVerify, Msgs: []hal.Msg{
		{Addr: 0x10, W: []byte{1, 2, 3}, R: make([]byte, 5)},
		{Addr: 0x11, Frame: 3, W: []byte{9, 8, 7}},
	}}
	if err := c.Submit(0, op); err != nil {
		t.Fatal(err)
	}
	done := next(t, events).Completion
	if done == nil || done.Op != op || done.Err != nil || done.End <= done.Start || done.Op.Token != 7 {
		t.Fatalf("completion %+v", done)
	}
	if want := []byte{254, 253, 252, 254, 253}; !bytes.Equal(op.Msgs[0].R, want) {
		t.Errorf("read %v, want %v", op.Msgs[0].R, want)
	}
	if now := c.Now(); now < done.End {
		t.Errorf("the client's clock %v is behind the board's %v", now, done.End)
	}

	bad := &hal.Op{Msgs: []hal.Msg{{Addr: 1, W: []byte{1}}, {Addr: 0x7f, W: []byte{1}}}}
	if err := c.Submit(0, bad); err != nil {
		t.Fatal(err)
	}
	if done = next(t, events).Completion; done.Msg != 1 || !errors.Is(done.Err, hal.ErrAddressNACK) {
		t.Errorf("completion %+v, want address NACK of message 1", done)
	}
	if err := c.Submit(9, &hal.Op{}); err != nil {
		t.Fatal(err)
	}
	if done = next(t, events).Completion; !errors.Is(done.Err, hal.ErrNoDevice) {
		t.Errorf("bus 9: %v", done.Err)
	}
	for line, want := range map[hal.LineID]error{3: nil, 2: nil, 8: hal.ErrNoDevice} { // any order: independent questions
		high, err := c.Level(line)
		if !errors.Is(err, want) || err == nil && high != (line%2 == 1) {
			t.Errorf("line %d: %v, %v", line, high, err)
		}
	}
	edge := hal.Edge{Line: 5, High: true, At: 11 * time.Microsecond, Origin: 3 * time.Microsecond}
	s.Event(hal.Event{Edge: &edge})
	if got := next(t, events).Edge; got == nil || *got != edge {
		t.Errorf("edge %+v, want %+v", got, edge)
	}
	_ = b
}

func TestNewClientTakesOver(t *testing.T) {
	// Goal: killing an agent does not hurt its board; the next one drives it,
	// and gets nothing of the former's work.
	// Method: a client leaves an op on the bus, a second one connects.
	b, _, path := start(t)
	first, events1 := dial(t, path)
	left := &hal.Op{Msgs: []hal.Msg{{Addr: 1, W: []byte{1}}}}
	if err := first.Submit(1, left); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Level(1); err != nil { // the submit has arrived
		t.Fatal(err)
	}
	second, events2 := dial(t, path)
	if done := next(t, events1).Completion; done == nil || done.Op != left || !errors.Is(done.Err, hal.ErrNoDevice) {
		t.Fatalf("the former's op ended with %+v", done)
	}
	if err := first.Submit(0, left); !errors.Is(err, hal.ErrClosed) {
		t.Errorf("submit of the former: %v", err)
	}
	<-first.Lost()
	b.release()
	op := &hal.Op{Msgs: []hal.Msg{{Addr: 1, W: []byte{1}, R: make([]byte, 1)}}}
	if err := second.Submit(0, op); err != nil {
		t.Fatal(err)
	}
	if done := next(t, events2).Completion; done.Op != op || done.Err != nil {
		t.Fatalf("the second's op ended with %+v", done)
	}
}

func TestServerRefusesWhatIsNotAFrame(t *testing.T) {
	// Goal: nonsense costs its sender the connection and nobody anything else.
	// Method: bytes sent raw; the server must hang up.
	_, _, path := start(t)
	for name, raw := range map[string][]byte{ // any order: one connection each
		"length over the limit": {0, 2, 0, 0, 1},
		"no hello":              {0, 0, 0, 3, frameLevel, 0, 0},
		"other version":         {0, 0, 0, 2, frameHello, version + 1},
		"unknown kind":          {0, 0, 0, 1, 99},
		"empty frame":           {0, 0, 0, 0},
	} {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		conn.Write(raw)
		if n, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, errTimeout(err)) {
			t.Errorf("%s: read %d, %v; want the connection closed", name, n, err)
		}
		conn.Close()
	}
	c, _ := dial(t, path)
	if _, err := c.Level(1); err != nil {
		t.Errorf("after the nonsense: %v", err)
	}
}

// errTimeout returns err when it is a timeout.
func errTimeout(err error) error {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return err
	}
	return errors.New("another error")
}

func TestCausesSurviveTheWire(t *testing.T) {
	for i, cause := range []error{nil, hal.ErrNoDevice, hal.ErrAddressNACK, hal.ErrByteNACK, hal.ErrClockStretch,
		hal.ErrTimeout, hal.ErrBusStuck, hal.ErrArbitrationLost, hal.ErrCRC, hal.ErrOutOfRange,
		hal.ErrUnsupported, hal.ErrQueueFull, hal.ErrQuarantined, hal.ErrClosed, hal.ErrRelieved, hal.ErrInUse} {
		code := hal.CauseNumber(cause)
		if int(code) != i {
			t.Errorf("cause %v has number %d, want %d", cause, code, i)
		}
		wrapped := cause
		if cause != nil {
			wrapped = fmt.Errorf("i2c 3: 0x10: %w", cause)
		}
		b := appendError(nil, wrapped)
		got := errorOf(b[0], string(b[3:]))
		if !errors.Is(got, cause) || cause != nil && got.Error() != wrapped.Error() {
			t.Errorf("%v came back as %v", wrapped, got)
		}
	}
}

func FuzzDecodeSubmit(f *testing.F) {
	frame, err := appendSubmit(nil, 3, 1, &hal.Op{Class: hal.ClassSafety, Deadline: time.Second,
		Msgs: []hal.Msg{{Addr: 0x20, W: []byte{1, 2}, R: make([]byte, 2)}, {Addr: 1, Frame: 3, W: make([]byte, 6), R: make([]byte, 6)}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(frame[5:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		id, bus, op, err := decodeSubmit(body)
		if err != nil {
			return
		}
		again, err := appendSubmit(nil, id, bus, op)
		if err != nil || !bytes.Equal(again[5:], body) {
			t.Fatalf("decoded %x, encoded again %x (%v)", body, again, err)
		}
	})
}

func FuzzDecodeComplete(f *testing.F) {
	op := &hal.Op{Msgs: []hal.Msg{{R: []byte{1, 2, 3}}}}
	f.Add(appendComplete(nil, 9, &hal.Completion{Op: op, Start: 1, End: 2, Msg: 1, Err: hal.ErrTimeout})[5:])
	f.Fuzz(func(t *testing.T, body []byte) {
		h, err := decodeComplete(body)
		if err == nil && len(h.read) > len(body) {
			t.Fatalf("%d bytes read from a body of %d", len(h.read), len(body))
		}
	})
}

func FuzzReadFrame(f *testing.F) {
	f.Add(binary.BigEndian.AppendUint32(nil, 1))
	f.Add([]byte{0, 0, 0, 2, 1, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, body, _, err := readFrame(bytes.NewReader(raw), nil)
		if err == nil && len(body) > maxFrame {
			t.Fatalf("body of %d bytes", len(body))
		}
	})
}
