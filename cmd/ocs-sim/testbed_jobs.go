package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/sim/testbed"
)

func testbedDirect(ctx context.Context, args []string, t cli.Terminal) error {
	c := fabric.DefaultDirect()
	c.GPUsPerServer, c.Direct.Servers = 1, 12
	cfg := testbed.DirectConfig{Mbit: 10, For: 10 * time.Second, Bytes: 100_000, Flips: 10, Rate: 250, Config: testbed.Config{Listen: "127.0.0.1:0"}}
	fs := cli.NewFlags("testbed direct")
	o := outputFlags(fs)
	bedFlags(fs, &cfg, &cfg.Config, t)
	fs.IntVar(&c.Direct.Servers, "servers", c.Direct.Servers, "servers")
	fs.IntVar(&c.Direct.Degree, "degree", c.Direct.Degree, "interfaces of each")
	percent := fs.Int64("ratio", 78, "all-to-all traffic of the job, `PERCENT` of AllReduce")
	if _, err := cli.ParseNone(fs, args, help("testbed-direct")); err != nil {
		return err
	}
	if c.Direct.Servers < 3 || c.Direct.Servers > maxBedNodes || cfg.Mbit < 1 || cfg.Mbit > 1000 || cfg.For < time.Second || cfg.Flips < 0 || cfg.Rate < 1 || cfg.Rate > 1000 {
		return cli.AsUsage(invalid("servers", fmt.Sprintf("3 to %d, mbit and rate 1 to 1000, for of a second and more", maxBedNodes), "%d servers, %d Mb/s, rate %d, %v", c.Direct.Servers, cfg.Mbit, cfg.Rate, cfg.For))
	}
	var err error
	if cfg.Fabric, err = fabric.New(fabric.Params{Name: "testbed", Core: c}); err != nil {
		return cli.AsUsage(err)
	}
	if *percent < 0 {
		return cli.AsUsage(invalid("ratio", "0 and up", "%d", *percent))
	}
	if err := cfg.Ask(*percent); err != nil {
		return cli.AsUsage(err)
	}
	if cfg.Ocsctl, err = bedReady(t, &cfg.Config, o.Verbose); err != nil {
		return err
	}
	if !o.JSON {
		cfg.Told = func(f testbed.Flip) {
			fmt.Fprintf(t.Out, "flip: dark %.1f ms, gap %.1f ms, lost %d, outside of it %d, routes changed %v\n", ms(f.LightMicros), ms(f.GapMicros), f.Lost, f.Outside, f.Routes)
		}
	}
	res, err := testbed.Direct(ctx, cfg)
	if err != nil {
		return err
	}
	if o.JSON {
		return cli.PrintJSON(t.Out, res)
	}
	var dark, gap []int64
	lost, outside := 0, 0
	for _, f := range res.Flips {
		dark, gap, lost, outside = append(dark, f.LightMicros), append(gap, f.GapMicros), lost+f.Lost, outside+f.Outside
	}
	mixed := (res.AllReduce.Tax + res.AllToAll.Tax*float64(*percent)/100) / (1 + float64(*percent)/100)
	fmt.Fprintf(t.Out, "bandwidth tax      measured  by the search  Mb/s of a server\nAllReduce        %10.3f %14.3f %17.2f\nall-to-all       %10.3f %14.3f %17.2f\nboth, %d %%       %10.3f %14.3f\n",
		res.AllReduce.Tax, 1.0, res.AllReduce.Mbit, res.AllToAll.Tax, res.Hops, res.AllToAll.Mbit, *percent, mixed, res.Tax)
	fmt.Fprintf(t.Out, "%d flips: dark p50 %.1f p99 %.1f ms, gap p50 %.1f p99 %.1f ms, %d lost, %d of them outside of the dark\n", len(res.Flips),
		ms(testbed.Quantile(dark, 500)), ms(testbed.Quantile(dark, 990)), ms(testbed.Quantile(gap, 500)), ms(testbed.Quantile(gap, 990)), lost, outside)
	return nil
}

