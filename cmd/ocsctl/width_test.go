package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/cmd/cli"
	"ringlight/cmd/cli/clitest"
)

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	return program().Run(ctx, args, cli.Terminal{In: os.Stdin, Out: out, Err: errs})
}

// Goal: nothing that a person is shown is wider than 80 columns: help, answers of
// a running fabric, plans.
// Method: every command's -h, and every question once, measured line by line.
func TestHelpFitsAScreen(t *testing.T) {
	for _, c := range append(program().Commands, cli.Command{}, cli.Command{Name: "help"}, cli.Command{Name: "completion"}) {
		code, out, errs := ctl(t, append(strings.Fields(c.Name), "-h")...)
		if code != 0 || !strings.Contains(out, "ocsctl") {
			t.Errorf("%q: exit %d %s", c.Name, code, errs)
		}
		clitest.Fits(t, c.Name+" -h", out)
	}
	file := filepath.Join(t.TempDir(), "in.json")
	if err := os.WriteFile(file, []byte(`{"nodes":64,"gpus_per_node":4,"k":2,"topology":"line","tp":32,"faulty":[3]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := ctl(t, "plan", "ring", file, "-table")
	if clitest.Fits(t, "plan ring -table", out); code != 0 || !strings.Contains(out, "\ngroups 2") && !strings.HasPrefix(out, "groups 1") {
		t.Errorf("exit %d %s", code, out)
	}
	if _, out, _ := ctl(t, "plan", "ring", file); !strings.HasPrefix(out, `{"groups":[[`) {
		t.Errorf("a script reads %q", out)
	}
	if _, out, _ := ctl(t, "man"); !strings.Contains(out, `\-dry\-run`) || !strings.Contains(out, "RINGLIGHT_BROKER") {
		t.Error("the manual page lacks flags or environment")
	}
}

// answersFit asks all that there is to ask.
func answersFit(t *testing.T, broker string) {
	for _, q := range []string{"status", "alarm list", "node list", "node list -state unusable", "node show 1", "ring list", "ring show 1", "why 1", "why 1/0", "drain 2 -dry-run",
		"undrain 9", "fabric show", "node show 99", "ring show 1 -fabric none", "switch list", "switch show 1", "circuit list", "clear 3", "frobnicate", "context list",
		"rollout status", "rollout plan v9", "rollout stop", "rollout plan", "audit", "audit verify", "seal check"} {
		_, out, errs := ctl(t, append(strings.Fields(q), "-broker", broker)...)
		clitest.Fits(t, q, out)
		if !strings.HasPrefix(errs, "ocsctl: ") && errs != "" {
			t.Errorf("%s: %q", q, errs)
		}
	}
}

// Goal: where to ask stands in a file of contexts or in the environment; a flag
// comes first, then the environment, then the context.
func TestContexts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dir", "ocsctl.json")
	t.Setenv("RINGLIGHT_CONFIG", file)
	for _, c := range []struct {
		args, env, want string
		code            int
	}{
		{"context list", "", "IN USE", 0},
		{"context use prod", "", `"prod"`, 2},
		{"context set prod -broker mqtt://127.0.0.1:2 -fabric p1", "", "in use: prod", 0},
		{"context set lab -broker mqtt://127.0.0.1:3", "", "in use: prod", 0},
		{"ring list", "", "127.0.0.1:2", 1},
		{"-context lab ring list", "", "127.0.0.1:3", 1},
		{"ring list", "mqtt://127.0.0.1:4", "127.0.0.1:4", 1},
		{"ring list -broker mqtt://127.0.0.1:5", "mqtt://127.0.0.1:4", "127.0.0.1:5", 1},
		{"ring list -context nix", "", "one of lab, prod", 2},
		{"context remove prod", "", "in use: -", 0},
		{"context frob prod", "", "list, use NAME", 2},
	} {
		t.Setenv("RINGLIGHT_BROKER", c.env)
		args := strings.Fields(c.args)
		if strings.Contains(c.args, "ring") {
			args = append(args, "-timeout", "100ms")
		}
		if code, out, errs := ctl(t, args...); code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: exit %d %s%s", c.args, code, out, errs)
		}
	}
	if err := os.WriteFile(file, []byte(`{"contexts":{"a":{"brokr":"x"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := ctl(t, "ring", "list"); code != 2 || !strings.Contains(errs, "brokr") {
		t.Errorf("exit %d %s", code, errs)
	}
}

// Goal: without a home contexts are written nowhere, and the error says what to set.
func TestContextsWithoutAHome(t *testing.T) {
	for _, name := range []string{"RINGLIGHT_CONFIG", "HOME", "XDG_CONFIG_HOME", "RINGLIGHT_BROKER"} {
		t.Setenv(name, "")
	}
	t.Chdir(t.TempDir())
	if code, _, errs := ctl(t, "context", "set", "a", "-broker", "mqtt://127.0.0.1:2"); code != 2 || !strings.Contains(errs, "RINGLIGHT_CONFIG") {
		t.Errorf("exit %d %s", code, errs)
	}
	if left, _ := os.ReadDir("."); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// The configuration of whoever runs the tests is not theirs.
func TestMain(m *testing.M) {
	os.Setenv("RINGLIGHT_CONFIG", filepath.Join(os.TempDir(), "ringlight-no-such-file.json"))
	os.Exit(m.Run())
}
