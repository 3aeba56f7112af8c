package selector_test

import (
	"errors"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs"
	"ringlight/ocs/circuit"
	"ringlight/ocs/selector"
	"ringlight/proto"
	"ringlight/sim"
	"ringlight/sim/fleet"
)

// rig is a server of two interfaces; each fibre leads out of its world, where
// the test plays the far side.
type rig struct {
	t      *testing.T
	world  *sim.World
	id     sim.BoardID
	board  *hal.Board
	cals   []*ocs.Calibration
	bank   *selector.Bank
	next   time.Duration
	done   []*hal.Completion
	events []circuit.Event
}

const faces = 2

func newRig(t *testing.T) *rig {
	t.Helper()
	board, err := boardfile.Default(4, faces, 1)
	if err != nil {
		t.Fatal(err)
	}
	per := sim.Catalogue(nil, 1, 1)[0]
	cal, _, err := new(fleet.Optics).Calibrate(per, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: 3}), board: &board, cals: []*ocs.Calibration{cal, cal}}
	r.id, err = r.world.AddBoard(sim.BoardConfig{Board: board, Personalities: [][]*sim.Personality{{per}, {per}}, Powered: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range faces {
		for _, path := range []int{hal.LOSExternal1, hal.LOSExternal2} {
			if err := r.world.Lead(sim.Port{Board: r.id, Bundle: i, Path: path}, sim.Fibre{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.boot()
	return r
}

// boot starts a new life on the same board.
func (r *rig) boot() {
	r.t.Helper()
	r.bank = selector.New(selector.Config{Board: r.board, Calibrations: r.cals})
	for line := range r.board.Lines {
		r.bank.Edge(r.world.Now(), &hal.Edge{Line: hal.LineID(line), High: r.world.Level(r.id, hal.LineID(line))})
	}
	r.bank.Start(r.world.Now())
	r.next, r.done, r.events = r.world.Now(), nil, nil
	r.run(20 * time.Millisecond)
	if ev := r.last(); ev.Kind != circuit.Ready || ev.Err != nil {
		r.t.Fatalf("%+v", r.events)
	}
}

func (r *rig) run(d time.Duration) {
	r.t.Helper()
	for end := r.world.Now() + d; ; {
		for n := 0; r.next <= r.world.Now() || len(r.done) > 0; n++ {
			if n > 1000 {
				r.t.Fatal("it wants to be polled for ever")
			}
			ops, next := r.bank.Poll(r.world.Now(), r.done, nil)
			r.next, r.done = next, nil
			for _, op := range ops {
				if err := r.world.Submit(r.world.Now(), r.id, op.Bus, op.Op); err != nil {
					r.t.Fatal(err)
				}
			}
			r.events = r.bank.TakeEvents(r.events)
		}
		at, any := r.world.Next()
		if wake := min(r.next, end); !any || at > wake {
			if r.world.AdvanceTo(wake); wake == end {
				return
			}
			continue
		}
		if _, ev, visible := r.world.Step(); visible {
			if ev.Completion != nil {
				r.done = append(r.done, ev.Completion)
			}
			if ev.Edge != nil {
				r.bank.Edge(r.world.Now(), ev.Edge)
				r.next = r.world.Now()
			}
		}
	}
}

func (r *rig) last() circuit.Event {
	if len(r.events) == 0 {
		return circuit.Event{Kind: 255}
	}
	return r.events[len(r.events)-1]
}

// far lets light come by a fibre, or no more.
func (r *rig) far(face, path int, lit bool) {
	r.t.Helper()
	var light sim.Light
	for l := range hal.Lanes {
		if lit {
			light[0][l] = 1_000_000
		}
	}
	if err := r.world.Receive(sim.Port{Board: r.id, Bundle: face, Path: path}, &light); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) apply(ch circuit.Change) {
	r.t.Helper()
	if err := r.bank.Apply(r.world.Now(), ch); err != nil {
		r.t.Fatal(err)
	}
	r.next = r.world.Now()
}

func (r *rig) states() map[circuit.Pair]proto.PortState {
	out := map[circuit.Pair]proto.PortState{}
	for _, c := range r.bank.Circuits(nil) {
		out[c.Pair] = c.State
	}
	return out
}

// Goal: a circuit is tuned when the far side's light is there, a flip tells its
// moments and takes well under a millisecond where light waits on the other
// fibre, the other interface is not touched, and a new life finds what there is.
func TestFlipGoesToTheOtherFibre(t *testing.T) {
	r := newRig(t)
	if n := len(r.states()); n != 0 {
		t.Fatalf("%d circuits at first", n)
	}
	r.far(0, hal.LOSExternal1, true)
	r.far(1, hal.LOSExternal1, true)
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 0, B: 0}, {A: 1, B: 1}}})
	r.run(5 * time.Millisecond)
	if s := r.states(); s[circuit.Pair{A: 0, B: 0}] != proto.Tuned || s[circuit.Pair{A: 1, B: 1}] != proto.Tuned || r.bank.Busy() {
		t.Fatalf("%v, busy %v", s, r.bank.Busy())
	}
	r.far(0, hal.LOSExternal2, true)
	r.run(time.Millisecond)
	r.events = nil
	from := r.world.Now()
	r.apply(circuit.Change{Mode: circuit.Update, Remove: []circuit.Pair{{A: 0, B: 0}}, Create: []circuit.Pair{{A: 0, B: 2}}})
	r.run(5 * time.Millisecond)
	ev := r.last()
	if len(r.events) != 1 || ev.Kind != circuit.Tuned || ev.Pair != (circuit.Pair{A: 0, B: 2}) {
		t.Fatalf("%+v", r.events)
	}
	if m := ev.Moves; m.Asked != from || m.BusStart < m.Asked || m.BusEnd <= m.BusStart || m.Settled <= m.BusEnd || ev.At < m.Settled || ev.At-from > 500*time.Microsecond {
		t.Errorf("asked at %v: %+v, light at %v", from, m, ev.At)
	}
	if path, shining := r.world.Selected(r.id, 0); path != hal.LOSExternal2 || !shining {
		t.Errorf("interface 0 is on path %d, shining %v", path, shining)
	}
	if path, _ := r.world.Selected(r.id, 1); path != hal.LOSExternal1 {
		t.Errorf("interface 1 is on path %d", path)
	}
	r.boot()
	if s := r.states(); len(s) != 2 || s[circuit.Pair{A: 0, B: 2}] != proto.Tuned || s[circuit.Pair{A: 1, B: 1}] != proto.Tuned {
		t.Errorf("a new life finds %v", s)
	}
	r.apply(circuit.Change{Mode: circuit.Update, Remove: []circuit.Pair{{A: 1, B: 1}}})
	r.run(5 * time.Millisecond)
	if path, _ := r.world.Selected(r.id, 1); path != hal.LOSLoopback || len(r.states()) != 1 || r.bank.Busy() {
		t.Errorf("interface 1 without a circuit is on path %d; %v", path, r.states())
	}
}

// Goal: who waits for light says so after its time, and once; light that comes
// later, goes and comes again is told.
func TestLightIsWaitedFor(t *testing.T) {
	r := newRig(t)
	r.events = nil
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 0, B: 2}}})
	r.run(500 * time.Millisecond)
	if len(r.events) != 0 || !r.bank.Busy() || r.states()[circuit.Pair{A: 0, B: 2}] != proto.Tuning {
		t.Fatalf("%+v, busy %v", r.events, r.bank.Busy())
	}
	r.run(time.Second)
	if ev := r.last(); len(r.events) != 1 || ev.Kind != circuit.Unlit || !errors.Is(ev.Err, circuit.ErrNoInput) || r.bank.Busy() {
		t.Fatalf("%+v, busy %v", r.events, r.bank.Busy())
	}
	for n, lit := range []bool{true, false, true} {
		r.far(0, hal.LOSExternal2, lit)
		r.run(time.Millisecond)
		want := []circuit.EventKind{circuit.Unlit, circuit.Tuned}[map[bool]int{true: 1}[lit]]
		if ev := r.last(); len(r.events) != 2+n || ev.Kind != want {
			t.Fatalf("light %v: %+v", lit, r.events)
		}
	}
}

// Goal: what cannot be is refused as a whole, and a server without calibrations
// says which circuit it cannot make.
func TestRefusals(t *testing.T) {
	r := newRig(t)
	for _, p := range []circuit.Pair{{A: 0, B: 1}, {A: 2, B: 2}, {A: 0, B: 4}} {
		if err := r.bank.Apply(0, circuit.Change{Create: []circuit.Pair{{A: 1, B: 3}, p}}); !errors.Is(err, hal.ErrOutOfRange) {
			t.Errorf("%v: %v", p, err)
		}
	}
	if r.run(time.Millisecond); len(r.states()) != 0 {
		t.Errorf("%v", r.states())
	}
	if err := r.bank.Override(0, 0, 0, proto.ForceBlocked); err == nil {
		t.Error("a port is held off that cannot be")
	}
	r.cals = nil
	r.boot()
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 1, B: 1}}})
	r.run(time.Millisecond)
	if ev := r.last(); ev.Kind != circuit.Failed || ev.Pair != (circuit.Pair{A: 1, B: 1}) || !errors.Is(ev.Err, ocs.ErrNotCalibrated) {
		t.Errorf("%+v", r.events)
	}
}
