package ocs_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
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

// What a module that counts as tuned has, by the simulator's truth, in
// thousandths of a dB: see docs/board.md, Calibration.
const (
	leastCell = 25_000 // extinction of each cell
	leastPath = 20_000 // of loopback: light of a lane over what of it comes out at any other
	mostLoss  = 500    // of loopback: what of a lane's light the matrix brings elsewhere or nowhere
)

// physicsRow is one world that is not ours: what is changed of the default
// board's, what its maker states of it, and what may be said of it.
type physicsRow struct {
	name  string
	world func(*sim.Physics)
	maker func(*hal.HeaterLimits) // nil: as the default board's
	// causes are those for which a module may fail here; none: all calibrate.
	causes []string
}

// Causes that the physics of a row may give, and what a search calls them.
const (
	causeReach   = "its phase is beyond its heater's limits"
	causeOdd     = "its resistance is none that is stated"
	causeSlow    = "its heat does not settle in time"
	causeLeaks   = "too little extinction"
	causeStrays  = "light comes out elsewhere"
	causeNoLight = "no light"
	causeNoise   = "too noisy"
)

// roomy is a maker's heater for more power: with it a phase of two pi is in
// reach.
func roomy(milliwatt, milliampere int64) func(*hal.HeaterLimits) {
	return func(h *hal.HeaterLimits) {
		h.MaxMillivolt, h.MaxMicrowatt, h.MaxMicroampere, h.ModuleMicrowatt = 10_000, milliwatt*1000, milliampere*1000, 4_000_000
	}
}

// settles is a maker's word that heat stands still so late.
func settles(after time.Duration) func(*hal.HeaterLimits) {
	return func(h *hal.HeaterLimits) { h.MostSettle = after }
}

