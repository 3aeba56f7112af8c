package mems_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/proto"
	"ringlight/sim"
)

// One circuit alone, and then all of a large board at once, with every mirror
// moving: within the limits of the default board.
func TestCrossbarSingleAndBulk(t *testing.T) {
	r := newRig(t, 136, 1)
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 3, B: 130}}})
	t.Logf("single: %+v", r.check(1))
	r.apply(circuit.Change{Mode: circuit.Overwrite, Create: pairs(136, func(a int) int { return (a*5 + 7) % 136 })})
	t.Logf("bulk of 136: %+v", r.check(136))
	r.apply(circuit.Change{Mode: circuit.Overwrite, Create: pairs(136, func(a int) int { return 135 - a })})
	t.Logf("bulk across: %+v", r.check(136))
	if s := r.x.Status(); s.BusErrors != 0 || s.LimitErrors != 0 {
		t.Errorf("%+v", s)
	}
}

// A board of its file: electrodes on DACs of two buses in no order, monitors in no order on
// ADCs of three kinds of addresses, another clock for each; and a DAC that was added with
// frames of its own, which the simulator refuses.
func TestCrossbarOfItsFile(t *testing.T) {
	raw, err := os.ReadFile("../../hal/boardfile/testdata/atrium.json")
	if err != nil {
		t.Fatal(err)
	}
	_, hw, err := boardfile.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	r := newRigOn(t, hw, 11, sim.MirrorPhysics{})
	r.apply(circuit.Change{Create: pairs(12, func(a int) int { return (a*7 + 5) % 12 })})
	t.Logf("all at once: %+v", r.check(12))
	r.apply(circuit.Change{Mode: circuit.Overwrite, Create: pairs(12, func(a int) int { return 11 - a })})
	r.check(12)
	data := *hal.AD5535B.Data()
	data.Name = "toy32"
	toy, err := mems.AddDAC(data, mems.DAC{Frame: 4, Write: func(dst []byte, ch int, code uint16) []byte {
		return append(dst, 0, byte(ch), byte(code>>8), byte(code))
	}})
	if err != nil {
		t.Fatal(err)
	}
	hw.Mirrors.DAC = toy
	if _, err := mems.New(mems.Config{Board: &hw, Factory: r.factory}); err != nil {
		t.Error(err)
	}
	if _, err := r.world.AddBoard(sim.BoardConfig{Board: hw}); err == nil {
		t.Error("the simulator took a DAC for what it is not")
	}
}

// Many boards, each another draw of mirrors, each a random permutation.
func TestCrossbarSeeds(t *testing.T) {
	var worst figures
	for seed := range uint64(20) {
		r := newRig(t, 24, 100+seed)
		perm := rand.New(rand.NewPCG(seed, 1)).Perm(24)
		r.apply(circuit.Change{Create: pairs(24, func(a int) int { return perm[a] })})
		f := r.check(24)
		worst.open, worst.took, worst.moves = max(worst.open, f.open), max(worst.took, f.took), max(worst.moves, f.moves)
		worst.openLoss, worst.loss = max(worst.openLoss, f.openLoss), max(worst.loss, f.loss)
	}
	t.Logf("worst of 480 circuits: %+v", worst)
}

