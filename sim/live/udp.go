package live

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"strings"
	"time"

	"ringlight/sim"
	"ringlight/sim/solo"
)

// Fibres between boards in processes of their own are datagrams: the light of
// every lane as it leaves a port, sent when it changed, and again now and then
// since a datagram may be lost. What light does on its way from one level to
// another is sampled, so that no time under a millisecond can be measured here.

// Lead is a fibre from a port of this board to one of a board elsewhere.
type Lead struct {
	Port    sim.Port
	Far     sim.Port
	Addr    string // of the far board's fibres, host:port
	Crossed bool
}

// ParseLead reads a fibre such as 0/external1=127.0.0.1:9001/1/external2, with
// /crossed behind it where it joins upper half to upper half.
func ParseLead(s string) (Lead, error) {
	bad := fmt.Errorf("lead %q: want port=host:port/port, as in 0/external1=127.0.0.1:9001/1/external2, and /crossed where it is", s)
	near, rest, ok := strings.Cut(s, "=")
	addr, far, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return Lead{}, bad
	}
	l := Lead{Addr: addr}
	far, l.Crossed = strings.CutSuffix(far, "/crossed")
	var errNear, errFar error
	l.Port, errNear = solo.ParsePort(near)
	l.Far, errFar = solo.ParsePort(far)
	if _, _, err := net.SplitHostPort(addr); err != nil || errNear != nil || errFar != nil {
		return Lead{}, bad
	}
	return l, nil
}

// datagram is the light that comes to a port, in nanowatts by module and lane; behind it
// stands the CRC-32 of all of it.
type datagram struct {
	Magic        [4]byte
	Life, Seq    uint64 // of the sender, and a number that grows
	Bundle, Path uint8  // of the port that it comes to
	Light        sim.Light
}

var (
	lightMagic = [4]byte{'R', 'L', 'L', '1'}
	lightBytes = binary.Size(datagram{}) + crc32.Size
)

func (d *datagram) append(out []byte) []byte {
	out, _ = binary.Append(out, binary.LittleEndian, d) // all of it has a size
	return binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}

var errNoLight = errors.New("live: not a datagram of light")

func (d *datagram) parse(in []byte) error {
	body := len(in) - crc32.Size
	if len(in) != lightBytes || crc32.ChecksumIEEE(in[:body]) != binary.LittleEndian.Uint32(in[body:]) {
		return errNoLight
	}
	if _, err := binary.Decode(in, binary.LittleEndian, d); err != nil || d.Magic != lightMagic {
		return errNoLight
	}
	return nil
}

// chosen: a heater has settled and the last laser of a board without power is
// out a millisecond after the change; fifty microseconds is a step of that; a
// lost datagram is made up for in a quarter of a second.
const (
	lightAfter  = time.Millisecond
	lightStep   = 50 * time.Microsecond
	lightRepeat = 250 * time.Millisecond
)

// patch is the fibres of one board that lead to other processes.
type patch struct {
	conn *net.UDPConn
	ends []patchEnd
	life uint64
	seq  uint64

	changes uint64        // of the world when last looked at
	until   time.Duration // light is sampled
	repeat  time.Duration
	buf     []byte
}

type patchEnd struct {
	lead Lead
	addr *net.UDPAddr
	last sim.Light // sent
	life uint64    // of the far board, and the last number from it
	seq  uint64
}

func newPatch(listen string, leads []Lead) (*patch, error) {
	at, err := net.ResolveUDPAddr("udp", listen)
	if err != nil {
		return nil, err
	}
	p := &patch{life: uint64(time.Now().UnixNano())}
	for _, l := range leads {
		far, err := net.ResolveUDPAddr("udp", l.Addr)
		if err != nil {
			return nil, err
		}
		p.ends = append(p.ends, patchEnd{lead: l, addr: far})
	}
	p.conn, err = net.ListenUDP("udp", at)
	return p, err
}

// leads are the fibres as the board takes them.
func (p *patch) leads() (out []solo.Lead) {
	for i := range p.ends {
		l := &p.ends[i].lead
		out = append(out, solo.Lead{Port: l.Port, Fibre: sim.Fibre{Crossed: l.Crossed}})
	}
	return out
}

// watch sends light that changed. The board calls it.
func (p *patch) watch(b *solo.Board) time.Duration {
	now := b.Now()
	if n := b.World().Changes(b.ID()); n != p.changes {
		p.changes, p.until = n, now+lightAfter
	}
	all := now >= p.repeat
	if now > p.until && !all {
		return p.repeat - now
	}
	if all {
		p.repeat = now + lightRepeat
	}
	for i := range p.ends {
		e := &p.ends[i]
		d := datagram{Magic: lightMagic, Life: p.life, Bundle: uint8(e.lead.Far.Bundle), Path: uint8(e.lead.Far.Path)}
		if err := b.World().Sent(e.lead.Port, &d.Light); err != nil {
			panic(err) // the port was led out at the start
		}
		if !all && near(&d.Light, &e.last) {
			continue
		}
		p.seq++
		d.Seq = p.seq
		e.last = d.Light
		p.buf = d.append(p.buf[:0])
		_, _ = p.conn.WriteToUDP(p.buf, e.addr) // the next one makes up for it
	}
	if now <= p.until {
		return lightStep
	}
	return p.repeat - now
}

// near reports whether no lane changed by more than about 0.1 dB.
func near(a, b *sim.Light) bool {
	for i := range a {
		for l, x := range a[i] {
			y := b[i][l]
			if max(x, y)-min(x, y) > max(x, y)/45 {
				return false
			}
		}
	}
	return true
}

// receive takes light until the connection is closed.
func (p *patch) receive(board *solo.Live) {
	buf := make([]byte, lightBytes+1)
	for {
		n, from, err := p.conn.ReadFromUDP(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		var d datagram
		if err != nil || d.parse(buf[:n]) != nil {
			continue
		}
		for i := range p.ends {
			e := &p.ends[i]
			if e.lead.Port.Bundle != int(d.Bundle) || e.lead.Port.Path != int(d.Path) || !from.IP.Equal(e.addr.IP) || from.Port != e.addr.Port {
				continue
			}
			if d.Life < e.life || d.Life == e.life && d.Seq <= e.seq {
				continue // overtaken on the way
			}
			e.life, e.seq = d.Life, d.Seq
			board.With(func(b *solo.Board) { _ = b.World().Receive(e.lead.Port, &d.Light) })
		}
	}
}
