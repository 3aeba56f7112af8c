package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/sim/live"
)

// traceVariable names a fault trace where -trace does not.
const traceVariable = "RINGLIGHT_TRACE"

// holdAddress is where the embedded broker listens with -hold: where all
// other commands look for it.
const holdAddress = "127.0.0.1:18830"

func demo(ctx context.Context, args []string, t cli.Terminal) error {
	cfg := live.DefaultDemo()
	fs := cli.NewFlags("demo")
	fs.IntVar(&cfg.Nodes, "nodes", cfg.Nodes, "nodes")
	fs.IntVar(&cfg.GPUs, "gpus", cfg.GPUs, "GPUs of a node")
	fs.IntVar(&cfg.K, "k", cfg.K, "hops that a fibre may span")
	fs.IntVar(&cfg.TP, "tp", cfg.TP, "GPUs of a ring")
	fs.IntVar(&cfg.Spares, "spares", cfg.Spares, "nodes kept free")
	fs.IntVar(&cfg.Modules, "modules", cfg.Modules, "modules of a bundle")
	physics, costs := physicsFlag(fs), costsFlag(fs)
	file := fs.String("trace", os.Getenv(traceVariable), "fault trace to replay; none: the built-in generator (also "+traceVariable+")")
	fs.IntVar(&cfg.Days, "days", cfg.Days, "days of the trace")
	fs.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of everything drawn")
	fs.DurationVar(&cfg.Health, "health", cfg.Health, "time of one health round over a node's modules, virtual")
	fs.BoolVar(&cfg.Hold, "hold", false, "keep everything running afterwards, broker on "+holdAddress)
	fs.StringVar(&cfg.HTTP, "http", "", "serve the live view on `ADDR`, host:port on loopback or unix:PATH (with -hold: a free port; else not served)")
	fs.Bool("wide", false, "lines of any length")
	asJSON := fs.Bool("json", false, "print the result as JSON and nothing else")
	verbose := fs.Bool("v", false, "log state changes too")
	fs.Func("broker-down", "stop the broker at day `DAY:DAYS` for so many days", func(s string) error {
		o, err := parseOutage(s)
		cfg.BrokerDown = o
		return err
	})
	if _, err := cli.ParseNone(fs, args, `Runs a broker, a planner and the agents of a fabric on simulated boards through
a trace of faults, in real time but for what only is waited for, and tells what
happens. -hold keeps it all running for ocsctl.

example: ocs-sim demo -days 30 -k 3`); err != nil {
		return err
	}
	if err := cfg.Validate(); err != nil {
		return cli.AsUsage(err)
	}
	var err error
	if cfg.Physics, err = readPhysics(*physics); err != nil {
		return cli.AsUsage(err)
	}
	if cfg.Costs, err = readCosts(*costs); err != nil {
		return cli.AsUsage(err)
	}
	if *file != "" {
		read, err := readTrace(*file)
		if err != nil {
			return cli.AsUsage(err)
		}
		cfg.Trace, cfg.TraceName = read, filepath.Base(*file)
	}
	if cfg.Hold {
		cfg.Listen = holdAddress
		if cfg.HTTP == "" {
			cfg.HTTP = "127.0.0.1:0"
		}
	}
	cfg.Log = logger(t, *verbose)
	cfg.Progress = progress(t, *asJSON)
	if !*asJSON {
		cfg.Screen = cli.Folded(t.Out, strings.Repeat(" ", 9)) // behind the name of a line
	}
	var printed error
	if *asJSON {
		cfg.Finished = func(r *live.Result) { printed = cli.PrintJSON(t.Out, r) }
	}
	res, err := live.Demo(ctx, cfg)
	if err != nil {
		return err
	}
	return cli.Answered(errors.Join(printed, res.Verdict()))
}

func parseOutage(s string) (*live.Outage, error) {
	day, days, ok := strings.Cut(s, ":")
	if !ok {
		return nil, fmt.Errorf("want DAY:DAYS")
	}
	var o live.Outage
	var err error
	if o.Day, err = strconv.Atoi(day); err != nil {
		return nil, fmt.Errorf("day %q is no number", day)
	}
	if o.Days, err = strconv.Atoi(days); err != nil {
		return nil, fmt.Errorf("number of days %q is no number", days)
	}
	return &o, nil
}