// A port is in one circuit at most, and the modes differ in what they do about
// it; a change that is refused changes nothing.
func TestCrossbarModes(t *testing.T) {
	r := newRig(t, 8, 2)
	r.apply(circuit.Change{Create: pairs(4, func(a int) int { return a })})
	before := r.x.Circuits(nil)
	for _, c := range []struct {
		name   string
		change circuit.Change
		want   error
	}{
		{"A in use", circuit.Change{Create: []circuit.Pair{{A: 6, B: 6}, {A: 0, B: 7}}}, circuit.ErrPortInUse},
		{"B in use", circuit.Change{Create: []circuit.Pair{{A: 7, B: 1}}}, circuit.ErrPortInUse},
		{"twice", circuit.Change{Mode: circuit.Overwrite, Create: []circuit.Pair{{A: 5, B: 5}, {A: 6, B: 5}}}, circuit.ErrPortTwice},
		{"not there", circuit.Change{Remove: []circuit.Pair{{A: 0, B: 1}}}, circuit.ErrNoCircuit},
		{"no such port", circuit.Change{Create: []circuit.Pair{{A: 8, B: 1}}}, hal.ErrOutOfRange},
	} {
		err := r.x.Apply(r.world.Now(), c.change)
		var which *circuit.Error
		if !errors.Is(err, c.want) || !errors.As(err, &which) {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := r.x.Circuits(nil); !slices.Equal(got, before) {
			t.Errorf("%s: changed %v", c.name, got)
		}
	}
	// Safe with what is there already, and a move that frees its ports itself.
	r.apply(circuit.Change{Remove: []circuit.Pair{{A: 0, B: 0}}, Create: []circuit.Pair{{A: 1, B: 1}, {A: 0, B: 5}}})
	r.check(4)
	r.apply(circuit.Change{Mode: circuit.Update, Create: []circuit.Pair{{A: 2, B: 3}, {A: 7, B: 5}}})
	r.check(3) // 2-2, 3-3 and 0-5 made way
	removed := 0
	for _, e := range r.events {
		if e.Kind == circuit.Removed {
			removed++
		}
	}
	if removed != 3 {
		t.Errorf("%d removed", removed)
	}
	r.apply(circuit.Change{Mode: circuit.Overwrite, Create: []circuit.Pair{{A: 2, B: 3}, {A: 4, B: 4}}})
	r.check(2)
	for b := range 8 {
		if lit := r.world.MirrorOutput(r.id, b) > 1e-3; lit != (b == 3 || b == 4) {
			t.Errorf("port %dB: light %v", b+1, lit)
		}
	}
}

// What is kept is not driven; what is restored comes back after a loss of
// power; dark is dark.
func TestCrossbarStartModes(t *testing.T) {
	r := newRig(t, 8, 3)
	r.apply(circuit.Change{Create: pairs(5, func(a int) int { return 7 - a })})
	saved := r.x.Save(nil)
	r.boot(mems.Config{Startup: mems.Keep, Saved: saved})
	if r.spi != 0 {
		t.Errorf("keep: %d writes to mirrors", r.spi)
	}
	r.check(5)

	r.world.SetPower(r.id, false)
	r.until(10*time.Millisecond, func() bool { return false })
	r.world.SetPower(r.id, true)
	r.boot(mems.Config{Startup: mems.Keep, Saved: saved})
	for _, c := range r.x.Circuits(nil) {
		if c.State != proto.Failed || !errors.Is(c.Err, mems.ErrNotAdopted) {
			t.Errorf("keep after power was lost: %v %v %v", c.Pair, c.State, c.Err)
		}
	}
	if r.spi != 0 {
		t.Errorf("keep after power was lost: %d writes", r.spi)
	}
	r.boot(mems.Config{Startup: mems.Restore, Saved: saved})
	r.until(2*time.Second, r.idle)
	r.check(5)
	r.boot(mems.Config{Startup: mems.Dark, Saved: saved})
	for b := range 8 {
		if r.world.MirrorOutput(r.id, b) > 1e-3 {
			t.Errorf("dark: light at %dB", b+1)
		}
	}
}

// A mirror that creeps is followed in service, its light staying on; one that
// is stuck is named, and the others do not suffer.
func TestCrossbarCreepAndStick(t *testing.T) {
	r := newRig(t, 8, 4)
	r.apply(circuit.Change{Create: pairs(8, func(a int) int { return (a + 3) % 8 })})
	r.world.CreepMirror(r.id, hal.SideA, 2, 2000)
	drifted, worst := 0, int32(0)
	for range 120 {
		r.events = nil
		r.x.HealthRound(r.world.Now())
		r.until(10*time.Second, func() bool { return false })
		for _, e := range r.events {
			if e.Kind == circuit.Drifted {
				drifted++
			}
			if e.Kind == circuit.Failed {
				t.Errorf("%v failed: %v", e.Pair, e.Err)
			}
		}
		worst = max(worst, r.world.MirrorLoss(r.id, 2, 5))
	}
	t.Logf("20 minutes of creep: tuned %d times, loss never over %d", drifted, worst)
	if drifted == 0 || worst > 4000 {
		t.Errorf("tuned %d times, worst loss %d", drifted, worst)
	}
	r.check(8)

	r.world.CreepMirror(r.id, hal.SideA, 2, 0)
	r.world.StickMirror(r.id, hal.SideB, 6, true)
	r.apply(circuit.Change{Mode: circuit.Overwrite, Create: pairs(8, func(a int) int { return 7 - a })})
	for _, c := range r.x.Circuits(nil) {
		if stuck := c.Pair.B == 6; stuck != (c.State == proto.Failed) || stuck && !errors.Is(c.Err, circuit.ErrNotTuned) {
			t.Errorf("%v: %v %v", c.Pair, c.State, c.Err)
		}
	}
}

// Without light there is nothing to tune by, and it is said; light that comes
// later is used.
func TestCrossbarNeedsLight(t *testing.T) {
	r := newRig(t, 4, 5)
	r.world.SetMirrorInput(r.id, 1, sim.InputLight{})
	r.apply(circuit.Change{Create: pairs(4, func(a int) int { return a })})
	c := r.x.Circuits(nil)[1]
	if c.State != proto.Tuning || !errors.Is(c.Err, circuit.ErrNoInput) {
		t.Errorf("%+v", c)
	}
	r.world.SetMirrorInput(r.id, 1, sim.InputLight{Lit: true, MilliDBm: -12_000})
	r.x.HealthRound(r.world.Now())
	r.until(time.Second, func() bool { return false })
	r.check(4)
}

// A held-off port lets no light through; its circuit comes back by itself.
func TestCrossbarOverride(t *testing.T) {
	r := newRig(t, 4, 6)
	r.apply(circuit.Change{Create: pairs(2, func(a int) int { return a })})
	if err := r.x.Override(r.world.Now(), hal.SideB, 1, proto.ForceBlocked); err != nil {
		t.Fatal(err)
	}
	r.until(100*time.Millisecond, func() bool { return false })
	if c := r.x.Circuits(nil)[1]; c.State != proto.Blocked || r.world.MirrorOutput(r.id, 1) > 1e-3 {
		t.Errorf("%+v, light %v", c, r.world.MirrorOutput(r.id, 1))
	}
	if err := r.x.Override(r.world.Now(), hal.SideB, 1, proto.Normal); err != nil {
		t.Fatal(err)
	}
	r.until(time.Second, r.idle)
	r.check(2)
}

// Alarms are raised at once and cleared after the hold-off.
func TestCrossbarThresholds(t *testing.T) {
	r := newRig(t, 2, 7)
	r.apply(circuit.Change{Create: pairs(2, func(a int) int { return a })})
	set := circuit.Thresholds{On: true, Low: -10_000, Degrade: -5_000, High: 3_000, ClearHoldOff: 2500 * time.Millisecond}
	if err := r.x.SetThresholds(hal.SideA, 0, set); err != nil {
		t.Fatal(err)
	}
	if err := r.x.SetThresholds(hal.SideA, 1, circuit.Thresholds{On: true, Low: 0, Degrade: -1}); !errors.Is(err, hal.ErrOutOfRange) {
		t.Errorf("out of order: %v", err)
	}
	var got []circuit.Alarm
	var at []time.Duration
	// In seconds: 0-1 fine, 2 degraded, 3 low, 4 fine for a moment, 5 low, 6 on fine, 15 high.
	for s := range 20 {
		power := int32(0)
		switch {
		case s == 2:
			power = -7000
		case s == 3 || s == 5:
			power = -20_000
		case s >= 15:
			power = 4000
		}
		r.world.SetMirrorInput(r.id, 0, sim.InputLight{Lit: true, MilliDBm: power})
		r.events = nil
		start := r.world.Now()
		r.x.HealthRound(start)
		r.until(time.Second, func() bool { return false })
		for _, e := range r.events {
			if e.Kind == circuit.AlarmRaised || e.Kind == circuit.AlarmCleared {
				got, at = append(got, e.Alarm), append(at, time.Duration(s))
			}
		}
	}
	if !slices.Equal(got, []circuit.Alarm{circuit.AlarmDegrade, circuit.AlarmLow, circuit.AlarmNone, circuit.AlarmHigh}) ||
		!slices.Equal(at, []time.Duration{2, 3, 9, 15}) {
		t.Errorf("alarms %v at seconds %v", got, at)
	}
}

// A monitor chip that does not answer fails its circuits with that cause, in
// bounded time; the others work.
func TestCrossbarMonitorGone(t *testing.T) {
	r := newRig(t, 24, 8)
	m := r.board.Mirrors.Monitors[hal.SideB][9]
	if err := r.world.Inject(r.id, sim.Fault{Kind: sim.ChipGone, Bus: m.Bus, Addr: m.Addr}); err != nil {
		t.Fatal(err)
	}
	r.apply(circuit.Change{Create: pairs(24, func(a int) int { return a })})
	for _, c := range r.x.Circuits(nil) {
		if gone := c.Pair.B/8 == 1; gone != (c.State == proto.Failed) || gone && !errors.Is(c.Err, hal.ErrAddressNACK) {
			t.Errorf("%v: %v %v", c.Pair, c.State, c.Err)
		}
	}
	if err := r.world.Repair(r.id, sim.Fault{Kind: sim.ChipGone, Bus: m.Bus, Addr: m.Addr}); err != nil {
		t.Fatal(err)
	}
	r.apply(circuit.Change{Create: pairs(24, func(a int) int { return a })})
	r.check(24)
}

// Writes that fail are tried again, three times in all; then the circuits that
// they were for have failed with the bus's cause, and the next change begins
// from rest, as nobody knows where the mirrors are.
func TestCrossbarWritesFail(t *testing.T) {
	r := newRig(t, 8, 11)
	r.apply(circuit.Change{Create: pairs(2, func(a int) int { return a })})
	r.spoil = 2
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 4, B: 5}}})
	r.check(3)
	r.spoil = 3
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 6, B: 7}}})
	for _, c := range r.x.Circuits(nil) {
		if hit := c.Pair.A == 6; hit != (c.State == proto.Failed) || hit && !errors.Is(c.Err, hal.ErrTimeout) {
			t.Errorf("%v: %v %v", c.Pair, c.State, c.Err)
		}
	}
	if s := r.x.Status(); s.BusErrors != 5 {
		t.Errorf("%d bus errors", s.BusErrors)
	}
	r.apply(circuit.Change{Create: []circuit.Pair{{A: 6, B: 7}}})
	r.check(4)
}

