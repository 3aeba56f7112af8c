package main

import (
	"strings"
	"testing"

	"ringlight/proto"
)

func TestUnknownFirmwareIsNotCounted(t *testing.T) {
	// Goal: of a firmware roll-out that a former planner has ended, nobody reads that no node runs it.
	for nodes, want := range map[uint32]string{0: "through, none was asked since the planner began", 64: "through, 56 of 64 run it"} {
		var out strings.Builder
		j := rolloutOf(&proto.RolloutStatus{State: proto.RolloutDone, Software: "1.2.0", Firmware: true, Wave: 11, Back: 56, Nodes: nodes, Current: min(nodes, 56)})
		if printRollout(&out, &j); !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("%s", out.String())
		}
	}
}
