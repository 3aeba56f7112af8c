package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCalibrationsAreComparedAndComeBackFromTheModules(t *testing.T) {
	// Goal: two calibrations of a bundle are compared cell by cell; a state
	// folder without the file finds the calibration in the modules' EEPROMs.
	// Method: the command line on a simulated board: refused with nothing to
	// compare, calibrated twice, compared as table and JSON; the file removed.
	state := t.TempDir()
	board := write(t, "c.json", `{"board":{"kind":"sim","seed":5,"calibrated":false,"bundles":1,"modules":1}}`)
	args := func(a ...string) []string { return append(a, "-config", board, "-state", state) }
	if code, _, errs := command(t, args("calibrate", "-diff")...); code != 1 || !strings.Contains(errs, "no two calibrations") {
		t.Fatalf("nothing to compare: exit %d, %s", code, errs)
	}
	for range 2 {
		if code, _, errs := command(t, args("calibrate", "-b", "0")...); code != 0 {
			t.Fatalf("exit %d, %s", code, errs)
		}
	}
	code, out, errs := command(t, args("calibrate", "-diff", "-b", "0")...)
	if code != 0 || !strings.Contains(out, "MZI1 of lane 0") || !strings.Contains(out, "largest change of phase") {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	code, out, errs = command(t, args("calibrate", "-diff", "-json")...)
	var got struct{ Bundles []bundleDiff }
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || len(got.Bundles) != 1 {
		t.Fatalf("exit %d, %v, %s", code, err, errs)
	}
	m := got.Bundles[0].Modules[0]
	if len(m.Cells) != 36 || m.Was != "" || m.LargestMicrorad > 50_000 {
		t.Errorf("%d cells, was %q, largest change %d urad", len(m.Cells), m.Was, m.LargestMicrorad)
	}
	for _, x := range m.Cells {
		if x.ExtinctionMilliDB[1] < 20_000 || x.MilliOhm[1] < 900_000 || x.PowerMicrowatt[0][1] > 60_000 {
			t.Errorf("%+v", x)
		}
	}
	for _, name := range []string{"calibration.0", "calibration.0.previous"} {
		if err := os.Remove(filepath.Join(state, name)); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errs := command(t, args("path", "set", "0", "loopback")...); code != 0 {
		t.Errorf("without a file: exit %d, %s", code, errs)
	}
	if _, err := os.Stat(filepath.Join(state, "calibration.0")); err != nil {
		t.Errorf("what the EEPROMs hold was not kept: %v", err)
	}
}

func TestCalibrateTellsOfEachModule(t *testing.T) {
	// Goal: who calibrates by a script learns of each module what its own diodes say,
	// or on which cell and for what it failed, and the exit is 1 when any did.
	// Method: two bundles of two modules, one with an open heater.
	board := write(t, "c.json", `{"board":{"kind":"sim","seed":5,"calibrated":false,"bundles":2,"modules":2,"faults":["stuck:0/1/29"]}}`)
	code, out, errs := command(t, "calibrate", "-json", "-config", board, "-state", t.TempDir())
	var got struct{ Modules []calibratedModule }
	if err := json.Unmarshal([]byte(out), &got); code != 1 || err != nil || len(got.Modules) != 4 {
		t.Fatalf("exit %d, %v, %s\n%s", code, err, errs, out)
	}
	for i, m := range got.Modules {
		bad := i == 1
		switch {
		case int(m.Bundle) != i/2 || m.Module != i%2 || m.Result != []string{resultSound, resultFailed, resultCalibrated, resultCalibrated}[i]:
			t.Errorf("%d: %+v", i, m)
		case bad && (m.Cell == nil || *m.Cell != 29 || !strings.Contains(m.Cause, "heater open")):
			t.Errorf("%d: %+v", i, m)
		case i == 0 && (m.Cell != nil || m.Cause == "" || m.Own != nil):
			t.Errorf("%d: %+v", i, m)
		case i >= 2 && (m.Own == nil || m.Truth == nil || m.Own.MZI < 25 || m.Own.Matrix < 25 || m.Cause != "" || m.Truth.Matrix-m.Own.Matrix > 1.5 || m.Own.Matrix-m.Truth.Matrix > 1.5):
			t.Errorf("%d: own %+v, truth %+v", i, m.Own, m.Truth)
		}
	}
}
