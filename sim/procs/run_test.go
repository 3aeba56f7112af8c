package procs

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"ringlight/proto"
)

var (
	wanted ProcsConfig
	asJSON = flag.Bool("json", false, "print the result as JSON and nothing else")
)

func init() {
	cfg := &wanted
	flag.StringVar(&cfg.Bin, "bin", "", "`folder` with ocs-agent, ocs-planner, ocs-sim and ocsctl; without it nothing is run")
	flag.StringVar(&cfg.Broker, "broker", "mosquitto", "the broker's `command`; it takes -c FILE with a mosquitto configuration")
	flag.IntVar(&cfg.Modules, "modules", 1, "modules of a bundle")
	flag.IntVar(&cfg.Floods, "floods", 0, "how often a node dies quietly and then under a flood of 10,000 messages a second")
	flag.IntVar(&cfg.Damage, "damage", 0, "how many journals, and how many stores, are damaged, in place of all that")
	flag.IntVar(&cfg.Kills, "kills", 0, "how often a process is killed while it writes, in place of all that")
	flag.DurationVar(&cfg.Soak.Time, "soak", 0, "how long fault follows fault, in place of all that: what must not grow is read and judged")
	flag.DurationVar(&cfg.Soak.Fault, "fault-every", 0, "time between two faults of -soak; 0: a minute, or less in a short one")
	flag.DurationVar(&cfg.Soak.Kill, "kill-every", 0, "time between two kills of the planner, and of the broker; 0: an hour, or a third of a short one")
	flag.StringVar(&cfg.Upgrade.Dir, "upgrade", "", "`folder` with releases old, new and bad: agents become new and go back, in place of all that; see make bench-upgrade")
	flag.IntVar(&cfg.Jobs.Asks, "asks", 0, "how many jobs are asked for and timed, in place of all that; then -job-kills and -watchers")
	flag.IntVar(&cfg.Jobs.Kills, "job-kills", 0, "how often the planner is killed while something happens to a job, after -asks")
	flag.IntVar(&cfg.Jobs.Watchers, "watchers", 0, "how many watch one job over such a kill, after -asks")
	flag.IntVar(&cfg.Keys.Cuts, "cuts", 0, "nodes with tokens alone enrol, each agent killed so often meanwhile, and every key is replaced under load, in place of all that")
	flag.BoolVar(&cfg.Keys.Embedded, "embedded", false, "with -cuts: the planner's own broker")
	flag.StringVar(&cfg.Keys.Only, "only", "", "with -cuts: only the keys with this `text` in what is replaced, such as root")
	flag.IntVar(&cfg.Lies, "lies", 0, "how many ways of lying with a node's own key are tried, those that are known first and then by chance, in place of all that")
	flag.IntVar(&cfg.Nodes, "nodes", 64, "of -upgrade, -asks, -cuts and -lies, 16 to 256; of -asks a multiple of 8, 64 and more")
	flag.Uint64Var(&cfg.Seed, "seed", 1, "of -damage, -kills, -soak, -asks, -cuts and -lies")
}

// Goal: whoever of broker, planner and agents is killed, starved, lied to, damaged or
// upgraded, no light changes that nobody asked for, and what can work works again.
// Method: each a process of its own; the boards' own record judges.
func TestProcesses(t *testing.T) {
	cfg := wanted
	if cfg.Bin == "" {
		t.Skip("skipped: minutes of processes; make bench-procs, soak, bench-jobs, bench-keys, bench-lies, bench-damage and bench-upgrade run it")
	}
	if j := cfg.Jobs; cfg.Nodes < 16 || cfg.Nodes > 256 || j.Asks > 0 && (cfg.Nodes < 64 || cfg.Nodes%8 > 0) {
		t.Fatalf("-nodes %d: want 16 to 256, with -asks 64 and up by 8", cfg.Nodes)
	}
	if s := &cfg.Soak; s.Time > 0 && s.Time < time.Minute {
		t.Fatalf("-soak %v: want a minute or more", s.Time)
	} else if s.Fault == 0 {
		s.Fault = min(time.Minute, s.Time/60)
	}
	if s := &cfg.Soak; s.Kill == 0 {
		s.Kill = min(time.Hour, s.Time/3)
	}
	if cfg.Lies > 0 {
		cfg.Broker = cfg.Bin // not started: the planner's own is used
	} else if at, err := exec.LookPath(cfg.Broker); err != nil {
		t.Fatal(err)
	} else if cfg.Broker, err = filepath.Abs(at); err != nil {
		t.Fatal(err)
	}
	cfg.Out = os.Stdout
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
		sent, err := flood(ctx, broker, topics...)
		if err != nil {
			t.Error(err)
		}
		return sent
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	res, err := Procs(ctx, cfg)
	if *asJSON {
		text, _ := json.MarshalIndent(res, "", "  ")
		fmt.Println(string(text))
	}
	if err != nil {
		t.Fatal(err)
	}
}
