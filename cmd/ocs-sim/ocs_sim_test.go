package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringlight/cmd/cli"
	"ringlight/hal"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// Goal: what is not acceptable is exit code 2 and nothing is attempted.
// Method: a table of command lines.
func TestUnacceptableCommandLines(t *testing.T) {
	t.Setenv(traceVariable, "")
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	if err := os.WriteFile(bad, []byte(`{"nodes": 4, "knots": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{}, {"fleece"}, {"demo", "-days", "0"}, {"demo", "-days", "x"}, {"demo", "extra"}, {"demo", "-tp", "30"},
		{"demo", "-broker-down", "5"}, {"demo", "-broker-down", "0:1"}, {"demo", "-broker-down", "a:b"},
		{"demo", "-trace", filepath.Join(dir, "none.json")}, {"demo", "-trace", bad}, {"demo", "-modules", "9"},
		{"agents", "-modules", "0"}, {"agents", "-health", "-1s"}, {"fleet", "-health", "0s"}, {"agents", "-broker", "http://x"}, {"agents", "-broker", "mqtt://192.0.2.1:1883"},
		{"agents", "-fabric-file", bad}, {"agents", "-fabric-file", filepath.Join(dir, "none.json")},
		{"board"}, {"board", "-listen", "tcp:1"}, {"board", "-listen", "unix:" + filepath.Join(dir, "b.sock"), "-config", bad},
		{"core", "-pods", "1"}, {"core", "-pods", "33"}, {"core", "-pods", "577", "-runs", "1"}, {"core", "-spine-ports", "9"}, {"core", "-wiring", "x"}, {"core", "-iota-mille", "0"},
		{"core", "-changes", "-1"}, {"core", "-spineless"}, {"core", "-kind", "leaf-spine", "-spineless"}, {"core", "-traffic", "2"}, {"core", "-runs", "1", "-traffic", "2"}, {"core", "-kind", "direct", "-runs", "1", "-traffic", "17"}, {"core", "-kind", "direct", "-runs", "1", "-traffic", "2", "-phases", "2"},
		{"core", "extra"}, {"core", "-kind", "clos"}, {"core", "-kind", "leaf-spine", "-pods", "4"}, {"core", "-queue", "fifo"},
		{"core", "-kind", "leaf-spine", "-switches", "5"}, {"core", "-kind", "leaf-spine", "-queue", "lifo"}, {"core", "-kind", "leaf-spine", "-leaves", "2000"},
		{"demo", "-physics", bad}, {"fleet", "-physics", bad}, {"demo", "-costs", bad}, {"fleet", "-costs", bad}, {"fleet", "-physics", filepath.Join(dir, "none.json")},
		{"fleet", "-loss", "0.51"}, {"fleet", "-loss", "-0.1"}, {"fleet", "-loss", "NaN"}, {"fleet", "-starve", "0.009"}, {"fleet", "-starve", "1.1"}, {"fleet", "-starve", "NaN"},
		{"board", "-listen", "unix:" + filepath.Join(dir, "b.sock"), "-physics", bad},
		{"fleet", "-nodes", "0"}, {"fleet", "-nodes", "1", "-tp", "8"}, {"fleet", "-nodes", "2", "-k", "5", "-tp", "4"},
		{"fleet", "-fault-rate", "NaN"}, {"fleet", "-fault-rate", "+Inf"}, {"fleet", "-hours", "NaN"}, {"fleet", "-hours", "1e300"},
	} {
		if code, _, _ := run(args); code != exitUsage {
			t.Errorf("%q: exit code %d, want %d", args, code, exitUsage)
		}
	}
	for _, args := range [][]string{{"-h"}, {"demo", "-h"}, {"agents", "-h"}, {"board", "-h"}, {"core", "-h"}} {
		if code, _, _ := run(args); code != exitDone {
			t.Errorf("%q: exit code %d, want %d", args, code, exitDone)
		}
	}
}

// Goal: what a testbed cannot be is refused before anything is begun, by the flag's name and
// its limit, with the rights for one and without.
// Method: values beside the limits.
func TestTestbedsRefuseByName(t *testing.T) {
	for _, c := range [][]string{{"modules", "0", "1 to 8"}, {"modules", "9", "1 to 8"}, {"modules", "x", "1 to 8"}, {"ratio", "-1", "0 and up"}} {
		code, _, said := run([]string{"testbed", "direct", "-" + c[0], c[1]})
		if code != exitUsage || !strings.Contains(said, c[0]) || !strings.Contains(said, c[2]) {
			t.Errorf("-%s %s: exit code %d, %q", c[0], c[1], code, said)
		}
	}
}

var quiet = cli.Terminal{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}

// Goal: a refused flag names its field and limit, through every wrapping.
// Method: look for the typed errors.
func TestRefusalNamesTheField(t *testing.T) {
	err := demo(context.Background(), []string{"-days", "0"}, quiet)
	var p *proto.Error
	if !errors.As(err, &p) || p.Field != "days" || p.Limit == "" {
		t.Errorf("got %v", err)
	}
	err = demo(context.Background(), []string{"-tp", "30"}, quiet)
	var f *fabric.Error
	if !errors.As(err, &f) || f.Field != "tp" {
		t.Errorf("got %v", err)
	}
	for flags, field := range map[[2]string]string{
		{"-physics", `{"tau_us":0}`}: "physics.tau_us", {"-costs", `{"source":"x","interrupt_us":[[0,1],[1,0]]}`}: "costs.interrupt_us[1]",
	} {
		name := filepath.Join(t.TempDir(), "f.json")
		if err := os.WriteFile(name, []byte(flags[1]), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, command := range []func(context.Context, []string, cli.Terminal) error{demo, runFleet} {
			if err := command(context.Background(), []string{flags[0], name}, quiet); !errors.As(err, &p) || p.Field != field || p.Limit == "" {
				t.Errorf("%v: %v", flags, err)
			}
		}
	}
}

// Goal: a board is read from its own object or from an agent's whole
// configuration, strictly.
// Method: both forms and their broken twins.
func TestBoardConfiguration(t *testing.T) {
	for _, c := range []struct {
		in      string
		modules int
		ok      bool
	}{
		{`{"modules":2,"seed":7,"faults":["stuck:0/1/5"],"fibres":["0/external1-1/external1"]}`, 2, true},
		{`{"fabric":"f1","node":3,"board":{"kind":"sim","modules":3,"calibrated":true}}`, 3, true},
		{`{"kind":"linux"}`, 0, false},
		{`{"modules":9}`, 0, false},
		{`{"moduls":2}`, 0, false},
		{`{"modules":1,"physics":{"tau_us":40}}`, 1, true},
		{`{"physics":{"tau_us":501}}`, 0, false},
		{`{"faults":["stuck"]}`, 0, false},
		{`{"fibres":["0/loopback-1/external1"]}`, 0, false},
		{`{"modules":1,"dac":"ad5676r","direct":true,"buses":null,"lines":[],"alarm_a":{"on":false,"low":0},"box":{"address":"","key":""},"path":""}`, 1, true},
		{`{"modules":2,"module_kind":"cmis","mux":true,"slow_mci":true}`, 2, true},
		{`{} {}`, 0, false},
		{`[`, 0, false},
	} {
		name := filepath.Join(t.TempDir(), "board.json")
		if err := os.WriteFile(name, []byte(c.in), 0o644); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := readBoard(name)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if c.ok && len(cfg.Board.Bundles[0].Modules) != c.modules {
			t.Errorf("%s: %d modules, want %d", c.in, len(cfg.Board.Bundles[0].Modules), c.modules)
		}
	}
}

// Goal: what no simulated board can be is refused by its key, with what would do.
// Method: keys of other kinds and values that are none; of a DAC, the board has it.
func TestBoardRefusesByKey(t *testing.T) {
	name := filepath.Join(t.TempDir(), "board.json")
	for _, c := range [][3]string{
		{`"buses":[{"device":"/dev/i2c-1"}]`, "board.buses", "kind linux"}, {`"lines":[{"chip":"gpiochip0"}]`, "board.lines", "kind linux"},
		{`"path":"b.sock"`, "board.path", "kind socket"}, {`"box":{"user":"x"}`, "board.box", "kind box"}, {`"address":"h:1"`, "board.address", "kind box"},
		{`"kind":"socket"`, "board.kind", "sim"}, {`"dac":"ad5535b"`, "board.dac", "ltc2688 or ad5676r"}, {`"dac":"ltc2688","module_kind":"cmis"`, "board.dac", "chips"},
		{`"mux":true`, "board.mux", "cmis"}, {`"slow_mci":true`, "board.slow_mci", "cmis"}, {`"gpus":9`, "board.gpus", "2 to 8"}, {`"bundles":0`, "board.bundles", "1 to 8"},
		{`"ports":999`, "board.ports", "0 to 576"}, {`"module_kind":"osfp"`, "board.module_kind", "chips or cmis"}, {`"physics":{"tau_us":501}`, "board.physics.tau_us", " to "},
		{`"file":"` + name + `"`, "board.file", "line 1"}, {`"file":"` + name + `.none"`, "board.file", "a board file"},
		{`"file":"../../hal/boardfile/default.json","ports":8`, "board.file", "ports"}, {`"alarm":1`, "", `no key "alarm"`},
	} {
		if err := os.WriteFile(name, []byte("{"+c[0]+"}"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readBoard(name); err == nil || !strings.Contains(err.Error(), c[1]+": ") || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: %v", c[0], err)
		}
	}
	if err := os.WriteFile(name, []byte(`{"board":{"kind":"sim","dac":"ad5676r"}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if cfg, _, err := readBoard(name); err != nil || !slices.ContainsFunc(slices.Collect(cfg.Board.Chips()), func(c hal.Chip) bool { return c.Part == hal.AD5676R }) {
		t.Errorf("a board of another DAC: %v, %v", cfg.Board, err)
	}
}

// Goal: simulated agents say of themselves what a production agent of the same flags does,
// seals or none, so that `ocsctl seal check` is right about them.
func TestAgentsWithoutSealsReadThem(t *testing.T) {
	for mode, want := range map[string]proto.Features{"": proto.FeatureSeals, "off": proto.FeatureSeals} { // any order: independent
		make, err := (&sealFlags{mode: mode, reports: "plain"}).guards("f1", defaultBroker)
		if err != nil {
			t.Fatal(err)
		}
		if g, err := make(3); err != nil || g.Features != want || g.Guard != nil {
			t.Errorf("%q: %+v, %v", mode, g, err)
		}
	}
}