var physicsRows = []physicsRow{
	{name: "nothing", world: func(*sim.Physics) {}},
	{name: "P_pi within 15 %", world: func(p *sim.Physics) { p.PPiSpread = 0.15 }},
	{name: "P_pi within 19 %", world: func(p *sim.Physics) { p.PPiSpread = 0.19 }},
	{name: "P_pi within 25 %", world: func(p *sim.Physics) { p.PPiSpread = 0.25 }, causes: []string{causeReach}},
	{name: "P_pi 15 mW", world: func(p *sim.Physics) { p.PPi = 15 }},
	{name: "P_pi 19 mW", world: func(p *sim.Physics) { p.PPi = 19 }},
	{name: "P_pi 32 mW, heaters of 60 mW", world: func(p *sim.Physics) { p.PPi = 32 }, causes: []string{causeReach}},
	{name: "P_pi 32 mW, heaters of 80 mW", world: func(p *sim.Physics) { p.PPi = 32 }, maker: roomy(80, 10)},
	{name: "P_pi 40 mW, heaters of 100 mW", world: func(p *sim.Physics) { p.PPi = 40 }, maker: roomy(100, 12)},
	{name: "heater 500 ohm, 15 mA", world: func(p *sim.Physics) { p.HeaterOhm = 500 }, maker: roomy(60, 15)},
	{name: "heater 700 ohm", world: func(p *sim.Physics) { p.HeaterOhm = 700 }},
	{name: "heater 1,200 ohm", world: func(p *sim.Physics) { p.HeaterOhm = 1200 }},
	{name: "heater 1,500 ohm, up to 10 V", world: func(p *sim.Physics) { p.HeaterOhm = 1500 }, maker: roomy(60, 10)},
	{name: "heater 2,000 ohm, up to 10 V", world: func(p *sim.Physics) { p.HeaterOhm = 2000 }, maker: roomy(60, 10), causes: []string{causeReach}},
	{name: "heater 2,000 ohm, P_pi 20 mW, 10 V", world: func(p *sim.Physics) { p.HeaterOhm, p.PPi = 2000, 20 }, maker: roomy(60, 10)},
	{name: "heater +3 % at full drive", world: func(p *sim.Physics) { p.HeaterTCR = 0.03 }},
	{name: "heater +8 % at full drive", world: func(p *sim.Physics) { p.HeaterTCR = 0.08 }},
	{name: "heater +16 % at full drive", world: func(p *sim.Physics) { p.HeaterTCR = 0.16 }, causes: []string{causeReach, causeLeaks, causeStrays}},
	// Cell 7 and cell 8 lie side by side and on different nets: the one cannot be set
	// for both phases of the other. 6 % of pi is 0.09 rad either way, which with the
	// couplers' 28 dB leaves 24 dB; 4 %, with a fifth more between some cells, 25.2.
	{name: "crosstalk 4 %", world: func(p *sim.Physics) { p.Crosstalk = 0.04 }, causes: []string{causeLeaks}},
	{name: "crosstalk 6 %", world: func(p *sim.Physics) { p.Crosstalk = 0.06 }, causes: []string{causeLeaks}},
	{name: "crosstalk 12 %", world: func(p *sim.Physics) { p.Crosstalk = 0.12 }, causes: []string{causeReach, causeLeaks, causeStrays}},
	{name: "crosstalk 2 % to the cell 8 apart", world: func(p *sim.Physics) { p.CrosstalkRow = 0.02 }},
	{name: "crosstalk 2 %, half more behind", world: func(p *sim.Physics) { p.Skew = 0.5 }},
	{name: "crosstalk 2 %, all of it behind", world: func(p *sim.Physics) { p.Skew = 1 }, causes: []string{causeLeaks}},
	{name: "thermal tail 2 % of 0.1 ms", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.02, 0.1 }},
	{name: "thermal tail 2 % of 1 ms", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.02, 1 }, causes: []string{causeSlow}},
	{name: "thermal tail 5 % of 1 ms", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.05, 1 }, causes: []string{causeSlow}},
	{name: "thermal tail 5 % of 20 ms", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.05, 20 }, causes: []string{causeSlow}},
	{name: "thermal tail 5 % of 200 ms", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.05, 200 }, causes: []string{causeSlow}},
	{name: "thermal tail 2 % of 1 ms, as stated", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.02, 1 }, maker: settles(15 * time.Millisecond)},
	{name: "thermal tail 5 % of 1.5 ms, as stated", world: func(p *sim.Physics) { p.Tail, p.TailMS = 0.05, 1.5 }, maker: settles(20 * time.Millisecond)},
	{name: "common heating 8 K/W", world: func(p *sim.Physics) { p.CommonK = 8 }},
	{name: "time constant 5 us", world: func(p *sim.Physics) { p.TauUS = 5 }},
	{name: "time constant 26 us", world: func(p *sim.Physics) { p.TauUS = 26 }},
	{name: "time constant 32 us", world: func(p *sim.Physics) { p.TauUS = 32 }},
	{name: "time constant 40 us", world: func(p *sim.Physics) { p.TauUS = 40 }},
	{name: "time constant 100 us", world: func(p *sim.Physics) { p.TauUS = 100 }},
	{name: "time constant 400 us", world: func(p *sim.Physics) { p.TauUS = 400 }, causes: []string{causeSlow}},
	{name: "ADC noise x2", world: func(p *sim.Physics) { p.ADCNoise = 2 }},
	{name: "ADC noise x3", world: func(p *sim.Physics) { p.ADCNoise = 3 }},
	{name: "ADC noise x10", world: func(p *sim.Physics) { p.ADCNoise = 10 }, causes: []string{causeNoise, causeLeaks, causeStrays}},
	{name: "laser wander 0.5 % over 10 s", world: func(p *sim.Physics) { p.LaserWander = 0.005 }},
	{name: "laser wander 2 % over 2 s", world: func(p *sim.Physics) { p.LaserWander, p.LaserWanderS = 0.02, 2 }},
	{name: "laser noise 0.1 % rms", world: func(p *sim.Physics) { p.LaserRIN = 0.001 }},
	{name: "diode saturation 10 mW", world: func(p *sim.Physics) { p.Saturation = 10 }},
	{name: "diode saturation 3 mW", world: func(p *sim.Physics) { p.Saturation = 3 }, causes: []string{causeLeaks, causeStrays}},
	{name: "ADC off 5 %, 8 codes", world: func(p *sim.Physics) { p.ADCGain, p.ADCOffset = 0.05, 8 }},
	{name: "ADC bow 8 codes", world: func(p *sim.Physics) { p.ADCBow = 8 }},
	{name: "ADC bow 40 codes", world: func(p *sim.Physics) { p.ADCBow = 40 }},
	{name: "DAC bow 50 mV", world: func(p *sim.Physics) { p.DACBow = 50 }},
	{name: "lasers -0.3 dB", world: func(p *sim.Physics) { p.LaserAgeing = 0.3 }},
	{name: "lasers -2 dB", world: func(p *sim.Physics) { p.LaserAgeing = 2 }},
	{name: "lasers -4 dB", world: func(p *sim.Physics) { p.LaserAgeing = 4 }, causes: []string{causeNoLight}},
	{name: "0.1 % of calls 3 ms late", world: func(p *sim.Physics) { p.LateCall = 0.001 }},
	{name: "1 % of calls 3 ms late", world: func(p *sim.Physics) { p.LateCall = 0.01 }},
}

