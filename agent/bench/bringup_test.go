package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"periph.io/x/conn/v3/physic"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// world is several simulated boards at one bench.
type world struct {
	*sim.World
	boards []*hal.Board
}

func (w *world) Submit(board int, bus hal.BusID, op *hal.Op) error {
	return w.World.Submit(w.Now(), sim.BoardID(board), bus, op)
}
func (w *world) Level(board int, line hal.LineID) (bool, error) {
	return w.World.Level(sim.BoardID(board), line), nil
}
func (w *world) Advance(limit time.Duration) (int, hal.Event, bool) {
	for {
		next, any := w.Next()
		if !any || next > limit {
			if limit > w.Now() {
				w.AdvanceTo(limit)
			}
			return 0, hal.Event{}, false
		}
		if id, ev, ok := w.Step(); ok {
			return int(id), ev, true
		}
	}
}

// newWorld makes boards of two bundles with one module.
func newWorld(t *testing.T, boards int, faults ...sim.Fault) *world {
	t.Helper()
	return newWorldOf(t, boards, nil, faults...)
}

// newWorldOf makes them otherwise than their board file says.
func newWorldOf(t *testing.T, boards int, wired func(i int, hw *hal.Board), faults ...sim.Fault) *world {
	t.Helper()
	w := &world{World: sim.NewWorld(sim.WorldConfig{Seed: 11})}
	for i := range boards {
		hw, err := boardfile.Default(4, 2, 1)
		if err != nil {
			t.Fatal(err)
		}
		c := sim.BoardConfig{Board: hw, Seed: uint64(100 + i), Powered: true}
		if wired != nil {
			if c.Board, err = boardfile.Default(4, 2, 1); err != nil {
				t.Fatal(err)
			}
			wired(i, &c.Board)
		}
		if i == 0 {
			c.Faults = faults
		}
		if _, err := w.AddBoard(c); err != nil {
			t.Fatal(err)
		}
		w.boards = append(w.boards, &hw)
	}
	return w
}

func (w *world) stations() []Station {
	var out []Station
	for i, hw := range w.boards {
		out = append(out, Station{Node: proto.NodeID(10 + i), Board: hw, Seed: uint64(i), Calibrations: make([]*ocs.Calibration, len(hw.Bundles))})
	}
	return out
}

func (w *world) connect(t *testing.T, f Fibre) {
	t.Helper()
	port := func(p Port) sim.Port {
		return sim.Port{Board: sim.BoardID(p.Node - 10), Bundle: p.Bundle, Path: int(p.Path - proto.Loopback)}
	}
	if err := w.Connect(port(f.A), port(f.B), sim.Fibre{}); err != nil {
		t.Fatal(err)
	}
}

func fibre(t *testing.T, s string) Fibre {
	t.Helper()
	f, err := ParseFibre(s, 10)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func failures(r *Report) (out []string) {
	for _, c := range r.Checks {
		if c.Verdict == Fail {
			out = append(out, fmt.Sprintf("%s, %s: %s", c.Section, c.Where, c.Text))
		}
	}
	return out
}

func TestBringUpOfABoard(t *testing.T) {
	// Goal: a healthy board passes every check, its chips, heaters and lasers
	// are measured as the simulator made them, its fibres are found, the board
	// is left dark, and no heater ever passes a limit.
	w := newWorld(t, 1)
	w.connect(t, fibre(t, "0/external1-1/external2"))
	var kept []*ocs.Calibration
	r, err := BringUp{Calibrate: true, Expected: []Fibre{fibre(t, "1/external2-0/external1")},
		Calibrated: func(_, _ int, c *ocs.Calibration) { kept = append(kept, c) }}.Run(w, w.stations())
	if err != nil {
		t.Fatal(err)
	}
	if bad := failures(r); len(bad) > 0 || r.Failed != 0 || r.Skipped != 0 || len(kept) != 2 {
		t.Errorf("failed %v, skipped %d, %d calibrations", bad, r.Skipped, len(kept))
	}
	for _, m := range r.Modules {
		if want := w.Personality(0, m.Bundle, m.Module).Serial(); m.Serial != want || len(m.Ohm) != hal.BenesCells || len(m.LaneBest) != hal.Lanes || len(m.LoopLevel) != hal.Lanes {
			t.Errorf("%+v, want serial %s", m, want)
		}
		for cell, ohm := range m.Ohm {
			if cal := int32(kept[m.Bundle].Modules[m.Module].Cells[cell].MilliOhm / 1000); ohm < cal-cal/20 || ohm > cal+cal/20 {
				t.Errorf("bundle %d cell %d: %d Ohm, calibration says %d", m.Bundle, cell, ohm, cal)
			}
		}
	}
	if f := r.Fibres; f == nil || len(f.Found) != 1 || f.Found[0] != fibre(t, "0/external1-1/external2") || len(f.Dark) != 2 || len(f.Steps) != 0 {
		t.Errorf("fibres %+v", r.Fibres)
	}
	if lim := w.Limits(0); lim.Volt > physic.ElectricPotential(hal.Standard().Heater.MaxMillivolt+20)*physic.MilliVolt || lim.Heater > physic.Power(hal.Standard().Heater.MaxMicrowatt+1000)*physic.MicroWatt ||
		lim.Module > physic.Power(hal.Standard().Heater.ModuleMicrowatt+20_000)*physic.MicroWatt {
		t.Errorf("limits %+v", lim)
	}
	var page, table strings.Builder
	r.Table(&table)
	if err := r.Page(&page); err != nil {
		t.Fatal(err)
	}
	if s := table.String(); !strings.Contains(s, "bring-up passed") || !strings.Contains(s, "10:0/external1-10:1/external2") {
		t.Error(s)
	}
	for _, want := range []string{"<svg", r.Modules[0].Serial, "</html>"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("page without %q", want)
		}
	}
	if s := page.String(); strings.Contains(s, "http://") && !strings.Contains(s, "http://www.w3.org/2000/svg") || strings.Contains(s, "<script") || strings.Contains(s, "src=") {
		t.Error("the page is not self-contained")
	}
}

