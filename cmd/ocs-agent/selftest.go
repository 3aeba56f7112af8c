package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
	"ringlight/ocs"
	"ringlight/proto"
)

// maxSoak bounds -bus-soak. chosen: days on a slow bus.
const maxSoak = 1_000_000_000

// selftest runs a simulated board from end to end in this process, on its
// virtual clock: calibrate from nothing, switch every path, see light where
// there must be light. Two bundles of one module, joined by two fibres.
func selftest(_ context.Context, args []string) error {
	fs, common := newFlags("selftest", "calibrate and switch a simulated board, print the ledger; or load the buses of a real one",
		"ocs-agent selftest -seed 7\n         ocs-agent selftest -bus-soak 5000 -config node7.json\n"+
			"         ocs-agent selftest -bus-soak 5000 -chip eeprom=/dev/i2c-0@0x50 -chip temp=/dev/i2c-1@0x48/0x70.2 -chip absent=/dev/i2c-0@0x33\n"+
			"         ocs-agent selftest -edges 1000 -line gpiochip0:0 -latch pcal6524=/dev/i2c-0@0x20")
	seed := fs.Uint64("seed", 1, "`seed` of the board's optics")
	soak := fs.Int("bus-soak", 0, "read known chips of the configured board in `N` transactions from many goroutines, while memory is\n"+
		"collected and stacks move; nothing is written, no light changes")
	write := fs.Bool("write", false, "with -bus-soak: write each EEPROM over a page's end first, and restore it")
	deadline := fs.Duration("deadline", 2*time.Second, "with -bus-soak, -edges: `time` that one transaction may take; more on an emulated machine")
	var chips []string
	fs.Func("chip", "with -bus-soak: soak this `chip` and not the configured board: eeprom, temp, mux, flash or absent, as in\n"+
		"temp=/dev/i2c-1@0x48/0x70.2 (behind channel 2 of the mux at 0x70), flash=/dev/spidev2.0; repeat it", func(s string) error {
		chips = append(chips, s)
		return nil
	})
	count := fs.Int("edges", 0, "answer `N` edges of -line by writes to -latch that move nothing, as a switch would, and say how long\n"+
		"that took from the kernel's stamp of an edge on")
	line := fs.String("line", "", "with -edges: the GPIO `line`, by name or as gpiochip0:12")
	latch := fs.String("latch", "", "with -edges: the `latch`, as in pcal6524=/dev/i2c-0@0x20")
	switch err := common.none(args); {
	case err != nil:
		return err
	case *soak < 0 || *soak > maxSoak:
		return usagef("bus-soak: %d: want 1 to %d", *soak, maxSoak)
	case *deadline < time.Millisecond || *deadline > time.Minute:
		return usagef("deadline: %v: want 1ms to 1m", *deadline)
	case *count < 0 || *count > maxSoak:
		return usagef("edges: %d: want 1 to %d", *count, maxSoak)
	case *count == 0 && (*line != "" || *latch != ""):
		return usagef("line, latch: want -edges too")
	case *count > 0:
		return edges(*count, *line, *latch, *deadline, common.json)
	case *soak == 0 && (*write || len(chips) > 0):
		return usagef("chip, write: want -bus-soak too")
	case *soak > 0:
		cfg, err := common.load()
		if err != nil {
			return err
		}
		return cfg.soak(*soak, chips, *deadline, *write, common.json)
	}
	dir, err := os.MkdirTemp("", "ocs-agent")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cfg := defaults()
	cfg.State, cfg.Board.Kind = dir, "sim"
	cfg.Board.Seed, cfg.Board.Modules, cfg.Board.File = *seed, 1, common.board
	if err := cfg.Board.readBoard(); err != nil {
		return cli.AsUsage(err)
	}
	for i := 1; i < cfg.Board.Bundles; i += 2 { // in pairs, so that each sees the other's light
		for _, path := range []string{"external1", "external2"} {
			cfg.Board.Fibres = append(cfg.Board.Fibres, fmt.Sprintf("%d/%s-%d/%s", i-1, path, i, path))
		}
	}
	return cfg.selftest(common.json)
}

