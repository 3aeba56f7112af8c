package proto

import (
	"encoding/json"
	"testing"
)

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

// Goal: what a browser is given has the schema's names and people's words.
func TestMessagesAsPlainValues(t *testing.T) {
	peer := NodeID(4)
	raw, err := json.Marshal(Plain(&NodeStatus{Node: 3, Online: true, Mode: ModeDrained, Reported: &Reported{UptimeMicros: 5, Plan: Digest{1},
		Bundles: []BundleReport{{Path: External1, State: Tuned, Measured: NoPower, Expected: -3000}}}}))
	var got map[string]any
	if err != nil || json.Unmarshal(raw, &got) != nil {
		t.Fatal(err)
	}
	r := got["reported"].(map[string]any)
	b := r["bundles"].([]any)[0].(map[string]any)
	if got["node"] != 3.0 || got["mode"] != "drained" || r["uptime_us"] != 5.0 || r["plan"] != (Digest{1}).String() ||
		b["path"] != "external1" || b["measured_mdbm"] != nil || b["expected_mdbm"] != -3000.0 || b["state"] != "tuned" {
		t.Errorf("%s", raw)
	}
	if a := Plain([]any{&peer, (*NodeID)(nil), "x"}).([]any); a[0] != NodeID(4) || a[1] != nil || a[2] != "x" {
		t.Errorf("%v", a)
	}
}
