package script

import (
	"strings"
	"testing"
)

// adder sums its words' lengths over a case.
func adder(*testing.T) func([]string) string {
	sum := 0
	return func(words []string) string {
		for _, w := range words {
			sum += len(w)
		}
		return strings.Repeat("x", sum) + "\n"
	}
}

// Goal: a script passes only as it should be, and -update makes it so.
// Method: one that is right, and every way to be wrong, with what is written.
func TestPlay(t *testing.T) {
	const right = "# a case\n\na\nbb # two\n----\nx\nxxx\n\nc\n----\nxxxx\n\n# another\n\na\n----\nx\n"
	if got, wrong := play(t, right, adder); got != right || len(wrong) > 0 {
		t.Errorf("%q, wrong %q", got, wrong)
	}
	for name, text := range map[string]string{ // any order
		"another trace":    strings.Replace(right, "xxxx", "xxxxx", 1),
		"a line less":      strings.Replace(right, "x\nxxx\n", "x\n", 1),
		"no trace":         strings.Replace(right, "----\nxxxx", "----", 1),
		"cases that leak":  strings.Replace(right, "# another\n\n", "", 1),
		"commands in limb": right + "\nstray\n",
	} {
		if _, wrong := play(t, text, adder); len(wrong) != 1 {
			t.Errorf("%s: %q", name, wrong)
		}
	}
	if got, _ := play(t, strings.Replace(right, "xxxx", "y", 1), adder); got != right {
		t.Errorf("rewritten to %q", got)
	}
}
