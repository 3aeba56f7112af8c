package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
	cli.Options(fs, &cfg, "nodes", "gpus", "k", "tp", "spares", "modules", "days", "seed", "health")
	physics, costs := physicsFlag(fs), costsFlag(fs)
	file := fs.String("trace", os.Getenv(traceVariable), "fault trace to replay; none: the built-in generator (also "+traceVariable+")")
	fs.BoolVar(&cfg.Hold, "hold", false, "keep everything running afterwards, broker on "+holdAddress)
	fs.StringVar(&cfg.HTTP, "http", "", "serve the live view on `ADDR`, host:port on loopback or unix:PATH (with -hold: a free port; else not served)")
	fs.Bool("wide", false, "lines of any length")
	o := outputFlags(fs)
	fs.Func("broker-down", "stop the broker at day `DAY:DAYS` for so many days", func(s string) error {
		out, err := parseOutage(s)
		cfg.BrokerDown = out
		return err
	})
	if _, err := cli.ParseNone(fs, args, help("demo")); err != nil {
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
	faults, err := readTrace(*file)
	if err != nil {
		return err
	}
	cfg.Trace, cfg.TraceName = faults.Trace, faults.Name
	if cfg.Hold {
		cfg.Listen = holdAddress
		cfg.HTTP = cmp.Or(cfg.HTTP, "127.0.0.1:0")
	}
	cfg.Log = logger(t, o.Verbose)
	cfg.Progress = progress(t, o.JSON)
	return story(t, o, &cfg.Screen, &cfg.Finished, func() (*live.Result, error) { return live.Demo(ctx, cfg) })
}

// story runs what tells of itself line by line, or as JSON before it holds.
func story[R interface{ Verdict() error }](t cli.Terminal, o *output, screen *io.Writer, finished *func(R), run func() (R, error)) error {
	var printed error
	if o.JSON {
		*finished = func(r R) { printed = cli.PrintJSON(t.Out, r) }
	} else {
		*screen = cli.Folded(t.Out, strings.Repeat(" ", 9)) // behind the name of a line
	}
	res, err := run()
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
