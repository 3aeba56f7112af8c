package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Goal: a board file is checked, shown and run; one that is wrong ends with exit 2 and
// names the field, and nothing is begun.
func TestBoardFiles(t *testing.T) {
	const good = "../../hal/boardfile/default.json"
	if code, out, _ := command(t, "board", "check", good); code != 0 || !strings.Contains(out, "33 buses, 8 bundles, 64 modules") {
		t.Errorf("check: exit %d, %q", code, out)
	}
	const mirrors = "../../hal/boardfile/testdata/atrium.json"
	if code, out, _ := command(t, "board", "check", mirrors); code != 0 || !strings.Contains(out, "atrium: 5 buses, 12 ports of mirrors: good") {
		t.Errorf("check: exit %d, %q", code, out)
	}
	if code, out, _ := command(t, "board", "show", mirrors); code != 0 || strings.Count(out, "ad5535b") != 4 || !strings.Contains(out, "mirrors.b[") {
		t.Errorf("show: exit %d, %q", code, out)
	}
	if code, out, errs := command(t, "config", "-config", write(t, "m.json", `{"board":{"kind":"sim","file":"`+mirrors+`"}}`)); code != 0 || !strings.Contains(out, `"ports": 12`) {
		t.Errorf("config: exit %d, %s%s", code, out, errs)
	}
	code, out, _ := command(t, "board", "show", "default", "-json")
	raw, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	var shown, file any
	if json.Unmarshal([]byte(out), &shown) != nil || json.Unmarshal(raw, &file) != nil || code != 0 {
		t.Fatalf("show: exit %d, %q", code, out)
	}
	x, _ := json.Marshal(shown)
	y, _ := json.Marshal(file)
	if len(x) > len(y) || code != 0 { // only what is nought may be left out
		t.Errorf("what is shown is not what the file says")
	}
	bad := write(t, "bad.json", strings.Replace(string(raw), "pcal6524", "pca9535", 1))
	for _, args := range [][]string{{"board", "check", bad}, {"run", "-board", bad}, {"calibrate", "-board", bad, "-state", t.TempDir()}} {
		if code, _, errs := command(t, args...); code != 2 || !strings.Contains(errs, `buses[0].hz: "latch" runs at 1MHz, too fast for pca9535 latches[0].addr: want at most 400kHz`) {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
	code, out, _ = command(t, "board", "check", bad, "-json")
	var problems struct {
		Problems []struct{ Field, Limit, Message string }
	}
	if err := json.Unmarshal([]byte(out), &problems); err != nil || code != 2 || len(problems.Problems) != 1 || problems.Problems[0].Field != "buses[0].hz" {
		t.Errorf("check -json: exit %d, %q", code, out)
	}
	for _, args := range [][]string{{"board"}, {"board", "check"}, {"board", "burn", good}, {"board", "check", "no-such-file"}} {
		if code, _, _ := command(t, args...); code != 2 {
			t.Errorf("%v: exit %d", args, code)
		}
	}
	config := write(t, "c.json", `{"board":{"kind":"sim","file":"`+good+`","ports":8}}`)
	if code, _, errs := command(t, "config", "-config", config); code != 2 || !strings.Contains(errs, "board.file") {
		t.Errorf("a switch of a board file: exit %d, %s", code, errs)
	}
}

// Goal: boards that nobody here built run of their files alone: calibrated from nothing
// (modules with controllers at their maker's), switched, and found good by bring-up.
// Method: a simulator built of the same file. riser: AD5676R and AD7998 on channels in
// another order and of other scales, a mux that the kernel drives, a latch for 400 kHz,
// lines by name. cage: CMIS modules behind a mux of ours, memories of 256 bytes. tower:
// slow chips behind muxes that are behind a mux, all of ours, parts by other names. porch:
// a latch made of lines of the machine. veranda: that, and DACs behind bridges from I2C.
// arbour: matrices of 28 couplers, on three DACs, and of 8, on two. gazebo: modules of six and
// of four lanes in one bundle, and of two.
func TestForeignBoardsRunOfTheirFiles(t *testing.T) {
	for i, name := range foreign {
		if testing.Short() && i%3 != 0 {
			continue
		}
		file, err := filepath.Abs("../../hal/boardfile/testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if code, _, errs := command(t, "board", "check", file); code != 0 {
			t.Fatalf("%s: %s", name, errs)
		}
		code, out, errs := command(t, "selftest", "-board", file)
		if code != 0 || !strings.Contains(out, "selftest passed") {
			t.Errorf("%s: selftest: exit %d, %s%s", name, code, out, errs)
		}
		config := write(t, "c.json", fmt.Sprintf(`{"broker":"","state":%q,"board":{"kind":"sim","file":%q,"fibres":["0/external1-1/external1","0/external2-1/external2"]}}`, t.TempDir(), file))
		code, out, errs = command(t, "bringup", "-config", config)
		if code != 0 || !strings.Contains(out, ", 0 failed") || strings.Count(out, "fibre 0:0/") != 2 {
			t.Errorf("%s: bring-up: exit %d, %s%s", name, code, out, errs)
		}
		if code, out, errs = command(t, "calibrate", "-b", "1", "-config", config); code != 0 {
			t.Errorf("%s: calibrate: exit %d, %s%s", name, code, out, errs)
		}
		for _, path := range []string{"loopback", "external1", "external2", "dark"} {
			if code, out, errs = command(t, "path", "set", "1", path, "-config", config); code != 0 || !strings.Contains(out, "bundle 1 is on "+path) {
				t.Errorf("%s: %s: exit %d, %s%s", name, path, code, out, errs)
			}
		}
	}
}

// Goal: modules of other matrices are found from nothing, by the simulator's light, and a
// matrix that cannot be is refused before anything is begun.
// Method: both matrices of arbour; files of it with a coupler twice, and with one away.
func TestOtherMatricesAreFound(t *testing.T) {
	const file = "../../hal/boardfile/testdata/arbour.json"
	code, out, errs := command(t, "calibrate", "-sim", "-board", file, "-state", t.TempDir(), "-json")
	var found struct{ Modules []calibratedModule }
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != 0 || len(found.Modules) != 2 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
	}
	for i, m := range found.Modules {
		if x := m.Truth; len(m.ExtinctionMB) != []int{44, 24}[i] || x == nil || x.MZI < 25 || x.Matrix < 25 || x.PathLoss > 0.5 {
			t.Errorf("module %d: %d cells, truth %+v", i, len(m.ExtinctionMB), x)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range [][2]string{{"[2, 6], [3, 7]", "[2, 6], [2, 6]"}, {"[6, 7]]", "[4, 5]]"}} {
		bad := write(t, "bad.json", strings.Replace(string(raw), edit[0], edit[1], 1))
		for _, args := range [][]string{{"board", "check", bad}, {"run", "-board", bad}} {
			if code, _, errs := command(t, args...); code != 2 || !strings.Contains(errs, "types[1].couplers: mzi: ") {
				t.Errorf("%s, %v: exit %d, %s", edit[1], args, code, errs)
			}
		}
	}
}

var foreign = []string{"riser", "cage", "tower", "porch", "veranda", "arbour", "gazebo"}
