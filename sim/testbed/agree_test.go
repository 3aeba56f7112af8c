package testbed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/fleet"
)

// Goal: packets are where light is, and nowhere else.
// Method: random faults of fibres and powers under agents and planner, and at each rest a
// probe from every port to all others, held against the world's own walk through the
// light. RINGLIGHT_AGREE: so many faults, of twelve nodes.
func TestLightAndPacketsAgree(t *testing.T) {
	needs(t)
	changes, nodes := 12, 4
	if n, err := strconv.Atoi(os.Getenv("RINGLIGHT_AGREE")); err == nil {
		changes, nodes = n, 12
	}
	cfg := bedOf(t, nodes)
	res := &agreement{}
	if err := res.run(t.Context(), cfg, changes); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d changes, light moved %d times; %d rests, %d pairs of ports probed, %d with light", res.changes, res.moved, res.rests, res.pairs, res.lit)
	t.Logf("%d where light is and packets are not, %d where packets are and light is not", res.silent, res.stray)
	t.Logf("light to first packet, %d times: p50 %d us, p99 %d us", len(res.first), Quantile(res.first, 500), Quantile(res.first, 990))
	if res.silent+res.stray > 0 || res.lit == 0 || res.moved == 0 || len(res.first) == 0 {
		t.Error("light and packets do not agree, or there were none")
	}
}

// agreement is what it came to.
type agreement struct {
	changes, rests int
	moved          int64   // times that light of a port led elsewhere
	pairs, lit     int     // of ports, probed at all rests together, and those with light
	silent, stray  int     // light leads from one to the other and no packet came; the other way round
	first          []int64 // microseconds from light to the first packet, each time that light came
}

// etherType of probes: for experiments within one site (IEEE 802).
const etherType = 0x88b5

// prober sends and hears frames at every port.
type prober struct {
	bed     *Bed
	sockets []int
	round   atomic.Uint32
	all     sync.WaitGroup

	mu    sync.Mutex
	heard map[[2]int]bool // from, to: in this round
	last  time.Time
}

func (b *Bed) newProber() (*prober, error) {
	p := &prober{bed: b, heard: map[[2]int]bool{}}
	for i, port := range b.optics.ports {
		err := within(b.NS(port.Device), func() error {
			at, err := net.InterfaceByName(port.Name)
			if err != nil {
				return err
			}
			network := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherType))
			s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(network))
			if err != nil {
				return err
			}
			p.sockets = append(p.sockets, s)
			_ = unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000})
			return unix.Bind(s, &unix.SockaddrLinklayer{Protocol: network, Ifindex: at.Index})
		})
		if err != nil {
			p.close()
			return nil, fmt.Errorf("testbed: probe at %v: %w", port, err)
		}
		p.all.Go(func() { p.listen(i) })
	}
	return p, nil
}

// finished is the round in which listeners end.
const finished = 1<<32 - 1

func (p *prober) close() {
	p.round.Store(finished)
	p.all.Wait()
	for _, s := range p.sockets {
		_ = unix.Close(s)
	}
}

// send sends a probe from a port; that it could not be sent will be heard.
func (p *prober) send(i int) {
	frame := make([]byte, 60)
	for n := range 6 {
		frame[n] = 0xff
	}
	copy(frame[6:], "\x02RLTB\x01")
	binary.BigEndian.PutUint16(frame[12:], etherType)
	binary.BigEndian.PutUint32(frame[14:], p.round.Load())
	binary.BigEndian.PutUint32(frame[18:], uint32(i))
	_, _ = unix.Write(p.sockets[i], frame)
}

func (p *prober) listen(i int) {
	frame := make([]byte, frameSize)
	for p.round.Load() != finished {
		n, from, err := unix.Recvfrom(p.sockets[i], frame, 0)
		if link, ok := from.(*unix.SockaddrLinklayer); err != nil || n < 22 || !ok || link.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		p.mu.Lock()
		if binary.BigEndian.Uint32(frame[14:]) == p.round.Load() {
			p.heard[[2]int{int(binary.BigEndian.Uint32(frame[18:])), i}] = true
		}
		p.last = time.Now()
		p.mu.Unlock()
	}
}

const (
	probeQuiet = 50 * time.Millisecond  // after the last probe that came, all have. chosen: several times what a busy machine takes
	atRest     = 200 * time.Millisecond // without a change of light. chosen: as long as an agent tries one way
)

// probe sends from every port and says who heard whom.
func (p *prober) probe(ctx context.Context) (map[[2]int]bool, error) {
	p.mu.Lock()
	p.heard, p.last = map[[2]int]bool{}, time.Now()
	p.round.Add(1)
	p.mu.Unlock()
	for i := range p.sockets {
		p.send(i)
	}
	for {
		if err := pause(ctx, probeQuiet/5); err != nil {
			return nil, err
		}
		p.mu.Lock()
		heard, quiet := p.heard, time.Since(p.last) > probeQuiet
		p.mu.Unlock()
		if quiet {
			return heard, nil
		}
	}
}

