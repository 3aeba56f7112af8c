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

	"ringlight/agent/bench"
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

// rowResult is what a row came to.
type rowResult struct {
	calibrated, of, switches int
	unproven                 int // switches after which the light was said to be
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
	return fmt.Sprintf("%2d of %2d  %s  %s  %3d %3d  %s  %s", r.calibrated, r.of, r.own, r.truth, r.switches, r.unproven, verdict, strings.Join(causes, "; "))
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
	boards, only, kinds := boardSeeds(t, 1), os.Getenv("RINGLIGHT_ROWS"), strings.Fields(os.Getenv("RINGLIGHT_KINDS"))
	if len(kinds) == 0 {
		kinds = []string{kindLTC2688, kindAD5676R, kindCMIS, kindRiser, kindCage, kindGazebo}
	}
	var bad []string
	fmt.Printf("%-36s calibrated  own: MZI, matrix, path loss; truth: the same, dB; switches, unproven after\n", "changed")
	for i := range physicsRows {
		row := &physicsRows[i]
		if !strings.Contains(row.name, only) {
			continue
		}
		for _, kind := range kinds {
			if row.chips && (kind == kindCMIS || kind == kindCage) {
				continue
			}
			res := row.run(t, kind, boards)
			fmt.Printf("%-36s %-8s %v\n", row.name, kind, res)
			if res.below > 0 || res.wrong > 0 {
				bad = append(bad, row.name+" on "+kind)
			}
		}
	}
	if len(bad) > 0 {
		t.Errorf("%d rows with modules tuned below the limit, or failed for what is not so: %s", len(bad), strings.Join(bad, "; "))
	}
}

// Goal: where a heater moves much of the light that a matrix cell is looked at by, that cell is
// not said to be better than it is.
// Method: a module of six lanes that was told good with 24.4 dB in loopback.
func TestStrongCrosstalkIsNotHidden(t *testing.T) {
	i := slices.IndexFunc(physicsRows[:], func(row physicsRow) bool { return row.name == "crosstalk 12 %" })
	r := physicsRows[i].board(t, kindGazebo, 6)
	if end := physicsRows[i].calibrate(r, 0); end.Kind != ocs.Calibrated {
		t.Fatal(end.Text)
	}
	for k, db := range r.world.PathExtinctions(r.id, 0, 0, hal.LOSLoopback) {
		if k >= hal.CellMatrix && db < 27_000 {
			t.Errorf("matrix cell %d: %.1f dB", k-hal.CellMatrix, float64(db)/1000)
		}
	}
}

func (row *physicsRow) run(t *testing.T, kind string, boards int) *rowResult {
	t.Helper()
	res := &rowResult{own: noFigures(), truth: noFigures(), causes: map[string][]string{}}
	for seed := range boards {
		r := row.board(t, kind, uint64(seed+1))
		for b := range r.board.Bundles {
			res.of++
			end := row.calibrate(r, b)
			if end.Kind != ocs.Calibrated {
				row.failed(r, b, end, res)
				continue
			}
			res.calibrated++
			if row.trial == "" {
				row.judge(r, b, res)
			}
		}
		if row.trial != "" {
			row.tries(r, res)
		}
	}
	return res
}

// Boards of six kinds: chips with either DAC, modules with a controller, and three board
// files of others: riser has other ADCs behind a kernel's mux, on channels in another order;
// cage modules with a controller behind a mux of ours; gazebo modules of six, four and two lanes.
const (
	kindLTC2688 = "ltc2688"
	kindAD5676R = "ad5676r"
	kindCMIS    = "cmis"
	kindRiser   = "riser"
	kindCage    = "cage"
	kindGazebo  = "gazebo"
)

