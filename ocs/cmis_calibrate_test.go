package ocs_test

import (
	"errors"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/cmis"
	"ringlight/mzi"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// bareCMIS is a board of CMIS modules that nobody has calibrated.
func bareCMIS(t *testing.T, modules int, mux bool, seed uint64, timing sim.MCITiming, faults ...sim.Fault) *rig {
	t.Helper()
	hw, err := boardfile.DefaultCMIS(4, 1, modules, mux)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: seed}), board: &hw}
	if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Seed: seed, Powered: true, MCI: timing, Faults: faults}); err != nil {
		t.Fatal(err)
	}
	r.boot(make([]*ocs.Calibration, 1))
	r.run(3 * time.Second)
	return r
}

// cmisFound is the calibration of bareCMIS(2, true, 3), which takes seconds to find.
var cmisFound *ocs.Calibration

func calibratedCMIS(t *testing.T) *ocs.Calibration {
	t.Helper()
	if cmisFound == nil {
		r := bareCMIS(t, 2, true, 3, sim.DefaultMCITiming())
		if end, _ := r.ends(); end.Kind != ocs.Calibrated {
			t.Fatalf("%+v", end)
		}
		cmisFound = r.optics[0].Status().Calibration
	}
	return cmisFound
}

// Goal: modules are calibrated from nothing through their own interface, as
// well as chips are and within a minute of board time, and every path lights.
// Method: extinctions are the simulator's truth; one module on its own segment,
// two behind a mux.
func TestCMISCalibratesFromNothing(t *testing.T) {
	for _, kind := range []struct {
		name    string
		modules int
		mux     bool
	}{{"own segment", 1, false}, {"behind a mux", 2, true}} {
		t.Run(kind.name, func(t *testing.T) {
			r := bareCMIS(t, kind.modules, kind.mux, 3, sim.DefaultMCITiming())
			end, took := r.ends()
			if end.Kind != ocs.Calibrated {
				t.Fatalf("%+v", end)
			}
			s := r.optics[0].Status()
			if kind.mux {
				cmisFound = s.Calibration
			}
			for m := range kind.modules {
				c := s.Calibration.Modules[m]
				worst := [2]int32{1 << 30, 1 << 30}
				for k, db := range r.world.Extinctions(r.id, 0, m) {
					want, at := int32(25_000), 0
					if k >= hal.CellMatrix {
						want, at = 20_000, 1
					}
					worst[at] = min(worst[at], db)
					if db < want {
						t.Errorf("module %d: cell %d (%s) has %d mdB", m, k, mzi.CellName(k), db)
					}
				}
				t.Logf("module %d %s: %d measurements in %d ms, worst MZI %d mdB, matrix %d mdB, rail %d mV, case %d mC", m, c.Serial,
					c.Measurements, c.BoardMillis, worst[0], worst[1], c.RailMillivolt, c.CaseMillicelsius)
				if per := r.world.Personality(r.id, 0, m); c.Serial != per.Serial() || c.RailMillivolt != 12_000 || c.CaseMillicelsius == 0 {
					t.Errorf("module %d: %q, %d mV, %d mC", m, c.Serial, c.RailMillivolt, c.CaseMillicelsius)
				}
			}
			t.Logf("%v of board time, timing %+v", took, s.Timing)
			if took > time.Minute || s.LimitErrors != 0 || s.BusErrors != 0 || s.Timing.SwitchMax == 0 {
				t.Errorf("%v: %+v", took, s)
			}
			checkLimits(t, r)
			checkPathsIn(t, r, 20*time.Millisecond)
			// A new life with the calibration, as stored, finds all as it is.
			again, err := ocs.DecodeCalibration(s.Calibration.Encode())
			if err != nil {
				t.Fatal(err)
			}
			r.boot([]*ocs.Calibration{again})
			r.readyCMIS()
			for _, e := range r.events[0] {
				if e.Kind == ocs.Degraded {
					t.Errorf("restart: %+v", e)
				}
			}
		})
	}
}

