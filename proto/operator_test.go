package proto

import "testing"

// Goal: a line of why reads the same wherever it is shown.
func TestWhyLinesAsPeopleReadThem(t *testing.T) {
	for _, c := range []struct {
		line            WhyLine
		place, sentence string
	}{
		{WhyLine{Node: 20, Bundle: -1, Text: "in no ring: spare", Measured: NoPower, Expected: NoPower}, "20", "in no ring: spare"},
		{WhyLine{Node: 20, Bundle: 1, Text: "external1, tuned", Measured: -3200, Expected: -3000}, "20/1", "external1, tuned (measured -3.20 dBm, expected -3.00 dBm)"},
		{WhyLine{Node: FirstSwitch + 4, Bundle: -1, Text: "x", Measured: NoPower}, "switch-4", "x"},
		{WhyLine{Node: ^NodeID(0), Bundle: -1, Text: "ring 3 formed of 8 nodes", Measured: NoPower}, "fabric", "ring 3 formed of 8 nodes"},
	} {
		if place, sentence := c.line.Place(), c.line.Sentence(); place != c.place || sentence != c.sentence {
			t.Errorf("%q, %q; want %q, %q", place, sentence, c.place, c.sentence)
		}
	}
}