// rowResult is what a row came to.
type rowResult struct {
	calibrated, of, switches int
	own, truth               figures
	below                    int                 // modules that count as tuned and are not, by truth
	wrong                    int                 // failed for what is not so
	causes                   map[string][]string // and the modules and cells
}

// figures are the worst of a row: extinction of MZI1 and MZI2, of the matrix, and
// excess loss on a path of loopback, in thousandths of a dB.
type figures struct{ mzi, matrix, loss int32 }

func noFigures() figures { return figures{1 << 30, 1 << 30, 0} }

func (f *figures) cell(k int, db int32) {
	if k < hal.CellMatrix {
		f.mzi = min(f.mzi, db)
	} else {
		f.matrix = min(f.matrix, db)
	}
}

func (f figures) String() string {
	if f.mzi > 1<<29 {
		return "    -     -     -"
	}
	return fmt.Sprintf("%5.1f %5.1f %5.2f", float64(f.mzi)/1000, float64(f.matrix)/1000, float64(f.loss)/1000)
}

func (r *rowResult) String() string {
	var causes []string
	for _, c := range slices.Sorted(maps.Keys(r.causes)) {
		where := r.causes[c]
		causes = append(causes, fmt.Sprintf("%d x %s (%s)", len(where), c, strings.Join(where[:min(len(where), 6)], ", ")))
	}
	verdict := "good"
	if r.below > 0 || r.wrong > 0 {
		verdict = fmt.Sprintf("BAD: %d tuned below, %d wrong", r.below, r.wrong)
	}
	return fmt.Sprintf("%2d of %2d  %s  %s  %3d  %s  %s", r.calibrated, r.of, r.own, r.truth, r.switches, verdict, strings.Join(causes, "; "))
}

// Goal: on a board whose physics are not the default's every module is either
// tuned within the limits, by the simulator's truth, or failed for what is so.
// Method: boards of two bundles of one module, calibrated from nothing by
// production code, then switched to each path in turn; a row a world.
// RINGLIGHT_CALIBRATION is the number of boards, RINGLIGHT_ROWS a part of the
// names of those to run.
func TestPhysicsThatIsNotOurs(t *testing.T) {
	if os.Getenv("RINGLIGHT_CALIBRATION") == "" {
		t.Skip("make bench-physics")
	}
	boards, only := boardSeeds(t, 1), os.Getenv("RINGLIGHT_ROWS")
	var bad []string
	fmt.Printf("%-36s calibrated  own: MZI, matrix, path loss; truth: the same, dB; switches\n", "changed")
	for i := range physicsRows {
		row := &physicsRows[i]
		if !strings.Contains(row.name, only) {
			continue
		}
		res := row.run(t, boards)
		fmt.Printf("%-36s %v\n", row.name, res)
		if res.below > 0 || res.wrong > 0 {
			bad = append(bad, row.name)
		}
	}
	if len(bad) > 0 {
		t.Errorf("%d rows with modules tuned below the limit, or failed for what is not so: %s", len(bad), strings.Join(bad, "; "))
	}
}

func (row *physicsRow) run(t *testing.T, boards int) *rowResult {
	t.Helper()
	res := &rowResult{own: noFigures(), truth: noFigures(), causes: map[string][]string{}}
	for seed := range boards {
		r := row.board(t, uint64(seed+1))
		for b := range r.board.Bundles {
			res.of++
			end, _ := r.calibrates(b)
			if end.Kind != ocs.Calibrated {
				row.failed(r, b, end, res)
				continue
			}
			res.calibrated++
			row.judge(r, b, res)
		}
	}
	return res
}

// board is one of a row's.
func (row *physicsRow) board(t *testing.T, seed uint64) *rig {
	t.Helper()
	hw, err := boardfile.DefaultOf(hal.LTC2688, 4, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if row.maker != nil {
		own := hal.Standard()
		row.maker(&own.Heater)
		hw.Types = []hal.Optics{own}
		for b := range hw.Bundles {
			hw.Bundles[b].Modules[0].Type = 0
		}
		hw.Link()
	}
	ph := sim.DefaultPhysics()
	row.world(&ph)
	ph.Validate(func(key string, v float64, low, high string) { t.Fatalf("%s: %s = %v", row.name, key, v) })
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: seed}), board: &hw}
	if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: hw, Seed: seed, Physics: &ph, Powered: true}); err != nil {
		t.Fatal(err)
	}
	r.boot(make([]*ocs.Calibration, len(hw.Bundles)))
	r.run(20 * time.Millisecond)
	return r
}

