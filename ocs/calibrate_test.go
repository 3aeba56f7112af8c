package ocs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/mzi"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// bare is a board that nobody has calibrated.
func bare(t *testing.T, bundles, modules int, seed uint64, faults ...sim.Fault) *rig {
	t.Helper()
	return bareOf(t, hal.LTC2688, bundles, modules, seed, faults...)
}

func bareOf(t *testing.T, dac hal.Part, bundles, modules int, seed uint64, faults ...sim.Fault) *rig {
	t.Helper()
	hw, err := boardfile.DefaultOf(dac, 4, bundles, modules)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: seed}), board: &hw}
	if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Seed: seed, Powered: true, Faults: faults}); err != nil {
		t.Fatal(err)
	}
	r.boot(make([]*ocs.Calibration, bundles))
	r.run(20 * time.Millisecond)
	return r
}

// ends runs a calibration of bundle 0 to its end and returns the event that
// says so, and how long it took on the board's clock.
func (r *rig) ends() (ocs.Event, time.Duration) { return r.calibrates(0) }

// calibrates does it for any bundle.
func (r *rig) calibrates(b int) (ocs.Event, time.Duration) {
	r.t.Helper()
	start := r.world.Now()
	r.events[b] = nil
	if err := r.optics[b].Calibrate(start); err != nil {
		r.t.Fatal(err)
	}
	var end ocs.Event
	found := r.until(start+20*time.Minute, func() bool {
		for _, e := range r.events[b] {
			if e.Kind == ocs.Calibrated || e.Kind == ocs.CalibrationFailed {
				end = e
				return true
			}
		}
		return false
	})
	if !found {
		r.t.Fatalf("no end after %v: %+v", r.world.Now()-start, r.optics[b].Status())
	}
	return end, r.world.Now() - start
}

// Goal: production code finds every cell of a simulated board from unknown
// offsets, lights every path with the result, and never leaves a limit.
// Method: extinctions are the simulator's truth, on four boards; make
// bench-calibration takes 200.
func TestCalibratesFromNothing(t *testing.T) {
	seeds := 4
	if testing.Short() {
		seeds = 3
	}
	var lanes, matrix []int32
	for seed := range seeds {
		r := bare(t, 1, 1, uint64(seed+1))
		end, took := r.ends()
		if end.Kind != ocs.Calibrated {
			t.Errorf("seed %d: %v", seed, end.Err)
			continue
		}
		r.ready()
		o := r.optics[0]
		s := o.Status()
		for k, db := range r.world.Extinctions(r.id, 0, 0) {
			want := int32(25_000)
			if k >= hal.CellMatrix {
				want = 20_000
				matrix = append(matrix, db)
			} else {
				lanes = append(lanes, db)
			}
			if db < want {
				t.Errorf("seed %d: cell %d (%s) has %d mdB", seed, k, mzi.CellName(k), db)
			}
		}
		checkLimits(t, r)
		if s.LimitErrors != 0 || s.BusErrors != 0 {
			t.Errorf("seed %d: %d codes cut, %d bus errors", seed, s.LimitErrors, s.BusErrors)
		}
		m := s.Calibration.Modules[0]
		t.Logf("seed %d: %s: %d measurements in %v of board time, timing %+v", seed, m.Serial, m.Measurements, took, s.Timing)
		if x := s.Timing; x.DetectMin < 20*time.Microsecond || x.DetectMax > 200*time.Microsecond || x.DetectMin >= x.DetectMax ||
			x.SwitchMin < 40*time.Microsecond || x.SwitchMax > 300*time.Microsecond || x.SwitchMin >= x.SwitchMax {
			t.Errorf("seed %d: timing %+v", seed, x)
		}
		checkPaths(t, r)
	}
	for name, v := range map[string][]int32{"MZI1, MZI2": lanes, "matrix": matrix} {
		slices.Sort(v)
		if n := len(v); n > 0 {
			t.Logf("%-10s extinction min %.1f p05 %.1f p50 %.1f dB", name, float64(v[0])/1000, float64(v[n/20])/1000, float64(v[n/2])/1000)
		}
	}
}

