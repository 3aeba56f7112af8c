package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/mzi/detmath"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// calibratedBundle is what calibrate prints of one bundle.
type calibratedBundle struct {
	Bundle       proto.BundleID `json:"bundle"`
	BoardMS      int64          `json:"board_ms"`
	Measurements uint32         `json:"measurements"`
	Timing       proto.Envelope `json:"timing"`
	Doubt        string         `json:"doubt,omitempty"` // trials that were late
}

// calibratedModule is one module. Own figures come from its diodes alone; a real
// board has no other.
type calibratedModule struct {
	Bundle       proto.BundleID `json:"bundle"`
	Module       int            `json:"module"`
	Result       string         `json:"result"` // calibrated, sound or failed
	Cause        string         `json:"cause"`
	Cell         *uint8         `json:"cell"`
	Own          *opticsFigures `json:"own"`
	Truth        *opticsFigures `json:"truth"`
	Serial       string         `json:"serial,omitempty"`
	BoardMS      uint32         `json:"board_ms,omitempty"`
	Measurements uint32         `json:"measurements,omitempty"`
	ExtinctionMB []int32        `json:"extinction_mdb,omitempty"` // by cell, its own
}

// opticsFigures are the worst of a module's cells and of loopback's paths.
type opticsFigures struct {
	MZI      float64 `json:"worst_mzi_db"`
	Matrix   float64 `json:"worst_matrix_db"`
	PathLoss float64 `json:"worst_path_loss_db"`
}

const (
	resultCalibrated = "calibrated"
	resultSound      = "sound" // itself, but not one of its bundle
	resultFailed     = "failed"
)

// calibrate calibrates one bundle or all of them.
func calibrate(ctx context.Context, args []string) error {
	fs, common := newFlags("calibrate", "calibrate bundles that carry nothing, from nothing", "ocs-agent calibrate -b 0 -config node7.json")
	only := fs.Int("b", -1, "`bundle`; -1: all")
	diff := fs.Bool("diff", false, "calibrate nothing; show what the kept calibration changed against the one before")
	cfg, err := common.alone(args)
	if err != nil {
		return err
	}
	if *only < -1 || *only >= cfg.Board.Bundles {
		return usagef("b: %d: want 0 to %d", *only, cfg.Board.Bundles-1)
	}
	if *diff {
		return cfg.calibrateDiff(*only, common.json)
	}
	return cfg.calibrate(ctx, *only, common.json)
}

func (c *Config) calibrate(ctx context.Context, only int, asJSON bool) error {
	a, err := c.asker(ctx)
	if err != nil {
		return err
	}
	done, modules := []calibratedBundle{}, []calibratedModule{}
	var failed error
	for i := range c.Board.Bundles {
		if only >= 0 && i != only {
			continue
		}
		fmt.Fprintf(os.Stderr, "bundle %d: %d modules ...\n", i, c.Board.Modules)
		ans, err := answered(a.ask(agent.Question{Verb: "calibrate", Bundle: proto.BundleID(i)}))
		if err != nil {
			failed = errors.Join(failed, err)
			if ans != nil && len(ans.Failing) > 0 {
				modules = append(modules, c.lost(i, ans.Failing)...)
			}
			continue
		}
		b, found, err := c.found(a, i, ans)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		done, modules = append(done, *b), append(modules, found...)
		if !asJSON {
			printCalibrated(b, found)
		}
	}
	if failed = errors.Join(failed, a.close()); asJSON && (failed == nil || len(modules) > 0) {
		return cli.Answered(errors.Join(failed, printJSON(map[string]any{"bundles": done, "modules": modules})))
	}
	return failed
}