func TestBringUpNamesWhatIsBroken(t *testing.T) {
	// Goal: an open heater, a shorted one, a dead laser, and chips that do not
	// answer are each named where they are, and nothing else is blamed on
	// another module.
	w := newWorld(t, 1, sim.Fault{Kind: sim.HeaterStuck, Bundle: 0, Index: 17}, sim.Fault{Kind: sim.HeaterShort, Bundle: 0, Index: 3},
		sim.Fault{Kind: sim.LaserDead, Bundle: 0, Index: 5})
	m := w.boards[0].Bundles[1].Modules[0]
	if err := w.Inject(0, sim.Fault{Kind: sim.ChipGone, Bus: m.Slow, Addr: m.Temp}); err != nil {
		t.Fatal(err)
	}
	r, err := BringUp{}.Run(w, w.stations())
	if err != nil {
		t.Fatal(err)
	}
	bad := strings.Join(failures(r), "\n")
	for _, want := range []string{"heaters, bundle 0 module 0: cell 3 short", "cell 17 open", "lasers, bundle 0 module 0: no light of lane 5",
		fmt.Sprintf("scan, bus %d", m.Slow), "missing 0x70.0/0x48", "inventory, bundle 1 module 0"} {
		if !strings.Contains(bad, want) {
			t.Errorf("no %q in\n%s", want, bad)
		}
	}
	if len(failures(r)) != 4 {
		t.Errorf("failures:\n%s", bad)
	}
	if r.Skipped != 3 || r.Fibres != nil {
		t.Errorf("without a calibration the light must be skipped: %+v", r.Checks)
	}
}

func TestBoardInServiceIsLeftAlone(t *testing.T) {
	// Goal: a board whose bundle is on a path is refused, and its light stays.
	w := newWorld(t, 1)
	st := w.stations()
	if _, err := (BringUp{Calibrate: true, Calibrated: func(s, b int, c *ocs.Calibration) { st[s].Calibrations[b] = c }}).Run(w, st); err != nil {
		t.Fatal(err)
	}
	l := newLab(w, st)
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	if err := l.sel(l.all()[:1], func(*driven) proto.Path { return proto.Loopback }); err != nil {
		t.Fatal(err)
	}
	if _, err := (BringUp{}).Run(w, st); err == nil || !strings.Contains(err.Error(), ErrInService.Error()) {
		t.Errorf("%v", err)
	}
	if err := l.run(10*time.Millisecond, nil); err != nil {
		t.Fatal(err)
	}
	if !w.Lit(sim.Port{Board: 0, Bundle: 0, Path: hal.LOSLoopback}) {
		t.Error("the light went")
	}
}

