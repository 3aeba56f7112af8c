package main

import (
	"fmt"

	"ringlight/agent"
	"ringlight/ocs"
	"ringlight/proto"
)

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
	if asJSON {
		return printJSON(map[string]any{"bundles": diffs})
	}
	for i := range diffs {
		printDiff(&diffs[i])
	}
	return nil
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
