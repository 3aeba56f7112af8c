package testbed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// tally counts what crosses each link, by the job whose address it is from.
type tally struct {
	jobs          int
	of            map[netip.Addr]int
	frames, bytes []atomic.Uint64 // by port that sends, and job
}

func newTally(ports, jobs int, of map[netip.Addr]int) *tally {
	return &tally{jobs, of, make([]atomic.Uint64, ports*jobs), make([]atomic.Uint64, ports*jobs)}
}

// count takes note of a frame of IPv4, and of nothing else.
func (t *tally) count(port int, frame []byte) {
	const etherHeader, sourceAt = 14, 26
	if len(frame) < sourceAt+4 || binary.BigEndian.Uint16(frame[etherHeader-2:]) != 0x0800 {
		return
	}
	if job, known := t.of[netip.AddrFrom4([4]byte(frame[sourceAt:]))]; known {
		t.frames[port*t.jobs+job].Add(1)
		t.bytes[port*t.jobs+job].Add(uint64(len(frame) - etherHeader))
	}
}

// links is over how many ports anything went, over how many that of two jobs and more, and
// how much of it in all.
func (t *tally) links() (used, shared int, frames, bytes uint64) {
	for port := range len(t.frames) / t.jobs {
		by := 0
		for job := range t.jobs {
			n := t.frames[port*t.jobs+job].Load()
			frames, bytes = frames+n, bytes+t.bytes[port*t.jobs+job].Load()
			if n > 0 {
				by++
			}
		}
		if by > 0 {
			used++
		}
		if by > 1 {
			shared++
		}
	}
	return used, shared, frames, bytes
}

// rank is where a process of a job is.
type rank struct {
	ns   string
	from []netip.Addr // its addresses, one for each way that it may take
}

// hostAddress is that of a number in routes of a core (job.DefaultHosts).
func hostAddress(n int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte((n + 1) >> 16), byte((n + 1) >> 8), byte(n + 1)})
}

// mesh is a connection from each rank of a job to each other.
type mesh struct {
	out, in [][]net.Conn // by who sends, and to whom
}

// meshPort is that of every process; connections come from any.
const meshPort = 5004

// newMesh connects ranks, a to b between their face-th addresses where they have several.
func newMesh(ctx context.Context, ranks []rank, face func(a, b int) int) (m *mesh, err error) {
	m = &mesh{}
	listeners := map[netip.Addr]net.Listener{}
	defer func() {
		for _, l := range listeners { // any order: each its own
			_ = l.Close()
		}
		if err != nil {
			m.close()
		}
	}()
	for _, r := range ranks {
		for _, address := range r.from {
			err := within(r.ns, func() (err error) {
				listeners[address], err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, meshPort)))
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	for a, x := range ranks {
		m.out, m.in = append(m.out, make([]net.Conn, len(ranks))), append(m.in, make([]net.Conn, len(ranks)))
		for b, y := range ranks {
			if a == b {
				continue
			}
			from, to := x.from[face(a, b)], y.from[face(a, b)]
			err := within(x.ns, func() (err error) {
				d := net.Dialer{Timeout: patience, LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
				m.out[a][b], err = d.DialContext(ctx, "tcp4", netip.AddrPortFrom(to, meshPort).String())
				return err
			})
			if err != nil {
				return nil, err
			}
			if m.in[a][b], err = listeners[to].Accept(); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func (m *mesh) close() {
	for a := range m.out {
		for b := range m.out[a] {
			for _, c := range []net.Conn{m.out[a][b], m.in[a][b]} {
				if c != nil {
					_ = c.Close()
				}
			}
		}
	}
}

// exchange has ranks send so many bytes each, all at once, and returns when all have come:
// a synchronous step of a collective.
func (m *mesh) exchange(size int64, flows [][2]int) error {
	errs, sent := make([]error, len(flows)), make([]error, len(flows))
	var all sync.WaitGroup
	for i, f := range flows {
		out, in := m.out[f[0]][f[1]], m.in[f[0]][f[1]]
		end := time.Now().Add(patience)
		all.Go(func() {
			_ = out.SetWriteDeadline(end)
			_, err := out.Write(make([]byte, size))
			sent[i] = err
		})
		all.Go(func() {
			_ = in.SetReadDeadline(end)
			if n, err := io.CopyN(io.Discard, in, size); err != nil {
				errs[i] = fmt.Errorf("testbed: %d of %d bytes from rank %d to %d: %w", n, size, f[0], f[1], err)
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, sent...)...)
}

// shifted is the step of a pairwise exchange in which each of n ranks sends to the one so
// far on; of 1: a step of a ring.
func shifted(n, by int) [][2]int {
	return upTo(n, func(a int) [2]int { return [2]int{a, (a + by) % n} })
}