// truth is where light leads now, by the world's own walk, not by what the relay was told.
func (b *Bed) truth() map[[2]int]bool {
	pairs := map[[2]int]bool{}
	o := b.optics
	_ = b.Cluster.Do(0, func(w *sim.World, _ sim.BoardID) error {
		walk := w.Walk(func(id sim.BoardID) bool { return int(id) < b.fabric.Nodes })
		for _, strand := range slices.Concat(walk.Closed, walk.Open) {
			for _, g := range strand {
				for at := range 2 {
					from, known := o.index[side{g, at}]
					if to, end, ok := w.Beside(g, at); known && ok {
						pairs[[2]int{from, o.index[side{to, end}]}] = true
					}
				}
			}
		}
		return nil
	})
	return pairs
}

func (res *agreement) run(ctx context.Context, cfg Config, changes int) (err error) {
	seen := &rings{ledger: map[proto.NodeID]int64{}}
	cfg.Observe = seen.observe
	b, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := until(ctx, "rings in service", func() bool { seen.mu.Lock(); defer seen.mu.Unlock(); return seen.quiet && len(seen.last) > 0 }); err != nil {
		return err
	}
	p, err := b.newProber()
	if err != nil {
		return err
	}
	defer p.close()
	ctx, cancel := context.WithCancel(ctx)
	var firsts sync.WaitGroup
	firsts.Go(func() { p.firstPackets(ctx, res) })
	defer func() { cancel(); firsts.Wait(); res.moved = b.relay.moved.Load() }()
	chance := rand.New(rand.NewPCG(cfg.Seed, 0xbed))
	d := disorder{bed: b, chance: chance, cut: map[fabric.Port]bool{}, off: map[int]bool{}}
	for res.changes < changes {
		for range 1 + chance.IntN(3) {
			if err := d.change(); err != nil {
				return err
			}
			res.changes++
			if err := pause(ctx, time.Duration(chance.IntN(20))*time.Millisecond); err != nil {
				return err
			}
		}
		if err := b.compare(ctx, p, res); err != nil {
			return err
		}
	}
	return nil
}

// compare waits for a rest and holds packets against light. A rest that ends under the
// probes is none.
func (b *Bed) compare(ctx context.Context, p *prober, res *agreement) error {
	for {
		moved := b.relay.moved.Load()
		if err := pause(ctx, atRest); err != nil {
			return err
		}
		if b.relay.moved.Load() != moved {
			continue
		}
		light := b.truth()
		heard, err := p.probe(ctx)
		if err != nil {
			return err
		}
		if b.relay.moved.Load() != moved || len(b.truth()) != len(light) {
			continue
		}
		res.rests++
		res.pairs += len(p.sockets) * len(p.sockets)
		res.lit += len(light)
		for pair := range light { // any order: a count
			if !heard[pair] {
				res.silent++
			}
		}
		for pair := range heard { // any order: a count
			if !light[pair] {
				res.stray++
			}
		}
		return nil
	}
}

// firstPackets has every port to which light has come send at once, until the relay has
// taken a frame of it, and keeps how long that was.
func (p *prober) firstPackets(ctx context.Context, res *agreement) {
	for ctx.Err() == nil {
		waiting := false
		for i := range p.bed.relay.ports {
			port := &p.bed.relay.ports[i]
			if at := port.first.Swap(0); at > 0 {
				res.first = append(res.first, at/1000)
			}
			if port.fresh.Load() {
				p.send(i)
				waiting = true
			}
		}
		if waiting {
			ts := unix.NsecToTimespec(int64(100 * time.Microsecond))
			_ = unix.Nanosleep(&ts, nil)
			continue
		}
		_ = pause(ctx, time.Millisecond)
	}
}

// disorder cuts fibres and powers and mends them, so that most of the fabric lives.
type disorder struct {
	bed    *Bed
	chance *rand.Rand
	cut    map[fabric.Port]bool
	off    map[int]bool
}

// change does one thing.
func (d *disorder) change() error {
	f := d.bed.fabric
	fibres := f.AllFibres()
	n := d.chance.IntN(f.Nodes)
	x := fibres[d.chance.IntN(len(fibres))].A
	way := sim.Direction(d.chance.IntN(3))
	switch {
	case d.off[n]:
		delete(d.off, n)
		return d.bed.power(n, true)
	case d.chance.IntN(3) == 0 && len(d.off) <= f.Nodes/4:
		d.off[n] = true
		return d.bed.power(n, false)
	case len(d.cut) > 0 && (d.cut[x] || len(d.cut) > len(fibres)/4):
		for y := range d.cut { // any of them; drawn by the map, as the experiment may
			x = y
		}
		delete(d.cut, x)
		return d.bed.Cluster.Do(x.Node, func(w *sim.World, _ sim.BoardID) error { return w.Mend(fleet.SimPort(x), sim.Both) })
	}
	d.cut[x] = true
	return d.bed.Cluster.Do(x.Node, func(w *sim.World, _ sim.BoardID) error { return w.Cut(fleet.SimPort(x), way) })
}