func TestCalibrationOnABusyHost(t *testing.T) {
	// Goal: a calibration on a host that hears of every fiftieth thing milliseconds
	// late makes bounds that a ring can be built with, and says how many trials it
	// did not believe. They were 0 us to more than 3 ms.
	rng, late := rand.New(rand.NewPCG(1, 2)), 0
	for seed := range 4 {
		r := bare(t, 1, 1, uint64(seed+1))
		r.stall = func() time.Duration {
			if rng.IntN(50) > 0 {
				return 0
			}
			return time.Duration(1+rng.IntN(4)) * time.Millisecond
		}
		end, _ := r.ends()
		c := r.optics[0].Status().Calibration
		if end.Kind != ocs.Calibrated {
			t.Fatalf("seed %d: %v", seed+1, end.Err)
		}
		e := c.Timing.Envelope(500 * time.Microsecond)
		if err := e.Usable(); err != nil {
			t.Errorf("seed %d: %v", seed+1, err)
		}
		if x := c.Timing; x.DetectMin <= 0 || x.DetectMax > 400*time.Microsecond || x.SwitchMin < 25*time.Microsecond || x.SwitchMax > 600*time.Microsecond {
			t.Errorf("seed %d: %+v", seed+1, x)
		}
		late += int(c.Late)
		if c.Doubt() != end.Text || (c.Late > 0) != (end.Text != "") {
			t.Errorf("seed %d: %d of %d trials late, told %q", seed+1, c.Late, c.Trials, end.Text)
		}
		t.Logf("%+v %s", c.Timing, end.Text)
		back, err := ocs.DecodeCalibration(c.Encode())
		if err != nil || back.Late != c.Late || back.Trials != c.Trials {
			t.Errorf("seed %d: %v, %d of %d come back as %d of %d", seed+1, err, c.Late, c.Trials, back.Late, back.Trials)
		}
	}
	if late == 0 {
		t.Error("no trial was late: this tests nothing")
	}
}

// checkLimits: no heater ever left its limits.
func checkLimits(t *testing.T, r *rig) {
	t.Helper()
	l := r.world.Limits(r.id)
	if int64(l.Volt) > hal.Standard().Heater.MaxMillivolt*1_000_000 || int64(l.Current) > hal.Standard().Heater.MaxMicroampere*1000 ||
		int64(l.Heater) > hal.Standard().Heater.MaxMicrowatt*1000 || int64(l.Module) > hal.Standard().Heater.ModuleMicrowatt*1000 {
		t.Errorf("limits left: %+v", l)
	}
}

// checkPaths selects every lit path and wants its own light as calibrated.
func checkPaths(t *testing.T, r *rig) { t.Helper(); checkPathsIn(t, r, 5*time.Millisecond) }

// checkPathsIn gives every path a time.
func checkPathsIn(t *testing.T, r *rig, each time.Duration) {
	t.Helper()
	o := r.optics[0]
	for _, p := range []proto.Path{proto.Loopback, proto.External1, proto.External2, proto.Dark} {
		r.events[0] = nil
		if err := o.Select(r.world.Now(), p); err != nil {
			t.Fatal(err)
		}
		r.run(each)
		s := o.Status()
		if s.Path != p || p == proto.Loopback && s.State != proto.Tuned {
			t.Errorf("asked for %v: %+v", p, s)
		}
		for _, e := range r.events[0] {
			if e.Kind == ocs.PathFailed || e.Kind == ocs.Degraded {
				t.Errorf("%v: %v %s: %v of %v, %v", p, e.Kind, e.Text, e.Measured, e.Expected, e.Err)
			}
		}
		if d := s.Measured - s.Expected; p != proto.Dark && (d < -200 || d > 200) {
			t.Errorf("%v: own light %v, expected %v", p, s.Measured, s.Expected)
		}
	}
}

