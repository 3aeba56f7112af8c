package limit

import (
	"container/list"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Connections says what connections may cost.
type Connections struct {
	Max int // at once
	// First is how long one may take until Admit, TLS included.
	First time.Duration
	// Write is how long one write may take.
	Write time.Duration
}

// Listener is a listener that outlives a shortage of descriptors. Of the
// connections that nobody has admitted yet, the oldest makes room for another
// when there is none: whoever comes in earnest is admitted at once.
type Listener struct {
	net.Listener
	limits Connections
	log    *slog.Logger
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	open    int
	waiting list.List // of *Conn, the oldest first
}

// Listen bounds the connections of a listener. It logs what it refuses.
func Listen(l net.Listener, limits Connections, log *slog.Logger) *Listener {
	return &Listener{Listener: l, limits: limits, log: Logger(log), closed: make(chan struct{})}
}

// The rests after a failure to accept. chosen: descriptors come back when
// others are closed, at the latest after Connections.First.
const (
	shortestRest = 5 * time.Millisecond
	longestRest  = time.Second
)

// Accept tries again, less and less often, until the listener is closed; every
// other error passes.
func (l *Listener) Accept() (net.Conn, error) {
	rest := shortestRest
	for {
		conn, err := l.Listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			made := l.makeRoom()
			l.log.Error("cannot accept a connection, trying again", "at", l.Addr().String(), "error", err, "made_room", made)
			if made {
				continue
			}
			select {
			case <-time.After(rest):
			case <-l.closed:
			}
			rest = min(2*rest, longestRest)
			continue
		}
		rest = shortestRest
		if c := l.take(conn); c != nil {
			return c, nil
		}
	}
}

// Close ends Accept, too, while it rests.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// take counts a connection in, or closes it when there is no room.
func (l *Listener) take(conn net.Conn) *Conn {
	l.mu.Lock()
	full := l.open >= l.limits.Max
	l.mu.Unlock()
	if full && !l.makeRoom() {
		conn.Close()
		l.log.Error("too many connections, a new one is refused", "at", l.Addr().String(), "limit", l.limits.Max)
		return nil
	}
	conn.SetDeadline(time.Now().Add(l.limits.First))
	c := &Conn{Conn: conn, from: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	c.place = l.waiting.PushBack(c)
	return c
}

// makeRoom closes the oldest connection that nobody has admitted.
func (l *Listener) makeRoom() bool {
	l.mu.Lock()
	first := l.waiting.Front()
	l.mu.Unlock()
	if first == nil {
		return false
	}
	first.Value.(*Conn).Reset()
	return true
}

// Open is how many connections there are.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Conn is a connection of a Listener. It ends with the first write that its
// peer does not take in time.
type Conn struct {
	net.Conn
	from  *Listener
	once  sync.Once
	place *list.Element // among those that wait; nil: admitted or closed
}

// Of is the Conn under a connection, TLS or not, nil for one that is not a
// Listener's.
func Of(conn net.Conn) *Conn {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c, _ := conn.(*Conn)
	return c
}

// Admit says that the peer has said what it wants: it may stay.
func (c *Conn) Admit() {
	if c.leave() {
		c.Conn.SetDeadline(time.Time{})
	}
}

// leave takes it from those that wait and reports whether it was there.
func (c *Conn) leave() bool {
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	if c.place == nil {
		return false
	}
	c.from.waiting.Remove(c.place)
	c.place = nil
	return true
}

func (c *Conn) Write(p []byte) (int, error) {
	c.Conn.SetWriteDeadline(time.Now().Add(c.from.limits.Write))
	n, err := c.Conn.Write(p)
	if err != nil {
		c.Reset()
	}
	return n, err
}

// Reset closes without waiting for what the peer has not read: the kernel
// would keep it for minutes.
func (c *Conn) Reset() {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}

func (c *Conn) Close() error {
	c.once.Do(func() {
		c.leave()
		c.from.mu.Lock()
		c.from.open--
		c.from.mu.Unlock()
	})
	return c.Conn.Close()
}
