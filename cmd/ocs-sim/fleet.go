package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/sim/fleet"
	"ringlight/sim/live"
)

// The network of a fleet is not a perfect one, per million packets. chosen: a
// management network on a bad day.
var fleetRates = fleet.Rates{Loss: 500, Repeat: 500, Reorder: 500}

func runFleet(ctx context.Context, args []string, t cli.Terminal) error {
	cfg := live.FleetConfig{Params: fabric.DefaultParams(), Rates: fleetRates, Modules: hal.MaxModules, Catalogue: fleet.CatalogueSize, Seed: 1, Runs: 1, Health: time.Minute, FaultRate: 0.5}
	p := &cfg.Params
	fs := cli.NewFlags("fleet")
	cli.Options(fs, &cfg)
	sizes := fs.String("ring-sizes", "", "rings that are not of -tp, as GPUS:RINGS,..; those of -tp fill what is left")
	physics, costs := physicsFlag(fs), costsFlag(fs)
	coreOf := fabric.CoreFlags(fs, "kind", fabric.DefaultCore(0), live.DemoLeafSpine())
	topology := fs.String("topology", string(p.Topology), "line or ring")
	moves := fs.String("moves", string(fabric.MoveFew), "whole rings that may be moved to make one more whole: none, few (8, up to 64 as outages teach) or any")
	fs.IntVar(&p.MovePriceMS, "move-price-ms", fabric.DefaultMovePriceMS, "with moves few: for how long a ring lacks nodes, for each whole one that moves for it beyond those that may at once")
	hours := fs.Float64("hours", 1, "virtual hours of faults")
	faults := fs.String("faults", "random", "FILE with a script, - is stdin; random; or trace:FILE")
	asJSON := fs.Bool("json", false, "print the result as JSON and nothing else")
	out := fs.String("trace-out", "", "write faults and violations to this file")
	if _, err := cli.ParseNone(fs, args, help("fleet")+"  "+strings.Join(fleet.Forms(), "\n  ")); err != nil {
		return err
	}
	cfg.Progress = progress(t, *asJSON)
	p.Topology, p.Moves = fabric.Topology(*topology), fabric.Moves(*moves)
	var err error
	if p.Core, err = coreOf(); err != nil {
		return cli.AsUsage(err)
	}
	if p.RingSizes, err = fabric.ParseRingSizes(*sizes); err != nil {
		return cli.AsUsage(err)
	}
	cfg.Span = time.Duration(*hours * float64(time.Hour))
	if err := checkFleet(&cfg); err != nil {
		return cli.AsUsage(err)
	}
	if cfg.Physics, err = readPhysics(*physics); err != nil {
		return cli.AsUsage(err)
	}
	if *costs != "" {
		if cfg.Costs, err = readCosts(*costs); err != nil {
			return cli.AsUsage(err)
		}
	}
	if err := readFaults(&cfg, *faults); err != nil {
		return cli.AsUsage(err)
	}
	cfg.Replay = func(seed uint64) string { return replay(fs, args, "fleet", seed) }
	if *out != "" {
		f, err := os.Create(*out)
		if err != nil {
			return err
		}
		defer f.Close()
		cfg.TraceOut = f
	}
	res, err := live.Fleet(ctx, cfg)
	if err != nil {
		return err
	}
	for _, v := range res.ViolationList {
		fmt.Fprintln(t.Err, v)
	}
	if *asJSON {
		err = cli.PrintJSON(t.Out, res)
	} else {
		printFleet(t.Out, res)
	}
	if res.Violations > 0 {
		err = cli.Answered(errors.Join(err, fmt.Errorf("%d violations", res.Violations)))
	}
	return err
}

// maxFaultRate is chosen: a fault a second of each device; of more the list alone is too long.
const maxFaultRate = 86_400

func checkFleet(cfg *live.FleetConfig) error {
	bad := func(field, limit string, value any) error { return invalid(field, limit, "%v is out of range", value) }
	switch {
	case cfg.Modules < 1 || cfg.Modules > hal.MaxModules:
		return bad("modules", fmt.Sprintf("1 to %d", hal.MaxModules), cfg.Modules)
	case cfg.Catalogue < 1 || cfg.Catalogue > fleet.CatalogueSize:
		return bad("catalogue", fmt.Sprintf("1 to %d", fleet.CatalogueSize), cfg.Catalogue)
	case cfg.Runs < 1:
		return bad("runs", "1 or more", cfg.Runs)
	case cfg.Health < time.Second:
		return bad("health", "at least 1s", cfg.Health)
	case cfg.Span <= 0:
		return bad("hours", "more than 0, and what a clock can count", cfg.Span)
	case !(cfg.FaultRate >= 0 && cfg.FaultRate <= maxFaultRate): // nor what is no number
		return bad("fault-rate", fmt.Sprintf("0 to %d", maxFaultRate), cfg.FaultRate)
	case !(cfg.Loss >= 0 && cfg.Loss <= 0.5): // nor is it NaN
		return bad("loss", "0 to 0.5", cfg.Loss)
	case cfg.Starve != 0 && !(cfg.Starve >= 0.01 && cfg.Starve <= 1):
		return bad("starve", "0, or 0.01 to 1", cfg.Starve)
	}
	_, err := fabric.New(cfg.Params)
	return err
}