// isolateRow is a strategy, and what a job runs there in the testbed of [VCLOS] Table 4.
type isolateRow struct {
	Strategy string  `json:"strategy"`
	Theirs   float64 `json:"their_job_run_time_s,omitempty"`
	testbed.IsolateResult
}

func testbedIsolate(ctx context.Context, args []string, t cli.Terminal) error {
	c := fabric.DefaultLeafSpine()
	c.GPUsPerServer = 2
	c.LeafSpine = &fabric.LeafSpine{Leaves: 32, Spines: 4, GPUsPerLeaf: 4, Switches: 4, AnyToAny: true}
	cfg := testbed.IsolateConfig{Mbit: 5, For: 20 * time.Second, Bytes: 250_000, Config: testbed.Config{Listen: "127.0.0.1:0"}}
	fs := cli.NewFlags("testbed isolate")
	o := outputFlags(fs)
	bedFlags(fs, &cfg, &cfg.Config, t)
	jobs := fs.Int("jobs", 20, "jobs, four of 6 GPUs to one of 8")
	fs.IntVar(&c.LeafSpine.Leaves, "leaves", c.LeafSpine.Leaves, "leaves of 4 GPUs")
	if _, err := cli.ParseNone(fs, args, help("testbed-isolate")); err != nil {
		return err
	}
	if *jobs < 1 || *jobs > 64 || cfg.Mbit < 1 || cfg.Mbit > 1000 || cfg.For < time.Second {
		return cli.AsUsage(invalid("jobs", "1 to 64, mbit 1 to 1000, for of a second and more", "%d jobs, %d Mb/s, %v", *jobs, cfg.Mbit, cfg.For))
	}
	for i := range *jobs {
		cfg.Jobs = append(cfg.Jobs, map[bool]int{true: 8, false: 6}[i%5 == 4])
	}
	var err error
	if cfg.Ocsctl, err = bedReady(t, &cfg.Config, o.Verbose); err != nil {
		return err
	}
	var rows []isolateRow
	for _, circuits := range []bool{true, false} {
		core, l := *c, *c.LeafSpine
		core.LeafSpine, cfg.Routings = &l, []string{testbed.RoutedAlone}
		of := []isolateRow{{Strategy: "OCS-vClos"}}
		if !circuits {
			l.Switches, l.AnyToAny = 0, false
			cfg.Routings = append(cfg.Routings, testbed.RoutedSource, testbed.RoutedECMP)
			of = []isolateRow{{Strategy: "vClos", Theirs: 74.72}, {Strategy: "SR, same servers", Theirs: 76.92}, {Strategy: "SR, any"}, {Strategy: "ECMP, same servers", Theirs: 95.12}, {Strategy: "ECMP, any"}}
		}
		if cfg.Fabric, err = fabric.New(fabric.Params{Name: "testbed", Core: &core}); err != nil {
			return cli.AsUsage(err)
		}
		results, err := testbed.Isolate(ctx, cfg)
		if err != nil {
			return err
		}
		for i := range of {
			of[i].IsolateResult = results[i]
		}
		rows = append(rows, of...)
	}
	if o.JSON {
		return cli.PrintJSON(t.Out, rows)
	}
	fmt.Fprintln(t.Out, "strategy            jobs  GPUs  Mb/s of a GPU: mean  slowest job  run time/vClos  theirs  links  of two jobs  frames")
	vclos := rows[1]
	for _, r := range rows {
		slow, times, both := math.Inf(1), 0.0, 0.0
		for id, x := range r.Mbit {
			slow = min(slow, x)
			if its := vclos.Mbit[id]; its > 0 {
				times, both = times+its/x, both+1
			}
		}
		theirs := "     -"
		if r.Theirs > 0 {
			theirs = fmt.Sprintf("%6.3f", r.Theirs/vclos.Theirs)
		}
		fmt.Fprintf(t.Out, "%-18s %5d %5d %20.2f %12.2f %15.3f  %s %6d %12d %7d\n", r.Strategy, r.Jobs, r.GPUs, r.Mean(), slow, times/both, theirs, r.Used, r.Shared, r.Frames)
	}
	return nil
}

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