// failed takes the cause of a calibration that failed, and whether it is so.
func (row *physicsRow) failed(r *rig, b int, end ocs.Event, res *rowResult) {
	cause, cell := end.Text, -1
	var found *mzi.CellError
	if errors.As(end.Err, &found) {
		cause, cell = found.Fault.String(), found.Cell
	}
	right := slices.Contains(row.causes, cause)
	if right && cause == causeReach {
		right = row.reach(r, b, cell) < 2.1
	}
	if !right {
		res.wrong++
	}
	res.note(cause, r, b, cell)
}

// note keeps who says what.
func (r *rowResult) note(cause string, rig *rig, b, cell int) {
	where := fmt.Sprintf("%s/%d", rig.world.Personality(rig.id, b, 0).Serial()[8:], cell)
	r.causes[cause] = append(r.causes[cause], where)
}

// reach is the phase, in pi, that a heater brings at most within its limits, by
// truth.
func (row *physicsRow) reach(r *rig, b, cell int) float64 {
	if cell < 0 {
		return 1 << 10
	}
	h := &r.board.Bundles[b].Modules[0].Optics().Heater
	c := r.world.Personality(r.id, b, 0).Cell(cell)
	volt, amp := float64(h.MaxMillivolt)/1000, float64(h.MaxMicroampere)/1e6
	milliwatt := min(float64(h.MaxMicrowatt)/1000, 1000*volt*volt/c.Ohm, 1000*amp*amp*c.Ohm)
	return milliwatt / c.PiMilliwatt
}

// rounds of all lit paths that a calibrated bundle goes through.
const rounds = 5

// judge switches a bundle to each path and compares what it says with what is so.
func (row *physicsRow) judge(r *rig, b int, res *rowResult) {
	if !r.until(r.world.Now()+time.Second, func() bool { return r.optics[b].Status().Ready }) {
		res.wrong++
		res.note("calibrated, but never ready", r, b, -1)
		return
	}
	cal := r.optics[b].Status().Calibration
	envelope := cal.Timing.Envelope(sim.LaserSkew)
	if err := envelope.Usable(); err != nil {
		res.wrong++
		res.note(err.Error(), r, b, -1)
	}
	mod := cal.Modules[0]
	for k, db := range mod.Extinction {
		res.own.cell(k, db)
	}
	res.own.loss = max(res.own.loss, mod.Paths[1])
	truth, low := noFigures(), false
	cross := int32(1 << 30)
	truth.loss, cross = row.paths(r, b, mod)
	for i := range rounds * 3 {
		path := proto.Loopback + proto.Path(i%3)
		r.events[b] = nil
		if err := r.optics[b].Select(r.world.Now(), path); err != nil {
			r.t.Fatal(err)
		}
		r.run(10 * time.Millisecond)
		res.switches++
		failed := slices.ContainsFunc(r.events[b], func(e ocs.Event) bool { return e.Kind == ocs.PathFailed })
		worst := noFigures()
		for k, db := range r.world.PathExtinctions(r.id, b, 0, i%3) {
			worst.cell(k, db)
		}
		truth.mzi, truth.matrix = min(truth.mzi, worst.mzi), min(truth.matrix, worst.matrix)
		low = low || !failed && min(worst.mzi, worst.matrix) < leastCell
	}
	low = low || cross < leastPath || truth.loss > mostLoss
	if low {
		res.below++
	}
	res.truth = figures{min(res.truth.mzi, truth.mzi), min(res.truth.matrix, truth.matrix), max(res.truth.loss, truth.loss)}
}

// paths tells, of the worst lane in loopback, the light that the matrix does not
// bring where it belongs, over the loss of its cells, and the light that it
// does over what of it comes out at any other.
func (row *physicsRow) paths(r *rig, b int, mod *ocs.ModuleCalibration) (loss, cross int32) {
	var codes [hal.CellsPerMod]uint16
	for k := range codes {
		codes[k] = mod.Codes[k][0]
	}
	return r.lanesOf(b, &codes)
}

// lanesOf tells that of bundle b's first module with any codes, nil: those in force.
func (r *rig) lanesOf(b int, codes *[hal.CellsPerMod]uint16) (loss, cross int32) {
	cross = 1 << 30
	for lane, outs := range r.world.LaneTruth(r.id, b, 0, codes) {
		best := slices.Max(outs[:])
		to := slices.Index(outs[:], best)
		loss = max(loss, -best-hal.MatrixStages*300)
		for out, db := range outs {
			if out != to {
				cross = min(cross, best-db)
			}
		}
		if to/hal.HalfLanes == lane/hal.HalfLanes {
			cross = 0 // it comes out at its own half
		}
	}
	return loss, cross
}
