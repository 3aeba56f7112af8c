package node

import (
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: the alarm of a bundle is as old as its failure, however long the bundle has been
// where it is. Method: one falls silent a minute after the start, another fails, and the
// first fails besides.
func TestAlarmIsAsOldAsItsCause(t *testing.T) {
	sc := &scripted{}
	for _, line := range [][]string{{"node", "2"}, {"heard", "1"}, {"wait", "1m"}, {"unready", "1", "bus"}, {"wait", "2s"}, {"failed", "0"}, {"wait", "3s"}, {"failed", "1"}} {
		sc.command(line)
	}
	want := []time.Duration{62 * time.Second, time.Minute}
	for _, a := range sc.m.Alarms(nil) {
		if at := time.Duration(a.SinceMicros) * time.Microsecond; a.Kind == proto.EvPathFailed && at != want[a.Bundle] {
			t.Errorf("bundle %d: since %v, want %v", a.Bundle, at, want[a.Bundle])
		} else if a.Kind == proto.EvPathFailed {
			want[a.Bundle] = -1
		}
	}
	if want[0] != -1 || want[1] != -1 {
		t.Errorf("not told: %v", want)
	}
}