// Goal: a heater that is broken ends the calibration with the cell's name, and
// nothing of it is used.
// Method: stuck and short heaters, a dead laser, on one of two modules.
func TestCalibrationNamesTheFault(t *testing.T) {
	tests := []struct {
		fault sim.Fault
		cell  int
		want  mzi.Fault
	}{
		{sim.Fault{Kind: sim.HeaterStuck, Module: 1, Index: 29}, 29, mzi.Open},
		{sim.Fault{Kind: sim.HeaterShort, Module: 1, Index: 3}, 3, mzi.Short},
		{sim.Fault{Kind: sim.LaserDead, Module: 1, Index: 5}, 5, mzi.NoLight},
	}
	for _, tt := range tests {
		r := bare(t, 1, 2, 5, tt.fault)
		end, took := r.ends()
		var found *mzi.CellError
		if end.Kind != ocs.CalibrationFailed || !errors.As(end.Err, &found) {
			t.Errorf("%v: %+v", tt.fault.Kind, end)
			continue
		}
		t.Logf("after %v: %s", took, end.Text)
		if end.Module != 1 || int(end.Cell) != tt.cell || found.Fault != tt.want {
			t.Errorf("%v: %s", tt.fault.Kind, end.Text)
		}
		r.run(10 * time.Millisecond)
		s := r.optics[0].Status()
		if s.Calibrated || s.Ready || s.Machine != ocs.Idle {
			t.Errorf("%v: %+v", tt.fault.Kind, s)
		}
		if err := r.optics[0].Select(r.world.Now(), proto.Loopback); !errors.Is(err, ocs.ErrNotCalibrated) {
			t.Errorf("%v: select gives %v", tt.fault.Kind, err)
		}
		if _, shining := r.world.Selected(r.id, 0); shining {
			t.Errorf("%v: it shines", tt.fault.Kind)
		}
	}
}

// Goal: a whole bundle calibrates at the same time and again later, from
// whatever its chips hold then; while it shines it is refused.
// Method: eight modules, twice, and a Calibrate on each lit path.
func TestCalibratesABundleAgain(t *testing.T) {
	r := bare(t, 1, 8, 11)
	var digests []proto.Digest
	for round := range 2 {
		end, took := r.ends()
		if end.Kind != ocs.Calibrated {
			t.Fatalf("round %d: %s", round, end.Text)
		}
		r.ready()
		c := r.optics[0].Status().Calibration
		t.Logf("8 modules in %v of board time, timing %+v", took, c.Timing)
		digests = append(digests, c.Digest())
		for m := range c.Modules {
			for k, db := range r.world.Extinctions(r.id, 0, m) {
				if k < hal.CellMatrix && db < 25_000 || db < 20_000 {
					t.Errorf("round %d: module %d cell %d has %d mdB", round, m, k, db)
				}
			}
		}
		checkPaths(t, r)
	}
	if digests[0] == digests[1] {
		t.Error("two calibrations have one digest")
	}
	checkLimits(t, r)
	for _, p := range []proto.Path{proto.Loopback, proto.External2} {
		if err := r.optics[0].Select(r.world.Now(), p); err != nil {
			t.Fatal(err)
		}
		if err := r.optics[0].Calibrate(r.world.Now()); err == nil {
			t.Fatalf("%v: calibration began while switching", p)
		}
		r.run(5 * time.Millisecond)
		if err := r.optics[0].Calibrate(r.world.Now()); !errors.Is(err, ocs.ErrCarriesLight) {
			t.Errorf("%v: %v", p, err)
		}
	}
}