// A stuck monitor segment: a board of which no monitor answers is out of
// service and says why.
func TestCrossbarFaulted(t *testing.T) {
	hw, _ := hal.DefaultMEMS(4)
	bus := hw.Mirrors.Monitors[hal.SideA][0].Bus
	r := newRig(t, 4, 9, sim.Fault{Kind: sim.BusStuck, Bus: bus})
	if s := r.x.Status(); s.State != mems.Faulted || !errors.Is(s.Err, hal.ErrBusStuck) {
		t.Errorf("%+v", s)
	}
	if err := r.x.Apply(r.world.Now(), circuit.Change{}); !errors.Is(err, circuit.ErrOutOfService) || !errors.Is(err, hal.ErrBusStuck) {
		t.Errorf("%v", err)
	}
}

func BenchmarkCrossbarPollIdle(b *testing.B) {
	r := newRig(b, 136, 1)
	b.ReportAllocs()
	for b.Loop() {
		r.x.Poll(r.world.Now(), nil, nil)
	}
}

// Whatever drives were saved, or made up, no mirror is pulled in: the guard is
// below every command.
func FuzzCrossbarGuard(f *testing.F) {
	f.Add(int16(32767), int16(-32768), int16(4096), int16(-4097))
	f.Add(int16(4096), int16(4096), int16(-4096), int16(-4096))
	f.Fuzz(func(t *testing.T, a, b, c, d int16) {
		r := newRig(t, 4, 10)
		r.boot(mems.Config{Startup: mems.Restore, Saved: []circuit.Saved{{Pair: circuit.Pair{A: 0, B: 3}, Drive: [4]int16{a, b, c, d}}}})
		r.until(time.Second, r.idle)
		r.apply(circuit.Change{Mode: circuit.Update, Create: []circuit.Pair{{A: 0, B: 0}}})
		if n := r.world.PulledIn(r.id); n != 0 {
			t.Errorf("%d mirrors pulled in", n)
		}
	})
}
