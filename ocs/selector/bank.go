package selector

import (
	"errors"
	"slices"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// Config is what a Bank is told at birth.
type Config struct {
	Board        *hal.Board
	Calibrations []*ocs.Calibration // by bundle; none: it cannot carry light
	Seed         uint64
}

// Bank is all transceivers of a server.
type Bank struct {
	faces  []face
	lines  []line // by hal.LineID
	ready  bool   // has told how it found the board
	ops    []hal.BusOp
	found  []ocs.Event
	events []circuit.Event
}

// line says what an input line of the board means.
type line struct {
	used bool
	face int
	path proto.Path
}

// The top bits of an op's token name the interface, from 1; the rest is the
// optics' own.
const (
	tokenShift = 56
	tokenMask  = 1<<tokenShift - 1
)

const (
	// lightWait is how long a path that has been taken may be without the far
	// side's light before that is told. chosen: the longest tuning of mirrors on
	// the way, and some.
	lightWait = time.Second
	// retryAfter is when optics that failed for their bus or chips are read
	// again. chosen: as those of a node.
	retryAfter = time.Second
	// maxTurns bounds the calls of one Poll. chosen: as a node's agent.
	maxTurns = 10
)

// errNoOverride: a transceiver has no ports that could be held.
var errNoOverride = errors.New("a transceiver's ports cannot be held off")

// New makes a Bank; it does nothing before Start.
func New(cfg Config) *Bank {
	b := &Bank{faces: make([]face, len(cfg.Board.Bundles)), lines: make([]line, len(cfg.Board.Lines))}
	latch := ocs.NewLatch(cfg.Board)
	for i := range b.faces {
		var cal *ocs.Calibration
		if i < len(cfg.Calibrations) {
			cal = cfg.Calibrations[i]
		}
		b.faces[i] = face{next: hal.Never, retry: hal.Never, until: hal.Never, optics: ocs.New(ocs.Config{Board: cfg.Board,
			Bundle: proto.BundleID(i), Latch: latch, Calibration: cal, Seed: cfg.Seed + uint64(i)})}
		for l, at := range cfg.Board.Bundles[i].LOS {
			b.lines[at] = line{true, i, proto.Loopback + proto.Path(l)}
		}
	}
	return b
}

// Start reads the transceivers back and takes up the circuits that they make.
func (b *Bank) Start(now time.Duration) {
	b.ready = false
	for i := range b.faces {
		b.faces[i].start(now)
	}
}

// Recall: what there is can be read.
func (b *Bank) Recall([]circuit.Saved, bool) {}

// Save appends the circuits that there are.
func (b *Bank) Save(buf []circuit.Saved) []circuit.Saved {
	for i := range b.faces {
		if f := &b.faces[i]; f.path.External() {
			buf = append(buf, circuit.Saved{Pair: b.pair(i, f.path)})
		}
	}
	return buf
}

// Edge takes an edge of a line of the board. Before Start it is how light is.
func (b *Bank) Edge(now time.Duration, e *hal.Edge) {
	if int(e.Line) >= len(b.lines) || !b.lines[e.Line].used {
		return
	}
	use := b.lines[e.Line]
	b.faces[use.face].light(now, e, use.path)
}

// pair is the circuit of an interface on a path; path is the inverse.
func (b *Bank) pair(i int, p proto.Path) circuit.Pair {
	return circuit.Pair{A: uint16(i), B: uint16(i + len(b.faces)*int(p-proto.External1))}
}

func (b *Bank) path(p circuit.Pair) (proto.Path, bool) {
	for _, x := range []proto.Path{proto.External1, proto.External2} {
		if b.pair(int(p.A), x) == p {
			return x, true
		}
	}
	return 0, false
}

// Apply makes a change: an interface that loses its circuit and gets none takes
// its light back inside.
func (b *Bank) Apply(now time.Duration, ch circuit.Change) error {
	if err := ch.Check(len(b.faces), 2*len(b.faces), b.at); err != nil {
		return err
	}
	for _, p := range ch.Create {
		if _, ok := b.path(p); !ok {
			return &circuit.Error{Pair: p, Err: hal.ErrOutOfRange}
		}
	}
	for _, p := range ch.Remove {
		if have, any := b.at(hal.SideA, p.A); any && have == p && !slices.ContainsFunc(ch.Create, func(x circuit.Pair) bool { return x.A == p.A }) {
			b.faces[p.A].aim(now, proto.Loopback)
		}
	}
	for _, p := range ch.Create {
		to, _ := b.path(p)
		b.faces[p.A].aim(now, to)
	}
	return nil
}

func (b *Bank) at(side int, port uint16) (circuit.Pair, bool) {
	n := uint16(len(b.faces))
	f := &b.faces[port%n]
	p := b.pair(int(port%n), f.path)
	return p, f.path.External() && port == [hal.NumSides]uint16{p.A, p.B}[side]
}

// Circuits appends all circuits in the order of their ports of side A.
func (b *Bank) Circuits(buf []circuit.Circuit) []circuit.Circuit {
	for i := range b.faces {
		if f := &b.faces[i]; f.path.External() {
			buf = append(buf, circuit.Circuit{Pair: b.pair(i, f.path), State: f.state, Loss: proto.NoPower, Factory: proto.NoPower, Took: f.took, Err: f.err})
		}
	}
	return buf
}

// Poll takes completions and puts out bus work. It returns when it wants to be
// called again, at the latest.
func (b *Bank) Poll(now time.Duration, done []*hal.Completion, out []hal.BusOp) ([]hal.BusOp, time.Duration) {
	for _, c := range done {
		if i := int(c.Op.Token>>tokenShift) - 1; i >= 0 && i < len(b.faces) {
			b.faces[i].done = append(b.faces[i].done, c)
		}
	}
	next := hal.Never
	for i := range b.faces {
		f := &b.faces[i]
		for n := 0; n < maxTurns && f.wants(now); n++ {
			b.ops = f.turn(now, b.ops[:0])
			for _, op := range b.ops {
				op.Op.Token = op.Op.Token&tokenMask | uint64(i+1)<<tokenShift
				out = append(out, op)
			}
			b.found = f.optics.TakeEvents(b.found[:0])
			for k := range b.found {
				f.heard(now, &b.found[k])
			}
		}
		f.waited(now)
		for _, ev := range f.tells {
			ev.Pair = b.pair(i, ev.path)
			b.events = append(b.events, ev.Event)
		}
		f.tells = f.tells[:0]
		next = min(next, f.next, f.retry, f.until)
	}
	if !b.ready && !slices.ContainsFunc(b.faces, func(f face) bool { return !f.read }) {
		b.ready = true
		b.events = append(b.events, circuit.Event{Kind: circuit.Ready, At: now, Err: b.silent()})
	}
	return out, next
}

// silent is why no transceiver answers; nil: some do.
func (b *Bank) silent() error {
	for i := range b.faces {
		if b.faces[i].optics.Status().Machine != ocs.Faulted {
			return nil
		}
	}
	return b.faces[0].optics.Status().Err
}

// TakeEvents appends what happened since the last call.
func (b *Bank) TakeEvents(buf []circuit.Event) []circuit.Event {
	buf = append(buf, b.events...)
	b.events = b.events[:0]
	return buf
}

// Busy tells whether some interface is on its way, or waits for light.
func (b *Bank) Busy() bool {
	return slices.ContainsFunc(b.faces, func(f face) bool { return f.switching || f.until != hal.Never })
}

// Stray: light goes out only where a circuit is.
func (b *Bank) Stray() bool { return false }

// HealthRound reads the next module of each transceiver.
func (b *Bank) HealthRound(now time.Duration) {
	for i := range b.faces {
		b.faces[i].optics.Health.Round(now)
		b.faces[i].due = true
	}
}

// Override is for mirrors.
func (b *Bank) Override(_ time.Duration, _, _ int, o proto.Override) error {
	if o == proto.Normal {
		return nil
	}
	return errNoOverride
}

// Power: a transceiver tells light, not how much, for a port.
func (b *Bank) Power(int, int) (proto.MilliDBm, error) { return proto.NoPower, hal.ErrUnsupported }