// lost are a bundle's modules where some could not be calibrated: of the others nothing is kept.
func (c *Config) lost(bundle int, why []agent.Failing) (list []calibratedModule) {
	for m := range c.Board.Modules {
		one := calibratedModule{Bundle: proto.BundleID(bundle), Module: m, Result: resultSound, Cause: fmt.Sprintf("not kept: module %d failed", why[0].Module)}
		for _, f := range why {
			if m == int(f.Module) {
				one.Result, one.Cause, one.Cell = resultFailed, f.Cause, f.Cell
			}
		}
		list = append(list, one)
	}
	return list
}

// found reads back what was kept, and asks the simulator for the truth.
func (c *Config) found(a *asker, i int, ans *agent.Answer) (*calibratedBundle, []calibratedModule, error) {
	kept, _, err := agent.LoadCalibrations(c.State, c.Board.Bundles)
	if err != nil {
		return nil, nil, err
	}
	if kept[i] == nil {
		return nil, nil, fmt.Errorf("bundle %d: calibrated, but nothing was kept in %s", i, c.State)
	}
	b := &calibratedBundle{Bundle: proto.BundleID(i), BoardMS: ans.Took.Milliseconds(), Timing: kept[i].Timing.Envelope(sim.LaserSkew), Doubt: kept[i].Doubt()}
	var modules []calibratedModule
	for m, mod := range kept[i].Modules {
		b.Measurements += mod.Measurements
		modules = append(modules, describe(a, i, m, mod))
	}
	return b, modules, nil
}

func describe(a *asker, bundle, m int, mod *ocs.ModuleCalibration) calibratedModule {
	out := calibratedModule{Bundle: proto.BundleID(bundle), Module: m, Result: resultCalibrated, Serial: mod.Serial, BoardMS: mod.BoardMillis, Measurements: mod.Measurements,
		ExtinctionMB: mod.Extinctions(), Own: worstOf(mod.Extinctions(), mod.Paths[1])}
	if a.bench == nil {
		return out
	}
	w, id := a.bench.board.World(), a.bench.board.ID()
	truth := w.Extinctions(id, bundle, m)
	var codes [hal.CellsPerMod]uint16
	for k := range codes {
		codes[k] = mod.Codes[k][0]
	}
	loss := int32(0)
	for _, outs := range w.LaneTruth(id, bundle, m, &codes) {
		all := 0.0
		for _, out := range outs {
			all += detmath.FromDB(float64(out) / 1000)
		}
		loss = max(loss, int32(1000*detmath.DB(all))-slices.Max(outs[:]))
	}
	out.Truth = worstOf(truth[:], loss)
	return out
}

func worstOf(extinction []int32, lossMilliDB int32) *opticsFigures {
	db := func(milli int32) float64 { return float64(milli) / 1000 }
	there := func(x []int32) []int32 {
		return slices.DeleteFunc(slices.Clone(x), func(e int32) bool { return e == 0 })
	}
	return &opticsFigures{db(slices.Min(there(extinction[:hal.CellMatrix]))), db(slices.Min(there(extinction[hal.CellMatrix:]))), db(lossMilliDB)}
}

func printCalibrated(b *calibratedBundle, modules []calibratedModule) {
	fmt.Printf("bundle %d  %v of board time, %d measurements; detect %d to %d us, switch %d to %d us\n", b.Bundle,
		time.Duration(b.BoardMS)*time.Millisecond, b.Measurements, b.Timing.DetectMinMicros, b.Timing.DetectMaxMicros,
		b.Timing.SwitchMinMicros, b.Timing.SwitchMaxMicros)
	if b.Doubt != "" {
		fmt.Println("  " + b.Doubt)
	}
	for m := range modules {
		mod := &modules[m]
		fmt.Printf("  module %d %s  %.1f s, %d measurements; by its own diodes MZI %.1f dB, matrix %.1f dB, path loss %.2f dB", mod.Module, mod.Serial,
			float64(mod.BoardMS)/1000, mod.Measurements, mod.Own.MZI, mod.Own.Matrix, mod.Own.PathLoss)
		if mod.Truth != nil {
			fmt.Printf("; in truth %.1f, %.1f and %.2f", mod.Truth.MZI, mod.Truth.Matrix, mod.Truth.PathLoss)
		}
		fmt.Println()
		for first := 0; first < len(mod.ExtinctionMB); first += 12 {
			some := mod.ExtinctionMB[first:min(first+12, len(mod.ExtinctionMB))]
			fmt.Printf("    cells %2d-%2d dB", first, first+len(some)-1)
			for _, e := range some {
				if e == 0 { // of a lane that the module has not
					fmt.Printf("     -")
					continue
				}
				fmt.Printf(" %5.1f", float64(e)/1000)
			}
			fmt.Println()
		}
	}
}

