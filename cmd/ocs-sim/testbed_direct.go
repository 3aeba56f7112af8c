package main

import (
	"context"
	"fmt"
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
