package testbed

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// stream is records at a constant pace from one namespace to another, and when each came.
type stream struct {
	pace    time.Duration
	begun   time.Time
	in, out net.Conn
	all     sync.WaitGroup

	mu    sync.Mutex
	sent  []time.Duration // by number, since it began
	came  []arrival       // in order of arrival
	seen  map[uint64]bool
	wrong int // records that were not the next one
	err   error
}

type arrival struct {
	n  uint64
	at time.Duration
}

// recordSize of a stream. chosen: as small as frames are.
const recordSize = 64

// newStream sends records to an address with its port, from a local one ("": as its routes
// have it): over one TCP connection, which has to last ("tcp4"), or as datagrams, of which
// some may be lost ("udp4").
func newStream(ctx context.Context, network, from, to, local, address string, pace time.Duration) (*stream, error) {
	s := &stream{pace: pace, begun: time.Now(), seen: map[uint64]bool{}}
	var l net.Listener
	err := within(to, func() (err error) {
		if network == "udp4" {
			var in net.PacketConn
			if in, err = net.ListenPacket(network, address); err == nil {
				s.in = in.(*net.UDPConn)
			}
			return err
		}
		l, err = net.Listen(network, address)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = within(from, func() (err error) {
		d := net.Dialer{Timeout: patience}
		if ip := net.ParseIP(local); ip != nil {
			d.LocalAddr = &net.UDPAddr{IP: ip}
		}
		s.out, err = d.DialContext(ctx, network, address)
		return err
	})
	if l != nil {
		if err == nil {
			s.in, err = l.Accept()
		}
		_ = l.Close()
	}
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	s.all.Go(func() { s.send(network == "udp4") })
	s.all.Go(s.receive)
	return s, nil
}

const streamPort = "5003"

// send sends a record whenever one is due; late ones at once. The runtime's timers wake
// on whole milliseconds, so a thread naps in the kernel.
func (s *stream) send(mayFail bool) {
	record := make([]byte, recordSize)
	for n := uint64(0); ; n++ {
		if wait := s.pace*time.Duration(n) - s.Now(); wait > 0 {
			ts := unix.NsecToTimespec(int64(wait))
			_ = unix.Nanosleep(&ts, nil)
		}
		binary.BigEndian.PutUint64(record, n)
		s.mu.Lock()
		s.sent = append(s.sent, s.Now())
		s.mu.Unlock()
		if _, err := s.out.Write(record); errors.Is(err, net.ErrClosed) || err != nil && !mayFail {
			s.failed(err)
			return
		}
	}
}

func (s *stream) receive() {
	record := make([]byte, recordSize)
	for due := uint64(0); ; due++ {
		if _, err := io.ReadFull(s.in, record); err != nil {
			s.failed(err)
			return
		}
		n := binary.BigEndian.Uint64(record)
		s.mu.Lock()
		if n != due {
			s.wrong, due = s.wrong+1, n
		}
		s.came, s.seen[n] = append(s.came, arrival{n, s.Now()}), true
		s.mu.Unlock()
	}
}

func (s *stream) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.EOF) {
		s.err = err
	}
}

// Stop ends it, and says what went wrong before.
func (s *stream) Stop() error {
	for _, c := range []net.Conn{s.in, s.out} {
		if c != nil {
			_ = c.Close()
		}
	}
	s.all.Wait()
	return s.err
}

// Now is the time since it began.
func (s *stream) Now() time.Duration { return time.Since(s.begun) }

// Gap is the longest time from one arrival to the next of those that touch a span up to
// now, less the pace of sending, and how many of the records sent in it did not come.
func (s *stream) Gap(from time.Duration) (gap time.Duration, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := s.Now()
	return gapOf(s.came, s.pace, from, to), lostOf(s.sent, s.seen, from, to-late)
}

// between is how many records were sent in a span, and how many of them have not come.
func (s *stream) between(from, to time.Duration) (sent, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.sent {
		if at >= from && at <= to {
			sent++
		}
	}
	return sent, lostOf(s.sent, s.seen, from, to)
}

// late is how long a record may be under way before it is lost. chosen: several times what
// a busy machine takes.
const late = 100 * time.Millisecond

// gapOf looks through arrivals, which are in order; before the first and behind the last
// the span's own ends count.
func gapOf(came []arrival, pace, from, to time.Duration) (gap time.Duration) {
	last := from
	for _, a := range came {
		if a.at > from {
			gap = max(gap, min(a.at, to)-last)
		}
		last = a.at
	}
	return max(0, max(gap, to-last)-pace)
}

func lostOf(sent []time.Duration, seen map[uint64]bool, from, to time.Duration) (lost int) {
	for n, at := range sent {
		if at >= from && at <= to && !seen[uint64(n)] {
			lost++
		}
	}
	return lost
}
