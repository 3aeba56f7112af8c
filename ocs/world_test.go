package ocs_test

import (
	"errors"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/mzi"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// rig is one simulated board with the optics of its bundles, on the virtual
// clock.
type rig struct {
	t         *testing.T
	world     *sim.World
	board     *hal.Board
	id        sim.BoardID
	latch     *ocs.Latch
	optics    []*ocs.Transceiver
	done      [][]*hal.Completion
	next      []time.Duration
	events    [][]ocs.Event
	over      []*hal.Completion            // ops that took longer than a deadline
	bare      int                          // ops of nobody's
	watch     func(sim.BoardID, *hal.Edge) // edges of other boards
	lives     uint64                       // of the software: what an earlier one asked for is nobody's
	lock      ocs.LockConfig
	meanwhile func()                    // at every turn, nil: nothing
	weather   func(time.Duration) int32 // of the air, millicelsius, in the course of a day; nil: always the same
	stall     func() time.Duration      // how late the host hears of what happens; nil: never
	missed    []hal.Event               // what it has not heard yet
	awake     time.Duration             // when it does
}

const tokenShift = 56

func newRig(t *testing.T, bundles, modules int, faults ...sim.Fault) *rig {
	t.Helper()
	return newRigOf(t, hal.LTC2688, bundles, modules, faults...)
}

func newRigOf(t *testing.T, dac hal.Part, bundles, modules int, faults ...sim.Fault) *rig {
	t.Helper()
	hw, err := boardfile.DefaultOf(dac, 4, bundles, modules)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: 1}), board: &hw}
	cat := sim.Catalogue(nil, 7, bundles*modules)
	per := make([][]*sim.Personality, bundles)
	for b := range per {
		per[b] = cat[b*modules : (b+1)*modules]
	}
	r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Personalities: per, Seed: 3, Powered: true, Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	cals := make([]*ocs.Calibration, bundles)
	for b := range cals {
		cals[b] = truth(per[b])
	}
	r.boot(cals)
	return r
}

// boot makes a new life of the software on the same hardware.
func (r *rig) boot(cals []*ocs.Calibration) {
	r.lives++
	r.latch = ocs.NewLatch(r.board)
	r.optics = nil
	for b := range r.board.Bundles {
		r.optics = append(r.optics, ocs.New(ocs.Config{Board: r.board, Bundle: proto.BundleID(b), Latch: r.latch, Calibration: cals[b], Seed: 1, Lock: r.lock}))
	}
	r.done = make([][]*hal.Completion, len(r.optics))
	r.next = make([]time.Duration, len(r.optics))
	r.events = make([][]ocs.Event, len(r.optics))
	for b, o := range r.optics {
		o.Start(r.world.Now())
		for p := range hal.NumLOS {
			o.Light(r.world.Now(), r.world.Now(), proto.Loopback+proto.Path(p), r.world.Level(r.id, r.board.Bundles[b].LOS[p]))
		}
	}
}

func (r *rig) poll() {
	now := r.world.Now()
	for b, o := range r.optics {
		ops, next := o.Poll(now, r.done[b], nil)
		r.done[b], r.next[b] = nil, next
		for _, op := range ops {
			op.Op.Token |= (r.lives&15<<4 | uint64(b+1)) << tokenShift
			if err := r.world.Submit(now, r.id, op.Bus, op.Op); err != nil {
				r.t.Fatal(err)
			}
		}
		r.events[b] = o.TakeEvents(r.events[b])
	}
}

// run lets the world go on for d.
func (r *rig) run(d time.Duration) {
	r.until(r.world.Now()+d, func() bool { return false })
}

// until lets it go on until done, at most to a time.
func (r *rig) until(limit time.Duration, done func() bool) bool {
	for {
		r.poll()
		if r.meanwhile != nil {
			r.meanwhile()
		}
		if done() {
			return true
		}
		at := limit
		for _, n := range r.next {
			at = min(at, n)
		}
		if len(r.missed) > 0 {
			if r.world.Now() >= r.awake {
				r.wakes()
				continue
			}
			at = r.awake // it does nothing else either
		}
		switch id, ev, ok := r.world.Advance(at); {
		case ok && id == r.id:
			r.hear(ev)
		case ok && r.watch != nil && ev.Edge != nil:
			r.watch(id, ev.Edge)
		case !ok && at == limit:
			r.poll()
			return done()
		}
	}
}