// selftestStep is one switch of the self test.
type selftestStep struct {
	Bundle   proto.BundleID `json:"bundle"`
	Path     string         `json:"path"`
	DecideUS uint32         `json:"decide_us"` // modelled
	BusUS    uint32         `json:"bus_us"`
	SettleUS uint32         `json:"settle_us"`
	TookUS   int64          `json:"took_us"` // until its own light was verified
	Lit      []string       `json:"lit"`
}

func (c *Config) selftest(asJSON bool) error {
	b, err := c.bench()
	if err != nil {
		return err
	}
	defer b.close()
	started := time.Now()
	var boardTime time.Duration
	for i := range c.Board.Bundles {
		ans, err := answered(b.Ask(agent.Ask{Verb: agent.AskCalibrate, Bundle: proto.BundleID(i)}, calibratePatience))
		if err != nil {
			return err
		}
		boardTime += ans.Took
		_, found, err := c.found(&asker{bench: b}, i, ans)
		if err != nil {
			return err
		}
		worst := cmp.Or(found[0].Truth, found[0].Own)
		least := min(worst.MZI, worst.Matrix)
		if least < ocs.LeastExtinction/1000 {
			return fmt.Errorf("bundle %d: extinction %.1f dB, want %d", i, least, ocs.LeastExtinction/1000)
		}
		if !asJSON {
			fmt.Printf("bundle %d calibrated from nothing in %.1f s of board time, %d measurements, worst cell %.1f dB\n", i,
				ans.Took.Seconds(), found[0].Measurements, least)
		}
	}
	var steps []selftestStep
	for _, p := range []proto.Path{proto.Loopback, proto.External1, proto.External2, proto.Loopback, proto.External2, proto.External1, proto.Dark} {
		for i := range c.Board.Bundles {
			s, err := b.step(proto.BundleID(i), p)
			if err != nil {
				return err
			}
			steps = append(steps, s)
		}
		if err := b.checkLight(p, c.Board.Bundles&^1); err != nil {
			return err
		}
	}
	wall := time.Since(started)
	return answer(asJSON, map[string]any{"steps": steps, "board_ms": boardTime.Milliseconds(), "wall_ms": wall.Milliseconds()}, func() {
		fmt.Println("bundle path       decide    bus settle  verified")
		for _, s := range steps {
			fmt.Printf("%6d %-9s %5d us %3d us %3d us %6d us\n", s.Bundle, s.Path, s.DecideUS, s.BusUS, s.SettleUS, s.TookUS)
		}
		fmt.Printf("selftest passed: every path of %d bundles, %v of wall time (decide is a modelled constant)\n", c.Board.Bundles, wall.Round(time.Millisecond))
	})
}

func (b *simBench) step(id proto.BundleID, p proto.Path) (selftestStep, error) {
	ans, err := answered(b.Ask(agent.Ask{Verb: agent.AskPath, Bundle: id, Path: p}, pathPatience))
	if err != nil {
		return selftestStep{}, fmt.Errorf("bundle %d to %v: %w", id, p, err)
	}
	s := ans.Status.Bundles[id]
	if s.Path != p.String() {
		return selftestStep{}, fmt.Errorf("bundle %d is on %s, want %v", id, s.Path, p)
	}
	return selftestStep{Bundle: id, Path: s.Path, DecideUS: ans.Ledger.DecideMicros, BusUS: ans.Ledger.BusMicros,
		SettleUS: ans.Ledger.SettleMicros, TookUS: ans.Took.Microseconds(), Lit: s.Lit}, nil
}

// lightPatience is how long light may take to show on every line.
const lightPatience = 10 * time.Millisecond

// checkLight wants light of path p at both ends, and on dark nowhere.
func (b *simBench) checkLight(p proto.Path, bundles int) error {
	if err := b.Run(b.board.Now()+lightPatience, nil); err != nil {
		return err
	}
	for _, s := range b.Status().Bundles[:bundles] {
		want := 1
		if p == proto.Dark {
			want = 0
		}
		if len(s.Lit) != want || want == 1 && s.Lit[0] != p.String() {
			return fmt.Errorf("bundle %d on %v sees light on %v", s.Bundle, p, s.Lit)
		}
	}
	return errors.Join(b.keep)
}
