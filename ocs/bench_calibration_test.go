package ocs_test

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/mzi"
	"ringlight/ocs"
	"ringlight/sim"
)

// boardSeeds is how many boards TestEveryCellOfManyBoards calibrates: a few in
// the normal run, what RINGLIGHT_CALIBRATION says under make bench-calibration.
func boardSeeds(t *testing.T, few int) int {
	text := os.Getenv("RINGLIGHT_CALIBRATION")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("RINGLIGHT_CALIBRATION %q: want a number of seeds from 1 on", text)
	}
	return n
}

// tally sorts what was measured and tells its ends.
type tally []float64

func (x tally) log(t *testing.T, what, unit string) {
	t.Helper()
	if len(x) == 0 {
		return
	}
	slices.Sort(x)
	t.Logf("%-22s least %.1f  p5 %.1f  p50 %.1f  most %.1f %s (%d)", what, x[0], x[len(x)/20], x[len(x)/2], x[len(x)-1], unit, len(x))
}

// Goal: every cell of every module is found within what the board page asks:
// 25 dB of MZI1 and MZI2, 20 dB of the matrix, in under a minute of board time.
// Method: boards of one bundle (of two bundles of eight modules with
// RINGLIGHT_BUNDLES=2) from unknown offsets; the extinctions are the
// simulator's truth, on the codes that production code staged.
func TestEveryCellOfManyBoards(t *testing.T) {
	bundles, modules := 1, 1
	if os.Getenv("RINGLIGHT_BUNDLES") != "" {
		bundles, modules = 2, 8
	}
	var lanes, matrix, seconds, measured tally
	for seed := range boardSeeds(t, 2) {
		r := bare(t, bundles, modules, uint64(seed+1))
		for b := range bundles {
			end, took := r.calibrates(b)
			if end.Kind != ocs.Calibrated {
				t.Errorf("seed %d bundle %d: %v", seed+1, b, end.Err)
				continue
			}
			if took > time.Minute {
				t.Errorf("seed %d bundle %d: %v of board time", seed+1, b, took)
			}
			seconds = append(seconds, took.Seconds())
			r.until(r.world.Now()+time.Second, func() bool { return r.optics[b].Status().Ready })
			for m, mod := range r.optics[b].Status().Calibration.Modules {
				measured = append(measured, float64(mod.Measurements))
				for k, db := range r.world.Extinctions(r.id, b, m) {
					want := int32(25_000)
					if k >= hal.CellMatrix {
						want = 20_000
						matrix = append(matrix, float64(db)/1000)
					} else {
						lanes = append(lanes, float64(db)/1000)
					}
					if db < want {
						t.Errorf("seed %d bundle %d module %d: cell %d (%s) has %d mdB, want %d", seed+1, b, m, k, mzi.CellName(k), db, want)
					}
				}
			}
			if s := r.optics[b].Status(); s.LimitErrors != 0 || s.BusErrors != 0 {
				t.Errorf("seed %d bundle %d: %d codes cut, %d bus errors", seed+1, b, s.LimitErrors, s.BusErrors)
			}
		}
		checkLimits(t, r)
	}
	lanes.log(t, "extinction MZI1, MZI2", "dB")
	matrix.log(t, "extinction matrix", "dB")
	seconds.log(t, "board time a bundle", "s")
	measured.log(t, "measurements a module", "")
}

// Goal: a bad cell ends a calibration with its own name, every time.
// Method: one fault a board, kind and cell by the seed: heater open, heater
// short, phase that walks by 5 mrad/sqrt(s).
func TestNamesThePlantedCell(t *testing.T) {
	kinds := []struct {
		fault sim.FaultKind
		want  mzi.Fault
	}{{sim.HeaterStuck, mzi.Open}, {sim.HeaterShort, mzi.Short}, {sim.CellWalk, mzi.Drifting}}
	named := map[string]int{}
	var seconds tally
	for seed := range boardSeeds(t, 6) {
		kind := kinds[seed%len(kinds)]
		cell := (seed*23 + 7) % hal.BenesCells // 23 and 36 have no divisor in common: every cell in turn
		r := bare(t, 1, 1, uint64(seed+1), sim.Fault{Kind: kind.fault, Index: cell})
		end, took := r.ends()
		seconds = append(seconds, took.Seconds())
		var found *mzi.CellError
		if !errors.As(end.Err, &found) || found.Cell != cell || found.Fault != kind.want {
			t.Errorf("seed %d: %v in cell %d: %v %v", seed+1, kind.fault, cell, end.Kind, end.Err)
			continue
		}
		named[found.Fault.String()]++
	}
	for _, kind := range kinds {
		t.Logf("%-30s named %d times", kind.want, named[kind.want.String()])
	}
	seconds.log(t, "board time to the name", "s")
}
