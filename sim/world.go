package sim

import (
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/pca953x"
	"ringlight/mzi/detmath"
)

// World is many boards, the fibres between them and one virtual clock.
type World struct {
	*clock
	seed    uint64
	costs   Costs
	boards  []*board
	layouts []*layout
	scratch scratch
}

// scratch is what boards work with and leave to the next one.
type scratch struct {
	transits []*transit // free
	moved    []*module  // that took one, and may have it still, by time
	traces   [hal.MaxModules]trace
	found    []crossing
	works    []*work // free
	said     []byte  // by one chip
	cells    stages  // of the light that is looked at
	seen     moduleInputs
	grams    [256]keptGram // chosen: those of a few boards that move at once
}

// board is one node's optics.
type board struct {
	*clock
	*scratch
	costs        *Costs
	physics      *Physics
	id           BoardID
	hw           hal.Board
	lay          *layout
	seed         uint64
	powered      bool
	outage       uint32 // counts how often the supply of the optics went and came, as life does
	life         uint32 // counts power cycles: what a former life put on the heap is void
	draws        uint64 // latencies drawn
	ambientMilli int32  // millicelsius
	buses        []bus
	latches      []expander
	bundles      []bundle
	gone         []chipFault
	limits       LimitRecord
	mems         *mems // of a MEMS board
	togglesHold  bool
	changes      uint64 // of the light that its bundles send
}

// bundle is the modules of one gap between GPUs, and the fibres behind them.
type bundle struct {
	board    *board
	place    int // on it
	modules  []module
	los      [hal.NumLOS]comparator
	ends     [2]fibreEnd
	nets     [2]bool // toggle nets
	settling bool    // an evSettle is on the heap
}

const defaultAmbientMilli = 40_000 // chosen: inside a chassis

// Parts of a module's seed.
const (
	seedGuard = 1000 + iota // and the ADC of the lanes
	_
	seedRail
	seedLaser // and the lanes
)

// NewWorld makes an empty world at time 0.
func NewWorld(cfg WorldConfig) *World {
	if cfg.Costs.Source == "" {
		cfg.Costs = DefaultCosts()
	}
	return &World{clock: new(clock), seed: cfg.Seed, costs: cfg.Costs}
}

var errBoard = errors.New("sim: no such board")

func (w *World) board(id BoardID) (*board, error) {
	if id < 0 || int(id) >= len(w.boards) {
		return nil, fmt.Errorf("%w: %d of %d", errBoard, id, len(w.boards))
	}
	return w.boards[id], nil
}

func (w *World) module(id BoardID, bundle, place int) *module {
	return &w.boards[id].bundles[bundle].modules[place]
}

// AddBoard puts a board into the world. It is dark: with power or without,
// nobody has configured it.
func (w *World) AddBoard(cfg BoardConfig) (BoardID, error) {
	for c := range cfg.Board.Chips() {
		if c.Part.Like() > hal.CMISPattern {
			return 0, fmt.Errorf("sim: %s: nobody has modelled %s", c.Field, c.Part)
		}
	}
	lay, err := w.layoutOf(&cfg.Board)
	if err != nil {
		return 0, err
	}
	if cfg.Personalities != nil && len(cfg.Personalities) != len(cfg.Board.Bundles) {
		return 0, fmt.Errorf("sim: personalities of %d bundles for a board of %d", len(cfg.Personalities), len(cfg.Board.Bundles))
	}
	b := &board{clock: w.clock, scratch: &w.scratch, costs: &w.costs, physics: orDefault(cfg.Physics),
		id: BoardID(len(w.boards)), hw: cfg.Board, lay: lay, seed: derive(w.seed, cfg.Seed), ambientMilli: defaultAmbientMilli, togglesHold: cfg.TogglesHold}
	if err := b.build(&cfg); err != nil {
		return 0, err
	}
	for _, f := range cfg.Faults {
		if err := b.setFault(f, true); err != nil {
			return 0, err
		}
	}
	w.boards = append(w.boards, b)
	if cfg.Powered {
		w.SetPower(b.id, true)
	}
	return b.id, nil
}