// bundleDiff is what calibrate -diff prints of one bundle.
type bundleDiff struct {
	Bundle proto.BundleID `json:"bundle"`
	*ocs.Comparison
}

// calibrateDiff shows what the calibrations that are kept changed against those
// before them. It asks no board.
func (c *Config) calibrateDiff(only int, asJSON bool) error {
	kept, damaged, err := agent.LoadCalibrations(c.State, c.Board.Bundles)
	if err != nil {
		return err
	}
	if len(damaged) > 0 {
		return damaged[0]
	}
	var diffs []bundleDiff
	for i := range c.Board.Bundles {
		id := proto.BundleID(i)
		if only >= 0 && i != only {
			continue
		}
		before, err := agent.PreviousCalibration(c.State, id)
		if err != nil {
			return err
		}
		if kept[i] == nil || before == nil {
			if only < 0 {
				continue
			}
			return fmt.Errorf("bundle %d: %s holds no two calibrations to compare", i, c.State)
		}
		diff, err := ocs.Compare(before, kept[i])
		if err != nil {
			return fmt.Errorf("bundle %d: %w", i, err)
		}
		diffs = append(diffs, bundleDiff{id, diff})
	}
	if len(diffs) == 0 {
		return fmt.Errorf("%s holds no two calibrations of a bundle to compare", c.State)
	}
	return answer(asJSON, map[string]any{"bundles": diffs}, func() {
		for i := range diffs {
			printDiff(&diffs[i])
		}
	})
}

func printDiff(d *bundleDiff) {
	for _, m := range d.Modules {
		fmt.Printf("bundle %d module %d  %s", d.Bundle, m.Module, m.Serial)
		if m.Was != "" {
			fmt.Printf(" (was %s: another module)", m.Was)
		}
		fmt.Printf("  case %.1f -> %.1f C, rail %.2f -> %.2f V\n", float64(m.CaseMillicelsius[0])/1000, float64(m.CaseMillicelsius[1])/1000,
			float64(m.RailMillivolt[0])/1000, float64(m.RailMillivolt[1])/1000)
		fmt.Printf("  %-24s %22s %19s %21s %17s %17s\n", "cell", "phase rad (change)", "extinction dB", "resistance ohm", "A mW", "B mW")
		for _, x := range m.Cells {
			fmt.Printf("  %2d %-21s %+8.3f (%+8.1f mrad) %8.1f -> %6.1f %9.2f -> %8.2f %7.2f -> %5.2f %7.2f -> %5.2f\n", x.Cell, x.Name,
				float64(x.PhaseMicrorad[1])/1e6, float64(x.PhaseChangeMicrorad)/1000,
				float64(x.ExtinctionMilliDB[0])/1000, float64(x.ExtinctionMilliDB[1])/1000,
				float64(x.MilliOhm[0])/1000, float64(x.MilliOhm[1])/1000,
				float64(x.PowerMicrowatt[0][0])/1000, float64(x.PowerMicrowatt[0][1])/1000,
				float64(x.PowerMicrowatt[1][0])/1000, float64(x.PowerMicrowatt[1][1])/1000)
		}
		fmt.Printf("  largest change of phase %.1f mrad, in cell %d\n", float64(m.LargestMicrorad)/1000, m.LargestCell)
	}
}
