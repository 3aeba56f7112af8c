package main

import (
	"strings"
	"testing"
)

// Goal: a node's number is taken as it is written or refused with its field and
// limit; it never becomes another one.
// Method: numbers that 32 bits cut short, negative ones, garbage behind one; by
// flag and by file.
func TestNodeNumberIsNeverAnother(t *testing.T) {
	for number, want := range map[string]string{ // any order: independent
		"4294967296":                 "node: 4294967296: want 0 to 1048575",
		"1048576":                    "node: 1048576: want 0 to 1048575",
		"-1":                         "node: -1: want 0 to 1048575",
		"18446744073709551616":       "-node",
		"7x":                         "-node",
		"":                           "-node",
		"1e30":                       "-node",
		"99999999999999999999999999": "-node",
	} {
		if code, _, errs := command(t, "run", "-broker=", "-node="+number); code != 2 || !strings.Contains(errs, want) {
			t.Errorf("-node %s: exit %d, %s", number, code, errs)
		}
		if want == "-node" {
			want = "node"
		}
		if code, _, errs := command(t, "config", "-config", write(t, "c.json", `{"node":`+number+`}`)); code != 2 || number != "" && number != "7x" && !strings.Contains(errs, want) {
			t.Errorf("node %s: exit %d, %s", number, code, errs)
		}
	}
}