func readFaults(cfg *live.FleetConfig, from string) error {
	if from == "random" {
		return nil
	}
	if name, isTrace := strings.CutPrefix(from, "trace:"); isTrace {
		s, err := readTrace(name)
		cfg.Trace = s.Trace
		return err
	}
	f, err := open(from)
	if err != nil {
		return fmt.Errorf("faults: %w", err)
	}
	defer f.Close()
	if cfg.Script, err = fleet.ParseScript(f); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return nil
}

// replay is the command that runs one seed again, with every flag that was
// given.
func replay(fs *flag.FlagSet, args []string, command string, seed uint64) string {
	return fmt.Sprintf("ocs-sim %s%s -seed %d", command, typed(fs, args, "seed", "runs", "json", "trace", "trace-out"), seed)
}

// typed are the flags of a command line that was parsed, but for some.
func typed(fs *flag.FlagSet, args []string, but ...string) (line string) {
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		word := " " + args[i]
		if f := fs.Lookup(name); !hasValue && f != nil && !cli.IsBool(f) && i+1 < len(args) {
			i++
			word += " " + args[i]
		}
		if !slices.Contains(but, name) {
			line += word
		}
	}
	return line
}

func printFleet(out io.Writer, r *fleet.Result) {
	cli.Say(out, "%d nodes x %d GPUs, K=%d, TP-%d, %d modules a bundle, %d runs of %.1f h, health round %.0f s",
		r.Nodes, r.GPUsPerNode, r.K, r.TP, r.Modules, r.Runs, r.Hours, r.HealthSeconds)
	if r.Costs != "" {
		cli.Say(out, "latencies: %s", r.Costs)
	}
	cli.Say(out, "%d faults, %d violations, %d of %d events lost; %d times at rest with all in use", r.Faults, r.Violations, r.EventsLost, r.EventsTotal, r.Rests)
	for _, n := range []string{"1", "2", "3"} {
		s := r.BypassMicros[n]
		cli.Say(out, "bypass of %s: n %d, p50 %s, p99 %s, max %s us", n, s.N, number(s.P50), number(s.P99), number(s.Max))
	}
	cli.Say(out, "interruptions %d, dark %d us in all; of these moved by a plan %d, %d us; splits %d, joined in p50 %s, p99 %s, max %s ms",
		r.Interruptions, r.DarkMicros, r.Moves, r.MovedMicros, r.Splits, number(r.SplitRepair.P50), number(r.SplitRepair.P99), number(r.SplitRepair.Max))
	for _, p := range r.SplitParts {
		cli.Say(out, "  %s %d: asked after %.1f ms, asked anew %.1f, agreed and stored %.1f, lit %.1f; %d with a packet lost", p.Of, p.N, p.Asked, p.Anew, p.Agreed, p.Lit, p.Lost)
	}
	for _, x := range r.Exchange {
		cli.Say(out, "exchange step %d: %d; %d more ended by a fault, %d refused; agreed in p50 %s, p99 %s, dark p50 %s, p99 %s, max %s us, sends for %d us",
			x.Step, x.Dark.N, x.Ended, x.Refused, number(x.Agreed.P50), number(x.Agreed.P99), number(x.Dark.P50), number(x.Dark.P99), number(x.Dark.Max), x.Sends)
	}
	cli.Say(out, "GPU waste mean %.4f, p99 %.4f, ideal %.4f, static %.4f", r.GPUWaste.Mean, r.GPUWaste.P99, r.GPUWaste.Ideal, r.GPUWaste.Static)
	if c := r.Core; c != nil {
		cli.Say(out, "%d optical switches: %d generations committed, %d agents killed in the middle of one; %d of %d links; longest tuning %.1f ms; %d looks at circuits that had to stay",
			c.Switches, c.Commits, c.Killed, c.Realised, c.Granted, float64(c.DarkMicros)/1000, c.Looks)
	}
	cli.Say(out, "%d steps, %.0f a second, %d polls, %d MiB", r.Steps, r.EventsPerS, r.Polls, r.RSSMiB)
	cli.Say(out, "trace %s", r.TraceSHA256)
}

func number(v *int64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprint(*v)
}
