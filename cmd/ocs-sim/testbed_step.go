package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/sim/testbed"
)

// theirStep is [LUMOS] Table 5, in ms, by the seconds between two moves; 0: none.
var theirStep = map[int]string{30: "1175.4", 60: "1112.8", 90: "1103.2", 0: "1103.0"}

func testbedStep(ctx context.Context, args []string, t cli.Terminal) error {
	c := bgpCore(4)
	cfg := testbed.StepConfig{Elements: 1 << 18, For: 3 * time.Minute, Compute: time.Second, PodsConfig: testbed.PodsConfig{Config: testbed.Config{Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0"}}}
	fs := cli.NewFlags("testbed step")
	o := outputFlags(fs)
	bedFlags(fs, &cfg, &cfg.Config, t, "seed", "for", "compute")
	fs.BoolVar(&cfg.Drain, "drain", false, "routers drain their ports before light moves")
	every := fs.String("every", "30,60,90,0", "`SECONDS` between two moves of light, each for itself; 0: none moves")
	if _, err := cli.ParseNone(fs, args, help("testbed-step")); err != nil {
		return err
	}
	for word := range strings.SplitSeq(*every, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || n > 3600 {
			return cli.AsUsage(invalid("every", "0 to 3600, with commas between", "%q", *every))
		}
		cfg.Every = append(cfg.Every, time.Duration(n)*time.Second)
	}
	if cfg.For < time.Second || cfg.Compute < 0 {
		return cli.AsUsage(invalid("for", "a second and more, and compute 0 and more", "%v and %v", cfg.For, cfg.Compute))
	}
	_, python := testbed.Python()
	var err error
	if cfg.Ocsctl, err = bedReady(t, &cfg.Config, o.Verbose, testbed.LacksRouters(), python); err != nil {
		return err
	}
	if cfg.Drain {
		c.Drain = &fabric.Drain{WithinMillis: 30_000}
	}
	cfg.Parts = bgpParts(c)[2:3]
	if cfg.Fabric, err = fabric.New(fabric.Params{Name: "testbed", Core: c}); err != nil {
		return cli.AsUsage(err)
	}
	out, err := testbed.Step(ctx, cfg)
	if err != nil {
		return err
	}
	if o.JSON {
		return cli.PrintJSON(t.Out, out)
	}
	fmt.Fprintln(t.Out, "light moves every  times  steps  a step, ms  p50     max     wrong  theirs, ms")
	for _, s := range out {
		fmt.Fprintf(t.Out, "%15d s %6d %6d %11.1f %7.1f %7.1f %5d  %s\n", s.EverySeconds, s.Moves, s.Steps, ms(s.Mean()), ms(testbed.Quantile(s.Micros, 500)), ms(testbed.Quantile(s.Micros, 1000)), s.Wrong, theirStep[s.EverySeconds])
	}
	return nil
}
