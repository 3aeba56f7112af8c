package ocs_test

import (
	"errors"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/pca953x"
	"ringlight/mzi"
	"ringlight/ocs"
	"ringlight/ocs/heater"
	"ringlight/proto"
	"ringlight/sim"
)

// kinds of events of bundle 0 since they were cleared.
func (r *rig) kinds() (list []ocs.EventKind) {
	for _, e := range r.events[0] {
		list = append(list, e.Kind)
	}
	return list
}

// Goal: the lanes of a bundle that carries light change: staged without moving
// it, dark while the heaters move, lit again by the new way, and well.
// Method: several permutations on a lit loopback; edges of the LOS line and the
// light of each lane by the module's own diodes; a restart that is told the
// permutation adopts it.
func TestLanesChangeBreakBeforeMake(t *testing.T) {
	r := calibrated(t, 2, proto.Loopback)
	o := r.optics[0]
	for _, p := range []mzi.Permutation{{0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}, {3, 0, 5, 1, 7, 2, 6, 4}, mzi.Halves} {
		r.events[0] = nil
		if err := o.SetLanes(r.world.Now(), p); err != nil {
			t.Fatal(err)
		}
		dark := false
		began, ended := time.Duration(0), time.Duration(0)
		r.until(r.world.Now()+20*time.Millisecond, func() bool {
			_, shining := r.world.Selected(r.id, 0)
			switch {
			case !shining && !dark:
				dark, began = true, r.world.Now()
			case shining && dark:
				dark, ended = false, r.world.Now()
			}
			return false
		})
		s := o.Status()
		if s.State != proto.Tuned || s.Path != proto.Loopback || o.Lanes() != p || began == 0 || ended-began > time.Millisecond {
			t.Errorf("%v: %+v, dark for %v, events %v", p, s, ended-began, r.kinds())
		}
		for _, e := range r.events[0] {
			if e.Kind == ocs.PathFailed || e.Kind == ocs.Degraded {
				t.Errorf("%v: %+v", p, e)
			}
		}
		if d := s.Measured - s.Expected; d < -200 || d > 200 {
			t.Errorf("%v: own light %v, expected %v", p, s.Measured, s.Expected)
		}
		t.Logf("%v: without light for %v", p, ended-began)
	}
	checkLimits(t, r)
	if err := o.SetLanes(r.world.Now(), mzi.Permutation{}); err == nil {
		t.Error("eight lanes to one: accepted")
	}
}

// Goal: a path that is asked for while the lanes change comes, and no light is
// seen before the way is set.
// Method: Select at instants over the whole of a change.
func TestSelectWhileLanesChange(t *testing.T) {
	r := calibrated(t, 1, proto.Loopback)
	o := r.optics[0]
	p, q := mzi.Permutation{0, 1, 2, 3, 4, 5, 6, 7}, mzi.Halves
	for after := time.Duration(0); after < 1200*time.Microsecond; after += 53 * time.Microsecond {
		if err := o.SetLanes(r.world.Now(), p); err != nil {
			t.Fatal(err)
		}
		if err := o.SetLanes(r.world.Now(), p); !errors.Is(err, ocs.ErrNotReady) {
			t.Errorf("two changes at the same time: %v", err)
		}
		r.run(after)
		for _, path := range []proto.Path{proto.External2, proto.Loopback} {
			if err := o.Select(r.world.Now(), path); err != nil {
				t.Fatal(err)
			}
			r.run(3 * time.Millisecond)
			if s := o.Status(); s.Path != path || path == proto.Loopback && s.State != proto.Tuned {
				t.Errorf("after %v: asked for %v: %+v", after, path, s)
			}
		}
		if o.Lanes() != p {
			t.Errorf("after %v: lanes %v", after, o.Lanes())
		}
		p, q = q, p
	}
}

// Goal: lanes are refused where nobody knows the module.
// Method: a bundle that is out of service for a foreign module, and one without
// a calibration.
func TestLanesAreRefusedWhereNothingIsKnown(t *testing.T) {
	r := calibrated(t, 1, proto.Dark)
	own := r.optics[0].Status().Calibration
	if err := r.world.Exchange(r.id, 0, 0, sim.Catalogue(nil, 9, 1)[0], nil); err != nil {
		t.Fatal(err)
	}
	r.boot([]*ocs.Calibration{own})
	r.run(300 * time.Millisecond)
	if err := r.optics[0].SetLanes(r.world.Now(), mzi.Halves); !errors.Is(err, ocs.ErrOutOfService) {
		t.Errorf("a module that nobody knows: %v", err)
	}
	r.boot(make([]*ocs.Calibration, 1))
	r.run(50 * time.Millisecond)
	if err := r.optics[0].SetLanes(r.world.Now(), mzi.Halves); !errors.Is(err, ocs.ErrNotCalibrated) {
		t.Errorf("uncalibrated: %v", err)
	}
}