// build puts everything on a board, dark.
func (b *board) build(cfg *BoardConfig) (err error) {
	b.buses = make([]bus, len(b.hw.Buses))
	for i := range b.buses {
		b.buses[i].board, b.buses[i].id = b, hal.BusID(i)
	}
	b.latches = make([]expander, len(b.hw.Latches))
	for i := range b.latches {
		b.latches[i] = expander{part: pca953x.Of(b.hw.Latches[i].Part), pulls: latchPulls}
	}
	b.bundles = make([]bundle, len(b.hw.Bundles))
	if b.hw.Mirrors != nil {
		if b.mems, err = newMems(&b.hw, derive(cfg.Seed, seedMirror), cfg.Mirrors); err != nil {
			return err
		}
	}
	for i := range b.bundles {
		bu := &b.bundles[i]
		bu.board, bu.place = b, i
		n := len(b.hw.Bundles[i].Modules)
		if cfg.Personalities != nil && len(cfg.Personalities[i]) != n {
			return fmt.Errorf("sim: bundle %d: %d personalities for %d modules", i, len(cfg.Personalities[i]), n)
		}
		bu.modules = make([]module, n)
		for j := range bu.modules {
			if err := b.plug(i, j, cfg); err != nil {
				return err
			}
		}
		for path := range bu.los {
			bu.los[path] = comparator{bundle: bu, path: path, all: 1<<(2*n) - 1}
		}
	}
	b.clear()
	return nil
}

// plug puts a module into its place.
func (b *board) plug(bundle, place int, cfg *BoardConfig) error {
	part := uint64(bundle)<<8 | uint64(place)
	m := &b.bundles[bundle].modules[place]
	*m = module{board: b, bundle: &b.bundles[bundle], place: place, seed: derive(b.seed, part)}
	if cfg.Personalities != nil {
		m.per = cfg.Personalities[bundle][place]
	} else {
		m.per = newPersonality(b.physics, derive(cfg.Seed, part))
	}
	m.wired = b.lay.wired[bundle][place]
	if m.per == nil {
		return fmt.Errorf("sim: bundle %d module %d: no personality", bundle, place)
	}
	if b.hw.Bundles[bundle].Modules[place].Kind == hal.KindCMIS {
		m.mci = newMCI(m, cfg.MCI)
	}
	return nil
}

// Costs are what its clock is charged.
func (w *World) Costs() Costs { return w.costs }

// Now is the virtual time.
func (w *World) Now() time.Duration { return w.now }

// Next is when Step will do something next.
func (w *World) Next() (time.Duration, bool) {
	for w.events.Len() > 0 {
		at, e := w.events.First()
		if !w.void(e) {
			return at, true
		}
		w.events.Pop()
	}
	return 0, false
}

// void reports whether an event was overtaken.
func (w *World) void(e *event) bool {
	b := w.boards[e.board]
	switch e.kind {
	case evCross:
		return b.comparatorAt(e.place).gen != e.gen
	case evFilter:
		return b.comparatorAt(e.place).filter != e.gen
	case evBus, evSubmit, evEdge:
		return b.life != e.gen
	case evPower, evMCI:
		return b.outage != e.gen
	}
	return false
}

// Step moves to the next event and carries it out. ok says whether it is one
// for the board's host.
func (w *World) Step() (id BoardID, ev hal.Event, ok bool) {
	if _, any := w.Next(); !any {
		return 0, ev, false
	}
	var e event
	w.now, e = w.events.Pop()
	b := w.boards[e.board]
	switch e.kind {
	case evSubmit:
		b.buses[e.place].enqueue(e.op)
	case evBus:
		if done := b.buses[e.place].step(); done != nil {
			return b.id, hal.Event{Completion: done}, true
		}
	case evCross:
		b.comparatorAt(e.place).settle()
	case evFilter:
		b.comparatorAt(e.place).filtered()
	case evEdge:
		return b.id, hal.Event{Edge: &hal.Edge{Line: hal.LineID(e.place), High: e.high, At: w.now, Origin: b.origin(e)}}, true
	case evSettle:
		b.bundles[e.place].settled()
	case evPower:
		b.clear()
	case evMCI:
		b.bundles[int(e.place)/hal.MaxModules].modules[int(e.place)%hal.MaxModules].mci.due()
	case evMirrors:
		b.mems.lookAtLinks(b)
	}
	return b.id, ev, false
}

