package socket

import (
	"encoding/binary"
	"net"
	"sync"
	"time"

	"ringlight/hal"
	"ringlight/proto/limit"
)

// Board is what a Server serves.
type Board interface {
	Submit(bus hal.BusID, op *hal.Op) error
	Level(line hal.LineID) (bool, error)
	Now() time.Duration
}

// Limits of one client at the server. chosen: more than a node ever has under
// way; a client that does not read is dropped, for it would hold up the
// board.
const (
	maxOutstanding = 1024
	maxUnsent      = 4096
)

// Server lets one client at a time drive a board. Give Event to whatever
// opens the board.
type Server struct {
	mu      sync.Mutex
	current *session
	pending map[*hal.Op]ticket
}

type ticket struct {
	to *session
	id uint64
}

// connections: whoever does not greet is let go. A write takes long only when
// the client has stopped.
var connections = limit.Connections{Max: 8, First: 5 * time.Second, Write: 10 * time.Second}

// NewServer makes a server without a client.
func NewServer() *Server { return &Server{pending: map[*hal.Op]ticket{}} }

// Event passes on what the board tells.
func (s *Server) Event(ev hal.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done := ev.Completion; done != nil {
		t, ok := s.pending[done.Op]
		delete(s.pending, done.Op)
		if ok && t.to == s.current {
			t.to.send(appendComplete(nil, t.id, done))
		}
	}
	if ev.Edge != nil && s.current != nil {
		s.current.send(appendEdge(nil, ev.Edge))
	}
}

// Serve accepts clients until the listener is closed, which is no error.
func (s *Server) Serve(in net.Listener, board Board) error {
	defer s.take(nil)
	for l := limit.Listen(in, connections, nil); ; {
		conn, err := l.Accept()
		if err != nil {
			return nil // closed
		}
		c := &session{conn: limit.Of(conn), out: make(chan []byte, maxUnsent), over: make(chan struct{})}
		go c.write()
		go s.read(c, board)
	}
}

// take makes c the one client and drops the former.
func (s *Server) take(c *session) {
	s.mu.Lock()
	old := s.current
	s.current = c
	s.mu.Unlock()
	if old != nil {
		old.close()
	}
}

func (s *Server) leave(c *session) {
	s.mu.Lock()
	if s.current == c {
		s.current = nil
	}
	s.mu.Unlock()
	c.close()
}

func (s *Server) read(c *session, board Board) {
	defer s.leave(c)
	var buf []byte
	greeted := false
	for {
		kind, body, grown, err := readFrame(c.conn, buf)
		if err != nil {
			return
		}
		buf = grown
		switch {
		case kind == frameHello && len(body) == 1 && body[0] == version:
			if !greeted {
				greeted = true
				c.conn.Admit()
				s.take(c)
			}
			c.send(end(binary.BigEndian.AppendUint64(append(begin(nil, frameHello), version), uint64(board.Now()))))
		case kind == frameSubmit && greeted:
			if s.submit(c, board, body) != nil {
				return
			}
		case kind == frameLevel && greeted && len(body) == 2:
			line := binary.BigEndian.Uint16(body)
			high, err := board.Level(hal.LineID(line))
			b := binary.BigEndian.AppendUint16(begin(nil, frameLevel), line)
			c.send(end(appendError(append(b, bit(high)), err)))
		default:
			return
		}
	}
}

func (s *Server) submit(c *session, board Board, body []byte) error {
	id, bus, op, err := decodeSubmit(body)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if len(s.pending) >= maxOutstanding {
		err = hal.ErrQueueFull
	} else {
		s.pending[op] = ticket{c, id}
	}
	s.mu.Unlock()
	if err == nil {
		// Not under the lock: the board may call Event from within.
		if err = board.Submit(bus, op); err != nil {
			s.mu.Lock()
			delete(s.pending, op)
			s.mu.Unlock()
		}
	}
	if err != nil {
		now := board.Now()
		c.send(appendComplete(nil, id, &hal.Completion{Bus: bus, Op: op, Start: now, End: now, Err: err}))
	}
	return nil
}

// session is one client's connection.
type session struct {
	conn *limit.Conn
	out  chan []byte
	once sync.Once
	over chan struct{}
}

func (c *session) send(frame []byte) {
	select {
	case c.out <- frame:
	default:
		c.close()
	}
}

func (c *session) write() {
	for {
		select {
		case frame := <-c.out:
			if _, err := c.conn.Write(frame); err != nil {
				c.close()
				return
			}
		case <-c.over:
			return
		}
	}
}

func (c *session) close() {
	c.once.Do(func() {
		close(c.over)
		c.conn.Close()
	})
}
