package health

import (
	"testing"

	"ringlight/proto"
)

// Goal: what somebody knows of stands behind what is news, however grave it is, and what
// follows from an alarm behind that one.
func TestInOrder(t *testing.T) {
	got := ""
	for _, a := range InOrder(map[string][]proto.AlarmStatus{
		"": {{ID: "known", Severity: proto.SeverityCritical, AckMillis: 5}, {ID: "late", Severity: proto.SeverityWarning, SinceMillis: 9},
			{ID: "unknown", Severity: proto.SeverityWarning}, {ID: "early", Severity: proto.SeverityWarning, SinceMillis: 3}, {ID: "grave", Severity: proto.SeverityCritical, SinceMillis: 10}},
		"early": {{ID: "follows", Severity: proto.SeverityCritical}},
	}) {
		got += a.ID + " "
	}
	if got != "grave early follows late unknown known " {
		t.Error(got)
	}
}
