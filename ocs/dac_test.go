package ocs_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// Goal: a board with another DAC is calibrated from nothing by the same software,
// as well as any, and lights every path with the result.
// Method: extinctions are the simulator's truth; five AD5676R a module, which have
// one code per channel and switch by a pulse. No second Select takes longer than
// the timing says.
func TestAnotherDACCalibrates(t *testing.T) {
	r := bareOf(t, hal.AD5676R, 1, 4, 5)
	end, took := r.ends()
	if end.Kind != ocs.Calibrated {
		t.Fatal(end.Err)
	}
	r.ready()
	s := r.optics[0].Status()
	t.Logf("%d measurements in %v of board time, timing %+v", s.Calibration.Modules[0].Measurements, took, s.Timing)
	if s.LimitErrors != 0 || s.BusErrors != 0 {
		t.Errorf("%d codes cut, %d bus errors", s.LimitErrors, s.BusErrors)
	}
	for k, db := range r.world.Extinctions(r.id, 0, 1) {
		if want := int32(20_000); db < want || k < hal.CellMatrix && db < want+5_000 {
			t.Errorf("cell %d (%s) has %d mdB", k, mzi.CellName(k), db)
		}
	}
	checkLimits(t, r)
	checkPaths(t, r)
	second := r.secondSelects(200)
	t.Logf("second Select to its light p50 %v p99 %v most %v", second[100], second[198], second[199])
	if most := second[199]; most > s.Timing.SwitchMax {
		t.Errorf("a Select took %v, the timing says %v", most, s.Timing.SwitchMax)
	}
}

// Goal: a Select that comes while the DACs are not ready for another edge is never
// wrong: dark at once, no light where nobody asked for it, and in the end the path
// asked for last; what it costs is in the timing.
// Method: two Selects in a row with random pauses, 400 times, on a board of each
// DAC; the light that leaves by the simulator's truth, and the time from the second
// Select to its path.
func TestSecondSelectWaitsForTheDACs(t *testing.T) {
	for _, dac := range []hal.Part{hal.LTC2688, hal.AD5676R} {
		r := newRigOf(t, dac, 1, 8)
		r.ready()
		second := r.secondSelects(400)
		t.Logf("DAC %d: second Select to its light p50 %v p99 %v most %v", dac, second[len(second)/2], second[len(second)*99/100], second[len(second)-1])
	}
}

// secondSelects are the times that the second of two Selects in a row takes, in
// order.
func (r *rig) secondSelects(n int) (second []time.Duration) {
	r.t.Helper()
	o := r.optics[0]
	rng := rand.New(rand.NewPCG(4, 4))
	some := func() proto.Path { return proto.Loopback + proto.Path(rng.IntN(3)) }
	for range n {
		from, one, two := o.Status().Path, some(), some()
		sel := func(p proto.Path, most time.Duration) time.Duration {
			asked := r.world.Now()
			if err := o.Select(asked, p); err != nil {
				r.t.Fatal(err)
			}
			r.until(asked+most, func() bool {
				at, on := r.world.Selected(r.id, 0)
				path := proto.Loopback + proto.Path(at)
				if on && path != from && path != one && path != two {
					r.t.Fatalf("from %v by %v to %v: on %v, which nobody asked for", from, one, two, path)
				}
				return on && path == two && p == two && o.Status().Path == two
			})
			return r.world.Now() - asked
		}
		sel(one, time.Duration(rng.IntN(500))*time.Microsecond)
		second = append(second, sel(two, 3*time.Millisecond))
		r.run(2 * time.Millisecond)
		if s := o.Status(); s.Path != two || s.BusErrors != 0 || s.State == proto.Failed || s.Measured-s.Expected < -2000 {
			r.t.Fatalf("from %v by %v to %v: %+v, events %+v", from, one, two, s, r.events[0])
		}
	}
	slices.Sort(second)
	return second
}

// Goal: a new life of the software adopts what another DAC holds, moves no light,
// and can switch at once; a lock holds cells, without a wrong code at the next edge.
// Method: lit paths over a restart; a lock at work between Selects, with the truth of each cell at the end.
func TestAnotherDACInService(t *testing.T) {
	r := newRigOf(t, hal.AD5676R, 1, 2)
	r.ready()
	cal := []*ocs.Calibration{r.optics[0].Status().Calibration}
	selects := func(p proto.Path) {
		t.Helper()
		if err := r.optics[0].Select(r.world.Now(), p); err != nil {
			t.Fatal(err)
		}
		r.run(5 * time.Millisecond)
		if s := r.optics[0].Status(); s.Path != p || s.State == proto.Failed || s.Measured-s.Expected < -400 {
			t.Errorf("%v: %+v, events %+v", p, s, r.events[0])
		}
	}
	for _, p := range []proto.Path{proto.External2, proto.Loopback, proto.External1} {
		selects(p)
		changed, _ := r.world.LastChange(sim.Port{Board: r.id, Path: int(p - proto.Loopback)})
		r.boot(cal)
		r.ready()
		r.run(5 * time.Millisecond)
		if at, _ := r.world.LastChange(sim.Port{Board: r.id, Path: int(p - proto.Loopback)}); at != changed || r.optics[0].Status().Path != p {
			t.Errorf("%v: light changed at %v, was %v; %+v", p, at, changed, r.optics[0].Status())
		}
	}
	r.lock = ocs.LockConfig{Mode: ocs.LockAlways, Period: 30 * time.Millisecond, Rest: 30 * time.Millisecond}
	r.boot(cal)
	r.ready()
	r.run(20 * time.Millisecond) // the look that begins at once, and its averages
	for _, p := range []proto.Path{proto.External1, proto.Loopback, proto.External2, proto.Loopback} {
		selects(p)
		r.run(200 * time.Millisecond)
		if least, cell := r.held(0, p); least < 20_000 {
			t.Errorf("%v: cell %d has %d mdB", p, cell, least)
		}
	}
	if h := r.optics[0].Holds(); len(h) != 2 || h[0].Looks == 0 {
		t.Errorf("nothing was locked: %+v", h)
	}
	if _, err := ocs.FindRegister(r.board, "0/0/dac4/code3a"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"0/0/dac5/code0a", "0/0/dac0/code8a", "0/0/dac0/code0b", "0/0/dac0/toggles", "0/0/dac1/setting3"} {
		if _, err := ocs.FindRegister(r.board, name); !errors.Is(err, ocs.ErrRegister) || !strings.Contains(err.Error(), "one of dac0..4/code0..7a, guard|") {
			t.Errorf("%s: %v", name, err)
		}
	}
	checkLimits(t, r)
}