// hear takes an event, or holds it back while the host does something else.
func (r *rig) hear(ev hal.Event) {
	if r.stall != nil && len(r.missed) == 0 {
		if d := r.stall(); d > 0 {
			r.awake = r.world.Now() + d
		} else {
			r.take(ev)
			return
		}
	}
	if r.stall == nil {
		r.take(ev)
		return
	}
	r.missed = append(r.missed, ev)
}

// wakes gives the host all that it has missed; that a call is over it sees now.
func (r *rig) wakes() {
	held := r.missed
	r.missed = nil
	for _, ev := range held {
		if ev.Completion != nil {
			ev.Completion.End = r.world.Now()
		}
		r.take(ev)
	}
}

func (r *rig) take(ev hal.Event) {
	if c := ev.Completion; c != nil {
		if c.Op.Deadline == 0 && c.End-c.Start > hal.DefaultDeadline {
			r.over = append(r.over, c)
		}
		if b := int(c.Op.Token>>tokenShift&15) - 1; b >= 0 && c.Op.Token>>(tokenShift+4) == r.lives&15 {
			r.done[b] = append(r.done[b], c)
		} else {
			r.bare++
		}
		return
	}
	for b := range r.board.Bundles {
		for p, line := range r.board.Bundles[b].LOS {
			if line == ev.Edge.Line {
				r.optics[b].Light(r.world.Now(), ev.Edge.At, proto.Loopback+proto.Path(p), ev.Edge.High)
			}
		}
	}
}

// truth is a calibration made of what the simulator knows: these tests are of
// the switching, not of the search.
func truth(per []*sim.Personality) *ocs.Calibration {
	c := &ocs.Calibration{Timing: ocs.Timing{DetectMax: 150 * time.Microsecond, DetectMin: 40 * time.Microsecond,
		SwitchMax: 250 * time.Microsecond, SwitchMin: 75 * time.Microsecond}}
	for _, p := range per {
		m := &ocs.ModuleCalibration{Serial: p.Serial()}
		for k := range m.Cells[:hal.BenesCells] {
			t := p.Cell(k)
			m.Cells[k] = ocs.CellCalibration{OffsetMicrorad: int32(t.OffsetRadian * 1e6), PiMicrowatt: uint32(t.PiMilliwatt * 1000), MilliOhm: uint32(t.Ohm * 1000)}
			for register := range 2 {
				phase := float64(mzi.PhaseCross)
				if register == 1 || k >= hal.CellMatrix {
					phase = mzi.PhaseBar
				}
				m.Codes[k][register] = code(t, phase)
			}
		}
		for lane := range hal.Lanes {
			m.LaneLoop[lane] = -4000
			m.LaneTap[0][lane], m.LaneTap[1][lane] = -1500, -1500
		}
		c.Modules = append(c.Modules, m)
	}
	return c
}

func code(t sim.CellTruth, phase float64) uint16 {
	want := mzi.Wrap(phase-t.OffsetRadian) / mzi.PhaseBar
	if want < 0 {
		want += 2
	}
	milliwatt := want * t.PiMilliwatt
	square := milliwatt / 1000 * t.Ohm
	return hal.HeaterCode(int64(mzi.Volts(square, 1000) / 1000))
}

func (r *rig) ready() {
	r.t.Helper()
	for b, o := range r.optics {
		if !r.until(r.world.Now()+10*time.Second, func() bool { return o.Status().Ready }) {
			r.t.Fatalf("bundle %d not ready: %+v, events %+v", b, o.Status(), r.events[b])
		}
	}
}