func TestCodedLightFindsEveryFibre(t *testing.T) {
	// Goal: across three nodes every fibre is found, also one that loops back
	// to its own node; a fibre cut one way is told as such; swapped fibres give
	// the shortest list of steps, and after it the map is as expected.
	w := newWorld(t, 3)
	for _, s := range []string{"10:0/external1-11:1/external1", "11:0/external1-12:1/external1", "10:0/external2-12:1/external2",
		"12:0/external1-12:0/external2", "11:0/external2-10:1/external1"} {
		w.connect(t, fibre(t, s))
	}
	if err := w.Cut(sim.Port{Board: 1, Bundle: 0, Path: hal.LOSExternal2}, sim.In); err != nil {
		t.Fatal(err)
	}
	expected := []Fibre{fibre(t, "10:0/external1-12:1/external1"), fibre(t, "11:0/external1-11:1/external1"),
		fibre(t, "10:0/external2-12:1/external2"), fibre(t, "12:0/external1-12:0/external2")}
	r, err := BringUp{Calibrate: true, Expected: expected}.Run(w, w.stations())
	if err != nil {
		t.Fatal(err)
	}
	m := r.Fibres
	if m == nil {
		t.Fatalf("no map: %v", failures(r))
	}
	want := []Fibre{fibre(t, "10:0/external1-11:1/external1"), fibre(t, "11:0/external1-12:1/external1"), fibre(t, "10:0/external2-12:1/external2"),
		fibre(t, "12:0/external1-12:0/external2")}
	for _, f := range want {
		if !slices.Contains(m.Found, f) {
			t.Errorf("%v not found in %v", f, m.Found)
		}
	}
	if len(m.Found) != len(want) || len(m.OneWay) != 1 || m.OneWay[0] != fibre(t, "11:0/external2-10:1/external1") || len(m.Odd) != 0 {
		t.Errorf("found %v, one way %v, odd %v", m.Found, m.OneWay, m.Odd)
	}
	// The fibre that works one way is not expected: it is to be taken out.
	if len(m.Steps) != 2 || m.Steps[0].Kind != StepSwap || m.Steps[1].Kind != StepPull || len(m.Missing) != 2 || len(m.Extra) != 2 {
		t.Errorf("steps %v, missing %v, extra %v", m.Steps, m.Missing, m.Extra)
	}
}

// Goal: taps that are wired the other way round than the board file says calibrate well
// and light the wrong fibre: the judge of light says so, and so do fibres that are tried,
// by the bundle's name, with its fibres where they are.
// Method: one node of three has swapped taps, then all; a bundle's two fibres, or one.
func TestSwappedTapsAreFoundByTheirFibres(t *testing.T) {
	fibres := []Fibre{fibre(t, "10:0/external1-11:0/external1"), fibre(t, "10:0/external2-12:0/external1"), fibre(t, "10:1/external2-11:1/external2")}
	swap := func(_ int, hw *hal.Board) {
		own := hal.Standard()
		a, b := &own.Guard[hal.GuardTap1], &own.Guard[hal.GuardTap2]
		a.Channel, b.Channel = b.Channel, a.Channel
		hw.Types = []hal.Optics{own}
		for i := range hw.Bundles {
			hw.Bundles[i].Modules[0].Type = 0
		}
		hw.Link()
	}
	for name, c := range map[string]struct { // any order: independent
		wired func(int, *hal.Board)
		told  []string
	}{
		"none": {nil, nil},
		"one": {func(i int, hw *hal.Board) {
			if i == 0 {
				swap(i, hw)
			}
		}, []string{"bundle 0 of node 10", "bundle 1 of node 10"}},
		"all": {swap, []string{"bundle 0 of node 10", "bundle 1 of node 10", "bundle 0 of node 11", "bundle 1 of node 11", "bundle 0 of node 12"}},
	} {
		w := newWorldOf(t, 3, c.wired)
		for _, f := range fibres {
			w.connect(t, f)
		}
		r, err := BringUp{Calibrate: true, Expected: fibres}.Run(w, w.stations())
		if err != nil {
			t.Fatal(err)
		}
		m := r.Fibres
		if m == nil || len(m.Found) != 3 || len(m.Missing)+len(m.Extra)+len(m.OneWay) > 0 {
			t.Fatalf("%s: %+v", name, m)
		}
		bad := strings.Join(failures(r), "\n")
		for _, want := range c.told {
			if !strings.Contains(bad, want+" sends by the other path's fibre") {
				t.Errorf("%s: no %q in\n%s", name, want, bad)
			}
		}
		if c.told == nil && bad != "" {
			t.Errorf("%s: %s", name, bad)
		}
		for _, path := range []int{hal.LOSExternal1, hal.LOSExternal2} {
			if db := w.PathExtinctions(0, 0, 0, path)[hal.CellMZI2]; (db < 0) != (c.told != nil) {
				t.Errorf("%s: by the truth MZI2 of lane 0 has %d mdB on path %d", name, db, path)
			}
		}
	}
}

// Goal: who reads a report at a terminal has what failed before his eyes.
// Method: one failed check among many good ones; it stands again in the last lines.
func TestTableEndsWithWhatFailed(t *testing.T) {
	var r Report
	for i := range 40 {
		if i == 3 {
			r.add("heaters", "bundle 0 module 3", Fail, "cell 1 open")
			continue
		}
		r.add("rails", fmt.Sprint("module ", i), Pass, "12 V")
	}
	var b strings.Builder
	r.Table(&b)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if end := strings.Join(lines[len(lines)-3:], "\n"); !strings.HasPrefix(end, "what failed\n  heaters   bundle 0 module 3    cell 1 open\nbring-up FAILED") {
		t.Errorf("%s", end)
	}
}
