package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"ringlight/agent"
	"ringlight/hal"
	"ringlight/ocs"
	"ringlight/proto"
	"ringlight/sim"
)

// What is asked of a calibrated cell, in thousandths of a dB. docs/board.md: modelled
// over 200 seeds all cells are beyond 20 dB.
const leastExtinction = 20_000

// calibratedBundle is what calibrate prints of one bundle.
type calibratedBundle struct {
	Bundle       proto.BundleID     `json:"bundle"`
	BoardMS      int64              `json:"board_ms"`
	Measurements uint32             `json:"measurements"`
	Timing       proto.Envelope     `json:"timing"`
	Doubt        string             `json:"doubt,omitempty"` // trials that were late
	Modules      []calibratedModule `json:"modules"`
}

// calibratedModule is one module. Extinctions are the simulator's truth: a
// real board cannot look inside itself.
type calibratedModule struct {
	Serial       string  `json:"serial"`
	BoardMS      uint32  `json:"board_ms"`
	Measurements uint32  `json:"measurements"`
	ExtinctionMB []int32 `json:"extinction_mdb,omitempty"` // by cell
	WorstCell    int     `json:"worst_cell"`
	WorstMB      int32   `json:"worst_mdb"`
}

// calibrate calibrates one bundle or all of them.
func calibrate(ctx context.Context, args []string) error {
	fs, common := newFlags("calibrate", "calibrate bundles that carry nothing, from nothing", "ocs-agent calibrate -b 0 -config node7.json")
	only := fs.Int("b", -1, "`bundle`; -1: all")
	diff := fs.Bool("diff", false, "calibrate nothing; show what the kept calibration changed against the one before")
	if err := parse(fs, args, 0); err != nil {
		return err
	}
	cfg, err := common.load()
	if err != nil {
		return err
	}
	if *only < -1 || *only >= cfg.Board.Bundles {
		return common.fail(usagef("b: %d: want 0 to %d", *only, cfg.Board.Bundles-1))
	}
	if *diff {
		return common.fail(cfg.calibrateDiff(*only, common.json))
	}
	return common.fail(cfg.calibrate(ctx, *only, common.json))
}

func (c *Config) calibrate(ctx context.Context, only int, asJSON bool) error {
	a, err := c.asker(ctx)
	if err != nil {
		return err
	}
	var done []calibratedBundle
	var failed []error
	for i := range c.Board.Bundles {
		if only >= 0 && i != only {
			continue
		}
		fmt.Fprintf(os.Stderr, "bundle %d: %d modules ...\n", i, c.Board.Modules)
		ans, err := answered(a.ask(agent.Question{Verb: "calibrate", Bundle: proto.BundleID(i)}))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		b, err := c.found(a, i, ans)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		done = append(done, *b)
		if !asJSON {
			printCalibrated(b)
		}
	}
	if err := a.close(); err != nil {
		failed = append(failed, err)
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	if asJSON {
		return printJSON(map[string]any{"bundles": done})
	}
	return nil
}

// found reads back what was kept, and asks the simulator for the truth.
func (c *Config) found(a *asker, i int, ans *agent.Answer) (*calibratedBundle, error) {
	kept, _, err := agent.LoadCalibrations(c.State, c.Board.Bundles)
	if err != nil {
		return nil, err
	}
	if kept[i] == nil {
		return nil, fmt.Errorf("bundle %d: calibrated, but nothing was kept in %s", i, c.State)
	}
	b := &calibratedBundle{Bundle: proto.BundleID(i), BoardMS: ans.Took.Milliseconds(), Timing: kept[i].Timing.Envelope(sim.LaserSkew), Doubt: kept[i].Doubt()}
	for m, mod := range kept[i].Modules {
		b.Measurements += mod.Measurements
		b.Modules = append(b.Modules, describe(a, i, m, mod))
	}
	return b, nil
}

func describe(a *asker, bundle, m int, mod *ocs.ModuleCalibration) calibratedModule {
	out := calibratedModule{Serial: mod.Serial, BoardMS: mod.BoardMillis, Measurements: mod.Measurements, WorstCell: -1}
	if a.bench == nil {
		return out
	}
	truth := a.bench.board.World().Extinctions(a.bench.board.ID(), bundle, m)
	for k, e := range truth {
		out.ExtinctionMB = append(out.ExtinctionMB, e)
		if out.WorstCell < 0 || e < out.WorstMB {
			out.WorstCell, out.WorstMB = k, e
		}
	}
	return out
}

func printCalibrated(b *calibratedBundle) {
	fmt.Printf("bundle %d  %v of board time, %d measurements; detect %d to %d us, switch %d to %d us\n", b.Bundle,
		time.Duration(b.BoardMS)*time.Millisecond, b.Measurements, b.Timing.DetectMinMicros, b.Timing.DetectMaxMicros,
		b.Timing.SwitchMinMicros, b.Timing.SwitchMaxMicros)
	if b.Doubt != "" {
		fmt.Println("  " + b.Doubt)
	}
	for m := range b.Modules {
		mod := &b.Modules[m]
		fmt.Printf("  module %d %s  %.1f s, %d measurements", m, mod.Serial, float64(mod.BoardMS)/1000, mod.Measurements)
		if mod.ExtinctionMB == nil {
			fmt.Println()
			continue
		}
		verdict := "all cells beyond 20 dB"
		if mod.WorstMB < leastExtinction {
			verdict = "TOO LITTLE"
		}
		fmt.Printf("; true extinction, worst cell %d %.1f dB: %s\n", mod.WorstCell, float64(mod.WorstMB)/1000, verdict)
		for first := 0; first < hal.CellsPerMod; first += 12 {
			fmt.Printf("    cells %2d-%2d dB", first, min(first+12, hal.CellsPerMod)-1)
			for _, e := range mod.ExtinctionMB[first:min(first+12, hal.CellsPerMod)] {
				fmt.Printf(" %5.1f", float64(e)/1000)
			}
			fmt.Println()
		}
	}
}
