package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"time"

	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/sim/testbed"
)

// maxBedNodes is chosen: each node has a real agent and a namespace, and all share one
// machine's processors.
const maxBedNodes = 64

func testbedUp(ctx context.Context, args []string, t cli.Terminal) error {
	cfg := testbed.Config{Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0"}
	fs := cli.NewFlags("testbed")
	bedFlags(fs, &cfg, &cfg, t)
	bgp := fs.Bool("bgp", false, "leaves and spines of pods route by FRR's bgpd")
	verbose := fs.Bool("v", false, "log state changes too")
	files, err := cli.Parse(fs, args, help("testbed"))
	if err != nil {
		return err
	}
	if len(files) != 1 {
		return cli.Usage("FILE", "one fabric description", "%d are given", len(files))
	}
	if cfg.Fabric, err = loadFabric(files[0], fabric.Params{}); err != nil {
		return cli.AsUsage(err)
	}
	cfg.Log = logger(t, *verbose)
	if err := testbed.Lacks(); err != nil {
		return cli.AsUsage(err)
	}
	if *bgp {
		if cfg.Fabric.Core == nil {
			return cli.AsUsage(invalid("bgp", "a fabric with a core of pods", "%s has none", files[0]))
		}
		if err := testbed.LacksRouters(); err != nil {
			return cli.AsUsage(err)
		}
	}
	b, err := testbed.Start(ctx, cfg)
	if err != nil {
		return err
	}
	if *bgp {
		shell, err := b.StartRouters()
		if err != nil {
			return errors.Join(err, b.Close())
		}
		fmt.Fprintf(t.Out, "a shell on $ROUTER: %s\n", shell)
	}
	if b.Swept > 0 {
		fmt.Fprintf(t.Out, "swept %d namespaces of testbeds that were gone\n", b.Swept)
	}
	for _, d := range b.Devices() {
		fmt.Fprintf(t.Out, "%-14s ip netns exec %s ...\n", d, b.NS(d))
	}
	fmt.Fprintf(t.Out, "broker %s, view %s; until interrupted\n", b.Link().Broker, b.View)
	<-ctx.Done()
	return b.Close()
}

func testbedRing(ctx context.Context, args []string, t cli.Terminal) error {
	p := fabric.DefaultParams()
	p.Nodes, p.Spares = 8, 0
	cfg := testbed.RingConfig{Cuts: 10, Rate: 1000, Config: testbed.Config{Listen: "127.0.0.1:0"}}
	fs := cli.NewFlags("testbed ring")
	o := outputFlags(fs)
	bedFlags(fs, &cfg, &cfg.Config, t)
	cli.Options(fs, &p, "nodes", "gpus")
	if _, err := cli.ParseNone(fs, args, help("testbed-ring")); err != nil {
		return err
	}
	if p.Nodes < 4 || p.Nodes > maxBedNodes {
		return cli.AsUsage(invalid("nodes", fmt.Sprintf("4 to %d", maxBedNodes), "%d is out of range", p.Nodes))
	}
	if cfg.Cuts < 1 || cfg.Rate < 10 || cfg.Rate > 10_000 {
		return cli.AsUsage(invalid("cuts", "1 and up, and a rate of 10 to 10000", "%d cuts at %d", cfg.Cuts, cfg.Rate))
	}
	p.TP = p.Nodes * p.GPUsPerNode
	var err error
	if cfg.Fabric, err = fabric.New(p); err != nil {
		return cli.AsUsage(err)
	}
	if err := testbed.Lacks(); err != nil {
		return cli.AsUsage(err)
	}
	if cfg.Train {
		if _, err := testbed.Python(); err != nil {
			return cli.AsUsage(err)
		}
	}
	cfg.Log = logger(t, o.Verbose)
	if !o.JSON {
		fmt.Fprintf(t.Out, "%s\n", " node  light  ledger  calm  gap of datagrams  lost  gap of TCP  joins again: gap  lost")
		cfg.Told = func(c testbed.Cut) {
			fmt.Fprintf(t.Out, "%5d %6.1f %7.1f %5.1f %17.1f %5d %11.1f %17.1f %5d  ms\n", c.Node, ms(c.LightMicros), ms(c.LedgerMicros), ms(c.CalmMicros), ms(c.GapMicros), c.Lost,
				ms(c.TCPGapMicros), ms(c.BackGapMicros), c.BackLost)
		}
	}
	res, err := testbed.Ring(ctx, cfg)
	if err != nil {
		return err
	}
	if o.JSON {
		return cli.PrintJSON(t.Out, res)
	}
	ringRows(t, res)
	return nil
}

// ringRows writes the result, powers and fibres each for itself.
func ringRows(t cli.Terminal, res *testbed.RingResult) {
	row := func(name string, of func(testbed.Cut) int64) {
		var values [2][]int64 // power, fibres
		for _, c := range res.Cuts {
			kind := map[bool]int{true: 1}[c.Fibres]
			values[kind] = append(values[kind], of(c))
		}
		fmt.Fprintf(t.Out, "%-26s", name)
		for kind, v := range values {
			if len(v) > 0 {
				fmt.Fprintf(t.Out, "  %d %s: p50 %8.1f ms  p99 %8.1f ms", len(v), [2]string{"powers", "nodes' fibres"}[kind], ms(testbed.Quantile(v, 500)), ms(testbed.Quantile(v, 990)))
			}
		}
		fmt.Fprintln(t.Out)
	}
	row("bypass by the light", func(c testbed.Cut) int64 { return c.LightMicros })
	row("bypass by the ledger", func(c testbed.Cut) int64 { return c.LedgerMicros })
	row("gap before, without a cut", func(c testbed.Cut) int64 { return c.CalmMicros })
	row("gap of datagrams", func(c testbed.Cut) int64 { return c.GapMicros })
	row("gap of TCP", func(c testbed.Cut) int64 { return c.TCPGapMicros })
	row("gap as a node joins again", func(c testbed.Cut) int64 { return c.BackGapMicros })
	if res.Steps > 0 {
		row("step before, without a cut", func(c testbed.Cut) int64 { return c.CalmStepMicros })
		row("step with the cut", func(c testbed.Cut) int64 { return c.StepMicros })
		without := 0
		for _, c := range res.Cuts {
			without += c.WithoutSteps
		}
		fmt.Fprintf(t.Out, "%d steps of %d processes that never ended, %d of them after the ring was re-formed without its node; %d sums wrong\n", res.Steps, (res.Nodes+1)/2, without, res.StepWrong)
	}
	state := "lasted"
	if res.TCPBroken != "" {
		state = "broke: " + res.TCPBroken
	}
	fmt.Fprintf(t.Out, "%d cuts, %d hops; the connection %s, %d records wrong\n", len(res.Cuts), res.Hops, state, res.TCPWrong)
}

func ms(micros int64) float64 { return float64(micros) / float64(time.Millisecond/time.Microsecond) }

// bedFlags are those of every testbed, and what of its own configuration has a flag, of
// which that of all is a part.
func bedFlags(fs *flag.FlagSet, own any, cfg *testbed.Config, t cli.Terminal, only ...string) {
	fs.BoolFunc("used", "say at the end what it took: namespaces, memory, processor time", func(word string) error {
		on, err := strconv.ParseBool(word)
		if cfg.Used = nil; on {
			cfg.Used = func(u testbed.Used) { fmt.Fprintf(t.Err, "it took %v\n", u) }
		}
		return err
	})
	cfg.Modules, cfg.Seed = 1, 1
	fs.Func("modules", fmt.Sprintf("`NUMBER` of modules of a bundle, 1 to %d (default 1)", hal.MaxModules), func(word string) (err error) {
		if cfg.Modules, err = strconv.Atoi(word); err != nil || cfg.Modules < 1 || cfg.Modules > hal.MaxModules {
			return fmt.Errorf("want 1 to %d", hal.MaxModules)
		}
		return nil
	})
	cli.Options(fs, own, only...)
}

// bedReady is where ocsctl stands, for a testbed that operators change: refused is what this
// machine lacks, beside what all testbeds need.
func bedReady(t cli.Terminal, cfg *testbed.Config, verbose bool, lacks ...error) (ocsctl string, err error) {
	for _, lack := range append([]error{testbed.Lacks()}, lacks...) {
		if lack != nil {
			return "", cli.AsUsage(lack)
		}
	}
	cfg.Log = logger(t, verbose)
	if ocsctl, err = beside("ocsctl"); err != nil {
		return "", cli.AsUsage(err)
	}
	return ocsctl, nil
}
