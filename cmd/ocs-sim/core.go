package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/live"
)

func core(ctx context.Context, args []string) error {
	k := live.DemoCore(4)
	cfg := live.CoreConfig{Changes: 6, Seed: 1, Listen: "127.0.0.1:0"}
	fs := newFlags("core", "ocs-sim core -pods 6 -changes 10 -json")
	coreOf := coreFlags(fs, k)
	fs.IntVar(&cfg.Changes, "changes", cfg.Changes, "changes of the job list after the first one")
	fs.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of jobs and mirrors")
	fs.BoolVar(&cfg.Hold, "hold", false, "keep everything running afterwards, broker on "+holdAddress)
	runs := fs.Int("runs", 0, "over 0: instead of in real time, so many seeds on a virtual clock, an agent killed in the middle of every stage")
	trace := fs.Bool("trace", false, "with -runs: print strikes, violations and the planner's log on stderr")
	asJSON := fs.Bool("json", false, "print the result as JSON and nothing else")
	verbose := fs.Bool("v", false, "log state changes too")
	fail := failing(asJSON)
	if err := parse(fs, args); err != nil {
		return fail(err)
	}
	cfg.Core = coreOf()
	if err := cfg.Validate(); err != nil {
		return fail(usageError{err})
	}
	if *runs < 0 || *runs > maxCoreRuns {
		return fail(usageError{&proto.Error{Code: proto.Invalid, Field: "runs", Limit: fmt.Sprintf("0 to %d", maxCoreRuns), Reason: strconv.Itoa(*runs)}})
	}
	if *runs > 0 {
		return fail(coreSeeds(ctx, &cfg, *runs, *trace, *asJSON))
	}
	if cfg.Hold {
		cfg.Listen = holdAddress
	}
	cfg.Log = logger(*verbose)
	if !*asJSON {
		cfg.Screen = os.Stdout
	}
	var printed error
	if *asJSON {
		cfg.Finished = func(r *live.CoreResult) { printed = json.NewEncoder(os.Stdout).Encode(r) }
	}
	res, err := live.Core(ctx, cfg)
	if err != nil {
		return fail(err)
	}
	return errors.Join(printed, res.Verdict())
}

// coreFlags describe a layer of optical switches; after they are parsed, the
// result is what they say, nil without pods.
func coreFlags(fs *flag.FlagSet, k *fabric.Core) func() *fabric.Core {
	fs.IntVar(&k.Pods, "pods", k.Pods, "pods of a layer of optical switches")
	fs.IntVar(&k.LeavesPerPod, "leaves", k.LeavesPerPod, "leaf switches of a pod")
	fs.IntVar(&k.SpinesPerPod, "spines", k.SpinesPerPod, "spine switches of a pod, and groups of optical switches")
	fs.IntVar(&k.SpinePorts, "spine-ports", 0, "ports of a spine, and optical switches of a group; 0: as many as leaves ask for")
	fs.IntVar(&k.ServersPerLeaf, "servers", k.ServersPerLeaf, "servers under a leaf")
	fs.IntVar(&k.GPUsPerServer, "gpus-per-server", k.GPUsPerServer, "GPUs of a server")
	fs.IntVar(&k.IotaMille, "iota-mille", k.IotaMille, "thousandths of a leaf's links that may move at once")
	wiring := fs.String("wiring", string(k.Wiring), "interleaved or uniform")
	fs.BoolVar(&k.Backup, "backup", false, "join ports that no job needs to a mesh over all pods")
	return func() *fabric.Core {
		if k.Pods == 0 {
			return nil
		}
		k.Wiring, k.SwitchPorts = fabric.Wiring(*wiring), max(k.Pods, k.SwitchPorts)
		if k.SpinePorts == 0 {
			k.SpinePorts = k.LeavesPerPod * k.LeafLinks
		}
		return k
	}
}

// maxCoreRuns is chosen: an hour.
const maxCoreRuns = 100_000

// coreSeeds runs a core on the virtual clock, once for each seed.
func coreSeeds(ctx context.Context, cfg *live.CoreConfig, runs int, trace, asJSON bool) error {
	k := cfg.Core
	seeds := live.CoreSeedsConfig{Core: k, Seed: cfg.Seed, Runs: runs, Lists: cfg.Changes + 1,
		Replay: func(seed uint64) string {
			return fmt.Sprintf("ocs-sim core -pods %d -leaves %d -spines %d -spine-ports %d -servers %d -gpus-per-server %d -iota-mille %d -wiring %s -backup=%v -changes %d -runs 1 -seed %d -trace",
				k.Pods, k.LeavesPerPod, k.SpinesPerPod, k.SpinePorts, k.ServersPerLeaf, k.GPUsPerServer, k.IotaMille, k.Wiring, k.Backup, cfg.Changes, seed)
		}}
	if trace {
		seeds.TraceOut = os.Stderr
	} else if !asJSON {
		seeds.Progress = os.Stderr
	}
	r, err := live.CoreSeeds(ctx, seeds)
	if err != nil {
		return err
	}
	if asJSON {
		return errors.Join(json.NewEncoder(os.Stdout).Encode(r), r.Verdict())
	}
	fmt.Printf("%d runs of %d switches: %d generations committed, %d agents killed in the middle of one, %d strikes in all\n", r.Runs, r.Switches, r.Commits, r.Killed, r.Struck)
	fmt.Printf("%d looks at circuits that had to stay, %d violations; %d of %d links; longest tuning %.1f ms\n", r.Looks, r.Violations, r.Realised, r.Granted, float64(r.DarkMicros)/1000)
	fmt.Printf("%.0f s of virtual time in %.1f s\n", r.VirtualS, r.WallS)
	for _, line := range r.List {
		fmt.Fprintln(os.Stderr, line)
	}
	return r.Verdict()
}
