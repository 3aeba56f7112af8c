package fleet

import (
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
)

// Goal: what a run prints is what a script reads.
// Method: every verb, drawn and by hand, there and back.
func TestFaultsReadAsWritten(t *testing.T) {
	f, err := fabric.New(fabric.Params{Name: "f1", Nodes: 50, GPUsPerNode: 4, K: 3, TP: 32})
	if err != nil {
		t.Fatal(err)
	}
	list := Random(f, 8, 3, 240*time.Hour, 2)
	seen := map[Verb]bool{}
	for _, x := range list {
		seen[x.Verb] = true
		got, err := ParseFault(x.String())
		if err != nil || got != x {
			t.Fatalf("%q read as %+v, %v; want %+v", x, got, err, x)
		}
		if err := x.check(f); err != nil {
			t.Error(err)
		}
	}
	if x, err := ParseFault("3s network set 1 2 3"); err != nil || x.String() != "3s network set 1 2 3" {
		t.Errorf("%v, %v", x, err)
	}
	for v := range numVerbs {
		if !seen[v] && v != Network {
			t.Errorf("the generator never draws %v", v)
		}
	}
}

// Goal: a wrong line is refused, with what was wrong.
// Method: a table.
func TestWrongLinesAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"":                                   "want a time",
		"soon node dark 3":                   "time",
		"-1s node dark 3":                    "time",
		"1s node vanish 3":                   "node vanish",
		"1s node dark":                       "NODE is missing",
		"1s node dark x":                     "NODE",
		"1s node dark 3 4":                   "unexpected",
		"1s fibre cut 3/1/external3 both":    "external3",
		"1s fibre cut 3/1/loopback both":     "external",
		"1s fibre cut 3/1/external1 up":      "way",
		"1s fibre glitch 3/1/external1 both": "DURATION is missing",
		"1s board break 3 melted:1":          "melted",
		"1s network set 1 2":                 "missing",
		"1s network set 1 2 2000000":         "1000000",
		"1s node dark 3 group x":             "group",
	} {
		if _, err := ParseFault(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", line, err, want)
		}
	}
	if _, err := ParseScript(strings.NewReader("# nothing\n\n1s node dark 3\n2s node on\n")); err == nil || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("want an error that names line 4, got %v", err)
	}
	f := fabric.Default()
	for _, line := range []string{"1s node dark 64", "1s fibre cut 0/0/external1 both"} {
		x, err := ParseFault(line)
		if err != nil {
			t.Fatal(err)
		}
		if x.check(f) == nil {
			t.Errorf("%q: taken for a fabric that has no such thing", line)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{"10s node dark 5", "1m fibre flap 3/1/external1 both 5ms 9", "1s board break 3 stuck:0/0/1", "0s broker up 1s", "1s network set 1 2 3", "1s node dark 1 group 2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		x, err := ParseFault(line)
		if err != nil {
			return
		}
		y, err := ParseFault(x.String())
		if err != nil || y != x {
			t.Errorf("%q is %+v, written %q, read again %+v, %v", line, x, x, y, err)
		}
	})
}