// Goal: nothing that a peer takes for light leaves a bundle while it
// calibrates.
// Method: two boards joined by both fibres; the other's LOS lines are watched
// to the end.
func TestCalibrationDisturbsNoPeer(t *testing.T) {
	r := bare(t, 1, 2, 3)
	other, err := r.world.AddBoard(sim.BoardConfig{Board: *r.board, Seed: 4, Powered: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []int{hal.LOSExternal1, hal.LOSExternal2} {
		if err := r.world.Connect(sim.Port{Board: r.id, Path: p}, sim.Port{Board: other, Path: p}, sim.Fibre{}); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	r.watch = func(b sim.BoardID, e *hal.Edge) {
		if b == other {
			seen++
		}
	}
	if end, _ := r.ends(); end.Kind != ocs.Calibrated {
		t.Fatal(end.Text)
	}
	if seen != 0 {
		t.Errorf("the peer saw %d edges", seen)
	}
	// The watch itself works: a path that is selected is seen.
	r.ready()
	if err := r.optics[0].Select(r.world.Now(), proto.External1); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Millisecond)
	if seen == 0 {
		t.Error("the peer does not see a path that is lit")
	}
}

// Goal: modules that cannot be calibrated are all named by one calibration, and those that
// are sound are searched to their end.
// Method: four modules, of which three are well, two, or none; what a search of a sound
// one alone takes.
func TestSoundModulesGoOn(t *testing.T) {
	all := []sim.Fault{{Kind: sim.HeaterStuck, Module: 1, Index: 29}, {Kind: sim.LaserDead, Module: 3, Index: 5},
		{Kind: sim.LaserDead, Module: 0, Index: 3}, {Kind: sim.HeaterStuck, Module: 2, Index: 7}}
	for _, n := range []int{0, 1, 2, 4} {
		r := bare(t, 1, 4, 5, all[:n]...)
		end, took := r.ends()
		t.Logf("%d of 4 fail: after %v: %s", n, took, end.Text)
		if n == 0 {
			if end.Kind != ocs.Calibrated {
				t.Fatal(end.Text)
			}
			continue
		}
		if end.Kind != ocs.CalibrationFailed || len(end.Failures) != n || n < 4 && took < 10*time.Second {
			t.Errorf("%d fail: after %v %v, %+v", n, took, end.Kind, end.Failures)
		}
		for _, f := range all[:n] {
			if !slices.ContainsFunc(end.Failures, func(x ocs.Failure) bool { return int(x.Module) == f.Module }) || !strings.Contains(end.Text, fmt.Sprintf("module %d", f.Module)) {
				t.Errorf("%d fail: no module %d in %s", n, f.Module, end.Text)
			}
		}
		r.run(10 * time.Millisecond)
		if _, shining := r.world.Selected(r.id, 0); shining || r.optics[0].Status().Machine != ocs.Idle {
			t.Errorf("%d fail: it shines, or is %v", n, r.optics[0].Status().Machine)
		}
		checkLimits(t, r)
	}
}

// Goal: a module that does not answer ends the calibration with its number and
// the cause, not with a guess.
// Method: each chip's address of module 1 gone.
func TestCalibrationNamesTheSilentModule(t *testing.T) {
	hw, err := boardfile.Default(4, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	m := hw.Bundles[0].Modules[1]
	for _, f := range []sim.Fault{
		{Kind: sim.ChipGone, Bus: m.ADC, Addr: m.LaneADC},
		{Kind: sim.ChipGone, Bus: m.ADC, Addr: m.Guard},
	} {
		r := bare(t, 1, 2, 6, f)
		end, _ := r.ends()
		if end.Kind != ocs.CalibrationFailed || end.Module != 1 || !errors.Is(end.Err, hal.ErrAddressNACK) {
			t.Errorf("%v: %+v", f, end)
		}
	}
}

// Goal: the search takes the same course and ends on the same codes on every
// machine.
// Method: golden digest; the test runs on every architecture that is built for.
// Simulator and search both go into it: it may change between commits, never
// between machines.
func TestCalibrationHasTheSameBitsEverywhere(t *testing.T) {
	r := bare(t, 1, 1, 1)
	if end, _ := r.ends(); end.Kind != ocs.Calibrated {
		t.Fatal(end.Text)
	}
	if got := r.optics[0].Status().Calibration.Digest().String(); got != "1a003bf9ea7dc34254549a880f859d87" {
		t.Errorf("digest %s", got)
	}
}

// Goal: a calibration that begins in the instant in which one has failed fails for the same
// cause: what the first had on the buses is none of its answers.
// Method: a board with an open heater, calibrated again at once, several times.
func TestCalibrationBeginsWhereOneHasFailed(t *testing.T) {
	r := bare(t, 1, 2, 21, sim.Fault{Kind: sim.HeaterStuck, Module: 1, Index: 3})
	first, _ := r.ends()
	for range 3 {
		if again, _ := r.ends(); first.Kind != ocs.CalibrationFailed || again.Kind != first.Kind || again.Module != 1 || again.Cell != 3 {
			t.Errorf("first %v %q, then %v %q", first.Kind, first.Text, again.Kind, again.Text)
		}
	}
}
