package socket

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sort"
	"sync"
	"time"

	"ringlight/hal"
)

// greetings is how often a client asks for the server's clock; the quickest
// answer counts.
const greetings = 5

// patience bounds every wait for the server outside of bus work, which has
// deadlines of its own at the board.
const patience = 2 * time.Second

// Client drives a board behind a socket.
type Client struct {
	conn   net.Conn
	events func(hal.Event)
	born   time.Time
	offset time.Duration // board clock minus time since born

	mu      sync.Mutex
	next    uint64
	pending map[uint64]pendingOp
	levels  map[hal.LineID][]chan levelReply
	buf     []byte
	closed  bool
	over    chan struct{}
}

type pendingOp struct {
	bus hal.BusID
	op  *hal.Op
}

type levelReply struct {
	high bool
	err  error
}

// Dial connects to the board behind the unix socket at path. Events are
// called from one goroutine, one after the other. When the connection is
// lost, all work under way completes with hal.ErrNoDevice.
func Dial(path string, events func(hal.Event)) (*Client, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	c := &Client{conn: conn, events: events, born: time.Now(),
		pending: map[uint64]pendingOp{}, levels: map[hal.LineID][]chan levelReply{}, over: make(chan struct{})}
	r := bufio.NewReader(conn)
	early, err := c.greet(r)
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("socket: %s: %w", path, err)
	}
	go c.read(r, early)
	return c, nil
}

// greet learns the board's clock. The offset is taken from the moment before
// the question, so that our clock is never behind the board's: nothing may
// seem to come from the future.
func (c *Client) greet(r io.Reader) (early []hal.Event, err error) {
	c.conn.SetDeadline(time.Now().Add(patience))
	defer c.conn.SetDeadline(time.Time{})
	best := time.Duration(-1)
	for range greetings {
		asked := time.Since(c.born)
		if _, err := c.conn.Write(end(append(begin(nil, frameHello), version))); err != nil {
			return nil, err
		}
		for answered := false; !answered; {
			kind, body, _, err := readFrame(r, nil)
			switch {
			case err != nil:
				return nil, err
			case kind == frameEdge: // the board does not wait for our clock
				e, err := decodeEdge(body)
				if err != nil {
					return nil, err
				}
				early = append(early, hal.Event{Edge: e})
			case kind != frameHello || len(body) != 9 || body[0] != version:
				return nil, fmt.Errorf("%w: not the greeting of version %d", errFrame, version)
			default:
				answered = true
				if took := time.Since(c.born) - asked; best < 0 || took < best {
					best, c.offset = took, time.Duration(binary.BigEndian.Uint64(body[1:]))-asked
				}
			}
		}
	}
	return early, nil
}

// Now is the board's monotonic clock, at most one round trip ahead of it.
func (c *Client) Now() time.Duration { return time.Since(c.born) + c.offset }

// Submit sends op to the board; the completion comes as an event.
func (c *Client) Submit(bus hal.BusID, op *hal.Op) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return hal.ErrClosed
	}
	if len(c.pending) >= maxOutstanding {
		return hal.ErrQueueFull
	}
	c.next++
	frame, err := appendSubmit(c.buf, c.next, bus, op)
	if err != nil {
		return err
	}
	c.buf = frame
	c.pending[c.next] = pendingOp{bus, op}
	c.conn.SetWriteDeadline(time.Now().Add(patience))
	if _, err := c.conn.Write(frame); err != nil {
		delete(c.pending, c.next)
		return fmt.Errorf("socket: %w: %w", hal.ErrNoDevice, err)
	}
	return nil
}

// Level asks for the level of a line as it is now.
func (c *Client) Level(line hal.LineID) (bool, error) {
	answer := make(chan levelReply, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return false, hal.ErrClosed
	}
	c.levels[line] = append(c.levels[line], answer)
	c.conn.SetWriteDeadline(time.Now().Add(patience))
	_, err := c.conn.Write(end(binary.BigEndian.AppendUint16(begin(nil, frameLevel), uint16(line))))
	c.mu.Unlock()
	if err != nil {
		return false, fmt.Errorf("socket: %w: %w", hal.ErrNoDevice, err)
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case a := <-answer:
		return a.high, a.err
	case <-t.C:
		return false, fmt.Errorf("socket: level of line %d: %w", line, hal.ErrTimeout)
	}
}

// Lost is closed when the board is out of reach: its process ended, or another
// client took over.
func (c *Client) Lost() <-chan struct{} { return c.over }

// Close leaves the board as it is.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	return c.conn.Close()
}

func (c *Client) read(r io.Reader, early []hal.Event) {
	for _, ev := range early {
		c.events(ev)
	}
	var buf []byte
	var err error
	for err == nil {
		var kind byte
		var body []byte
		if kind, body, buf, err = readFrame(r, buf); err != nil {
			break
		}
		switch kind {
		case frameComplete:
			err = c.complete(body)
		case frameEdge:
			var e *hal.Edge
			if e, err = decodeEdge(body); err == nil {
				c.events(hal.Event{Edge: e})
			}
		case frameLevel:
			err = c.level(body)
		default:
			err = errFrame
		}
	}
	c.lost()
}

func (c *Client) complete(body []byte) error {
	h, err := decodeComplete(body)
	if err != nil {
		return err
	}
	c.mu.Lock()
	p, ok := c.pending[h.id]
	delete(c.pending, h.id)
	c.mu.Unlock()
	if !ok {
		return fmt.Errorf("%w: completion of unknown op %d", errFrame, h.id)
	}
	want := 0
	for i := range p.op.Msgs {
		want += len(p.op.Msgs[i].R)
	}
	if len(h.read) != want {
		err = errFrame
		h.err = fmt.Errorf("socket: %d bytes read, want %d: %w", len(h.read), want, hal.ErrNoDevice)
	} else {
		for i := range p.op.Msgs {
			h.read = h.read[copy(p.op.Msgs[i].R, h.read):]
		}
	}
	c.events(hal.Event{Completion: &hal.Completion{Bus: p.bus, Op: p.op, Start: h.start, End: h.end, Msg: h.msg, Err: h.err}})
	return err
}

func (c *Client) level(body []byte) error {
	cur := cursor{b: body}
	line, high, code := hal.LineID(cur.u16()), cur.u8() == 1, cur.u8()
	text := cur.take(int(cur.u16()))
	if err := cur.done(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if waiting := c.levels[line]; len(waiting) > 0 {
		waiting[0] <- levelReply{high, errorOf(code, string(text))}
		c.levels[line] = waiting[1:]
	}
	return nil
}

// lost ends all work that the board can no longer end.
func (c *Client) lost() {
	c.mu.Lock()
	asked := !c.closed
	c.closed = true
	pending := c.pending
	c.pending = map[uint64]pendingOp{}
	levels := c.levels
	c.levels = map[hal.LineID][]chan levelReply{}
	c.mu.Unlock()
	c.conn.Close()
	err := hal.ErrClosed
	if asked {
		err = hal.ErrNoDevice
	}
	for _, waiting := range levels {
		for _, w := range waiting {
			w <- levelReply{err: err}
		}
	}
	ids := make([]uint64, 0, len(pending))
	for id := range pending {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	now := c.Now()
	for _, id := range ids {
		p := pending[id]
		c.events(hal.Event{Completion: &hal.Completion{Bus: p.bus, Op: p.op, Start: now, End: now, Err: err}})
	}
	close(c.over)
}
