package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/agent"
	"ringlight/agent/bench"
	"ringlight/hal"
)

func TestBenchVerbs(t *testing.T) {
	// Goal: what an engineer types works from end to end on a simulated board:
	// bring-up as table, JSON and page; registers; a recording and its replay.
	dir := t.TempDir()
	cfg := write(t, "c.json", `{"broker":"","state":"`+dir+`/state","board":{"kind":"sim","bundles":2,"modules":1,"seed":4,"fibres":["0/external1-1/external2"]}}`)
	page := filepath.Join(dir, "page.html")
	if code, out, errs := command(t, "bringup", "-config", cfg, "-html", page, "-expect", "0/external1-1/external2"); code != 0 ||
		!strings.Contains(out, "bring-up passed") || !strings.Contains(errs, "calibrating") {
		t.Fatalf("bringup: %d\n%s%s", code, out, errs)
	}
	if raw, err := os.ReadFile(page); err != nil || !strings.Contains(string(raw), "<svg") || !strings.HasSuffix(string(raw), "</html>\n") {
		t.Errorf("page: %d bytes, %v", len(raw), err)
	}
	code, out, _ := command(t, "bringup", "-config", cfg, "-json", "-html", page, "-expect", "0/external1-1/external1")
	// What somebody has to act on comes first, then where the figures are from.
	raw, err := os.ReadFile(page)
	at := 0
	for _, want := range []string{">failed: 1 of", "SIMULATED BOARD", "What failed", "What to do", "<li>", "<th>date</th><td>20", "simulated, seed 4", "ringlight " + version, "All checks",
		">resistance, Ohm<", ">cell<", "dashed: limits", ">light, dBm<", ">lane<", ">extinction, dB<"} {
		next := strings.Index(string(raw[at:]), want)
		if next < 0 {
			t.Fatalf("page, %v: no %q behind %d bytes", err, want, at)
		}
		at += next
	}
	if strings.Count(string(raw), "What to do") != 1 || !strings.Contains(out, `"simulated": true`) || !strings.Contains(out, `"date": "20`) {
		t.Errorf("%s", out)
	}
	var r bench.Report
	if err := json.Unmarshal([]byte(out), &struct{ Checks *[]bench.Check }{&r.Checks}); err != nil || code != 1 || !strings.Contains(out, `"kind": "move"`) {
		t.Errorf("a fibre in the wrong place: exit %d, %v", code, err)
	}
	if code, out, errs := command(t, "poke", "0/0/temp/low", "0x1230", "-config", cfg, "-json"); code != 0 || !strings.Contains(out, `"value": 4656`) {
		t.Errorf("poke: %d %s%s", code, out, errs)
	}
	if code, out, errs := command(t, "peek", "-config", cfg, "1/0/eeprom/0"); code != 0 || !strings.HasPrefix(out, "1/0/eeprom/0  0x4f") {
		t.Errorf("peek: %d %s%s", code, out, errs)
	}
	rec := filepath.Join(dir, "a.rec")
	if code, out, errs := command(t, "record", "-o", rec, "-config", cfg); code != 0 || !strings.Contains(out, "bytes") {
		t.Errorf("record: %d %s%s", code, out, errs)
	}
	code, out, errs := command(t, "replay", rec, "-json")
	var res agent.Replayed
	if err := json.Unmarshal([]byte(out), &res); err != nil || code != 0 || !res.Compared || res.Ops == 0 || res.Diverged != nil {
		t.Errorf("replay: %d %s%s", code, out, errs)
	}
	if code, out, errs := command(t, "selftest", "-config", cfg, "-bus-soak", "300", "-write", "-json"); code != 0 || !strings.Contains(out, `"wrong_reads": 0`) {
		t.Errorf("soak: %d %s%s", code, out, errs)
	}
	cmis := write(t, "m.json", `{"broker":"","state":"`+dir+`/cmis","board":{"kind":"sim","module_kind":"cmis","bundles":1,"modules":1}}`)
	bin := filepath.Join(dir, "m.bin")
	if code, out, errs := command(t, "dump-module", "-config", cmis, "-o", bin); code != 0 || !strings.Contains(out, "CMIS 5.3") {
		t.Errorf("dump-module: %d %s%s", code, out, errs)
	}
}

