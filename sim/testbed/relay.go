package testbed

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// relay carries frames from port to port where light leads.
type relay struct {
	ports []relayPort
	begun time.Time
	news  chan struct{} // light has changed: carriers have to follow
	moved atomic.Int64  // how often the light of a port led elsewhere
	first atomic.Int64  // nanoseconds since it began at which light changed first; 0: none has since this was cleared
	last  atomic.Int64  // at which it changed last
	all   sync.WaitGroup
	tally atomic.Pointer[tally] // nil: nobody counts
}

type relayPort struct {
	file  *os.File
	to    atomic.Int32
	from  atomic.Int32 // whose light comes here
	lit   atomic.Int64 // nanoseconds since the relay began at which light came
	fresh atomic.Bool  // no frame has gone since then
	first atomic.Int64 // nanoseconds from light to the first frame after it, of the last time
	moved atomic.Int64 // times that it led elsewhere
	sent  atomic.Uint64
	dark  atomic.Uint64 // frames that were lost in the dark
	// Of the goroutine of carriers: as the carrier is, and since when the kernel has been
	// asked to take note of it; zero: it has.
	up      bool
	asked   time.Time
	control int // a socket of its namespace
}

// frameSize is more than an interface sends at once.
const frameSize = 1 << 16

// newRelay joins no port yet; each is given its file and its socket before start.
func newRelay(ports int) *relay {
	r := &relay{ports: make([]relayPort, ports), begun: time.Now(), news: make(chan struct{}, 1)}
	for i := range r.ports {
		r.ports[i].control = nowhere
		r.ports[i].to.Store(nowhere)
		r.ports[i].from.Store(nowhere)
	}
	return r
}

func (r *relay) start() {
	for i := range r.ports {
		r.all.Go(func() { r.carry(i) })
	}
	r.all.Go(r.carriers)
}

// stop is called when nobody changes light any more.
func (r *relay) stop() {
	for i := range r.ports {
		_ = r.ports[i].file.Close() // none: it was not opened
	}
	close(r.news)
	r.all.Wait()
	for i := range r.ports {
		if r.ports[i].control != nowhere {
			_ = unix.Close(r.ports[i].control)
		}
	}
}

// carry takes frames from a port for as long as it is open.
func (r *relay) carry(i int) {
	p, frame := &r.ports[i], make([]byte, frameSize)
	for {
		n, err := p.file.Read(frame)
		if err != nil {
			return
		}
		to := p.to.Load()
		if to == nowhere {
			p.dark.Add(1)
			continue
		}
		if p.fresh.CompareAndSwap(true, false) {
			p.first.Store(int64(time.Since(r.begun)) - p.lit.Load())
		}
		if _, err := r.ports[to].file.Write(frame[:n]); err != nil {
			p.dark.Add(1) // an interface that is down
			continue
		}
		if t := r.tally.Load(); t != nil {
			t.count(i, frame[:n])
		}
		p.sent.Add(1)
	}
}

// changed is told where a port sends from now on.
func (r *relay) changed(i, to int) {
	p := &r.ports[i]
	was := p.to.Swap(int32(to))
	p.moved.Add(1)
	r.moved.Add(1)
	r.last.Store(int64(time.Since(r.begun)))
	r.first.CompareAndSwap(0, r.last.Load())
	if was != nowhere {
		r.ports[was].from.CompareAndSwap(int32(i), nowhere)
	}
	if to != nowhere {
		r.ports[to].from.Store(int32(i))
		p.lit.Store(int64(time.Since(r.begun)))
		p.fresh.Store(true)
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// nudge is how long the kernel may take to use an interface whose carrier has come. Where
// it is just taking note that the carrier had gone, it looks again only a second later;
// told once more, it finds that urgent. chosen: several times what it takes.
const nudge = 5 * time.Millisecond

// carriers lets the carrier of each interface follow its light: an end without light from
// the other tells that, as Ethernet does, and both are down.
func (r *relay) carriers() {
	late := time.NewTimer(time.Hour)
	defer late.Stop()
	for open := true; open; {
		wait := time.Hour
		for i := range r.ports {
			p := &r.ports[i]
			to := p.to.Load()
			switch up := to != nowhere && p.from.Load() == to; {
			case up != p.up:
				p.up, p.asked = up, time.Now()
				p.carrier(up)
			case p.asked.IsZero():
				continue
			case !up || running(p.control, p.file.Name()):
				p.asked = time.Time{}
				continue
			case time.Since(p.asked) >= nudge:
				p.carrier(false)
				p.carrier(true)
				p.asked = time.Now()
			}
			wait = nudge
		}
		late.Reset(wait)
		select {
		case _, open = <-r.news:
		case <-late.C:
		}
	}
}

func (p *relayPort) carrier(up bool) {
	if raw, err := p.file.SyscallConn(); err == nil { // else it is closed
		_ = raw.Control(func(fd uintptr) { _ = carrier(int(fd), up) })
	}
}
