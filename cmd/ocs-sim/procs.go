package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/proto"
	"ringlight/sim/hostile"
	"ringlight/sim/live"
)

// procs runs a small cluster in which everything is a process of its own.
func procs(ctx context.Context, args []string, t cli.Terminal) error {
	cfg := live.ProcsConfig{Modules: 1, Out: t.Out}
	fs := cli.NewFlags("procs")
	fs.StringVar(&cfg.Broker, "broker", "mosquitto", "the broker's `command`; it takes -c FILE with a mosquitto configuration")
	fs.StringVar(&cfg.Bin, "bin", "", "`folder` with ocs-agent, ocs-planner, ocs-sim and ocsctl; none: that of this command")
	fs.IntVar(&cfg.Modules, "modules", cfg.Modules, "modules of a bundle")
	fs.IntVar(&cfg.Floods, "floods", 0, "how often a node dies quietly and then under a flood of 10,000 messages a second")
	fs.IntVar(&cfg.Damage, "damage", 0, "how many journals, and how many stores, are damaged, in place of all that")
	fs.IntVar(&cfg.Kills, "kills", 0, "how often a process is killed while it writes, in place of all that")
	fs.DurationVar(&cfg.Soak.Time, "soak", 0, "how long fault follows fault, in place of all that: what must not grow is read and judged")
	fs.DurationVar(&cfg.Soak.Fault, "fault-every", 0, "time between two faults of -soak; 0: a minute, or less in a short one")
	fs.DurationVar(&cfg.Soak.Kill, "kill-every", 0, "time between two kills of the planner, and of the broker; 0: an hour, or a third of a short one")
	fs.StringVar(&cfg.Upgrade.Dir, "upgrade", "", "`folder` with releases old, new and bad: agents become new and go back, in place of all that; see make bench-upgrade")
	fs.IntVar(&cfg.Jobs.Asks, "asks", 0, "how many jobs are asked for and timed, in place of all that; then -job-kills and -watchers")
	fs.IntVar(&cfg.Jobs.Kills, "job-kills", 0, "how often the planner is killed while something happens to a job, after -asks")
	fs.IntVar(&cfg.Jobs.Watchers, "watchers", 0, "how many watch one job over such a kill, after -asks")
	fs.IntVar(&cfg.Keys.Cuts, "cuts", 0, "nodes with tokens alone enrol, each agent killed so often meanwhile, and every key is replaced under load, in place of all that")
	fs.BoolVar(&cfg.Keys.Embedded, "embedded", false, "with -cuts: the planner's own broker")
	fs.StringVar(&cfg.Keys.Only, "only", "", "with -cuts: only the keys with this `text` in what is replaced, such as root")
	fs.IntVar(&cfg.Lies, "lies", 0, "how many ways of lying with a node's own key are tried, those that are known first and then by chance, in place of all that")
	fs.IntVar(&cfg.Nodes, "nodes", 64, "of -upgrade, -asks, -cuts and -lies, 16 to 256; of -asks a multiple of 8, 64 and more")
	fs.Uint64Var(&cfg.Seed, "seed", 1, "of -damage, -kills, -soak, -asks, -cuts and -lies")
	asJSON := fs.Bool("json", false, "print the result as JSON and nothing else")
	if _, err := cli.ParseNone(fs, args, `Runs a small cluster in which everything is a process of its own.

example: ocs-sim procs -broker /usr/sbin/mosquitto`); err != nil {
		return err
	}
	if cfg.Modules < 1 || cfg.Modules > hal.MaxModules {
		return cli.AsUsage(invalid("modules", fmt.Sprintf("1 to %d", hal.MaxModules), "%d is out of range", cfg.Modules))
	}
	if n := cfg.Nodes; n < 16 || n > 256 {
		return cli.AsUsage(invalid("nodes", "16 to 256", "%d is out of range", n))
	}
	switch j := cfg.Jobs; {
	case j.Asks < 0 || j.Kills < 0 || j.Watchers < 0 || j.Asks == 0 && j.Kills+j.Watchers > 0:
		return cli.AsUsage(invalid("asks, job-kills, watchers", "numbers, and all of them only with -asks", "%d, %d, %d", j.Asks, j.Kills, j.Watchers))
	case j.Asks > 0 && (cfg.Nodes < 64 || cfg.Nodes%8 > 0):
		return cli.AsUsage(invalid("nodes", "64 to 256 and a multiple of 8, with -asks", "%d", cfg.Nodes))
	}
	if k := cfg.Keys; k.Cuts < 0 || (k.Embedded || k.Only != "") && k.Cuts == 0 {
		return cli.AsUsage(invalid("cuts, embedded, only", "a number, and the others only with it", "%d, %v, %q", k.Cuts, k.Embedded, k.Only))
	}
	if err := soakTimes(&cfg.Soak); err != nil {
		return cli.AsUsage(err)
	}
	if cfg.Upgrade.Dir != "" {
		var err error
		if cfg.Upgrade.Dir, err = filepath.Abs(cfg.Upgrade.Dir); err != nil {
			return err
		}
	}
	if cfg.Bin == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		cfg.Bin = filepath.Dir(self)
	}
	if cfg.Lies > 0 {
		cfg.Broker = cfg.Bin // not started: the planner's own is used
	}
	broker, err := exec.LookPath(cfg.Broker)
	if err != nil && cfg.Lies == 0 {
		return cli.AsUsage(invalid("broker", "a command that can be run", "%v", err))
	}
	if cfg.Broker, err = filepath.Abs(broker); err != nil {
		return err
	}
	if *asJSON {
		cfg.Out = io.Discard
	}
	cfg.Flood = func(ctx context.Context, broker, fabric string, nodes []int) int {
		at := proto.Topics{Fabric: fabric}
		topics := []string{at.Request("flood")}
		for _, n := range nodes {
			id := proto.NodeID(n)
			topics = append(topics, at.Desired(id), at.Command(id), at.Event(id), at.Reported(id))
		}
		sent, err := hostile.Flood(ctx, broker, topics...)
		if err != nil {
			fmt.Fprintln(t.Err, err)
		}
		return sent
	}
	res, err := live.Procs(ctx, cfg)
	if *asJSON {
		return cli.Answered(errors.Join(err, cli.PrintJSON(t.Out, res)))
	}
	return err
}

// soakTimes fills in what was left open.
func soakTimes(s *live.SoakConfig) error {
	if s.Time != 0 && s.Time < time.Minute {
		return invalid("soak", "a minute or more", "%v", s.Time)
	}
	if s.Fault < 0 || s.Kill < 0 || s.Time == 0 && (s.Fault > 0 || s.Kill > 0) {
		return invalid("fault-every, kill-every", "times, and only with -soak", "%v, %v", s.Fault, s.Kill)
	}
	if s.Fault == 0 {
		s.Fault = min(time.Minute, s.Time/60)
	}
	if s.Kill == 0 {
		s.Kill = min(time.Hour, s.Time/3)
	}
	return nil
}
