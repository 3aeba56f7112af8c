package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"

	"ringlight/planner/fabric"
	"ringlight/sim/live"
)

func core(ctx context.Context, args []string) error {
	k := live.DemoCore(4)
	cfg := live.CoreConfig{Changes: 6, Seed: 1, Listen: "127.0.0.1:0"}
	fs := newFlags("core", "ocs-sim core -pods 6 -changes 10 -json")
	fs.IntVar(&k.Pods, "pods", k.Pods, "pods")
	fs.IntVar(&k.LeavesPerPod, "leaves", k.LeavesPerPod, "leaf switches of a pod")
	fs.IntVar(&k.SpinesPerPod, "spines", k.SpinesPerPod, "spine switches of a pod, and groups of optical switches")
	fs.IntVar(&k.SpinePorts, "spine-ports", 0, "ports of a spine, and optical switches of a group; 0: as many as leaves ask for")
	fs.IntVar(&k.ServersPerLeaf, "servers", k.ServersPerLeaf, "servers under a leaf")
	fs.IntVar(&k.GPUsPerServer, "gpus-per-server", k.GPUsPerServer, "GPUs of a server")
	fs.IntVar(&k.IotaMille, "iota-mille", k.IotaMille, "thousandths of a leaf's links that may move at once")
	wiring := fs.String("wiring", string(k.Wiring), "interleaved or uniform")
	fs.BoolVar(&k.Backup, "backup", false, "join ports that no job needs to a mesh over all pods")
	fs.IntVar(&cfg.Changes, "changes", cfg.Changes, "changes of the job list after the first one")
	fs.Uint64Var(&cfg.Seed, "seed", cfg.Seed, "seed of jobs and mirrors")
	fs.BoolVar(&cfg.Hold, "hold", false, "keep everything running afterwards, broker on "+holdAddress)
	asJSON := fs.Bool("json", false, "print the result as JSON and nothing else")
	verbose := fs.Bool("v", false, "log state changes too")
	fail := func(err error) error {
		if *asJSON && err != nil && err != flag.ErrHelp {
			return failJSON(err)
		}
		return err
	}
	if err := parse(fs, args); err != nil {
		return fail(err)
	}
	k.Wiring, k.SwitchPorts = fabric.Wiring(*wiring), max(k.Pods, k.SwitchPorts)
	if k.SpinePorts == 0 {
		k.SpinePorts = k.LeavesPerPod * k.LeafLinks
	}
	cfg.Core = k
	if err := cfg.Validate(); err != nil {
		return fail(usageError{err})
	}
	if cfg.Hold {
		cfg.Listen = holdAddress
	}
	level := slog.LevelError
	if *verbose {
		level = slog.LevelInfo
	}
	cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
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
