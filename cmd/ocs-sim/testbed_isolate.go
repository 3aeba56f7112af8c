package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/sim/testbed"
)

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