// Goal: a restart that is told the permutation finds it, and touches nothing.
// Method: lanes changed, a new life of the software with Config.Lanes and one
// without.
func TestRestartAdoptsLanes(t *testing.T) {
	r := calibrated(t, 2, proto.Loopback)
	cal := r.optics[0].Status().Calibration
	p := mzi.Permutation{2, 3, 0, 1, 6, 7, 4, 5}
	if err := r.optics[0].SetLanes(r.world.Now(), p); err != nil {
		t.Fatal(err)
	}
	r.run(20 * time.Millisecond)
	changed, _ := r.world.LastChange(sim.Port{Board: r.id, Path: hal.LOSLoopback})
	for _, told := range []bool{true, false} {
		r.lanes = mzi.Permutation{}
		if told {
			r.lanes = p
		}
		r.boot([]*ocs.Calibration{cal})
		r.ready()
		r.run(10 * time.Millisecond)
		if at, lit := r.world.LastChange(sim.Port{Board: r.id, Path: hal.LOSLoopback}); at != changed || !lit {
			t.Errorf("told %v: light changed at %v (was %v), lit %v", told, at, changed, lit)
		}
		differs := false
		for _, e := range r.events[0] {
			differs = differs || errors.Is(e.Err, heater.ErrReadBack)
		}
		if differs == told {
			t.Errorf("told %v: codes differ %v", told, differs)
		}
	}
}

// Goal: whether toggle edges of an LTC2688 load its input registers or choose between
// codes that an update has brought over, an edge in the midst of staging spoils no path:
// every cell on it has a code of before or of after, and with either of them and any
// neighbours' it is where it should be.
// Method: both models of the chip; the frames of a change of lanes cut off after each,
// then an edge of both nets; cells judged by the simulator's truth.
func TestEdgesInTheMidstOfStagingAreHarmless(t *testing.T) {
	for _, holds := range []bool{false, true} {
		r := toggling(t, holds)
		hw := &r.board.Bundles[0].Modules[0]
		cal := r.optics[0].Status().Calibration.Modules[0]
		d := heater.For(hw)
		for k := range cal.Cells {
			d.Know(k, cal.Cells[k].MilliOhm)
		}
		after, err := cal.LaneCodes(standardOptics(), mzi.Permutation{2, 3, 0, 1, 6, 7, 4, 5})
		if err != nil {
			t.Fatal(err)
		}
		changed := 0
		for k := range hal.CellMatrix {
			if after[k] != cal.Codes[k] {
				changed++
			}
		}
		latch := r.board.Latches[0]
		path := func(bits byte) {
			r.alone(latch.Bus, hal.Msg{Addr: latch.Addr, W: pca953x.Of(latch.Part).AppendWrite(nil, pca953x.Output, 0, 0xC0|bits)})
		}
		worst := int32(1 << 30)
		frames := 0
		for cut := 0; cut <= frames; cut++ {
			before, _ := d.AllowAll(&cal.Codes)
			r.alone(hw.SPI, d.Stage(before)...)
			allowed, _ := d.AllowAll(&after)
			msgs := d.Load(allowed)
			msg := msgs[0] // has every cell that toggles
			frames = len(msg.W) / int(msg.Frame)
			if msg.W = msg.W[:cut*int(msg.Frame)]; cut > 0 {
				r.alone(hw.SPI, msg)
			}
			for _, to := range []struct {
				bits byte
				path int
			}{{hal.LatchToggle0, hal.LOSExternal1}, {hal.LatchToggle0 | hal.LatchToggle1, hal.LOSExternal2}, {0, hal.LOSLoopback}} {
				path(to.bits)
				for k, x := range r.world.PathExtinctions(r.id, 0, 0, to.path) {
					if k < hal.CellMatrix {
						worst = min(worst, x)
					}
				}
			}
		}
		t.Logf("edges load %v: %d frames, %d of %d codes change, worst cell %.1f dB", !holds, frames, changed, hal.CellMatrix, float64(worst)/1000)
		if worst < 20_000 || changed == 0 {
			t.Errorf("edges load %v: %d codes change, a cell at %.1f dB", !holds, changed, float64(worst)/1000)
		}
	}
}

// alone does messages on a bus while nobody else does anything.
func (r *rig) alone(bus hal.BusID, msgs ...hal.Msg) {
	r.t.Helper()
	op := &hal.Op{Msgs: msgs}
	if err := r.world.Submit(r.world.Now(), r.id, bus, op); err != nil {
		r.t.Fatal(err)
	}
	for {
		if _, ev, ok := r.world.Step(); ok && ev.Completion != nil && ev.Completion.Op == op {
			if ev.Completion.Err != nil {
				r.t.Fatal(ev.Completion.Err)
			}
			return
		}
	}
}

// toggling is a calibrated module in loopback, whose DACs do one thing or the other at
// an edge.
func toggling(t *testing.T, holds bool) *rig {
	t.Helper()
	hw, err := boardfile.Default(4, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: 21}), board: &hw}
	if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Seed: 21, Powered: true, TogglesHold: holds}); err != nil {
		t.Fatal(err)
	}
	r.boot(make([]*ocs.Calibration, 1))
	r.run(20 * time.Millisecond)
	if end, _ := r.ends(); end.Kind != ocs.Calibrated {
		t.Fatal(end.Text)
	}
	r.ready()
	if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(5 * time.Millisecond)
	return r
}
