package main

import (
	"encoding/json"
	"os"
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
