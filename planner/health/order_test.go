package health

import (
	"maps"
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

// Goal: an alarm affects service where light or capacity is missing now, by itself or by
// what follows from it, and only as long as that is so.
// Method: facts of one node and what it does to rings, fibres, jobs and circuits.
func TestWhatAffectsService(t *testing.T) {
	dead := Device{ID: 7, Ring: 3, What: "dead", Quiet: true, Since: 5}
	degraded := Ring{ID: 3, State: proto.RingDegraded, GPUs: 28, Whole: 32, Out: []proto.NodeID{7}, Members: []proto.NodeID{6, 7, 8}}
	dark := Fibre{Name: "7-8", A: 7, B: 8, State: proto.FibreDark, Next: 9}
	for _, c := range []struct {
		name  string
		facts Facts
		want  map[string]bool // by id, what affects service
	}{
		{"a node in no ring", Facts{Heard: 9, Nodes: 10, Devices: []Device{{ID: 7, What: "dead", Quiet: true}}}, map[string]bool{"7/dead": false}},
		{"a member, whose ring is short", Facts{Heard: 9, Nodes: 10, Devices: []Device{dead}, Rings: []Ring{degraded}}, map[string]bool{"7/dead": true, "ring-3/degraded": true}},
		{"the same, when a spare has its place", Facts{Heard: 9, Nodes: 10, Devices: []Device{{ID: 7, What: "dead", Quiet: true}}, Judged: true, SparesWanted: 1}, map[string]bool{"7/dead": false, "spares/few": false}},
		{"a fibre that rings go round", Facts{Heard: 10, Nodes: 10, Fibres: []Fibre{dark}}, map[string]bool{"fibre-7-8": false}},
		{"a fibre that a ring waits for", Facts{Heard: 10, Nodes: 10, Fibres: []Fibre{dark}, Rings: []Ring{{ID: 4, State: proto.RingForming, Members: []proto.NodeID{7, 8}, Dark: []string{"7-8"}}}}, map[string]bool{"fibre-7-8": true, "ring-4/forming": true}},
		{"three nodes at one time, one in a ring", Facts{Heard: 7, Nodes: 10, Devices: []Device{{ID: 6, What: "unreachable", Quiet: true, Since: 5}, dead, {ID: 8, What: "unreachable", Quiet: true, Since: 6}}, Rings: []Ring{degraded}},
			map[string]bool{"6/unreachable": false, "7/dead": false, "8/unreachable": false, "nodes/6": true, "ring-3/degraded": true}},
		{"circuits and jobs", Facts{Circuits: 4, CircuitsTuned: 3, Jobs: []Job{{Name: "j"}}, Routes: []Route{{Router: "r", Job: "j"}, {Router: "r", Job: "old", Over: true}}},
			map[string]bool{"circuits/not-tuned": true, "job-j/waits": true, "r/routes-j": true, "r/routes-old": false}},
		{"nobody plans", Facts{Idle: "it starts", Broker: "lost"}, map[string]bool{"planner/idle": false, "broker/lost": false}},
	} {
		got := map[string]bool{}
		for _, a := range Of(&c.facts) {
			got[a.ID] = a.ServiceAffecting
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