func TestBenchVerbsRefuseWhatTheyCannot(t *testing.T) {
	// Goal: what is out of range, not for hands, or not there is exit 2 with the
	// limit; nothing is attempted.
	cfg := write(t, "c.json", `{"broker":"","state":"`+t.TempDir()+`","board":{"kind":"sim","bundles":1,"modules":1}}`)
	for _, tc := range []struct{ args, want string }{
		{"peek", "one register"},
		{"peek 0/0/temp/low 0/0/temp/high", "one word too many"},
		{"peek 0/0/clock/0", "no such register"},
		{"poke 0/0/temp/low", "register and a value"},
		{"poke 0/0/temp/low warm", "number"},
		{"poke 0/0/temp/low 0x10000", "0xffff"},
		{"poke 0/0/temp/config 1", "not to be written"},
		{"record", "file to write"},
		{"record -o x -for -1s", "0 or more"},
		{"replay", "want a file"},
		{"replay /dev/null", "not a readable recording"},
		{"dump-module -o x", "kind chips"},
		{"dump-module -o x -module 9", "0 to 0"},
		{"dump-module", "file to write"},
		{"bringup -expect 0/external3", "two ports"},
		{"selftest -bus-soak -1", "want 1 to"},
		{"selftest -write", "-bus-soak too"},
		{"selftest -edges -1", "want 1 to"},
		{"selftest -line LOS0", "-edges too"},
		{"selftest -edges 1 -line gpiochip0:x -latch pca9535=/dev/i2c-0@0x20", "gpiochip0:12"},
		{"selftest -edges 1 -line LOS0 -latch tmp102=/dev/i2c-0@0x48", "PART=DEVICE"},
		{"selftest -edges 1 -line LOS0 -latch pca9535=/dev/i2c-0@0x99", "0x77"},
		{"selftest -bus-soak 1 -chip clock=/dev/i2c-0@0x50", "KIND"},
	} {
		args := strings.Fields(tc.args)
		if args[0] != "replay" {
			args = append(args, "-config", cfg)
		}
		if code, out, errs := command(t, args...); code != 2 || !strings.Contains(errs, tc.want) {
			t.Errorf("%s: exit %d, %s%s; want %q", tc.args, code, out, errs, tc.want)
		}
	}
	mirrors := write(t, "s.json", `{"broker":"","state":"`+t.TempDir()+`","board":{"kind":"sim","ports":8}}`)
	for _, tc := range []struct{ args, want string }{{"bringup", "without bundles"}, {"peek 0/0/temp/low", "without bundles"}, {"dump-module -o x", "circuit switch"},
		{"selftest -bus-soak 10", "no EEPROM"}} {
		if code, out, errs := command(t, append(strings.Fields(tc.args), "-config", mirrors)...); code != 2 || !strings.Contains(errs, tc.want) {
			t.Errorf("of a switch: %s: exit %d, %s%s; want %q", tc.args, code, out, errs, tc.want)
		}
	}
	for _, verb := range []string{"bringup", "peek", "poke", "record", "replay", "release", "dump-module", "selftest"} {
		if code, out, _ := command(t, verb, "-h"); code != 0 || !strings.Contains(out, "\n  ocs-agent "+verb) {
			t.Errorf("%s -h: exit %d, %s", verb, code, out)
		}
	}
}

func TestLinesThatFreeABus(t *testing.T) {
	// Goal: the lines of a bus reach the board; one alone, or on an SPI bus, is
	// refused with its key.
	good := `{"board":{"kind":"linux","bundles":1,"modules":1,"buses":[{"device":"/dev/i2c-9","scl":{"chip":"gpiochip1","offset":4},"sda":{"chip":"gpiochip1","offset":5}},{"device":"/dev/spidev0."},{"device":"a"},{"device":"b"},{"device":"c"}]}}`
	c, err := readConfig(write(t, "c.json", good))
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	board, err := c.Board.layout()
	if err != nil || board.Buses[0].SCL == nil || *board.Buses[0].SDA != (hal.Line{Chip: "gpiochip1", Offset: 5}) || board.Buses[1].SCL != nil {
		t.Errorf("%+v, %v", board.Buses, err)
	}
	for _, bad := range []string{strings.Replace(good, `,"sda":{"chip":"gpiochip1","offset":5}`, "", 1),
		strings.Replace(good, `{"device":"/dev/spidev0."}`, `{"device":"/dev/spidev0.","scl":{"chip":"g","offset":1},"sda":{"chip":"g","offset":2}}`, 1)} {
		c, err := readConfig(write(t, "c.json", bad))
		if err == nil {
			err = c.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), ".scl") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