// origin is when the light changed that an edge tells of, 0 when it has
// changed again since.
func (b *board) origin(e event) time.Duration {
	at := b.lay.lines[e.place]
	if c := &b.bundles[at.bundle].los[at.path]; c.raw == e.high {
		return c.changed
	}
	return 0
}

// AdvanceTo moves the clock to t, which must lie before the next event and not
// in the past.
func (w *World) AdvanceTo(t time.Duration) {
	if next, any := w.Next(); any && next < t {
		panic(fmt.Sprintf("sim: advance to %v over the event at %v", t, next))
	}
	if t < w.now {
		panic(fmt.Sprintf("sim: advance from %v back to %v", w.now, t))
	}
	w.now = t
}

// Advance moves time on to the next thing that a board has to tell, but not
// beyond limit, and returns it. ok is false when limit came first.
func (w *World) Advance(limit time.Duration) (id BoardID, ev hal.Event, ok bool) {
	for {
		if next, any := w.Next(); !any || next > limit {
			w.AdvanceTo(max(limit, w.Now()))
			return 0, hal.Event{}, false
		}
		if id, ev, ok := w.Step(); ok {
			return id, ev, true
		}
	}
}

// draw is one latency of the board.
func (b *board) draw(l *Latency) time.Duration {
	b.draws++
	return l.at(unit(derive(b.seed^detmath.Golden, b.draws)))
}

// drawCall is the latency of one call to a bus.
func (b *board) drawCall(l *Latency) time.Duration {
	return b.draw(l) + b.physics.late(derive(^b.seed, b.draws))
}

// Reseed makes the latencies drawn from now on a matter of salt alone, not of
// how many were drawn before: a run whose past depended on the wall clock has
// the same future again.
func (w *World) Reseed(salt uint64) {
	for _, b := range w.boards {
		b.draws = derive(salt, uint64(b.id))
	}
}

// Level is the level of an input line of a board now.
func (w *World) Level(id BoardID, line hal.LineID) bool {
	b := w.boards[id]
	if !b.powered || int(line) >= len(b.lay.lines) {
		return false
	}
	at := b.lay.lines[line]
	if at.bundle < 0 {
		return false
	}
	return b.bundles[at.bundle].los[at.path].out
}

// Lit tells the truth about a path: whether every module of the bundle has
// light on both halves of its diodes, unfiltered.
func (w *World) Lit(p Port) bool {
	return w.boards[p.Board].bundles[p.Bundle].los[p.Path].raw
}

// LastChange is when Lit last changed, and to what.
func (w *World) LastChange(p Port) (at time.Duration, lit bool) {
	c := &w.boards[p.Board].bundles[p.Bundle].los[p.Path]
	return c.changed, c.raw
}

// Selected tells the truth about what a bundle does: the path that its
// receivers listen to and its light takes, and whether both halves may shine.
func (w *World) Selected(id BoardID, bundle int) (path int, shining bool) {
	bu := &w.boards[id].bundles[bundle]
	if bu.nets[0] {
		path = hal.LOSExternal1 + boolToInt(bu.nets[1])
	}
	shining = true
	for i := range bu.modules {
		shining = shining && bu.modules[i].tx[0].on && bu.modules[i].tx[1].on
	}
	return path, shining
}

// Far is the other end of the fibre at a port.
func (w *World) Far(p Port) (far Port, ok bool) {
	_, e, err := w.end(p)
	if err != nil || e.peer == nil {
		return Port{}, false
	}
	return Port{e.peer.board.id, e.peer.place, hal.LOSExternal1 + e.ext}, true
}
