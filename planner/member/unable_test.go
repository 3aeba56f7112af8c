package member

import (
	"testing"
	"time"

	"ringlight/proto"
)

// present makes device 0 of a world one that reports.
func present(w *world) *Device {
	d := &w.t.Devices[0]
	w.t.Presence(d, &proto.Presence{Version: 1, Session: 7, Online: true})
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 1}, false)
	return d
}

// Goal: a device that says that it cannot write its journal takes no part before any
// plan asks it to, and does again when it says no more.
func TestWhoCannotWriteTakesNoPart(t *testing.T) {
	w := newWorld()
	d := present(w)
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2, Alarms: []proto.Alarm{{Kind: proto.EvJournal, Severity: proto.SeverityCritical, Text: "no space left"}}}, false)
	if d.Ready() || d.WhyNot() != "its agent cannot write its journal" {
		t.Fatalf("ready %t: %q", d.Ready(), d.WhyNot())
	}
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 3}, false)
	if !d.Ready() || d.WhyNot() != "" {
		t.Errorf("ready %t: %q", d.Ready(), d.WhyNot())
	}
}

// Goal: who stops its telemetry though the broker has it online is silent, is asked
// until it speaks, and is there again with its first word.
func TestWhoSaysNothingIsSilent(t *testing.T) {
	w := newWorld()
	d := present(w)
	for range 3 {
		w.t.Health(d, &proto.Health{Version: 1, Session: 7, Reported: 1})
		w.j.Now += 10 * time.Second
	}
	if w.t.Hush(0); !d.Ready() {
		t.Fatal(d.WhyNot())
	}
	w.j.Now += silentAfter
	if w.t.Hush(0); d.Ready() || d.Answers() || d.WhyNot() != "its agent says nothing any more" || d.AskAt() != w.j.Now+askFirst {
		t.Fatalf("%s, asked at %v: %q", d.state, d.AskAt(), d.WhyNot())
	}
	w.t.Reported(d, &proto.Reported{Version: 1, Session: 7, Seq: 2}, false)
	if !d.Ready() {
		t.Errorf("%s: %q", d.state, d.WhyNot())
	}
}