// A cold board is staged in the dark and then switched through all paths, each
// with light where it must be and nowhere else.
func TestSwitchEveryPath(t *testing.T) {
	r := newRig(t, 2, 8)
	r.ready()
	t.Logf("ready after %v of board time", r.world.Now())
	o := r.optics[1]
	for _, p := range []proto.Path{proto.Loopback, proto.External1, proto.External2, proto.Loopback, proto.Dark, proto.External2} {
		r.events[1] = nil
		asked := r.world.Now()
		if err := o.Select(asked, p); err != nil {
			t.Fatal(err)
		}
		r.run(2 * time.Millisecond)
		s := o.Status()
		if s.Path != p {
			t.Fatalf("asked for %v, is on %v", p, s.Path)
		}
		path, shining := r.world.Selected(r.id, 1)
		if shining != (p != proto.Dark) || shining && path != int(p-proto.Loopback) {
			t.Fatalf("%v: the board is on %d, shining %v", p, path, shining)
		}
		if want := p == proto.Loopback; s.Lit[proto.Loopback] != want || s.Lit[proto.External1] || s.Lit[proto.External2] {
			t.Errorf("%v: lit %v", p, s.Lit)
		}
		if p == proto.Loopback && s.State != proto.Tuned || p == proto.Dark && s.State != proto.Blocked || p.External() && s.State != proto.Tuning {
			t.Errorf("%v: state %v", p, s.State)
		}
		for _, e := range r.events[1] {
			if e.Kind == ocs.Switched {
				t.Logf("%v: bus %v settle %v, own light %v of %v", p, e.BusEnd-asked, e.Settle, s.Measured, s.Expected)
			} else if e.Kind == ocs.PathFailed {
				t.Errorf("%v: %+v", p, e)
			}
		}
	}
	if path, shining := r.world.Selected(r.id, 0); shining {
		t.Errorf("the other bundle of the byte shines on %d", path)
	}
}

// What holds is not driven again: a new life of the software finds the path,
// and the light has not moved.
func TestRestartAdopts(t *testing.T) {
	r := newRig(t, 2, 2)
	r.ready()
	for b, o := range r.optics {
		if err := o.Select(r.world.Now(), []proto.Path{proto.Loopback, proto.External2}[b]); err != nil {
			t.Fatal(err)
		}
	}
	r.run(5 * time.Millisecond)
	changed, _ := r.world.LastChange(sim.Port{Board: r.id, Bundle: 0, Path: hal.LOSLoopback})
	var cals []*ocs.Calibration
	for _, o := range r.optics {
		cals = append(cals, o.Status().Calibration)
	}
	r.boot(cals)
	r.ready()
	r.run(5 * time.Millisecond)
	for b, want := range []proto.Path{proto.Loopback, proto.External2} {
		if s := r.optics[b].Status(); s.Path != want || s.BusErrors != 0 {
			t.Errorf("bundle %d: %+v", b, s)
		}
	}
	if at, lit := r.world.LastChange(sim.Port{Board: r.id, Bundle: 0, Path: hal.LOSLoopback}); at != changed || !lit {
		t.Errorf("light changed at %v (was %v), lit %v", at, changed, lit)
	}
}

// Without a calibration there is no light, and the refusal says so.
func TestUncalibratedIsRefused(t *testing.T) {
	r := newRig(t, 1, 1)
	r.boot(make([]*ocs.Calibration, 1))
	r.run(10 * time.Millisecond)
	o := r.optics[0]
	if err := o.Select(r.world.Now(), proto.Loopback); !errors.Is(err, ocs.ErrNotCalibrated) {
		t.Errorf("got %v", err)
	}
	if err := o.Select(r.world.Now(), proto.Dark); err != nil {
		t.Errorf("dark: %v", err)
	}
	if s := o.Status(); s.Ready || !errors.Is(s.Err, ocs.ErrNotCalibrated) {
		t.Errorf("%+v", s)
	}
}

// A later Select wins over one under way, and only its end is told.
func TestLaterSelectWins(t *testing.T) {
	r := newRig(t, 1, 1)
	r.ready()
	o := r.optics[0]
	for _, p := range []proto.Path{proto.External1, proto.External2, proto.Loopback} {
		if err := o.Select(r.world.Now(), p); err != nil {
			t.Fatal(err)
		}
		r.run(10 * time.Microsecond)
	}
	r.run(time.Millisecond)
	told := 0
	for _, e := range r.events[0] {
		if e.Kind == ocs.Switched {
			told++
			if e.Path != proto.Loopback {
				t.Errorf("told of %v", e.Path)
			}
		}
	}
	if s := o.Status(); told != 1 || s.Path != proto.Loopback || !s.Lit[proto.Loopback] {
		t.Errorf("told %d times, %+v", told, s)
	}
}

func BenchmarkPollIdle(b *testing.B) {
	r := newRig(&testing.T{}, 1, 8)
	r.ready()
	o := r.optics[0]
	now := r.world.Now()
	var ops []hal.BusOp
	b.ReportAllocs()
	for b.Loop() {
		ops, _ = o.Poll(now, nil, ops[:0])
	}
}
