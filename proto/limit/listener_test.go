package limit

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// script is a listener that gives what it is told, in order, then waits.
type script struct {
	next   chan any // net.Conn or error
	closed chan struct{}
}

func newScript(steps ...any) *script {
	s := &script{next: make(chan any, 100), closed: make(chan struct{})}
	for _, x := range steps {
		s.next <- x
	}
	return s
}

func (s *script) Accept() (net.Conn, error) {
	select {
	case x := <-s.next:
		if c, ok := x.(net.Conn); ok {
			return c, nil
		}
		return nil, x.(error)
	case <-s.closed:
		return nil, net.ErrClosed
	}
}
func (s *script) Close() error   { close(s.closed); return nil }
func (s *script) Addr() net.Addr { return &net.TCPAddr{} }

var short = &net.OpError{Op: "accept", Err: syscall.EMFILE}

func ended(t *testing.T, c net.Conn) bool {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// A listener that ran out of descriptors listens again, and ends when closed.
// Three failures before a connection; a close while it rests.
func TestListenerOutlivesAShortageOfDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		in := newScript(short, short, short, here, short, short)
		l := Listen(in, Connections{Max: 10, First: time.Minute, Write: time.Second}, nil)
		c, err := l.Accept()
		if err != nil || l.Open() != 1 {
			t.Fatal(err, l.Open())
		}
		Of(c).Admit()
		done := make(chan error)
		go func() {
			_, err := l.Accept()
			done <- err
		}()
		synctest.Wait()
		c.Close()
		c.Close()
		if l.Open() != 0 {
			t.Errorf("%d open after two calls of Close", l.Open())
		}
		l.Close()
		if err := <-done; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

// Who says nothing makes room for who comes next; who was admitted stays.
// Three places: one admitted, two waiting, then a fourth, then no descriptor.
func TestTheOldestThatWaitsMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newScript()
		l := Listen(in, Connections{Max: 3, First: time.Minute, Write: time.Second}, nil)
		var peers []net.Conn
		join := func() net.Conn {
			here, there := net.Pipe()
			peers = append(peers, there)
			in.next <- here
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		Of(join()).Admit()
		for range 4 {
			join()
		}
		in.next <- short
		join()
		for i, want := range []bool{false, true, true, true, false, false} {
			if got := ended(t, peers[i]); got != want {
				t.Errorf("connection %d ended: %v", i, got)
			}
		}
		if l.Open() != 3 {
			t.Errorf("%d open", l.Open())
		}
		l.mu.Lock()
		for e := l.waiting.Front(); e != nil; e = l.waiting.Front() {
			l.mu.Unlock()
			e.Value.(*Conn).Admit()
			l.mu.Lock()
		}
		l.mu.Unlock()
		// Full of admitted ones, a new one is turned away.
		here, there := net.Pipe()
		in.next <- here
		go l.Accept()
		synctest.Wait()
		if !ended(t, there) || l.Open() != 3 {
			t.Error("a connection too many was taken")
		}
		l.Close()
	})
}

// Nobody stays who says nothing, or who does not read.
// A connection without a word; one that is admitted and takes no write.
func TestConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		l := Listen(newScript(here), Connections{Max: 3, First: 5 * time.Second, Write: 10 * time.Second}, nil)
		c, _ := l.Accept()
		begin := time.Now()
		if _, err := c.Read(make([]byte, 1)); err == nil || time.Since(begin) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		Of(c).Admit()
		begin = time.Now()
		if _, err := c.Write([]byte("x")); err == nil || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if l.Open() != 0 || !ended(t, there) {
			t.Error("it is still there")
		}
	})
}

// from is one end of a pipe with an address.
type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr { return f }
func (f from) Network() string      { return "tcp" }
func (f from) String() string       { return f.address }

