package main

import (
	"flag"
	"strings"
	"testing"
)

// Goal: the command that a failure prints runs the one seed with everything
// else as it was, and nothing that only concerns how it is shown.
// Method: a command line with every kind of flag, and its replay read back.
func TestReplayRunsOneSeed(t *testing.T) {
	flags := func() *flag.FlagSet {
		fs := flag.NewFlagSet("fleet", flag.ContinueOnError)
		for _, name := range []string{"nodes", "k", "seed", "runs"} {
			fs.Int(name, 0, "")
		}
		fs.Float64("hours", 1, "")
		fs.Duration("health", 0, "")
		fs.String("faults", "random", "")
		fs.String("trace-out", "", "")
		fs.Bool("json", false, "")
		fs.Bool("backup", false, "")
		return fs
	}
	fs := flags()
	args := strings.Fields("-nodes 400 -k=3 -seed 5 -runs 9 -hours 0.5 -backup -health 90s -faults a.txt -json -trace-out t.txt")
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	line := replay(fs, args, "fleet", 8)
	rest, ok := strings.CutPrefix(line, "ocs-sim fleet ")
	again := flags()
	if err := again.Parse(strings.Fields(rest)); !ok || err != nil || again.NArg() > 0 {
		t.Fatalf("%q: %v", line, err)
	}
	for name, want := range map[string]string{"nodes": "400", "k": "3", "seed": "8", "runs": "0", "hours": "0.5", "health": "1m30s", "faults": "a.txt", "json": "false", "backup": "true", "trace-out": ""} { // any order
		if got := again.Lookup(name).Value.String(); got != want {
			t.Errorf("%q: -%s %s, want %s", line, name, got, want)
		}
	}
}
