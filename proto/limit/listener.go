package limit

import (
	"container/list"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
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

// Listener is a listener that outlives a shortage of descriptors. When there is
// no room for another connection, the peer that has most makes it: of those that
// are idle, or not admitted yet, the one that waits longest, and where there is none
// its oldest. A new connection takes none that is in use, or has just begun, from a peer
// that has less. So one address cannot take all the room, and one that is alone has it.
type Listener struct {
	net.Listener
	limits Connections
	log    *slog.Logger
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	open    int
	of      map[string]int // open ones of a peer
	waiting list.List      // of *Conn, who waits longest first
	busy    list.List      // of *Conn, the longest admitted first
}

// Listen bounds the connections of a listener. It logs what it refuses.
func Listen(l net.Listener, limits Connections, log *slog.Logger) *Listener {
	return &Listener{Listener: l, limits: limits, log: Logger(log), closed: make(chan struct{}), of: map[string]int{}}
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
			made := l.makeRoom("")
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
	c := &Conn{Conn: conn, from: l, peer: Peer(conn.RemoteAddr().String())}
	l.mu.Lock()
	full := l.open >= l.limits.Max
	l.open++
	l.of[c.peer]++
	l.mu.Unlock()
	if full && !l.makeRoom(c.peer) {
		c.Close()
		l.log.Error("too many connections, a new one is refused", "at", l.Addr().String(), "limit", l.limits.Max)
		return nil
	}
	conn.SetDeadline(time.Now().Add(l.limits.First))
	c.stand(nil, &l.waiting)
	return c
}

// makeRoom closes a connection for a new one of a peer that is counted already; "": of none.
func (l *Listener) makeRoom(peer string) bool {
	l.mu.Lock()
	least := l.of[peer]
	c := l.first(&l.waiting, least)
	if c == nil && peer != "" {
		c = l.first(&l.busy, least+1)
	}
	l.mu.Unlock()
	if c == nil {
		return false
	}
	c.Reset()
	return true
}

// first is the first in a list of the peer that has most, nil where none has as many
// as the least and none is idle.
func (l *Listener) first(in *list.List, least int) (found *Conn) {
	for e := in.Front(); e != nil; e = e.Next() {
		if c := e.Value.(*Conn); (l.of[c.peer] >= least || c.idle) && (found == nil || l.of[c.peer] > l.of[found.peer]) {
			found = c
		}
	}
	return found
}

// Open is how many connections there are.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open
}

// Peer is whose connection it is, by its address: of IPv6 the network, in which one
// machine has as many addresses as it likes.
func Peer(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return address // of a socket
	}
	bits := 64
	ip := a.Addr().Unmap()
	if ip.Is4() {
		bits = 32
	}
	network, _ := ip.WithZone("").Prefix(bits) // so many it has
	return network.String()
}

// Conn is a connection of a Listener. It ends with the first write that its
// peer does not take in time.
type Conn struct {
	net.Conn
	from  *Listener
	peer  string
	idle  bool
	once  sync.Once
	in    *list.List    // of the Listener; nil: of none
	place *list.Element // in it
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
	if c.stand(&c.from.waiting, &c.from.busy) {
		c.Conn.SetDeadline(time.Time{})
	}
}

// Idle says that the peer has what it wanted: it stays while there is room.
func (c *Conn) Idle() { c.stand(&c.from.busy, &c.from.waiting) }

// stand moves it from one list, nil: none, to the end of another, and reports whether
// it was there.
func (c *Conn) stand(from, to *list.List) bool {
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	if c.in != from {
		return false
	}
	if from != nil {
		from.Remove(c.place)
	}
	c.idle = from == &c.from.busy
	c.in, c.place = to, to.PushBack(c)
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
		l := c.from
		l.mu.Lock()
		defer l.mu.Unlock()
		if c.in != nil {
			c.in.Remove(c.place)
		}
		c.in = nil
		l.open--
		if l.of[c.peer]--; l.of[c.peer] == 0 {
			delete(l.of, c.peer)
		}
	})
	return c.Conn.Close()
}
