package ocs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// Goal: modules that offer no page of their heaters are brought up dark, calibrate
// themselves, and are switched by their byte through all paths; a new life adopts what
// they do; what only heater pages can is refused.
func TestModulesThatKeepTheirHeaters(t *testing.T) {
	timing := sim.DefaultMCITiming()
	timing.NoPages = true
	r := bareCMIS(t, 2, true, 3, timing)
	if _, shining := r.world.Selected(r.id, 0); shining {
		t.Fatal("they shine on their default path, and nobody asked for it")
	}
	if err := r.optics[0].Select(r.world.Now(), proto.External1); !errors.Is(err, ocs.ErrNotCalibrated) {
		t.Errorf("not calibrated: %v", err)
	}
	end, took := r.ends()
	if end.Kind != ocs.Calibrated {
		t.Fatalf("%+v", end)
	}
	t.Logf("calibrated in %v of board time", took)
	r.readyCMIS()
	through := func() {
		t.Helper()
		for _, p := range []proto.Path{proto.External1, proto.Loopback, proto.External2, proto.Dark, proto.External1} {
			r.events[0] = nil
			if err := r.optics[0].Select(r.world.Now(), p); err != nil {
				t.Fatal(err)
			}
			r.run(100 * time.Millisecond)
			path, shining := r.world.Selected(r.id, 0)
			if shining != (p != proto.Dark) || shining && path != int(p-proto.Loopback) {
				t.Fatalf("asked for %v: board on %d, shining %v; %+v", p, path, shining, r.events[0])
			}
			for _, e := range r.events[0] {
				if e.Kind == ocs.PathFailed || e.Kind == ocs.Degraded {
					t.Errorf("%v: %+v", p, e)
				}
			}
		}
	}
	through()
	at, _ := r.world.LastChange(sim.Port{Board: r.id, Bundle: 0, Path: hal.LOSExternal1})
	stored, err := ocs.DecodeCalibration(r.optics[0].Status().Calibration.Encode())
	if err != nil {
		t.Fatal(err)
	}
	r.boot([]*ocs.Calibration{stored})
	r.readyCMIS()
	r.run(100 * time.Millisecond)
	if s := r.optics[0].Status(); s.Path != proto.External1 {
		t.Errorf("%+v", s)
	}
	if now, _ := r.world.LastChange(sim.Port{Board: r.id, Bundle: 0, Path: hal.LOSExternal1}); now != at {
		t.Errorf("light changed at %v, was %v", now, at)
	}
	through()
}

// Goal: a module that cannot calibrate itself is named, and no light comes of it.
func TestModuleThatFailsItsOwnCalibration(t *testing.T) {
	timing := sim.DefaultMCITiming()
	timing.NoPages = true
	r := bareCMIS(t, 2, true, 3, timing, sim.Fault{Kind: sim.HeaterStuck, Module: 1, Index: 3})
	end, _ := r.ends()
	if end.Kind != ocs.CalibrationFailed || end.Module != 1 && !strings.Contains(fmt.Sprint(end.Err), "module 1") {
		t.Errorf("%+v", end)
	}
	if _, shining := r.world.Selected(r.id, 0); shining {
		t.Error("it shines")
	}
}