// boardOf is a board of a kind, of so many bundles of so many modules.
func boardOf(t *testing.T, kind string, bundles, modules int) (hw hal.Board) {
	t.Helper()
	var err error
	switch kind {
	case kindCMIS:
		hw, err = boardfile.DefaultCMIS(4, bundles, modules, modules > 1)
	case kindAD5676R:
		hw, err = boardfile.DefaultOf(hal.AD5676R, 4, bundles, modules)
	case kindLTC2688:
		hw, err = boardfile.DefaultOf(hal.LTC2688, 4, bundles, modules)
	default:
		var raw []byte
		if raw, err = os.ReadFile("../hal/boardfile/testdata/" + kind + ".json"); err == nil {
			_, hw, err = boardfile.Parse(raw)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	hw.Bundles = hw.Bundles[:bundles]
	for b := range hw.Bundles {
		hw.Bundles[b].Modules = hw.Bundles[b].Modules[:modules]
	}
	return hw
}

// board is one of a row's.
func (row *physicsRow) board(t *testing.T, kind string, seed uint64) *rig {
	t.Helper()
	data := func(wires func(*hal.Optics)) hal.Board {
		hw := boardOf(t, kind, 2, 1)
		own := *hw.Bundles[0].Modules[0].Optics()
		if row.maker != nil {
			row.maker(&own.Heater)
		}
		hw.Types = []hal.Optics{own, own}
		if wires != nil {
			wires(&hw.Types[0]) // of the first bundle alone
		}
		for b := range hw.Bundles {
			hw.Bundles[b].Modules[0].Type = uint8(b)
		}
		hw.Link()
		return hw
	}
	hw, real := data(nil), data(row.wires)
	ph := sim.DefaultPhysics()
	row.world(&ph)
	ph.Validate(func(key string, v float64, low, high string) { t.Fatalf("%s: %s = %v", row.name, key, v) })
	r := &rig{t: t, world: sim.NewWorld(sim.WorldConfig{Seed: seed}), board: &hw}
	var err error
	if r.id, err = r.world.AddBoard(sim.BoardConfig{Board: real, Seed: seed, Physics: &ph, Faults: row.faults, Powered: true}); err != nil {
		t.Fatal(err)
	}
	r.boot(make([]*ocs.Calibration, len(hw.Bundles)))
	r.run(20 * time.Millisecond)
	if hw.Bundles[0].Modules[0].Kind == hal.KindCMIS {
		r.run(3 * time.Second)
	}
	return r
}

// calibrate finds a bundle; what happens meanwhile happens to the first.
func (row *physicsRow) calibrate(r *rig, b int) ocs.Event {
	if row.during == nil || b > 0 {
		end, _ := r.calibrates(b)
		return end
	}
	at := r.world.Now() + 5*time.Second
	r.meanwhile = func() {
		if r.world.Now() >= at {
			r.meanwhile = nil
			row.during(r)
		}
	}
	end, _ := r.calibrates(b)
	return end
}

// failed takes the cause of a calibration that failed, and whether it is so.
func (row *physicsRow) failed(r *rig, b int, end ocs.Event, res *rowResult) {
	cause, cell := end.Text, -1
	var found *mzi.CellError
	if errors.As(end.Err, &found) {
		cause, cell = found.Fault.String(), found.Cell
	}
	right := slices.ContainsFunc(row.causes, func(c string) bool { return strings.Contains(end.Text, c) }) && (b == 0 || row.everywhere())
	if right && cause == causeReach {
		right = row.reach(r, b, cell) < 2.1
	}
	if !right {
		res.wrong++
	}
	if found != nil && (!right || strings.Contains(found.Figure, "; ")) {
		cause += ": " + found.Figure
	}
	res.note(cause, r, b, cell)
}

// everywhere says whether a row is of both bundles.
func (row *physicsRow) everywhere() bool {
	return row.faults == nil && row.wires == nil && row.during == nil
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
		if db != 0 { // of a cell that there is
			res.own.cell(k, db)
		}
	}
	res.own.loss = max(res.own.loss, mod.Paths[1])
	truth, low, proven := noFigures(), false, false
	cross := int32(1 << 30)
	truth.loss, cross = row.paths(r, b, mod)
	for i := range rounds * 3 {
		path := proto.Loopback + proto.Path(i%3)
		r.events[b] = nil
		if err := r.optics[b].Select(r.world.Now(), path); err != nil {
			r.t.Fatal(err)
		}
		r.run(50 * time.Millisecond)
		r.optics[b].Health.Round(r.world.Now())
		r.run(50 * time.Millisecond)
		res.switches++
		doubt := r.optics[b].Unproven() != ""
		if doubt {
			res.unproven++
		}
		failed := doubt || slices.ContainsFunc(r.events[b], func(e ocs.Event) bool { return e.Kind == ocs.PathFailed })
		worst := noFigures()
		for k, db := range r.world.PathExtinctions(r.id, b, 0, i%3) {
			worst.cell(k, db)
		}
		truth.mzi, truth.matrix = min(truth.mzi, worst.mzi), min(truth.matrix, worst.matrix)
		proven = proven || !failed && path == proto.Loopback
		low = low || !failed && min(worst.mzi, worst.matrix) < leastCell
	}
	low = low || proven && (cross < leastPath || truth.loss > mostLoss)
	if low {
		res.below++
	}
	res.truth = figures{min(res.truth.mzi, truth.mzi), min(res.truth.matrix, truth.matrix), max(res.truth.loss, truth.loss)}
}

// Advance of a board at a bench.
func (r *rig) Advance(limit time.Duration) (hal.Event, bool) {
	for r.world.Now() < limit {
		if _, ev, ok := r.world.Advance(limit); ok {
			return ev, true
		}
	}
	return hal.Event{}, false
}

func (r *rig) Now() time.Duration                  { return r.world.Now() }
func (r *rig) Level(line hal.LineID) (bool, error) { return r.world.Level(r.id, line), nil }
func (r *rig) Submit(bus hal.BusID, op *hal.Op) error {
	return r.world.Submit(r.world.Now(), r.id, bus, op)
}

// tries lays fibres and tries them by coded light, as a bring-up does.
func (row *physicsRow) tries(r *rig, res *rowResult) {
	fibres := func(names []string) (out []bench.Fibre) {
		for _, name := range names {
			f, err := bench.ParseFibre(name, 0)
			if err != nil {
				r.t.Fatal(err)
			}
			out = append(out, f)
		}
		return out
	}
	for _, f := range fibres(row.fibres) {
		at := func(p bench.Port) sim.Port {
			return sim.Port{Board: r.id, Bundle: p.Bundle, Path: int(p.Path - proto.Loopback)}
		}
		if err := r.world.Connect(at(f.A), at(f.B), sim.Fibre{}); err != nil {
			r.t.Fatal(err)
		}
	}
	station := bench.Station{Board: r.board}
	for _, o := range r.optics {
		station.Calibrations = append(station.Calibrations, o.Status().Calibration)
	}
	report, err := bench.BringUp{Expected: fibres(fibresTold[:len(row.fibres)])}.Run(bench.Alone(r), []bench.Station{station})
	if err != nil {
		r.t.Fatal(err)
	}
	told := []string{fmt.Sprint(report.Fibres.Steps)}
	for _, c := range report.Checks {
		if c.Verdict == bench.Fail {
			told = append(told, c.Text)
		}
	}
	if text := strings.Join(told, "; "); strings.Contains(text, row.trial) && !strings.Contains(text, "bundle 1 of") {
		res.note("a trial of fibres: "+row.trial, r, 0, -1)
	} else {
		res.wrong++
		res.note("a trial of fibres: "+text, r, 0, -1)
	}
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
	lanes := r.board.Bundles[b].Modules[0].Optics().LaneCount
	truth := r.world.LaneTruth(r.id, b, 0, codes)
	for lane := range lanes {
		outs := truth[lane][:lanes]
		best := slices.Max(outs)
		to := slices.Index(outs, best)
		loss = max(loss, -best-hal.MatrixStages*300)
		for out, db := range outs {
			if out != to {
				cross = min(cross, best-db)
			}
		}
		if to/(lanes/2) == lane/(lanes/2) {
			cross = 0 // it comes out at its own half
		}
	}
	return loss, cross
}