// Goal: one address cannot take all the room, and who has less of it loses nothing to
// who has more. Method: five places; who comes, from where, what he does (i idle, a
// admitted, nothing: not yet), and whose connection ends for it.
func TestThePeerWithMostMakesRoom(t *testing.T) {
	const a, b, c, d = "192.0.2.1:10", "192.0.2.2:10", "[2001:db8::1]:10", "[2001:db8::2:0:0:1]:10" // c and d are one network
	type step struct {
		from, does string
		ends       int // the connection that ends, counted from 1; 0: none; -1: who came
	}
	for name, steps := range map[string][]step{ // any order
		"the idle of one peer":         {{a, "ai", 0}, {a, "ai", 0}, {b, "ai", 0}, {b, "a", 0}, {a, "ai", 0}, {b, "ai", 1}, {b, "ai", 3}},
		"idle again counts from then":  {{a, "aiai", 0}, {a, "ai", 0}, {a, "ai", 0}, {a, "ai", 0}, {a, "a", 0}, {a, "a", 1}, {a, "a", 2}},
		"busy ones, another comes":     {{a, "a", 0}, {a, "a", 0}, {a, "a", 0}, {a, "a", 0}, {a, "a", 0}, {b, "a", 1}, {b, "a", 2}, {b, "a", -1}, {a, "a", -1}},
		"idle for busy, and back":      {{a, "a", 0}, {a, "a", 0}, {a, "a", 0}, {a, "a", 0}, {b, "ai", 0}, {a, "a", 5}, {b, "ai", 1}, {a, "a", 7}},
		"busy ones take no beginning":  {{a, "a", 0}, {a, "a", 0}, {a, "a", 0}, {a, "a", 0}, {b, "", 0}, {a, "a", -1}, {b, "ai", 5}},
		"many addresses of a network":  {{c, "a", 0}, {d, "a", 0}, {c, "a", 0}, {d, "a", 0}, {a, "a", 0}, {c, "a", -1}, {b, "", 1}},
		"who has not said a word, too": {{a, "", 0}, {a, "a", 0}, {a, "", 0}, {b, "", 0}, {b, "a", 0}, {b, "", 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			in := newScript()
			l := Listen(in, Connections{Max: 5, First: time.Hour, Write: time.Second}, nil)
			came := make(chan net.Conn)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					came <- c
				}
			}()
			var peers []net.Conn
			gone := map[int]bool{}
			for i, s := range steps {
				here, there := net.Pipe()
				peers = append(peers, there)
				in.next <- from{here, s.from}
				synctest.Wait()
				select {
				case c := <-came:
					for _, does := range s.does {
						if does == 'a' {
							Of(c).Admit()
						} else {
							Of(c).Idle()
						}
					}
				default:
				}
				want := s.ends
				if want == -1 {
					want = i + 1
				}
				for n, p := range peers {
					if ended := ended(t, p); ended != (gone[n+1] || n+1 == want) {
						t.Errorf("%s: step %d: connection %d ended: %v", name, i+1, n+1, ended)
					} else if ended {
						gone[n+1] = true
					}
				}
				if open := len(peers) - len(gone); l.Open() != open || open > 5 {
					t.Errorf("%s: step %d: %d open of %d", name, i+1, l.Open(), open)
				}
			}
			l.Close()
			for _, p := range peers {
				p.Close()
			}
		})
	}
}

// Goal: places are shared by peers, and who has most gives one to who has less.
// Method: tables of places.
func TestPlacesAreShared(t *testing.T) {
	for _, c := range []struct{ has, peer, gives string }{
		{"aaa", "a", ""}, {"aaa", "b", "a"}, {"aab", "b", ""}, {"aaab", "b", "a"}, {"abc", "d", ""}, {"aabbb", "c", "b"}, {"", "a", ""},
	} {
		places := map[int]string{}
		for i, p := range c.has {
			places[i] = string(p)
		}
		who, ok := yields(places, c.peer)
		if ok != (c.gives != "") || places[who] != c.gives && ok {
			t.Errorf("%q, one more of %s: %q gives, %v", c.has, c.peer, places[who], ok)
		}
	}
}