// Goal: a cell that cannot be calibrated is named, with its module; the others
// are left dark, with no light and no mode behind.
// Method: an open heater in the second of two modules; then, healed, it works.
func TestCMISCalibrationNamesTheFault(t *testing.T) {
	fault := sim.Fault{Kind: sim.HeaterStuck, Module: 1, Index: 3}
	r := bareCMIS(t, 2, true, 5, sim.DefaultMCITiming(), fault)
	end, took := r.ends()
	var found *mzi.CellError
	if end.Kind != ocs.CalibrationFailed || !errors.As(end.Err, &found) || end.Module != 1 || end.Cell != 3 || found.Fault != mzi.Open {
		t.Fatalf("%+v", end)
	}
	t.Logf("after %v: %s", took, end.Text)
	r.run(10 * time.Millisecond)
	if s := r.optics[0].Status(); s.Calibrated || s.Machine != ocs.Idle {
		t.Errorf("%+v", s)
	}
	if _, shining := r.world.Selected(r.id, 0); shining {
		t.Error("it shines")
	}
	checkLimits(t, r)
	for m := range 2 {
		if err := r.optics[0].Dump(m); err != nil {
			t.Fatal(err)
		}
		r.run(200 * time.Millisecond)
		image, over, err := r.optics[0].DumpImage()
		if err != nil || !over {
			t.Fatal(over, err)
		}
		if p := image[128*(cmis.PageCalibrate+1):][:128]; p[0] != 0 || p[cmis.CalLasers-128] != 0 {
			t.Errorf("module %d: % x, %v", m, p[:9], err)
		}
	}
}

// Goal: a bundle is calibrated again over what it has; without page B4h a module
// without a calibration is refused by name.
func TestCMISCalibratesAgain(t *testing.T) {
	r := newCMISRig(t, 1, false, sim.DefaultMCITiming())
	r.readyCMIS()
	if end, _ := r.ends(); end.Kind != ocs.Calibrated || r.optics[0].Status().Calibration.Modules[0].Measurements == 0 {
		t.Errorf("%+v", end)
	}
	checkPathsIn(t, r, 20*time.Millisecond)
	if err := r.optics[0].Select(r.world.Now(), proto.Loopback); err != nil {
		t.Fatal(err)
	}
	r.run(20 * time.Millisecond)
	if err := r.optics[0].Calibrate(r.world.Now()); !errors.Is(err, ocs.ErrCarriesLight) {
		t.Errorf("in service: %v", err)
	}
	timing := sim.DefaultMCITiming()
	timing.NoSearch = true
	r = bareCMIS(t, 2, true, 5, timing)
	var named *ocs.ModuleError
	if err := r.optics[0].Calibrate(r.world.Now()); !errors.Is(err, hal.ErrUnsupported) || !errors.Is(err, ocs.ErrNotCalibrated) || !errors.As(err, &named) {
		t.Errorf("without page B4h: %v", err)
	}
}

// Goal: software that dies in a calibration leaves no module in it: the next
// life ends it before anything else.
func TestCMISCalibrationIsLeftByTheNextLife(t *testing.T) {
	r := bareCMIS(t, 1, false, 5, sim.DefaultMCITiming())
	if err := r.optics[0].Calibrate(r.world.Now()); err != nil {
		t.Fatal(err)
	}
	r.run(4 * time.Second)
	if s := r.optics[0].Status(); s.Machine != ocs.Calibrating || s.Progress.Measurements == 0 {
		t.Fatalf("%+v", s)
	}
	r.boot(make([]*ocs.Calibration, 1))
	r.run(3 * time.Second)
	if err := r.optics[0].Calibrate(r.world.Now()); err != nil {
		t.Errorf("the next life: %v, %+v", err, r.optics[0].Status())
	}
}
